/* base/rand.h: a small seeded generator (splitmix64). Not for secrets. Same seed, same numbers, everywhere. */
#ifndef BASE_RAND_H
#define BASE_RAND_H

#include "base/base.h"

struct rand {
	uint64_t s;
};

static inline uint64_t rand_u64(struct rand *r)
{
	uint64_t z = (r->s += 0x9e3779b97f4a7c15u);
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}
/* 0 <= x < n; n > 0. (Multiply-shift: bias below 2^-32 for n < 2^32.) */
static inline uint64_t rand_below(struct rand *r, uint64_t n) { return (uint64_t)(((unsigned __int128)rand_u64(r) * n) >> 64); }
/* 0 <= x < 1 */
static inline double rand_unit(struct rand *r) { return (double)(rand_u64(r) >> 11) * 0x1p-53; }
double rand_exp(struct rand *r, double mean);                       /* exponential */
double rand_normal(struct rand *r, double mean, double sd);
double rand_lognormal_mean(struct rand *r, double mean, double sigma);  /* lognormal with this mean; sigma of the log */

#endif
