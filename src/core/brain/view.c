/* view.c: looking in, for admin pages, metrics and hands. Reads only. */
#include <string.h>

#include "brain/brain_priv.h"

enum { BLOCK_SIZE_DEFAULT = 16 };

static struct str *copy_names(struct arena *a, const struct str *names, size_t n)
{
	struct str *list = arena_new(a, struct str, n);
	for (size_t i = 0; i < n; i++)
		list[i] = arena_str(a, names[i]);
	return list;
}

static struct brain_rank_view view_rank(const struct brain *b, const struct fleet_worker *w, uint32_t rank)
{
	const struct fleet_rank *r = &w->ranks[rank];
	return (struct brain_rank_view){ .rank = rank, .events_seen = r->events_seen, .uncertain = r->uncertain, .approx = !r->events_seen,
		.events_seq = r->events_seq, .events_lag_us = r->events_lag_us,
		.index_blocks = r->kv_id == b->no_rank ? 0 : kv_index_rank_blocks(b->index, r->kv_id),
		.lower_blocks = r->kv_id == b->no_rank ? 0 : kv_index_rank_lower_blocks(b->index, r->kv_id),
		.in_flight_requests = r->load.requests, .in_flight_prompt_tok = r->load.prefill_tok, .in_flight_contexts = r->load.contexts,
		.context_tok = r->load.context_tok, .running = r->running, .waiting = r->waiting, .kv_usage = r->kv_usage };
}

static void view_worker(const struct brain *b, const struct fleet_worker *w, struct arena *a, struct brain_worker_view *v)
{
	const struct brain_truth *t = brain_truth_of(b, w);
	uint32_t sizes[FLEET_MAX_SIZES];
	size_t n_sizes = fleet_rank_sizes(w, 0, sizes);
	*v = (struct brain_worker_view){ .id = w->id, .pool = arena_str(a, w->pool->name), .url = arena_str(a, w->url),
		.health = (enum brain_health)w->health, .why = w->why, .draining = w->health == FLEET_DRAINING,
		.names = copy_names(a, w->names, w->n_names), .n_names = w->n_names, .adapters = copy_names(a, w->adapters, w->n_adapters),
		.n_adapters = w->n_adapters, .max_model_len = w->max_model_len, .block_size = n_sizes ? sizes[0] : 0, .blocks = w->blocks,
		.prefix_caching = w->prefix_caching, .from_events = w->ranks[0].n_sizes > 0, .n_ranks = w->n_ranks,
		.slow_factor = sched_slow(w), .predicted_exact_share = t->share, .predictions = t->predictions, .predicted_exact = t->exact,
		.told = t->told, .not_told = t->not_told,
		.requests = w->n_requests, .failures = w->n_failures, .ttft_ewma_us = w->measured.ttft_ewma_us,
		.ttft_error_ewma = w->measured.ttft_error_ewma, .accelerator = arena_str(a, w->accelerator) };
	for (uint32_t r = 0; r < w->n_ranks; r++)
		v->ranks[r] = view_rank(b, w, r);
}

size_t brain_worker_slots(const struct brain *b) { return fleet_slots(b->fleet); }

bool brain_worker_in(const struct brain *b, size_t slot, struct arena *a, struct brain_worker_view *ret_v)
{
	const struct fleet_worker *w = slot < fleet_slots(b->fleet) ? fleet_slot(b->fleet, slot) : NULL;
	if (w)
		view_worker(b, w, a, ret_v);
	return w != NULL;
}

size_t brain_workers(const struct brain *b, const struct brain_worker_view **ret_views, struct arena *a)
{
	struct brain_worker_view *views = arena_new(a, struct brain_worker_view, fleet_workers(b->fleet));
	size_t n = 0;
	for (size_t i = 0; i < fleet_slots(b->fleet); i++)
		n += brain_worker_in(b, i, a, &views[n]);
	*ret_views = views;
	return n;
}

static size_t add_size(uint32_t *sizes, size_t n, uint32_t size)
{
	for (size_t i = 0; i < n; i++)
		if (sizes[i] == size)
			return n;
	if (n < KV_MAX_SIZES)
		sizes[n++] = size;
	return n;
}

size_t brain_block_sizes(const struct brain *b, struct str model, uint32_t ret_sizes[KV_MAX_SIZES])
{
	bool many;
	const struct fleet_model *m = model.n ? fleet_model_of(b->fleet, STR(""), model) : fleet_model_default(b->fleet, STR(""), &many);
	size_t n = 0;
	for (size_t i = 0; m && i < m->workers.n; i++) {
		const struct fleet_worker *w = m->workers.p[i];
		for (uint32_t r = 0; r < w->n_ranks && w->health != FLEET_DRAINING; r++) {
			uint32_t sizes[FLEET_MAX_SIZES];
			size_t n_rank = fleet_rank_sizes(w, r, sizes);
			for (size_t k = 0; k < n_rank; k++)
				n = add_size(ret_sizes, n, sizes[k]);
		}
	}
	if (m && m->workers.n && !n)
		n = add_size(ret_sizes, n, BLOCK_SIZE_DEFAULT);     /* nobody said: the approximate index needs some size */
	return n;
}

bool brain_is_adapter(const struct brain *b, struct str model) { return fleet_is_adapter(b->fleet, model); }

bool brain_any_usable(const struct brain *b)
{
	for (size_t i = 0; i < fleet_slots(b->fleet); i++)
		if (fleet_slot(b->fleet, i) && fleet_usable(fleet_slot(b->fleet, i)))
			return true;
	return false;
}

struct kv_index_stats brain_index_stats(const struct brain *b)
{
	struct kv_index_stats s = kv_index_stats(b->index);
	s.flights -= b->n_settling;
	return s;
}

bool brain_ledger_is_zero(const struct brain *b)
{
	struct kv_index_stats s = brain_index_stats(b);
	return fleet_is_idle(b->fleet) && b->tickets.n == b->free_tickets.n && list_empty(&b->waiting) && !b->unposted && s.flights == 0;
}

uint64_t brain_generation(const struct brain *b) { return b->generation; }
