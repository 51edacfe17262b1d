/* State as JSON: workers, pools, index, decisions. Member names are a contract with users: add, do not rename. */
#include "ops/ops_priv.h"

struct sums { uint64_t requests, prompt_tok, contexts, context_tok, blocks, seq; int64_t lag_us; bool seen, approx, uncertain; };

static struct sums sum_ranks(const struct brain_worker_view *v)
{
	struct sums s = { .lag_us = -1 };
	for (uint32_t i = 0; i < v->n_ranks; i++) {
		const struct brain_rank_view *r = &v->ranks[i];
		s.requests += r->in_flight_requests;
		s.prompt_tok += r->in_flight_prompt_tok;
		s.contexts += r->in_flight_contexts;
		s.context_tok += r->context_tok;
		s.blocks += r->index_blocks;
		s.seq = MAX(s.seq, r->events_seq);
		s.lag_us = r->events_seen ? MAX(s.lag_us, r->events_lag_us) : s.lag_us;
		s.seen |= r->events_seen;
		s.approx |= r->approx;
		s.uncertain |= r->uncertain;
	}
	return s;
}

static void put_strs(struct json_writer *w, const char *key, const struct str *p, size_t n)
{
	json_put_key(w, str_of(key));
	json_put_open(w, '[');
	for (size_t i = 0; i < n; i++)
		json_put_str(w, p[i]);
	json_put_close(w, ']');
}

static void put_rank(struct json_writer *w, const struct brain_rank_view *r, const struct feed_rank_info *f)
{
	json_put_open(w, '{');
	ops_u64(w, "rank", r->rank);
	ops_u64(w, "in_flight_requests", r->in_flight_requests);
	ops_u64(w, "in_flight_prompt_tokens", r->in_flight_prompt_tok);
	ops_u64(w, "in_flight_contexts", r->in_flight_contexts);
	ops_u64(w, "context_tokens", r->context_tok);
	ops_u64(w, "running", r->running);
	ops_u64(w, "waiting", r->waiting);
	ops_f64(w, "kv_usage", r->kv_usage);
	ops_u64(w, "index_blocks", r->index_blocks);
	ops_u64(w, "index_lower_blocks", r->lower_blocks);
	ops_bool(w, "events_seen", r->events_seen);
	ops_bool(w, "uncertain", r->uncertain);
	ops_bool(w, "approximate", r->approx);
	ops_u64(w, "events_seq", r->events_seq);
	ops_ms(w, "events_lag_ms", r->events_seen ? r->events_lag_us : -1);
	if (f != NULL) {
		ops_str(w, "events_endpoint", f->events);
		ops_str(w, "replay_endpoint", f->replay);
		ops_bool(w, "connected", f->connected);
		ops_bool(w, "replaying", f->replaying);
		ops_u64(w, "queued_bytes", f->queue_bytes);
		ops_u64(w, "batches", f->kv.batches);
		ops_u64(w, "gaps", f->kv.gaps);
		ops_u64(w, "replays", f->kv.replays);
		ops_u64(w, "restarts", f->kv.restarts);
		ops_u64(w, "duplicates", f->kv.duplicates);
		ops_u64(w, "undecoded", f->undecoded);
		ops_u64(w, "dropped", f->dropped);
	}
	json_put_close(w, '}');
}

static void put_facts(struct json_writer *w, const struct brain_worker_view *v)
{
	struct sums s = sum_ranks(v);
	ops_u64(w, "block_size", v->block_size);
	ops_u64(w, "blocks", v->blocks);
	ops_bool(w, "prefix_caching", v->prefix_caching);
	ops_u64(w, "max_model_len", v->max_model_len);
	ops_u64(w, "in_flight_requests", s.requests);
	ops_u64(w, "in_flight_prompt_tokens", s.prompt_tok);
	ops_u64(w, "in_flight_contexts", s.contexts);
	ops_u64(w, "context_tokens", s.context_tok);
	ops_u64(w, "index_blocks", s.blocks);
	if (s.seen)
		ops_u64(w, "events_seq", s.seq);
	else
		ops_null(w, "events_seq");
	ops_ms(w, "events_lag_ms", s.lag_us);
	json_put_key(w, STR("cache_view"));
	json_put_str(w, !s.seen || s.approx ? STR("approximate") : s.uncertain ? STR("uncertain") : STR("events"));
	if (v->predictions > 0)
		ops_f64(w, "predicted_exact_share", v->predicted_exact_share);
	else
		ops_null(w, "predicted_exact_share");
	ops_u64(w, "predictions", v->predictions);
	ops_u64(w, "requests", v->requests);
	ops_u64(w, "failures", v->failures);
	ops_f64(w, "slow_factor", v->slow_factor);
	ops_ms(w, "ttft_ms", v->ttft_ewma_us > 0 ? (int64_t)v->ttft_ewma_us : -1);
	ops_f64(w, "ttft_error", v->ttft_error_ewma);
}

static void put_learnt(struct json_writer *w, const struct feed_worker_info *f)
{
	ops_str(w, "source", f->source);
	ops_str(w, "probe", f->probe);
	ops_str(w, "events_why", f->events_why);
	ops_str(w, "role", f->role);
	ops_bool(w, "asleep", f->asleep);
	ops_u64(w, "restarts", f->restarts);
	json_put_key(w, STR("labels"));
	json_put_open(w, '{');
	for (size_t i = 0; i < f->n_labels; i++) {
		json_put_key(w, f->labels[i].name);
		json_put_str(w, f->labels[i].value);
	}
	json_put_close(w, '}');
}

static void put_worker(struct json_writer *w, const struct brain_worker_view *v, const struct feed_worker_info *f)
{
	json_put_open(w, '{');
	ops_str(w, "url", v->url);
	ops_str(w, "state", str_of(brain_health_name(v->draining ? BRAIN_DRAINING : v->health)));
	ops_str(w, "why", str_of(v->why));
	ops_str(w, "pool", v->pool);
	put_strs(w, "models", v->names, v->n_names);
	put_strs(w, "adapters", v->adapters, v->n_adapters);
	ops_str(w, "accelerator", v->accelerator);
	put_facts(w, v);
	if (f != NULL)
		put_learnt(w, f);
	json_put_key(w, STR("ranks"));
	json_put_open(w, '[');
	for (uint32_t i = 0; i < v->n_ranks; i++)
		put_rank(w, &v->ranks[i], f != NULL && v->ranks[i].rank < f->n_ranks ? &f->ranks[v->ranks[i].rank] : NULL);
	json_put_close(w, ']');
	json_put_close(w, '}');
}

bool ops_workers_open(struct ops_page *p)
{
	ops_page_open(p, "workers");
	return false;
}

bool ops_workers(struct ops_page *p)
{
	for (size_t end = MIN(p->at + OPS_PIECE_WORKERS, p->seen.n); p->at < end; p->at++)
		put_worker(&p->json, p->seen.p[p->at].v, p->seen.p[p->at].f);
	return p->at < p->seen.n;
}

/* ---- pools */

struct pool_sums { uint64_t workers, usable, requests, blocks, index_blocks; };

static struct pool_sums sum_pool(const struct ops_page *page, struct str pool)
{
	struct pool_sums s = { 0 };
	for (size_t i = 0; i < page->seen.n; i++) {
		const struct brain_worker_view *v = page->seen.p[i].v;
		if (!str_eq(v->pool, pool))
			continue;
		struct sums r = sum_ranks(v);
		s.workers++;
		s.usable += (v->health == BRAIN_HEALTHY || v->health == BRAIN_DEGRADED) && !v->draining;
		s.requests += r.requests;
		s.blocks += v->blocks;
		s.index_blocks += r.blocks;
	}
	return s;
}

static void put_pool(struct ops_page *page, const struct conf *c, const struct conf_pool *p)
{
	const char *words = conf_option_of_key(STR("routing"))->words;
	struct pool_sums s = sum_pool(page, p->name);
	struct json_writer *w = &page->json;
	json_put_open(w, '{');
	ops_str(w, "name", p->name);
	ops_str(w, "engine", p->engine);
	ops_str(w, "routing", conf_word(words, p->has_routing ? p->routing : c->opts.brain.routing));
	ops_str(w, "authorization", p->drop_authorization ? STR("drop") : STR("pass"));
	ops_str(w, "discovery_file", p->discovery_file);
	ops_u64(w, "workers", s.workers);
	ops_u64(w, "usable", s.usable);
	ops_u64(w, "in_flight_requests", s.requests);
	ops_u64(w, "blocks", s.blocks);
	ops_u64(w, "index_blocks", s.index_blocks);
	json_put_close(w, '}');
}

bool ops_pools(struct ops_page *p)
{
	const struct conf *c = conf_store_now(p->ops->store);
	ops_page_open(p, "pools");
	for (size_t i = 0; i < c->n_pools; i++)
		put_pool(p, c, &c->pools[i]);
	return false;
}

/* ---- index */

void ops_put_index(const struct ops *o, struct json_writer *w)
{
	struct kv_index_stats s = brain_index_stats(feed_brain(o->feed));
	json_put_open(w, '{');
	ops_u64(w, "entries", s.entries);
	ops_u64(w, "holdings", s.holdings);
	ops_u64(w, "flights", s.flights);
	ops_u64(w, "flight_entries", s.flight_entries);
	ops_u64(w, "owners", s.owners);
	ops_u64(w, "bytes", s.bytes);
	if (s.holdings > 0)
		ops_f64(w, "bytes_per_holding", (double)s.bytes / (double)s.holdings);
	else
		ops_null(w, "bytes_per_holding");
	ops_bool(w, "ledger_is_zero", brain_ledger_is_zero(feed_brain(o->feed)));
	json_put_close(w, '}');
}

/* ---- decisions */

static struct str url_of(const struct ops *o, brain_worker id, struct arena *a)
{
	const struct feed_view_worker *v = feed_view_worker(feed_view_now(o->feed), id);
	return v != NULL ? v->url : str_of(arena_printf(a, "removed worker %u", id));
}

static void put_candidate(const struct ops *o, const struct brain_candidate *c, bool chosen, struct json_writer *w, struct arena *a)
{
	json_put_open(w, '{');
	ops_str(w, "worker", url_of(o, c->worker, a));
	ops_i64(w, "rank", c->rank);
	ops_bool(w, "chosen", chosen);
	ops_str(w, "state", str_of(brain_health_name(c->health)));
	ops_u64(w, "hit_tokens", c->hit_tok);
	ops_u64(w, "load_cpu_tokens", c->lower.cpu_tok);
	ops_u64(w, "load_storage_tokens", c->lower.storage_tok);
	ops_u64(w, "in_flight_requests", c->in_flight);
	ops_u64(w, "prefill_tokens_ahead", c->prefill_tok);
	ops_ms(w, "ttft_ms", c->ttft_us);
	ops_str(w, "note", str_of(c->note));
	json_put_close(w, '}');
}

void ops_put_receipt(const struct ops *o, const struct brain_receipt *r, struct json_writer *w)
{
	struct arena a;
	arena_init(&a, 0);
	json_put_open(w, '{');
	ops_u64(w, "id", r->id);
	ops_str(w, "request_id", r->request_id);
	ops_str(w, "client_request_id", r->client_id);
	ops_str(w, "model", r->model);
	ops_ms(w, "age_ms", mono_diff_us(io_now(o->loop), r->at));
	ops_str(w, "reason", str_of(r->reason));
	ops_str(w, "ids", str_of(r->ids));
	ops_u64(w, "prompt_tokens", r->prompt_tok);
	ops_u64(w, "max_hit_tokens", r->max_hit_tok);
	ops_ms(w, "ttft_predicted_ms", r->ttft_predicted_us);
	ops_ms(w, "ttft_measured_ms", r->ttft_measured_us > 0 ? r->ttft_measured_us : -1);
	if (r->cached_reported == UINT32_MAX)
		ops_null(w, "cached_tokens_reported");
	else
		ops_u64(w, "cached_tokens_reported", r->cached_reported);
	ops_u64(w, "output_tokens", r->output_tok);
	ops_str(w, "outcome", str_of(r->outcome));
	json_put_key(w, STR("candidates"));
	json_put_open(w, '[');
	for (uint32_t i = 0; i < r->n_candidates; i++)
		put_candidate(o, &r->candidates[i], i == r->chosen, w, &a);
	json_put_close(w, ']');
	json_put_close(w, '}');
	arena_done(&a);
}

enum { LAST_DEFAULT = 20 };

bool ops_decisions_open(struct ops_page *p)
{
	ops_page_open(p, "decisions");
	p->receipt = brain_receipt_newest(feed_brain(p->ops->feed));
	p->left = LAST_DEFAULT;
	(void)ops_last(p->req->query, &p->left);
	return false;
}

bool ops_decisions(struct ops_page *p)
{
	struct arena a;
	struct brain_receipt r;
	bool more = true;
	arena_init(&a, 0);
	for (size_t i = 0; i < OPS_PIECE_WORKERS && more; i++) {
		more = p->left > 0 && brain_receipt_get(feed_brain(p->ops->feed), p->receipt, &a, &r);
		if (more) {
			ops_put_receipt(p->ops, &r, &p->json);
			p->left--;
			p->receipt--;
		}
	}
	arena_done(&a);
	return more;
}

bool ops_put_decision(const struct ops *o, struct str id, struct json_writer *w)
{
	struct arena a;
	struct brain_receipt r;
	uint64_t number;
	arena_init(&a, 0);
	bool found = brain_receipt_find(feed_brain(o->feed), id, &a, &r) || (str_to_u64(id, &number) && brain_receipt_get(feed_brain(o->feed), number, &a, &r));
	if (found)
		ops_put_receipt(o, &r, w);
	arena_done(&a);
	return found;
}
