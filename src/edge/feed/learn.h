/* feed/learn.h: what a worker's answers say: /v1/models, /metrics, /kv_event_sources. Text in, facts out; pure, so that
 * recordings of real workers are its tests. Hostile answers are bounded: too many entries are cut, never fatal. */
#ifndef FEED_LEARN_H
#define FEED_LEARN_H

#include "base/arena.h"
#include "brain/brain.h"
#include "conf/conf.h"
#include "engine/engine.h"

enum { FEED_MAX_MODELS = 1024, FEED_MAX_NAME_BYTES = 512 };

struct feed_model { struct str id, root, parent; uint32_t max_model_len; };   /* parent "" = base model */
struct feed_models { const struct feed_model *p; size_t n; uint32_t max_model_len; };   /* the least of the base models; 0 = not said */
must_use enum err feed_learn_models(struct str json, struct arena *a, struct feed_models *ret_m);

/* /version: {"version": "0.32.0"}; a heap copy, or "" (NULL). */
struct str feed_learn_version(struct str json);

struct feed_gauges { bool seen; uint32_t running, waiting; double kv_usage; };
struct feed_metrics {
	uint32_t n_ranks;                    /* ranks named by labels; at least 1 */
	struct feed_gauges ranks[BRAIN_MAX_RANKS_PER_WORKER];
	uint32_t block_size; uint64_t blocks; bool prefix_caching;   /* block_size 0: not said; blocks: the sum over ranks */
	bool asleep;                         /* sleeping: the KV cache is gone */
	double started_s;                    /* process_start_time_seconds; 0 = not said. Another value = another process */
	uint64_t prefix_queries, prefix_hits;
	size_t skipped_lines;
};
void feed_learn_metrics(const struct engine *e, struct str text, struct feed_metrics *ret_m);

/* Endpoints by rank, as absolute addresses. `why` != NULL: the worker's events cannot be followed, and why (static). */
struct feed_source { struct str events, replay; };
struct feed_sources { uint32_t n; struct feed_source ranks[BRAIN_MAX_RANKS_PER_WORKER]; const char *why; };
must_use enum err feed_learn_sources(struct str json, const struct conf_worker *w, struct arena *a, struct feed_sources *ret_s);
/* What configuration or the default ports say, for n ranks. */
void feed_default_sources(const struct conf_worker *w, uint16_t events_port, uint16_t replay_port, uint32_t n, struct arena *a, struct feed_sources *ret_s);

#endif
