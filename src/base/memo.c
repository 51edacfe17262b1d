/* memo.c: parts of a table, each with a flag that says that somebody is in it. */
#include "base/memo.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/must.h"

enum { PARTS = 64, ITEM_BYTES = 64 }; /* ITEM_BYTES: what the allocator and the table take beside an item, about */

struct part {
	atomic_flag busy;
	struct map items; /* key -> item */
	struct list used; /* last used first */
	size_t bytes;
	_Atomic uint64_t evicted;
	_Atomic size_t bytes_now, n_now; /* for readers from outside */
};

struct memo {
	uint64_t seed;
	size_t part_max_bytes;
	struct part parts[PARTS];
};

/* ---- items */

void memo_item_init(struct memo_item *it)
{
	*it = (struct memo_item){ 0 };
	list_init(&it->used);
	atomic_init(&it->refs, 1);
}

static void ref(struct memo_item *it) { atomic_fetch_add_explicit(&it->refs, 1, memory_order_relaxed); }

void memo_item_unref(struct memo_item *it)
{
	if (it && atomic_fetch_sub_explicit(&it->refs, 1, memory_order_acq_rel) == 1)
		it->free(it);
}

/* ---- a part; its flag is ours */

static bool enter(struct part *p) { return !atomic_flag_test_and_set_explicit(&p->busy, memory_order_acquire); }

static void leave(struct part *p)
{
	atomic_store_explicit(&p->bytes_now, p->bytes, memory_order_relaxed);
	atomic_store_explicit(&p->n_now, p->items.n, memory_order_relaxed);
	atomic_flag_clear_explicit(&p->busy, memory_order_release);
}

static size_t cost_of(const struct memo_item *it) { return it->bytes + ITEM_BYTES; }

static void drop(struct part *p, struct memo_item *it)
{
	map_del(&p->items, it->key);
	list_del(&it->used);
	p->bytes -= cost_of(it);
	memo_item_unref(it);
}

static void add(struct part *p, struct memo_item *it, size_t max_bytes)
{
	struct memo_item *old = map_get_ptr(&p->items, it->key);
	if (old)
		drop(p, old);
	ref(it);
	map_put_ptr(&p->items, it->key, it);
	list_add_head(&p->used, &it->used);
	p->bytes += cost_of(it);
	while (p->bytes > max_bytes) {
		drop(p, container_of(p->used.prev, struct memo_item, used));
		atomic_fetch_add_explicit(&p->evicted, 1, memory_order_relaxed);
	}
}

/* ---- the table */

struct memo *memo_new(size_t max_bytes, uint64_t seed)
{
	struct memo *m = must_calloc(1, sizeof(*m));
	m->seed = seed;
	m->part_max_bytes = max_bytes / PARTS;
	for (size_t i = 0; i < PARTS; i++) {
		atomic_flag_clear(&m->parts[i].busy);
		map_init(&m->parts[i].items);
		list_init(&m->parts[i].used);
	}
	return m;
}

void memo_free(struct memo *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < PARTS; i++) {
		LIST_FOR_SAFE(&m->parts[i].used, it)
			drop(&m->parts[i], container_of(it, struct memo_item, used));
		map_done(&m->parts[i].items);
	}
	free(m);
}

static uint64_t key_of(const struct memo *m, struct hash128 kind, struct str text) { return hash_str(text, m->seed ^ kind.lo); }
static struct part *part_of(struct memo *m, uint64_t key) { return &m->parts[key >> 58]; }
static bool is_kind(const struct memo_item *it, struct hash128 kind) { return it->kind.lo == kind.lo && it->kind.hi == kind.hi; }

struct memo_item *memo_find(struct memo *m, struct hash128 kind, struct str text)
{
	if (!m)
		return NULL;
	uint64_t key = key_of(m, kind, text);
	struct part *p = part_of(m, key);
	if (!enter(p))
		return NULL;
	struct memo_item *it = map_get_ptr(&p->items, key);
	if (it && is_kind(it, kind) && str_eq(it->text, text)) {
		list_del(&it->used);
		list_add_head(&p->used, &it->used);
		ref(it);
	} else {
		it = NULL;
	}
	leave(p);
	return it;
}

void memo_keep(struct memo *m, struct memo_item *it)
{
	if (!m || cost_of(it) > m->part_max_bytes)
		return;
	it->key = key_of(m, it->kind, it->text);
	struct part *p = part_of(m, it->key);
	if (!enter(p))
		return;
	add(p, it, m->part_max_bytes);
	leave(p);
}

struct memo_stats memo_stats(const struct memo *m)
{
	struct memo_stats n = { 0 };
	for (size_t i = 0; m && i < PARTS; i++) {
		n.evicted += m->parts[i].evicted;
		n.bytes += m->parts[i].bytes_now;
		n.items += m->parts[i].n_now;
	}
	return n;
}
