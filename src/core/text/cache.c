/* cache.c: one table for finished ids and open calls; finished ones also stand in a list by last use. */
#include "text/cache.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/must.h"

enum { ENTRY_BYTES = 192 }; /* an entry and its place in the table */

struct entry {
	struct hash128 digest;
	struct text_ids *ids; /* NULL: the call is open */
	struct list used; /* in cache.used when finished */
	struct list waiting;
};
struct text_cache {
	struct map entries; /* digest.lo -> entry; the rest of the digest is compared */
	struct list used; /* most recent first */
	size_t max_bytes, max_calls;
	struct text_cache_stats n;
};

struct text_cache *text_cache_new(size_t max_bytes, size_t max_calls)
{
	struct text_cache *c = must_calloc(1, sizeof(*c));
	map_init(&c->entries);
	list_init(&c->used);
	c->max_bytes = max_bytes;
	c->max_calls = max_calls;
	return c;
}

static struct entry *entry_of(const struct text_cache *c, struct hash128 d)
{
	struct entry *e = map_get_ptr(&c->entries, d.lo);
	return e && e->digest.hi == d.hi ? e : NULL;
}

static struct entry *add_entry(struct text_cache *c, struct hash128 d)
{
	struct entry *e = must_calloc(1, sizeof(*e));
	e->digest = d;
	list_init(&e->used);
	list_init(&e->waiting);
	map_put_ptr(&c->entries, d.lo, e);
	return e;
}

static size_t cost_of(const struct entry *e) { return e->ids->bytes + ENTRY_BYTES; }

static void drop_entry(struct text_cache *c, struct entry *e)
{
	must(list_empty(&e->waiting));
	map_del(&c->entries, e->digest.lo);
	list_del(&e->used);
	if (e->ids) {
		c->n.bytes -= cost_of(e);
		c->n.entries--;
	}
	text_ids_unref(e->ids);
	free(e);
}

static void evict(struct text_cache *c)
{
	while (c->n.bytes > c->max_bytes) {
		must(!list_empty(&c->used));
		drop_entry(c, container_of(c->used.prev, struct entry, used));
		c->n.evicted++;
	}
}

enum text_found text_cache_ask(struct text_cache *c, struct hash128 digest, struct text_wait *w, struct text_ids **ret_ids)
{
	struct entry *e = entry_of(c, digest);
	list_init(&w->node);
	if (e && e->ids) {
		list_del(&e->used);
		list_add_head(&c->used, &e->used);
		c->n.hits++;
		*ret_ids = text_ids_ref(e->ids);
		return TEXT_HIT;
	}
	if (e) {
		list_add_tail(&e->waiting, &w->node);
		c->n.joins++;
		return TEXT_JOIN;
	}
	c->n.leads++;
	if (c->n.calls < c->max_calls && !map_get_ptr(&c->entries, digest.lo)) {
		add_entry(c, digest);
		c->n.calls++;
	}
	return TEXT_LEAD;
}

/* The waiters are taken over first: a callback may ask again, leave others, or push this entry out. */
static void tell(struct list *waiting, enum err e, struct text_ids *ids)
{
	while (!list_empty(waiting)) {
		struct text_wait *w = container_of(waiting->next, struct text_wait, node);
		list_del(&w->node);
		w->fn(w, e, ids);
	}
}

static void take_over(struct list *from, struct list *to)
{
	list_init(to);
	while (!list_empty(from)) {
		struct list *node = from->next;
		list_del(node);
		list_add_tail(to, node);
	}
}

static void keep(struct text_cache *c, struct entry *e, struct text_ids *ids)
{
	e->ids = text_ids_ref(ids);
	list_add_head(&c->used, &e->used);
	c->n.bytes += cost_of(e);
	c->n.entries++;
	evict(c);
}

void text_cache_fill(struct text_cache *c, struct hash128 digest, struct text_ids *ids)
{
	struct entry *e = entry_of(c, digest);
	struct list waiting;
	list_init(&waiting);
	if (e && e->ids)
		return; /* an ask that led alone came second */
	if (e) {
		take_over(&e->waiting, &waiting);
		c->n.calls--;
	} else if (!map_get_ptr(&c->entries, digest.lo)) {
		e = add_entry(c, digest);
	}
	text_ids_ref(ids);
	if (e)
		keep(c, e, ids);
	tell(&waiting, ERR_OK, ids);
	text_ids_unref(ids);
}

void text_cache_fail(struct text_cache *c, struct hash128 digest, enum err why)
{
	struct entry *e = entry_of(c, digest);
	struct list waiting;
	if (!e || e->ids)
		return;
	take_over(&e->waiting, &waiting);
	c->n.calls--;
	drop_entry(c, e);
	tell(&waiting, why, NULL);
}

void text_cache_leave(struct text_wait *w)
{
	if (w->node.next)
		list_del(&w->node);
}

size_t text_cache_waiting(const struct text_cache *c, struct hash128 digest)
{
	const struct entry *e = entry_of(c, digest);
	size_t n = 0;
	if (e)
		LIST_FOR(&e->waiting, it)
	n++;
	return n;
}

void text_cache_forget(struct text_cache *c)
{
	while (!list_empty(&c->used))
		drop_entry(c, container_of(c->used.next, struct entry, used));
}

static struct entry *any_open(const struct text_cache *c)
{
	size_t i = map_first(&c->entries);
	return i < c->entries.cap ? (struct entry *)(uintptr_t)c->entries.slots[i].value : NULL;
}

void text_cache_free(struct text_cache *c)
{
	if (!c)
		return;
	text_cache_forget(c);
	for (struct entry *e; (e = any_open(c)) != NULL;)
		text_cache_fail(c, e->digest, ERR_DRAINING);
	map_done(&c->entries);
	free(c);
}

struct text_cache_stats text_cache_stats(const struct text_cache *c) { return c->n; }
