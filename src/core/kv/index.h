/* kv/index.h: the brain half of the index: our key -> which ranks hold it, per group; prompts in flight; owner memory.
 *
 * Owner: the brain (one per process). Rank ids are small integers (0..KV_MAX_RANKS-1) handed out by kv_index_rank_add.
 * Bounded by the ranks' capacities. Memory goal: <= 48 bytes per (block, rank) including groups.
 * Pure: no clock; `now` only orders the owner memory.
 * Hit rule: vllm-observed.md I.3 (full attention left to right, window ceil((W-1)/B) from the right or an unbroken run from
 * 0, Mamba one state block, fixed point, lcm alignment, at most n_tok - 1). In flight: design routing.md section 2. */
#ifndef KV_INDEX_H
#define KV_INDEX_H

#include "base/err.h"
#include "base/mono.h"
#include "kv/key.h"
#include "kv/rank.h"

enum { KV_MAX_RANKS = 4096 };
typedef uint16_t kv_rank_id;

struct kv_index;
struct kv_index *kv_index_new(void);
void kv_index_free(struct kv_index *x);

must_use enum err kv_index_rank_add(struct kv_index *x, kv_rank_id *ret_id);    /* LIMIT when KV_MAX_RANKS are in use */
void kv_index_rank_del(struct kv_index *x, kv_rank_id id);                      /* everything of it goes; flights end by their own handle */
void kv_index_capacity(struct kv_index *x, kv_rank_id id, uint32_t blocks);     /* bounds approximate mode and owner memory; 0 = unknown */
void kv_index_groups(struct kv_index *x, kv_rank_id id, const struct kv_group *g, size_t n);
void kv_index_apply(struct kv_index *x, kv_rank_id id, const struct kv_delta *d, size_t n);
void kv_index_clear(struct kv_index *x, kv_rank_id id);                         /* prompts in flight stay */
/* Approximate mode (no events reachable): the prompt's blocks are held after dispatch, LRU within capacity. What events told
 * stays, so a stream that comes back goes on where it stopped; what was only guessed goes when the mode ends. */
void kv_index_approx(struct kv_index *x, kv_rank_id id, bool on);
void kv_index_approx_note(struct kv_index *x, kv_rank_id id, const struct kv_prompt *p, struct mono now);
/* A block costs about a microsecond: prompts of more than KV_NOTE_AT_ONCE blocks, and those that come while such a one is not
 * done, are put down later, so many blocks a call, in order. True: there is more. (Until then they are in flight, as a rule.) */
enum { KV_NOTE_AT_ONCE = 256, KV_NOTES_MAX_BLOCKS = 8 << 20 /* what waits beyond this is forgotten: it is a guess */ };
bool kv_index_approx_work(struct kv_index *x, uint32_t max_blocks);

/* Overlap in tokens (what the worker would report as cached) for each of ranks[0..n): true cache plus prompts in flight, then
 * what follows on tiers below the GPU and must be loaded first. That is part of the hit, told apart in *ret_loads (NULL: not asked).
 * Tiers below count for models of full attention alone; of others (windows, Mamba) the GPU's hit is what is predicted. */
struct kv_load { uint32_t cpu_tok, storage_tok; };
void kv_index_hits(const struct kv_index *x, const struct kv_prompt *p, const kv_rank_id *ranks, size_t n, uint32_t *ret_hit_tok, struct kv_load *ret_loads);
/* The largest hit this prompt can have on the GPU of a rank with these groups: aligned n_tok - 1. A load may end at n_tok. */
uint32_t kv_index_max_hit(const struct kv_index *x, const struct kv_prompt *p, kv_rank_id id);

/* A prompt in flight counts as held at its rank from dispatch until it ends. Handles are never 0. */
typedef uint64_t kv_flight;
kv_flight kv_index_flight_begin(struct kv_index *x, kv_rank_id id, const struct kv_prompt *p);
void kv_index_flight_end(struct kv_index *x, kv_flight f);     /* 0 and unknown handles are ignored */
/* Did events tell the rank's store of this prompt's last whole block (full attention)? UNKNOWN: it has none, or the rank is gone. */
enum kv_told { KV_TOLD_UNKNOWN, KV_TOLD, KV_NOT_TOLD };
enum kv_told kv_index_flight_told(const struct kv_index *x, kv_flight f);

/* Owner memory: who last owned a prefix; longer-lived than the cache, bounded by capacity. */
void kv_index_own(struct kv_index *x, kv_rank_id id, const struct kv_prompt *p, struct mono now);
/* The owner of the longest remembered prefix >= min_tok among ranks; false if none. */
bool kv_index_owner(const struct kv_index *x, const struct kv_prompt *p, const kv_rank_id *ranks, size_t n, uint32_t min_tok, kv_rank_id *ret_id, uint32_t *ret_tok);

struct kv_index_stats { uint64_t entries, holdings, flights, flight_entries, owners; size_t bytes, owner_bytes; };   /* bytes: all of it */
struct kv_index_stats kv_index_stats(const struct kv_index *x);
uint32_t kv_index_rank_blocks(const struct kv_index *x, kv_rank_id id);         /* on the GPU, once per group */
uint32_t kv_index_rank_lower_blocks(const struct kv_index *x, kv_rank_id id);   /* on tiers below */

#endif
