/* base/hash.h: XXH3-64, the one hash of the house (block keys, digests of prompts, hash tables). Not for secrets. */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include "base/str.h"

uint64_t hash_bytes(const void *p, size_t n, uint64_t seed);
static inline uint64_t hash_str(struct str s, uint64_t seed) { return hash_bytes(s.p, s.n, seed); }
/* A 128-bit digest where a collision must not happen by accident (prompt cache keys). */
struct hash128 { uint64_t lo, hi; };
struct hash128 hash_bytes128(const void *p, size_t n, uint64_t seed);
/* Mixes a 64-bit value (for tables keyed by numbers). */
static inline uint64_t hash_mix(uint64_t x)
{
	x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93u;
	x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93u;
	return x ^ (x >> 32);
}

#endif
