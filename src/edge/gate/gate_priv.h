/* gate/gate_priv.h: what the stages of edge/gate share: the hand, its workers, and one request.
 *
 * A request lives until both its sides are over: the client's (on_done or on_gone came, `hr` is NULL) and the plan's (no
 * ask under way). `gate_enter` is the only writer of its state. Its arena dies with it; slices of the HTTP request live
 * until the client's side is over, so what the end of a request needs is copied. */
#ifndef GATE_GATE_PRIV_H
#define GATE_GATE_PRIV_H

#include <stdatomic.h>

#include "api/answer.h"
#include "api/error.h"
#include "api/facts.h"
#include "api/models.h"
#include "api/patch.h"
#include "base/list.h"
#include "base/map.h"
#include "base/must.h"
#include "base/rand.h"
#include "base/vec.h"
#include "gate/gate.h"
#include "gate/metric.h"
#include "http/client.h"
#include "http/server.h"
#include "model/model.h"
#include "text/cache.h"
#include "text/offer.h"
#include "wire/sse.h"

enum {
	GATE_BODY_FIRST_BYTES = 16 << 10, /* first allocation for a body of unknown length */
	GATE_BODY_TRUST_BYTES = 256 << 10, /* a declared length up to this is allocated at once */
	GATE_LONG_BODY_BYTES = 64 << 10, /* from here on a body waits for a turn of its own */
	GATE_EVENT_MAX_BYTES = 4 << 20, /* a longer event passes without being looked at */
	GATE_IDS_ANSWER_MAX_BYTES = 64 << 20,
	GATE_IDS_MAX_TOK = 8 << 20,
	GATE_IDS_CALL_US = 5 * 1000 * 1000, /* a late answer still fills the cache */
	GATE_IDS_REST_US = 1000 * 1000, /* a worker that was late is not asked for so long while others can be */
	GATE_IDS_TRIES = 4, /* and when no other can be: at most so many at once */
	GATE_IDS_MAX_CALLS = 512,
	GATE_IDS_LONG_BYTES = 64 << 10, /* a longer answer is read on the thread pool */
	GATE_IDS_LONG_TOK = 16 << 10, /* a longer prompt is keyed and placed in a turn of its own */
	GATE_LOCAL_INLINE_BYTES = 256 << 10, /* longer bodies are tokenised on the thread pool */
	GATE_LOCAL_NEW_BYTES = 16 << 10, /* and prompts of which more text than this is new: about a millisecond's work */
	GATE_SWEEP_US = 100 * 1000, /* how often silence is looked for */
	GATE_DOWN_SILENCE_US = 1000 * 1000, /* silent for so long, and its worker takes no connection: dead */
	GATE_FLUSH_US = 1000 * 1000, /* after the drain's limit, for the last error events */
	GATE_TOKENS_PER_TELL = 32,
	GATE_CLIENT_ID_MAX = 128,
	GATE_SCRATCH_MAX_BYTES = 16 << 20
};

#define GATE_STATES(X)                                                                                                                     \
	X(BODY, "body") /* its body is arriving */                                                                                         \
	X(IDS, "ids") /* waits for token ids */                                                                                            \
	X(ASK, "ask") /* waits for a plan */                                                                                               \
	X(SENT, "sent") /* a worker has it, or is being connected */                                                                       \
	X(RELAY, "relay") /* the answer's head went to the client */                                                                       \
	X(REPLIED, "reply") /* all of the reply is written, not flushed */                                                                 \
	X(OVER, "over") /* the client's side is over */
enum gate_state {
#define X(id, word) GATE_##id,
	GATE_STATES(X)
#undef X
		GATE_STATE_COUNT
};

/* How a request ended, for the log and the metrics. */
#define GATE_OUTCOMES(X)                                                                                                                   \
	X(DONE, "done")                                                                                                                    \
	X(OWN, "own")                                                                                                                      \
	X(REFUSED, "refused")                                                                                                              \
	X(CLIENT_LEFT, "client_left")                                                                                                      \
	X(WORKER_ERROR, "worker_error")                                                                                                    \
	X(WORKER_DIED, "worker_died")                                                                                                      \
	X(CONNECT_FAILED, "connect_failed")                                                                                                \
	X(TIMED_OUT, "timed_out")                                                                                                          \
	X(DRAINED, "drained")
enum gate_outcome {
#define X(id, word) GATE_OUT_##id,
	GATE_OUTCOMES(X)
#undef X
		GATE_OUTCOME_COUNT
};
extern const char *const gate_outcome_words[GATE_OUTCOME_COUNT];

/* What a hand knows of a worker beside the view. Lives as long as it is in the view or has requests. */
struct gate_worker {
	brain_worker id;
	struct str url; /* own copy */
	struct list reqs; /* gate_req.on_worker: sent and not ended */
	struct text_offer offer, other_offer; /* other: of bodies that only a render call takes */
	uint32_t ids_open; /* questions for token ids under way */
	struct mono ids_rest_until;
	bool details_seen; /* it has once said cached_tokens: its null means 0 (facts: vllm-observed II.2) */
	struct mono probed;
	struct http_call *probe; /* a fresh connection, to tell a dead worker from a silent one */
	struct gate *gate;
};

struct gate_req;
/* A question for token ids, to the thread pool or to a worker: outlives the request that asked it first, so that a late answer
 * still fills the cache. */
struct gate_ids_call {
	struct list node; /* gate.ids_calls */
	struct gate *gate; /* NULL: it went while the thread pool was at work */
	struct hash128 digest;
	enum text_form form;
	enum text_call call;
	brain_worker worker;
	bool open; /* counted among the worker's */
	struct feed_view *view;
	struct str model_id; /* in the view */
	bool from_workers; /* they may be asked */
	bool render_only; /* ... but not by /tokenize, which would give other ids than their engine gets */
	struct str body; /* the client's, copied: another way of asking may be needed */
	int64_t charged;
	struct str authorization; /* the client's, own copy */
	struct mono started;
	struct http_fetch *fetch;
	struct gate_req *leader; /* NULL: it has given up */
	struct model *model; /* local.c: whose ids these are */
	struct tok_memo *memo; /* for the thread pool */
	size_t model_tok; /* likewise */
	bool own; /* with the request's own template */
	struct list own_node; /* gate.own_waiting */
	struct text_ids *ours; /* made here: to be taken, or to be compared */
	bool away, comparing; /* the thread pool has it; the worker's answer is held against ours */
	struct str answer; /* a long one of the worker, own copy, for the thread pool */
	enum err read; /* how it reads: */
	struct text_ids *theirs;
	enum err local_err;
	const char *local_why;
};

struct gate_req {
	uint32_t magic;
	enum gate_state state;
	struct gate *gate;
	struct list node; /* gate.reqs */
	struct http_req *hr; /* NULL: the client's side is over, or a dry run */
	struct arena arena;
	char id[33]; /* ours: unique, goes upstream */
	struct str client_id; /* the client's, printable; empty: none */
	struct feed_view *view;

	const struct api_path *path; /* NULL: not (yet) found */
	struct str path_id;
	char *body;
	size_t body_bytes, body_cap;
	struct io_soon turn; /* a long body's, once it is whole; a long prompt's, once its ids are known */
	int64_t charged; /* of the shared body memory */
	uint64_t bytes_in, bytes_out;
	struct api_facts facts;
	struct str model_name; /* in the arena: outlives the body */
	struct api_patch patch;
	brain_worker pinned;
	const struct feed_view_model *model;

	struct list ids_node; /* gate.ids_waiting, by start */
	struct text_wait ids_wait;
	struct gate_ids_call *ids_call; /* this request leads it */
	struct text_ids *ids;
	struct model *ids_model; /* made by this one; NULL: by a worker, or remembered */
	const char *ids_why; /* static: why there are none, or not all */
	const struct text_prompt *prompt; /* the one that is keyed */
	struct kv_prompt keys;

	bool asking, has_plan, ended; /* ended: the ticket's END was told */
	struct brain_plan plan;
	uint32_t leg;
	struct gate_worker *worker; /* while on its list */
	struct list on_worker;
	struct str worker_url; /* in the arena: of the last worker tried */
	struct http_call *call;
	struct str pieces[API_PATCH_PIECES];
	struct mono progress; /* last sign of life of the worker's answer */

	int status; /* what the client was answered with; 0: nothing */
	int worker_status;
	int error_status; /* that an error in a 200 tells; 0: none */
	bool streaming; /* the answer is an event stream */
	bool saw_data; /* with at least one data event by now */
	bool raw; /* no more looking at its events */
	bool paused, usage_added, saw_done, close_delimited, began_tokens;
	struct sse sse;
	struct api_shape *shape; /* in the arena, of a stream */
	struct buf held; /* the finishing event: waits for the usage event that is ours */
	size_t held_at; /* where the fingerprint goes in it; SIZE_MAX: nowhere */
	struct api_whole whole;
	bool reading_whole;
	uint64_t next_sequence;
	uint32_t untold_tok, events;
	bool has_usage;
	struct api_usage usage;
	bool remembered;

	enum gate_outcome outcome;
	const char *fault; /* error label, or "" */
	struct mono t_start, t_body, t_ids, t_sent, t_head, t_first;

	gate_explain_fn *explain; /* a dry run: no client, nothing is sent */
	void *explain_arg;
};

struct gate {
	struct io_loop *loop;
	struct conf_gate_opts opts; /* allow_paths: own copy */
	struct gate_shared *shared;
	struct gate_link *link;
	struct http_server *server;
	struct http_pool *pool;
	struct feed_view *view;
	struct map workers; /* brain_worker -> struct gate_worker */
	struct text_cache *cache;
	struct list reqs, ids_waiting, ids_calls;
	struct list scratches; /* local.c, last used first */
	struct list own_waiting; /* questions whose requests bring a template: one after another */
	bool own_runs;
	uint32_t ids_turn;
	struct io_timer *ids_timer, *sweep_timer, *drain_timer;
	struct buf log; /* access lines not yet written */
	struct buf scratch; /* a small text being made; never kept over a call */
	struct rand ids_rand;
	size_t high_bytes; /* queued for a client: then its worker is not read any more */
	uint64_t n_requests, n_reqs;
	uint32_t in_state[GATE_STATE_COUNT];
	bool draining, freeing, drain_over;
	void (*drained)(void *arg);
	void *drained_arg;
	struct obs_set *metrics;
	obs_series m_state[GATE_STATE_COUNT], m_body_bytes, m_prompt, m_cached, m_output, m_hidden;
};

/* gate.c */
void gate_enter(struct gate_req *r, enum gate_state to);
struct gate_worker *gate_worker_of(struct gate *g, const struct feed_view_worker *w);
void gate_worker_drop_unused(struct gate *g);
void gate_drain_check(struct gate *g);

/* receive.c */
extern const struct http_server_ops gate_http_ops;
struct gate_req *gate_req_new(struct gate *g, struct http_req *hr);
void gate_req_maybe_free(struct gate_req *r); /* frees it when nothing refers to it any more */
void gate_body_free(struct gate_req *r);
bool gate_charge(struct gate *g, int64_t *charged, int64_t want); /* brings *charged to want; false: the budget is used up */

/* own.c: paths answered here. true: answered. */
bool gate_own(struct gate_req *r);

/* here.c: questions about tokens that need no worker. true: answered. */
bool gate_here(struct gate_req *r);

/* the stages, in order */
void gate_facts(struct gate_req *r);
void gate_ids(struct gate_req *r);
void gate_ids_leave(struct gate_req *r); /* gives up waiting; harmless otherwise */
void gate_ids_turn(struct gate_req *r); /* a long prompt's turn has come */
void gate_ids_free(struct gate *g);
void gate_ids_on_timer(void *arg);
/* A copy of the request's body and of what asking needs, charged like any body; NULL: the memory is used up. */
struct gate_ids_call *gate_ids_call_new(struct gate_req *r, struct model *m);

/* local.c: ids from the tokenizer in this process */
enum gate_local { GATE_LOCAL_DONE, GATE_LOCAL_AWAY, GATE_LOCAL_NOT };
enum gate_local gate_local(struct gate_req *r, struct text_ids **ret_ids, struct gate_ids_call **ret_call);
/* Which of the APIs whose prompts are keyed it is. */
bool gate_text_form(const struct gate_req *r, enum text_form *ret_form);
/* The ids of the body here and now or not at all; one reference. */
bool gate_local_only(struct gate_req *r, enum text_form form, struct text_ids **ret_ids, const char **ret_why);
void gate_local_own_over(struct gate *g); /* the next of own_waiting, if any */
void gate_ids_drop(struct gate_ids_call *c); /* ids.c: nobody waits for it any more */
void gate_local_back(void *call); /* ids.c: the thread pool is done with it */
void gate_local_left(struct gate *g, const char *why); /* counts a prompt that it left to the workers */
void gate_local_digest(struct gate_req *r);
void gate_local_compare(struct gate *g, struct model *m, const struct text_ids *ours, const struct text_ids *theirs);
void gate_local_usage(struct gate_req *r); /* the worker has said how long the prompt was */
void gate_local_free(struct gate *g);
void gate_ask(struct gate_req *r);
void gate_legs(struct gate_req *r); /* sends to leg r->leg, or the next that works */
void gate_leg_failed(struct gate_req *r); /* it took no connection: on to the next */
extern const struct http_call_ops gate_call_ops; /* stream.c */
/* relay.c: the body; gate_relay_held lets go what is held back */
void gate_relay_init(struct gate_req *r);
void gate_relay(struct gate_req *r, struct str piece);
void gate_relay_end(struct gate_req *r);
void gate_relay_held(struct gate_req *r);
void gate_note_id(struct gate_req *r, const char *id);
void gate_note_usage(struct gate_req *r, const struct api_usage *u);
void gate_stream_drain(struct gate_req *r); /* the client took what was queued */
void gate_stream_break(struct gate_req *r, enum err why); /* the answer ends here, whatever was sent */

/* stall.c */
void gate_sweep(void *arg);
void gate_probe_free(struct gate_worker *w);

/* Answers the client in one go: the reply is complete with it. */
void gate_reply(struct gate_req *r, int status, struct http_headers extra, struct str body);

/* error.c: refuses or ends a request with an error of our own, in its client's dialect */
void gate_fail(struct gate_req *r, enum err why, const char *message, const char *param);
void gate_refuse(struct gate_req *r, const struct http_refusal *x); /* the same for what the HTTP server refuses */
void gate_call_drop(struct gate_req *r); /* aborts the worker's request, if any */

/* settle.c */
void gate_settle_worker(struct gate_req *r, enum brain_outcome o, int status); /* END, once per ticket */
void gate_settle_client(struct gate_req *r); /* log line, metrics; once, when the client's side is over */
void gate_tell(struct gate_req *r, struct brain_tell t);
void gate_tell_tokens(struct gate_req *r); /* that were seen and not told yet */
void gate_log_flush(struct gate *g);

/* header.c */
struct http_headers gate_headers_up(struct gate_req *r, const struct feed_view_worker *w, int32_t dp_rank);
struct http_headers gate_headers_down(struct gate_req *r, struct http_headers from);
struct http_headers gate_headers_own(struct gate_req *r, struct http_headers extra);
struct str gate_client_id(struct http_req *hr, struct arena *a);

/* remember.c */
void gate_remember(struct gate_shared *s, struct str response_id, brain_worker w, struct str url);
bool gate_recall(struct gate_shared *s, struct str response_id, brain_worker *ret_w, uint64_t *ret_url_hash);
bool gate_shared_take(struct gate_shared *s, int64_t bytes);
int64_t gate_shared_body_max(const struct gate_shared *s);
void gate_shared_give(struct gate_shared *s, int64_t bytes);
struct tok_memo *gate_shared_memo(struct gate_shared *s); /* NULL: none */

#endif
