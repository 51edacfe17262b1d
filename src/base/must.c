/* must.c: the end of the road for bugs and for out of memory. */
#include "base/must.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

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

/* ---- tables */

enum { LINE_BYTES = 64 };

static size_t rounded(size_t n, size_t to) { return (n + to - 1) & ~(to - 1); }

/* The system must hear of it before the first byte is touched. What lies before and behind the aligned part goes back. */
static char *large_pages(size_t n)
{
	size_t all = n + MUST_LARGE_PAGE;
	char *p = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		must_oom(all);
	size_t before = rounded((uintptr_t)p, MUST_LARGE_PAGE) - (uintptr_t)p;
	if (before)
		(void)munmap(p, before);
	if (before < MUST_LARGE_PAGE)
		(void)munmap(p + before + n, MUST_LARGE_PAGE - before);
	(void)madvise(p + before, n, MADV_HUGEPAGE);
	return p + before;
}

/* Each large page is one fault, had here and not by the first look-ups. */
static void *touched(char *p, size_t n)
{
	for (size_t i = 0; i < n; i += MUST_LARGE_PAGE)
		((volatile char *)p)[i] = 0;
	return p;
}

void *must_table(size_t bytes)
{
	if (bytes >= MUST_LARGE_PAGE)
		return touched(large_pages(rounded(bytes, MUST_LARGE_PAGE)), rounded(bytes, MUST_LARGE_PAGE));
	size_t n = rounded(bytes ? bytes : 1, LINE_BYTES);
	void *p = aligned_alloc(LINE_BYTES, n);
	if (!p)
		must_oom(n);
	return memset(p, 0, n);
}

void must_table_free(void *p, size_t bytes)
{
	if (p && bytes >= MUST_LARGE_PAGE)
		(void)munmap(p, rounded(bytes, MUST_LARGE_PAGE));
	else
		free(p);
}

/* ---- big jobs: in front of the memory stands how much address space it has */

enum { HEAD_BYTES = LINE_BYTES };

static size_t *head_of(void *p) { return (size_t *)(void *)((char *)p - HEAD_BYTES); }

void *must_large(size_t bytes)
{
	if (bytes > SIZE_MAX / 4)
		must_oom(bytes);
	size_t all = rounded(HEAD_BYTES + 2 * bytes, MUST_LARGE_PAGE);
	char *p = large_pages(all) + HEAD_BYTES;
	*head_of(p) = all;
	return p;
}

void *must_large_grow(void *old, size_t bytes)
{
	size_t room = *head_of(old) - HEAD_BYTES;
	if (bytes <= room)
		return old;
	void *p = must_large(bytes);
	memcpy(p, old, room);
	must_large_free(old);
	return p;
}

void must_large_free(void *p)
{
	if (p)
		(void)munmap(head_of(p), *head_of(p));
}
