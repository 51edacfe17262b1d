/* feed/feed_priv.h: shared insides of edge/feed. */
#ifndef FEED_FEED_PRIV_H
#define FEED_FEED_PRIV_H

#include "base/list.h"
#include "base/map.h"
#include "base/rand.h"
#include "base/vec.h"
#include "feed/feed.h"
#include "feed/learn.h"
#include "feed/metric.h"
#include "model/model.h"

enum { FEED_TURN_BLOCKS = 2000, FEED_MAX_REPLAYS = 8, FEED_REPLAY_TRIES = 3 };

enum feed_job_kind { FEED_JOB_HEALTH, FEED_JOB_MODELS, FEED_JOB_METRICS, FEED_JOB_SOURCES, FEED_JOB_VERSION, FEED_JOB_EMBEDS, FEED_JOBS };

/* One question asked again and again; at most one under way. */
struct feed_job {
	struct feed_worker *w;
	enum feed_job_kind kind;
	struct io_timer *timer;
	struct http_fetch *fetch;
	uint64_t asked, failed;
	uint32_t unlearnt;                   /* answers in a row that taught nothing */
};

struct feed_rank;
struct feed_worker {
	struct list node;
	struct feed *feed;
	brain_worker id;
	uint32_t refs;                       /* name look-ups under way keep the memory */
	bool wanted, draining, dead;
	bool said_twice;                     /* the log has said that it is named twice */
	struct mono born;
	/* from configuration */
	struct arena arena;
	struct conf_worker conf;
	struct str pool, source;
	const struct engine *engine;
	bool drop_authorization;
	struct str host_header, authorization;
	/* learnt */
	struct io_addr addr;
	bool literal, resolving;             /* the host is an address; a look-up is under way */
	struct feed_job jobs[FEED_JOBS];
	bool up, ever_up, unauthorized;      /* last probe good; /v1/models said 401 */
	char probe[160];                     /* what the last one said, for people */
	int probe_status;                    /* that the log knows of */
	struct arena models_arena;
	struct feed_models models;
	struct feed_metrics metrics;
	bool has_metrics;
	struct str version;                  /* the engine's, heap; "" = not said */
	bool version_final, version_told;    /* told: at least once since the worker is known */
	bool embeds, embeds_final;           /* it has the route; asked of versions that register it for such models only */
	/* events */
	struct arena sources_arena;
	struct feed_sources sources;
	bool sources_told, sources_final;    /* by the worker's own route; known, need not be asked again until it restarts */
	const char *events_why;
	struct feed_rank *ranks[BRAIN_MAX_RANKS_PER_WORKER];
	uint32_t n_ranks;
	struct mono reopen_at;               /* a rank could not be opened for want of descriptors */
	uint64_t restarts;
};

struct feed_disc;
struct feed {
	struct io_loop *loop;
	struct io_zhub *zhub;
	struct http_pool *pool;
	struct brain *brain;
	struct conf *conf;
	struct list workers;
	struct map by_id;                    /* of the same workers */
	VEC(struct feed_disc *) discs;
	struct io_timer *tick, *view_timer, *pump;
	struct io_soon work;                 /* the brain's */
	struct rand rand;
	struct list pending;                 /* ranks with undone work */
	unsigned replays;
	struct feed_kept *kept;              /* the index of the life before, for a minute; may be NULL */
	struct feed_view *view;
	bool view_dirty, draining;
	struct mono view_rest_until;
	void (*on_view)(void *arg, struct feed_view *v);
	void *arg;
	struct obs_set *metrics;
	struct model_store *tokenizers;
	unsigned ticks;
};

void feed_count(struct feed *f, uint32_t row, uint64_t n);
void feed_count1(struct feed *f, uint32_t row, const char *label);
void feed_count2(struct feed *f, uint32_t row, const char *label, const char *label2);

/* worker.c */
struct feed_worker *feed_worker_new(struct feed *f, const struct conf_worker *c, const struct conf_pool *p, struct str source);
void feed_worker_change(struct feed_worker *w, const struct conf_worker *c, const struct conf_pool *p, struct str source);
void feed_worker_drain(struct feed_worker *w);
void feed_worker_free(struct feed_worker *w);       /* gone from every list at once; memory follows when look-ups ended */
void feed_worker_resolve(struct feed_worker *w);     /* asks for the address again; nothing to do for literals */
/* The worker may be another process now: ask everything anew. */
void feed_worker_relearn(struct feed_worker *w, const char *why);

/* probe.c: the questions */
void feed_jobs_start(struct feed_worker *w);
void feed_jobs_stop(struct feed_worker *w);
void feed_job_soon(struct feed_worker *w, enum feed_job_kind k);

/* follow.c: which event endpoints a worker has */
void feed_follow(struct feed_worker *w);            /* (re)opens ranks as the sources now say */
void feed_follow_again(struct feed_worker *w);      /* each tick: ranks that could not be opened, when their rest is over */
void feed_follow_stop(struct feed_worker *w);

/* events.c: one rank's stream */
struct feed_rank *feed_rank_open(struct feed_worker *w, uint32_t rank, const struct feed_source *s);
void feed_rank_close(struct feed_rank *r);
bool feed_rank_same(const struct feed_rank *r, const struct feed_source *s);
void feed_rank_capacity(struct feed_rank *r, uint64_t blocks);
void feed_rank_cleared(struct feed_rank *r);           /* the cache is known to be empty (sleeping worker) */
void feed_rank_reconnected(struct feed_rank *r);    /* the worker came back to health */
void feed_rank_tick(struct feed_rank *r);
void feed_rank_info(const struct feed_rank *r, struct arena *a, struct feed_rank_info *ret_i);
void feed_pump(void *feed);

enum err feed_rank_save(const struct feed_rank *r, struct buf *buf);     /* as kv_rank_save() */
size_t feed_rank_save_bytes(const struct feed_rank *r);

/* keep.c: NULL: there is nothing to be had from that file, as the log says */
struct feed_kept;
struct feed_kept *feed_kept_read(const char *path);
void feed_kept_free(struct feed_kept *k);
void feed_kept_give(const struct feed_kept *k, struct str url, uint32_t rank, struct kv_rank *kv);

/* discovery.c */
struct feed_disc *feed_disc_new(struct feed *f, struct str pool, struct str path);
void feed_disc_free(struct feed_disc *d);
struct str feed_disc_pool(const struct feed_disc *d);
struct str feed_disc_path(const struct feed_disc *d);
size_t feed_disc_workers(const struct feed_disc *d, const struct conf_worker **ret_w);
void feed_disc_read(struct feed_disc *d);           /* reads now; a fault keeps the old list */
void feed_disc_info(const struct feed_disc *d, struct arena *a, struct feed_discovery_info *ret_i);

/* feed.c */
void feed_apply(struct feed *f);                    /* wanted workers -> running workers */
void feed_mark(struct feed *f);                     /* the view is old: a new one within 20 ms */
void feed_refresh(struct feed *f);                  /* a new view now, or where many workers make views costly, when the last one is older */
const struct conf_pool *feed_pool(const struct feed *f, struct str name);
bool feed_guess_taken(const struct feed_worker *w); /* another worker of this host would be guessed the same default port */

/* view.c */
struct feed_view *feed_view_make(const struct feed *f);

#endif
