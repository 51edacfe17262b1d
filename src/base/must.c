/* must.c: the end of the road for bugs and for out of memory. */
#include "base/must.h"

#include <stdio.h>
#include <stdlib.h>

void must_fail(const char *file, int line, const char *what)
{
	fprintf(stderr, "level=fatal event=bug at=%s:%d must=\"%s\"\n", file, line, what);
	abort();
}

void must_oom(size_t bytes)
{
	fprintf(stderr, "level=fatal event=out_of_memory bytes=%zu\n", bytes);
	abort();
}

void *must_malloc(size_t n)
{
	void *p = malloc(n ? n : 1);
	if (!p)
		must_oom(n);
	return p;
}

void *must_calloc(size_t n, size_t size)
{
	void *p = calloc(n ? n : 1, size ? size : 1);
	if (!p)
		must_oom(n * size);
	return p;
}

void *must_realloc(void *old, size_t n)
{
	void *p = realloc(old, n ? n : 1);
	if (!p)
		must_oom(n);
	return p;
}
