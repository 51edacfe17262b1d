/* ops/ops_priv.h: shared insides of edge/ops. */
#ifndef OPS_OPS_PRIV_H
#define OPS_OPS_PRIV_H

#include "base/vec.h"
#include "http/server.h"
#include "ops/ops.h"
#include "wire/json.h"

enum {
	OPS_MAX_REPLY = 64 << 20,
	OPS_PIECE_WORKERS = 8, /* described in one go, and receipts */
	OPS_PIECE_LINES = 256, /* of metrics */
	OPS_HIGH_BYTES = 256 << 10 /* queued for a client: then the rest waits until it has read */
};

struct ops {
	struct io_loop *loop, *gate_loop;
	struct feed *feed;
	struct conf_store *store;
	struct gate_shared *shared;
	struct http_server *server;
	VEC(struct gate *) gates;
	VEC(struct ops_ask *) asks;          /* explains under way */
	bool draining;
	struct mono started;
	struct io_stall stall;               /* summed; worst since the last scrape */
};

/* page.c: an answer that grows with the fleet (or the number of receipts) is written in pieces: between two of them the
 * loop, which may be the data port's too, serves others. What is not sent yet is bounded. Lives as long as its request. */
struct ops_seen { const struct brain_worker_view *v; const struct feed_worker_info *f; };   /* f: NULL where the feed knows nothing */
struct ops_page;
/* Writes a bounded piece to p->out (or p->json, which writes there). True: it is to be called again. p->at is 0 at its
 * first call and else what it left there. */
typedef bool ops_part(struct ops_page *p);
struct ops_page {
	struct ops *ops;
	struct http_req *req;
	ops_part *const *parts;            /* the one to be called; NULL: all is written */
	size_t at;
	struct io_soon turn;
	bool waits;                        /* for the client to read */
	struct buf out;
	struct json_writer json;
	enum err e;                        /* of what was written to out */
	struct arena mem;
	VEC(struct ops_seen) seen;         /* by ops_gather; in mem */
	uint64_t receipt, left;            /* ops_decisions: the next one, how many still */
};
struct ops_page *ops_page_start(struct ops *o, struct http_req *r, struct str type, ops_part *const *parts);
void ops_page_drain(struct ops_page *p);
void ops_page_free(struct ops_page *p);
bool ops_gather(struct ops_page *p);                      /* looks at all workers: fills `seen` */
void ops_page_open(struct ops_page *p, const char *key);  /* {"key":[ */
bool ops_page_close(struct ops_page *p);                  /* ]} */

/* api.c: parts of pages */
bool ops_workers_open(struct ops_page *p);
bool ops_workers(struct ops_page *p);
bool ops_pools(struct ops_page *p);
bool ops_decisions_open(struct ops_page *p);
bool ops_decisions(struct ops_page *p);
/* each appends its JSON to w */
void ops_put_index(const struct ops *o, struct json_writer *w);
/* False: no such decision. `id`: a number or a request id. */
bool ops_put_decision(const struct ops *o, struct str id, struct json_writer *w);
void ops_put_receipt(const struct ops *o, const struct brain_receipt *r, struct json_writer *w);
/* tokenizers.c */
void ops_put_tokenizers(const struct ops *o, struct json_writer *w);
/* ready.c */
bool ops_put_ready(const struct ops *o, struct json_writer *w);
/* scrape.c */
extern ops_part *const ops_metrics[];
/* explain.c: takes the request over once its body is whole. */
struct ops_ask;
void ops_explain(struct ops *o, struct http_req *r, struct str target, struct str body);
void ops_explain_gone(struct ops *o, struct http_req *r);
void ops_explain_free(struct ops *o);

/* query.c: NULL when good, else what is wrong. The value of the one key that may stand in a query is appended, escapes undone;
 * nothing is where the query is empty. */
enum { OPS_MAX_QUERY = 4096 };
const char *ops_query(struct str query, struct str key, struct buf *value);
/* The query of decisions: last=N or nothing. */
const char *ops_last(struct str query, uint64_t *ret_n);

void ops_reply_json(struct http_req *r, int status, const struct buf *b);
void ops_reply_error(struct http_req *r, int status, const char *code, const char *message);

/* Small JSON helpers: one member each. */
static inline void ops_str(struct json_writer *w, const char *k, struct str v) { json_put_key(w, str_of(k)), json_put_str(w, v); }
static inline void ops_u64(struct json_writer *w, const char *k, uint64_t v) { json_put_key(w, str_of(k)), json_put_u64(w, v); }
static inline void ops_i64(struct json_writer *w, const char *k, int64_t v) { json_put_key(w, str_of(k)), json_put_i64(w, v); }
static inline void ops_f64(struct json_writer *w, const char *k, double v) { json_put_key(w, str_of(k)), json_put_f64(w, v); }
static inline void ops_bool(struct json_writer *w, const char *k, bool v) { json_put_key(w, str_of(k)), json_put_bool(w, v); }
static inline void ops_null(struct json_writer *w, const char *k) { json_put_key(w, str_of(k)), json_put_null(w); }
/* Microseconds as milliseconds with three decimals; negative: null. */
static inline void ops_ms(struct json_writer *w, const char *k, int64_t us)
{
	json_put_key(w, str_of(k));
	if (us < 0)
		json_put_null(w);
	else
		json_put_f64(w, (double)us / 1000.0);
}

#endif
