/* str.c: slices. */
#include "base/str.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/must.h"

struct str str_of(const char *z) { return (struct str){ z, z ? strlen(z) : 0 }; }
struct str str_from(const void *p, size_t n) { return (struct str){ p, n }; }

static unsigned char fold(unsigned char c) { return c >= 'A' && c <= 'Z' ? (unsigned char)(c + 32) : c; }

bool str_folds_eq(const char *a, const char *b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (fold((unsigned char)a[i]) != fold((unsigned char)b[i]))
			return false;
	return true;
}

bool str_starts(struct str s, struct str prefix) { return s.n >= prefix.n && str_eq(str_sub(s, 0, prefix.n), prefix); }
bool str_istarts(struct str s, struct str prefix) { return s.n >= prefix.n && str_ieq(str_sub(s, 0, prefix.n), prefix); }
bool str_ends(struct str s, struct str suffix) { return s.n >= suffix.n && str_eq(str_skip(s, s.n - suffix.n), suffix); }

int str_cmp(struct str a, struct str b)
{
	size_t n = MIN(a.n, b.n);
	int c = n ? memcmp(a.p, b.p, n) : 0;
	return c ? c : (a.n > b.n) - (a.n < b.n);
}

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

struct str str_trim(struct str s)
{
	while (s.n && is_space(s.p[0]))
		s = str_skip(s, 1);
	while (s.n && is_space(s.p[s.n - 1]))
		s.n--;
	return s;
}

bool str_cut(struct str s, char c, struct str *ret_head, struct str *ret_tail)
{
	const char *at = s.n ? memchr(s.p, c, s.n) : NULL;
	size_t i = at ? (size_t)(at - s.p) : s.n;
	*ret_head = str_sub(s, 0, i);
	*ret_tail = str_skip(s, at ? i + 1 : i);
	return at != NULL;
}

/* What is looked for mostly begins with a byte that is rare in s, and memchr is several times as quick as memmem; where it is not, memmem is
 * linear. */
size_t str_find(struct str s, struct str needle)
{
	enum { TRIES = 16 };
	if (needle.n == 0)
		return 0;
	if (s.n < needle.n)
		return SIZE_MAX;
	const char *p = s.p, *at, *end = s.p + s.n;
	for (int i = 0; i < TRIES; i++, p = at + 1) {
		at = memchr(p, needle.p[0], (size_t)(end - p));
		if (!at || (size_t)(end - at) < needle.n)
			return SIZE_MAX;
		if (memcmp(at, needle.p, needle.n) == 0)
			return (size_t)(at - s.p);
	}
	at = memmem(p, (size_t)(end - p), needle.p, needle.n);
	return at ? (size_t)(at - s.p) : SIZE_MAX;
}

bool str_to_u64(struct str s, uint64_t *ret_v)
{
	uint64_t v = 0;
	if (s.n == 0)
		return false;
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] < '0' || s.p[i] > '9')
			return false;
		if (__builtin_mul_overflow(v, 10u, &v) || __builtin_add_overflow(v, (uint64_t)(s.p[i] - '0'), &v))
			return false;
	}
	*ret_v = v;
	return true;
}

bool str_to_i64(struct str s, int64_t *ret_v)
{
	bool neg = s.n && s.p[0] == '-';
	uint64_t v;
	if (!str_to_u64(neg ? str_skip(s, 1) : s, &v) || v > (uint64_t)INT64_MAX + neg)
		return false;
	*ret_v = neg ? (int64_t)(0 - v) : (int64_t)v;
	return true;
}

bool str_to_f64(struct str s, double *ret_v)
{
	static locale_t c_locale;
	if (s.n == 0)
		return false;
	for (size_t i = 0; i < s.n; i++)
		if (!memchr("0123456789+-.eE", s.p[i], 15))
			return false;
	if (!c_locale)
		c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	char small[64], *end, *z = s.n < sizeof(small) ? memcpy(small, s.p, s.n) : str_dup(s);
	z[s.n] = 0;
	double v = strtod_l(z, &end, c_locale);
	bool ok = !*end && isfinite(v);
	if (z != small)
		free(z);
	if (ok)
		*ret_v = v;
	return ok;
}

struct str str_of_u64(uint64_t v, char room[STR_U64_MAX])
{
	size_t at = STR_U64_MAX;
	do
		room[--at] = (char)('0' + v % 10);
	while (v /= 10);
	return (struct str){ room + at, STR_U64_MAX - at };
}

char *str_dup(struct str s)
{
	char *z = must_malloc(s.n + 1);
	if (s.n)
		memcpy(z, s.p, s.n);
	z[s.n] = 0;
	return z;
}

struct str str_clone(struct str s) { return (struct str){ str_dup(s), s.n }; }

bool str_eq_const_time(struct str a, struct str b)
{
	unsigned diff = a.n != b.n;
	for (size_t i = 0; i < a.n; i++)
		diff |= (unsigned)((unsigned char)a.p[i] ^ (unsigned char)(b.n ? b.p[i % b.n] : 0));
	return diff == 0;
}
