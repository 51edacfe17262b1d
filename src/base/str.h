/* base/str.h: a slice of bytes, passed by value; never owns, never NUL-terminated (NUL only at libc borders).
 * Print one with "%.*s", STR_ARG(s). */
#ifndef BASE_STR_H
#define BASE_STR_H

#include <string.h>

#include "base/base.h"

struct str {
	const char *p;
	size_t n;
};

#define STR(lit) ((struct str){ "" lit, sizeof(lit) - 1 })
#define STR_INIT(lit) { "" lit, sizeof(lit) - 1 }   /* for static tables */
#define STR_ARG(s) (int)(s).n, (s).p

struct str str_of(const char *z);                 /* from a C string; NULL gives the empty slice */
struct str str_from(const void *p, size_t n);
/* Names that differ mostly do so in length or first byte: seen without a call. */
static inline bool str_eq(struct str a, struct str b) { return a.n == b.n && (a.n == 0 || (a.p[0] == b.p[0] && memcmp(a.p, b.p, a.n) == 0)); }
bool str_folds_eq(const char *a, const char *b, size_t n);
static inline bool str_ieq(struct str a, struct str b) { return a.n == b.n && str_folds_eq(a.p, b.p, a.n); }   /* ASCII case folded */
bool str_starts(struct str s, struct str prefix);
bool str_istarts(struct str s, struct str prefix);
bool str_ends(struct str s, struct str suffix);
int str_cmp(struct str a, struct str b);
static inline struct str str_skip(struct str s, size_t n)   /* clipped to s */
{
	n = MIN(n, s.n);
	return n ? (struct str){ s.p + n, s.n - n } : s;
}
static inline struct str str_sub(struct str s, size_t from, size_t n)   /* clipped to s */
{
	s = str_skip(s, from);
	return (struct str){ s.p, MIN(n, s.n) };
}
struct str str_trim(struct str s);                         /* spaces, tabs, CR, LF at both ends */
/* Cuts at the first `c`: *ret_head = before, *ret_tail = after. Not found: head = s, tail empty, false. */
bool str_cut(struct str s, char c, struct str *ret_head, struct str *ret_tail);
/* The place of needle in s, or SIZE_MAX. */
size_t str_find(struct str s, struct str needle);
/* Whole-slice numbers, no sign tricks, no spaces, no locale; false on anything else or overflow. */
must_use bool str_to_u64(struct str s, uint64_t *ret_v);
must_use bool str_to_i64(struct str s, int64_t *ret_v);
must_use bool str_to_f64(struct str s, double *ret_v);     /* decimal, finite */
/* Decimal digits, written into the end of `room`. By hand: heads and log lines are full of numbers, printf costs ten times as much. */
enum { STR_U64_MAX = 20 };
struct str str_of_u64(uint64_t v, char room[STR_U64_MAX]);
/* A NUL-terminated heap copy; free() it. */
char *str_dup(struct str s);
/* A heap-owned slice copy (p is NULL-terminated too); free((void *)s.p). */
struct str str_clone(struct str s);
/* Equal in time that depends on the lengths only: for secrets. */
bool str_eq_const_time(struct str a, struct str b);

#endif
