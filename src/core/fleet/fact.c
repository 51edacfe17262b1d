/* fact.c: what scrapes and events say about a worker's cache and load. */
#include "fleet/fleet_priv.h"

/* A gauge older than FRESH counts less and less; after STALE it is as if it had never come (fail open). */
enum { FRESH_US = 2000000, STALE_US = 10000000 };
#define PRESSED_KV_USAGE 0.9

static bool rank_is_idle(const struct fleet_rank *r) { return !r->load.requests && !r->events_seen; }

/* A worker that came back with fewer ranks loses the idle ones at its end. */
static bool drop_ranks(struct fleet *f, struct fleet_worker *w, uint32_t ranks)
{
	bool dropped = false;
	while (w->n_ranks > MAX(ranks, 1u) && rank_is_idle(&w->ranks[w->n_ranks - 1])) {
		f->ops.on_rank(f->arg, w, w->n_ranks - 1, false);
		w->n_ranks--;
		dropped = true;
	}
	return dropped;
}

bool fleet_fact_cache(struct fleet *f, struct fleet_worker *w, const struct fleet_cache_fact *c, struct mono now)
{
	uint32_t ranks = MIN(MAX(c->ranks, 1u), (uint32_t)FLEET_MAX_RANKS), had = w->n_ranks;
	bool changed = !w->has_cache_fact || w->block_size != c->block_size || w->blocks != c->blocks || w->prefix_caching != c->prefix_caching;
	w->has_cache_fact = true;
	w->cache_at = now;
	w->block_size = c->block_size;
	w->blocks = c->blocks;
	w->prefix_caching = c->prefix_caching;
	(void)fleet_rank_of(f, w, ranks - 1);
	return drop_ranks(f, w, ranks) || changed || w->n_ranks != had;
}

void fleet_fact_gauges(struct fleet_worker *w, uint32_t rank, uint32_t running, uint32_t waiting, double kv_usage, struct mono now)
{
	if (rank >= w->n_ranks)
		return;
	struct fleet_rank *r = &w->ranks[rank];
	uint64_t there = (uint64_t)running + waiting, ours = MAX(r->peak_requests, r->load.requests);
	r->running = running;
	r->waiting = waiting;
	r->kv_usage = kv_usage >= 0 && kv_usage <= 1 ? kv_usage : 0;
	r->gauges_at = now;
	r->foreign_requests = there > ours ? (uint32_t)MIN(there - ours, (uint64_t)UINT32_MAX) : 0;
	r->peak_requests = r->load.requests;
}

bool fleet_fact_sizes(struct fleet_worker *w, uint32_t rank, const uint32_t *sizes, size_t n)
{
	struct fleet_rank *r = &w->ranks[rank];
	uint32_t found[FLEET_MAX_SIZES], n_found = 0;
	for (size_t i = 0; i < n; i++) {
		uint32_t k = 0;
		while (k < n_found && found[k] != sizes[i])
			k++;
		if (k == n_found && sizes[i] && n_found < FLEET_MAX_SIZES)
			found[n_found++] = sizes[i];
	}
	bool changed = n_found != r->n_sizes;
	for (uint32_t i = 0; i < n_found; i++) {
		changed |= r->sizes[i] != found[i];
		r->sizes[i] = found[i];
	}
	r->n_sizes = n_found;
	return changed;
}

size_t fleet_rank_sizes(const struct fleet_worker *w, uint32_t rank, uint32_t ret_sizes[FLEET_MAX_SIZES])
{
	const struct fleet_rank *r = &w->ranks[rank];
	for (uint32_t i = 0; i < r->n_sizes; i++)
		ret_sizes[i] = r->sizes[i];
	if (!r->n_sizes && w->block_size)
		ret_sizes[0] = w->block_size;
	return r->n_sizes ? r->n_sizes : w->block_size != 0;
}

uint64_t fleet_rank_capacity(const struct fleet_worker *w) { return w->blocks / MAX(w->n_ranks, 1u); }

double fleet_foreign(const struct fleet_rank *r, struct mono now)
{
	int64_t age_us = mono_diff_us(now, r->gauges_at);
	if (!r->foreign_requests || age_us >= STALE_US)
		return 0;
	double weight = age_us <= FRESH_US ? 1 : (double)(STALE_US - age_us) / (STALE_US - FRESH_US);
	return weight * r->foreign_requests;
}

double fleet_kv_usage(const struct fleet_rank *r, struct mono now) { return mono_diff_us(now, r->gauges_at) < STALE_US / 2 ? r->kv_usage : 0; }

bool fleet_pressed(const struct fleet_rank *r, struct mono now) { return r->waiting && fleet_kv_usage(r, now) >= PRESSED_KV_USAGE; }
