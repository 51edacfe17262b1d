/* json_scan.c: jumps over strings with memchr and counts what stands between them. */
#include <string.h>

#include "wire/json_priv.h"

enum { NEAR_BYTES = 16 }; /* most strings are names: shorter than a call of memchr is worth */

/* i stands at the opening quote; returns the place behind the closing one, or s.n. */
static size_t skip_string(struct str s, size_t i)
{
	size_t near = MIN(s.n, i + 1 + NEAR_BYTES), first = i + 1;
	while (first < near && s.p[first] != '"' && s.p[first] != '\\')
		first++;
	if (first < near && s.p[first] == '"')
		return first + 1;
	for (size_t at = i + 1; at < s.n;) {
		const char *q = memchr(s.p + at, '"', s.n - at);
		if (!q)
			return s.n;
		size_t end = (size_t)(q - s.p), slashes = 0;
		while (end - slashes > i + 1 && s.p[end - slashes - 1] == '\\')
			slashes++;
		if (slashes % 2 == 0)
			return end + 1;
		at = end + 1;
	}
	return s.n;
}

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

static size_t skip_spaces(struct str s, size_t i)
{
	while (i < s.n && is_space(s.p[i]))
		i++;
	return i;
}

static size_t end_before(struct str s, size_t from, size_t i)
{
	while (i > from && is_space(s.p[i - 1]))
		i--;
	return i;
}

enum { PLAIN, QUOTE, COLON, COMMA, OPEN, CLOSE };
static const unsigned char CLASS[256] = {
	['"'] = QUOTE, [':'] = COLON, [','] = COMMA, ['{'] = OPEN, ['['] = OPEN, ['}'] = CLOSE, [']'] = CLOSE
};

static void end_member(struct json_scan *c, size_t i)
{
	if (c->depth != 1 || !c->object || c->want_key || c->now.val.off == 0)
		return;
	c->now.val.n = end_before(c->s, c->now.val.off, i) - c->now.val.off;
	if (c->n < c->cap)
		c->out[c->n] = c->now;
	c->n++;
	c->now = (struct json_member){ 0 };
	c->want_key = true;
}

static void end_element(struct json_scan *c, size_t i)
{
	if (c->depth != 2 || c->element == 0)
		return;
	size_t off = skip_spaces(c->s, c->element), n = end_before(c->s, off, i) - off;
	if (n >= c->large_bytes && n <= JSON_LARGE_MOST_BYTES && c->n_large < JSON_LARGE_MAX)
		c->large[c->n_large++] = (struct json_span){ off, n };
	c->element = c->s.p[i] == ',' ? i + 1 : 0;
}

static size_t on_quote(struct json_scan *c, size_t i)
{
	size_t end = skip_string(c->s, i);
	if (c->depth == 1 && c->object && c->want_key) {
		c->now.key = (struct json_span){ i, end - i };
		c->want_key = false;
	}
	return end;
}

static bool on_open(struct json_scan *c, size_t i)
{
	if (++c->depth == 1) {
		c->object = c->want_key = c->s.p[i] == '{';
		c->inside = i + 1;
	}
	if (c->depth == 2 && c->object && c->large && c->s.p[i] == '[')
		c->element = i + 1;
	return ++c->values <= JSON_MAX_VALUES && c->depth <= JSON_MAX_DEPTH && (++c->opens <= c->max_opens || !c->max_opens);
}

static bool on_colon(struct json_scan *c, size_t i)
{
	if (c->depth == 1 && !c->want_key && c->now.val.off == 0)
		c->now.val.off = skip_spaces(c->s, i + 1);
	return ++c->keys <= c->max_keys || !c->max_keys;
}

/* Files for people are half indentation: that goes four bytes at a time. */
static size_t skip_plain(struct str s, size_t i)
{
	while (s.n - i >= 4 && memcmp(s.p + i, "    ", 4) == 0)
		i += 4;
	while (i < s.n && CLASS[(unsigned char)s.p[i]] == PLAIN)
		i++;
	return i;
}

enum err json_scan_text(struct json_scan *c)
{
	struct str s = c->s;
	for (size_t i = 0; i < s.n;) {
		switch (CLASS[(unsigned char)s.p[i]]) {
		case QUOTE: i = on_quote(c, i); continue;
		case COLON:
			if (!on_colon(c, i))
				return ERR_LIMIT;
			break;
		case COMMA:
			end_element(c, i);
			end_member(c, i);
			if (++c->values > JSON_MAX_VALUES)
				return ERR_LIMIT;
			break;
		case OPEN:
			if (!on_open(c, i))
				return ERR_LIMIT;
			break;
		case CLOSE:
			end_element(c, i);
			end_member(c, i);
			c->depth -= c->depth > 0;
			break;
		default:
			i = skip_plain(s, i + 1);
			continue;
		}
		i++;
	}
	return ERR_OK;
}

size_t json_scan_members(struct str object_text, struct json_member *out, size_t cap)
{
	struct json_scan c = { .s = object_text, .out = out, .cap = cap };
	return json_scan_text(&c) == ERR_OK ? c.n : 0;
}
