/* global.c: the functions a chat template finds: range, namespace, dict, raise_exception, strftime_now. */
#include <stdio.h>
#include <string.h>

#include "jinja/run.h"

enum { RANGE_MAX = 100000 };   /* the sandbox's own limit */

typedef enum err global_fn(struct jinja_run *r, const struct jinja_args *a, struct jinja_val *ret_v);

static enum err g_range(struct jinja_run *r, const struct jinja_args *a, struct jinja_val *ret_v)
{
	int64_t from = 0, to, step;
	TRY(jinja_args_only(r, a, 3, "", "range"));
	if (a->n == 0)
		return jinja_raise(r, "range expected at least 1 argument, got 0");
	TRY(jinja_arg_i64(r, a, a->n > 1, NULL, 0, &to));
	if (a->n > 1)
		TRY(jinja_arg_i64(r, a, 0, NULL, 0, &from));
	TRY(jinja_arg_i64(r, a, 2, NULL, 1, &step));
	if (step == 0)
		return jinja_raise(r, "range() arg 3 must not be zero");
	__int128 span = step > 0 ? (__int128)to - from : (__int128)from - to, width = step > 0 ? step : -(__int128)step;
	__int128 n = span > 0 ? (span + width - 1) / width : 0;
	if (n > RANGE_MAX)
		return jinja_raise(r, "Range too big. The sandbox blocks ranges larger than MAX_RANGE (%d).", RANGE_MAX);
	TRY(jinja_step(r, (uint64_t)n));
	struct jinja_val *p = arena_new(r->a, struct jinja_val, (size_t)n);
	for (int64_t i = 0; i < (int64_t)n; i++)
		p[i] = jinja_int(from + i * step);
	*ret_v = jinja_iter_of(r->a, JINJA_RANGE, p, (size_t)n);
	return ERR_OK;
}

static enum err named_dict(struct jinja_run *r, const struct jinja_args *a, const char *what, struct jinja_val *ret_v)
{
	struct jinja_val d = jinja_dict_new(r->a, a->n_named);
	if (a->n > 1 || (a->n == 1 && a->p[0].type != JINJA_DICT))
		return jinja_refuse(r, "positional arguments of %s", what);
	for (size_t i = 0; a->n && i < a->p[0].dict->n; i++) {
		const struct jinja_pair *p = &a->p[0].dict->p[i];
		jinja_sought(r, d.dict->n, &p->key);
		TRY(jinja_step(r, 1));
		jinja_dict_put(r->a, d, p->key, p->val);
	}
	for (size_t i = 0; i < a->n_named; i++)
		jinja_dict_put(r->a, d, jinja_str(a->named[i].name), a->named[i].val);
	*ret_v = d;
	return ERR_OK;
}

static enum err g_namespace(struct jinja_run *r, const struct jinja_args *a, struct jinja_val *ret_v)
{
	TRY(named_dict(r, a, "namespace", ret_v));
	ret_v->type = JINJA_NAMESPACE;
	return ERR_OK;
}

static enum err g_dict(struct jinja_run *r, const struct jinja_args *a, struct jinja_val *ret_v) { return named_dict(r, a, "dict", ret_v); }

static enum err g_raise(struct jinja_run *r, const struct jinja_args *a, struct jinja_val *ret_v)
{
	struct str s = { 0 };
	(void)ret_v;
	if (a->n)
		TRY(jinja_text(r, &a->p[0], &s));
	return jinja_raise(r, "%.*s", (int)MIN(s.n, 250u), s.p ? s.p : "");
}

static const char *const day_names[] = { "Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday" };
static const char *const month_names[] = { "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December" };

/* One conversion of strftime in the C locale; the ones with a locale's or a system's own reading are refused. */
static enum err conversion(struct jinja_run *r, struct buf *b, char c)
{
	const struct jinja_time *t = &r->o->now;
	if (r->o->day_only && memchr("HIMSpT", c, 6))
		return jinja_refuse(r, "the time of day");
	const char *day = day_names[t->weekday % 7], *month = month_names[(t->month + 11) % 12];
	switch (c) {
	case 'Y': return buf_printf(b, "%04d", t->year);
	case 'y': return buf_printf(b, "%02d", t->year % 100);
	case 'm': return buf_printf(b, "%02d", t->month);
	case 'd': return buf_printf(b, "%02d", t->day);
	case 'e': return buf_printf(b, "%2d", t->day);
	case 'H': return buf_printf(b, "%02d", t->hour);
	case 'I': return buf_printf(b, "%02d", t->hour % 12 ? t->hour % 12 : 12);
	case 'M': return buf_printf(b, "%02d", t->minute);
	case 'S': return buf_printf(b, "%02d", t->second);
	case 'p': return buf_printf(b, "%s", t->hour < 12 ? "AM" : "PM");
	case 'j': return buf_printf(b, "%03d", t->yearday);
	case 'A': return buf_printf(b, "%s", day);
	case 'a': return buf_printf(b, "%.3s", day);
	case 'B': return buf_printf(b, "%s", month);
	case 'b':
	case 'h': return buf_printf(b, "%.3s", month);
	case 'F': return buf_printf(b, "%04d-%02d-%02d", t->year, t->month, t->day);
	case 'T': return buf_printf(b, "%02d:%02d:%02d", t->hour, t->minute, t->second);
	case '%': return buf_add_byte(b, '%');
	default: return jinja_refuse(r, "%%%c in strftime_now", c);
	}
}

static enum err g_strftime_now(struct jinja_run *r, const struct jinja_args *a, struct jinja_val *ret_v)
{
	struct str format;
	struct buf b;
	enum err e = ERR_OK;
	TRY(jinja_args_only(r, a, 1, "", "strftime_now"));
	TRY(jinja_arg_str(r, a, 0, NULL, STR(""), &format));
	buf_init(&b, 4096);
	for (size_t i = 0; e == ERR_OK && i < format.n; i++) {
		bool special = format.p[i] == '%' && i + 1 < format.n;
		e = special ? conversion(r, &b, format.p[i + 1]) : buf_add_byte(&b, format.p[i]);
		i += special;
	}
	if (e == ERR_OK)
		*ret_v = jinja_str(arena_str(r->a, buf_str(&b)));
	buf_done(&b);
	return e;
}

static const struct { struct str name; global_fn *fn; } globals[] = {
	{ STR_INIT("range"), g_range }, { STR_INIT("namespace"), g_namespace }, { STR_INIT("dict"), g_dict }, { STR_INIT("raise_exception"), g_raise }, { STR_INIT("strftime_now"), g_strftime_now },
	/* Jinja's own others: known, so that they are refused instead of read as undefined. */
	{ STR_INIT("lipsum"), NULL }, { STR_INIT("cycler"), NULL }, { STR_INIT("joiner"), NULL },
};

static int global_find(struct str name)
{
	for (size_t i = 0; i < ARRAY_LEN(globals); i++)
		if (str_eq(name, globals[i].name))
			return (int)i;
	return -1;
}

const struct jinja_val *jinja_given(struct jinja_run *r, struct str name)
{
	const struct jinja_val *var = r->o->vars ? jinja_dict_get_str(r->o->vars->dict, name) : NULL;
	if (var)
		return var;
	int global = global_find(name);
	struct jinja_val *v = arena_new(r->a, struct jinja_val, 1);
	*v = global >= 0 ? (struct jinja_val){ .type = JINJA_GLOBAL, .global = global } : jinja_undefined(name);
	return v;
}

enum err jinja_call_global(struct jinja_run *r, int number, const struct jinja_args *args, struct jinja_val *ret_v)
{
	if (!globals[number].fn)
		return jinja_refuse(r, "%.*s()", STR_ARG(globals[number].name));
	return globals[number].fn(r, args, ret_v);
}

enum err jinja_call(struct jinja_run *r, const struct jinja_val *fn, const struct jinja_args *args, struct jinja_val *ret_v)
{
	TRY(jinja_step(r, 1));
	if (fn->type == JINJA_MACRO)
		return jinja_call_macro(r, fn->macro, args, NULL, ret_v);
	if (fn->type == JINJA_METHOD)
		return jinja_call_method(r, fn->method, args, ret_v);
	if (fn->type == JINJA_GLOBAL)
		return jinja_call_global(r, fn->global, args, ret_v);
	if (fn->type == JINJA_UNDEFINED)
		return jinja_raise(r, "'%.*s' is undefined", (int)MIN(fn->s.n, 80u), fn->s.p ? fn->s.p : "");
	return jinja_raise(r, "'%s' object is not callable", jinja_type_name(fn));
}
