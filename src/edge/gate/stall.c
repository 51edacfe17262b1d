/* Silence. A worker can stop in the middle of a stream and keep its socket open (a real vLLM does on SIGTERM), so no
 * error ever comes. Two rules: no data event for the stall timeout is the end (comments do not count: a dead stream can
 * be kept warm by them for ever), and a silent request whose worker is down is at an end as soon as a new connection to
 * that worker fails too. Before the first data event the worker may still be computing the prompt: there the first-byte
 * limit holds. A client that does not read stops the clock. */
#include "gate/gate_priv.h"

static bool stalled(const struct gate_req *r, struct mono now)
{
	const struct conf_gate_opts *o = &r->gate->opts;
	if (r->state != GATE_RELAY || r->paused)
		return false;
	int64_t limit = r->saw_data ? o->stall_timeout_us : o->first_byte_timeout_us;
	return mono_diff_us(now, r->progress) > limit;
}

static bool silent(const struct gate_req *r, struct mono now)
{
	bool waits = r->state == GATE_SENT || (r->state == GATE_RELAY && !r->paused);
	return waits && mono_diff_us(now, r->progress) > GATE_DOWN_SILENCE_US;
}

static void end_silent(struct gate_worker *k)
{
	struct mono now = io_now(k->gate->loop);
	LIST_FOR_SAFE(&k->reqs, it)
	{
		struct gate_req *r = container_of(it, struct gate_req, on_worker);
		if (silent(r, now))
			gate_stream_break(r, r->state == GATE_RELAY ? ERR_UPSTREAM_MIDSTREAM : ERR_UPSTREAM_EARLY_CLOSE);
	}
}

/* ---- is it dead? */

static void probe_connected(void *arg, bool reused)
{
	(void)arg;
	(void)reused;
}

static void probe_head(void *arg, int status, struct http_headers h)
{
	(void)arg;
	(void)status;
	(void)h;
}

static void probe_body(void *arg, struct str piece)
{
	(void)arg;
	(void)piece;
}

static void probe_end(void *arg) { ((struct gate_worker *)arg)->probe = NULL; }

static void probe_fail(void *arg, enum err why)
{
	struct gate_worker *k = arg;
	k->probe = NULL;
	if (why == ERR_CONNECT)
		end_silent(k);
}

static const struct http_call_ops probe_ops = {
	.on_connected = probe_connected, .on_head = probe_head, .on_body = probe_body, .on_end = probe_end, .on_fail = probe_fail
};

void gate_probe_free(struct gate_worker *k)
{
	if (k->probe)
		http_call_abort(k->probe);
	k->probe = NULL;
}

static void probe(struct gate_worker *k, const struct feed_view_worker *w, struct mono now)
{
	struct gate *g = k->gate;
	if (k->probe || mono_diff_us(now, k->probed) < GATE_DOWN_SILENCE_US)
		return;
	struct http_call_opts o = { .addr = w->addr,
		.method = STR("GET"),
		.target = STR("/health"),
		.host = w->host,
		.fresh = true,
		.first_byte_timeout_us = GATE_DOWN_SILENCE_US };
	k->probed = now;
	k->probe = http_call_start(g->pool, &o, &probe_ops, k);
}

/* ---- the sweep */

static void sweep_worker(struct gate_worker *k, struct mono now)
{
	const struct feed_view_worker *w = feed_view_worker(k->gate->view, k->id);
	bool down = w && w->health == BRAIN_DOWN && w->addr.len, any_silent = false;
	LIST_FOR_SAFE(&k->reqs, it)
	{
		struct gate_req *r = container_of(it, struct gate_req, on_worker);
		if (stalled(r, now))
			gate_stream_break(r, ERR_TIMEOUT_STALL);
		else if (down)
			any_silent |= silent(r, now);
	}
	if (any_silent)
		probe(k, w, now);
}

void gate_sweep(void *arg)
{
	struct gate *g = arg;
	struct mono now = io_now(g->loop);
	for (size_t i = map_first(&g->workers); g->view && i < g->workers.cap; i = map_next(&g->workers, i))
		sweep_worker((struct gate_worker *)(uintptr_t)g->workers.slots[i].value, now);
	gate_log_flush(g);
	gate_drain_check(g);
}
