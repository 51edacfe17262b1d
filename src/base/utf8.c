/* utf8.c: strict decoding by the table of RFC 3629 section 4. */
#include "base/utf8.h"

#include <string.h>

size_t utf8_next(struct str s, uint32_t *ret_cp)
{
	if (s.n == 0)
		return 0;
	const unsigned char *p = (const unsigned char *)s.p;
	if (p[0] < 0x80) {
		*ret_cp = p[0];
		return 1;
	}
	size_t n = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
	if (p[0] < 0xc2 || p[0] > 0xf4 || s.n < n)
		return 0;
	uint32_t cp = p[0] & (0xffu >> (n + 1));
	for (size_t i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		cp = cp << 6 | (p[i] & 0x3fu);
	}
	if ((n == 3 && (cp < 0x800 || (cp >= 0xd800 && cp < 0xe000))) || (n == 4 && (cp < 0x10000 || cp > 0x10ffff)))
		return 0;
	*ret_cp = cp;
	return n;
}

/* Bytes of the well-formed sequence of two to four bytes at p, or 0. */
static size_t sequence_at(const unsigned char *p, size_t left)
{
	unsigned char a = p[0];
	size_t n = a >= 0xf0 ? 4 : a >= 0xe0 ? 3 : 2;
	if (a < 0xc2 || a > 0xf4 || left < n || (p[1] & 0xc0) != 0x80)
		return 0;
	if (n == 2)
		return 2;
	if ((p[2] & 0xc0) != 0x80 || (a == 0xe0 && p[1] < 0xa0) || (a == 0xed && p[1] > 0x9f))
		return 0;
	if (n == 3)
		return 3;
	return (p[3] & 0xc0) != 0x80 || (a == 0xf0 && p[1] < 0x90) || (a == 0xf4 && p[1] > 0x8f) ? 0 : 4;
}

size_t utf8_count(struct str s)
{
	size_t n = 0;
	for (size_t i = 0; i < s.n; i++)
		n += ((unsigned char)s.p[i] & 0xc0) != 0x80;
	return n;
}

size_t utf8_ascii_end(struct str s, size_t from)
{
	const uint64_t high = 0x8080808080808080u;
	size_t i = from;
	for (uint64_t x[4]; s.n - i >= sizeof(x); i += sizeof(x)) { /* most text is ASCII: 32 bytes of it at once */
		memcpy(x, s.p + i, sizeof(x));
		if ((x[0] | x[1] | x[2] | x[3]) & high)
			break;
	}
	for (uint64_t x; s.n - i >= sizeof(x); i += sizeof(x)) {
		memcpy(&x, s.p + i, sizeof(x));
		if (x & high)
			break;
	}
	while (i < s.n && (unsigned char)s.p[i] < 0x80)
		i++;
	return i;
}

bool utf8_valid(struct str s)
{
	const unsigned char *p = (const unsigned char *)s.p;
	for (size_t i = utf8_ascii_end(s, 0), n; i < s.n;) {
		if ((n = sequence_at(p + i, s.n - i)) == 0)
			return false;
		i += n;
		if (i < s.n && p[i] < 0x80)
			i = utf8_ascii_end(s, i);
	}
	return true;
}

size_t utf8_put(uint32_t cp, char out[4])
{
	if (cp < 0x80) {
		out[0] = (char)cp;
		return 1;
	}
	size_t n = cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
	for (size_t i = n - 1; i > 0; i--, cp >>= 6)
		out[i] = (char)(0x80 | (cp & 0x3f));
	out[0] = (char)((0xf00u >> n) | cp);
	return n;
}
