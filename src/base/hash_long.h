/* hash_long.h: the same hash for inputs that are worth a call: the library's own, which takes the widest vectors of the processor. */
#ifndef BASE_HASH_LONG_H
#define BASE_HASH_LONG_H

#include "base/base.h"

enum { HASH_LONG_BYTES = 241 }; /* from here on XXH3 goes by vectors */
uint64_t hash_long_bytes(const void *p, size_t n, uint64_t seed);

#endif
