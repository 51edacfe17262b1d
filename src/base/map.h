/* base/map.h: open-addressing table from a 64-bit key to a 64-bit value. Key 0 is an ordinary key. Grows by doubling
 * (load <= 3/4); removal leaves no tombstones (backward shift). For string keys: hash_str() and check on the value. */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include "base/base.h"

struct map_slot { uint64_t key, value; };
struct map {
	struct map_slot *slots;
	uint8_t *used;
	size_t n, cap;   /* cap: 0 or a power of two */
};

void map_init(struct map *m);
void map_done(struct map *m);
bool map_get(const struct map *m, uint64_t key, uint64_t *ret_value);
void *map_get_ptr(const struct map *m, uint64_t key);          /* NULL if absent */
void map_put(struct map *m, uint64_t key, uint64_t value);     /* inserts or replaces */
static inline void map_put_ptr(struct map *m, uint64_t key, void *p) { map_put(m, key, (uint64_t)(uintptr_t)p); }
/* Room for n keys, so that no put up to there moves the others. Costs address space; memory only as far as it is used. */
void map_reserve(struct map *m, size_t n);
bool map_del(struct map *m, uint64_t key);                     /* was it there? */
/* Walk: for (size_t i = map_first(m); i < m->cap; i = map_next(m, i)) use m->slots[i]. No changes inside. */
size_t map_next(const struct map *m, size_t i);
static inline size_t map_first(const struct map *m) { return map_next(m, SIZE_MAX); }

#endif
