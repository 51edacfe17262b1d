/* The hand itself: what it is made of, its view of the fleet, its end. */
#include <stdlib.h>
#include <string.h>

#include "gate/gate_priv.h"

enum { LOG_MAX_BYTES = 1 << 20 };

static const char *const state_words[GATE_STATE_COUNT] = {
#define X(id, word) [GATE_##id] = word,
	GATE_STATES(X)
#undef X
};

/* The only writer of a request's state. */
void gate_enter(struct gate_req *r, enum gate_state to)
{
	struct gate *g = r->gate;
	g->in_state[r->state]--;
	obs_sub(g->metrics, g->m_state[r->state], 1);
	r->state = to;
	g->in_state[to]++;
	obs_add(g->metrics, g->m_state[to], 1);
}

static void metrics_new(struct gate *g)
{
	g->metrics = obs_set_new(gate_metric_defs, GATE_M_COUNT);
	for (int i = 0; i < GATE_STATE_COUNT; i++)
		g->m_state[i] = obs_find(g->metrics, GATE_M_OPEN, (struct str[]){ str_of(state_words[i]) });
	g->m_body_bytes = obs_find(g->metrics, GATE_M_BODY_BYTES, NULL);
	g->m_prompt = obs_find(g->metrics, GATE_M_TOK_PROMPT, NULL);
	g->m_cached = obs_find(g->metrics, GATE_M_TOK_CACHED, NULL);
	g->m_output = obs_find(g->metrics, GATE_M_TOK_OUTPUT, NULL);
	g->m_hidden = obs_find(g->metrics, GATE_M_DROPPED_EVENTS, NULL);
}

static struct http_pool *pool_new(struct io_loop *l, const struct conf_gate_opts *o)
{
	struct http_pool_opts p = http_pool_defaults();
	p.connect_timeout_us = o->connect_timeout_us;
	return http_pool_new(l, &p);
}

struct gate *gate_new(struct io_loop *l, const struct conf_gate_opts *o, struct gate_shared *s, struct gate_link *link)
{
	struct gate *g = must_calloc(1, sizeof(*g));
	g->loop = l;
	g->shared = s;
	g->link = link;
	map_init(&g->workers);
	list_init(&g->reqs);
	list_init(&g->ids_waiting);
	list_init(&g->ids_calls);
	list_init(&g->scratches);
	list_init(&g->own_waiting);
	buf_init(&g->log, LOG_MAX_BYTES);
	buf_init(&g->scratch, GATE_SCRATCH_MAX_BYTES);
	io_random(&g->ids_rand, sizeof(g->ids_rand));
	gate_set_opts(g, o);
	metrics_new(g);
	g->pool = pool_new(l, o);
	g->cache = text_cache_new((size_t)o->tokens_cache_bytes, GATE_IDS_MAX_CALLS);
	g->ids_timer = io_timer_new(l, gate_ids_on_timer, g);
	g->sweep_timer = io_timer_new(l, gate_sweep, g);
	io_timer_every(g->sweep_timer, GATE_SWEEP_US);
	return g;
}

void gate_set_opts(struct gate *g, const struct conf_gate_opts *o)
{
	char *paths = str_dup(o->allow_paths);
	free((char *)(uintptr_t)g->opts.allow_paths.p);
	g->opts = *o;
	g->opts.allow_paths = str_of(paths);
}

enum err gate_listen(struct gate *g, const struct io_addr *bind, bool reuse_port)
{
	struct http_server_opts o = http_server_defaults();
	o.max_header_bytes = (size_t)g->opts.max_header_bytes;
	o.max_headers = (size_t)g->opts.max_headers;
	o.header_timeout_us = g->opts.client_header_timeout_us;
	o.body_timeout_us = g->opts.client_body_timeout_us;
	o.idle_timeout_us = g->opts.client_idle_timeout_us;
	o.write_timeout_us = g->opts.client_write_timeout_us;
	o.max_conns = (size_t)g->opts.max_connections;
	o.reuse_port = reuse_port;
	g->high_bytes = o.high_bytes;
	return http_server_new(g->loop, bind, &o, &gate_http_ops, g, &g->server);
}

struct io_addr gate_addr(const struct gate *g) { return g->server ? http_server_addr(g->server) : (struct io_addr){ .len = 0 }; }

/* ---- workers: what a hand remembers of them between requests */

struct gate_worker *gate_worker_of(struct gate *g, const struct feed_view_worker *w)
{
	struct gate_worker *k = map_get_ptr(&g->workers, w->id);
	if (k)
		return k;
	k = must_calloc(1, sizeof(*k));
	k->id = w->id;
	k->gate = g;
	k->url = str_clone(w->url);
	list_init(&k->reqs);
	map_put_ptr(&g->workers, w->id, k);
	return k;
}

static void worker_free(struct gate_worker *k)
{
	gate_probe_free(k);
	free((char *)(uintptr_t)k->url.p);
	free(k);
}

static bool worker_unused(const struct gate *g, const struct gate_worker *k)
{
	return list_empty(&k->reqs) && !k->ids_open && !feed_view_worker(g->view, k->id);
}

void gate_worker_drop_unused(struct gate *g)
{
	VEC(uint64_t) gone = { 0 };
	for (size_t i = map_first(&g->workers); i < g->workers.cap; i = map_next(&g->workers, i)) {
		struct gate_worker *k = (struct gate_worker *)(uintptr_t)g->workers.slots[i].value;
		if (worker_unused(g, k))
			VEC_PUSH(&gone, g->workers.slots[i].key);
	}
	for (size_t i = 0; i < gone.n; i++) {
		worker_free(map_get_ptr(&g->workers, gone.p[i]));
		map_del(&g->workers, gone.p[i]);
	}
	VEC_FREE(&gone);
}

/* A worker that came back may be another program: idle sockets to it are worth nothing, what it offers is asked anew. */
static void forget_down(struct gate *g, const struct feed_view *v)
{
	for (size_t i = 0; i < v->n_workers; i++) {
		const struct feed_view_worker *w = &v->workers[i];
		struct gate_worker *k = map_get_ptr(&g->workers, w->id);
		if (w->health != BRAIN_DOWN)
			continue;
		if (w->addr.len)
			http_pool_forget(g->pool, &w->addr);
		if (k)
			text_offer_reset(&k->offer);
	}
}

void gate_set_view(struct gate *g, struct feed_view *v)
{
	struct feed_view *old = g->view;
	g->view = v;
	forget_down(g, v);
	gate_worker_drop_unused(g);
	feed_view_unref(old);
}

/* ---- the end */

void gate_drain_check(struct gate *g)
{
	if (!g->draining || !g->drained || g->n_reqs)
		return;
	void (*fn)(void *arg) = g->drained;
	g->drained = NULL;
	fn(g->drained_arg);
}

static void drain_over(void *arg)
{
	struct gate *g = arg;
	if (g->drain_over) { /* even the error events were not taken: enough */
		void (*fn)(void *arg) = g->drained;
		g->drained = NULL;
		if (fn)
			fn(g->drained_arg);
		return;
	}
	g->drain_over = true;
	io_timer_after(g->drain_timer, GATE_FLUSH_US);
	LIST_FOR_SAFE(&g->reqs, it)
	gate_fail(container_of(it, struct gate_req, node), ERR_DRAINING, NULL, NULL);
	gate_drain_check(g);
}

/* A turn later, so that `done` never runs inside gate_drain. */
void gate_drain(struct gate *g, int64_t limit_us, void (*done)(void *arg), void *arg)
{
	must(!g->draining);
	g->draining = true;
	g->drained = done;
	g->drained_arg = arg;
	g->drain_timer = io_timer_new(g->loop, drain_over, g);
	io_timer_after(g->drain_timer, limit_us);
	io_timer_every(g->sweep_timer, GATE_SWEEP_US / 10);
}

static void workers_free(struct gate *g)
{
	for (size_t i = map_first(&g->workers); i < g->workers.cap; i = map_next(&g->workers, i))
		worker_free((struct gate_worker *)(uintptr_t)g->workers.slots[i].value);
	map_done(&g->workers);
}

void gate_free(struct gate *g)
{
	if (!g)
		return;
	g->freeing = true;
	if (g->server)
		http_server_free(g->server); /* every request gets on_gone */
	gate_ids_free(g);
	workers_free(g);
	http_pool_free(g->pool);
	LIST_FOR_SAFE(&g->reqs, it)
	{ /* dry runs, and those whose plan never came */
		struct gate_req *r = container_of(it, struct gate_req, node);
		r->asking = false;
		r->explain = NULL;
		gate_req_maybe_free(r);
	}
	io_timer_free(g->ids_timer);
	io_timer_free(g->sweep_timer);
	io_timer_free(g->drain_timer);
	gate_log_flush(g);
	buf_done(&g->log);
	buf_done(&g->scratch);
	obs_set_free(g->metrics);
	feed_view_unref(g->view);
	free((char *)(uintptr_t)g->opts.allow_paths.p);
	free(g);
}

/* ---- looking in */

struct gate_stats gate_stats(const struct gate *g)
{
	struct http_pool_stats p = http_pool_stats(g->pool);
	struct text_cache_stats c = text_cache_stats(g->cache);
	return (struct gate_stats){ .requests = g->n_requests,
		.open_requests = g->n_reqs,
		.open_streams = g->in_state[GATE_RELAY],
		.open_conns = g->server ? http_server_stats(g->server).open_conns : 0,
		.upstream_connects = p.connects,
		.upstream_reuses = p.reuses,
		.upstream_retries = p.retries,
		.upstream_open = p.open,
		.upstream_idle = p.idle,
		.ids_hits = c.hits,
		.ids_joins = c.joins,
		.ids_calls = c.leads,
		.ids_bytes = c.bytes };
}

const struct obs_set *gate_metrics(const struct gate *g) { return g->metrics; }

const struct obs_def *gate_metric_rows(size_t *ret_n)
{
	*ret_n = GATE_M_COUNT;
	return gate_metric_defs;
}
