/* Header fields, both ways: what goes upstream, what comes back, what is ours. Rows, because each is a decision. */
#include <stdio.h>
#include <string.h>

#include "gate/gate_priv.h"

/* A client's fields that do not go to the worker (hop-by-hop ones neither). */
static const struct str up_dropped[] = {
	STR_INIT("host"), /* the worker's own */
	STR_INIT("content-length"), /* of the patched body */
	STR_INIT("expect"), /* answered here */
	STR_INIT("accept-encoding"), /* we read the answers: identity only */
	STR_INIT("x-request-id"), /* ours is unique, two clients' may be equal */
	STR_INIT("x-data-parallel-rank"), /* the plan's business */
	STR_INIT("authorization"), /* see put_authorization */
	STR_INIT("x-kvasir-explain"),
};

/* A worker's fields that do not go to the client. */
static const struct str down_dropped[] = {
	STR_INIT("content-length"), /* said again by the server when it holds */
	STR_INIT("date"), /* the server says it */
	STR_INIT("x-request-id"),
	STR_INIT("x-kvasir-worker"),
	STR_INIT("x-kvasir-explain"),
	STR_INIT("x-kvasir-reason"), /* why we refuse */
	STR_INIT("x-kvasir-request-id"),
};

static bool in_rows(const struct str *rows, size_t n, struct str name)
{
	for (size_t i = 0; i < n; i++)
		if (rows[i].n == name.n && str_ieq(rows[i], name))
			return true;
	return false;
}

/* The worker's own key wins; else the client's passes, unless the pool says otherwise. */
static size_t put_authorization(struct http_header *h, struct http_headers from, const struct feed_view_worker *w)
{
	struct str own = w->authorization, client = http_find(from, STR("authorization"));
	if (!own.n && w->pass_client_authorization)
		own = client;
	if (!own.n)
		return 0;
	*h = (struct http_header){ STR("authorization"), own };
	return 1;
}

struct http_headers gate_headers_up(struct gate_req *r, const struct feed_view_worker *w, int32_t dp_rank)
{
	struct http_headers from = r->hr->headers;
	struct http_header *h = arena_new(&r->arena, struct http_header, from.n + 4);
	size_t n = 0;
	for (size_t i = 0; i < from.n; i++)
		if (!in_rows(up_dropped, ARRAY_LEN(up_dropped), from.p[i].name) && !http_is_hop_by_hop(from, from.p[i].name))
			h[n++] = from.p[i];
	h[n++] = (struct http_header){ STR("accept-encoding"), STR("identity") };
	h[n++] = (struct http_header){ STR("x-request-id"), str_of(r->id) };
	n += put_authorization(&h[n], from, w);
	if (dp_rank >= 0)
		h[n++] = (struct http_header){ STR("x-data-parallel-rank"), str_of(arena_printf(&r->arena, "%d", dp_rank)) };
	return (struct http_headers){ h, n };
}

/* Space, quote, control and non-ASCII bytes have no place in a header of ours; a client's id is echoed only if clean. */
struct str gate_client_id(struct http_req *hr, struct arena *a)
{
	struct str id = http_find(hr->headers, STR("x-request-id"));
	if (!id.n || id.n > GATE_CLIENT_ID_MAX)
		return (struct str){ 0 };
	for (size_t i = 0; i < id.n; i++)
		if (id.p[i] <= ' ' || id.p[i] > '~')
			return (struct str){ 0 };
	return arena_str(a, id);
}

static bool may_explain(const struct gate_req *r)
{
	switch (r->gate->opts.explain) {
	case 0: return false;
	case 1: return io_addr_is_loopback(&r->hr->peer);
	default: return true;
	}
}

static const char *worker_url(const struct gate_req *r, brain_worker id)
{
	const struct feed_view_worker *w = r->view ? feed_view_worker(r->view, id) : NULL;
	return w ? arena_str((struct arena *)(uintptr_t)&r->arena, w->url).p : "gone";
}

/* reason; ids; prompt tokens; then each leg in order: worker, predicted hit, predicted TTFT. */
static struct str explain_text(struct gate_req *r)
{
	struct buf *b = &r->gate->scratch;
	buf_clear(b);
	enum err e = buf_printf(b, "reason=%s; ids=%s; prompt=%u; decision=%llu", r->plan.reason, r->ids_why ? r->ids_why : "keys",
		r->keys.n_tok, (unsigned long long)r->plan.receipt);
	for (uint32_t i = 0; i < r->plan.n_legs && e == ERR_OK; i++) {
		const struct brain_leg *l = &r->plan.legs[i];
		e = buf_printf(b, "; %s=%s hit=%u ttft_ms=%.1f", i == r->leg ? "worker" : "alternate", worker_url(r, l->worker), l->hit_tok,
			(double)l->ttft_us / 1000.0);
	}
	return arena_str(&r->arena, e == ERR_OK ? buf_str(b) : STR("too long"));
}

static size_t put_ours(struct gate_req *r, struct http_header *h)
{
	size_t n = 0;
	h[n++] = (struct http_header){ STR("x-request-id"), r->client_id.n ? r->client_id : str_of(r->id) };
	if (r->client_id.n)
		h[n++] = (struct http_header){ STR("x-kvasir-request-id"), str_of(r->id) };
	if (r->worker_url.n)
		h[n++] = (struct http_header){ STR("x-kvasir-worker"), r->worker_url };
	if (r->has_plan && may_explain(r) && str_eq(http_find(r->hr->headers, STR("x-kvasir-explain")), STR("1")))
		h[n++] = (struct http_header){ STR("x-kvasir-explain"), explain_text(r) };
	return n;
}

struct http_headers gate_headers_down(struct gate_req *r, struct http_headers from)
{
	struct http_header *h = arena_new(&r->arena, struct http_header, from.n + 4);
	size_t n = 0;
	for (size_t i = 0; i < from.n; i++)
		if (!in_rows(down_dropped, ARRAY_LEN(down_dropped), from.p[i].name) && !http_is_hop_by_hop(from, from.p[i].name))
			h[n++] = from.p[i];
	n += put_ours(r, &h[n]);
	return (struct http_headers){ h, n };
}

struct http_headers gate_headers_own(struct gate_req *r, struct http_headers extra)
{
	struct http_header *h = arena_new(&r->arena, struct http_header, extra.n + 4);
	if (extra.n)
		memcpy(h, extra.p, extra.n * sizeof(*h));
	return (struct http_headers){ h, extra.n + put_ours(r, &h[extra.n]) };
}
