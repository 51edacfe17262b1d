/* eval.c: expressions. Jinja's rules for attributes, items and what is undefined; operators are operate.c. */
#include <string.h>

#include "base/utf8.h"
#include "base/vec.h"
#include "jinja/run.h"

enum { ARGS_MAX = 32 };

enum err jinja_text(struct jinja_run *r, const struct jinja_val *v, struct str *ret_s)
{
	struct buf b;
	if (v->type == JINJA_STR) {
		*ret_s = v->s;
		return ERR_OK;
	}
	buf_init(&b, r->max_text_bytes);
	enum err e = jinja_print(&b, v);
	jinja_toiled(r, b.n * JINJA_PRINTING);
	if (e == ERR_OK)
		*ret_s = arena_str(r->a, buf_str(&b));
	buf_done(&b);
	return e == ERR_UNSUPPORTED ? jinja_refuse(r, "the text of a %s", jinja_type_name(v)) : e;
}

static struct jinja_val chars_of(struct jinja_run *r, struct str s)
{
	VEC(struct jinja_val) v = { 0 };
	uint32_t cp;
	for (size_t n; (n = utf8_next(s, &cp)); s = str_skip(s, n))
		VEC_PUSH(&v, jinja_str(str_sub(s, 0, n)));
	struct jinja_val l = jinja_list_of(r->a, v.p, v.n);
	VEC_FREE(&v);
	return l;
}

enum err jinja_items(struct jinja_run *r, const struct jinja_val *v, const struct jinja_list **ret_l)
{
	static const struct jinja_list none = { 0 };
	if (v->type == JINJA_LIST || v->type == JINJA_TUPLE) {
		*ret_l = v->list;
	} else if (v->type == JINJA_STR) {
		TRY(jinja_step(r, v->s.n / 4));   /* before, for each letter takes memory */
		*ret_l = chars_of(r, v->s).list;
	} else if (v->type == JINJA_DICT) {
		struct jinja_val *keys = arena_new(r->a, struct jinja_val, v->dict->n);
		for (size_t i = 0; i < v->dict->n; i++)
			keys[i] = v->dict->p[i].key;
		*ret_l = jinja_list_of(r->a, keys, v->dict->n).list;
	} else if (v->type == JINJA_ITER) {
		if (v->iter->used)
			return jinja_refuse(r, "going through a generator twice");
		v->iter->used = v->iter->kind == JINJA_GENERATOR;
		*ret_l = v->iter->list;
	} else if (v->type == JINJA_UNDEFINED) {
		*ret_l = &none;
	} else {
		return jinja_raise(r, "'%s' object is not iterable", jinja_type_name(v));
	}
	return jinja_step(r, (*ret_l)->n);
}

/* ---- attributes and items */

static struct jinja_val loop_attr(const struct jinja_loop *l, struct str name)
{
	int64_t i = (int64_t)l->i, n = (int64_t)l->items->n;
	if (str_eq(name, STR("first")))
		return jinja_bool(i == 0);
	if (str_eq(name, STR("last")))
		return jinja_bool(i == n - 1);
	if (str_eq(name, STR("index0")))
		return jinja_int(i);
	const struct { struct str name; int64_t i; } numbers[] = {
		{ STR("index"), i + 1 }, { STR("revindex"), n - i }, { STR("revindex0"), n - i - 1 }, { STR("length"), n },
		{ STR("depth"), 1 }, { STR("depth0"), 0 },   /* only recursive loops go deeper */
	};
	for (size_t k = 0; k < ARRAY_LEN(numbers); k++)
		if (str_eq(name, numbers[k].name))
			return jinja_int(numbers[k].i);
	if (str_eq(name, STR("previtem")) && i > 0)
		return l->items->p[i - 1];
	return str_eq(name, STR("nextitem")) && i + 1 < n ? l->items->p[i + 1] : jinja_undefined(name);
}

enum err jinja_undefined_fault(struct jinja_run *r, const struct jinja_val *v)
{
	return jinja_raise(r, "'%.*s' is undefined", (int)MIN(v->s.n, 80u), v->s.p ? v->s.p : "");
}

static inline enum err get_member(struct jinja_run *r, const struct jinja_val *obj, struct str name, struct jinja_val *ret_v)
{
	const struct jinja_val *found = jinja_dict_find_str(obj->dict, name);
	jinja_sought_str(r, obj->dict->n, name);
	*ret_v = found ? *found : jinja_undefined(name);
	return ERR_OK;
}

static enum err __attribute__((noinline)) get_of_loop(struct jinja_run *r, const struct jinja_loop *l, struct str name, struct jinja_val *ret_v)
{
	*ret_v = loop_attr(l, name);
	return ret_v->type == JINJA_UNDEFINED && (str_eq(name, STR("cycle")) || str_eq(name, STR("changed")))
		       ? jinja_refuse(r, "loop.%.*s", STR_ARG(name))
		       : ERR_OK;
}

enum err jinja_get_attr(struct jinja_run *r, const struct jinja_val *obj, struct str name, struct jinja_val *ret_v)
{
	if (obj->type == JINJA_UNDEFINED)
		return jinja_undefined_fault(r, obj);
	if (str_starts(name, STR("__")))
		return jinja_refuse(r, "the attribute %.*s", STR_ARG(name));
	if (obj->type == JINJA_LOOP)
		return get_of_loop(r, obj->loop, name, ret_v);
	if (obj->type == JINJA_ITER)
		return jinja_refuse(r, "the attribute %.*s of a generator", STR_ARG(name));
	if (jinja_method_find(r, obj, name, ret_v))
		return ERR_OK;
	if (obj->type == JINJA_DICT || obj->type == JINJA_NAMESPACE)
		return get_member(r, obj, name, ret_v);
	*ret_v = jinja_undefined(name);
	return ERR_OK;
}

static bool index_of(const struct jinja_val *key, size_t n, size_t *ret_i)
{
	if (key->type != JINJA_INT && key->type != JINJA_BOOL)
		return false;
	int64_t i = key->type == JINJA_BOOL ? key->b : key->i;
	i += i < 0 ? (int64_t)n : 0;
	if (i < 0 || i >= (int64_t)n)
		return false;
	*ret_i = (size_t)i;
	return true;
}

enum err jinja_get_item(struct jinja_run *r, const struct jinja_val *obj, const struct jinja_val *key, struct jinja_val *ret_v)
{
	size_t i;
	if (obj->type == JINJA_UNDEFINED)
		return jinja_undefined_fault(r, obj);
	if (obj->markup)
		return jinja_refuse(r, "an item of marked text");
	if (obj->type == JINJA_DICT) {
		const struct jinja_val *found = jinja_dict_get(obj->dict, key);
		jinja_sought(r, obj->dict->n, key);
		if (found) {
			*ret_v = *found;
			return ERR_OK;
		}
	}
	if ((obj->type == JINJA_LIST || obj->type == JINJA_TUPLE) && index_of(key, obj->list->n, &i)) {
		*ret_v = obj->list->p[i];
		return ERR_OK;
	}
	if (obj->type == JINJA_ITER && obj->iter->kind == JINJA_RANGE && index_of(key, obj->iter->list->n, &i)) {
		*ret_v = obj->iter->list->p[i];
		return ERR_OK;
	}
	if (obj->type == JINJA_ITER && key->type == JINJA_STR)
		return jinja_get_attr(r, obj, key->s, ret_v);
	if (obj->type == JINJA_STR)
		jinja_toiled(r, obj->s.n);
	if (obj->type == JINJA_STR && index_of(key, utf8_count(obj->s), &i)) {
		*ret_v = jinja_str(jinja_slice_cp(obj->s, i, 1));
		return ERR_OK;
	}
	if (key->type == JINJA_STR && obj->type != JINJA_LOOP && obj->type != JINJA_NAMESPACE && jinja_method_find(r, obj, key->s, ret_v))
		return ERR_OK;
	if (key->type == JINJA_STR && (obj->type == JINJA_LOOP || obj->type == JINJA_NAMESPACE))
		return jinja_get_attr(r, obj, key->s, ret_v);
	*ret_v = jinja_undefined(key->type == JINJA_STR ? key->s : STR("item"));
	return ERR_OK;
}

/* ---- slices: Python's clamping */

static enum err slice_bound(struct jinja_run *r, const struct jinja_val *v, int64_t n, int64_t step, int64_t def, int64_t *ret)
{
	if (v->type == JINJA_NONE) {
		*ret = def;
		return ERR_OK;
	}
	if (v->type != JINJA_INT && v->type != JINJA_BOOL)
		return jinja_raise(r, "slice indices must be integers or None");
	int64_t i = v->type == JINJA_BOOL ? v->b : v->i;
	i += i < 0 ? n : 0;
	*ret = step > 0 ? MIN(MAX(i, (int64_t)0), n) : MIN(MAX(i, (int64_t)-1), n - 1);
	return ERR_OK;
}

enum err jinja_slice(struct jinja_run *r, const struct jinja_val *v, const struct jinja_val part[3], struct jinja_val *ret_v)
{
	int64_t step = 1, from, to;
	const struct jinja_list *items;
	if (part[2].type == JINJA_INT)
		step = part[2].i;
	else if (part[2].type != JINJA_NONE)
		return jinja_raise(r, "slice indices must be integers or None");
	if (step == 0)
		return jinja_raise(r, "slice step cannot be zero");
	if (v->type == JINJA_UNDEFINED)
		return jinja_undefined_fault(r, v);
	if (v->markup)
		return jinja_refuse(r, "a slice of marked text");
	if (v->type == JINJA_ITER && v->iter->kind == JINJA_RANGE)
		return jinja_refuse(r, "a slice of a range");
	if (v->type != JINJA_STR && v->type != JINJA_LIST && v->type != JINJA_TUPLE) {
		*ret_v = jinja_undefined(STR("slice"));
		return ERR_OK;
	}
	int64_t n = v->type == JINJA_STR ? (int64_t)utf8_count(v->s) : (int64_t)v->list->n;
	jinja_toiled(r, v->type == JINJA_STR ? v->s.n : 0);
	TRY(slice_bound(r, &part[0], n, step, step > 0 ? 0 : n - 1, &from));
	TRY(slice_bound(r, &part[1], n, step, step > 0 ? n : -1, &to));
	if (v->type == JINJA_STR && step == 1) {
		*ret_v = jinja_str(jinja_slice_cp(v->s, (size_t)from, to > from ? (size_t)(to - from) : 0));
		return ERR_OK;
	}
	TRY(jinja_items(r, v, &items));
	struct jinja_val *out = arena_new(r->a, struct jinja_val, (size_t)n);
	size_t m = 0;
	for (int64_t i = from; step > 0 ? i < to : i > to; i += step)
		out[m++] = items->p[i];
	*ret_v = v->type == JINJA_TUPLE ? jinja_tuple_of(r->a, out, m) : jinja_list_of(r->a, out, m);
	if (v->type == JINJA_STR) {
		struct buf b;
		buf_init(&b, v->s.n);
		for (size_t i = 0; i < m; i++)
			TRY(buf_add(&b, out[i].s));
		*ret_v = jinja_str(arena_str(r->a, buf_str(&b)));
		buf_done(&b);
	}
	return ERR_OK;
}

/* ---- expressions */

static enum err eval_some_args(struct jinja_run *r, const struct jinja_expr *e, struct jinja_args *ret_a)
{
	if (e->n_args > ARGS_MAX)
		return jinja_refuse(r, "more than %d arguments", ARGS_MAX);
	struct jinja_val *vals = arena_new(r->a, struct jinja_val, e->n_args);
	struct jinja_arg_named *named = arena_new(r->a, struct jinja_arg_named, e->n_args);
	*ret_a = (struct jinja_args){ .p = vals, .named = named };
	for (size_t i = 0; i < e->n_args; i++) {
		struct jinja_val v;
		TRY(jinja_eval(r, e->args[i].val, &v));
		if (e->args[i].name.n)
			named[ret_a->n_named++] = (struct jinja_arg_named){ e->args[i].name, v };
		else
			vals[ret_a->n++] = v;
	}
	return ERR_OK;
}

static inline enum err eval_args(struct jinja_run *r, const struct jinja_expr *e, struct jinja_args *ret_a)
{
	*ret_a = (struct jinja_args){ 0 };
	return e->n_args ? eval_some_args(r, e, ret_a) : ERR_OK;
}

static enum err eval_seq(struct jinja_run *r, const struct jinja_expr *e, struct jinja_val *ret_v)
{
	struct jinja_val *p = arena_new(r->a, struct jinja_val, e->n_args);
	for (size_t i = 0; i < e->n_args; i++)
		TRY(jinja_eval(r, e->args[i].val, &p[i]));
	*ret_v = e->kind == JINJA_E_TUPLE ? jinja_tuple_of(r->a, p, e->n_args) : jinja_list_of(r->a, p, e->n_args);
	return ERR_OK;
}

static enum err eval_dict(struct jinja_run *r, const struct jinja_expr *e, struct jinja_val *ret_v)
{
	struct jinja_val d = jinja_dict_new(r->a, e->n_args / 2);
	for (size_t i = 0; i < e->n_args; i += 2) {
		struct jinja_val k, v;
		TRY(jinja_eval(r, e->args[i].val, &k));
		TRY(jinja_eval(r, e->args[i + 1].val, &v));
		if (k.type > JINJA_STR)
			return jinja_refuse(r, "a %s as key", jinja_type_name(&k));
		jinja_sought(r, d.dict->n, &k);
		jinja_dict_put(r->a, d, k, v);
	}
	*ret_v = d;
	return ERR_OK;
}

static enum err eval_slice(struct jinja_run *r, const struct jinja_expr *e, struct jinja_val *ret_v)
{
	struct jinja_val of, part[3] = { JINJA_V_NONE, JINJA_V_NONE, JINJA_V_NONE };
	const struct jinja_expr *at[3] = { e->a, e->b, e->c };
	TRY(jinja_eval(r, e->d, &of));
	for (int i = 0; i < 3; i++)
		if (at[i])
			TRY(jinja_eval(r, at[i], &part[i]));
	return jinja_slice(r, &of, part, ret_v);
}

static enum err eval_concat(struct jinja_run *r, const struct jinja_expr *e, struct jinja_val *ret_v)
{
	struct buf b;
	enum err err = ERR_OK;
	buf_init(&b, r->max_text_bytes);
	for (size_t i = 0; err == ERR_OK && i < e->n_args; i++) {
		struct jinja_val v;
		struct str s;
		err = jinja_eval(r, e->args[i].val, &v);
		if (err == ERR_OK)
			err = jinja_text(r, &v, &s);
		if (err == ERR_OK)
			err = buf_add(&b, s);
	}
	jinja_toiled(r, b.n);
	if (err == ERR_OK)
		*ret_v = jinja_str(arena_str(r->a, buf_str(&b)));
	buf_done(&b);
	return err;
}

static enum err eval_compare(struct jinja_run *r, const struct jinja_expr *e, struct jinja_val *ret_v)
{
	struct jinja_val x, y;
	bool yes = true;
	TRY(jinja_eval(r, e->args[0].val, &x));
	for (size_t i = 1; yes && i < e->n_args; i++, x = y) {
		TRY(jinja_eval(r, e->args[i].val, &y));
		TRY(jinja_compare(r, e->ops[i - 1], &x, &y, &yes));
	}
	*ret_v = jinja_bool(yes);
	return ERR_OK;
}

static enum err eval_const(struct jinja_run *r, const struct jinja_expr *e, struct jinja_val *ret_v)
{
	(void)r;
	*ret_v = e->value;
	return ERR_OK;
}

static enum err eval_name(struct jinja_run *r, const struct jinja_expr *e, struct jinja_val *ret_v)
{
	*ret_v = *jinja_lookup(r, e->number, e->name);
	return ERR_OK;
}

static enum err eval_not(struct jinja_run *r, const struct jinja_expr *e, struct jinja_val *ret_v)
{
	struct jinja_val v;
	TRY(jinja_eval(r, e->a, &v));
	*ret_v = jinja_bool(!jinja_truthy(&v));
	return ERR_OK;
}

static enum err eval_sign(struct jinja_run *r, const struct jinja_expr *e, struct jinja_val *ret_v)
{
	struct jinja_val v, zero = jinja_int(0);
	TRY(jinja_eval(r, e->a, &v));
	if (!jinja_is_number(&v))
		return v.type == JINJA_UNDEFINED ? jinja_undefined_fault(r, &v)
						 : jinja_raise(r, "bad operand type for a sign: '%s'", jinja_type_name(&v));
	if (e->kind == JINJA_E_NEG && v.type == JINJA_FLOAT) {
		*ret_v = jinja_float(-v.f);
		return ERR_OK;
	}
	return jinja_binary(r, e->kind == JINJA_E_NEG ? JINJA_SUB : JINJA_ADD, &zero, &v, ret_v);
}

static enum err eval_logic(struct jinja_run *r, const struct jinja_expr *e, struct jinja_val *ret_v)
{
	TRY(jinja_eval(r, e->a, ret_v));
	return jinja_truthy(ret_v) == (e->kind == JINJA_E_AND) ? jinja_eval(r, e->b, ret_v) : ERR_OK;
}

static enum err eval_cond(struct jinja_run *r, const struct jinja_expr *e, struct jinja_val *ret_v)
{
	struct jinja_val c;
	TRY(jinja_eval(r, e->b, &c));
	if (jinja_truthy(&c))
		return jinja_eval(r, e->a, ret_v);
	if (e->c)
		return jinja_eval(r, e->c, ret_v);
	*ret_v = jinja_undefined(STR("inline if"));
	return ERR_OK;
}

static enum err eval_call(struct jinja_run *r, const struct jinja_expr *e, struct jinja_val *ret_v)
{
	struct jinja_val fn;
	struct jinja_args args;
	TRY(jinja_eval(r, e->a, &fn));
	TRY(eval_args(r, e, &args));
	return jinja_call(r, &fn, &args, ret_v);
}

static enum err eval_filter(struct jinja_run *r, const struct jinja_expr *e, struct jinja_val *ret_v)
{
	struct jinja_val on;
	struct jinja_args args;
	TRY(jinja_eval(r, e->a, &on));
	TRY(eval_args(r, e, &args));
	return jinja_filter(r, e->op, &on, &args, ret_v);
}

static enum err eval_test(struct jinja_run *r, const struct jinja_expr *e, struct jinja_val *ret_v)
{
	struct jinja_val on;
	struct jinja_args args;
	bool yes;
	TRY(jinja_eval(r, e->a, &on));
	TRY(eval_args(r, e, &args));
	TRY(jinja_test(r, e->op, &on, &args, &yes));
	*ret_v = jinja_bool(yes != e->negated);
	return ERR_OK;
}

static inline enum err attr_of(struct jinja_run *r, const struct jinja_val *of, const struct jinja_expr *e, struct jinja_val *ret_v)
{
	if (e->plain && (of->type == JINJA_DICT || of->type == JINJA_NAMESPACE))
		return get_member(r, of, e->name, ret_v);
	if (e->plain && of->type == JINJA_LOOP)
		return get_of_loop(r, of->loop, e->name, ret_v);
	return jinja_get_attr(r, of, e->name, ret_v);
}

static enum err __attribute__((noinline)) eval_attr_of_any(struct jinja_run *r, const struct jinja_expr *e, struct jinja_val *ret_v)
{
	struct jinja_val of;
	TRY(jinja_eval(r, e->a, &of));
	return attr_of(r, &of, e, ret_v);
}

/* Nearly all are a name's: no need to copy what it stands for. */
static enum err eval_attr(struct jinja_run *r, const struct jinja_expr *e, struct jinja_val *ret_v)
{
	if (e->a->kind != JINJA_E_NAME)
		return eval_attr_of_any(r, e, ret_v);
	TRY(jinja_eval_step(r));
	return attr_of(r, jinja_lookup(r, e->a->number, e->a->name), e, ret_v);
}

static enum err eval_item(struct jinja_run *r, const struct jinja_expr *e, struct jinja_val *ret_v)
{
	struct jinja_val of, key;
	TRY(jinja_eval(r, e->a, &of));
	TRY(jinja_eval(r, e->b, &key));
	return jinja_get_item(r, &of, &key, ret_v);
}

static enum err eval_bin(struct jinja_run *r, const struct jinja_expr *e, struct jinja_val *ret_v)
{
	struct jinja_val x, y;
	TRY(jinja_eval(r, e->a, &x));
	TRY(jinja_eval(r, e->b, &y));
	return jinja_binary(r, e->op, &x, &y, ret_v);
}

jinja_eval_fn *const jinja_evals[] = {
	[JINJA_E_CONST] = eval_const,
	[JINJA_E_NAME] = eval_name,
	[JINJA_E_LIST] = eval_seq,
	[JINJA_E_TUPLE] = eval_seq,
	[JINJA_E_DICT] = eval_dict,
	[JINJA_E_ATTR] = eval_attr,
	[JINJA_E_ITEM] = eval_item,
	[JINJA_E_SLICE] = eval_slice,
	[JINJA_E_CALL] = eval_call,
	[JINJA_E_FILTER] = eval_filter,
	[JINJA_E_TEST] = eval_test,
	[JINJA_E_NOT] = eval_not,
	[JINJA_E_NEG] = eval_sign,
	[JINJA_E_POS] = eval_sign,
	[JINJA_E_AND] = eval_logic,
	[JINJA_E_OR] = eval_logic,
	[JINJA_E_BIN] = eval_bin,
	[JINJA_E_CONCAT] = eval_concat,
	[JINJA_E_COMPARE] = eval_compare,
	[JINJA_E_COND] = eval_cond,
};
