/* json_tape.c: RFC 8259, strictly: valid UTF-8, no lone surrogate, nothing behind the value. Bodies are mostly long strings: these go sixteen
 * bytes at a time, copied and looked at at once. */
#include "wire/json_tape.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

enum { FIRST_VALUES = 256 };

struct reader {
	struct str text;
	const char *p, *end;
	char *out; /* never further on in the tape's bytes than p is in the text; a lane more is there */
	struct json_tape *t;
	struct json_tape_limits left;
	size_t open[JSON_MAX_DEPTH]; /* the containers around p, on the tape */
	size_t depth;
};

static void skip_spaces(struct reader *r)
{
	while (r->p < r->end && (*r->p == ' ' || *r->p == '\n' || *r->p == '\r' || *r->p == '\t'))
		r->p++;
}

static bool skip(struct reader *r, char c)
{
	bool there = r->p < r->end && *r->p == c;
	r->p += there;
	return there;
}

/* ---- strings */

typedef unsigned char lane __attribute__((vector_size(16)));
#define ALL(c) ((lane){ c, c, c, c, c, c, c, c, c, c, c, c, c, c, c, c })

/* How many bytes at the front are neither quote, backslash nor control; or all of them. Without a branch on where the first one is: nobody
 * could predict it. */
static inline size_t plain_bytes(lane v)
{
	uint64_t half[2];
	lane stops = (lane)((v == ALL('"')) | (v == ALL('\\')) | (v < ALL(0x20)));
	memcpy(half, &stops, sizeof(half));
	if ((half[0] | half[1]) == 0)
		return sizeof(lane);
	size_t skipped = half[0] ? 0 : 8;
	return skipped + (size_t)__builtin_ctzll(half[0] ? half[0] : half[1]) / 8;
}

static inline bool has_high_bit(lane v)
{
	uint64_t half[2];
	memcpy(half, &v, sizeof(half));
	return ((half[0] | half[1]) & 0x8080808080808080u) != 0;
}

/* The four digits at p. */
static bool hex(struct reader *r, uint32_t *ret_n)
{
	uint32_t n = 0;
	if (r->end - r->p < 4)
		return false;
	for (int i = 0; i < 4; i++, r->p++) {
		char c = *r->p, low = (char)(c | 0x20);
		if (!(c >= '0' && c <= '9') && !(low >= 'a' && low <= 'f'))
			return false;
		n = n << 4 | (uint32_t)(c <= '9' ? c - '0' : low - 'a' + 10);
	}
	*ret_n = n;
	return true;
}

/* What follows \u. */
static bool code_point(struct reader *r)
{
	uint32_t cp, low;
	if (!hex(r, &cp) || (cp >= 0xdc00 && cp < 0xe000))
		return false;
	if (cp >= 0xd800 && cp < 0xdc00) {
		if (r->end - r->p < 2 || r->p[0] != '\\' || r->p[1] != 'u')
			return false;
		r->p += 2;
		if (!hex(r, &low) || low < 0xdc00 || low >= 0xe000)
			return false;
		cp = 0x10000 + ((cp - 0xd800) << 10 | (low - 0xdc00));
	}
	r->out += utf8_put(cp, r->out);
	return true;
}

/* The escape at p, but for a short one. */
static bool long_escape(struct reader *r)
{
	if (r->end - r->p < 2 || r->p[0] != '\\' || r->p[1] != 'u')
		return false;
	r->p += 2;
	return code_point(r);
}

/* The text's last bytes, and zeros. */
static lane __attribute__((noinline)) load_end(const char *p, const char *end)
{
	lane v = { 0 };
	memcpy(&v, p, (size_t)(end - p));
	return v;
}

static inline lane load(const char *p, const char *end)
{
	lane v;
	if ((size_t)(end - p) < sizeof(v))
		return load_end(p, end);
	memcpy(&v, p, sizeof(v));
	return v;
}

/* p stands at the opening quote. An escape gives whole characters, so that the result is UTF-8 exactly if what was written is. */
static bool string(struct reader *r, struct json_val *v)
{
	static const char SHORT[256] = {
		['"'] = '"', ['\\'] = '\\', ['/'] = '/', ['b'] = '\b', ['f'] = '\f', ['n'] = '\n', ['r'] = '\r', ['t'] = '\t'
	};
	const char *from = r->out, *p = r->p + 1, *const end = r->end;
	char *out = r->out;
	lane seen = { 0 };
	for (;;) {
		lane now = load(p, end);
		size_t n = plain_bytes(now);
		memcpy(out, &now, sizeof(now));
		seen |= now;
		p += n;
		out += n;
		if (n == sizeof(now))
			continue;
		if (p == end || *p != '\\')
			break;
		*out = p + 1 < end ? SHORT[(unsigned char)p[1]] : 0;
		if (*out) {
			p += 2;
			out++;
			continue;
		}
		r->p = p;
		r->out = out;
		if (!long_escape(r))
			return false;
		p = r->p;
		out = r->out;
	}
	r->p = p;
	r->out = out;
	*v = (struct json_val){ .type = JSON_STRING, .n = (uint32_t)(out - from), .p = from };
	return skip(r, '"') && (!has_high_bit(seen) || utf8_valid(str_from(from, v->n)));
}

/* ---- numbers and words */

static bool digits(struct reader *r)
{
	const char *from = r->p;
	while (r->p < r->end && *r->p >= '0' && *r->p <= '9')
		r->p++;
	return r->p > from;
}

static bool number(struct reader *r, struct json_val *v)
{
	const char *from = r->p;
	(void)skip(r, '-');
	if (!skip(r, '0') && !digits(r))
		return false;
	if (skip(r, '.') && !digits(r))
		return false;
	if (skip(r, 'e') || skip(r, 'E')) {
		if (!skip(r, '+'))
			(void)skip(r, '-');
		if (!digits(r))
			return false;
	}
	uint32_t n = (uint32_t)(r->p - from);
	memcpy(r->out, from, n);
	*v = (struct json_val){ .type = JSON_NUMBER, .n = n, .p = r->out };
	r->out += n;
	return true;
}

static bool word(struct reader *r, struct json_val *v)
{
	static const struct { struct str text; struct json_val val; } WORDS[] = {
		{ STR_INIT("true"), { .type = JSON_BOOL, .n = 1 } },
		{ STR_INIT("false"), { .type = JSON_BOOL } },
		{ STR_INIT("null"), { .type = JSON_NULL } },
	};
	struct str rest = { r->p, (size_t)(r->end - r->p) };
	for (size_t i = 0; i < ARRAY_LEN(WORDS); i++)
		if (str_starts(rest, WORDS[i].text)) {
			*v = WORDS[i].val;
			r->p += WORDS[i].text.n;
			return true;
		}
	return false;
}

/* ---- containers */

static struct json_val *around(const struct reader *r) { return &r->t->vals.p[r->open[r->depth - 1]]; }
static bool in_top_object(const struct reader *r) { return r->depth == 1 && r->t->vals.p[0].type == JSON_OBJECT; }
static size_t place(const struct reader *r) { return (size_t)(r->p - r->text.p); }

/* A key and its colon; its value begins at p then. */
static enum err key(struct reader *r)
{
	struct json_val v;
	skip_spaces(r);
	size_t from = place(r);
	if (r->p == r->end || *r->p != '"' || !string(r, &v))
		return ERR_SYNTAX;
	struct json_span span = { from, place(r) - from };
	skip_spaces(r);
	if (!skip(r, ':'))
		return ERR_SYNTAX;
	skip_spaces(r);
	if (r->left.keys-- == 0 || (in_top_object(r) && r->t->members.n == JSON_MAX_MEMBERS))
		return ERR_LIMIT;
	if (in_top_object(r))
		VEC_PUSH(&r->t->members, (struct json_member){ span, { place(r), 0 } });
	VEC_PUSH(&r->t->vals, v);
	return ERR_OK;
}

static void close(struct reader *r)
{
	struct json_val *v = around(r);
	v->span = (size_t)(&r->t->vals.p[r->t->vals.n] - v);
	r->depth--;
}

/* A container's beginning, and its first key; closed already when it is empty. */
static enum err open(struct reader *r)
{
	bool object = *r->p++ == '{';
	if (r->depth == JSON_MAX_DEPTH || r->left.opens-- == 0)
		return ERR_LIMIT;
	r->open[r->depth++] = r->t->vals.n;
	VEC_PUSH(&r->t->vals, (struct json_val){ .type = object ? JSON_OBJECT : JSON_ARRAY });
	skip_spaces(r);
	if (skip(r, object ? '}' : ']')) {
		close(r);
		return ERR_OK;
	}
	return object ? key(r) : ERR_OK;
}

static enum err scalar(struct reader *r)
{
	struct json_val v;
	char c = *r->p;
	if (!(c == '"' ? string(r, &v) : c == '-' || (c >= '0' && c <= '9') ? number(r, &v) : word(r, &v)))
		return ERR_SYNTAX;
	VEC_PUSH(&r->t->vals, v);
	return ERR_OK;
}

/* The value at p is whole: it counts in what is around it, and what that says next is done, up to the next value or the end. */
static enum err after_value(struct reader *r)
{
	for (;;) {
		if (in_top_object(r))
			r->t->members.p[r->t->members.n - 1].val.n = place(r) - r->t->members.p[r->t->members.n - 1].val.off;
		skip_spaces(r);
		if (r->depth == 0)
			return r->p == r->end ? ERR_OK : ERR_SYNTAX;
		struct json_val *v = around(r);
		v->n++;
		bool object = v->type == JSON_OBJECT;
		if (skip(r, ','))
			return object ? key(r) : ERR_OK;
		if (!skip(r, object ? '}' : ']'))
			return ERR_SYNTAX;
		close(r);
	}
}

static enum err read(struct reader *r)
{
	do {
		size_t depth = r->depth;
		skip_spaces(r);
		if (r->p == r->end)
			return ERR_SYNTAX;
		if (r->left.values-- == 0)
			return ERR_LIMIT;
		bool container = *r->p == '{' || *r->p == '[';
		TRY(container ? open(r) : scalar(r));
		if (r->depth <= depth)
			TRY(after_value(r));
	} while (r->depth);
	return ERR_OK;
}

/* ---- entry */

enum err json_tape_read(struct str text, const struct json_tape_limits *most, struct json_tape *ret_t)
{
	if (text.n == 0 || text.n > UINT32_MAX)
		return text.n ? ERR_LIMIT : ERR_SYNTAX;
	struct json_tape t = { .bytes = must_malloc(text.n + sizeof(lane)) };
	struct reader r = { .text = text, .p = text.p, .end = text.p + text.n, .out = t.bytes, .t = &t, .left = *most };
	t.vals.cap = FIRST_VALUES;
	t.vals.p = must_malloc(t.vals.cap * sizeof(*t.vals.p));
	enum err e = read(&r);
	if (e != ERR_OK) {
		json_tape_done(&t);
		return e;
	}
	*ret_t = t;
	return ERR_OK;
}

void json_tape_done(struct json_tape *t)
{
	VEC_FREE(&t->vals);
	VEC_FREE(&t->members);
	free(t->bytes);
}
