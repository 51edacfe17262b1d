/* base/must.h: asserts that stay on in release builds. A false condition is our bug: say where, abort. */
#ifndef BASE_MUST_H
#define BASE_MUST_H

#include "base/base.h"

no_return void must_fail(const char *file, int line, const char *what);
no_return void must_oom(size_t bytes);

#define must(cond) ((cond) ? (void)0 : must_fail(__FILE__, __LINE__, #cond))

/* malloc, calloc, realloc that abort with a message when memory is out. Free with free(). */
void *must_malloc(size_t n);
void *must_calloc(size_t n, size_t size);
void *must_realloc(void *p, size_t n);

/* Zeroed memory of a table that is looked up all over, aligned to a line of the processor's: from MUST_LARGE_PAGE bytes on in large
 * pages where the system has them, so that few look-ups miss the address cache too. Freed with its size; NULL is fine. */
enum { MUST_LARGE_PAGE = 2 << 20 };
void *must_table(size_t bytes);
void must_table_free(void *p, size_t bytes);

/* Memory for one big job, given back to the system at its end: in large pages where the system has them, which are had as they are
 * touched. Growing up to twice the size it began with moves nothing. Not zeroed when it grows; freed with must_large_free only. */
void *must_large(size_t bytes);
void *must_large_grow(void *p, size_t bytes);
void must_large_free(void *p); /* NULL is fine */

#endif
