/* hash.c: XXH3 from the header-only form of the library, so that short inputs inline. */
#include "base/hash.h"
#include "base/hash_long.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t hash_bytes(const void *p, size_t n, uint64_t seed)
{
	return n < HASH_LONG_BYTES ? XXH3_64bits_withSeed(p, n, seed) : hash_long_bytes(p, n, seed);
}

struct hash128 hash_bytes128(const void *p, size_t n, uint64_t seed)
{
	XXH128_hash_t h = XXH3_128bits_withSeed(p, n, seed);
	return (struct hash128){ h.low64, h.high64 };
}
