/* lex.c: one pass over the template. Data between tags is cut as Jinja's own lexer cuts it:
 *   -  before or behind a tag removes all white space on that side, + switches the automatic rules off;
 *   a block or comment tag alone on its line so far loses the white space before it (lstrip_blocks);
 *   the line end right behind a block or comment tag is dropped (trim_blocks); one line end at the end of the file too. */
#include "jinja/lex.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "base/vec.h"

struct lex {
	struct str in;
	size_t at;
	unsigned line;
	bool line_starting;      /* the last tag's end swallowed a line end, or nothing came yet */
	struct arena *a;
	struct jinja_fault *fault;
	VEC(struct jinja_token) out;
};

enum err jinja_fault_set(struct jinja_fault *f, unsigned line, enum err e, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(f->text, sizeof(f->text), fmt, ap);
	va_end(ap);
	f->line = line;
	return e;
}

static void emit(struct lex *l, enum jinja_tok type, struct str text)
{
	VEC_PUSH(&l->out, (struct jinja_token){ type, l->line, text });
}

static bool here(const struct lex *l, const char *z)
{
	return str_starts(str_skip(l->in, l->at), str_of(z));
}

static char char_at(const struct lex *l, size_t i) { return i < l->in.n ? l->in.p[i] : 0; }

static void count_lines(struct lex *l, struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		l->line += s.p[i] == '\n';
}

static size_t tag_begin(const struct lex *l, size_t from)
{
	for (size_t i = from; i + 1 < l->in.n; i++)
		if (l->in.p[i] == '{' && (l->in.p[i + 1] == '{' || l->in.p[i + 1] == '%' || l->in.p[i + 1] == '#'))
			return i;
	return l->in.n;
}

static bool all_space(struct str s)
{
	return s.n > 0 && jinja_strip(s, true, false).n == 0;
}

/* The data before a tag, as its kind and sign leave it. */
static struct str trim_data(const struct lex *l, struct str data, char kind, char sign)
{
	if (sign == '-')
		return jinja_strip(data, false, true);
	if (sign == '+' || kind == '{')
		return data;
	size_t nl = data.n;
	while (nl > 0 && data.p[nl - 1] != '\n')
		nl--;
	if ((nl > 0 || l->line_starting) && all_space(str_skip(data, nl)))
		data.n = nl;
	return data;
}

static void skip_space_after(struct lex *l)
{
	struct str rest = str_skip(l->in, l->at), left = jinja_strip(rest, true, false);
	struct str gone = str_sub(rest, 0, rest.n - left.n);
	count_lines(l, gone);
	l->at += gone.n;
	l->line_starting = gone.n && gone.p[gone.n - 1] == '\n';
}

/* Behind a block or comment tag: drops one line end. */
static void skip_line_end(struct lex *l)
{
	l->line_starting = char_at(l, l->at) == '\n';
	l->line += l->line_starting;
	l->at += l->line_starting;
}

static enum err comment(struct lex *l)
{
	size_t end = str_find(str_skip(l->in, l->at), STR("#}"));
	if (end == SIZE_MAX)
		return jinja_fault_set(l->fault, l->line, ERR_SYNTAX, "a comment has no end");
	char sign = end > 0 ? char_at(l, l->at + end - 1) : 0;
	count_lines(l, str_sub(l->in, l->at, end));
	l->at += end + 2;
	if (sign == '-')
		skip_space_after(l);
	else if (sign != '+')
		skip_line_end(l);
	else
		l->line_starting = false;
	return ERR_OK;
}

/* ---- inside a tag */

static bool name_char(char c, bool first)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (!first && c >= '0' && c <= '9');
}

static enum err put_cp(struct lex *l, struct buf *b, uint32_t cp)
{
	char out[4];
	if (cp > 0x10ffff || (cp >= 0xd800 && cp < 0xe000))
		return jinja_fault_set(l->fault, l->line, ERR_UNSUPPORTED, "a string escape that is no character");
	return buf_add(b, str_from(out, utf8_put(cp, out)));
}

static int hex_of(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static enum err hex_escape(struct lex *l, struct buf *b, int digits)
{
	uint32_t cp = 0;
	for (int i = 0; i < digits; i++) {
		int h = hex_of(char_at(l, l->at));
		if (h < 0)
			return jinja_fault_set(l->fault, l->line, ERR_SYNTAX, "a broken string escape");
		cp = cp << 4 | (uint32_t)h;
		l->at++;
	}
	return put_cp(l, b, cp);
}

/* One escape of Python's unicode-escape; at stands behind the backslash. */
static enum err escape(struct lex *l, struct buf *b)
{
	static const char from[] = "\\'\"abfnrtv", to[] = "\\'\"\a\b\f\n\r\t\v";
	char c = char_at(l, l->at++);
	const char *at = c ? strchr(from, c) : NULL;
	if (at)
		return buf_add_byte(b, to[at - from]);
	if (c == 'x' || c == 'u' || c == 'U')
		return hex_escape(l, b, c == 'x' ? 2 : c == 'u' ? 4 : 8);
	if (c == '\n')
		return ERR_OK;
	if (c == 'N' || (c >= '0' && c <= '7') || (unsigned char)c >= 0x80)
		return jinja_fault_set(l->fault, l->line, ERR_UNSUPPORTED, "the string escape \\%c", c);
	TRY(buf_add_byte(b, '\\'));
	return buf_add_byte(b, c);
}

static enum err string(struct lex *l)
{
	char quote = l->in.p[l->at++];
	struct buf b;
	enum err e = ERR_OK;
	buf_init(&b, l->in.n);
	while (e == ERR_OK && l->at < l->in.n && l->in.p[l->at] != quote) {
		char c = l->in.p[l->at++];
		l->line += c == '\n';
		e = c == '\\' ? escape(l, &b) : buf_add_byte(&b, c);
	}
	if (e == ERR_OK && l->at >= l->in.n)
		e = jinja_fault_set(l->fault, l->line, ERR_SYNTAX, "a string has no end");
	l->at++;
	if (e == ERR_OK)
		emit(l, JINJA_T_STR, arena_str(l->a, buf_str(&b)));
	buf_done(&b);
	return e;
}

static size_t digits_from(const struct lex *l, size_t at)
{
	while (char_at(l, at) >= '0' && char_at(l, at) <= '9')
		at++;
	return at;
}

static enum err number(struct lex *l)
{
	size_t begin = l->at, at = digits_from(l, begin);
	bool real = false;
	if (char_at(l, at) == '.' && digits_from(l, at + 1) > at + 1) {
		real = true;
		at = digits_from(l, at + 1);
	}
	if (char_at(l, at) == 'e' || char_at(l, at) == 'E') {
		size_t sign = char_at(l, at + 1) == '-' || char_at(l, at + 1) == '+';
		if (digits_from(l, at + 1 + sign) > at + 1 + sign) {
			real = true;
			at = digits_from(l, at + 1 + sign);
		}
	}
	if (name_char(char_at(l, at), true))
		return jinja_fault_set(l->fault, l->line, ERR_UNSUPPORTED, "a number with a letter or an underscore");
	emit(l, real ? JINJA_T_FLOAT : JINJA_T_INT, str_sub(l->in, begin, at - begin));
	l->at = at;
	return ERR_OK;
}

static enum err operator(struct lex *l)
{
	static const char *const ops[] = { "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[", "]", "(", ")", "{", "}", ">", "<", "=", ".", ":", "|", ",", ";" };
	for (size_t i = 0; i < ARRAY_LEN(ops); i++)
		if (here(l, ops[i])) {
			emit(l, JINJA_T_OP, str_sub(l->in, l->at, strlen(ops[i])));
			l->at += strlen(ops[i]);
			return ERR_OK;
		}
	return jinja_fault_set(l->fault, l->line, ERR_SYNTAX, "a character that means nothing here");
}

/* The end of a tag, if it stands here: `-%}`, `+%}`, `%}` or `-}}`, `}}`. Braces opened inside keep `}}` from ending a variable. */
static bool tag_end(struct lex *l, bool block, int depth)
{
	const char *end = block ? "%}" : "}}";
	char sign = 0;
	size_t at = l->at;
	if (char_at(l, at) == '-' || (block && char_at(l, at) == '+'))
		sign = char_at(l, at++);
	if (!str_starts(str_skip(l->in, at), str_of(end)) || (depth > 0 && !sign))
		return false;
	l->at = at + 2;
	emit(l, block ? JINJA_T_BLOCK_END : JINJA_T_VAR_END, (struct str){ 0 });
	l->line_starting = false;
	if (sign == '-')
		skip_space_after(l);
	else if (block && sign != '+')
		skip_line_end(l);
	return true;
}

static enum err token(struct lex *l, int *depth)
{
	char c = l->in.p[l->at];
	if (c == '\'' || c == '"')
		return string(l);
	if (c >= '0' && c <= '9')
		return number(l);
	if (name_char(c, true)) {
		size_t at = l->at;
		while (name_char(char_at(l, at), false))
			at++;
		emit(l, JINJA_T_NAME, str_sub(l->in, l->at, at - l->at));
		l->at = at;
		return ERR_OK;
	}
	*depth += c == '{' || c == '(' || c == '[';
	*depth -= c == '}' || c == ')' || c == ']';
	return operator(l);
}

static enum err tag(struct lex *l, bool block)
{
	int depth = 0;
	emit(l, block ? JINJA_T_BLOCK : JINJA_T_VAR, (struct str){ 0 });
	for (;;) {
		while (l->at < l->in.n && jinja_is_space((unsigned char)l->in.p[l->at])) {
			l->line += l->in.p[l->at] == '\n';
			l->at++;
		}
		if (l->at >= l->in.n)
			return jinja_fault_set(l->fault, l->line, ERR_SYNTAX, "a tag has no end");
		if (tag_end(l, block, depth))
			return ERR_OK;
		TRY(token(l, &depth));
	}
}

static enum err piece(struct lex *l)
{
	size_t end = tag_begin(l, l->at);
	struct str data = str_sub(l->in, l->at, end - l->at);
	if (end == l->in.n) {
		emit(l, JINJA_T_DATA, data);
		l->at = end;
		return ERR_OK;
	}
	char kind = l->in.p[end + 1], sign = char_at(l, end + 2);
	if (sign != '-' && (sign != '+' || kind == '{'))
		sign = 0;
	struct str kept = trim_data(l, data, kind, sign);
	if (kept.n)
		emit(l, JINJA_T_DATA, kept);
	count_lines(l, data);
	l->at = end + 2 + (sign != 0);
	return kind == '#' ? comment(l) : tag(l, kind == '%');
}

/* Line ends become LF, the last one goes. */
static struct str normalize(struct str s, struct arena *a)
{
	char *p = arena_alloc(a, s.n + 1, 1);
	size_t n = 0;
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] == '\r' && i + 1 < s.n && s.p[i + 1] == '\n')
			continue;
		p[n++] = s.p[i] == '\r' ? '\n' : s.p[i];
	}
	if (n && p[n - 1] == '\n')
		n--;
	return (struct str){ p, n };
}

enum err jinja_lex(struct str source, struct arena *a, struct jinja_token **ret_tokens, struct jinja_fault *fault)
{
	struct lex l = { .in = normalize(source, a), .line = 1, .line_starting = true, .a = a, .fault = fault };
	enum err e = ERR_OK;
	while (e == ERR_OK && l.at < l.in.n)
		e = piece(&l);
	emit(&l, JINJA_T_END, (struct str){ 0 });
	if (e == ERR_OK) {
		struct jinja_token *t = arena_new(a, struct jinja_token, l.out.n);
		memcpy(t, l.out.p, l.out.n * sizeof(*t));
		*ret_tokens = t;
	}
	VEC_FREE(&l.out);
	return e;
}
