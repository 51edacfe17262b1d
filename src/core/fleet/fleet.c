/* fleet.c: the tables of workers, pools and models. Models are an index over the workers' names, rebuilt when names or
 * members change (rare) so that a request finds its candidates with one lookup. */
#include "fleet/fleet.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/must.h"
#include "fleet/fleet_priv.h"
#include "fleet/health.h"

enum { SLOT_BITS = 12, SLOT_MASK = (1 << SLOT_BITS) - 1 };
_Static_assert((int)FLEET_MAX_WORKERS <= (int)SLOT_MASK, "a worker id has 12 bits for its slot");

struct fleet *fleet_new(const struct fleet_ops *ops, void *arg)
{
	struct fleet *f = must_calloc(1, sizeof(*f));
	f->ops = *ops;
	f->arg = arg;
	map_init(&f->models);
	f->models_stale = true;
	return f;
}

static void worker_free(struct fleet_worker *w)
{
	fleet_names_free(w);
	free((void *)(uintptr_t)w->url.p);
	free((void *)(uintptr_t)w->accelerator.p);
	free(w);
}

void fleet_free(struct fleet *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->slots.n; i++)
		if (f->slots.p[i].worker)
			worker_free(f->slots.p[i].worker);
	for (size_t i = 0; i < f->pools.n; i++) {
		free((void *)(uintptr_t)f->pools.p[i]->name.p);
		free(f->pools.p[i]);
	}
	fleet_models_free(f);
	VEC_FREE(&f->slots);
	VEC_FREE(&f->pools);
	free(f);
}

/* ---- pools ---- */

struct fleet_pool *fleet_pool_of(struct fleet *f, struct str name)
{
	for (size_t i = 0; i < f->pools.n; i++)
		if (str_eq(f->pools.p[i]->name, name))
			return f->pools.p[i];
	return NULL;
}

static void pool_join(struct fleet *f, struct fleet_worker *w, struct str name)
{
	struct fleet_pool *p = fleet_pool_of(f, name);
	if (!p) {
		p = must_calloc(1, sizeof(*p));
		p->name = str_clone(name);
		VEC_PUSH(&f->pools, p);
	}
	p->n_workers++;
	p->by_health[w->health]++;
	w->pool = p;
}

static void pool_leave(struct fleet *f, struct fleet_worker *w)
{
	struct fleet_pool *p = w->pool;
	must(p->n_workers > 0 && p->by_health[w->health] > 0);
	p->n_workers--;
	p->by_health[w->health]--;
	w->pool = NULL;
	f->models_stale = true;
	for (size_t i = 0; !p->n_workers && i < f->pools.n; i++)
		if (f->pools.p[i] == p) {
			fleet_models_forget_pool(f, p);
			free((void *)(uintptr_t)p->name.p);
			free(p);
			f->pools.p[i] = f->pools.p[--f->pools.n];
			return;
		}
}

void fleet_pool_policy(struct fleet_worker *w, bool has_policy, uint8_t policy)
{
	w->pool->has_policy = has_policy;
	w->pool->policy = policy;
}

/* ---- workers ---- */

static struct fleet_worker *find_url(const struct fleet *f, struct str pool, struct str url, bool draining)
{
	uint64_t h = hash_str(url, 0);
	for (size_t i = 0; i < f->slots.n; i++) {
		struct fleet_worker *w = f->slots.p[i].worker;
		if (w && w->url_hash == h && str_eq(w->url, url) && (w->health == FLEET_DRAINING) == draining && (draining || str_eq(w->pool->name, pool)))
			return w;
	}
	return NULL;
}

static size_t free_slot(struct fleet *f)
{
	for (size_t i = 0; f->n_workers < f->slots.n && i < f->slots.n; i++)
		if (!f->slots.p[i].worker)
			return i;
	VEC_PUSH(&f->slots, (struct fleet_slot_entry){ NULL, 0 });
	return f->slots.n - 1;
}

enum err fleet_add(struct fleet *f, struct str pool, struct str url, struct str accelerator, struct mono now, struct fleet_worker **ret_w)
{
	if (f->n_workers >= FLEET_MAX_WORKERS)
		return ERR_LIMIT;
	if (find_url(f, pool, url, false))
		return ERR_DUPLICATE;
	struct fleet_worker *w = must_calloc(1, sizeof(*w));
	size_t slot = free_slot(f);
	f->slots.p[slot].worker = w;
	f->slots.p[slot].age++;
	f->n_workers++;
	w->id = (uint32_t)(f->slots.p[slot].age << SLOT_BITS) | ((uint32_t)slot + 1);
	w->url = str_clone(url);
	w->url_hash = hash_str(url, 0);
	w->accelerator = str_clone(accelerator);
	w->elder = find_url(f, pool, url, true);
	w->why = "added";
	w->since = w->failures_at = now;
	w->held_until = w->last_ok = w->slow_start_at = (struct mono){ INT64_MIN / 2 };
	w->prefix_caching = true;
	pool_join(f, w, pool);
	must(fleet_rank_of(f, w, 0) != NULL);
	*ret_w = w;
	return ERR_OK;
}

void fleet_change(struct fleet *f, struct fleet_worker *w, struct str pool, struct str url, struct str accelerator)
{
	struct str old_url = w->url, old_accelerator = w->accelerator;
	if (!str_eq(w->pool->name, pool)) {
		pool_leave(f, w);
		pool_join(f, w, pool);
	}
	w->url = str_clone(url);
	w->url_hash = hash_str(url, 0);
	w->accelerator = str_clone(accelerator);
	free((void *)(uintptr_t)old_url.p);
	free((void *)(uintptr_t)old_accelerator.p);
}

static void remove_worker(struct fleet *f, struct fleet_worker *w)
{
	for (uint32_t r = 0; r < w->n_ranks; r++)
		f->ops.on_rank(f->arg, w, r, false);
	for (size_t i = 0; i < f->slots.n; i++)
		if (f->slots.p[i].worker && f->slots.p[i].worker->elder == w)
			f->slots.p[i].worker->elder = w->elder;
	f->slots.p[(w->id & SLOT_MASK) - 1].worker = NULL;
	f->n_workers--;
	pool_leave(f, w);
	worker_free(w);
}

void fleet_drain(struct fleet *f, struct fleet_worker *w, struct mono now)
{
	fleet_enter(f, w, FLEET_DRAINING, "drained", now);
	if (!w->refs)
		remove_worker(f, w);
}

void fleet_hold(struct fleet_worker *w) { w->refs++; }

void fleet_release(struct fleet *f, struct fleet_worker *w)
{
	must(w->refs > 0);
	if (--w->refs == 0 && w->health == FLEET_DRAINING)
		remove_worker(f, w);
}

struct fleet_worker *fleet_worker_of(const struct fleet *f, uint32_t id)
{
	size_t slot = (size_t)(id & SLOT_MASK);
	struct fleet_worker *w = slot && slot <= f->slots.n ? f->slots.p[slot - 1].worker : NULL;
	return w && w->id == id ? w : NULL;
}

size_t fleet_slot_of(const struct fleet_worker *w) { return (size_t)(w->id & SLOT_MASK) - 1; }
size_t fleet_slots(const struct fleet *f) { return f->slots.n; }
struct fleet_worker *fleet_slot(const struct fleet *f, size_t i) { return f->slots.p[i].worker; }
size_t fleet_workers(const struct fleet *f) { return f->n_workers; }

struct fleet_rank *fleet_rank_of(struct fleet *f, struct fleet_worker *w, uint32_t rank)
{
	if (rank >= FLEET_MAX_RANKS)
		return NULL;
	while (w->n_ranks <= rank) {
		w->ranks[w->n_ranks] = (struct fleet_rank){ .gauges_at = { INT64_MIN / 2 } };
		w->n_ranks++;
		f->ops.on_rank(f->arg, w, w->n_ranks - 1, true);
	}
	return &w->ranks[rank];
}
