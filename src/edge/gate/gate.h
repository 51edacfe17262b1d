/* gate/gate.h: the data port: the life of a request from its first byte to its last.
 *
 * One `struct gate` per hand (event loop). All hands of a process share one `struct gate_shared`: the memory budget of
 * request bodies and the memory of which worker made which response. A request walks through stages, a file each:
 * receive (limits, body) -> facts (one parse) -> ids (token ids, from workers or the cache) -> ask (block keys, plan) ->
 * legs (connect, send) -> stream (relay, look at usage) -> settle (one END tell, one log line). doc: ARCHITECTURE.md.
 *
 * Order: gate_shared_new, gate_new, gate_set_view, gate_listen ... gate_drain, gate_free, gate_shared_free.
 * Thread: everything of a gate belongs to its loop's thread, except gate_metrics() which any thread may read. */
#ifndef GATE_GATE_H
#define GATE_GATE_H

#include "conf/option.h"
#include "feed/view.h"
#include "gate/link.h"
#include "obs/metric.h"
#include "tok/memo.h"

struct gate;
struct gate_shared;

/* body_memory_bytes, max_responses: see the options of that name. */
struct gate_shared *gate_shared_new(const struct conf_gate_opts *o);
void gate_shared_free(struct gate_shared *s);
void gate_shared_set_body_memory(struct gate_shared *s, int64_t bytes);
/* Bytes of bodies held now, all hands together. Any thread. */
int64_t gate_shared_body_bytes(const struct gate_shared *s);
/* Text whose token ids are known, all hands together; all 0 when none is kept. Any thread. */
struct tok_memo_stats gate_shared_text(const struct gate_shared *s);

/* The link stays the caller's and must outlive the gate. */
struct gate *gate_new(struct io_loop *l, const struct conf_gate_opts *o, struct gate_shared *s, struct gate_link *link);
/* Closes every connection; requests under way are settled as CLIENT_LEFT. */
void gate_free(struct gate *g);
/* Binds the data port. IO: the address cannot be bound. */
must_use enum err gate_listen(struct gate *g, const struct io_addr *bind, bool reuse_port);
struct io_addr gate_addr(const struct gate *g);

/* New options (those marked LIVE take effect for new requests). Copies what it needs. */
void gate_set_opts(struct gate *g, const struct conf_gate_opts *o);
/* Takes over one reference. Running requests keep the view they began with; those that wait in silence for a worker
 * which is down by now are looked at (see stall.c). */
void gate_set_view(struct gate *g, struct feed_view *v);
/* Not ready from now on: new requests get 503, running ones may go on for `limit_us`, then the rest get an error event.
 * done runs once on the loop when no request is left. */
void gate_drain(struct gate *g, int64_t limit_us, void (*done)(void *arg), void *arg);

struct gate_stats {
	uint64_t requests, open_requests, open_streams, open_conns;
	uint64_t upstream_connects, upstream_reuses, upstream_retries, upstream_open, upstream_idle;
	uint64_t ids_hits, ids_joins, ids_calls, ids_bytes;
};
struct gate_stats gate_stats(const struct gate *g);
/* Counters of one hand; sum the sets of all hands with obs_write. */
const struct obs_set *gate_metrics(const struct gate *g);
const struct obs_def *gate_metric_rows(size_t *ret_n);

/* "Where would this go, and why": the same stages, nothing is sent but the question for token ids. fn runs once, on the
 * loop, perhaps inside the call. Slices and the plan are valid during fn; look the receipt up by plan->receipt. */
struct gate_explained {
	enum err e; /* not OK: the request would be refused like this */
	const char *message, *param; /* with e; may be NULL */
	struct str model;
	uint32_t prompt_tok; /* counted, or estimated when ids_why is set */
	const char *ids_why; /* NULL: token ids are known */
	const struct brain_plan *plan; /* NULL when e is not OK */
	const struct feed_view *view; /* names of the plan's workers */
};
typedef void gate_explain_fn(void *arg, const struct gate_explained *x);
void gate_explain(struct gate *g, struct str method, struct str target, struct str body, gate_explain_fn *fn, void *arg);

#endif
