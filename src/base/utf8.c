/* utf8.c: strict decoding by the table of RFC 3629 section 4. */
#include "base/utf8.h"

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

bool utf8_valid(struct str s)
{
	uint32_t cp;
	while (s.n) {
		size_t n = utf8_next(s, &cp);
		if (n == 0)
			return false;
		s = str_skip(s, n);
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
