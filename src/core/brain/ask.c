/* ask.c: from an ask to a plan: candidates, overlap, predicted time, the choice, its ticket and receipt. */
#include "base/must.h"
#include "brain/brain_priv.h"

static const struct sched_policy *const policies[] = {
	[BRAIN_KV] = &sched_kv, [BRAIN_LEAST_REQUEST] = &sched_least_request, [BRAIN_ROUND_ROBIN] = &sched_round_robin,
	[BRAIN_RANDOM] = &sched_random, [BRAIN_P2C_EWMA] = &sched_p2c_ewma, [BRAIN_CONSISTENT_HASH] = &sched_consistent_hash,
};

/* ---- candidates ---- */

/* Which workers: from strict to lax. A prompt that fits nowhere is sent anyway, its refusal is the worker's to word. */
enum rule { RULE_USABLE, RULE_ANY_LENGTH, RULE_PANIC, RULE_COUNT_ };

static bool allowed(const struct fleet_worker *w, enum rule rule, uint32_t prompt_tok)
{
	if (w->health == FLEET_DRAINING)
		return false;
	if (rule == RULE_PANIC)
		return true;
	bool fits = !w->max_model_len || prompt_tok < w->max_model_len;
	return fleet_usable(w) && (fits || rule == RULE_ANY_LENGTH);
}

static void add_candidates(struct brain *b, struct fleet_worker *w, struct mono now)
{
	double weight = fleet_weight(w, now), slow = sched_slow(w);
	for (uint32_t r = 0; r < w->n_ranks; r++) {
		struct sched_candidate c = { .worker = w, .profile = w->profile, .rank = r, .kv_id = w->ranks[r].kv_id,
			.weight = weight, .slow = slow };
		c.load = fleet_load_of(w, r);
		c.contexts = (c.load.requests + fleet_foreign(&w->ranks[r], now)) / weight;
		c.kv_usage = fleet_kv_usage(&w->ranks[r], now);
		c.pressed = fleet_pressed(&w->ranks[r], now);
		VEC_PUSH(&b->candidates, c);
		VEC_PUSH(&b->ids, c.kv_id);
		VEC_PUSH(&b->scratch, c.kv_id);
		VEC_PUSH(&b->hits, 0);
		VEC_PUSH(&b->loads, (struct kv_load){ 0 });
	}
}

static enum rule gather(struct brain *b, struct fleet_worker *const *workers, size_t n, uint32_t prompt_tok, struct mono now)
{
	enum rule rule = RULE_USABLE;
	b->candidates.n = 0;
	for (; rule < RULE_COUNT_; rule++) {
		b->ids.n = b->scratch.n = b->hits.n = b->loads.n = 0;
		for (size_t i = 0; i < n; i++)
			if (allowed(workers[i], rule, prompt_tok))
				add_candidates(b, workers[i], now);
		if (b->candidates.n)
			break;
	}
	return rule;
}

static void measure(struct brain *b, const struct brain_ask *a, uint32_t prompt_tok, struct mono now)
{
	bool look = a->prompt && a->kv_routed && !a->no_lookup;
	if (look)
		kv_index_hits(b->index, a->prompt, b->ids.p, b->ids.n, b->hits.p, b->loads.p);
	for (size_t i = 0; i < b->candidates.n; i++) {
		struct sched_candidate *c = &b->candidates.p[i];
		if (look && c->worker->prefix_caching) {
			c->hit_tok = MIN(b->hits.p[i], prompt_tok);
			c->lower = b->loads.p[i];
		}
		struct sched_cost_in in = { .profile = c->profile, .worker = c->worker, .load = c->load, .hit_tok = c->hit_tok, .lower = c->lower,
			.foreign = fleet_foreign(&c->worker->ranks[c->rank], now), .new_tok = MAX(prompt_tok - c->hit_tok, 1u) };
		c->base_us = sched_ttft_us(&in);
		c->ttft_us = c->base_us * c->slow / c->weight;
	}
}

/* ---- which workers the request names ---- */

struct members { struct fleet_worker *const *workers; size_t n; uint32_t *turn; struct fleet_worker *one; };

static enum err find_members(struct brain *b, const struct brain_ask *a, struct members *ret_m)
{
	if (a->pinned) {
		ret_m->one = fleet_worker_of(b->fleet, a->pinned);
		if (!ret_m->one)
			return ERR_RESPONSE_GONE;
		*ret_m = (struct members){ NULL, 1, &b->turn, ret_m->one };
		return ERR_OK;
	}
	bool many = false;
	struct fleet_model *m = a->model.n ? fleet_model_of(b->fleet, a->pool, a->model) : fleet_model_default(b->fleet, a->pool, &many);
	if (many)
		return ERR_BAD_REQUEST;
	if (!m)
		return a->model.n && fleet_any_models(b->fleet) ? ERR_UNKNOWN_MODEL : ERR_NO_WORKER;
	*ret_m = (struct members){ m->workers.p, m->workers.n, &m->turn, NULL };
	return ERR_OK;
}

static const struct sched_policy *policy_of(const struct brain *b)
{
	const struct fleet_pool *pool = b->candidates.p[0].worker->pool;
	return policies[pool->has_policy ? pool->policy : (uint8_t)b->opts.routing];
}

/* ---- the plan ---- */

static void fill_legs(struct brain *b, const size_t *order, size_t n, struct brain_plan *p)
{
	for (size_t i = 0; i < n; i++) {
		const struct sched_candidate *c = &b->candidates.p[order[i]];
		p->legs[i] = (struct brain_leg){ .worker = c->worker->id, .dp_rank = c->worker->n_ranks > 1 ? (int32_t)c->rank : -1,
			.hit_tok = c->hit_tok, .ttft_us = (int64_t)(c->base_us * c->slow) };
	}
	p->n_legs = (uint32_t)n;
}

static void open_ticket(struct brain *b, const struct brain_ask *a, uint32_t prompt_tok, const size_t *order, struct brain_plan *p, struct mono now)
{
	struct brain_ticket *t = brain_ticket_new(b);
	t->prompt_tok = prompt_tok;
	t->stream = a->stream;
	t->n_legs = p->n_legs;
	t->leg_started = now;
	t->receipt = p->receipt;
	t->keyed = a->prompt && a->kv_routed;
	t->prefix_only = a->prefix_only;
	for (uint32_t i = 0; i < p->n_legs; i++) {
		const struct sched_candidate *c = &b->candidates.p[order[i]];
		t->legs[i] = (struct brain_leg_state){ .worker = c->worker->id, .rank = c->rank, .kv_id = c->kv_id, .hit_tok = c->hit_tok,
			.new_tok = MAX(prompt_tok - c->hit_tok, 1u), .base_us = c->base_us, .events = c->worker->ranks[c->rank].events_seen };
	}
	fleet_charge_begin(&t->charge, b->candidates.p[order[0]].worker, t->legs[0].rank, prompt_tok, t->legs[0].new_tok);
	if (!t->stream) {
		t->due = mono_add_us(now, p->legs[0].ttft_us);
		list_add_tail(&b->waiting, &t->waiting);
	}
	if (t->keyed) {
		brain_ticket_copy_keys(b, t, a->prompt);
		b->unposted = t;
		b->unposted_at = now;
	}
	p->ticket = t->id;
}

enum err brain_ask(struct brain *b, const struct brain_ask *a, struct mono now, struct brain_plan *ret_plan)
{
	brain_post(b);
	struct members m = { 0 };
	TRY(find_members(b, a, &m));
	uint32_t prompt_tok = a->prompt ? a->prompt->n_tok : a->prompt_tok_estimate;
	enum rule rule = gather(b, m.one ? &m.one : m.workers, m.n, prompt_tok, now);
	if (rule == RULE_COUNT_)
		return ERR_NO_WORKER;
	measure(b, a, prompt_tok, now);
	struct brain_plan plan = { 0 };
	struct sched_ask s = { .prompt_tok = prompt_tok, .keyed = a->prompt && a->kv_routed && !a->no_lookup, .index = b->index, .prompt = a->prompt,
		.affinity_key = a->affinity_key, .turn = m.turn, .rand = &b->rand, .now = now, .scratch = b->scratch.p };
	uint32_t turn = *m.turn;
	struct rand rand = b->rand;
	size_t order[BRAIN_MAX_CANDIDATES];
	size_t chosen = policy_of(b)->pick(&s, b->candidates.p, b->candidates.n, &plan.reason);
	must(chosen < b->candidates.n);
	size_t n = sched_order(b->candidates.p, b->candidates.n, chosen, order, m.one ? 1 : BRAIN_MAX_CANDIDATES);
	if (rule == RULE_PANIC || m.one)
		plan.reason = m.one ? "pinned" : "panic";
	fill_legs(b, order, n, &plan);
	plan.receipt = brain_receipt_begin(b, a, &s, &plan, now);
	if (a->dry_run) {
		*m.turn = turn;            /* a question changes nothing */
		b->rand = rand;
	} else {
		open_ticket(b, a, prompt_tok, order, &plan, now);
	}
	*ret_plan = plan;
	return ERR_OK;
}
