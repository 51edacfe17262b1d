/* The admin server: a table of paths. State is read while it is answered; nothing is cached. */
#include "ops/ops_priv.h"

#include <stdio.h>
#include <stdlib.h>

#include "wire/url.h"

/* A request under way: its body is still coming (only explain has one), or its answer is written in pieces. */
struct pending { struct ops *ops; struct buf path, body; bool over, asked; struct ops_page *page; };

void ops_reply_json(struct http_req *r, int status, const struct buf *b)
{
	struct http_headers none = { 0 };
	http_reply(r, status, none, STR("application/json"), buf_str(b));
}

static bool put_error(struct buf *b, const char *code, const char *message)
{
	struct json_writer w = json_writer(b);
	json_put_open(&w, '{');
	json_put_key(&w, STR("error"));
	json_put_open(&w, '{');
	ops_str(&w, "message", str_of(message));
	ops_str(&w, "code", str_of(code));
	json_put_close(&w, '}');
	json_put_close(&w, '}');
	return json_writer_done(&w) == ERR_OK;
}

void ops_reply_error(struct http_req *r, int status, const char *code, const char *message)
{
	struct buf b;
	buf_init(&b, 8192);
	ops_reply_json(r, put_error(&b, code, message) ? status : 500, &b);
	buf_done(&b);
}

/* ---- the paths */

static void text(struct http_req *r, int status, struct str s)
{
	struct http_headers none = { 0 };
	http_reply(r, status, none, STR("text/plain; charset=utf-8"), s);
}

static void get_root(struct ops *o, struct http_req *r)
{
	(void)o;
	text(r, 200, STR("Kvasir " KVASIR_VERSION " admin\n/livez /readyz /metrics\n/api/v1/workers /api/v1/pools /api/v1/index /api/v1/tokenizers /api/v1/decisions?last=N /api/v1/decisions/ID\n"
	                 "POST /api/v1/explain?path=/v1/chat/completions\n"));
}

static void get_livez(struct ops *o, struct http_req *r)
{
	(void)o;
	text(r, 200, STR("ok\n"));
}

static void finish(struct http_req *r, int status, struct json_writer *w, struct buf *b)
{
	if (json_writer_done(w) == ERR_OK)
		ops_reply_json(r, status, b);
	else
		ops_reply_error(r, 500, "limit", "the answer does not fit in 64 MiB");
	buf_done(b);
}

static struct json_writer begin(struct buf *b)
{
	buf_init(b, OPS_MAX_REPLY);
	return json_writer(b);
}

static void get_readyz(struct ops *o, struct http_req *r)
{
	struct buf b;
	struct json_writer w = begin(&b);
	bool ready = ops_put_ready(o, &w);
	finish(r, ready ? 200 : 503, &w, &b);
}

static void get_index(struct ops *o, struct http_req *r)
{
	struct buf b;
	struct json_writer w = begin(&b);
	ops_put_index(o, &w);
	finish(r, 200, &w, &b);
}

static void get_tokenizers(struct ops *o, struct http_req *r)
{
	struct buf b;
	struct json_writer w = begin(&b);
	ops_put_tokenizers(o, &w);
	finish(r, 200, &w, &b);
}

#define DECISION STR("/api/v1/decisions/")
static void get_decision(struct ops *o, struct http_req *r)
{
	struct buf b, id;
	struct json_writer w = begin(&b);
	buf_init(&id, 1024);
	if (url_put_unescaped(&id, str_skip(r->path, DECISION.n)) == ERR_OK && ops_put_decision(o, buf_str(&id), &w)) {
		finish(r, 200, &w, &b);
	} else {
		buf_done(&b);
		ops_reply_error(r, 404, "not_found",
		                "no decision of this id is remembered: wanted is a number, an x-kvasir-request-id or a client's own x-request-id, of one of the last requests that were routed (option receipts says how many are kept)");
	}
	buf_done(&id);
}

static ops_part *const workers[] = { ops_gather, ops_workers_open, ops_workers, ops_page_close, NULL };
static ops_part *const pools[] = { ops_gather, ops_pools, ops_page_close, NULL };
static ops_part *const decisions[] = { ops_decisions_open, ops_decisions, ops_page_close, NULL };

#define METRICS "/metrics"
#define DECISIONS "/api/v1/decisions"
/* Answered at once, or in pieces. */
struct route { const char *path; void (*answer)(struct ops *o, struct http_req *r); ops_part *const *parts; };
static const struct route routes[] = {
	{ "/", get_root, NULL },
	{ "/livez", get_livez, NULL },
	{ "/readyz", get_readyz, NULL },
	{ METRICS, NULL, ops_metrics },
	{ "/api/v1/workers", NULL, workers },
	{ "/api/v1/pools", NULL, pools },
	{ "/api/v1/index", get_index, NULL },
	{ "/api/v1/tokenizers", get_tokenizers, NULL },
	{ DECISIONS, NULL, decisions },
};
#define EXPLAIN STR("/api/v1/explain")

static const struct route *route_of(struct str path)
{
	for (size_t i = 0; i < ARRAY_LEN(routes); i++)
		if (str_eq(str_of(routes[i].path), path))
			return &routes[i];
	return NULL;
}

/* ---- server callbacks */

static void bad_query(struct http_req *r, const char *what, const char *allowed)
{
	char message[256];
	snprintf(message, sizeof(message), "the query is not understood: %s; allowed is %s", what, allowed);
	ops_reply_error(r, 400, "bad_request", message);
}

static struct pending *pending_new(struct ops *o, struct http_req *r)
{
	struct pending *p = must_calloc(1, sizeof(*p));
	p->ops = o;
	buf_init(&p->path, OPS_MAX_QUERY);
	buf_init(&p->body, (size_t)conf_store_now(o->store)->opts.gate.max_body_bytes);
	r->user = p;
	return p;
}

static bool asks(struct http_req *r) { return str_eq(r->path, EXPLAIN); }

static void on_request(void *arg, struct http_req *r)
{
	struct ops *o = arg;
	bool get = str_eq(r->method, STR("GET")) || str_eq(r->method, STR("HEAD"));
	const struct route *route = route_of(r->path);
	uint64_t last;
	const char *what;
	r->user = NULL;
	if (str_eq(r->path, EXPLAIN) && str_eq(r->method, STR("POST"))) {
		what = ops_query(r->query, STR("path"), &pending_new(o, r)->path);
		if (what != NULL)
			bad_query(r, what, "path=PATH, /v1/chat/completions where it is not said");
	} else if (route != NULL && get && str_eq(r->path, STR(DECISIONS)) && (what = ops_last(r->query, &last)) != NULL) {
		bad_query(r, what, "last=N, a number from 1 up");
	} else if (route != NULL && get && route->parts != NULL) {
		bool text = str_eq(r->path, STR(METRICS));
		pending_new(o, r)->page = ops_page_start(o, r, text ? STR("text/plain; version=0.0.4; charset=utf-8") : STR("application/json"), route->parts);
	} else if (route != NULL && get) {
		route->answer(o, r);
	} else if (str_starts(r->path, DECISION) && get) {
		get_decision(o, r);
	} else if (route != NULL || str_eq(r->path, EXPLAIN)) {
		ops_reply_error(r, 405, "method", str_eq(r->path, EXPLAIN) ? "explain is asked with POST; the body is the request" : "this path is read with GET");
	} else {
		ops_reply_error(r, 404, "unknown_path", "the admin port has no such path; GET / lists them");
	}
}

static void on_body(struct http_req *r, struct str piece)
{
	struct pending *p = r->user;
	if (p != NULL && asks(r) && buf_add(&p->body, piece) != ERR_OK)
		p->over = true;
}

static void pending_free(struct http_req *r)
{
	struct pending *p = r->user;
	if (p == NULL)
		return;
	buf_done(&p->path);
	buf_done(&p->body);
	if (p->page != NULL)
		ops_page_free(p->page);
	free(p);
	r->user = NULL;
}

static void on_body_end(struct http_req *r)
{
	struct pending *p = r->user;
	if (p == NULL || !asks(r))
		return;
	if (p->over) {
		ops_reply_error(r, 413, "body_too_large", "the body is longer than limits.body");
		return;
	}
	p->asked = true;
	ops_explain(p->ops, r, p->path.n > 0 ? buf_str(&p->path) : STR("/v1/chat/completions"), buf_str(&p->body));
}

static void on_drain(struct http_req *r)
{
	struct pending *p = r->user;
	if (p != NULL && p->page != NULL)
		ops_page_drain(p->page);
}

static void on_gone(struct http_req *r, enum err why)
{
	struct pending *p = r->user;
	(void)why;
	if (p != NULL && p->asked)
		ops_explain_gone(p->ops, r);
	pending_free(r);
}

static void on_done(struct http_req *r) { pending_free(r); }

/* HTTP that cannot be read is answered in words, as everything else here is. */
static void on_refuse(void *arg, const struct http_refusal *x)
{
	struct http_headers none = { 0 };
	struct buf b;
	(void)arg;
	buf_init(&b, 1024);
	if (put_error(&b, err_label(x->why), err_text(x->why)))
		http_refuse(x, none, buf_str(&b));
	buf_done(&b);
}

static const struct http_server_ops server_ops = { .on_request = on_request, .on_body = on_body, .on_body_end = on_body_end, .on_drain = on_drain, .on_gone = on_gone, .on_done = on_done, .on_refuse = on_refuse };

enum err ops_new(const struct ops_opts *p, const struct io_addr *bind, struct ops **ret_ops)
{
	struct ops *o = must_calloc(1, sizeof(*o));
	o->loop = p->loop;
	o->gate_loop = p->gate_loop;
	o->feed = p->feed;
	o->store = p->store;
	o->shared = p->shared;
	o->started = io_now(p->loop);
	for (size_t i = 0; i < p->n_gates; i++)
		VEC_PUSH(&o->gates, p->gates[i]);
	struct http_server_opts so = http_server_defaults();
	so.max_conns = p->max_conns;
	enum err e = http_server_new(p->loop, bind, &so, &server_ops, o, &o->server);
	if (e != ERR_OK) {
		VEC_FREE(&o->gates);
		free(o);
		return e;
	}
	*ret_ops = o;
	return ERR_OK;
}

void ops_free(struct ops *o)
{
	if (o == NULL)
		return;
	http_server_free(o->server);
	ops_explain_free(o);
	VEC_FREE(&o->gates);
	VEC_FREE(&o->asks);
	free(o);
}

struct io_addr ops_addr(const struct ops *o) { return http_server_addr(o->server); }
void ops_drain(struct ops *o) { o->draining = true; }
