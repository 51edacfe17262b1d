/* base/buf.h: a growing buffer that is born with its limit (`max` bytes). Owned by whoever called buf_init.
 * Appending past the limit returns ERR_LIMIT and changes nothing. Consuming from the front is cheap. */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stdarg.h>

#include "base/err.h"
#include "base/str.h"

struct buf {
	char *p;       /* heap, or NULL while empty */
	size_t head;   /* first live byte */
	size_t n;      /* live bytes */
	size_t cap;
	size_t max;    /* the limit on n */
};

void buf_init(struct buf *b, size_t max);
void buf_done(struct buf *b);                       /* frees; b may be used again (empty, same limit) */
void buf_clear(struct buf *b);                      /* keeps the memory */
must_use enum err buf_add(struct buf *b, struct str s);
must_use enum err buf_add_byte(struct buf *b, char c);
must_use enum err buf_add_u64(struct buf *b, uint64_t v);   /* decimal */
must_use enum err buf_printf(struct buf *b, const char *fmt, ...) printf_like(2, 3);
must_use enum err buf_vprintf(struct buf *b, const char *fmt, va_list ap) printf_like(2, 0);
void buf_consume(struct buf *b, size_t n);          /* n <= b->n */
static inline struct str buf_str(const struct buf *b) { return (struct str){ b->p ? b->p + b->head : "", b->n }; }
/* Room for n more bytes: *ret_p is where to write; then buf_commit(b, written). */
must_use enum err buf_reserve(struct buf *b, size_t n, char **ret_p);
void buf_commit(struct buf *b, size_t n);

#endif
