/* base/arena.h: memory that dies together (a request, a generation). Not thread-safe. Zeroed on allocation, unless it is a copy.
 * The limit is soft for the caller to check: arena_over() says when used > max; allocation itself never fails
 * (out of memory aborts), so code that parses untrusted input checks arena_over() at its loop heads. */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include "base/str.h"

struct arena_chunk;
struct arena {
	struct arena_chunk *top;
	size_t used_bytes;
	size_t max_bytes;   /* 0 = none */
};
struct arena_mark {
	struct arena_chunk *top;
	size_t at, used;
};

void arena_init(struct arena *a, size_t max_bytes);
void arena_done(struct arena *a);                        /* frees all; the arena may be used again */
void *arena_alloc(struct arena *a, size_t n, size_t size);   /* n * size, overflow aborts, 16-aligned, zeroed */
void *arena_copy(struct arena *a, const void *from, size_t n, size_t size);   /* the same, holding n elements from there */
#define arena_new(a, T, n) ((T *)arena_alloc((a), (n), sizeof(T)))
struct str arena_str(struct arena *a, struct str s);     /* a copy, NUL behind it */
char *arena_printf(struct arena *a, const char *fmt, ...) printf_like(2, 3);
static inline bool arena_over(const struct arena *a) { return a->max_bytes && a->used_bytes > a->max_bytes; }
struct arena_mark arena_mark(const struct arena *a);
void arena_rewind(struct arena *a, struct arena_mark m); /* frees what came after the mark */

#endif
