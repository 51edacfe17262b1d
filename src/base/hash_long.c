/* hash_long.c: apart from hash.c, because the library's header gives its functions either inline or dispatched. */
#include "base/hash_long.h"

#if defined(__x86_64__)
#include <xxh_x86dispatch.h>
#else
#include <xxhash.h>
#endif

uint64_t hash_long_bytes(const void *p, size_t n, uint64_t seed) { return XXH3_64bits_withSeed(p, n, seed); }
