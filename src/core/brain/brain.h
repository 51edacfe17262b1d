/* brain/brain.h: the one owner of everything a routing decision depends on: index, ledger, health, prediction, choice.
 *
 * A pure function of (state, message, now): no clock, fd, thread, log. Messages in: configure, facts (probe, models, cache,
 * gauges, outcomes), kv deltas, ask, tell, tick. Out: the plan of an ask, and notices through brain_ops (state changes for
 * logs). One brain per process; its thread is whoever calls (edge decides). Every way a request can end is a tell; there
 * is one settlement path; after all requests ended every counter is zero (brain_ledger_is_zero). The prompt of a request that
 * ended well stays held until the worker's events told of it, for half a second at most; that counts nowhere else. */
#ifndef BRAIN_BRAIN_H
#define BRAIN_BRAIN_H

#include "base/arena.h"
#include "base/err.h"
#include "base/mono.h"
#include "kv/index.h"

struct brain;
enum { BRAIN_MAX_WORKERS = 2048, BRAIN_MAX_CANDIDATES = 8, BRAIN_MAX_RANKS_PER_WORKER = 16 };

/* ---- ids. A worker id is handed out by brain_worker_add and never reused while a request refers to it. */
typedef uint32_t brain_worker;     /* 0 = none */

enum brain_routing { BRAIN_KV, BRAIN_LEAST_REQUEST, BRAIN_ROUND_ROBIN, BRAIN_RANDOM, BRAIN_P2C_EWMA, BRAIN_CONSISTENT_HASH };
bool brain_routing_of(struct str name, enum brain_routing *ret_r);
const char *brain_routing_name(enum brain_routing r);

enum brain_health { BRAIN_UNKNOWN, BRAIN_HEALTHY, BRAIN_DEGRADED, BRAIN_DRAINING, BRAIN_DOWN };
const char *brain_health_name(enum brain_health h);

struct brain_opts {
	enum brain_routing routing;      /* default for every pool */
	uint64_t seed;
	uint32_t receipts;               /* kept, newest first: 1000 */
};
struct brain_ops {                       /* called from inside brain_* calls; must not call back into the brain */
	void (*on_health)(void *arg, brain_worker w, enum brain_health from, enum brain_health to, const char *why);
	void (*on_panic)(void *arg, struct str pool, bool on);                 /* every worker of the pool is suspect: tries all */
	void (*on_mismatch)(void *arg, brain_worker w, const char *likely_cause, double exact_share);   /* predicted vs reported cached tokens */
	void (*on_work)(void *arg);      /* there is work for brain_work; NULL: it is done at once */
};
struct brain *brain_new(const struct brain_opts *o, const struct brain_ops *ops, void *arg);
void brain_free(struct brain *b);

/* ---- workers (from configuration and discovery) */
struct brain_worker_conf {
	struct str pool;                 /* pool name; "" = the one pool of flags */
	struct str url;                  /* shown and logged; without credentials */
	struct str accelerator;          /* a profile name of sched (see sched_profile_names), "" = the stated default */
	bool has_routing; enum brain_routing routing;   /* the pool's, when it differs */
};
must_use enum err brain_worker_add(struct brain *b, const struct brain_worker_conf *c, struct mono now, brain_worker *ret_w);
void brain_worker_update(struct brain *b, brain_worker w, const struct brain_worker_conf *c, struct mono now);
void brain_worker_drain(struct brain *b, brain_worker w, struct mono now);     /* no new requests; removed when its last request ended */

/* ---- facts */
struct brain_models { const struct str *names; size_t n_names;                 /* base names (aliases of one model) */
                      const struct str *adapters; size_t n_adapters; uint32_t max_model_len; };
void brain_fact_models(struct brain *b, brain_worker w, const struct brain_models *m, struct mono now);
/* From /metrics: provisional until events say better. ranks >= 1; blocks is the sum over ranks. */
void brain_fact_cache(struct brain *b, brain_worker w, uint32_t block_size, uint64_t blocks, uint32_t ranks, bool prefix_caching, struct mono now);
void brain_fact_gauges(struct brain *b, brain_worker w, uint32_t rank, uint32_t running, uint32_t waiting, double kv_usage, struct mono now);
enum brain_probe { BRAIN_PROBE_OK, BRAIN_PROBE_CONNECT_FAILED, BRAIN_PROBE_BAD_STATUS, BRAIN_PROBE_TIMEOUT, BRAIN_PROBE_NOT_FOUND, BRAIN_PROBE_UNAUTHORIZED };
void brain_fact_probe(struct brain *b, brain_worker w, enum brain_probe r, struct mono now);
/* Events of a rank. `seen`: events are reachable (false: approximate mode); uncertain: a gap that could not be mended. */
void brain_kv_status(struct brain *b, brain_worker w, uint32_t rank, bool seen, bool uncertain, struct mono now);
void brain_kv_progress(struct brain *b, brain_worker w, uint32_t rank, uint64_t seq, int64_t lag_us);
void brain_kv_groups(struct brain *b, brain_worker w, uint32_t rank, const struct kv_group *g, size_t n);
void brain_kv_deltas(struct brain *b, brain_worker w, uint32_t rank, const struct kv_delta *d, size_t n);
void brain_kv_clear(struct brain *b, brain_worker w, uint32_t rank);

/* ---- ask -> plan */
struct brain_ask {
	struct str model;                /* requested name; "" = not given */
	struct str pool;                 /* restricts to a pool; "" = any pool that serves the model */
	const struct kv_prompt *prompt;  /* NULL: token ids unknown, routed by load */
	bool prefix_only;                /* the prompt's keys are of its beginning, n_tok is a guess: the worker may hold more than is foreseen */
	const char *no_ids_why;          /* static text for the receipt when prompt is NULL */
	bool no_lookup;                  /* the engine will not look its cache up (prompt_logprobs, echo+logprobs): hit is 0 */
	uint32_t prompt_tok_estimate;    /* when ids are unknown: from bytes */
	uint32_t max_new_tok;            /* 0 = unknown */
	bool stream, kv_routed;          /* kv_routed: a path whose prompt is a KV prompt; else plain load */
	uint64_t affinity_key;           /* for consistent-hash: hash of x-session-id / prompt_cache_key / user / first 1 KiB */
	brain_worker pinned;             /* previous_response_id: only this worker; 0 = any */
	bool dry_run;                    /* explain --body: nothing is counted */
	const char *request_id;          /* ours, for the receipt */
	struct str client_id;            /* the client's own, which others may use too; "" = none */
};
struct brain_leg {
	brain_worker worker;
	int32_t dp_rank;                 /* -1: do not send X-data-parallel-rank */
	uint32_t hit_tok;                /* overlap predicted */
	int64_t ttft_us;                 /* predicted */
};
struct brain_plan {
	uint64_t ticket;                 /* names the request in tells; 0 in a dry run */
	struct brain_leg legs[BRAIN_MAX_CANDIDATES];   /* ordered: the choice, then alternates */
	uint32_t n_legs;
	/* Static word. kv: sticky (holds the prefix), owner (held it last), ttft (least predicted), relief (the holder's wait is
	 * not worth it), spread (a nearly idle worker beside a busy holder), load (no token ids); a baseline's name; pinned;
	 * panic (nobody is usable, all are tried). */
	const char *reason;
	uint64_t receipt;                /* id for brain_receipt */
};
/* UNKNOWN_MODEL, BAD_REQUEST (no model member and more than one base model), NO_WORKER, RESPONSE_GONE. Counts leg 0 in flight. */
must_use enum err brain_ask(struct brain *b, const struct brain_ask *a, struct mono now, struct brain_plan *ret_plan);

/* ---- tells: what happened to a ticket */
enum brain_tell_kind {
	BRAIN_TELL_SENT,          /* the request was handed to the worker */
	BRAIN_TELL_SWITCH,        /* leg i failed before anything was sent or safe: now at leg `leg` (moves ledger and flight) */
	BRAIN_TELL_FIRST_TOKEN,   /* first content */
	BRAIN_TELL_TOKENS,        /* so many new tokens since (context growth); optional */
	BRAIN_TELL_USAGE,         /* what the worker reported */
	BRAIN_TELL_END            /* it is over, whatever the way: outcome says how; the ticket is dead */
};
enum brain_outcome { BRAIN_DONE, BRAIN_CLIENT_LEFT, BRAIN_WORKER_ERROR, BRAIN_WORKER_DIED, BRAIN_CONNECT_FAILED, BRAIN_TIMED_OUT, BRAIN_NOT_SENT };
struct brain_tell {
	uint64_t ticket;
	enum brain_tell_kind kind;
	uint32_t leg;                                     /* SWITCH */
	enum brain_outcome outcome; int status;           /* END (status: upstream HTTP status, 0 = none); SWITCH: why the old leg failed */
	uint32_t prompt_tok, cached_tok, output_tok;      /* USAGE; cached UINT32_MAX = unknown; TOKENS: output_tok */
};
void brain_tell(struct brain *b, const struct brain_tell *t, struct mono now);   /* unknown tickets are ignored and counted */
void brain_tick(struct brain *b, struct mono now);                               /* about every 100 ms */
/* A piece (a fraction of a millisecond) of what can wait until others were served. True: there is more. */
bool brain_work(struct brain *b);

/* ---- looking in (admin, tests) */
struct brain_rank_view {
	uint32_t rank; bool events_seen, uncertain, approx; uint64_t events_seq; int64_t events_lag_us; uint32_t index_blocks, lower_blocks;
	uint32_t in_flight_requests; uint64_t in_flight_prompt_tok; uint32_t in_flight_contexts; uint64_t context_tok;
	uint32_t running, waiting; double kv_usage;
};
struct brain_worker_view {
	brain_worker id; struct str pool, url; enum brain_health health; const char *why; bool draining;
	const struct str *names; size_t n_names; const struct str *adapters; size_t n_adapters; uint32_t max_model_len;
	uint32_t block_size; uint64_t blocks; bool prefix_caching; bool from_events;      /* sizes come from events */
	uint32_t n_ranks; struct brain_rank_view ranks[BRAIN_MAX_RANKS_PER_WORKER];
	double slow_factor; double predicted_exact_share; uint64_t predictions, predicted_exact;
	uint64_t told, not_told;         /* prompts that ended well: within half a second its events told their last whole block, or did not */
	uint64_t requests, failures; double ttft_ewma_us, ttft_error_ewma;                /* measured; |predicted - measured| / measured */
	struct str accelerator;
};
size_t brain_workers(const struct brain *b, const struct brain_worker_view **ret_views, struct arena *a);   /* copies in the arena */
/* One at a time, for who has not the time for all: slots are stable, some are empty (false), later workers may take new ones. */
size_t brain_worker_slots(const struct brain *b);
bool brain_worker_in(const struct brain *b, size_t slot, struct arena *a, struct brain_worker_view *ret_v);
/* Block sizes in use by the workers that serve `model` (hands compute keys for these); returns how many (<= KV_MAX_SIZES). */
size_t brain_block_sizes(const struct brain *b, struct str model, uint32_t ret_sizes[KV_MAX_SIZES]);
/* Is the model an adapter somewhere (its seed is its name) ? */
bool brain_is_adapter(const struct brain *b, struct str model);
bool brain_any_usable(const struct brain *b);
struct kv_index_stats brain_index_stats(const struct brain *b);
bool brain_ledger_is_zero(const struct brain *b);
uint64_t brain_generation(const struct brain *b);        /* changes whenever models, sizes, health or membership change: hands refresh their view */

struct brain_candidate { brain_worker worker; int32_t rank; uint32_t hit_tok; struct kv_load lower; /* of the hit: loaded first */ uint32_t in_flight; uint64_t prefill_tok; int64_t ttft_us; enum brain_health health; const char *note; };
struct brain_receipt {
	uint64_t id; struct str request_id, client_id, model; struct mono at; const char *reason, *ids;   /* ids: "keys", "prefix", or why not */
	uint32_t prompt_tok; uint32_t max_hit_tok; uint32_t n_candidates; const struct brain_candidate *candidates; uint32_t chosen;   /* chosen: index in candidates */
	int64_t ttft_predicted_us, ttft_measured_us; uint32_t cached_reported, output_tok; const char *outcome;
};
uint64_t brain_receipt_newest(const struct brain *b);                            /* ids ascend by one; 0: none yet */
/* By our id; else the newest of those that a client gave this id. */
bool brain_receipt_find(const struct brain *b, struct str request_id, struct arena *a, struct brain_receipt *ret);
bool brain_receipt_get(const struct brain *b, uint64_t id, struct arena *a, struct brain_receipt *ret);

#endif
