/* sim/cache.h: which blocks a sequence has, and what it finds in the cache. One pool, one or more groups of layers
 * (full attention, sliding window, Mamba), all with the same block size.
 *
 * Hit rule and sparse storing: shared facts, vllm-observed.md I.3, rules 1 to 10 without partial tails. Sequences are
 * looked up once (match), then grown and committed step by step. A block is findable from the commit on, which is when
 * its step is scheduled; the events of a step are in the batch until its owner sends and clears it.
 *
 * Below the GPU there may be a tier on the CPU, kept as vLLM's OffloadingConnector keeps its own (0.32): a block is stored there at
 * once when it becomes findable, a sequence goes on there where its hit on the GPU ends, up to its last whole block. Its events
 * come behind the GPU's of a step. Clearing the GPU leaves it, as /reset_prefix_cache does. One group of full attention. Pure. */
#ifndef SIM_CACHE_H
#define SIM_CACHE_H

#include "sim/pool.h"

#define SIM_MAX_GROUPS 8
#define SIM_RETAIN_ALL UINT32_MAX

struct sim_group {
	enum sim_spec spec;
	uint32_t window_tok;
};

struct sim_cache_opts {
	uint32_t blocks; /* with the null block, over all groups */
	uint32_t block_tok;
	uint32_t n_groups; /* 0: one group of full attention */
	struct sim_group groups[SIM_MAX_GROUPS];
	uint32_t retain_tok; /* prefix_cache_retention_interval: 0 tail only, N also one tail per N tokens, SIM_RETAIN_ALL dense */
	uint32_t chunk_tok; /* longest chunk of a step: window groups hold so much beside their window */
	bool caching_off;
	uint32_t cpu_blocks; /* of the tier below; 0: none */
	bool cpu_events_full; /* self_describing_kv_events: tokens and parent; else hashes alone */
};

/* Where an item (an image) sits in the prompt. */
struct sim_mm {
	struct str hash;
	uint32_t at_tok, n_tok;
};

/* What besides the tokens is part of a block's identity. Slices outlive the sequence. */
struct sim_identity {
	struct str lora, lora_path, salt, session;
	int64_t lora_id;
	const struct sim_mm *mm;
	size_t n_mm;
};

struct sim_seq {
	struct sim_identity id;
	VEC(uint32_t) tok; /* prompt, then what was generated */
	VEC(uint64_t) hash; /* of each full block so far */
	uint32_t prompt_tok;
	uint32_t hit_blocks, junction_blocks; /* of the last match */
	VEC(uint32_t) block[SIM_MAX_GROUPS]; /* SIM_NO_BLOCK: not kept here */
	uint32_t committed[SIM_MAX_GROUPS]; /* blocks announced or found */
	uint32_t offered; /* blocks that were stored below */
	uint32_t dropped[SIM_MAX_GROUPS]; /* blocks that left the window */
};

struct sim_cache;
struct sim_cache *sim_cache_new(const struct sim_cache_opts *o);
void sim_cache_free(struct sim_cache *c);
struct sim_batch *sim_cache_batch(struct sim_cache *c); /* the events so far */
struct sim_pool *sim_cache_pool(struct sim_cache *c);
uint32_t sim_cache_block_tok(const struct sim_cache *c);
bool sim_cache_has_mamba(const struct sim_cache *c);
/* The longest sequence that fits into the empty cache. */
uint64_t sim_cache_capacity_tok(const struct sim_cache *c);

void sim_seq_init(struct sim_seq *s, const struct sim_identity *id, const uint32_t *tok, size_t n);
void sim_seq_done(struct sim_seq *s); /* after release */

uint32_t sim_cache_match(struct sim_cache *c, struct sim_seq *s); /* tokens found, a multiple of the block; takes no block yet */
uint32_t sim_cache_match_below(const struct sim_cache *c, const struct sim_seq *s); /* tokens behind the match that the CPU tier has */
uint32_t sim_cache_below_blocks(const struct sim_cache *c); /* held by the CPU tier */
bool sim_cache_fits(const struct sim_cache *c, const struct sim_seq *s); /* would the whole sequence fit now, given its match? */
void sim_cache_attach(struct sim_cache *c, struct sim_seq *s); /* takes the matched blocks */
bool sim_cache_grow(struct sim_cache *c, struct sim_seq *s, uint32_t done_tok,
	uint32_t upto_tok); /* blocks for [done, upto); false: no room, nothing changed */
void sim_cache_commit(struct sim_cache *c, struct sim_seq *s, uint32_t upto_tok); /* full blocks become findable, events are added */
void sim_cache_announce_hit(struct sim_cache *c, struct sim_seq *s); /* kv_cache_report_mode=full: matched blocks are said again */
void sim_cache_release(struct sim_cache *c, struct sim_seq *s); /* the tail is freed first */

#endif
