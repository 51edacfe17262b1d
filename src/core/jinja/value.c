/* value.c: values and how Python compares and prints them. */
#include "jinja/value.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/must.h"
#include "base/utf8.h"

enum { PRINT_DEPTH_MAX = 100, EQUAL_DEPTH_MAX = 200, EQUAL_STEP_BYTES = 256 };

static struct jinja_val seq_of(struct arena *a, enum jinja_type type, const struct jinja_val *p, size_t n)
{
	struct jinja_list *l = arena_new(a, struct jinja_list, 1);
	*l = (struct jinja_list){ n, arena_copy(a, p, n, sizeof(*p)) };
	return (struct jinja_val){ .type = type, .list = l };
}

struct jinja_val jinja_list_of(struct arena *a, const struct jinja_val *p, size_t n) { return seq_of(a, JINJA_LIST, p, n); }
struct jinja_val jinja_tuple_of(struct arena *a, const struct jinja_val *p, size_t n) { return seq_of(a, JINJA_TUPLE, p, n); }

struct jinja_val jinja_iter_of(struct arena *a, enum jinja_iter_kind kind, const struct jinja_val *p, size_t n)
{
	struct jinja_iter *it = arena_new(a, struct jinja_iter, 1);
	*it = (struct jinja_iter){ .kind = kind, .list = jinja_list_of(a, p, n).list };
	return (struct jinja_val){ .type = JINJA_ITER, .iter = it };
}

struct jinja_val jinja_dict_new(struct arena *a, size_t cap)
{
	struct { struct jinja_dict d; struct jinja_pair first[]; } *room;
	cap = MAX(cap, (size_t)4);
	room = arena_alloc(a, 1, sizeof(*room) + cap * sizeof(room->first[0]));
	room->d = (struct jinja_dict){ .cap = cap, .p = room->first };
	return (struct jinja_val){ .type = JINJA_DICT, .space = &room->d };
}

static struct jinja_val *dict_find(const struct jinja_dict *d, const struct jinja_val *key)
{
	if (key->type == JINJA_STR)
		return jinja_dict_find_str(d, key->s);
	struct jinja_toil t = { .max_steps = UINT64_MAX };   /* keys are no lists */
	for (size_t i = 0; i < d->n; i++)
		if (jinja_equal(&d->p[i].key, key, &t))
			return &d->p[i].val;
	return NULL;
}

void jinja_dict_put(struct arena *a, struct jinja_val dict, struct jinja_val key, struct jinja_val val)
{
	struct jinja_val *old = dict_find(dict.space, &key);
	if (old)
		*old = val;
	else
		jinja_dict_add(a, dict, key, val);
}

void jinja_dict_add(struct arena *a, struct jinja_val dict, struct jinja_val key, struct jinja_val val)
{
	struct jinja_dict *d = dict.space;
	if (d->n == d->cap) {
		struct jinja_pair *p = arena_new(a, struct jinja_pair, d->cap * 2);
		memcpy(p, d->p, d->n * sizeof(*p));
		d->p = p;
		d->cap *= 2;
	}
	d->p[d->n++] = (struct jinja_pair){ key, val };
}

const struct jinja_val *jinja_dict_get(const struct jinja_dict *d, const struct jinja_val *key) { return dict_find(d, key); }

const struct jinja_val *jinja_dict_get_str(const struct jinja_dict *d, struct str key) { return jinja_dict_find_str(d, key); }

bool jinja_is_number(const struct jinja_val *v) { return v->type == JINJA_INT || v->type == JINJA_FLOAT || v->type == JINJA_BOOL; }

double jinja_as_f64(const struct jinja_val *v)
{
	return v->type == JINJA_FLOAT ? v->f : v->type == JINJA_BOOL ? (double)v->b : (double)v->i;
}

bool jinja_truthy_of_any(const struct jinja_val *v)
{
	switch (v->type) {
	case JINJA_UNDEFINED:
	case JINJA_NONE: return false;
	case JINJA_BOOL: return v->b;
	case JINJA_INT: return v->i != 0;
	case JINJA_FLOAT: return v->f < 0 || v->f > 0 || isnan(v->f);
	case JINJA_STR: return v->s.n > 0;
	case JINJA_LIST:
	case JINJA_TUPLE: return v->list->n > 0;
	case JINJA_DICT: return v->dict->n > 0;
	case JINJA_ITER: return v->iter->kind == JINJA_GENERATOR || v->iter->list->n > 0;
	case JINJA_BIGINT:
	case JINJA_NAMESPACE:
	case JINJA_LOOP:
	case JINJA_MACRO:
	case JINJA_METHOD:
	case JINJA_GLOBAL: return true;
	}
	return false;
}

static bool seq_equal(const struct jinja_list *a, const struct jinja_list *b, struct jinja_toil *t)
{
	if (a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++)
		if (!jinja_equal(&a->p[i], &b->p[i], t))
			return false;
	return true;
}

static bool dict_equal(const struct jinja_dict *a, const struct jinja_dict *b, struct jinja_toil *t)
{
	if (a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++) {
		const struct jinja_val *other = dict_find(b, &a->p[i].key);
		t->steps += b->n / 16 + b->n * (a->p[i].key.type == JINJA_STR ? a->p[i].key.s.n / EQUAL_STEP_BYTES : 0);
		t->over |= t->steps > t->max_steps;
		if (t->over || !other || !jinja_equal(&a->p[i].val, other, t))
			return false;
	}
	return true;
}

static bool number_equal(const struct jinja_val *a, const struct jinja_val *b)
{
	if (a->type != JINJA_FLOAT && b->type != JINJA_FLOAT)
		return (a->type == JINJA_BOOL ? (int64_t)a->b : a->i) == (b->type == JINJA_BOOL ? (int64_t)b->b : b->i);
	double x = jinja_as_f64(a), y = jinja_as_f64(b);
	return x <= y && x >= y;
}

static bool same_type_equal(const struct jinja_val *a, const struct jinja_val *b, struct jinja_toil *t)
{
	switch (a->type) {
	case JINJA_UNDEFINED:
	case JINJA_NONE: return true;
	case JINJA_STR:
	case JINJA_BIGINT: t->steps += MIN(a->s.n, b->s.n) / EQUAL_STEP_BYTES; return str_eq(a->s, b->s);
	case JINJA_LIST:
	case JINJA_TUPLE: return seq_equal(a->list, b->list, t);
	case JINJA_DICT: return dict_equal(a->dict, b->dict, t);
	case JINJA_ITER: return a->iter == b->iter;
	case JINJA_NAMESPACE: return a->space == b->space;
	case JINJA_LOOP: return a->loop == b->loop;
	case JINJA_MACRO: return a->macro == b->macro;
	case JINJA_METHOD: return a->method == b->method;
	case JINJA_GLOBAL: return a->global == b->global;
	case JINJA_BOOL:
	case JINJA_INT:
	case JINJA_FLOAT: break;
	}
	return false;
}

bool jinja_equal(const struct jinja_val *a, const struct jinja_val *b, struct jinja_toil *t)
{
	if (jinja_is_number(a) && jinja_is_number(b))
		return number_equal(a, b);
	if (a->type != b->type)
		return false;
	t->over |= ++t->steps > t->max_steps || t->depth == EQUAL_DEPTH_MAX;
	if (t->over)
		return false;
	t->depth++;
	bool equal = same_type_equal(a, b, t);
	t->depth--;
	return equal;
}

const char *jinja_type_name(const struct jinja_val *v)
{
	static const char *const names[] = {
		[JINJA_UNDEFINED] = "Undefined", [JINJA_NONE] = "NoneType", [JINJA_BOOL] = "bool", [JINJA_INT] = "int", [JINJA_BIGINT] = "int",
		[JINJA_FLOAT] = "float", [JINJA_STR] = "str", [JINJA_LIST] = "list", [JINJA_TUPLE] = "tuple", [JINJA_DICT] = "dict", [JINJA_ITER] = "generator",
		[JINJA_NAMESPACE] = "Namespace", [JINJA_LOOP] = "LoopContext", [JINJA_MACRO] = "Macro", [JINJA_METHOD] = "method", [JINJA_GLOBAL] = "function",
	};
	return names[v->type];
}

/* ---- printing */

/* The shortest digits that read back as f, in the layout of Python's repr: exponent form below 1e-4 and from 1e16 on. */
enum err jinja_print_f64(struct buf *b, double f)
{
	char digits[40];
	if (isnan(f))
		return buf_add(b, STR("nan"));
	if (isinf(f))
		return buf_add(b, f > 0 ? STR("inf") : STR("-inf"));
	int precision = 1;
	for (; precision < DBL_DECIMAL_DIG; precision++) {
		snprintf(digits, sizeof(digits), "%.*e", precision - 1, f);
		double back = 0;
		if (str_to_f64(str_of(digits), &back) && back <= f && back >= f)   /* a rounding beyond the range reads as none */
			break;
	}
	snprintf(digits, sizeof(digits), "%.*e", precision - 1, f);
	char *at = strchr(digits, 'e');
	int64_t exponent = 0;
	must(str_to_i64(str_of(at + 1 + (at[1] == '+')), &exponent));
	if (exponent >= -4 && exponent < 16) {
		int decimals = MAX(precision - 1 - (int)exponent, 0);
		TRY(buf_printf(b, "%.*f", decimals, f));
		return decimals ? ERR_OK : buf_add(b, STR(".0"));
	}
	*at = 0;
	return buf_printf(b, "%se%c%02d", digits, exponent < 0 ? '-' : '+', abs((int)exponent));
}

/* Python's repr escapes what its Unicode tables call unprintable. Those tables differ by version, so only blocks that every
 * version prints as they are pass; a repr of anything else is refused. */
static bool surely_printable(uint32_t cp)
{
	static const uint32_t ranges[][2] = {
		{ 0xa1, 0xac }, { 0xae, 0x377 }, { 0x3a3, 0x52f }, { 0x5d0, 0x5ea }, { 0x621, 0x64a }, { 0x905, 0x939 }, { 0xe01, 0xe3a }, { 0x1e00, 0x1eff },
		{ 0x2010, 0x2027 }, { 0x2030, 0x205e }, { 0x20a0, 0x20b9 }, { 0x2100, 0x2189 }, { 0x2190, 0x23f3 }, { 0x2500, 0x26ff }, { 0x2701, 0x27bf },
		{ 0x3001, 0x303e }, { 0x3041, 0x3096 }, { 0x309b, 0x30ff }, { 0x4e00, 0x9fd5 }, { 0xac00, 0xd7a3 }, { 0xff01, 0xff5e }, { 0x1f300, 0x1f64f },
		{ 0x1f680, 0x1f6c5 }, { 0x1f910, 0x1f91e },
	};
	for (size_t i = 0; i < ARRAY_LEN(ranges); i++)
		if (cp >= ranges[i][0] && cp <= ranges[i][1])
			return true;
	return false;
}

/* Spaces, format characters and private use: escaped by every version. */
static bool surely_escaped(uint32_t cp)
{
	return (cp >= 0x80 && cp <= 0xa0) || cp == 0xad || cp == 0x1680 || (cp >= 0x2000 && cp <= 0x200f) || (cp >= 0x2028 && cp <= 0x202f) ||
	       (cp >= 0x205f && cp <= 0x2064) || cp == 0x3000 || (cp >= 0xe000 && cp <= 0xf8ff) || cp == 0xfeff;
}

static enum err repr_cp(struct buf *b, struct str cp_text, uint32_t cp, char quote)
{
	if (cp == (uint32_t)quote || cp == '\\')
		return buf_printf(b, "\\%c", (char)cp);
	if (cp == '\n' || cp == '\r' || cp == '\t')
		return buf_printf(b, "\\%c", cp == '\n' ? 'n' : cp == '\r' ? 'r' : 't');
	if (cp < ' ' || cp == 127)
		return buf_printf(b, "\\x%02x", cp);
	if (surely_escaped(cp))
		return buf_printf(b, cp < 0x100 ? "\\x%02x" : "\\u%04x", cp);
	return cp < 127 || surely_printable(cp) ? buf_add(b, cp_text) : ERR_UNSUPPORTED;
}

static enum err repr_str(struct buf *b, struct str s)
{
	char quote = str_find(s, STR("'")) != SIZE_MAX && str_find(s, STR("\"")) == SIZE_MAX ? '"' : '\'';
	uint32_t cp;
	TRY(buf_add_byte(b, quote));
	for (size_t n; (n = utf8_next(s, &cp)); s = str_skip(s, n))
		TRY(repr_cp(b, str_sub(s, 0, n), cp, quote));
	return buf_add_byte(b, quote);
}

static enum err repr_at(struct buf *b, const struct jinja_val *v, unsigned depth);

static enum err repr_seq(struct buf *b, const struct jinja_val *v, unsigned depth)
{
	bool tuple = v->type == JINJA_TUPLE;
	TRY(buf_add_byte(b, tuple ? '(' : '['));
	for (size_t i = 0; i < v->list->n; i++) {
		if (i)
			TRY(buf_add(b, STR(", ")));
		TRY(repr_at(b, &v->list->p[i], depth + 1));
	}
	if (tuple && v->list->n == 1)
		TRY(buf_add_byte(b, ','));
	return buf_add_byte(b, tuple ? ')' : ']');
}

static enum err repr_dict(struct buf *b, const struct jinja_dict *d, unsigned depth)
{
	TRY(buf_add_byte(b, '{'));
	for (size_t i = 0; i < d->n; i++) {
		if (i)
			TRY(buf_add(b, STR(", ")));
		TRY(repr_at(b, &d->p[i].key, depth + 1));
		TRY(buf_add(b, STR(": ")));
		TRY(repr_at(b, &d->p[i].val, depth + 1));
	}
	return buf_add_byte(b, '}');
}

static enum err repr_at(struct buf *b, const struct jinja_val *v, unsigned depth)
{
	if (depth > PRINT_DEPTH_MAX)
		return ERR_LIMIT;
	switch (v->type) {
	case JINJA_UNDEFINED: return buf_add(b, STR("Undefined"));
	case JINJA_NONE: return buf_add(b, STR("None"));
	case JINJA_BOOL: return buf_add(b, v->b ? STR("True") : STR("False"));
	case JINJA_INT: return buf_printf(b, "%lld", (long long)v->i);
	case JINJA_BIGINT: return buf_add(b, v->s);
	case JINJA_FLOAT: return jinja_print_f64(b, v->f);
	case JINJA_STR: return repr_str(b, v->s);
	case JINJA_LIST:
	case JINJA_TUPLE: return repr_seq(b, v, depth);
	case JINJA_DICT: return repr_dict(b, v->dict, depth);
	case JINJA_ITER:
	case JINJA_NAMESPACE:
	case JINJA_LOOP:
	case JINJA_MACRO:
	case JINJA_METHOD:
	case JINJA_GLOBAL: return ERR_UNSUPPORTED;   /* Python prints an address: no template means that */
	}
	return ERR_UNSUPPORTED;
}

enum err jinja_repr(struct buf *b, const struct jinja_val *v) { return repr_at(b, v, 0); }

enum err jinja_print(struct buf *b, const struct jinja_val *v)
{
	if (v->type == JINJA_STR)
		return buf_add(b, v->s);
	if (v->type == JINJA_UNDEFINED)
		return ERR_OK;
	return repr_at(b, v, 0);
}

/* ---- code points */

struct str jinja_slice_cp(struct str s, size_t from, size_t n)
{
	size_t i = 0;
	for (; i < s.n && from; from--)
		for (i++; i < s.n && ((unsigned char)s.p[i] & 0xc0) == 0x80; i++)
			;
	size_t begin = i;
	for (; i < s.n && n; n--)
		for (i++; i < s.n && ((unsigned char)s.p[i] & 0xc0) == 0x80; i++)
			;
	return str_sub(s, begin, i - begin);
}

bool jinja_is_space(uint32_t cp)
{
	return (cp >= 9 && cp <= 13) || (cp >= 0x1c && cp <= 0x20) || cp == 0x85 || cp == 0xa0 || cp == 0x1680 || (cp >= 0x2000 && cp <= 0x200a) ||
	       cp == 0x2028 || cp == 0x2029 || cp == 0x202f || cp == 0x205f || cp == 0x3000;
}

struct str jinja_strip(struct str s, bool left, bool right)
{
	uint32_t cp;
	size_t n;
	while (left && (n = utf8_next(s, &cp)) && jinja_is_space(cp))
		s = str_skip(s, n);
	while (right && s.n) {
		size_t at = s.n - 1;
		while (at > 0 && ((unsigned char)s.p[at] & 0xc0) == 0x80)
			at--;
		if (!utf8_next(str_skip(s, at), &cp) || !jinja_is_space(cp))
			break;
		s.n = at;
	}
	return s;
}
