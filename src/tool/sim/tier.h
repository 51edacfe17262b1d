/* sim/tier.h: which blocks a tier below the GPU holds: a set of so many hashes, the least recently used out first. Pure. */
#ifndef SIM_TIER_H
#define SIM_TIER_H

#include "base/base.h"

struct sim_tier;
struct sim_tier *sim_tier_new(uint32_t blocks); /* at least 1 */
void sim_tier_free(struct sim_tier *t);

uint32_t sim_tier_size(const struct sim_tier *t);
uint32_t sim_tier_held(const struct sim_tier *t);
bool sim_tier_has(const struct sim_tier *t, uint64_t hash);
bool sim_tier_touch(struct sim_tier *t, uint64_t hash); /* now the newest; false: not there */
/* One that is not there becomes the newest; true: the oldest had to go for it. */
bool sim_tier_add(struct sim_tier *t, uint64_t hash, uint64_t *ret_evicted);

#endif
