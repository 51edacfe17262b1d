/* buf.c: bounded growing buffers. */
#include "base/buf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/must.h"

void buf_init(struct buf *b, size_t max) { *b = (struct buf){ .max = max }; }

void buf_done(struct buf *b)
{
	free(b->p);
	*b = (struct buf){ .max = b->max };
}

void buf_clear(struct buf *b) { b->head = b->n = 0; }

enum err buf_reserve(struct buf *b, size_t n, char **ret_p)
{
	if (n > b->max || b->n > b->max - n)
		return ERR_LIMIT;
	if (b->head + b->n + n > b->cap) {
		if (b->head) {
			memmove(b->p, b->p + b->head, b->n);
			b->head = 0;
		}
		if (b->n + n > b->cap) {
			size_t cap = MAX(b->n + n, MIN(b->cap * 2, b->max));
			b->p = must_realloc(b->p, MAX(cap, (size_t)64));
			b->cap = MAX(cap, (size_t)64);
		}
	}
	*ret_p = b->p ? b->p + b->head + b->n : NULL;
	return ERR_OK;
}

void buf_commit(struct buf *b, size_t n)
{
	must(b->head + b->n + n <= b->cap);
	b->n += n;
}

enum err buf_add(struct buf *b, struct str s)
{
	char *p;
	if (s.n == 0)
		return ERR_OK;
	TRY(buf_reserve(b, s.n, &p));
	memcpy(p, s.p, s.n);
	b->n += s.n;
	return ERR_OK;
}

enum err buf_add_byte(struct buf *b, char c) { return buf_add(b, (struct str){ &c, 1 }); }

enum err buf_vprintf(struct buf *b, const char *fmt, va_list ap)
{
	va_list again;
	va_copy(again, ap);
	char small[256], *p;
	int n = vsnprintf(small, sizeof(small), fmt, ap);
	must(n >= 0);
	enum err e;
	if ((size_t)n < sizeof(small)) {
		e = buf_add(b, (struct str){ small, (size_t)n });
	} else {
		char *big = must_malloc((size_t)n + 1);
		vsnprintf(big, (size_t)n + 1, fmt, again);
		e = buf_reserve(b, (size_t)n, &p);
		if (e == ERR_OK) {
			memcpy(p, big, (size_t)n);
			b->n += (size_t)n;
		}
		free(big);
	}
	va_end(again);
	return e;
}

enum err buf_add_u64(struct buf *b, uint64_t v)
{
	char room[STR_U64_MAX];
	return buf_add(b, str_of_u64(v, room));
}

enum err buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	enum err e = buf_vprintf(b, fmt, ap);
	va_end(ap);
	return e;
}

void buf_consume(struct buf *b, size_t n)
{
	must(n <= b->n);
	b->n -= n;
	b->head = b->n ? b->head + n : 0;
}
