#include "lab.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/rand.h"
#include "base/vec.h"
#include "kv/rank.h"
#include "sim/engine.h"

enum { MAX_WORKERS = 8, MAX_BLOCKS = 1 << 16, MAX_TOK = 1 << 17 };

struct lab;
struct late_batch { int64_t at_us; struct kv_delta *d; size_t n; };
struct worker {
	struct lab *lab;
	brain_worker id;
	struct sim_engine *engine;
	struct kv_rank *rank;
	uint64_t seq;
	uint32_t requests;
	VEC(struct late_batch) late;
	size_t late_from;
};
struct request { uint64_t ticket; int64_t arrived_us; bool measured; uint32_t hit_tok, n_tok; struct session *session; uint32_t since_tell; };
struct session { uint32_t *tok; size_t n; uint32_t turn; };
struct lab {
	const struct lab_opts *o;
	struct brain *brain;
	struct worker w[MAX_WORKERS];
	struct rand arrivals;
	VEC(double) ttft;
	VEC(struct session *) idle;
	uint64_t n_sessions, hit_tok, all_tok, exact, known;
	uint32_t tok[MAX_TOK];
	uint64_t keys[MAX_BLOCKS];
	int64_t now_us;
};

/* ---- events ---- */

static void deliver(struct worker *w, int64_t upto_us)
{
	for (; w->late_from < w->late.n && w->late.p[w->late_from].at_us <= upto_us; w->late_from++) {
		brain_kv_deltas(w->lab->brain, w->id, 0, w->late.p[w->late_from].d, w->late.p[w->late_from].n);
		free(w->late.p[w->late_from].d);
	}
}
static void on_deltas(void *arg, const struct kv_delta *d, size_t n)
{
	struct worker *w = arg;
	struct late_batch b = { sim_engine_time(w->engine) + w->lab->o->event_delay_us, malloc(n * sizeof(*d)), n };
	memcpy(b.d, d, n * sizeof(*d));
	VEC_PUSH(&w->late, b);
}
static void on_clear(void *arg)
{
	struct worker *w = arg;
	brain_kv_clear(w->lab->brain, w->id, 0);
}
static void on_groups(void *arg, const struct kv_group *g, size_t n)
{
	struct worker *w = arg;
	brain_kv_groups(w->lab->brain, w->id, 0, g, n);
}
static const struct kv_rank_sink sink = { on_deltas, on_clear, on_groups };

static void on_batch(void *arg, const struct sim_batch *b)
{
	struct worker *w = arg;
	struct kv_event *ev = calloc(b->ev.n, sizeof(*ev));
	for (size_t i = 0; i < b->ev.n; i++) {
		const struct sim_event *s = &b->ev.p[i];
		ev[i] = (struct kv_event){ .type = s->kind == SIM_STORED ? KV_EVENT_STORED : s->kind == SIM_REMOVED ? KV_EVENT_REMOVED : KV_EVENT_CLEARED,
			.group_known = true, .hashes = s->hashes, .n_hashes = s->n_hashes, .has_parent = s->has_parent, .parent = s->parent, .ids = s->tok,
			.n_ids = s->n_tok, .block_size = s->block_tok, .kind = KV_GROUP_FULL };
	}
	(void)kv_rank_batch(w->rank, w->seq++, &(struct kv_batch){ .dp_rank = -1, .events = ev, .n_events = b->ev.n }, false);
	free(ev);
}

/* ---- answers ---- */

static void tell(struct lab *l, const struct request *q, enum brain_tell_kind kind, uint32_t cached, uint32_t n)
{
	brain_tell(l->brain, &(struct brain_tell){ .ticket = q->ticket, .kind = kind, .cached_tok = cached, .prompt_tok = q->n_tok, .output_tok = n, .status = 200 },
		(struct mono){ l->now_us });
}

static void finish(struct lab *l, struct request *q, const struct sim_req *r)
{
	uint32_t cached = sim_req_cached_tok(r);
	tell(l, q, BRAIN_TELL_USAGE, cached, l->o->load->output_tok);
	tell(l, q, BRAIN_TELL_END, 0, 0);
	if (q->measured) {
		l->hit_tok += cached;
		l->all_tok += q->n_tok;
		l->exact += cached == q->hit_tok;
		l->known++;
	}
	if (q->session)
		VEC_PUSH(&l->idle, q->session);
	free(q);
}

static void on_token(void *arg, struct sim_req *r, uint32_t tok, bool last)
{
	struct worker *w = arg;
	struct lab *l = w->lab;
	struct request *q = sim_req_user(r);
	l->now_us = sim_engine_time(w->engine);
	if (q->session && q->session->n < MAX_TOK)
		q->session->tok[q->session->n++] = tok;
	if (sim_req_new_tok(r) == 1) {
		tell(l, q, BRAIN_TELL_FIRST_TOKEN, 0, 0);
		if (q->measured)
			VEC_PUSH(&l->ttft, (double)(l->now_us - q->arrived_us) / 1000);
	}
	if (++q->since_tell == 16) {
		tell(l, q, BRAIN_TELL_TOKENS, 0, 16);
		q->since_tell = 0;
	}
	if (last)
		finish(l, q, r);
}
static const struct sim_engine_ops engine_ops = { on_token, on_batch, NULL };

/* ---- arrivals ---- */

static size_t put(uint32_t *tok, size_t n, uint32_t count, uint64_t seed)
{
	for (uint32_t i = 0; i < count; i++)
		tok[n + i] = (uint32_t)(hash_mix(seed * 1000003 + i) % 150000);
	return n + count;
}

static struct session *next_session(struct lab *l)
{
	const struct lab_load *d = l->o->load;
	struct session *s;
	if (l->idle.n > 8 + rand_below(&l->arrivals, 8)) {
		s = l->idle.p[0];
		memmove(l->idle.p, l->idle.p + 1, --l->idle.n * sizeof(*l->idle.p));
		if (s->turn < d->turns) {
			s->turn++;
			s->n = put(s->tok, s->n, d->own_tok, rand_u64(&l->arrivals));
			return s;
		}
		free(s->tok);
		free(s);
	}
	s = calloc(1, sizeof(*s));
	s->tok = malloc(MAX_TOK * sizeof(uint32_t));
	s->turn = 1;
	l->n_sessions++;
	s->n = put(s->tok, 0, d->prefix_tok, 7);
	s->n = put(s->tok, s->n, d->own_tok, rand_u64(&l->arrivals));
	return s;
}

static size_t make_prompt(struct lab *l, const uint32_t **ret_tok, struct session **ret_s)
{
	const struct lab_load *d = l->o->load;
	*ret_tok = l->tok;
	*ret_s = NULL;
	if (d->turns > 1) {
		*ret_s = next_session(l);
		*ret_tok = (*ret_s)->tok;
		return (*ret_s)->n;
	}
	uint64_t own = rand_u64(&l->arrivals), family = d->families ? rand_below(&l->arrivals, d->families) + 1 : own;
	size_t n = put(l->tok, 0, d->prefix_tok, family);
	uint64_t variant = d->variants ? family * 1000 + own % d->variants : own;
	return put(l->tok, n, d->own_tok, d->same ? family + 77 : variant);
}

static void arrive(struct lab *l)
{
	const uint32_t *tok;
	struct session *s;
	size_t n = make_prompt(l, &tok, &s);
	size_t n_keys = kv_prompt_keys(kv_seed(STR("")), tok, n, 16, NULL, l->keys);
	struct kv_prompt prompt = { .n_tok = (uint32_t)n, .n_sets = 1, .sets = { { 16, (uint32_t)n_keys, l->keys } } };
	struct brain_ask a = { .model = STR("m"), .prompt = &prompt, .stream = true, .kv_routed = true, .max_new_tok = l->o->load->output_tok,
		.affinity_key = hash_bytes(tok, MIN(n, (size_t)256) * 4, 0) };
	struct brain_plan plan;
	if (brain_ask(l->brain, &a, (struct mono){ l->now_us }, &plan) != ERR_OK)
		abort();
	struct request *q = calloc(1, sizeof(*q));
	*q = (struct request){ .ticket = plan.ticket, .arrived_us = l->now_us, .measured = (double)l->now_us >= l->o->warm_s * 1e6,
		.hit_tok = plan.legs[0].hit_tok, .n_tok = (uint32_t)n, .session = s };
	for (uint32_t i = 0; i < l->o->workers; i++) {
		struct worker *w = &l->w[i];
		if (w->id != plan.legs[0].worker)
			continue;
		struct sim_req *r;
		w->requests += q->measured;
		tell(l, q, BRAIN_TELL_SENT, 0, 0);
		if (sim_engine_add(w->engine, &(struct sim_ask){ .tok = tok, .n_tok = n, .max_new = l->o->load->output_tok, .seed = 1, .user = q }, l->now_us, &r) != ERR_OK)
			abort();
	}
}

/* ---- the clock ---- */

static struct worker *soonest(struct lab *l, int64_t *ret_us)
{
	struct worker *best = NULL;
	*ret_us = SIM_NEVER;
	for (uint32_t i = 0; i < l->o->workers; i++)
		if (sim_engine_next(l->w[i].engine) < *ret_us) {
			*ret_us = sim_engine_next(l->w[i].engine);
			best = &l->w[i];
		}
	return best;
}

static double rate_now(const struct lab *l)
{
	const struct lab_load *d = l->o->load;
	return d->warm_rate_per_s > 0 && (double)l->now_us < l->o->warm_s * 1e6 ? d->warm_rate_per_s : d->rate_per_s;
}

static void scrape(struct lab *l)
{
	for (uint32_t i = 0; i < l->o->workers; i++) {
		struct sim_engine_stats s = sim_engine_stats(l->w[i].engine);
		brain_fact_gauges(l->brain, l->w[i].id, 0, s.running, s.waiting, (double)s.used_blocks / s.size_blocks, (struct mono){ l->now_us });
	}
}

static void run(struct lab *l)
{
	int64_t next_us = 0, tick_us = 0, gauges_us = 0, step_us;
	for (;;) {
		struct worker *w = soonest(l, &step_us);
		if (next_us == SIM_NEVER && !w)
			return;
		if (step_us <= next_us) {
			sim_engine_advance(w->engine, step_us);
			l->now_us = step_us;
		} else {
			l->now_us = next_us;
			for (uint32_t i = 0; i < l->o->workers; i++)
				deliver(&l->w[i], l->now_us);
			arrive(l);
			next_us += (int64_t)rand_exp(&l->arrivals, 1e6 / rate_now(l));
			if ((double)next_us > l->o->run_s * 1e6)
				next_us = SIM_NEVER;
		}
		for (; tick_us <= l->now_us; tick_us += 100000)
			brain_tick(l->brain, (struct mono){ tick_us });
		if (l->o->gauges_every_us && gauges_us <= l->now_us) {
			scrape(l);
			gauges_us = l->now_us + l->o->gauges_every_us;
		}
	}
}

static void add_worker(struct lab *l, uint32_t i)
{
	struct worker *w = &l->w[i];
	const struct sim_profile *p = sim_profile_find(str_of(l->o->profile));
	uint64_t cache_tok = l->o->cache_tok ? l->o->cache_tok : p->kv_tok;
	struct sim_engine_opts e = { .profile = p, .cache = { .blocks = (uint32_t)(cache_tok / 16), .block_tok = 16 }, .jitter = 0.05, .seed = l->o->seed + i,
		.ops = &engine_ops, .arg = w };
	char url[32];
	w->lab = l;
	w->engine = sim_engine_new(&e);
	if (l->o->slow[i] > 0)
		sim_engine_slow(w->engine, l->o->slow[i]);
	w->rank = kv_rank_new(&sink, w);
	(void)snprintf(url, sizeof(url), "http://w%u", i);
	struct brain_worker_conf c = { .url = str_of(url), .accelerator = str_of(l->o->wrong_profile ? "llama-8b-l4" : l->o->profile) };
	if (brain_worker_add(l->brain, &c, (struct mono){ 0 }, &w->id) != ERR_OK)
		abort();
	struct str name = STR("m");
	brain_fact_models(l->brain, w->id, &(struct brain_models){ .names = &name, .n_names = 1 }, (struct mono){ 0 });
	brain_fact_cache(l->brain, w->id, 16, sim_engine_blocks(w->engine), 1, true, (struct mono){ 0 });
	brain_kv_status(l->brain, w->id, 0, true, false, (struct mono){ 0 });
	brain_fact_probe(l->brain, w->id, BRAIN_PROBE_OK, (struct mono){ 0 });
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static struct lab_result sum_up(struct lab *l)
{
	struct lab_result r = { .measured = (uint32_t)l->ttft.n, .ledger_zero = brain_ledger_is_zero(l->brain) };
	double sum = 0;
	uint32_t most = 0, all = 0;
	qsort(l->ttft.p, l->ttft.n, sizeof(double), by_value);
	for (size_t i = 0; i < l->ttft.n; i++)
		sum += l->ttft.p[i];
	for (uint32_t i = 0; i < l->o->workers; i++) {
		most = MAX(most, l->w[i].requests);
		all += l->w[i].requests;
	}
	r.ttft_mean_ms = sum / (double)MAX(l->ttft.n, 1u);
	r.ttft_p50_ms = l->ttft.n ? l->ttft.p[l->ttft.n / 2] : 0;
	r.ttft_p95_ms = l->ttft.n ? l->ttft.p[l->ttft.n * 95 / 100] : 0;
	r.hit_share = (double)l->hit_tok / (double)MAX(l->all_tok, 1u);
	r.exact_share = (double)l->exact / (double)MAX(l->known, 1u);
	r.busiest_share = (double)most / MAX(all, 1u);
	return r;
}

struct lab_result lab_run(const struct lab_opts *o)
{
	struct lab *l = calloc(1, sizeof(*l));
	l->o = o;
	l->arrivals.s = o->seed * 7919;
	l->brain = brain_new(&(struct brain_opts){ .routing = o->routing, .seed = o->seed, .receipts = 16 }, NULL, NULL);
	for (uint32_t i = 0; i < o->workers; i++)
		add_worker(l, i);
	run(l);
	struct lab_result r = sum_up(l);
	brain_free(l->brain);
	for (uint32_t i = 0; i < o->workers; i++) {
		for (size_t k = l->w[i].late_from; k < l->w[i].late.n; k++)
			free(l->w[i].late.p[k].d);
		VEC_FREE(&l->w[i].late);
		sim_engine_free(l->w[i].engine);
		kv_rank_free(l->w[i].rank);
	}
	for (size_t i = 0; i < l->idle.n; i++) {
		free(l->idle.p[i]->tok);
		free(l->idle.p[i]);
	}
	VEC_FREE(&l->idle);
	VEC_FREE(&l->ttft);
	free(l);
	return r;
}

void lab_print(const struct lab_opts *o, const struct lab_result *r)
{
	printf("%-22s %-16s %u workers %5.1f/s seed %d: n=%u ttft mean %.1f p50 %.1f p95 %.1f ms hit %.3f exact %.3f busiest %.2f\n", o->load->name,
		brain_routing_name(o->routing), o->workers, o->load->rate_per_s, (int)o->seed, r->measured, r->ttft_mean_ms, r->ttft_p50_ms, r->ttft_p95_ms, r->hit_share,
		r->exact_share, r->busiest_share);
}
