/* filter.c: `x | …` by table. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "base/vec.h"
#include "jinja/method.h"

enum { SORT_MAX = 100000 };

typedef enum err filter_fn(struct jinja_run *r, const struct jinja_val *v, const struct jinja_args *a, struct jinja_val *ret_v);

/* ---- text */

static enum err f_tojson(struct jinja_run *r, const struct jinja_val *v, const struct jinja_args *a, struct jinja_val *ret_v)
{
	const struct jinja_val *ascii = jinja_arg_get(a, 0, "ensure_ascii"), *sep = jinja_arg_get(a, 2, "separators"), *sort = jinja_arg_get(a, 3, "sort_keys");
	struct jinja_json_opts o = { .ensure_ascii = ascii && jinja_truthy(ascii), .sort_keys = sort && jinja_truthy(sort) };
	int64_t indent;
	struct buf b;
	TRY(jinja_args_only(r, a, 0, "ensure_ascii indent separators sort_keys", "tojson"));
	TRY(jinja_arg_i64(r, a, 1, "indent", -1, &indent));
	if (indent < -1 || (indent == -1 && jinja_arg_get(a, 1, "indent") && jinja_arg_get(a, 1, "indent")->type != JINJA_NONE))
		return jinja_refuse(r, "a negative indent");
	o.indent = (int)MIN(indent, (int64_t)32);
	o.item_sep = indent >= 0 ? STR(",") : STR(", ");
	o.key_sep = STR(": ");
	if (sep && sep->type != JINJA_NONE) {
		if ((sep->type != JINJA_LIST && sep->type != JINJA_TUPLE) || sep->list->n != 2 || sep->list->p[0].type != JINJA_STR || sep->list->p[1].type != JINJA_STR)
			return jinja_raise(r, "separators must be two strings");
		o.item_sep = sep->list->p[0].s;
		o.key_sep = sep->list->p[1].s;
	}
	buf_init(&b, r->max_text_bytes);
	enum err e = jinja_print_json(&b, v, &o);
	if (e == ERR_OK)
		*ret_v = jinja_str(arena_str(r->a, buf_str(&b)));
	else if (e == ERR_BAD_REQUEST)
		e = jinja_raise(r, "Object of type %s is not JSON serializable", jinja_type_name(v));
	buf_done(&b);
	return e;
}

static enum err f_length(struct jinja_run *r, const struct jinja_val *v, const struct jinja_args *a, struct jinja_val *ret_v)
{
	TRY(jinja_args_only(r, a, 0, "", "length"));
	if (v->type == JINJA_STR)
		*ret_v = jinja_int((int64_t)utf8_count(v->s));
	else if (v->type == JINJA_LIST || v->type == JINJA_TUPLE)
		*ret_v = jinja_int((int64_t)v->list->n);
	else if (v->type == JINJA_DICT)
		*ret_v = jinja_int((int64_t)v->dict->n);
	else if (v->type == JINJA_ITER && v->iter->kind != JINJA_GENERATOR)
		*ret_v = jinja_int((int64_t)v->iter->list->n);
	else if (v->type == JINJA_UNDEFINED)
		*ret_v = jinja_int(0);
	else
		return jinja_raise(r, "object of type '%s' has no len()", jinja_type_name(v));
	return ERR_OK;
}

static enum err f_trim(struct jinja_run *r, const struct jinja_val *v, const struct jinja_args *a, struct jinja_val *ret_v)
{
	const struct jinja_val *chars = jinja_arg_get(a, 0, "chars");
	struct str s;
	TRY(jinja_args_only(r, a, 1, "chars", "trim"));
	TRY(jinja_text(r, v, &s));
	if (chars && chars->type != JINJA_STR && chars->type != JINJA_NONE)
		return jinja_raise(r, "strip arg must be None or str");
	*ret_v = jinja_str(jinja_strip(s, true, true));
	return chars && chars->type == JINJA_STR ? jinja_strip_chars(r, s, chars->s, (struct jinja_sides){ true, true }, &ret_v->s) : ERR_OK;
}

static enum err f_string(struct jinja_run *r, const struct jinja_val *v, const struct jinja_args *a, struct jinja_val *ret_v)
{
	struct str s;
	TRY(jinja_args_only(r, a, 0, "", "string"));
	TRY(jinja_text(r, v, &s));
	*ret_v = jinja_str(s);
	return ERR_OK;
}

static enum err f_safe(struct jinja_run *r, const struct jinja_val *v, const struct jinja_args *a, struct jinja_val *ret_v)
{
	TRY(f_string(r, v, a, ret_v));
	ret_v->markup = true;
	return ERR_OK;
}

static enum err cased(struct jinja_run *r, const struct jinja_val *v, const struct jinja_args *a, enum jinja_casing how, struct jinja_val *ret_v)
{
	struct str s;
	TRY(jinja_args_only(r, a, 0, "", "a case filter"));
	TRY(jinja_text(r, v, &s));
	TRY(jinja_case(r, s, how, &s));
	*ret_v = jinja_str(s);
	return ERR_OK;
}

static enum err f_lower(struct jinja_run *r, const struct jinja_val *v, const struct jinja_args *a, struct jinja_val *ret_v) { return cased(r, v, a, JINJA_LOWER, ret_v); }
static enum err f_upper(struct jinja_run *r, const struct jinja_val *v, const struct jinja_args *a, struct jinja_val *ret_v) { return cased(r, v, a, JINJA_UPPER, ret_v); }
static enum err f_capitalize(struct jinja_run *r, const struct jinja_val *v, const struct jinja_args *a, struct jinja_val *ret_v) { return cased(r, v, a, JINJA_CAPITALIZE, ret_v); }

/* Jinja's title begins a word behind white space, - ( { [ and <, unlike str.title. */
static enum err f_title(struct jinja_run *r, const struct jinja_val *v, const struct jinja_args *a, struct jinja_val *ret_v)
{
	struct str s;
	TRY(cased(r, v, a, JINJA_LOWER, ret_v));
	s = ret_v->s;
	char *p = arena_alloc(r->a, s.n + 1, 1);
	bool begin = true;
	for (size_t i = 0; i < s.n; i++) {
		p[i] = begin && s.p[i] >= 'a' && s.p[i] <= 'z' ? (char)(s.p[i] - 32) : s.p[i];
		begin = memchr("-({[< \t\n\r\v\f\x1c\x1d\x1e\x1f", s.p[i], 15) != NULL;
	}
	*ret_v = jinja_str(str_from(p, s.n));
	return ERR_OK;
}

static enum err f_replace(struct jinja_run *r, const struct jinja_val *v, const struct jinja_args *a, struct jinja_val *ret_v)
{
	struct str s, from, to;
	int64_t count;
	TRY(jinja_args_only(r, a, 3, "old new count", "replace"));
	TRY(jinja_text(r, v, &s));
	TRY(jinja_arg_str(r, a, 0, "old", STR(""), &from));
	TRY(jinja_arg_str(r, a, 1, "new", STR(""), &to));
	TRY(jinja_arg_i64(r, a, 2, "count", -1, &count));
	TRY(jinja_replace(r, s, from, to, count, &s));
	*ret_v = jinja_str(s);
	return ERR_OK;
}

/* Lines end at \n here; the other line ends of Python's splitlines are refused. */
static bool odd_line_end(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (memchr("\r\v\f\x1c\x1d\x1e", s.p[i], 6))
			return true;
	return str_find(s, STR("\xc2\x85")) != SIZE_MAX || str_find(s, STR("\xe2\x80\xa8")) != SIZE_MAX || str_find(s, STR("\xe2\x80\xa9")) != SIZE_MAX;
}

static enum err indent_lines(struct buf *b, struct str s, struct str by, bool first, bool blank)
{
	bool begin = true;
	struct str line;
	if (first)
		TRY(buf_add(b, by));
	do {
		bool more = str_cut(s, '\n', &line, &s);
		if (!begin) {
			TRY(buf_add_byte(b, '\n'));
			if (line.n || blank)
				TRY(buf_add(b, by));
		}
		TRY(buf_add(b, line));
		begin = false;
		if (!more)
			break;
	} while (true);
	return ERR_OK;
}

static enum err f_indent(struct jinja_run *r, const struct jinja_val *v, const struct jinja_args *a, struct jinja_val *ret_v)
{
	const struct jinja_val *width = jinja_arg_get(a, 0, "width"), *first = jinja_arg_get(a, 1, "first"), *blank = jinja_arg_get(a, 2, "blank");
	struct str s, by = STR("    ");
	struct buf b;
	TRY(jinja_args_only(r, a, 3, "width first blank", "indent"));
	TRY(jinja_text(r, v, &s));
	if (width && width->type == JINJA_STR)
		by = width->s;
	else if (width && width->type == JINJA_INT)
		by = str_of(arena_printf(r->a, "%*s", (int)MIN(MAX(width->i, (int64_t)0), (int64_t)256), ""));
	if (odd_line_end(s))
		return jinja_refuse(r, "indent over line ends other than \\n");
	buf_init(&b, r->max_text_bytes);
	enum err e = indent_lines(&b, s, by, first && jinja_truthy(first), blank && jinja_truthy(blank));
	if (e == ERR_OK)
		*ret_v = jinja_str(arena_str(r->a, buf_str(&b)));
	buf_done(&b);
	return e;
}

static enum err f_join(struct jinja_run *r, const struct jinja_val *v, const struct jinja_args *a, struct jinja_val *ret_v)
{
	const struct jinja_list *l;
	const struct jinja_val *by = jinja_arg_get(a, 0, "d");
	struct str sep = { 0 }, s;
	TRY(jinja_args_only(r, a, 1, "d", "join"));
	TRY(jinja_items(r, v, &l));
	if (by)
		TRY(jinja_text(r, by, &sep));
	TRY(jinja_join(r, l, sep, false, &s));
	*ret_v = jinja_str(s);
	return ERR_OK;
}

/* ---- numbers and choices */

static enum err f_int(struct jinja_run *r, const struct jinja_val *v, const struct jinja_args *a, struct jinja_val *ret_v)
{
	int64_t def, i;
	double f;
	TRY(jinja_args_only(r, a, 1, "default", "int"));
	TRY(jinja_arg_i64(r, a, 0, "default", 0, &def));
	*ret_v = jinja_int(def);
	if (v->type == JINJA_STR) {
		struct str s = jinja_strip(v->s, true, true);
		if (str_to_i64(s, &i))
			*ret_v = jinja_int(i);
		else if (str_to_f64(s, &f) && fabs(f) < 9e15)
			*ret_v = jinja_int((int64_t)f);
		else if (s.n && (str_find(s, STR("_")) != SIZE_MAX || s.p[0] == '+' || (unsigned char)s.p[0] >= 0x80))
			return jinja_refuse(r, "int of this text");
	} else if (v->type == JINJA_FLOAT && fabs(v->f) < 9e15) {
		*ret_v = jinja_int((int64_t)v->f);
	} else if (v->type == JINJA_INT || v->type == JINJA_BOOL) {
		*ret_v = jinja_int(v->type == JINJA_BOOL ? v->b : v->i);
	} else if (v->type == JINJA_FLOAT || v->type == JINJA_BIGINT) {
		return jinja_refuse(r, "int of a number this large");
	}
	return ERR_OK;
}

static enum err f_abs(struct jinja_run *r, const struct jinja_val *v, const struct jinja_args *a, struct jinja_val *ret_v)
{
	TRY(jinja_args_only(r, a, 0, "", "abs"));
	if (v->type == JINJA_FLOAT)
		*ret_v = jinja_float(fabs(v->f));
	else if (v->type == JINJA_INT && v->i > INT64_MIN)
		*ret_v = jinja_int(v->i < 0 ? -v->i : v->i);
	else
		return jinja_refuse(r, "abs of a %s", jinja_type_name(v));
	return ERR_OK;
}

static enum err f_default(struct jinja_run *r, const struct jinja_val *v, const struct jinja_args *a, struct jinja_val *ret_v)
{
	const struct jinja_val *def = jinja_arg_get(a, 0, "default_value"), *falsy = jinja_arg_get(a, 1, "boolean");
	TRY(jinja_args_only(r, a, 2, "default_value boolean", "default"));
	bool use = v->type == JINJA_UNDEFINED || (falsy && jinja_truthy(falsy) && !jinja_truthy(v));
	*ret_v = !use ? *v : def ? *def : jinja_str(STR(""));
	return ERR_OK;
}

static enum err edge_of(struct jinja_run *r, const struct jinja_val *v, const struct jinja_args *a, bool last, struct jinja_val *ret_v)
{
	const struct jinja_list *l;
	TRY(jinja_args_only(r, a, 0, "", "first and last"));
	if (last && v->type == JINJA_ITER && v->iter->kind == JINJA_GENERATOR)
		return jinja_raise(r, "'generator' object is not reversible");
	TRY(jinja_items(r, v, &l));
	*ret_v = l->n ? l->p[last ? l->n - 1 : 0] : jinja_undefined(STR("item"));
	return ERR_OK;
}

static enum err f_first(struct jinja_run *r, const struct jinja_val *v, const struct jinja_args *a, struct jinja_val *ret_v) { return edge_of(r, v, a, false, ret_v); }
static enum err f_last(struct jinja_run *r, const struct jinja_val *v, const struct jinja_args *a, struct jinja_val *ret_v) { return edge_of(r, v, a, true, ret_v); }

/* ---- lists */

static enum err f_list(struct jinja_run *r, const struct jinja_val *v, const struct jinja_args *a, struct jinja_val *ret_v)
{
	const struct jinja_list *l;
	TRY(jinja_args_only(r, a, 0, "", "list"));
	TRY(jinja_items(r, v, &l));
	*ret_v = (struct jinja_val){ .type = JINJA_LIST, .list = l };
	return ERR_OK;
}

static enum err f_items(struct jinja_run *r, const struct jinja_val *v, const struct jinja_args *a, struct jinja_val *ret_v)
{
	TRY(jinja_args_only(r, a, 0, "", "items"));
	if (v->type == JINJA_UNDEFINED) {
		*ret_v = jinja_iter_of(r->a, JINJA_GENERATOR, NULL, 0);
		return ERR_OK;
	}
	if (v->type != JINJA_DICT)
		return jinja_raise(r, "Can only get item pairs from a mapping.");
	*ret_v = jinja_dict_items(r, v->dict, JINJA_GENERATOR);
	return jinja_step(r, v->dict->n);
}

static enum err f_reverse(struct jinja_run *r, const struct jinja_val *v, const struct jinja_args *a, struct jinja_val *ret_v)
{
	struct jinja_val part[3] = { JINJA_V_NONE, JINJA_V_NONE, jinja_int(-1) };
	TRY(jinja_args_only(r, a, 0, "", "reverse"));
	if (v->type != JINJA_STR && v->type != JINJA_LIST && v->type != JINJA_TUPLE)
		return jinja_refuse(r, "reverse of a %s", jinja_type_name(v));
	TRY(jinja_slice(r, v, part, ret_v));
	if (v->type != JINJA_STR)
		*ret_v = jinja_iter_of(r->a, JINJA_GENERATOR, ret_v->list->p, ret_v->list->n);
	return ERR_OK;
}

/* item.a.b.0: the attribute= of map, selectattr, sort. def (may be NULL) stands in for what is undefined on the way. */
static enum err path_of(struct jinja_run *r, struct jinja_val item, struct str path, const struct jinja_val *def, struct jinja_val *ret_v)
{
	struct str part;
	uint64_t i;
	*ret_v = item;
	while (path.n) {
		str_cut(path, '.', &part, &path);
		struct jinja_val key = str_to_u64(part, &i) && i < 1u << 30 ? jinja_int((int64_t)i) : jinja_str(part), from = *ret_v;
		TRY(jinja_get_item(r, &from, &key, ret_v));
		if (def && def->type != JINJA_NONE && ret_v->type == JINJA_UNDEFINED)
			*ret_v = *def;
	}
	return ERR_OK;
}

/* map, select and their like take anything that is not true for an empty list. */
static enum err items_or_none(struct jinja_run *r, const struct jinja_val *v, const struct jinja_list **ret_l)
{
	static const struct jinja_list none = { 0 };
	if (jinja_truthy(v))
		return jinja_items(r, v, ret_l);
	*ret_l = &none;
	return ERR_OK;
}

/* select, reject, selectattr, rejectattr: `args` behind the attribute are a test's name and its argument. */
static enum err chosen(struct jinja_run *r, const struct jinja_val *v, const struct jinja_args *a, bool by_attr, bool want, struct jinja_val *ret_v)
{
	const struct jinja_list *l;
	struct str attr = { 0 }, name;
	int test = -1;
	if (a->n_named || (by_attr && a->n == 0))
		return jinja_refuse(r, "this form of select");
	if (by_attr)
		TRY(jinja_arg_str(r, a, 0, NULL, STR(""), &attr));
	struct jinja_args rest = { 0 };
	if (a->n > by_attr) {
		rest = (struct jinja_args){ a->p + by_attr, a->n - by_attr, NULL, 0 };
		TRY(jinja_arg_str(r, &rest, 0, NULL, STR(""), &name));
		test = jinja_test_find(name);
		if (test < 0)
			return jinja_refuse(r, "the test %.*s", STR_ARG(name));
		rest = (struct jinja_args){ rest.p + 1, rest.n - 1, NULL, 0 };
	}
	TRY(items_or_none(r, v, &l));
	struct jinja_val *out = arena_new(r->a, struct jinja_val, l->n);
	size_t n = 0;
	for (size_t i = 0; i < l->n; i++) {
		struct jinja_val x;
		TRY(path_of(r, l->p[i], attr, NULL, &x));
		bool yes = jinja_truthy(&x);
		if (test >= 0)
			TRY(jinja_test(r, test, &x, &rest, &yes));
		if (yes == want)
			out[n++] = l->p[i];
	}
	*ret_v = jinja_iter_of(r->a, JINJA_GENERATOR, out, n);
	return ERR_OK;
}

static enum err f_select(struct jinja_run *r, const struct jinja_val *v, const struct jinja_args *a, struct jinja_val *ret_v) { return chosen(r, v, a, false, true, ret_v); }
static enum err f_reject(struct jinja_run *r, const struct jinja_val *v, const struct jinja_args *a, struct jinja_val *ret_v) { return chosen(r, v, a, false, false, ret_v); }
static enum err f_selectattr(struct jinja_run *r, const struct jinja_val *v, const struct jinja_args *a, struct jinja_val *ret_v) { return chosen(r, v, a, true, true, ret_v); }
static enum err f_rejectattr(struct jinja_run *r, const struct jinja_val *v, const struct jinja_args *a, struct jinja_val *ret_v) { return chosen(r, v, a, true, false, ret_v); }

static enum err f_map(struct jinja_run *r, const struct jinja_val *v, const struct jinja_args *a, struct jinja_val *ret_v)
{
	const struct jinja_val *attr = a->n == 0 ? jinja_arg_get(a, SIZE_MAX, "attribute") : NULL, *def = jinja_arg_get(a, SIZE_MAX, "default");
	const struct jinja_list *l;
	int filter = -1;
	if (attr ? attr->type != JINJA_STR : a->n != 1 || a->n_named || a->p[0].type != JINJA_STR)
		return jinja_refuse(r, "this form of map");
	TRY(jinja_args_only(r, a, 1, "attribute default", "map"));
	if (!attr && (filter = jinja_filter_find(a->p[0].s)) < 0)
		return jinja_refuse(r, "the filter %.*s", STR_ARG(a->p[0].s));
	TRY(items_or_none(r, v, &l));
	struct jinja_val *out = arena_new(r->a, struct jinja_val, l->n);
	for (size_t i = 0; i < l->n; i++) {
		if (attr)
			TRY(path_of(r, l->p[i], attr->s, def, &out[i]));
		else
			TRY(jinja_filter(r, filter, &l->p[i], &(struct jinja_args){ 0 }, &out[i]));
	}
	*ret_v = jinja_iter_of(r->a, JINJA_GENERATOR, out, l->n);
	return ERR_OK;
}

/* ---- sorting: stable merge by insertion of runs, keys compared as Jinja does (strings without case) */

struct sort_item { struct jinja_val key, val; };

static enum err sort_key(struct jinja_run *r, struct jinja_val v, bool fold, struct jinja_val *ret_k)
{
	struct str s;
	*ret_k = v;
	if (fold && v.type == JINJA_STR) {
		TRY(jinja_case(r, v.s, JINJA_LOWER, &s));
		*ret_k = jinja_str(s);
	}
	return ERR_OK;
}

static enum err merge(struct jinja_run *r, struct sort_item *p, struct sort_item *tmp, size_t n, bool down)
{
	if (n < 2)
		return ERR_OK;
	size_t mid = n / 2, i = 0, k = mid, out = 0;
	TRY(merge(r, p, tmp, mid, down));
	TRY(merge(r, p + mid, tmp, n - mid, down));
	while (i < mid && k < n) {
		bool right;
		TRY(jinja_step(r, 1));
		TRY(jinja_compare(r, JINJA_LT, down ? &p[i].key : &p[k].key, down ? &p[k].key : &p[i].key, &right));
		tmp[out++] = right ? p[k++] : p[i++];
	}
	memcpy(tmp + out, p + i, (mid - i) * sizeof(*p));
	memcpy(p, tmp, (out + mid - i) * sizeof(*p));
	return ERR_OK;
}

static enum err sorted(struct jinja_run *r, struct sort_item *p, size_t n, bool down)
{
	if (n > SORT_MAX)
		return jinja_fault_set(r->fault, r->line, ERR_LIMIT, "a list too long to sort");
	return merge(r, p, arena_new(r->a, struct sort_item, n), n, down);
}

static bool flag(const struct jinja_args *a, size_t i, const char *name)
{
	const struct jinja_val *v = jinja_arg_get(a, i, name);
	return v && jinja_truthy(v);
}

static enum err f_sort(struct jinja_run *r, const struct jinja_val *v, const struct jinja_args *a, struct jinja_val *ret_v)
{
	const struct jinja_list *l;
	struct str attr;
	TRY(jinja_args_only(r, a, 3, "reverse case_sensitive attribute", "sort"));
	TRY(jinja_arg_str(r, a, 2, "attribute", STR(""), &attr));
	TRY(jinja_items(r, v, &l));
	struct sort_item *p = arena_new(r->a, struct sort_item, l->n);
	struct jinja_val *out = arena_new(r->a, struct jinja_val, l->n);
	for (size_t i = 0; i < l->n; i++) {
		p[i].val = l->p[i];
		TRY(path_of(r, l->p[i], attr, NULL, &p[i].key));
		TRY(sort_key(r, p[i].key, !flag(a, 1, "case_sensitive"), &p[i].key));
	}
	TRY(sorted(r, p, l->n, flag(a, 0, "reverse")));
	for (size_t i = 0; i < l->n; i++)
		out[i] = p[i].val;
	*ret_v = jinja_list_of(r->a, out, l->n);
	return ERR_OK;
}

/* The least or the greatest; strings without case unless told otherwise; the first of equals. */
static enum err extreme(struct jinja_run *r, const struct jinja_val *v, const struct jinja_args *a, bool greatest, struct jinja_val *ret_v)
{
	const struct jinja_list *l;
	struct str attr;
	struct jinja_val best, key;
	TRY(jinja_args_only(r, a, 2, "case_sensitive attribute", "min and max"));
	TRY(jinja_arg_str(r, a, 1, "attribute", STR(""), &attr));
	TRY(jinja_items(r, v, &l));
	*ret_v = jinja_undefined(STR("item"));
	for (size_t i = 0; i < l->n; i++) {
		bool better = i == 0;
		TRY(path_of(r, l->p[i], attr, NULL, &key));
		TRY(sort_key(r, key, !flag(a, 0, "case_sensitive"), &key));
		if (i)
			TRY(jinja_compare(r, greatest ? JINJA_GT : JINJA_LT, &key, &best, &better));
		if (!better)
			continue;
		best = key;
		*ret_v = l->p[i];
	}
	return ERR_OK;
}

static enum err f_min(struct jinja_run *r, const struct jinja_val *v, const struct jinja_args *a, struct jinja_val *ret_v) { return extreme(r, v, a, false, ret_v); }
static enum err f_max(struct jinja_run *r, const struct jinja_val *v, const struct jinja_args *a, struct jinja_val *ret_v) { return extreme(r, v, a, true, ret_v); }

static enum err f_dictsort(struct jinja_run *r, const struct jinja_val *v, const struct jinja_args *a, struct jinja_val *ret_v)
{
	struct str by;
	TRY(jinja_args_only(r, a, 3, "case_sensitive by reverse", "dictsort"));
	TRY(jinja_arg_str(r, a, 1, "by", STR("key"), &by));
	if (v->type != JINJA_DICT)
		return jinja_raise(r, "'%s' object has no attribute 'items'", jinja_type_name(v));
	if (!str_eq(by, STR("key")) && !str_eq(by, STR("value")))
		return jinja_raise(r, "You can only sort by either \"key\" or \"value\"");
	size_t n = v->dict->n;
	struct sort_item *p = arena_new(r->a, struct sort_item, n);
	struct jinja_val *out = arena_new(r->a, struct jinja_val, n), pairs = jinja_dict_items(r, v->dict, JINJA_VIEW);
	for (size_t i = 0; i < n; i++) {
		p[i].val = pairs.iter->list->p[i];
		TRY(sort_key(r, str_eq(by, STR("key")) ? v->dict->p[i].key : v->dict->p[i].val, !flag(a, 0, "case_sensitive"), &p[i].key));
	}
	TRY(sorted(r, p, n, flag(a, 2, "reverse")));
	for (size_t i = 0; i < n; i++)
		out[i] = p[i].val;
	*ret_v = jinja_list_of(r->a, out, n);
	return ERR_OK;
}

static enum err f_unique(struct jinja_run *r, const struct jinja_val *v, const struct jinja_args *a, struct jinja_val *ret_v)
{
	const struct jinja_list *l;
	TRY(jinja_args_only(r, a, 1, "case_sensitive", "unique"));
	TRY(jinja_items(r, v, &l));
	struct jinja_val *keys = arena_new(r->a, struct jinja_val, l->n), *out = arena_new(r->a, struct jinja_val, l->n);
	size_t n = 0;
	for (size_t i = 0; i < l->n; i++) {
		struct jinja_val key;
		size_t k = 0;
		TRY(sort_key(r, l->p[i], !flag(a, 0, "case_sensitive"), &key));
		for (bool equal = false; k < n; k++) {
			TRY(jinja_equals(r, &keys[k], &key, &equal));
			if (equal)
				break;
		}
		TRY(jinja_step(r, 1 + n / 16));
		if (k == n) {
			keys[n] = key;
			out[n++] = l->p[i];
		}
	}
	*ret_v = jinja_iter_of(r->a, JINJA_GENERATOR, out, n);
	return ERR_OK;
}

static const struct { const char *name; filter_fn *fn; } filters[] = {
	{ "tojson", f_tojson },   { "length", f_length }, { "count", f_length },         { "trim", f_trim },             { "string", f_string },
	{ "safe", f_safe },       { "lower", f_lower },   { "upper", f_upper },          { "capitalize", f_capitalize }, { "title", f_title },
	{ "replace", f_replace }, { "indent", f_indent }, { "join", f_join },            { "int", f_int },               { "abs", f_abs },
	{ "default", f_default }, { "d", f_default },     { "first", f_first },          { "last", f_last },             { "list", f_list },
	{ "items", f_items },     { "reverse", f_reverse }, { "select", f_select },      { "reject", f_reject },         { "selectattr", f_selectattr },
	{ "rejectattr", f_rejectattr }, { "map", f_map }, { "sort", f_sort },            { "dictsort", f_dictsort },     { "unique", f_unique }, { "min", f_min }, { "max", f_max },
};

int jinja_filter_find(struct str name)
{
	for (size_t i = 0; i < ARRAY_LEN(filters); i++)
		if (str_eq(name, str_of(filters[i].name)))
			return (int)i;
	return -1;
}

enum err jinja_filter(struct jinja_run *r, int number, const struct jinja_val *v, const struct jinja_args *args, struct jinja_val *ret_v)
{
	filter_fn *fn = filters[number].fn;
	TRY(jinja_step(r, 1));
	/* Marked text: known of these filters only, what they make of it. */
	if (v->markup && fn != f_safe && fn != f_tojson && fn != f_length && fn != f_default && fn != f_list)
		return jinja_refuse(r, "the filter %s on marked text", filters[number].name);
	for (size_t i = 0; i < args->n; i++)
		if (args->p[i].markup)
			return jinja_refuse(r, "marked text as argument of %s", filters[number].name);
	if (v->type == JINJA_STR)
		jinja_toiled(r, v->s.n);
	TRY(fn(r, v, args, ret_v));
	if (ret_v->type == JINJA_STR)
		jinja_toiled(r, fn == f_tojson ? ret_v->s.n * JINJA_PRINTING : ret_v->s.n);
	return ERR_OK;
}
