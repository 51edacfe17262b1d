#include "sim/event.h"

#include <string.h>

#include "base/hash.h"
#include "wire/msgpack.h"

const char *sim_spec_name(enum sim_spec s)
{
	static const char *const names[] = { "full_attention", "sliding_window", "mamba" };
	return names[s];
}

void sim_batch_init(struct sim_batch *b)
{
	*b = (struct sim_batch){ 0 };
	arena_init(&b->mem, 0);
}

void sim_batch_clear(struct sim_batch *b)
{
	b->ev.n = 0;
	arena_done(&b->mem);
}

void sim_batch_done(struct sim_batch *b)
{
	VEC_FREE(&b->ev);
	arena_done(&b->mem);
}

struct sim_event sim_batch_removal(struct sim_batch *b, enum sim_medium medium, uint32_t group, uint64_t hash)
{
	uint64_t *h = arena_new(&b->mem, uint64_t, 1);
	*h = hash;
	return (struct sim_event){ .kind = SIM_REMOVED, .medium = medium, .group = group, .hashes = h, .n_hashes = 1 };
}

void sim_batch_cleared(struct sim_batch *b) { VEC_PUSH(&b->ev, (struct sim_event){ .kind = SIM_CLEARED }); }

/* ---- members ------------------------------------------------------------------------------------------------ */

static void put_z(struct msgpack_out *o, const char *s) { msgpack_write_str(o, str_of(s)); }

static void put_str_or_nil(struct msgpack_out *o, struct str s)
{
	if (s.n)
		msgpack_write_str(o, s);
	else
		msgpack_write_nil(o);
}

/* The wide form is a digest whose low 64 bits are the short form, as vLLM's two forms are. */
static void put_hash(struct msgpack_out *o, uint64_t hash, bool wide)
{
	if (!wide) {
		msgpack_write_uint(o, hash);
		return;
	}
	char s[32];
	for (size_t i = 0; i < 4; i++) {
		uint64_t part = i == 3 ? hash : hash_mix(hash + i);
		for (size_t j = 0; j < 8; j++)
			s[8 * i + j] = (char)(part >> (56 - 8 * j));
	}
	msgpack_write_bin(o, str_from(s, sizeof(s)));
}

static void put_hashes(struct msgpack_out *o, const struct sim_event *v, bool wide)
{
	msgpack_write_array(o, (uint32_t)v->n_hashes);
	for (size_t i = 0; i < v->n_hashes; i++)
		put_hash(o, v->hashes[i], wide);
}

static void put_tokens(struct msgpack_out *o, const struct sim_event *v)
{
	msgpack_write_array(o, (uint32_t)v->n_tok);
	for (size_t i = 0; i < v->n_tok; i++)
		msgpack_write_uint(o, v->tok[i]);
}

/* Order inside one entry: adapter name, items, salt. */
static void put_extra(struct msgpack_out *o, const struct sim_extra *x)
{
	size_t n = (x->lora.n > 0) + x->n_mm + (x->salt.n > 0);
	if (!n) {
		msgpack_write_nil(o);
		return;
	}
	msgpack_write_array(o, (uint32_t)n);
	if (x->lora.n)
		msgpack_write_str(o, x->lora);
	for (size_t i = 0; i < x->n_mm; i++) {
		msgpack_write_array(o, 2);
		msgpack_write_str(o, x->mm[i].hash);
		msgpack_write_int(o, x->mm[i].offset);
	}
	if (x->salt.n)
		msgpack_write_str(o, x->salt);
}

static void put_extras(struct msgpack_out *o, const struct sim_event *v)
{
	msgpack_write_array(o, (uint32_t)v->n_hashes);
	for (size_t i = 0; i < v->n_hashes; i++)
		put_extra(o, &v->extra[i]);
}

static void put_parent(struct msgpack_out *o, const struct sim_event *v, bool wide)
{
	if (v->has_parent)
		put_hash(o, v->parent, wide);
	else
		msgpack_write_nil(o);
}

static void put_lora_id(struct msgpack_out *o, const struct sim_event *v)
{
	if (v->lora_id)
		msgpack_write_int(o, v->lora_id);
	else
		msgpack_write_nil(o);
}

/* ---- events ------------------------------------------------------------------------------------------------- */

static void put_medium(struct msgpack_out *o, const struct sim_event *v) { put_z(o, v->medium == SIM_CPU ? "CPU" : "GPU"); }

static bool has_extras(const struct sim_event *v) { return v->n_hashes > 0 && v->extra; }

static uint32_t said_block(const struct sim_event *v, const struct sim_encoding *e)
{
	if (v->bare)
		return 0;
	return e->lie_block_tok ? e->lie_block_tok : v->block_tok;
}

static void stored_array(struct msgpack_out *o, const struct sim_event *v, const struct sim_encoding *e)
{
	msgpack_write_array(o, 12);
	put_z(o, "BlockStored");
	put_hashes(o, v, e->wide_hashes);
	put_parent(o, v, e->wide_hashes);
	put_tokens(o, v);
	msgpack_write_uint(o, said_block(v, e));
	put_lora_id(o, v);
	put_medium(o, v);
	put_str_or_nil(o, v->lora);
	if (has_extras(v))
		put_extras(o, v);
	else
		msgpack_write_nil(o);
	msgpack_write_uint(o, v->group);
	put_str_or_nil(o, v->bare ? (struct str){ 0 } : str_of(sim_spec_name(v->spec)));
	if (v->spec == SIM_WINDOW)
		msgpack_write_uint(o, v->window_tok);
	else
		msgpack_write_nil(o);
}

static void stored_map(struct msgpack_out *o, const struct sim_event *v, const struct sim_encoding *e)
{
	msgpack_write_map(o, 9u + has_extras(v) + !v->bare + (v->spec == SIM_WINDOW) + (v->session.n > 0));
	put_z(o, "type"), put_z(o, "BlockStored");
	put_z(o, "block_hashes"), put_hashes(o, v, e->wide_hashes);
	put_z(o, "parent_block_hash"), put_parent(o, v, e->wide_hashes);
	put_z(o, "token_ids"), put_tokens(o, v);
	put_z(o, "block_size"), msgpack_write_uint(o, said_block(v, e));
	put_z(o, "lora_id"), put_lora_id(o, v);
	put_z(o, "medium"), put_medium(o, v);
	put_z(o, "lora_name"), put_str_or_nil(o, v->lora);
	if (has_extras(v))
		put_z(o, "extra_keys"), put_extras(o, v);
	put_z(o, "group_idx"), msgpack_write_uint(o, v->group);
	if (!v->bare)
		put_z(o, "kv_cache_spec_kind"), put_z(o, sim_spec_name(v->spec));
	if (v->spec == SIM_WINDOW)
		put_z(o, "kv_cache_spec_sliding_window"), msgpack_write_uint(o, v->window_tok);
	if (v->session.n)
		put_z(o, "session_id"), msgpack_write_str(o, v->session);
}

static void removed(struct msgpack_out *o, const struct sim_event *v, const struct sim_encoding *e)
{
	if (e->array) {
		msgpack_write_array(o, 4);
		put_z(o, "BlockRemoved");
		put_hashes(o, v, e->wide_hashes);
		put_medium(o, v);
		msgpack_write_uint(o, v->group);
		return;
	}
	msgpack_write_map(o, 4);
	put_z(o, "type"), put_z(o, "BlockRemoved");
	put_z(o, "block_hashes"), put_hashes(o, v, e->wide_hashes);
	put_z(o, "medium"), put_medium(o, v);
	put_z(o, "group_idx"), msgpack_write_uint(o, v->group);
}

static void cleared(struct msgpack_out *o, const struct sim_encoding *e)
{
	if (e->array) {
		msgpack_write_array(o, 1);
	} else {
		msgpack_write_map(o, 1);
		put_z(o, "type");
	}
	put_z(o, "AllBlocksCleared");
}

static void put_event(struct msgpack_out *o, const struct sim_event *v, const struct sim_encoding *e)
{
	switch (v->kind) {
	case SIM_STORED:
		if (e->array)
			stored_array(o, v, e);
		else
			stored_map(o, v, e);
		return;
	case SIM_REMOVED: removed(o, v, e); return;
	case SIM_CLEARED: cleared(o, e); return;
	}
}

enum err sim_batch_encode(const struct sim_batch *b, const struct sim_encoding *e, double unix_s, uint32_t rank, struct buf *out)
{
	struct msgpack_out o = msgpack_out(out);
	msgpack_write_array(&o, 3);
	msgpack_write_float(&o, unix_s);
	msgpack_write_array(&o, (uint32_t)b->ev.n);
	for (size_t i = 0; i < b->ev.n; i++)
		put_event(&o, &b->ev.p[i], e);
	msgpack_write_uint(&o, rank);
	return o.err;
}
