/* fleet/fleet.h: who can serve: workers, their data-parallel ranks, pools, models, and what is known about each.
 *
 * Owner: the brain (one fleet per process, its thread). Structs are open for reading; they are written only by fleet_*
 * functions: health by fleet_enter (fleet/health.h), counters by the ledger (fleet/ledger.h), facts by fleet_fact_*.
 * A worker is an object with its own id: one that is drained and added again is a new object, so what a request counted
 * is taken from the object it was counted on. A drained worker leaves the table when its last reference ends.
 * Facts carry their age; old gauges lose their weight and never stop traffic. Pure: `now` is an argument.
 * Bounded: FLEET_MAX_WORKERS workers, FLEET_MAX_RANKS ranks each, FLEET_MAX_NAMES names and adapters each. */
#ifndef FLEET_FLEET_H
#define FLEET_FLEET_H

#include "base/err.h"
#include "base/map.h"
#include "base/mono.h"
#include "base/str.h"
#include "base/vec.h"

enum { FLEET_MAX_WORKERS = 2048, FLEET_MAX_RANKS = 16, FLEET_MAX_NAMES = 256, FLEET_MAX_SIZES = 4 };

enum fleet_health { FLEET_UNKNOWN, FLEET_HEALTHY, FLEET_DEGRADED, FLEET_DRAINING, FLEET_DOWN, FLEET_HEALTH_COUNT_ };

/* What is in flight at one rank (fleet/ledger.h counts it). */
struct fleet_load {
	uint32_t requests;       /* chosen and not ended */
	uint32_t unanswered;     /* of those: no first token seen (whatever was predicted) */
	uint32_t contexts;       /* of those: decoding */
	uint64_t prefill_tok;    /* uncached prompt tokens not yet prefilled */
	uint64_t context_tok;    /* tokens of the contexts that decode */
	uint64_t new_tok;        /* uncached prompt tokens plus what was generated: the cache space they take */
};

struct fleet_rank {
	uint16_t kv_id;                            /* the brain's handle of this rank in the index */
	struct fleet_load load;
	/* gauges, from scrapes: they only correct */
	uint32_t running, waiting;
	double kv_usage;
	struct mono gauges_at;
	uint32_t peak_requests;                    /* our own since the last gauges */
	uint32_t foreign_requests;                 /* seen by the gauges beyond ours: another gateway, a direct client */
	/* events */
	bool events_seen, uncertain;
	uint64_t events_seq;
	int64_t events_lag_us;
	uint32_t sizes[FLEET_MAX_SIZES], n_sizes;  /* block sizes of its cache groups, from events; none: not known */
};

/* What was measured on a worker's answers; sched reads and writes it. */
struct fleet_measured {
	double slow_log;                 /* log of the slow factor */
	uint64_t samples, pool_samples;  /* its own, and its pool's at the last of them */
	double duration_ewma_us;         /* first token to end */
	double new_tok_ewma;             /* uncached tokens of a request */
	double peak_ewma_us;             /* of p2c-ewma */
	struct mono peak_ewma_at;
	double ttft_ewma_us, ttft_error_ewma;
};

struct fleet_pool {
	struct str name;
	bool has_policy;
	uint8_t policy;                  /* opaque here: the brain's routing */
	bool panic;
	double slow_log;                 /* what its workers measure together: a newcomer starts from it */
	uint64_t samples;
	uint32_t n_workers, by_health[FLEET_HEALTH_COUNT_];
};

struct sched_profile;
struct fleet_worker {
	/* what a choice reads, close together: a fleet of thousands is walked for every request */
	uint32_t id;
	enum fleet_health health;
	uint32_t n_ranks, max_model_len, block_size;   /* block_size: of the metrics, provisional */
	bool prefix_caching, has_cache_fact;
	bool by_probe;                   /* degraded by a probe: a good probe mends it */
	uint64_t blocks, url_hash;
	struct fleet_pool *pool;
	struct fleet_worker *elder;      /* a draining worker at the same URL: its load is there too */
	const struct sched_profile *profile;   /* of the accelerator; whoever adds or changes the worker sets it */
	struct mono slow_start_at;
	struct fleet_measured measured;
	struct fleet_rank ranks[FLEET_MAX_RANKS];
	/* who it is */
	struct str url, accelerator;
	const char *why;                 /* static text: why it is in this state */
	struct mono since;
	uint32_t refs;                   /* requests that count on it */
	/* health bookkeeping (fleet/health.h) */
	double failures; struct mono failures_at;
	uint32_t failures_in_row, probe_failures, ejections;
	struct mono held_until, last_ok;
	/* facts */
	struct str *names, *adapters;
	uint32_t n_names, n_adapters;
	struct mono models_at, cache_at;
	uint64_t n_requests, n_failures;
};

/* A name that can be asked for: in one pool, or (pool NULL) anywhere. */
struct fleet_model {
	struct str name;
	const struct fleet_pool *pool;
	bool adapter;
	uint32_t turn;                   /* round robin's own counter */
	VEC(struct fleet_worker *) workers;
};

struct fleet_ops {                       /* called from inside; must not call back */
	void (*on_health)(void *arg, struct fleet_worker *w, enum fleet_health from, const char *why);
	void (*on_panic)(void *arg, struct fleet_pool *p, bool on);
	void (*on_rank)(void *arg, struct fleet_worker *w, uint32_t rank, bool added);   /* a rank appears or goes */
};
struct fleet;
struct fleet *fleet_new(const struct fleet_ops *ops, void *arg);
void fleet_free(struct fleet *f);

/* DUPLICATE: this URL is in this pool already. LIMIT: the table is full. */
must_use enum err fleet_add(struct fleet *f, struct str pool, struct str url, struct str accelerator, struct mono now, struct fleet_worker **ret_w);
void fleet_change(struct fleet *f, struct fleet_worker *w, struct str pool, struct str url, struct str accelerator);
void fleet_pool_policy(struct fleet_worker *w, bool has_policy, uint8_t policy);
void fleet_drain(struct fleet *f, struct fleet_worker *w, struct mono now);
struct fleet_worker *fleet_worker_of(const struct fleet *f, uint32_t id);       /* NULL: no such worker (any more) */
/* Every worker, draining ones too: for (size_t i = 0; i < fleet_slots(f); i++) if ((w = fleet_slot(f, i))) ... */
size_t fleet_slots(const struct fleet *f);
struct fleet_worker *fleet_slot(const struct fleet *f, size_t i);
size_t fleet_workers(const struct fleet *f);                                    /* how many */
size_t fleet_slot_of(const struct fleet_worker *w);                             /* its i in fleet_slot, for tables beside this one */

/* References keep a draining worker; the last one to go removes it. */
void fleet_hold(struct fleet_worker *w);
void fleet_release(struct fleet *f, struct fleet_worker *w);

/* ---- models */
/* pool "" = anywhere. NULL: nobody lists the name. Good until the next fact, add or drain. */
struct fleet_model *fleet_model_of(struct fleet *f, struct str pool, struct str name);
/* The one base model of a pool ("" = of all pools): NULL when there is none or *ret_many says there are several. */
struct fleet_model *fleet_model_default(struct fleet *f, struct str pool, bool *ret_many);
bool fleet_any_models(const struct fleet *f);
bool fleet_is_adapter(struct fleet *f, struct str name);

/* ---- facts; each returns whether something changed that others should know (names, sizes, ranks) */
struct fleet_models_fact { const struct str *names; size_t n_names; const struct str *adapters; size_t n_adapters; uint32_t max_model_len; };
bool fleet_fact_models(struct fleet *f, struct fleet_worker *w, const struct fleet_models_fact *m, struct mono now);
struct fleet_cache_fact { uint32_t block_size; uint64_t blocks; uint32_t ranks; bool prefix_caching; };
bool fleet_fact_cache(struct fleet *f, struct fleet_worker *w, const struct fleet_cache_fact *c, struct mono now);
void fleet_fact_gauges(struct fleet_worker *w, uint32_t rank, uint32_t running, uint32_t waiting, double kv_usage, struct mono now);
bool fleet_fact_sizes(struct fleet_worker *w, uint32_t rank, const uint32_t *sizes, size_t n);
/* The rank, made if the worker did not have it yet; NULL beyond FLEET_MAX_RANKS. */
struct fleet_rank *fleet_rank_of(struct fleet *f, struct fleet_worker *w, uint32_t rank);

/* The block sizes a rank uses: those of its groups, else the provisional one; returns how many. */
size_t fleet_rank_sizes(const struct fleet_worker *w, uint32_t rank, uint32_t ret_sizes[FLEET_MAX_SIZES]);
uint64_t fleet_rank_capacity(const struct fleet_worker *w);    /* blocks of one rank; 0 = not known */
/* What the gauges saw beyond our own requests, fading with the age of the gauges (0 after 10 s). */
double fleet_foreign(const struct fleet_rank *r, struct mono now);
/* Of fresh gauges (5 s), else 0; pressed: nearly full, and requests wait for room. */
double fleet_kv_usage(const struct fleet_rank *r, struct mono now);
bool fleet_pressed(const struct fleet_rank *r, struct mono now);

#endif
