/* engine/engine.h: what is known about an inference engine by name, as a table: how its KV cache events are decoded, under
 * which names it reports its gauges. The rest of the house asks here and names no vendor.
 *
 * Pure. A row is static and lives for ever. */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include "base/arena.h"
#include "base/err.h"
#include "kv/event.h"

/* What a worker's /metrics page can tell. The comment gives the unit. */
enum engine_fact {
	ENGINE_REQUESTS_RUNNING,       /* requests */
	ENGINE_REQUESTS_WAITING,       /* requests */
	ENGINE_KV_USAGE,               /* 0..1 */
	ENGINE_PREFIX_QUERIES,         /* tokens, counter */
	ENGINE_PREFIX_HITS,            /* tokens, counter */
	ENGINE_PREEMPTIONS,            /* counter */
	ENGINE_GENERATION_TOKENS,      /* tokens, counter */
	ENGINE_CACHE_CONFIG,           /* value 1; the facts are in its labels (struct engine_labels) */
	ENGINE_SLEEP_STATE             /* value 1 for the state named by the label */
};
enum { ENGINE_FACTS = ENGINE_SLEEP_STATE + 1 };

struct engine_metric { struct str name; enum engine_fact fact; };

/* Names of labels on those metrics. */
struct engine_labels {
	struct str model, rank;                                    /* model_name; data-parallel rank as a number */
	struct str block_size, blocks, prefix_caching;             /* on ENGINE_CACHE_CONFIG; blocks: the sum over the ranks */
	struct str sleep_state, awake;                             /* on ENGINE_SLEEP_STATE: the label and its value when awake */
};

struct engine {
	struct str name;
	/* Decodes one message (the last frame) into *ret_b. Slices point into `payload` and `a`: keep both until the batch
	 * was applied. An unusable event is skipped and counted; ERR_SYNTAX: not a batch at all; ERR_LIMIT: the arena's or the
	 * decoder's limit was reached. Nothing is kept between calls. */
	enum err (*events)(struct str payload, struct arena *a, struct kv_batch *ret_b);
	const struct engine_metric *metrics;
	size_t n_metrics;
	struct engine_labels labels;
	uint16_t events_port, replay_port;                         /* where it publishes by default; + data-parallel rank */
};

/* The row of that name ("" = the default engine); NULL: unknown. */
const struct engine *engine_of(struct str name);
/* Which fact a metric of this name is; false if none we use. The whole name counts, so no prefix is mistaken for another. */
bool engine_fact_of(const struct engine *e, struct str metric, enum engine_fact *ret_fact);

#endif
