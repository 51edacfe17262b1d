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

#endif
