/* base/utf8.h: strict UTF-8 (no surrogates, no overlong forms, up to U+10FFFF). */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include "base/str.h"

/* Bytes of the sequence at the front of s (1..4) and its code point; 0 when s is empty or starts badly. */
size_t utf8_next(struct str s, uint32_t *ret_cp);
bool utf8_valid(struct str s);
/* Code points of valid UTF-8: bytes that begin one. */
size_t utf8_count(struct str s);
/* The place of the first byte at or behind `from` that is not ASCII; s.n: there is none. */
size_t utf8_ascii_end(struct str s, size_t from);
/* Writes cp (a valid scalar value) to out[4]; returns the bytes written. */
size_t utf8_put(uint32_t cp, char out[4]);

#endif
