/* Stage 1: a request's head is checked against what may come in at all, its body gathered within the memory budget.
 *
 * The body is charged as it arrives, not as it is announced: a client that promises 32 MiB and sends nothing holds
 * nothing. Growth doubles towards the announced length, so a large body is copied about once. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/gate_priv.h"

enum { MAGIC = 0x67617465 };

static void on_turn(void *arg);

/* ---- requests */

static void put_id(struct gate *g, char out[33])
{
	static const char hex[] = "0123456789abcdef";
	uint64_t halves[2] = { rand_u64(&g->ids_rand), rand_u64(&g->ids_rand) };
	for (int i = 0; i < 32; i++)
		out[i] = hex[halves[i / 16] >> (i % 16 * 4) & 15];
	out[32] = '\0';
}

struct gate_req *gate_req_new(struct gate *g, struct http_req *hr)
{
	struct gate_req *r = must_calloc(1, sizeof(*r));
	r->magic = MAGIC;
	r->gate = g;
	r->hr = hr;
	arena_init(&r->arena, 0);
	put_id(g, r->id);
	list_init(&r->ids_node);
	list_init(&r->ids_wait.node);
	list_init(&r->on_worker);
	io_soon_init(&r->turn, on_turn, r);
	list_add_tail(&g->reqs, &r->node);
	r->fault = "";
	r->t_start = hr ? hr->started : io_now(g->loop);
	r->view = g->view ? feed_view_ref(g->view) : NULL;
	g->n_reqs++;
	g->in_state[GATE_BODY]++;
	obs_add(g->metrics, g->m_state[GATE_BODY], 1);
	return r;
}

bool gate_charge(struct gate *g, int64_t *charged, int64_t want)
{
	if (want > *charged && !gate_shared_take(g->shared, want - *charged))
		return false;
	if (want < *charged)
		gate_shared_give(g->shared, *charged - want);
	obs_add(g->metrics, g->m_body_bytes, (uint64_t)(want - *charged));
	*charged = want;
	return true;
}

void gate_body_free(struct gate_req *r)
{
	free(r->body);
	r->body = NULL;
	r->body_bytes = r->body_cap = 0;
	bool given = gate_charge(r->gate, &r->charged, 0);
	must(given);
}

void gate_req_maybe_free(struct gate_req *r)
{
	must(r->magic == MAGIC);
	if (r->hr || r->asking || r->explain)
		return;
	struct gate *g = r->gate;
	must(!r->call && !r->ids_call && (!r->has_plan || r->ended || !r->plan.ticket));
	g->in_state[r->state]--;
	obs_sub(g->metrics, g->m_state[r->state], 1);
	list_del(&r->node);
	list_del(&r->on_worker);
	io_soon_cancel(&r->turn);
	gate_body_free(r);
	text_ids_unref(r->ids);
	model_unref(r->ids_model);
	feed_view_unref(r->view);
	arena_done(&r->arena);
	r->magic = 0;
	free(r);
	g->n_reqs--;
	gate_drain_check(g);
}

/* ---- body */

/* The next capacity: all of a small announced body, else doubling, never beyond the announced length. */
static size_t next_cap(const struct gate_req *r, size_t need)
{
	int64_t told = r->hr->content_length;
	size_t cap = MAX(r->body_cap * 2, (size_t)GATE_BODY_FIRST_BYTES);
	if (told > 0 && told <= GATE_BODY_TRUST_BYTES)
		cap = (size_t)told;
	else if (told > 0)
		cap = MIN(cap, (size_t)told);
	return MAX(MIN(cap, (size_t)gate_shared_body_max(r->gate->shared)), need);
}

/* One that is larger than the memory for all of them will never fit: too large, not "try later". */
static int64_t largest_body(const struct gate *g) { return MIN(g->opts.max_body_bytes, gate_shared_body_max(g->shared)); }

static enum err body_add(struct gate_req *r, struct str piece)
{
	size_t need = r->body_bytes + piece.n;
	if (need > (size_t)largest_body(r->gate))
		return ERR_BODY_TOO_LARGE;
	if (need > r->body_cap) {
		size_t cap = next_cap(r, need);
		if (!gate_charge(r->gate, &r->charged, (int64_t)cap))
			return ERR_BODY_MEMORY;
		r->body = must_realloc(r->body, cap);
		r->body_cap = cap;
	}
	memcpy(r->body + r->body_bytes, piece.p, piece.n);
	r->body_bytes = need;
	return ERR_OK;
}

static void on_body(struct http_req *hr, struct str piece)
{
	struct gate_req *r = hr->user;
	r->bytes_in += piece.n;
	if (r->state != GATE_BODY || !piece.n)
		return; /* answered already: the rest of the body goes nowhere */
	enum err e = body_add(r, piece);
	if (e != ERR_OK) {
		gate_body_free(r);
		http_reply_close(hr);
		gate_fail(r, e, NULL, NULL);
	}
}

static void on_body_end(struct http_req *hr)
{
	struct gate_req *r = hr->user;
	if (r->state != GATE_BODY)
		return;
	r->t_body = io_now(r->gate->loop);
	if (r->body_bytes < GATE_LONG_BODY_BYTES)
		gate_facts(r);
	else
		io_later(r->gate->loop, &r->turn);
}

/* Large bodies whose last bytes came together are taken up one by one: a small request waits for one of them, not for all.
 * So are their ids. */
static void on_turn(void *arg)
{
	struct gate_req *r = arg;
	if (r->state == GATE_BODY)
		gate_facts(r);
	else if (r->state == GATE_IDS)
		gate_ids_turn(r);
}

/* ---- head */

/* A worker's path that the operator allowed by name. */
static const struct api_path *allowed(struct gate_req *r)
{
	struct str rest = r->gate->opts.allow_paths, one;
	while (rest.n) {
		str_cut(rest, ',', &one, &rest);
		one = str_trim(one);
		if (!one.n || !api_path_same(r->hr->target, one))
			continue;
		struct api_path *p = arena_new(&r->arena, struct api_path, 1);
		struct str type = http_find(r->hr->headers, STR("content-type"));
		*p = (struct api_path){ .method = r->hr->method,
			.path = one,
			.route = API_ROUTE_LOAD,
			.dialect = API_DEFAULT,
			.body = str_istarts(type, STR("application/json")) ? API_BODY_JSON : API_BODY_NONE,
			.label = "allowed" };
		return p;
	}
	return NULL;
}

static bool find_path(struct gate_req *r)
{
	if (!r->path)
		r->path = allowed(r);
	return r->path;
}

static void refuse_path(struct gate_req *r)
{
	bool other_method = api_path_allow(r->hr->target);
	gate_fail(r, other_method ? ERR_METHOD : ERR_UNKNOWN_PATH, NULL, NULL);
}

static void on_request(void *arg, struct http_req *hr)
{
	struct gate *g = arg;
	struct gate_req *r = gate_req_new(g, hr);
	hr->user = r;
	g->n_requests++;
	r->client_id = gate_client_id(hr, &r->arena);
	r->path = api_path_find(hr->method, hr->target, &r->path_id);
	if (gate_own(r))
		return;
	if (!find_path(r)) {
		refuse_path(r);
	} else if (g->draining) {
		gate_fail(r, ERR_DRAINING, NULL, NULL);
	} else if (hr->content_length > largest_body(g)) {
		http_reply_close(hr);
		gate_fail(r, ERR_BODY_TOO_LARGE, NULL, NULL);
	}
}

/* ---- the client's end */

static void client_over(struct http_req *hr, bool left)
{
	struct gate_req *r = hr->user;
	if (left && r->state != GATE_REPLIED)
		r->outcome = GATE_OUT_CLIENT_LEFT;
	gate_ids_leave(r);
	gate_call_drop(r);
	gate_settle_worker(r, BRAIN_CLIENT_LEFT, r->worker_status);
	gate_settle_client(r);
	r->hr = NULL;
	hr->user = NULL;
	gate_enter(r, GATE_OVER);
	gate_req_maybe_free(r);
}

static void on_gone(struct http_req *hr, enum err why)
{
	struct gate_req *r = hr->user;
	if (r->state != GATE_REPLIED)
		r->fault = err_label(why);
	client_over(hr, true);
}

static void on_done(struct http_req *hr) { client_over(hr, false); }

static void on_drain(struct http_req *hr) { gate_stream_drain(hr->user); }

/* The server answers an error itself: of the request at most the head is known. */
static void on_refuse(void *arg, const struct http_refusal *x)
{
	struct gate *g = arg;
	struct gate_req *r = x->req ? x->req->user : gate_req_new(g, NULL);
	if (!x->req)
		r->t_start = x->started;
	gate_refuse(r, x);
	if (x->req)
		return;
	gate_settle_client(r);
	gate_req_maybe_free(r);
}

const struct http_server_ops gate_http_ops = {
	.on_request = on_request,
	.on_body = on_body,
	.on_body_end = on_body_end,
	.on_drain = on_drain,
	.on_gone = on_gone,
	.on_done = on_done,
	.on_refuse = on_refuse,
};
