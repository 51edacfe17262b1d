/* The admin server: a table of paths. State is read at the moment it is asked for; nothing is cached. */
#include "ops/ops_priv.h"

#include <stdlib.h>

/* A request whose body is still coming (only explain has one). */
struct pending { struct ops *ops; struct buf body; bool over, asked; };

void ops_reply_json(struct http_req *r, int status, const struct buf *b)
{
	struct http_headers none = { 0 };
	http_reply(r, status, none, STR("application/json"), buf_str(b));
}

void ops_reply_error(struct http_req *r, int status, const char *code, const char *message)
{
	struct buf b;
	buf_init(&b, 8192);
	struct json_writer w = json_writer(&b);
	json_put_open(&w, '{');
	json_put_key(&w, STR("error"));
	json_put_open(&w, '{');
	ops_str(&w, "message", str_of(message));
	ops_str(&w, "code", str_of(code));
	json_put_close(&w, '}');
	json_put_close(&w, '}');
	ops_reply_json(r, json_writer_done(&w) == ERR_OK ? status : 500, &b);
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

static void get_metrics(struct ops *o, struct http_req *r)
{
	struct buf b;
	struct http_headers none = { 0 };
	buf_init(&b, OPS_MAX_REPLY);
	if (ops_scrape(o, &b) == ERR_OK)
		http_reply(r, 200, none, STR("text/plain; version=0.0.4; charset=utf-8"), buf_str(&b));
	else
		ops_reply_error(r, 500, "limit", "the metrics do not fit in 64 MiB");
	buf_done(&b);
}

static uint64_t query_u64(struct str query, struct str name, uint64_t otherwise)
{
	for (struct str pair, key, value; query.n > 0;) {
		str_cut(query, '&', &pair, &query);
		uint64_t v;
		if (str_cut(pair, '=', &key, &value) && str_eq(key, name) && str_to_u64(value, &v))
			return v;
	}
	return otherwise;
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

static void get_workers(struct ops *o, struct http_req *r)
{
	struct buf b;
	struct json_writer w = begin(&b);
	ops_put_workers(o, &w);
	finish(r, 200, &w, &b);
}

static void get_pools(struct ops *o, struct http_req *r)
{
	struct buf b;
	struct json_writer w = begin(&b);
	ops_put_pools(o, &w);
	finish(r, 200, &w, &b);
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

static void get_decisions(struct ops *o, struct http_req *r)
{
	struct buf b;
	struct json_writer w = begin(&b);
	ops_put_decisions(o, (size_t)MIN(query_u64(r->query, STR("last"), 20), (uint64_t)100000), &w);
	finish(r, 200, &w, &b);
}

#define DECISION STR("/api/v1/decisions/")
static void get_decision(struct ops *o, struct http_req *r)
{
	struct buf b;
	struct json_writer w = begin(&b);
	if (ops_put_decision(o, str_skip(r->path, DECISION.n), &w)) {
		finish(r, 200, &w, &b);
		return;
	}
	buf_done(&b);
	ops_reply_error(r, 404, "not_found", "no decision of this id is remembered (option receipts says how many are kept)");
}

struct route { const char *method, *path; void (*answer)(struct ops *o, struct http_req *r); };
static const struct route routes[] = {
	{ "GET", "/", get_root },
	{ "GET", "/livez", get_livez },
	{ "GET", "/readyz", get_readyz },
	{ "GET", "/metrics", get_metrics },
	{ "GET", "/api/v1/workers", get_workers },
	{ "GET", "/api/v1/pools", get_pools },
	{ "GET", "/api/v1/index", get_index },
	{ "GET", "/api/v1/tokenizers", get_tokenizers },
	{ "GET", "/api/v1/decisions", get_decisions },
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

static struct str explain_path(struct str query)
{
	for (struct str pair, key, value; query.n > 0;) {
		str_cut(query, '&', &pair, &query);
		if (str_cut(pair, '=', &key, &value) && str_eq(key, STR("path")) && value.n > 0)
			return value;
	}
	return STR("/v1/chat/completions");
}

static void on_request(void *arg, struct http_req *r)
{
	struct ops *o = arg;
	bool get = str_eq(r->method, STR("GET")) || str_eq(r->method, STR("HEAD"));
	const struct route *route = route_of(r->path);
	r->user = NULL;
	if (str_eq(r->path, EXPLAIN) && str_eq(r->method, STR("POST"))) {
		struct pending *p = must_calloc(1, sizeof(*p));
		p->ops = o;
		buf_init(&p->body, (size_t)conf_store_now(o->store)->opts.gate.max_body_bytes);
		r->user = p;
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
	if (p != NULL && buf_add(&p->body, piece) != ERR_OK)
		p->over = true;
}

static void pending_free(struct http_req *r)
{
	struct pending *p = r->user;
	if (p == NULL)
		return;
	buf_done(&p->body);
	free(p);
	r->user = NULL;
}

static void on_body_end(struct http_req *r)
{
	struct pending *p = r->user;
	if (p == NULL)
		return;
	if (p->over) {
		ops_reply_error(r, 413, "body_too_large", "the body is longer than limits.body");
		return;
	}
	p->asked = true;
	ops_explain(p->ops, r, explain_path(r->query), buf_str(&p->body));
}

static void on_drain(struct http_req *r) { (void)r; }

static void on_gone(struct http_req *r, enum err why)
{
	struct pending *p = r->user;
	(void)why;
	if (p != NULL && p->asked)
		ops_explain_gone(p->ops, r);
	pending_free(r);
}

static void on_done(struct http_req *r) { pending_free(r); }

static const struct http_server_ops server_ops = { .on_request = on_request, .on_body = on_body, .on_body_end = on_body_end, .on_drain = on_drain, .on_gone = on_gone, .on_done = on_done };

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
	so.max_conns = 256;
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
