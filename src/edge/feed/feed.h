/* feed/feed.h: the hub: learns the fleet and keeps the brain informed. It makes the brain, and lives on the brain's loop.
 *
 * For each worker of the configuration (and of discovery files): resolve, probe /health, /v1/models, /metrics, ask
 * /kv_event_sources, follow the KV events of every rank (replay, gaps, restarts), and tell the brain. Hands see the fleet
 * through immutable views (feed/view.h): on_view is called on this loop with each new one.
 * Order: feed_new -> feed_configure at each reload -> feed_free. Nothing else may call the brain's facts.
 * Thread: everything here belongs to the loop given. */
#ifndef FEED_FEED_H
#define FEED_FEED_H

#include "brain/brain.h"
#include "conf/conf.h"
#include "feed/view.h"
#include "http/client.h"
#include "io/zmq.h"
#include "kv/rank.h"
#include "model/model.h"
#include "obs/metric.h"

struct feed;
struct feed_opts {
	struct io_loop *loop;
	struct io_zhub *zhub;                                      /* NULL: no events */
	struct conf *conf;                                         /* the feed takes a reference of its own */
	uint64_t seed;                                             /* of jitter and of the brain; 0 = from the kernel */
	void (*on_view)(void *arg, struct feed_view *v);           /* borrowed: feed_view_ref() what is kept */
	void *arg;
};
struct feed *feed_new(const struct feed_opts *o);
void feed_free(struct feed *f);
struct brain *feed_brain(struct feed *f);
/* A new generation: workers are added, changed, drained; requests under way go on; tokenizers whose files are as they were stay. */
void feed_configure(struct feed *f, struct conf *c);
/* Tokenizers are read from disk again, and what was known of them is forgotten. */
void feed_reload_tokenizers(struct feed *f);
/* The current view (borrowed); never NULL. */
struct feed_view *feed_view_now(const struct feed *f);
/* The process is shutting down: views say so. */
void feed_drain(struct feed *f);
/* The process ends: the index goes to the file that the configuration names, if it names one. */
void feed_keep(const struct feed *f);

/* ---- looking in (admin); slices live in the arena */
struct feed_rank_info {
	struct str events, replay;           /* endpoints; "" = none */
	bool connected, uncertain, replaying;
	size_t queue_bytes;
	uint64_t dropped, undecoded, replay_asks, replay_timeouts;
	struct kv_rank_stats kv;
};
struct feed_worker_info {
	brain_worker id;
	struct str url, pool, source;        /* source: "flags", "config" or the discovery file */
	struct str role, accelerator;
	const struct conf_label *labels; size_t n_labels;
	bool resolved, has_key, asleep;
	struct str probe;                    /* last probe: "ok", or what was wrong */
	struct str events_why;               /* why events are not followed; "" = they are */
	uint64_t probes, probe_failures, scrapes, scrape_failures, restarts;
	const struct feed_rank_info *ranks; size_t n_ranks;
};
bool feed_info(const struct feed *f, brain_worker id, struct arena *a, struct feed_worker_info *ret_info);
size_t feed_infos(const struct feed *f, size_t max, struct arena *a, const struct feed_worker_info **ret_infos);   /* the first ones */

struct feed_discovery_info {
	struct str pool, file, fault;        /* fault "" = the file was read; else why the old list stays */
	size_t workers, bad_lines;
};
size_t feed_discoveries(const struct feed *f, struct arena *a, const struct feed_discovery_info **ret_infos);

/* The tokenizers of the models that are served now. */
size_t feed_tokenizers(const struct feed *f, struct arena *a, const struct model_info **ret_infos);

/* Counters (one thread: the hub's). */
const struct obs_set *feed_metrics(const struct feed *f);
const struct obs_def *feed_metric_rows(size_t *ret_n);

#endif
