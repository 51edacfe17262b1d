/* Stage 5: the plan's legs in order. A leg that takes no connection got nothing of the request, so the next one may have
 * it; whatever went wrong later is the end (a worker may have begun: nothing is sent twice). */
#include <stdio.h>

#include "gate/gate_priv.h"

static void leave_worker(struct gate_req *r)
{
	list_del(&r->on_worker);
	r->worker = NULL;
}

static struct str target_of(struct gate_req *r, const struct feed_view_worker *w)
{
	if (!w->prefix.n)
		return r->hr->target;
	return str_of(arena_printf(&r->arena, "%.*s%.*s", STR_ARG(w->prefix), STR_ARG(r->hr->target)));
}

static void send_to(struct gate_req *r, const struct feed_view_worker *w)
{
	struct gate *g = r->gate;
	size_t n = api_patch_pieces(&r->patch, (struct str){ r->body, r->body_bytes }, r->pieces, NULL);
	struct http_call_opts o = {
		.addr = w->addr,
		.method = r->hr->method,
		.target = target_of(r, w),
		.host = w->host,
		.headers = gate_headers_up(r, w, r->plan.legs[r->leg].dp_rank),
		.body = r->pieces,
		.n_body = n,
		.first_byte_timeout_us = g->opts.first_byte_timeout_us,
	};
	r->worker = gate_worker_of(g, w);
	r->worker_url = arena_str(&r->arena, w->url);
	list_add_tail(&r->worker->reqs, &r->on_worker);
	gate_enter(r, GATE_SENT);
	r->progress = io_now(g->loop);
	r->call = http_call_start(g->pool, &o, &gate_call_ops, r);
}

static void count_switch(struct gate_req *r, brain_worker from)
{
	const struct feed_view_worker *w = feed_view_worker(r->view, from);
	struct obs_set *m = r->gate->metrics;
	obs_add(m, obs_find(m, GATE_M_SWITCHES, (struct str[]){ w ? w->url : STR("gone") }), 1);
}

void gate_legs(struct gate_req *r)
{
	while (r->leg < r->plan.n_legs) {
		const struct feed_view_worker *w = feed_view_worker(r->view, r->plan.legs[r->leg].worker);
		if (w && w->addr.len) {
			send_to(r, w);
			return;
		}
		gate_leg_failed(r);
	}
	r->outcome = GATE_OUT_CONNECT_FAILED;
	gate_settle_worker(r, BRAIN_CONNECT_FAILED, 0);
	gate_fail(r, ERR_CONNECT, NULL, NULL);
}

/* Moves to the next leg. The last leg's failure is told by the END. */
void gate_leg_failed(struct gate_req *r)
{
	count_switch(r, r->plan.legs[r->leg].worker);
	leave_worker(r);
	r->leg++;
	if (r->leg < r->plan.n_legs)
		gate_tell(r, (struct brain_tell){ .kind = BRAIN_TELL_SWITCH, .leg = r->leg, .outcome = BRAIN_CONNECT_FAILED });
}
