/* index.c: the ranks. A clear must not hold up decisions however much a rank holds: it gives the rank a new seat (its number
 * in the holder sets), and what was held under the old one is taken out a few shards at a time by the calls that follow. */
#include "kv/index.h"

#include <string.h>

#include "kv/index_priv.h"

enum { SHARDS_PER_STEP = 4, DEFAULT_CAPACITY = 16384 };

struct kv_index *kv_index_new(void)
{
	struct kv_index *x = must_calloc(1, sizeof(*x));
	x->ranks = must_calloc(KV_MAX_RANKS, sizeof(*x->ranks));
	x->seats = must_calloc(KV_MAX_RANKS, sizeof(*x->seats));
	x->scratch = must_calloc(1, sizeof(*x->scratch));
	x->scrub_at = KV_SHARDS;
	kv_holders_init(&x->held);
	kv_flights_init(&x->flights);
	return x;
}

void kv_index_free(struct kv_index *x)
{
	if (!x)
		return;
	for (uint32_t i = 0; i < x->n_ranks; i++)
		kv_approx_free(x->ranks[i].approx);
	kv_flights_done(x);
	kv_notes_done(&x->notes);
	for (size_t i = 0; i < x->plans.n; i++)
		free(x->plans.p[i]);
	VEC_FREE(&x->plans);
	kv_holders_done(&x->held);
	kv_owners_done(&x->owners);
	free(x->ranks);
	free(x->seats);
	free(x->scratch);
	free(x);
}

const struct kv_rank_entry *kv_rank_at(const struct kv_index *x, kv_rank_id id)
{
	return id < x->n_ranks && x->ranks[id].used ? &x->ranks[id] : NULL;
}

static struct kv_rank_entry *rank_at(struct kv_index *x, kv_rank_id id)
{
	return id < x->n_ranks && x->ranks[id].used ? &x->ranks[id] : NULL;
}

/* ---- seats ---- */

/* A round goes over every shard and takes out the seats that were dirty when it began. */
static bool begin_round(struct kv_index *x)
{
	if (!x->scrub_more)
		return false;
	x->scrub_more = false;
	x->scrub_at = 0;
	memset(x->scrubbing, 0, sizeof(x->scrubbing));
	for (uint32_t s = 0; s < KV_MAX_RANKS; s++)
		if (x->seats[s] == KV_SEAT_DIRTY)
			x->scrubbing[s / 64] |= 1ull << (s % 64);
	return true;
}

static void end_round(struct kv_index *x)
{
	for (uint32_t s = 0; s < KV_MAX_RANKS; s++)
		if (x->scrubbing[s / 64] >> (s % 64) & 1)
			x->seats[s] = KV_SEAT_FREE;
}

static void scrub(struct kv_index *x, uint32_t shards)
{
	if (x->scrub_at == KV_SHARDS && !begin_round(x))
		return;
	for (; shards && x->scrub_at < KV_SHARDS; shards--)
		kv_holders_scrub(&x->held, x->scrub_at++, x->scrubbing);
	if (x->scrub_at == KV_SHARDS)
		end_round(x);
}

static bool free_seat(const struct kv_index *x, uint16_t *ret_seat)
{
	for (uint32_t s = 0; s < KV_MAX_RANKS; s++)
		if (x->seats[s] == KV_SEAT_FREE) {
			*ret_seat = (uint16_t)s;
			return true;
		}
	return false;
}

static void sit_down(struct kv_index *x, kv_rank_id id)
{
	uint16_t seat;
	while (!free_seat(x, &seat))
		scrub(x, KV_SHARDS);
	x->seats[seat] = KV_SEAT_USED;
	x->ranks[id].seat = seat;
	kv_holders_widen(&x->held, seat);
	kv_holders_widen(&x->flights.held, seat);
}

static void stand_up(struct kv_index *x, kv_rank_id id)
{
	struct kv_rank_entry *r = &x->ranks[id];
	x->seats[r->seat] = r->blocks ? KV_SEAT_DIRTY : KV_SEAT_FREE;
	x->scrub_more |= r->blocks != 0;
	r->blocks = r->lower = 0;
}

/* ---- plans ---- */

static void drop_plan(struct kv_index *x, struct kv_plan *p)
{
	if (!p || --p->refs)
		return;
	for (size_t i = 0; i < x->plans.n; i++)
		if (x->plans.p[i] == p)
			x->plans.p[i] = x->plans.p[--x->plans.n];
	free(p);
}

static struct kv_plan *get_plan(struct kv_index *x, const struct kv_group *g, size_t n)
{
	for (size_t i = 0; i < x->plans.n; i++)
		if (kv_plan_is(x->plans.p[i], g, n)) {
			x->plans.p[i]->refs++;
			return x->plans.p[i];
		}
	struct kv_plan *p = kv_plan_new(g, n);
	p->refs = 1;
	VEC_PUSH(&x->plans, p);
	return p;
}

void kv_index_groups(struct kv_index *x, kv_rank_id id, const struct kv_group *g, size_t n)
{
	struct kv_rank_entry *r = rank_at(x, id);
	n = MIN(n, (size_t)KV_MAX_GROUPS);
	if (!r || (r->plan && kv_plan_is(r->plan, g, n)))
		return;
	struct kv_plan *was = r->plan;
	if (r->approx && was)
		kv_approx_withdraw(x, id);
	kv_flights_lift(x, id);
	r->plan = n ? get_plan(x, g, n) : NULL;
	kv_flights_land(x, id);
	drop_plan(x, was);
}

/* ---- ranks ---- */

static void size_owners(struct kv_index *x)
{
	uint64_t sum = 0;
	for (uint32_t i = 0; i < x->n_ranks; i++)
		if (x->ranks[i].used)
			sum += x->ranks[i].capacity ? x->ranks[i].capacity : DEFAULT_CAPACITY;
	kv_owners_resize(&x->owners, sum);
}

enum err kv_index_rank_add(struct kv_index *x, kv_rank_id *ret_id)
{
	uint32_t id = 0;
	while (id < x->n_ranks && x->ranks[id].used)
		id++;
	if (id == KV_MAX_RANKS)
		return ERR_LIMIT;
	x->n_ranks = MAX(x->n_ranks, id + 1);
	uint16_t gen = (uint16_t)(x->ranks[id].gen + 1);
	x->ranks[id] = (struct kv_rank_entry){ .used = true, .gen = gen ? gen : 1 };
	sit_down(x, (kv_rank_id)id);
	size_owners(x);
	*ret_id = (kv_rank_id)id;
	return ERR_OK;
}

void kv_index_rank_del(struct kv_index *x, kv_rank_id id)
{
	struct kv_rank_entry *r = rank_at(x, id);
	if (!r)
		return;
	kv_flights_abandon(x, id);
	stand_up(x, id);
	drop_plan(x, r->plan);
	kv_approx_free(r->approx);
	*r = (struct kv_rank_entry){ .gen = r->gen };
	size_owners(x);
}

void kv_index_capacity(struct kv_index *x, kv_rank_id id, uint32_t blocks)
{
	struct kv_rank_entry *r = rank_at(x, id);
	if (!r || r->capacity == blocks)
		return;
	r->capacity = blocks;
	size_owners(x);
}

void kv_index_hold(struct kv_index *x, kv_rank_id id, uint64_t key, bool yes)
{
	struct kv_rank_entry *r = &x->ranks[id];
	if (yes)
		r->blocks += kv_holders_add(&x->held, key, r->seat);
	else
		r->blocks -= kv_holders_del(&x->held, key, r->seat);
}

/* How far ahead of its turn a delta's slot is fetched. */
enum { AHEAD = 24 };

static uint64_t first_key(const struct kv_delta *d)
{
	uint32_t groups = d->add_groups | d->del_groups;
	return d->key + kv_tier_salt(d->tier) + kv_group_salt(groups ? (uint32_t)__builtin_ctz(groups) : 0);
}

static void apply_delta(struct kv_index *x, kv_rank_id id, const struct kv_delta *d)
{
	struct kv_rank_entry *r = &x->ranks[id];
	uint64_t key = d->key + kv_tier_salt(d->tier);
	uint32_t before = r->blocks;
	for (uint32_t g = d->add_groups; g; g &= g - 1)
		kv_index_hold(x, id, key + kv_group_salt((uint32_t)__builtin_ctz(g)), true);
	for (uint32_t g = d->del_groups; g; g &= g - 1)
		kv_index_hold(x, id, key + kv_group_salt((uint32_t)__builtin_ctz(g)), false);
	if (d->tier != KV_TIER_GPU)
		r->lower += r->blocks - before;
}

void kv_index_apply(struct kv_index *x, kv_rank_id id, const struct kv_delta *d, size_t n)
{
	struct kv_rank_entry *r = rank_at(x, id);
	if (!r)
		return;
	scrub(x, SHARDS_PER_STEP);
	for (size_t i = 0; r->approx && i < n; i++)
		if (d[i].tier == KV_TIER_GPU)
			kv_approx_confirm(r->approx, d[i].key);
	for (size_t i = 0; i < MIN(n, (size_t)AHEAD); i++)
		kv_prefetch(&x->held, first_key(&d[i]));
	for (size_t i = 0; i < n; i++) {
		if (i + AHEAD < n)
			kv_prefetch(&x->held, first_key(&d[i + AHEAD]));
		apply_delta(x, id, &d[i]);
	}
}

void kv_index_clear(struct kv_index *x, kv_rank_id id)
{
	struct kv_rank_entry *r = rank_at(x, id);
	if (!r || r->blocks == 0)
		return;
	kv_flights_lift(x, id);
	stand_up(x, id);
	sit_down(x, id);
	kv_flights_land(x, id);
	scrub(x, SHARDS_PER_STEP);
	if (r->approx) {
		kv_approx_free(r->approx);
		r->approx = kv_approx_new();
	}
}

void kv_index_approx(struct kv_index *x, kv_rank_id id, bool on)
{
	struct kv_rank_entry *r = rank_at(x, id);
	if (!r || on == (r->approx != NULL))
		return;
	if (on) {
		r->approx = kv_approx_new();
		return;
	}
	if (r->plan)
		kv_approx_withdraw(x, id);
	kv_approx_free(r->approx);
	r->approx = NULL;
}

uint32_t kv_index_max_hit(const struct kv_index *x, const struct kv_prompt *p, kv_rank_id id)
{
	const struct kv_rank_entry *r = kv_rank_at(x, id);
	return r && r->plan ? kv_plan_max_hit(r->plan, p->n_tok) : 0;
}

uint32_t kv_index_rank_blocks(const struct kv_index *x, kv_rank_id id)
{
	const struct kv_rank_entry *r = kv_rank_at(x, id);
	return r ? r->blocks - r->lower : 0;
}

uint32_t kv_index_rank_lower_blocks(const struct kv_index *x, kv_rank_id id)
{
	const struct kv_rank_entry *r = kv_rank_at(x, id);
	return r ? r->lower : 0;
}

struct kv_index_stats kv_index_stats(const struct kv_index *x)
{
	struct kv_index_stats s = {
		.entries = x->held.entries,
		.holdings = x->held.holdings,
		.flights = x->flights.n,
		.flight_entries = x->flights.held.holdings + x->flights.tree.n,
		.owners = x->owners.n,
		.owner_bytes = kv_owners_bytes(&x->owners),
	};
	s.bytes = sizeof(*x) + KV_MAX_RANKS * (sizeof(*x->ranks) + sizeof(*x->seats)) + sizeof(*x->scratch) +
		  kv_holders_bytes(&x->held) + kv_flights_bytes(&x->flights) + s.owner_bytes + x->notes.blocks * sizeof(uint64_t);
	for (uint32_t i = 0; i < x->n_ranks; i++)
		s.bytes += kv_approx_bytes(x->ranks[i].approx);
	return s;
}
