/* ops/ops_priv.h: shared insides of edge/ops. */
#ifndef OPS_OPS_PRIV_H
#define OPS_OPS_PRIV_H

#include "base/vec.h"
#include "http/server.h"
#include "ops/ops.h"
#include "wire/json.h"

enum { OPS_MAX_REPLY = 64 << 20 };

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

/* api.c: each appends its JSON to w. */
void ops_put_workers(const struct ops *o, struct json_writer *w);
void ops_put_pools(const struct ops *o, struct json_writer *w);
void ops_put_index(const struct ops *o, struct json_writer *w);
void ops_put_decisions(const struct ops *o, size_t last, struct json_writer *w);
/* False: no such decision. `id`: a number or a request id. */
bool ops_put_decision(const struct ops *o, struct str id, struct json_writer *w);
void ops_put_receipt(const struct ops *o, const struct brain_receipt *r, struct json_writer *w);
/* What the feed knows of each of these workers, in their order; NULL where it knows nothing. */
const struct feed_worker_info **ops_infos(const struct ops *o, const struct brain_worker_view *views, size_t n, struct arena *a);
/* tokenizers.c */
void ops_put_tokenizers(const struct ops *o, struct json_writer *w);
/* ready.c */
bool ops_put_ready(const struct ops *o, struct json_writer *w);
/* scrape.c */
must_use enum err ops_scrape(struct ops *o, struct buf *b);
/* explain.c: takes the request over once its body is whole. */
struct ops_ask;
void ops_explain(struct ops *o, struct http_req *r, struct str target, struct str body);
void ops_explain_gone(struct ops *o, struct http_req *r);
void ops_explain_free(struct ops *o);

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
