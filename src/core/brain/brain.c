/* brain.c: birth, workers and facts. Deciding is ask.c, settling is tell.c. */
#include "brain/brain.h"

#include <stdlib.h>

#include "base/must.h"
#include "brain/brain_priv.h"

enum { RECEIPTS_DEFAULT = 1000, BLOCK_SIZE_DEFAULT = 16 };

_Static_assert((int)BRAIN_UNKNOWN == FLEET_UNKNOWN && (int)BRAIN_HEALTHY == FLEET_HEALTHY && (int)BRAIN_DEGRADED == FLEET_DEGRADED &&
		       (int)BRAIN_DRAINING == FLEET_DRAINING && (int)BRAIN_DOWN == FLEET_DOWN,
	"one order of states");
_Static_assert((int)BRAIN_MAX_WORKERS == FLEET_MAX_WORKERS && (int)BRAIN_MAX_RANKS_PER_WORKER == FLEET_MAX_RANKS, "one set of limits");
_Static_assert((int)BRAIN_PROBE_OK == FLEET_PROBE_OK && (int)BRAIN_PROBE_UNAUTHORIZED == FLEET_PROBE_UNAUTHORIZED, "one order of probes");
_Static_assert((int)KV_MAX_SIZES == FLEET_MAX_SIZES, "one limit of block sizes");

static const char *const routing_names[] = { "kv", "least-request", "round-robin", "random", "p2c-ewma", "consistent-hash" };

bool brain_routing_of(struct str name, enum brain_routing *ret_r)
{
	for (size_t i = 0; i < ARRAY_LEN(routing_names); i++)
		if (str_eq(name, str_of(routing_names[i]))) {
			*ret_r = (enum brain_routing)i;
			return true;
		}
	return false;
}

const char *brain_routing_name(enum brain_routing r)
{
	must((size_t)r < ARRAY_LEN(routing_names));
	return routing_names[r];
}

const char *brain_health_name(enum brain_health h) { return fleet_health_name((enum fleet_health)h); }

/* ---- what the fleet says ---- */

static void on_health(void *arg, struct fleet_worker *w, enum fleet_health from, const char *why)
{
	struct brain *b = arg;
	b->generation++;
	if (b->ops.on_health)
		b->ops.on_health(b->arg, w->id, (enum brain_health)from, (enum brain_health)w->health, why);
}

static void on_panic(void *arg, struct fleet_pool *p, bool on)
{
	struct brain *b = arg;
	if (b->ops.on_panic)
		b->ops.on_panic(b->arg, p->name, on);
}

static void tell_index(struct brain *b, struct fleet_worker *w, uint32_t rank)
{
	struct fleet_rank *r = &w->ranks[rank];
	if (r->kv_id == b->no_rank)
		return;
	kv_index_capacity(b->index, r->kv_id, (uint32_t)MIN(fleet_rank_capacity(w), (uint64_t)UINT32_MAX));
	kv_index_approx(b->index, r->kv_id, !r->events_seen);
	if (!r->n_sizes)             /* no groups from events: one group of full attention */
		kv_index_groups(b->index, r->kv_id,
			&(struct kv_group){ .kind = KV_GROUP_FULL, .block_size = w->block_size ? w->block_size : BLOCK_SIZE_DEFAULT }, 1);
}

static void on_rank(void *arg, struct fleet_worker *w, uint32_t rank, bool added)
{
	struct brain *b = arg;
	struct fleet_rank *r = &w->ranks[rank];
	b->generation++;
	if (added) {
		if (kv_index_rank_add(b->index, &r->kv_id) != ERR_OK)
			r->kv_id = b->no_rank;
		tell_index(b, w, rank);
	} else if (r->kv_id != b->no_rank) {
		kv_index_rank_del(b->index, r->kv_id);
	}
}

static const struct fleet_ops fleet_ops = { .on_health = on_health, .on_panic = on_panic, .on_rank = on_rank };

struct brain *brain_new(const struct brain_opts *o, const struct brain_ops *ops, void *arg)
{
	struct brain *b = must_calloc(1, sizeof(*b));
	b->opts = *o;
	if (!b->opts.receipts)
		b->opts.receipts = RECEIPTS_DEFAULT;
	if (ops)
		b->ops = *ops;
	b->arg = arg;
	b->rand.s = o->seed;
	b->index = kv_index_new();
	must(kv_index_rank_add(b->index, &b->no_rank) == ERR_OK);
	b->fleet = fleet_new(&fleet_ops, b);
	list_init(&b->waiting);
	b->receipts = must_calloc(b->opts.receipts, sizeof(*b->receipts));
	b->settling = must_calloc(BRAIN_SETTLING_MAX, sizeof(*b->settling));
	b->next_receipt = 1;
	b->generation = 1;
	return b;
}

void brain_free(struct brain *b)
{
	if (!b)
		return;
	for (size_t i = 0; i < b->tickets.n; i++) {
		free(b->tickets.p[i]->keys.p);
		free(b->tickets.p[i]);
	}
	for (uint32_t i = 0; i < b->n_spare; i++)
		free(b->spare[i].p);
	VEC_FREE(&b->tickets);
	VEC_FREE(&b->free_tickets);
	VEC_FREE(&b->truths);
	VEC_FREE(&b->candidates);
	VEC_FREE(&b->ids);
	VEC_FREE(&b->scratch);
	VEC_FREE(&b->hits);
	VEC_FREE(&b->loads);
	free(b->receipts);
	free(b->settling);
	fleet_free(b->fleet);
	kv_index_free(b->index);
	free(b);
}

/* ---- workers ---- */

enum err brain_worker_add(struct brain *b, const struct brain_worker_conf *c, struct mono now, brain_worker *ret_w)
{
	struct fleet_worker *w;
	brain_post(b);
	TRY(fleet_add(b->fleet, c->pool, c->url, c->accelerator, now, &w));
	fleet_pool_policy(w, c->has_routing, (uint8_t)c->routing);
	w->profile = sched_profile_find(w->accelerator, NULL);
	b->generation++;
	*ret_w = w->id;
	return ERR_OK;
}

void brain_worker_update(struct brain *b, brain_worker id, const struct brain_worker_conf *c, struct mono now)
{
	(void)now;
	struct fleet_worker *w = fleet_worker_of(b->fleet, id);
	if (!w)
		return;
	fleet_change(b->fleet, w, c->pool, c->url, c->accelerator);
	fleet_pool_policy(w, c->has_routing, (uint8_t)c->routing);
	w->profile = sched_profile_find(w->accelerator, NULL);
	b->generation++;
}

void brain_worker_drain(struct brain *b, brain_worker id, struct mono now)
{
	struct fleet_worker *w = fleet_worker_of(b->fleet, id);
	brain_post(b);
	if (!w)
		return;
	fleet_drain(b->fleet, w, now);
	b->generation++;
}

/* ---- facts ---- */

void brain_fact_models(struct brain *b, brain_worker id, const struct brain_models *m, struct mono now)
{
	struct fleet_worker *w = fleet_worker_of(b->fleet, id);
	struct fleet_models_fact fact = { m->names, m->n_names, m->adapters, m->n_adapters, m->max_model_len };
	if (w && fleet_fact_models(b->fleet, w, &fact, now))
		b->generation++;
}

void brain_fact_cache(struct brain *b, brain_worker id, uint32_t block_size, uint64_t blocks, uint32_t ranks, bool prefix_caching, struct mono now)
{
	struct fleet_worker *w = fleet_worker_of(b->fleet, id);
	struct fleet_cache_fact fact = { block_size, blocks, ranks, prefix_caching };
	brain_post(b);
	if (!w || !fleet_fact_cache(b->fleet, w, &fact, now))
		return;
	b->generation++;
	for (uint32_t r = 0; r < w->n_ranks; r++)
		tell_index(b, w, r);
}

void brain_fact_gauges(struct brain *b, brain_worker id, uint32_t rank, uint32_t running, uint32_t waiting, double kv_usage, struct mono now)
{
	struct fleet_worker *w = fleet_worker_of(b->fleet, id);
	if (w)
		fleet_fact_gauges(w, rank, running, waiting, kv_usage, now);
}

void brain_fact_probe(struct brain *b, brain_worker id, enum brain_probe r, struct mono now)
{
	struct fleet_worker *w = fleet_worker_of(b->fleet, id);
	if (w)
		fleet_probed(b->fleet, w, (enum fleet_probe)r, now);
}

/* ---- events ---- */

static struct fleet_rank *rank_of(struct brain *b, brain_worker id, uint32_t rank, struct fleet_worker **ret_w)
{
	struct fleet_worker *w = fleet_worker_of(b->fleet, id);
	brain_post(b);
	*ret_w = w;
	return w ? fleet_rank_of(b->fleet, w, rank) : NULL;
}

void brain_kv_status(struct brain *b, brain_worker id, uint32_t rank, bool seen, bool uncertain, struct mono now)
{
	(void)now;
	struct fleet_worker *w;
	struct fleet_rank *r = rank_of(b, id, rank, &w);
	if (!r)
		return;
	bool changed = r->events_seen != seen;
	r->events_seen = seen;
	r->uncertain = uncertain;
	if (changed)
		tell_index(b, w, rank);
}

void brain_kv_progress(struct brain *b, brain_worker id, uint32_t rank, uint64_t seq, int64_t lag_us)
{
	struct fleet_worker *w;
	struct fleet_rank *r = rank_of(b, id, rank, &w);
	if (!r)
		return;
	r->events_seq = seq;
	r->events_lag_us = lag_us;
}

void brain_kv_groups(struct brain *b, brain_worker id, uint32_t rank, const struct kv_group *g, size_t n)
{
	struct fleet_worker *w;
	struct fleet_rank *r = rank_of(b, id, rank, &w);
	uint32_t sizes[KV_MAX_GROUPS];
	if (!r || n > KV_MAX_GROUPS)
		return;
	for (size_t i = 0; i < n; i++)
		sizes[i] = g[i].block_size;
	if (fleet_fact_sizes(w, rank, sizes, n))
		b->generation++;
	if (r->kv_id != b->no_rank)
		kv_index_groups(b->index, r->kv_id, g, n);
}

void brain_kv_deltas(struct brain *b, brain_worker id, uint32_t rank, const struct kv_delta *d, size_t n)
{
	struct fleet_worker *w;
	struct fleet_rank *r = rank_of(b, id, rank, &w);
	if (r && r->kv_id != b->no_rank)
		kv_index_apply(b->index, r->kv_id, d, n);
}

void brain_kv_clear(struct brain *b, brain_worker id, uint32_t rank)
{
	struct fleet_worker *w;
	struct fleet_rank *r = rank_of(b, id, rank, &w);
	if (!r || r->kv_id == b->no_rank)
		return;
	brain_settle_clear(b, r->kv_id);
	kv_index_clear(b->index, r->kv_id);
}
