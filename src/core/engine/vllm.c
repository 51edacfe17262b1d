/* vllm.c: vLLM's events, whichever version sent them, as kv batches.
 *
 * An event is decoded in place in one pass; only when that fails is it stepped over as a whole, so that one strange event
 * costs itself and not its batch. extra_keys are read last: what a bare string in them means depends on other fields, and
 * a map has no order. */
#include "engine/vllm.h"

#include <string.h>

#include "wire/msgpack.h"

enum field {
	F_NONE,
	F_UNUSED, /* known and not needed */
	F_TYPE,
	F_HASHES,
	F_PARENT,
	F_IDS,
	F_BLOCK_SIZE,
	F_LORA_ID,
	F_MEDIUM,
	F_LORA_NAME,
	F_EXTRA_KEYS,
	F_GROUP,
	F_KIND,
	F_WINDOW
};

static const struct {
	struct str name;
	enum field field;
} FIELDS[] = {
	{ STR_INIT("type"), F_TYPE }, /* what each of the many removals has comes first */
	{ STR_INIT("block_hashes"), F_HASHES },
	{ STR_INIT("medium"), F_MEDIUM },
	{ STR_INIT("group_idx"), F_GROUP },
	{ STR_INIT("parent_block_hash"), F_PARENT },
	{ STR_INIT("token_ids"), F_IDS },
	{ STR_INIT("block_size"), F_BLOCK_SIZE },
	{ STR_INIT("lora_id"), F_LORA_ID },
	{ STR_INIT("lora_name"), F_LORA_NAME },
	{ STR_INIT("extra_keys"), F_EXTRA_KEYS },
	{ STR_INIT("kv_cache_spec_kind"), F_KIND },
	{ STR_INIT("kv_cache_spec_sliding_window"), F_WINDOW },
	{ STR_INIT("session_id"), F_UNUSED },
	{ STR_INIT("locality"), F_UNUSED },
	{ STR_INIT("ownership"), F_UNUSED },
};

/* Fields of the array form by position behind the tag; later ones were only ever appended. */
static const enum field STORED[] = { F_HASHES, F_PARENT, F_IDS, F_BLOCK_SIZE, F_LORA_ID, F_MEDIUM, F_LORA_NAME, F_EXTRA_KEYS, F_GROUP,
	F_KIND, F_WINDOW };
static const enum field REMOVED[] = { F_HASHES, F_MEDIUM, F_GROUP };

static const struct {
	struct str name;
	enum kv_event_type type;
	const enum field *fields;
	size_t n;
} TAGS[] = {
	{ STR_INIT("BlockStored"), KV_EVENT_STORED, STORED, ARRAY_LEN(STORED) },
	{ STR_INIT("BlockRemoved"), KV_EVENT_REMOVED, REMOVED, ARRAY_LEN(REMOVED) },
	{ STR_INIT("AllBlocksCleared"), KV_EVENT_CLEARED, NULL, 0 },
};

static const struct {
	struct str name;
	enum kv_group_kind kind;
} KINDS[] = {
	{ STR_INIT("full_attention"), KV_GROUP_FULL },
	{ STR_INIT("mla_attention"), KV_GROUP_FULL },
	{ STR_INIT("sink_full_attention"), KV_GROUP_FULL },
	{ STR_INIT("sliding_window"), KV_GROUP_WINDOW },
	{ STR_INIT("sliding_window_mla"), KV_GROUP_WINDOW },
	{ STR_INIT("mamba"), KV_GROUP_MAMBA },
	{ STR_INIT("chunked_local_attention"), KV_GROUP_CHUNKED },
};

static const struct {
	struct str name;
	enum kv_tier tier;
} TIERS[] = {
	{ STR_INIT("GPU"), KV_TIER_GPU },
	{ STR_INIT("CPU"), KV_TIER_CPU },
	{ STR_INIT("CPU_TIER1"), KV_TIER_CPU },
	{ STR_INIT("CPU_TIER2"), KV_TIER_STORAGE },
	{ STR_INIT("DISK"), KV_TIER_STORAGE },
	{ STR_INIT("STORAGE"), KV_TIER_STORAGE },
	{ STR_INIT("SHARED_STORAGE"), KV_TIER_STORAGE },
	{ STR_INIT("OBJECT_STORE"), KV_TIER_STORAGE },
};

enum { MAX_BLOCK_SIZE = 1 << 20, MAX_ADAPTER_BYTES = 1024 };

/* One event under way. */
struct reading {
	struct arena *a;
	struct kv_batch *b;
	struct kv_event *e;
	size_t n_hashes, n_ids; /* so far in the batch, for its limits */
	bool typed, has_hashes, has_kind, has_adapter_id;
	uint64_t adapter_id;
	struct msgpack_cur extras; /* where extra_keys stand; p NULL: not there */
};

static enum err read_count(struct msgpack_cur *c, enum msgpack_type type, uint32_t *ret_n)
{
	struct msgpack_val v;
	TRY(msgpack_read(c, &v));
	if (v.type != type)
		return ERR_SYNTAX;
	*ret_n = v.n;
	return ERR_OK;
}

/* nil leaves *ret as it is. */
static enum err read_text(struct msgpack_cur *c, struct str *ret)
{
	struct msgpack_val v;
	TRY(msgpack_read(c, &v));
	if (v.type == MSGPACK_STR || v.type == MSGPACK_BIN)
		*ret = v.s;
	else if (v.type != MSGPACK_NIL)
		return ERR_SYNTAX;
	return ERR_OK;
}

/* nil leaves *ret as it is and gives false. */
static enum err read_number(struct msgpack_cur *c, uint64_t max, uint64_t *ret, bool *ret_there)
{
	struct msgpack_val v;
	TRY(msgpack_read(c, &v));
	*ret_there = v.type != MSGPACK_NIL;
	if (!*ret_there)
		return ERR_OK;
	if (v.type != MSGPACK_UINT || v.u > max)
		return ERR_RANGE;
	*ret = v.u;
	return ERR_OK;
}

/* The low 64 bits, in each form a hash has had; the digest is big-endian. nil gives false. */
static enum err read_hash(struct msgpack_cur *c, uint64_t *ret, bool *ret_there)
{
	struct msgpack_val v;
	TRY(msgpack_read(c, &v));
	*ret_there = v.type != MSGPACK_NIL;
	if (v.type == MSGPACK_UINT || v.type == MSGPACK_INT) {
		*ret = v.u;
	} else if (v.type == MSGPACK_BIN && v.s.n >= 8) {
		*ret = 0;
		for (size_t i = v.s.n - 8; i < v.s.n; i++)
			*ret = *ret << 8 | (uint8_t)v.s.p[i];
	} else if (*ret_there) {
		return ERR_SYNTAX;
	}
	return ERR_OK;
}

static enum err read_hashes(struct reading *r, struct msgpack_cur *c)
{
	uint32_t n;
	TRY(read_count(c, MSGPACK_ARRAY, &n));
	if (n > VLLM_MAX_HASHES - r->n_hashes || arena_over(r->a))
		return ERR_LIMIT;
	uint64_t *h = arena_new(r->a, uint64_t, n);
	r->n_hashes += n;
	for (uint32_t i = 0; i < n; i++) {
		bool there;
		TRY(read_hash(c, &h[i], &there));
		if (!there)
			return ERR_SYNTAX;
	}
	r->e->hashes = h;
	r->e->n_hashes = n;
	r->has_hashes = true;
	return ERR_OK;
}

static enum err read_ids(struct reading *r, struct msgpack_cur *c)
{
	uint32_t n;
	TRY(read_count(c, MSGPACK_ARRAY, &n));
	if (n > VLLM_MAX_IDS - r->n_ids || arena_over(r->a))
		return ERR_LIMIT;
	uint32_t *ids = arena_new(r->a, uint32_t, n);
	r->n_ids += n;
	TRY(msgpack_read_u32s(c, ids, n));
	r->e->ids = ids;
	r->e->n_ids = n;
	return ERR_OK;
}

static enum kv_tier tier_of(struct str medium)
{
	for (size_t i = 0; i < ARRAY_LEN(TIERS); i++)
		if (str_ieq(TIERS[i].name, medium))
			return TIERS[i].tier;
	return medium.n ? KV_TIER_UNKNOWN : KV_TIER_GPU;
}

static enum kv_group_kind kind_of(struct str word)
{
	for (size_t i = 0; i < ARRAY_LEN(KINDS); i++)
		if (str_eq(KINDS[i].name, word))
			return KINDS[i].kind;
	return KV_GROUP_UNKNOWN;
}

static const size_t NO_TAG = SIZE_MAX;

/* Lengths differ mostly, so most names cost one comparison. */
static inline bool is(struct str a, struct str b) { return a.n == b.n && memcmp(a.p, b.p, a.n) == 0; }

static size_t tag_of(struct str word)
{
	for (size_t i = 0; i < ARRAY_LEN(TAGS); i++)
		if (is(TAGS[i].name, word))
			return i;
	return NO_TAG;
}

static enum field field_of(struct str key)
{
	for (size_t i = 0; i < ARRAY_LEN(FIELDS); i++)
		if (is(FIELDS[i].name, key))
			return FIELDS[i].field;
	return F_NONE;
}

static enum err read_type(struct reading *r, struct msgpack_cur *c, size_t *ret_tag)
{
	struct str word = { 0 };
	TRY(read_text(c, &word));
	*ret_tag = tag_of(word);
	if (*ret_tag == NO_TAG)
		return ERR_UNSUPPORTED;
	r->typed = true;
	r->e->type = TAGS[*ret_tag].type;
	return ERR_OK;
}

static enum err read_kind(struct reading *r, struct msgpack_cur *c)
{
	struct str word = { 0 };
	TRY(read_text(c, &word));
	r->has_kind = word.n != 0;
	if (r->has_kind)
		r->e->kind = kind_of(word);
	return ERR_OK;
}

static enum err read_adapter(struct reading *r, struct msgpack_cur *c)
{
	TRY(read_text(c, &r->e->adapter));
	return r->e->adapter.n > MAX_ADAPTER_BYTES ? ERR_RANGE : ERR_OK;
}

static enum err read_small(struct reading *r, struct msgpack_cur *c, enum field f)
{
	uint64_t v = 0;
	bool there;
	TRY(read_number(c, f == F_GROUP ? KV_MAX_GROUPS - 1 : f == F_BLOCK_SIZE ? MAX_BLOCK_SIZE : UINT32_MAX, &v, &there));
	if (f == F_GROUP) {
		r->e->group = (uint32_t)v;
		r->e->group_known = there;
	} else if (f == F_BLOCK_SIZE) {
		r->e->block_size = (uint32_t)v;
	} else {
		r->e->window_tok = (uint32_t)v;
	}
	return ERR_OK;
}

static enum err read_field(struct reading *r, struct msgpack_cur *c, enum field f)
{
	struct str word = { 0 };
	size_t tag;
	switch (f) {
	case F_TYPE: return read_type(r, c, &tag);
	case F_HASHES: return read_hashes(r, c);
	case F_PARENT: return read_hash(c, &r->e->parent, &r->e->has_parent);
	case F_IDS: return read_ids(r, c);
	case F_LORA_ID: return read_number(c, UINT64_MAX, &r->adapter_id, &r->has_adapter_id);
	case F_MEDIUM:
		TRY(read_text(c, &word));
		r->e->tier = tier_of(word);
		return ERR_OK;
	case F_LORA_NAME: return read_adapter(r, c);
	case F_EXTRA_KEYS: r->extras = *c; return msgpack_skip(c);
	case F_KIND: return read_kind(r, c);
	case F_GROUP:
	case F_BLOCK_SIZE:
	case F_WINDOW: return read_small(r, c, f);
	case F_NONE: r->b->odd_parts++; return msgpack_skip(c);
	case F_UNUSED: return msgpack_skip(c);
	}
	return ERR_SYNTAX;
}

/* One extra key; *ret_n is raised if it counts. */
static enum err read_extra(struct reading *r, struct msgpack_cur *c, uint32_t at, bool first_block, struct kv_extra *x, size_t *ret_n)
{
	struct msgpack_val v;
	TRY(msgpack_read(c, &v));
	*x = (struct kv_extra){ 0 };
	if (v.type == MSGPACK_STR && at == 0 && r->e->adapter.n && str_eq(v.s, r->e->adapter))
		return ERR_OK;
	if (v.type == MSGPACK_STR && first_block) {
		*x = (struct kv_extra){ KV_EXTRA_SALT, v.s, 0 };
	} else if (v.type == MSGPACK_BIN) {
		*x = (struct kv_extra){ KV_EXTRA_EMBEDS, v.s, 0 };
	} else if (v.type == MSGPACK_ARRAY && v.n == 2) {
		struct msgpack_val offset;
		x->kind = KV_EXTRA_MM;
		TRY(read_text(c, &x->id));
		TRY(msgpack_read(c, &offset));
		if ((offset.type != MSGPACK_UINT && offset.type != MSGPACK_INT) || (offset.type == MSGPACK_UINT && offset.u > INT64_MAX))
			return ERR_SYNTAX;
		x->offset_tok = offset.i;
	} else {
		r->b->odd_parts++;
		for (uint64_t left = v.type == MSGPACK_ARRAY ? v.n : v.type == MSGPACK_MAP ? (uint64_t)v.n * 2 : 0; left; left--)
			TRY(msgpack_skip(c));
		return ERR_OK;
	}
	++*ret_n;
	return ERR_OK;
}

static enum err read_block_extras(struct reading *r, struct msgpack_cur *c, bool first_block, struct kv_block_extras *ret)
{
	struct msgpack_val v;
	TRY(msgpack_read(c, &v));
	if (v.type == MSGPACK_NIL)
		return ERR_OK;
	if (v.type != MSGPACK_ARRAY)
		return ERR_SYNTAX;
	if (arena_over(r->a))
		return ERR_LIMIT;
	struct kv_extra *x = arena_new(r->a, struct kv_extra, v.n);
	ret->p = x;
	for (uint32_t i = 0; i < v.n; i++)
		TRY(read_extra(r, c, i, first_block, &x[ret->n], &ret->n));
	return ERR_OK;
}

/* One entry per hash; nil as a whole: none said. */
static enum err read_extras(struct reading *r)
{
	struct msgpack_val v;
	struct kv_event *e = r->e;
	TRY(msgpack_read(&r->extras, &v));
	if (v.type == MSGPACK_NIL)
		return ERR_OK;
	if (v.type != MSGPACK_ARRAY || v.n != e->n_hashes)
		return ERR_SYNTAX;
	struct kv_block_extras *x = arena_new(r->a, struct kv_block_extras, v.n);
	for (uint32_t i = 0; i < v.n; i++)
		TRY(read_block_extras(r, &r->extras, i == 0 && !e->has_parent, &x[i]));
	e->extras = x;
	return ERR_OK;
}

static enum err finish(struct reading *r)
{
	struct kv_event *e = r->e;
	if (!r->typed || (e->type != KV_EVENT_CLEARED && !r->has_hashes))
		return ERR_SYNTAX;
	if (e->type != KV_EVENT_STORED)
		return ERR_OK;
	if (!r->has_kind)
		e->kind = KV_GROUP_FULL;
	/* Builds before 0.14 number the adapter and do not name it: keep its blocks apart from the base model's. */
	if (r->has_adapter_id && e->adapter.n == 0)
		e->adapter = str_of(arena_printf(r->a, "\x01%llu", (unsigned long long)r->adapter_id));
	return r->extras.p ? read_extras(r) : ERR_OK;
}

static enum err read_array_event(struct reading *r, struct msgpack_cur *c, uint32_t n)
{
	size_t tag;
	if (n == 0)
		return ERR_SYNTAX;
	TRY(read_type(r, c, &tag));
	for (uint32_t i = 1; i < n; i++)
		TRY(read_field(r, c, i <= TAGS[tag].n ? TAGS[tag].fields[i - 1] : F_NONE));
	return finish(r);
}

static enum err read_map_event(struct reading *r, struct msgpack_cur *c, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		struct msgpack_val key;
		TRY(msgpack_read(c, &key));
		if (key.type != MSGPACK_STR && key.type != MSGPACK_BIN)
			return ERR_SYNTAX;
		TRY(read_field(r, c, field_of(key.s)));
	}
	return finish(r);
}

/* The event at the cursor, perhaps inside a bin (some publishers encode each event apart). */
static enum err read_event(struct reading *r, struct msgpack_cur *c)
{
	struct msgpack_cur inner;
	struct msgpack_val v;
	TRY(msgpack_read(c, &v));
	if (v.type == MSGPACK_BIN) {
		inner = msgpack_cur(v.s);
		c = &inner;
		TRY(msgpack_read(c, &v));
	}
	if (v.type == MSGPACK_ARRAY)
		return read_array_event(r, c, v.n);
	if (v.type == MSGPACK_MAP)
		return read_map_event(r, c, v.n);
	return ERR_SYNTAX;
}

/* No event is shorter than its tag, which bounds what a hostile count can make us allocate. */
enum { SHORTEST_EVENT_BYTES = 12 };

static enum err read_events(struct msgpack_cur *c, struct arena *a, struct kv_batch *b)
{
	uint32_t n;
	TRY(read_count(c, MSGPACK_ARRAY, &n));
	size_t room = MIN((size_t)n, msgpack_left(c) / SHORTEST_EVENT_BYTES + 1);
	if (room > VLLM_MAX_EVENTS)
		return ERR_LIMIT;
	struct kv_event *events = arena_new(a, struct kv_event, room + 1); /* one more to read into when all are taken */
	struct reading r = { .a = a, .b = b };
	for (uint32_t i = 0; i < n; i++) {
		struct msgpack_cur at = *c;
		struct kv_event *e = &events[b->n_events];
		r = (struct reading){ .a = a, .b = b, .e = e, .n_hashes = r.n_hashes, .n_ids = r.n_ids };
		enum err err = read_event(&r, c);
		if (err == ERR_LIMIT)
			return err;
		if (err == ERR_OK && b->n_events < room) {
			b->n_events++;
		} else {
			*e = (struct kv_event){ 0 };
			*c = at;
			TRY(msgpack_skip(c));
			b->skipped++;
		}
	}
	b->events = events;
	return ERR_OK;
}

static enum err read_ts(struct msgpack_cur *c, struct kv_batch *b)
{
	struct msgpack_val v;
	TRY(msgpack_read(c, &v));
	if (v.type == MSGPACK_FLOAT)
		b->ts_s = v.f;
	else if (v.type == MSGPACK_UINT)
		b->ts_s = (double)v.u;
	else
		return ERR_SYNTAX;
	return ERR_OK;
}

static enum err read_rank(struct msgpack_cur *c, struct kv_batch *b)
{
	uint64_t rank = 0;
	bool there;
	TRY(read_number(c, INT32_MAX, &rank, &there));
	if (there)
		b->dp_rank = (int64_t)rank;
	return ERR_OK;
}

static enum err read_batch_map(struct msgpack_cur *c, struct arena *a, struct kv_batch *b, uint32_t n)
{
	bool has_events = false;
	for (uint32_t i = 0; i < n; i++) {
		struct str key = { 0 };
		TRY(read_text(c, &key));
		if (str_eq(key, STR("ts"))) {
			TRY(read_ts(c, b));
		} else if (str_eq(key, STR("events")) && !has_events) {
			TRY(read_events(c, a, b));
			has_events = true;
		} else if (str_eq(key, STR("data_parallel_rank"))) {
			TRY(read_rank(c, b));
		} else {
			TRY(msgpack_skip(c));
		}
	}
	return has_events ? ERR_OK : ERR_SYNTAX;
}

enum err vllm_events(struct str payload, struct arena *a, struct kv_batch *ret_b)
{
	struct msgpack_cur c = msgpack_cur(payload);
	struct kv_batch b = { .dp_rank = -1 };
	struct msgpack_val v;
	TRY(msgpack_read(&c, &v));
	if (v.type == MSGPACK_MAP) {
		TRY(read_batch_map(&c, a, &b, v.n));
	} else {
		if (v.type != MSGPACK_ARRAY || v.n < 2)
			return ERR_SYNTAX;
		TRY(read_ts(&c, &b));
		TRY(read_events(&c, a, &b));
		if (v.n > 2)
			TRY(read_rank(&c, &b));
	}
	*ret_b = b;
	return ERR_OK;
}

static const struct engine_metric METRICS[] = {
	{ STR_INIT("vllm:num_requests_running"), ENGINE_REQUESTS_RUNNING },
	{ STR_INIT("vllm:num_requests_waiting"), ENGINE_REQUESTS_WAITING },
	{ STR_INIT("vllm:kv_cache_usage_perc"), ENGINE_KV_USAGE },
	{ STR_INIT("vllm:gpu_cache_usage_perc"), ENGINE_KV_USAGE },
	{ STR_INIT("vllm:prefix_cache_queries_total"), ENGINE_PREFIX_QUERIES },
	{ STR_INIT("vllm:gpu_prefix_cache_queries_total"), ENGINE_PREFIX_QUERIES },
	{ STR_INIT("vllm:prefix_cache_hits_total"), ENGINE_PREFIX_HITS },
	{ STR_INIT("vllm:gpu_prefix_cache_hits_total"), ENGINE_PREFIX_HITS },
	{ STR_INIT("vllm:num_preemptions_total"), ENGINE_PREEMPTIONS },
	{ STR_INIT("vllm:generation_tokens_total"), ENGINE_GENERATION_TOKENS },
	{ STR_INIT("vllm:cache_config_info"), ENGINE_CACHE_CONFIG },
	{ STR_INIT("vllm:engine_sleep_state"), ENGINE_SLEEP_STATE },
};

const struct engine vllm_engine = {
	.name = STR_INIT("vllm"),
	.events = vllm_events,
	.metrics = METRICS,
	.n_metrics = ARRAY_LEN(METRICS),
	.labels = {
		.model = STR_INIT("model_name"),
		.rank = STR_INIT("engine"),
		.block_size = STR_INIT("block_size"),
		.blocks = STR_INIT("num_gpu_blocks"),
		.prefix_caching = STR_INIT("enable_prefix_caching"),
		.sleep_state = STR_INIT("sleep_state"),
		.awake = STR_INIT("awake"),
	},
	.events_port = 5557,
	.replay_port = 5558,
};
