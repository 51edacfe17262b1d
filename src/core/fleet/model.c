/* model.c: the index from a requested name to the workers that list it, in one pool and anywhere. An entry outlives a
 * rebuild while somebody lists its name, so round robin's turn survives. */
#include <stdlib.h>

#include "base/hash.h"
#include "fleet/fleet_priv.h"

static const struct str ANYWHERE = STR_INIT("");

static uint64_t key_of(const struct fleet_pool *p, struct str name) { return hash_str(name, p ? hash_str(p->name, 1) : 0); }

static void model_free(struct fleet_model *m)
{
	free((void *)(uintptr_t)m->name.p);
	VEC_FREE(&m->workers);
	free(m);
}

void fleet_models_free(struct fleet *f)
{
	for (size_t i = map_first(&f->models); i < f->models.cap; i = map_next(&f->models, i))
		model_free((struct fleet_model *)(uintptr_t)f->models.slots[i].value);
	map_done(&f->models);
}

/* Entries of a pool that ceases to exist. Map removal shifts slots, so the walk starts again after each. */
static void forget(struct fleet *f, const struct fleet_pool *p, bool only_empty)
{
	bool again = true;
	while (again) {
		again = false;
		for (size_t i = map_first(&f->models); i < f->models.cap; i = map_next(&f->models, i)) {
			struct fleet_model *m = (struct fleet_model *)(uintptr_t)f->models.slots[i].value;
			if (only_empty ? m->workers.n == 0 : m->pool == p && p) {
				map_del(&f->models, f->models.slots[i].key);
				model_free(m);
				again = true;
				break;
			}
		}
	}
}

void fleet_models_forget_pool(struct fleet *f, const struct fleet_pool *p) { forget(f, p, false); }

static void list_worker(struct fleet *f, const struct fleet_pool *p, struct str name, bool adapter, struct fleet_worker *w)
{
	uint64_t key = key_of(p, name);
	struct fleet_model *m = map_get_ptr(&f->models, key);
	if (!m) {
		m = must_calloc(1, sizeof(*m));
		m->name = str_clone(name);
		m->pool = p;
		map_put_ptr(&f->models, key, m);
	}
	if (m->workers.n && m->workers.p[m->workers.n - 1] == w)
		return;                                    /* listed twice by one worker */
	m->adapter = m->workers.n ? m->adapter && adapter : adapter;
	VEC_PUSH(&m->workers, w);
}

static void rebuild(struct fleet *f)
{
	for (size_t i = map_first(&f->models); i < f->models.cap; i = map_next(&f->models, i))
		((struct fleet_model *)(uintptr_t)f->models.slots[i].value)->workers.n = 0;
	for (size_t s = 0; s < f->slots.n; s++) {
		struct fleet_worker *w = f->slots.p[s].worker;
		for (uint32_t i = 0; w && i < w->n_names + w->n_adapters; i++) {
			bool adapter = i >= w->n_names;
			struct str name = adapter ? w->adapters[i - w->n_names] : w->names[i];
			list_worker(f, NULL, name, adapter, w);
			list_worker(f, w->pool, name, adapter, w);
		}
	}
	forget(f, NULL, true);
	f->models_stale = false;
}

struct fleet_model *fleet_model_of(struct fleet *f, struct str pool, struct str name)
{
	const struct fleet_pool *p = pool.n ? fleet_pool_of(f, pool) : NULL;
	if (pool.n && !p)
		return NULL;
	if (f->models_stale)
		rebuild(f);
	struct fleet_model *m = map_get_ptr(&f->models, key_of(p, name));
	return m && str_eq(m->name, name) ? m : NULL;
}

static bool shares_a_name(const struct fleet_worker *a, const struct fleet_worker *b)
{
	for (uint32_t i = 0; i < a->n_names; i++)
		for (uint32_t k = 0; k < b->n_names; k++)
			if (str_eq(a->names[i], b->names[k]))
				return true;
	return false;
}

/* The workers of one base model may list it under several names; the first worker's first name stands for it. */
struct fleet_model *fleet_model_default(struct fleet *f, struct str pool, bool *ret_many)
{
	const struct fleet_worker *first = NULL;
	*ret_many = false;
	for (size_t i = 0; i < f->slots.n; i++) {
		const struct fleet_worker *w = f->slots.p[i].worker;
		if (!w || !w->n_names || w->health == FLEET_DRAINING || (pool.n && !str_eq(w->pool->name, pool)))
			continue;
		if (!first)
			first = w;
		else if (!shares_a_name(first, w))
			*ret_many = true;
	}
	return first && !*ret_many ? fleet_model_of(f, pool, first->names[0]) : NULL;
}

bool fleet_any_models(const struct fleet *f)
{
	for (size_t i = 0; i < f->slots.n; i++)
		if (f->slots.p[i].worker && f->slots.p[i].worker->n_names)
			return true;
	return false;
}

bool fleet_is_adapter(struct fleet *f, struct str name)
{
	const struct fleet_model *m = fleet_model_of(f, ANYWHERE, name);
	return m && m->adapter;
}

/* ---- the names of a worker ---- */

void fleet_names_free(struct fleet_worker *w)
{
	for (uint32_t i = 0; i < w->n_names; i++)
		free((void *)(uintptr_t)w->names[i].p);
	for (uint32_t i = 0; i < w->n_adapters; i++)
		free((void *)(uintptr_t)w->adapters[i].p);
	free(w->names);
	free(w->adapters);
	w->names = w->adapters = NULL;
	w->n_names = w->n_adapters = 0;
}

static bool same_list(const struct str *a, size_t n_a, const struct str *b, size_t n_b)
{
	if (n_a != n_b)
		return false;
	for (size_t i = 0; i < n_a; i++)
		if (!str_eq(a[i], b[i]))
			return false;
	return true;
}

static struct str *clone_list(const struct str *a, size_t n)
{
	struct str *list = must_calloc(n, sizeof(*list));
	for (size_t i = 0; i < n; i++)
		list[i] = str_clone(a[i]);
	return list;
}

bool fleet_fact_models(struct fleet *f, struct fleet_worker *w, const struct fleet_models_fact *m, struct mono now)
{
	size_t n_names = MIN(m->n_names, (size_t)FLEET_MAX_NAMES), n_adapters = MIN(m->n_adapters, (size_t)FLEET_MAX_NAMES);
	w->models_at = now;
	if (w->max_model_len == m->max_model_len && same_list(w->names, w->n_names, m->names, n_names) &&
		same_list(w->adapters, w->n_adapters, m->adapters, n_adapters))
		return false;
	struct str *names = clone_list(m->names, n_names), *adapters = clone_list(m->adapters, n_adapters);
	fleet_names_free(w);
	w->names = names;
	w->adapters = adapters;
	w->n_names = (uint32_t)n_names;
	w->n_adapters = (uint32_t)n_adapters;
	w->max_model_len = m->max_model_len;
	f->models_stale = true;
	return true;
}
