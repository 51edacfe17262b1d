/* memo.c: parts of a table, each with a flag that says that somebody is in it. */
#include "tok/memo.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "base/map.h"
#include "base/must.h"

enum { PARTS = 64, ENTRY_BYTES = 64 }; /* ENTRY_BYTES: what the allocator and the table take beside an entry, about */

struct entry {
	struct list used;
	uint64_t key;
	struct hash128 tokenizer;
	enum tok_from from;
	bool ordinary;
	uint32_t n_ids, n_bytes;
	uint32_t ids[]; /* the text's bytes lie behind them */
};

struct part {
	atomic_flag busy;
	struct map entries; /* key -> entry */
	struct list used; /* last used first */
	size_t bytes;
	_Atomic uint64_t evicted;
	_Atomic size_t bytes_now, n_now; /* for readers from outside */
};

struct tok_memo {
	atomic_uint refs;
	uint64_t seed;
	size_t part_max_bytes, least_bytes;
	_Atomic uint64_t known_bytes, new_bytes;
	struct part parts[PARTS];
};

struct tok_memo *tok_memo_new(const struct tok_memo_opts *o)
{
	struct tok_memo *m = must_calloc(1, sizeof(*m));
	must(o->least_bytes);
	atomic_init(&m->refs, 1);
	m->seed = o->seed;
	m->part_max_bytes = o->max_bytes / PARTS;
	m->least_bytes = o->least_bytes;
	for (size_t i = 0; i < PARTS; i++) {
		atomic_flag_clear(&m->parts[i].busy);
		map_init(&m->parts[i].entries);
		list_init(&m->parts[i].used);
	}
	return m;
}

size_t tok_memo_least(const struct tok_memo *m) { return m->least_bytes; }

/* ---- a part; its flag is ours */

static bool enter(struct part *p) { return !atomic_flag_test_and_set_explicit(&p->busy, memory_order_acquire); }

static void leave(struct part *p)
{
	atomic_store_explicit(&p->bytes_now, p->bytes, memory_order_relaxed);
	atomic_store_explicit(&p->n_now, p->entries.n, memory_order_relaxed);
	atomic_flag_clear_explicit(&p->busy, memory_order_release);
}

static size_t cost_of(const struct entry *e) { return sizeof(*e) + e->n_ids * sizeof(e->ids[0]) + e->n_bytes + ENTRY_BYTES; }

static void drop(struct part *p, struct entry *e)
{
	map_del(&p->entries, e->key);
	list_del(&e->used);
	p->bytes -= cost_of(e);
	free(e);
}

static void add(struct part *p, struct entry *e, size_t max_bytes)
{
	struct entry *old = map_get_ptr(&p->entries, e->key);
	if (old)
		drop(p, old);
	map_put_ptr(&p->entries, e->key, e);
	list_add_head(&p->used, &e->used);
	p->bytes += cost_of(e);
	while (p->bytes > max_bytes) {
		drop(p, container_of(p->used.prev, struct entry, used));
		atomic_fetch_add_explicit(&p->evicted, 1, memory_order_relaxed);
	}
}

struct tok_memo *tok_memo_ref(struct tok_memo *m)
{
	if (m)
		must(atomic_fetch_add(&m->refs, 1) > 0);
	return m;
}

void tok_memo_unref(struct tok_memo *m)
{
	if (!m || atomic_fetch_sub(&m->refs, 1) != 1)
		return;
	for (size_t i = 0; i < PARTS; i++) {
		LIST_FOR_SAFE(&m->parts[i].used, it)
			drop(&m->parts[i], container_of(it, struct entry, used));
		map_done(&m->parts[i].entries);
	}
	free(m);
}

/* ---- use */

static uint64_t key_of(const struct tok_memo *m, const struct tok *t, const struct tok_stretch *s)
{
	struct hash128 f = tok_fingerprint(t);
	return hash_str(s->text, m->seed ^ f.lo ^ hash_mix(s->from + 1 + (s->ordinary ? 8u : 0)));
}

static struct part *part_of(struct tok_memo *m, uint64_t key) { return &m->parts[key >> 58]; }

static bool is(const struct entry *e, const struct tok *t, const struct tok_stretch *s)
{
	struct hash128 f = tok_fingerprint(t);
	return e->from == s->from && e->ordinary == s->ordinary && e->n_bytes == s->text.n && e->tokenizer.lo == f.lo && e->tokenizer.hi == f.hi &&
	       memcmp(e->ids + e->n_ids, s->text.p, s->text.n) == 0;
}

static void append(struct tok_ids *ids, const struct entry *e)
{
	if (ids->n + e->n_ids > ids->cap) {
		ids->cap = MAX(ids->cap * 2, ids->n + e->n_ids + 64);
		ids->p = must_realloc(ids->p, ids->cap * sizeof(*ids->p));
	}
	memcpy(ids->p + ids->n, e->ids, e->n_ids * sizeof(*ids->p));
	ids->n += e->n_ids;
}

bool tok_memo_find(struct tok_memo *m, const struct tok *t, const struct tok_stretch *s, struct tok_ids *ids)
{
	uint64_t key = key_of(m, t, s);
	struct part *p = part_of(m, key);
	if (s->text.n > TOK_MEMO_MOST_BYTES || !enter(p))
		return false;
	struct entry *e = map_get_ptr(&p->entries, key);
	bool found = e && is(e, t, s);
	if (found) {
		list_del(&e->used);
		list_add_head(&p->used, &e->used);
		append(ids, e);
	}
	leave(p);
	return found;
}

void tok_memo_keep(struct tok_memo *m, const struct tok *t, const struct tok_stretch *s, struct tok_ids ids)
{
	uint64_t key = key_of(m, t, s);
	struct part *p = part_of(m, key);
	if (s->text.n > TOK_MEMO_MOST_BYTES)
		return;
	struct entry *e = must_malloc(sizeof(*e) + ids.n * sizeof(e->ids[0]) + s->text.n);
	*e = (struct entry){ .key = key, .tokenizer = tok_fingerprint(t), .from = s->from, .ordinary = s->ordinary, .n_ids = (uint32_t)ids.n, .n_bytes = (uint32_t)s->text.n };
	if (ids.n)
		memcpy(e->ids, ids.p, ids.n * sizeof(e->ids[0]));
	memcpy(e->ids + ids.n, s->text.p, s->text.n);
	if (!enter(p)) {
		free(e);
		return;
	}
	add(p, e, m->part_max_bytes);
	leave(p);
}

void tok_memo_count(struct tok_memo *m, size_t known_bytes, size_t new_bytes)
{
	atomic_fetch_add_explicit(&m->known_bytes, known_bytes, memory_order_relaxed);
	atomic_fetch_add_explicit(&m->new_bytes, new_bytes, memory_order_relaxed);
}

struct tok_memo_stats tok_memo_stats(const struct tok_memo *m)
{
	struct tok_memo_stats n = { .known_bytes = m->known_bytes, .new_bytes = m->new_bytes };
	for (size_t i = 0; i < PARTS; i++) {
		n.evicted += m->parts[i].evicted;
		n.bytes += m->parts[i].bytes_now;
		n.stretches += m->parts[i].n_now;
	}
	return n;
}
