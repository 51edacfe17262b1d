/* arena.c: chunked bump allocation. */
#include "base/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/must.h"

enum { CHUNK_MIN = 4096 - 64 };

struct arena_chunk {
	struct arena_chunk *below;
	size_t at, cap;
	_Alignas(16) char mem[];
};

void arena_init(struct arena *a, size_t max_bytes) { *a = (struct arena){ .max_bytes = max_bytes }; }

void arena_done(struct arena *a)
{
	arena_rewind(a, (struct arena_mark){ NULL, 0, 0 });
}

static void *take(struct arena *a, size_t n, size_t size)
{
	size_t bytes, rounded;
	must(!__builtin_mul_overflow(n, size, &bytes) && !__builtin_add_overflow(bytes, 15u, &rounded));
	rounded &= ~(size_t)15;
	if (!a->top || a->top->cap - a->top->at < rounded) {
		size_t want = MAX(rounded, a->top ? MIN(a->top->cap * 2, (size_t)1 << 20) : (size_t)CHUNK_MIN);
		struct arena_chunk *c = must_malloc(sizeof(*c) + want);
		*c = (struct arena_chunk){ .below = a->top, .cap = want };
		a->top = c;
	}
	void *p = a->top->mem + a->top->at;
	a->top->at += rounded;
	a->used_bytes += rounded;
	return p;
}

void *arena_alloc(struct arena *a, size_t n, size_t size) { return memset(take(a, n, size), 0, n * size); }

void *arena_copy(struct arena *a, const void *from, size_t n, size_t size)
{
	void *p = take(a, n, size);
	return n ? memcpy(p, from, n * size) : p;
}

struct str arena_str(struct arena *a, struct str s)
{
	char *p = take(a, s.n + 1, 1);
	if (s.n)
		memcpy(p, s.p, s.n);
	p[s.n] = 0;
	return (struct str){ p, s.n };
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
	va_list ap, again;
	va_start(ap, fmt);
	va_copy(again, ap);
	int n = vsnprintf(NULL, 0, fmt, ap);
	must(n >= 0);
	char *p = take(a, (size_t)n + 1, 1);
	vsnprintf(p, (size_t)n + 1, fmt, again);
	va_end(again);
	va_end(ap);
	return p;
}

struct arena_mark arena_mark(const struct arena *a)
{
	return (struct arena_mark){ a->top, a->top ? a->top->at : 0, a->used_bytes };
}

void arena_rewind(struct arena *a, struct arena_mark m)
{
	while (a->top != m.top) {
		struct arena_chunk *c = a->top;
		a->top = c->below;
		free(c);
	}
	if (a->top)
		a->top->at = m.at;
	a->used_bytes = m.used;
}
