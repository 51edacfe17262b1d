/* test.c: `x is …` by table. */
#include <math.h>

#include "jinja/run.h"

typedef enum err test_fn(struct jinja_run *r, const struct jinja_val *v, const struct jinja_args *a, bool *ret_yes);

#define PLAIN(name, condition)                                                                                                  \
	static enum err t_##name(struct jinja_run *r, const struct jinja_val *v, const struct jinja_args *a, bool *ret_yes)     \
	{                                                                                                                       \
		TRY(jinja_args_only(r, a, 0, "", "the test " #name));                                                           \
		*ret_yes = (condition);                                                                                         \
		return ERR_OK;                                                                                                  \
	}

static bool sequence(const struct jinja_val *v)
{
	return v->type == JINJA_STR || v->type == JINJA_LIST || v->type == JINJA_TUPLE || v->type == JINJA_DICT || v->type == JINJA_UNDEFINED ||
	       (v->type == JINJA_ITER && v->iter->kind == JINJA_RANGE);
}

PLAIN(defined, v->type != JINJA_UNDEFINED)
PLAIN(undefined, v->type == JINJA_UNDEFINED)
PLAIN(none, v->type == JINJA_NONE)
PLAIN(string, v->type == JINJA_STR)
PLAIN(mapping, v->type == JINJA_DICT)
PLAIN(sequence, sequence(v))
PLAIN(iterable, sequence(v) || v->type == JINJA_ITER || v->type == JINJA_LOOP)
PLAIN(boolean, v->type == JINJA_BOOL)
PLAIN(true, v->type == JINJA_BOOL && v->b)
PLAIN(false, v->type == JINJA_BOOL && !v->b)
PLAIN(number, jinja_is_number(v) || v->type == JINJA_BIGINT)
PLAIN(integer, v->type == JINJA_INT || v->type == JINJA_BIGINT)
PLAIN(float, v->type == JINJA_FLOAT)
PLAIN(callable, v->type == JINJA_MACRO || v->type == JINJA_METHOD || v->type == JINJA_GLOBAL)

static enum err against(struct jinja_run *r, int op, const struct jinja_val *v, const struct jinja_args *a, bool *ret_yes)
{
	if (a->n != 1 || a->n_named)
		return jinja_raise(r, "a comparing test takes one argument");
	return jinja_compare(r, op, v, &a->p[0], ret_yes);
}

#define COMPARES(name, op)                                                                                                  \
	static enum err t_##name(struct jinja_run *r, const struct jinja_val *v, const struct jinja_args *a, bool *ret_yes) \
	{                                                                                                                   \
		return against(r, op, v, a, ret_yes);                                                                       \
	}

COMPARES(eq, JINJA_EQ)
COMPARES(ne, JINJA_NE)
COMPARES(lt, JINJA_LT)
COMPARES(le, JINJA_LE)
COMPARES(gt, JINJA_GT)
COMPARES(ge, JINJA_GE)
COMPARES(in, JINJA_IN)

static enum err remainder_is(struct jinja_run *r, const struct jinja_val *v, int64_t by, int64_t want, bool *ret_yes)
{
	struct jinja_val rest, divisor = jinja_int(by);
	TRY(jinja_binary(r, JINJA_MOD, v, &divisor, &rest));
	if (rest.type != JINJA_INT)
		return jinja_refuse(r, "odd and even of floats");
	*ret_yes = rest.i == want;
	return ERR_OK;
}

static enum err t_odd(struct jinja_run *r, const struct jinja_val *v, const struct jinja_args *a, bool *ret_yes)
{
	(void)a;
	return remainder_is(r, v, 2, 1, ret_yes);
}

static enum err t_even(struct jinja_run *r, const struct jinja_val *v, const struct jinja_args *a, bool *ret_yes)
{
	(void)a;
	return remainder_is(r, v, 2, 0, ret_yes);
}

static enum err t_divisibleby(struct jinja_run *r, const struct jinja_val *v, const struct jinja_args *a, bool *ret_yes)
{
	int64_t by;
	TRY(jinja_arg_i64(r, a, 0, "num", 0, &by));
	return remainder_is(r, v, by, 0, ret_yes);
}

static const struct { const char *name; test_fn *fn; } tests[] = {
	{ "defined", t_defined }, { "undefined", t_undefined }, { "none", t_none },       { "string", t_string }, { "mapping", t_mapping },
	{ "sequence", t_sequence }, { "iterable", t_iterable }, { "boolean", t_boolean }, { "true", t_true },     { "false", t_false },
	{ "number", t_number },   { "integer", t_integer },     { "float", t_float },     { "callable", t_callable },
	{ "eq", t_eq },           { "equalto", t_eq },          { "==", t_eq },           { "ne", t_ne },         { "!=", t_ne },
	{ "lt", t_lt },           { "lessthan", t_lt },         { "<", t_lt },            { "le", t_le },         { "<=", t_le },
	{ "gt", t_gt },           { "greaterthan", t_gt },      { ">", t_gt },            { "ge", t_ge },         { ">=", t_ge },
	{ "in", t_in },           { "odd", t_odd },             { "even", t_even },       { "divisibleby", t_divisibleby },
};

int jinja_test_find(struct str name)
{
	for (size_t i = 0; i < ARRAY_LEN(tests); i++)
		if (str_eq(name, str_of(tests[i].name)))
			return (int)i;
	return -1;
}

enum err jinja_test(struct jinja_run *r, int number, const struct jinja_val *v, const struct jinja_args *args, bool *ret_yes)
{
	return tests[number].fn(r, v, args, ret_yes);
}
