/* Helpers of the kv tests: a sink that keeps what the feed half said as a plain set, and short ways to make events. */
#ifndef KV_KIT_H
#define KV_KIT_H

#include "base/arena.h"
#include "base/map.h"
#include "kv/index.h"
#include "kv/rank.h"

struct kit {
	struct kv_rank *r;
	struct map held;               /* key, tier and group -> 1 */
	uint32_t clears, wrong;        /* wrong: a change that changed nothing */
	size_t largest;                /* slice */
	struct kv_group groups[KV_MAX_GROUPS];
	size_t n_groups;
	struct arena a;
	struct kv_event events[64];
	size_t n_events;
	double ts;
};

extern const struct kv_rank_sink kit_sink;    /* its argument: a struct kit */
void kit_init(struct kit *k);
void kit_done(struct kit *k);
/* The gateway starts again: a new rank and an empty set, with what the old rank had saved, if it had anything to save. */
void kit_start_again(struct kit *k, bool has_replay);
bool kit_holds(const struct kit *k, uint64_t key, uint32_t group);      /* on the GPU */
bool kit_holds_on(const struct kit *k, enum kv_tier tier, uint64_t key, uint32_t group);

/* Token ids of a chain named by `seed`: block i of it always has the same ids. */
const uint32_t *kit_ids(struct kit *k, uint32_t seed, uint32_t from_block, uint32_t n_blocks, uint32_t block_size);
/* Our key and the engine's hash of block i of that chain. */
uint64_t kit_key(struct kit *k, uint32_t seed, uint32_t block, uint32_t block_size);
uint64_t kit_hash(uint32_t seed, uint32_t block);

/* Append an event to the batch under way; it may be changed until kit_send. */
struct kv_event *kit_store(struct kit *k, uint32_t seed, uint32_t from, uint32_t n, uint32_t block_size);
struct kv_event *kit_remove(struct kit *k, uint32_t seed, uint32_t block);
/* As an offloading connector names a block: its hash, no tokens. */
struct kv_event *kit_offload(struct kit *k, enum kv_tier tier, uint32_t seed, uint32_t block);
struct kv_event *kit_clear(struct kit *k);
/* Gives the batch under way to the rank and begins a new one. Time goes on by a second each. */
enum kv_act kit_send(struct kit *k, uint64_t seq);
enum kv_act kit_replay(struct kit *k, uint64_t seq);
/* The same batch again at its own time, which a replay of old ones needs. */
enum kv_act kit_send_at(struct kit *k, uint64_t seq, double ts, bool from_replay);

#endif
