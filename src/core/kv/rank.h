/* kv/rank.h: the feed half of the index: one worker rank's engine hashes -> (our key, copies per group), its sequence
 * numbers, and its groups. Turns batches into 0<->1 changes (deltas) for the brain half (kv/index.h).
 *
 * Owner: edge/feed (or a test, or `truth`), one per worker rank; not thread-safe. Memory is bounded by cap_blocks
 * (x1.25 + slack); beyond it the view is wrong: KV_ACT_UNCERTAIN is returned and the caller asks for a replay from 0.
 * Tiers: each medium has its own copies of a block; what is below the GPU may be announced by its hash alone, which means
 * something while any medium holds it (or did earlier in the batch). A clear clears all: an engine that empties the tiers below
 * with its GPU says so with this event alone (vLLM's sleep, weight updates and reset_external).
 * Rules: design routing.md section 2; vllm-observed.md I.2-I.4 (two passes a batch, copies counted per (group, key),
 * removals one hash an event, sequence rules, restart detection on replay). */
#ifndef KV_RANK_H
#define KV_RANK_H

#include "base/buf.h"
#include "kv/event.h"

struct kv_delta { uint64_t key; uint16_t add_groups, del_groups; enum kv_tier tier; };   /* bits = group index */
struct kv_group { enum kv_group_kind kind; uint32_t window_tok, block_size; };

struct kv_rank_sink {
	void (*deltas)(void *arg, const struct kv_delta *d, size_t n);     /* slices of at most 2000, in order */
	void (*clear)(void *arg);                                          /* everything this rank holds is gone */
	void (*groups)(void *arg, const struct kv_group *g, size_t n);     /* the groups as now known (index = group) */
};

/* What the caller must do next. */
enum kv_act {
	KV_ACT_NONE,
	KV_ACT_REPLAY,       /* ask the replay socket from kv_rank_want_seq(); live batches given meanwhile are applied or kept as fits */
	KV_ACT_UNCERTAIN     /* the view may be wrong (gap without replay, over capacity): say so; replay from 0 if there is a socket */
};

struct kv_rank;
struct kv_rank *kv_rank_new(const struct kv_rank_sink *sink, void *arg);
void kv_rank_free(struct kv_rank *r);
void kv_rank_capacity(struct kv_rank *r, uint32_t blocks);         /* a better known bound; 0 = unknown (a default bound holds) */
void kv_rank_has_replay(struct kv_rank *r, bool yes);

/* One batch from the live socket or a replay, with its sequence number. Old ones are dropped (idempotent by sequence). */
enum kv_act kv_rank_batch(struct kv_rank *r, uint64_t seq, const struct kv_batch *b, bool from_replay);
/* The replay asked for has ended (all = its end marker came). Decides restart (newest replayed older than seen). */
enum kv_act kv_rank_replay_end(struct kv_rank *r, bool all);
/* The event socket connected again after a loss, or the worker came back to health: may have restarted silently. */
enum kv_act kv_rank_reconnected(struct kv_rank *r);
uint64_t kv_rank_want_seq(const struct kv_rank *r);
void kv_rank_drop(struct kv_rank *r);                              /* forget everything, to be learnt from nothing: sink clear */
/* The cache is empty, as an event would say it (a sleeping worker): what was told before is not asked for again. */
void kv_rank_cleared(struct kv_rank *r);

/* For a gateway that starts again (save.c). NOT_FOUND: the view is not worth it: nothing seen, uncertain, a replay under way. LIMIT: buf is full, and as before. */
must_use enum err kv_rank_save(const struct kv_rank *r, struct buf *buf);
size_t kv_rank_save_bytes(const struct kv_rank *r);
/* Into a new rank. The view is uncertain until a replay from its last number shows that the worker is still the same; where it is
 * not, or there is no replay socket, all is forgotten by the usual rules. SYNTAX: it is no such text; the rank is as new. */
must_use enum err kv_rank_load(struct kv_rank *r, struct str saved);

struct kv_rank_stats {
	uint64_t batches, events, stored_blocks, removed_blocks, clears, duplicates, gaps, restarts, replays, unplaced, skipped, odd_parts, over_capacity;
	uint64_t next_seq; bool seen_any, uncertain;
	uint32_t blocks;            /* distinct engine hashes held on the GPU */
	uint32_t lower_blocks;      /* and on the tiers below, a block on two counting twice */
	double last_ts_s;
	size_t bytes;
};
struct kv_rank_stats kv_rank_stats(const struct kv_rank *r);

#endif
