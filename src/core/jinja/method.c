/* method.c: methods of strings, dicts and lists that templates call, by table. Changing methods are known by name because
 * the sandbox forbids them: calling one raises, as on a worker. */
#include "jinja/method.h"

#include <string.h>

#include "base/utf8.h"
#include "base/vec.h"

static bool ascii(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if ((unsigned char)s.p[i] >= 0x80)
			return false;
	return true;
}

static bool letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
static char up(char c) { return c >= 'a' && c <= 'z' ? (char)(c - 32) : c; }
static char down(char c) { return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c; }

enum err jinja_case(struct jinja_run *r, struct str s, enum jinja_casing how, struct str *ret_s)
{
	if (!ascii(s))
		return jinja_refuse(r, "upper and lower case beyond ASCII");
	char *p = arena_alloc(r->a, s.n + 1, 1);
	for (size_t i = 0; i < s.n; i++) {
		bool first = how == JINJA_UPPER || (how == JINJA_CAPITALIZE && i == 0) || (how == JINJA_TITLE && (i == 0 || !letter(s.p[i - 1])));
		p[i] = first ? up(s.p[i]) : down(s.p[i]);
	}
	*ret_s = str_from(p, s.n);
	return jinja_step(r, 1 + s.n / 4096);
}

enum err jinja_replace(struct jinja_run *r, struct str s, struct str from, struct str to, int64_t count, struct str *ret_s)
{
	struct buf b;
	size_t had = s.n;
	enum err e = ERR_OK;
	if (from.n == 0)
		return jinja_refuse(r, "replacing the empty string");
	buf_init(&b, r->max_text_bytes);
	while (e == ERR_OK && count != 0) {
		size_t at = str_find(s, from);
		if (at == SIZE_MAX)
			break;
		e = buf_add(&b, str_sub(s, 0, at));
		if (e == ERR_OK)
			e = buf_add(&b, to);
		s = str_skip(s, at + from.n);
		count--;
	}
	jinja_searched(r, (had - s.n) / from.n);
	if (e == ERR_OK)
		e = buf_add(&b, s);
	if (e == ERR_OK)
		*ret_s = arena_str(r->a, buf_str(&b));
	buf_done(&b);
	return e;
}

enum err jinja_join(struct jinja_run *r, const struct jinja_list *l, struct str sep, bool strings_only, struct str *ret_s)
{
	struct buf b;
	enum err e = ERR_OK;
	buf_init(&b, r->max_text_bytes);
	for (size_t i = 0; e == ERR_OK && i < l->n; i++) {
		struct str s;
		if (strings_only && l->p[i].type != JINJA_STR)
			e = jinja_raise(r, "sequence item %zu: expected str instance, %s found", i, jinja_type_name(&l->p[i]));
		else
			e = jinja_text(r, &l->p[i], &s);
		if (e == ERR_OK && i)
			e = buf_add(&b, sep);
		if (e == ERR_OK)
			e = buf_add(&b, s);
	}
	if (e == ERR_OK)
		*ret_s = arena_str(r->a, buf_str(&b));
	buf_done(&b);
	return e;
}

static bool cp_in(uint32_t cp, struct str set)
{
	uint32_t c;
	for (size_t n; (n = utf8_next(set, &c)); set = str_skip(set, n))
		if (c == cp)
			return true;
	return false;
}

enum err jinja_strip_chars(struct jinja_run *r, struct str s, struct str chars, struct jinja_sides sides, struct str *ret_s)
{
	uint32_t cp;
	size_t n, had = s.n;
	if (s.n * chars.n / JINJA_STEP_BYTES > r->max_steps)
		return jinja_spent(r);
	while (sides.left && (n = utf8_next(s, &cp)) && cp_in(cp, chars))
		s = str_skip(s, n);
	while (sides.right && s.n) {
		size_t at = s.n - 1;
		while (at > 0 && ((unsigned char)s.p[at] & 0xc0) == 0x80)
			at--;
		if (!utf8_next(str_skip(s, at), &cp) || !cp_in(cp, chars))
			break;
		s.n = at;
	}
	jinja_toiled(r, (had - s.n + 2) * chars.n);
	*ret_s = s;
	return ERR_OK;
}

struct jinja_val jinja_dict_items(struct jinja_run *r, const struct jinja_dict *d, enum jinja_iter_kind kind)
{
	struct jinja_val *p = arena_new(r->a, struct jinja_val, d->n);
	for (size_t i = 0; i < d->n; i++)
		p[i] = jinja_tuple_of(r->a, (struct jinja_val[]){ d->p[i].key, d->p[i].val }, 2);
	return jinja_iter_of(r->a, kind, p, d->n);
}

/* ---- methods of strings */

typedef enum err method_fn(struct jinja_run *r, const struct jinja_val *self, const struct jinja_args *a, struct jinja_val *ret_v);

struct pieces {
	struct jinja_val *p;
	size_t n, cap;
};

static enum err pieces_of(struct jinja_run *r, struct pieces *v, struct jinja_val *ret_v)
{
	enum err e = jinja_step(r, v->n);
	if (e == ERR_OK)
		*ret_v = jinja_list_of(r->a, v->p, v->n);
	VEC_FREE(v);
	return e;
}

static enum err split_space(struct jinja_run *r, struct str s, int64_t max, struct jinja_val *ret_v)
{
	struct pieces v = { 0 };
	uint32_t cp;
	s = jinja_strip(s, true, false);
	while (s.n) {
		size_t end = 0, n;
		while ((max < 0 || (int64_t)v.n < max) && (n = utf8_next(str_skip(s, end), &cp)) && !jinja_is_space(cp))
			end += n;
		if (max >= 0 && (int64_t)v.n >= max)
			end = s.n;
		VEC_PUSH(&v, jinja_str(str_sub(s, 0, end)));
		s = jinja_strip(str_skip(s, end), true, false);
		if (v.n > r->max_steps)
			break;
	}
	return pieces_of(r, &v, ret_v);
}

static enum err m_split(struct jinja_run *r, const struct jinja_val *self, const struct jinja_args *a, struct jinja_val *ret_v)
{
	const struct jinja_val *sep = jinja_arg_get(a, 0, "sep");
	int64_t max;
	struct pieces v = { 0 };
	struct str s = self->s;
	TRY(jinja_args_only(r, a, 2, "sep maxsplit", "split"));
	TRY(jinja_arg_i64(r, a, 1, "maxsplit", -1, &max));
	if (!sep || sep->type == JINJA_NONE)
		return split_space(r, s, max, ret_v);
	if (sep->type != JINJA_STR || sep->s.n == 0)
		return jinja_raise(r, "empty separator");
	for (size_t at; v.n <= r->max_steps && (max < 0 || (int64_t)v.n < max) && (at = str_find(s, sep->s)) != SIZE_MAX; s = str_skip(s, at + sep->s.n))
		VEC_PUSH(&v, jinja_str(str_sub(s, 0, at)));
	VEC_PUSH(&v, jinja_str(s));
	return pieces_of(r, &v, ret_v);
}

static enum err strip_sides(struct jinja_run *r, const struct jinja_val *self, const struct jinja_args *a, bool left, bool right, struct jinja_val *ret_v)
{
	const struct jinja_val *chars = jinja_arg_get(a, 0, NULL);
	TRY(jinja_args_only(r, a, 1, "", "strip"));
	if (chars && chars->type != JINJA_STR && chars->type != JINJA_NONE)
		return jinja_raise(r, "strip arg must be None or str");
	*ret_v = jinja_str(jinja_strip(self->s, left, right));
	return chars && chars->type == JINJA_STR ? jinja_strip_chars(r, self->s, chars->s, (struct jinja_sides){ left, right }, &ret_v->s) : ERR_OK;
}

static enum err m_strip(struct jinja_run *r, const struct jinja_val *self, const struct jinja_args *a, struct jinja_val *ret_v) { return strip_sides(r, self, a, true, true, ret_v); }
static enum err m_lstrip(struct jinja_run *r, const struct jinja_val *self, const struct jinja_args *a, struct jinja_val *ret_v) { return strip_sides(r, self, a, true, false, ret_v); }
static enum err m_rstrip(struct jinja_run *r, const struct jinja_val *self, const struct jinja_args *a, struct jinja_val *ret_v) { return strip_sides(r, self, a, false, true, ret_v); }

static enum err affix(struct jinja_run *r, const struct jinja_val *self, const struct jinja_args *a, bool (*fits)(struct str, struct str), struct jinja_val *ret_v)
{
	TRY(jinja_args_only(r, a, 1, "", "startswith and endswith"));
	const struct jinja_val *x = jinja_arg_get(a, 0, NULL);
	bool yes = false;
	if (!x || (x->type != JINJA_STR && x->type != JINJA_TUPLE))
		return jinja_raise(r, "startswith first arg must be str or a tuple of str");
	if (x->type == JINJA_STR)
		yes = fits(self->s, x->s);
	for (size_t i = 0; x->type == JINJA_TUPLE && i < x->list->n; i++)
		yes |= x->list->p[i].type == JINJA_STR && fits(self->s, x->list->p[i].s);
	*ret_v = jinja_bool(yes);
	return ERR_OK;
}

static enum err m_startswith(struct jinja_run *r, const struct jinja_val *self, const struct jinja_args *a, struct jinja_val *ret_v) { return affix(r, self, a, str_starts, ret_v); }
static enum err m_endswith(struct jinja_run *r, const struct jinja_val *self, const struct jinja_args *a, struct jinja_val *ret_v) { return affix(r, self, a, str_ends, ret_v); }

static enum err cased(struct jinja_run *r, const struct jinja_val *self, const struct jinja_args *a, enum jinja_casing how, struct jinja_val *ret_v)
{
	struct str s;
	TRY(jinja_args_only(r, a, 0, "", "a case method"));
	TRY(jinja_case(r, self->s, how, &s));
	*ret_v = jinja_str(s);
	return ERR_OK;
}

static enum err m_lower(struct jinja_run *r, const struct jinja_val *self, const struct jinja_args *a, struct jinja_val *ret_v) { return cased(r, self, a, JINJA_LOWER, ret_v); }
static enum err m_upper(struct jinja_run *r, const struct jinja_val *self, const struct jinja_args *a, struct jinja_val *ret_v) { return cased(r, self, a, JINJA_UPPER, ret_v); }
static enum err m_title(struct jinja_run *r, const struct jinja_val *self, const struct jinja_args *a, struct jinja_val *ret_v) { return cased(r, self, a, JINJA_TITLE, ret_v); }
static enum err m_capitalize(struct jinja_run *r, const struct jinja_val *self, const struct jinja_args *a, struct jinja_val *ret_v) { return cased(r, self, a, JINJA_CAPITALIZE, ret_v); }

static enum err m_replace(struct jinja_run *r, const struct jinja_val *self, const struct jinja_args *a, struct jinja_val *ret_v)
{
	struct str from, to, s;
	int64_t count;
	TRY(jinja_args_only(r, a, 3, "", "replace"));
	if (a->n < 2)
		return jinja_raise(r, "replace expected at least 2 arguments, got %zu", a->n);
	TRY(jinja_arg_str(r, a, 0, NULL, STR(""), &from));
	TRY(jinja_arg_str(r, a, 1, NULL, STR(""), &to));
	TRY(jinja_arg_i64(r, a, 2, NULL, -1, &count));
	TRY(jinja_replace(r, self->s, from, to, count, &s));
	*ret_v = jinja_str(s);
	return ERR_OK;
}

static enum err m_join(struct jinja_run *r, const struct jinja_val *self, const struct jinja_args *a, struct jinja_val *ret_v)
{
	const struct jinja_list *l;
	struct str s;
	TRY(jinja_args_only(r, a, 1, "", "join"));
	if (a->n != 1)
		return jinja_raise(r, "join() takes exactly one argument (%zu given)", a->n);
	TRY(jinja_items(r, &a->p[0], &l));
	TRY(jinja_join(r, l, self->s, true, &s));
	*ret_v = jinja_str(s);
	return ERR_OK;
}

static enum err m_find(struct jinja_run *r, const struct jinja_val *self, const struct jinja_args *a, struct jinja_val *ret_v)
{
	struct str what;
	TRY(jinja_args_only(r, a, 1, "", "find"));
	TRY(jinja_arg_str(r, a, 0, NULL, STR(""), &what));
	size_t at = str_find(self->s, what);
	*ret_v = jinja_int(at == SIZE_MAX ? -1 : (int64_t)utf8_count(str_sub(self->s, 0, at)));
	return ERR_OK;
}

static enum err m_count(struct jinja_run *r, const struct jinja_val *self, const struct jinja_args *a, struct jinja_val *ret_v)
{
	struct str what, s = self->s;
	int64_t n = 0;
	TRY(jinja_args_only(r, a, 1, "", "count"));
	TRY(jinja_arg_str(r, a, 0, NULL, STR(""), &what));
	if (what.n == 0)
		return jinja_refuse(r, "counting the empty string");
	for (size_t at; (at = str_find(s, what)) != SIZE_MAX; s = str_skip(s, at + what.n))
		n++;
	*ret_v = jinja_int(n);
	return ERR_OK;
}

static enum err m_format(struct jinja_run *r, const struct jinja_val *self, const struct jinja_args *a, struct jinja_val *ret_v)
{
	struct str s;
	TRY(jinja_format(r, self->s, a, &s));
	*ret_v = jinja_str(s);
	return ERR_OK;
}

/* ---- methods of dicts */

static enum err m_items(struct jinja_run *r, const struct jinja_val *self, const struct jinja_args *a, struct jinja_val *ret_v)
{
	TRY(jinja_args_only(r, a, 0, "", "items"));
	*ret_v = jinja_dict_items(r, self->dict, JINJA_VIEW);
	return jinja_step(r, self->dict->n);
}

static enum err m_keys(struct jinja_run *r, const struct jinja_val *self, const struct jinja_args *a, struct jinja_val *ret_v)
{
	const struct jinja_list *l;
	TRY(jinja_args_only(r, a, 0, "", "keys"));
	TRY(jinja_items(r, self, &l));
	*ret_v = jinja_iter_of(r->a, JINJA_VIEW, l->p, l->n);
	return ERR_OK;
}

static enum err m_values(struct jinja_run *r, const struct jinja_val *self, const struct jinja_args *a, struct jinja_val *ret_v)
{
	TRY(jinja_args_only(r, a, 0, "", "values"));
	struct jinja_val *p = arena_new(r->a, struct jinja_val, self->dict->n);
	for (size_t i = 0; i < self->dict->n; i++)
		p[i] = self->dict->p[i].val;
	*ret_v = jinja_iter_of(r->a, JINJA_VIEW, p, self->dict->n);
	return jinja_step(r, self->dict->n);
}

static enum err m_get(struct jinja_run *r, const struct jinja_val *self, const struct jinja_args *a, struct jinja_val *ret_v)
{
	TRY(jinja_args_only(r, a, 2, "", "get"));
	if (a->n == 0)
		return jinja_raise(r, "get expected at least 1 argument, got 0");
	const struct jinja_val *found = jinja_dict_get(self->dict, &a->p[0]);
	jinja_sought(r, self->dict->n, &a->p[0]);
	*ret_v = found ? *found : a->n > 1 ? a->p[1] : JINJA_V_NONE;
	return ERR_OK;
}

/* ---- what there is */

static enum err m_forbidden(struct jinja_run *r, const struct jinja_val *self, const struct jinja_args *a, struct jinja_val *ret_v)
{
	(void)a, (void)ret_v;
	return jinja_raise(r, "access to a changing method of '%s' object is unsafe", jinja_type_name(self));
}

static enum err m_unknown(struct jinja_run *r, const struct jinja_val *self, const struct jinja_args *a, struct jinja_val *ret_v)
{
	(void)a, (void)ret_v;
	return jinja_refuse(r, "a method of %s", jinja_type_name(self));
}

struct method { struct str name; method_fn *fn; };
static const struct method str_methods[] = {
	{ STR_INIT("split"), m_split }, { STR_INIT("strip"), m_strip }, { STR_INIT("lstrip"), m_lstrip }, { STR_INIT("rstrip"), m_rstrip },
	{ STR_INIT("startswith"), m_startswith }, { STR_INIT("endswith"), m_endswith }, { STR_INIT("lower"), m_lower }, { STR_INIT("upper"), m_upper },
	{ STR_INIT("title"), m_title }, { STR_INIT("capitalize"), m_capitalize }, { STR_INIT("replace"), m_replace }, { STR_INIT("join"), m_join },
	{ STR_INIT("find"), m_find }, { STR_INIT("count"), m_count }, { STR_INIT("format"), m_format },
};
static const struct method dict_methods[] = {
	{ STR_INIT("items"), m_items }, { STR_INIT("keys"), m_keys }, { STR_INIT("values"), m_values }, { STR_INIT("get"), m_get },
	{ STR_INIT("clear"), m_forbidden }, { STR_INIT("pop"), m_forbidden }, { STR_INIT("popitem"), m_forbidden }, { STR_INIT("setdefault"), m_forbidden },
	{ STR_INIT("update"), m_forbidden }, { STR_INIT("copy"), m_unknown }, { STR_INIT("fromkeys"), m_unknown },
};
static const struct method list_methods[] = {
	{ STR_INIT("append"), m_forbidden }, { STR_INIT("reverse"), m_forbidden }, { STR_INIT("insert"), m_forbidden }, { STR_INIT("sort"), m_forbidden },
	{ STR_INIT("extend"), m_forbidden }, { STR_INIT("remove"), m_forbidden }, { STR_INIT("pop"), m_unknown }, { STR_INIT("clear"), m_unknown },
	{ STR_INIT("copy"), m_unknown }, { STR_INIT("count"), m_unknown }, { STR_INIT("index"), m_unknown },
};
static const struct method tuple_methods[] = {
	{ STR_INIT("count"), m_unknown }, { STR_INIT("index"), m_unknown },
};
static const struct { const struct method *p; size_t n; } methods[] = {   /* by type */
	[JINJA_STR] = { str_methods, ARRAY_LEN(str_methods) }, [JINJA_DICT] = { dict_methods, ARRAY_LEN(dict_methods) },
	[JINJA_LIST] = { list_methods, ARRAY_LEN(list_methods) }, [JINJA_TUPLE] = { tuple_methods, ARRAY_LEN(tuple_methods) },
	[JINJA_GLOBAL] = { NULL, 0 },
};
/* The rest of Python's str: known, so that they are refused instead of read as undefined. */
static const char str_rest[] = "casefold center encode expandtabs format_map index isalnum isalpha isascii isdecimal isdigit isidentifier islower "
                               "isnumeric isprintable isspace istitle isupper ljust maketrans partition removeprefix removesuffix rfind rindex rjust "
                               "rpartition rsplit splitlines swapcase translate zfill";
static const char number_rest[] = "as_integer_ratio bit_count bit_length conjugate denominator from_bytes fromhex hex imag is_integer numerator real to_bytes";

static bool listed(struct str name, struct str words)
{
	struct str w;
	while (words.n) {
		str_cut(words, ' ', &w, &words);
		if (str_eq(w, name))
			return true;
	}
	return false;
}

bool jinja_method_of_dicts(struct str name)
{
	for (size_t i = 0; i < ARRAY_LEN(dict_methods); i++)
		if (str_eq(name, dict_methods[i].name))
			return true;
	return false;
}

bool jinja_method_find(struct jinja_run *r, const struct jinja_val *self, struct str name, struct jinja_val *ret_v)
{
	int number = -1;
	for (size_t i = 0; number < 0 && i < methods[self->type].n; i++)
		if (str_eq(name, methods[self->type].p[i].name))
			number = (int)i;
	if (number < 0 && !(self->type == JINJA_STR && listed(name, str_of(str_rest))) &&
		!((jinja_is_number(self) || self->type == JINJA_BIGINT) && listed(name, str_of(number_rest))))
		return false;
	struct jinja_method *m = arena_new(r->a, struct jinja_method, 1);
	*m = (struct jinja_method){ *self, number };
	*ret_v = (struct jinja_val){ .type = JINJA_METHOD, .method = m };
	return true;
}

enum err jinja_call_method(struct jinja_run *r, const struct jinja_method *m, const struct jinja_args *args, struct jinja_val *ret_v)
{
	bool marked = m->self.markup;
	for (size_t i = 0; i < args->n; i++) {
		marked |= args->p[i].markup;
		if (args->p[i].type == JINJA_STR)
			jinja_toiled(r, args->p[i].s.n);
		else if (args->p[i].type == JINJA_TUPLE)
			jinja_searched(r, args->p[i].list->n);
	}
	if (marked)
		return jinja_refuse(r, "a method with marked text");
	if (m->self.type == JINJA_STR)
		jinja_toiled(r, m->self.s.n);
	else if (m->self.type == JINJA_DICT)
		jinja_searched(r, m->self.dict->n);
	return (m->number < 0 ? m_unknown : methods[m->self.type].p[m->number].fn)(r, &m->self, args, ret_v);
}
