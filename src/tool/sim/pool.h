/* sim/pool.h: the physical KV blocks of one engine: reference counts, the free queue, and which hash each block holds.
 *
 * A freed block keeps its hash and stays findable until it is taken for something else: that is the eviction, and it is
 * announced as one BlockRemoved. Equal hashes may sit in several blocks (vLLM does not merge them); each copy's
 * eviction is announced. The free queue is least recently freed first; blocks that hold no hash go to its front
 * (vLLM since 0.24). Block 0 is the null block and is never given out. Pure; events go to the batch given. */
#ifndef SIM_POOL_H
#define SIM_POOL_H

#include "sim/event.h"

#define SIM_NO_BLOCK 0u

struct sim_pool;
struct sim_pool *sim_pool_new(uint32_t blocks, struct sim_batch *out); /* blocks include the null block */
void sim_pool_free(struct sim_pool *p);

uint32_t sim_pool_take(struct sim_pool *p); /* SIM_NO_BLOCK when none is free; one reference */
void sim_pool_touch(struct sim_pool *p, uint32_t b); /* one more reference */
void sim_pool_drop(struct sim_pool *p, uint32_t b); /* one less; at zero to the free queue */
void sim_pool_hold(struct sim_pool *p, uint32_t b, uint32_t group, uint64_t hash); /* b now holds this content */
uint32_t sim_pool_find(const struct sim_pool *p, uint32_t group, uint64_t hash); /* the oldest copy, or SIM_NO_BLOCK */
bool sim_pool_in_use(const struct sim_pool *p, uint32_t b);
size_t sim_pool_free_blocks(const struct sim_pool *p);
size_t sim_pool_held(const struct sim_pool *p); /* blocks with a hash, in use or not */
uint32_t sim_pool_size(const struct sim_pool *p); /* without the null block */
/* Forgets all content and announces AllBlocksCleared; false and nothing happens while a block is in use. */
bool sim_pool_reset(struct sim_pool *p);

#endif
