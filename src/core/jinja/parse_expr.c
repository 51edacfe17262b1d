/* parse_expr.c: expressions by recursive descent, in Jinja's own order of binding:
 * if-else, or, and, not, comparisons, + -, ~, * / // %, **, unary, postfix, filters and tests. Depth-bounded. */
#include <string.h>

#include "jinja/method.h"
#include "jinja/parse.h"

typedef VEC(struct jinja_arg) arg_vec;

bool jinja_at_op(const struct jinja_parser *p, const char *op) { return p->t->type == JINJA_T_OP && str_eq(p->t->text, str_of(op)); }
bool jinja_at_name(const struct jinja_parser *p, const char *name) { return p->t->type == JINJA_T_NAME && str_eq(p->t->text, str_of(name)); }

bool jinja_skip_op(struct jinja_parser *p, const char *op)
{
	bool yes = jinja_at_op(p, op);
	p->t += yes;
	return yes;
}

bool jinja_skip_name(struct jinja_parser *p, const char *name)
{
	bool yes = jinja_at_name(p, name);
	p->t += yes;
	return yes;
}

enum err jinja_unexpected(struct jinja_parser *p, const char *wanted)
{
	return jinja_fault_set(p->fault, p->t->line, ERR_SYNTAX, "%s expected, not \"%.*s\"", wanted, (int)MIN(p->t->text.n, 40u), p->t->text.p ? p->t->text.p : "");
}

enum err jinja_want_op(struct jinja_parser *p, const char *op)
{
	return jinja_skip_op(p, op) ? ERR_OK : jinja_unexpected(p, op);
}

static struct jinja_expr *node(struct jinja_parser *p, enum jinja_expr_kind kind)
{
	struct jinja_expr *e = arena_new(&p->to->arena, struct jinja_expr, 1);
	e->kind = kind;
	e->line = p->t->line;
	return e;
}

static const struct jinja_arg *keep(struct jinja_parser *p, arg_vec *v)
{
	struct jinja_arg *a = arena_new(&p->to->arena, struct jinja_arg, v->n);
	if (v->n)
		memcpy(a, v->p, v->n * sizeof(*a));
	VEC_FREE(v);
	return a;
}

static enum err binary(struct jinja_parser *p, enum jinja_expr_kind kind, int op, const struct jinja_expr **io_left,
                       enum err (*right)(struct jinja_parser *, const struct jinja_expr **))
{
	struct jinja_expr *e = node(p, kind);
	p->t++;
	e->op = op;
	e->a = *io_left;
	TRY(right(p, &e->b));
	*io_left = e;
	return ERR_OK;
}

/* ---- primaries */

static enum err integer(struct jinja_parser *p, const struct jinja_expr **ret_e)
{
	struct jinja_expr *e = node(p, JINJA_E_CONST);
	uint64_t v;
	if (!str_to_u64(p->t->text, &v) || v > INT64_MAX)
		return jinja_fault_set(p->fault, p->t->line, ERR_UNSUPPORTED, "an integer beyond 64 bits");
	e->value = jinja_int((int64_t)v);
	p->t++;
	*ret_e = e;
	return ERR_OK;
}

static enum err real(struct jinja_parser *p, const struct jinja_expr **ret_e)
{
	struct jinja_expr *e = node(p, JINJA_E_CONST);
	double v;
	if (!str_to_f64(p->t->text, &v))
		return jinja_unexpected(p, "a number");
	e->value = jinja_float(v);
	p->t++;
	*ret_e = e;
	return ERR_OK;
}

/* Adjacent strings are one. */
static enum err string(struct jinja_parser *p, const struct jinja_expr **ret_e)
{
	struct jinja_expr *e = node(p, JINJA_E_CONST);
	struct str s = (p->t++)->text;
	for (; p->t->type == JINJA_T_STR; p->t++) {
		char *both = arena_alloc(&p->to->arena, s.n + p->t->text.n + 1, 1);
		memcpy(both, s.p, s.n);
		memcpy(both + s.n, p->t->text.p, p->t->text.n);
		s = str_from(both, s.n + p->t->text.n);
	}
	e->value = jinja_str(s);
	*ret_e = e;
	return ERR_OK;
}

static enum err name(struct jinja_parser *p, const struct jinja_expr **ret_e)
{
	static const struct { const char *word; enum jinja_type type; bool b; } consts[] = {
		{ "true", JINJA_BOOL, true }, { "True", JINJA_BOOL, true }, { "false", JINJA_BOOL, false }, { "False", JINJA_BOOL, false },
		{ "none", JINJA_NONE, false }, { "None", JINJA_NONE, false },
	};
	struct jinja_expr *e = node(p, JINJA_E_NAME);
	e->name = p->t->text;
	if (str_eq(e->name, STR("varargs")) || str_eq(e->name, STR("kwargs"))) /* a macro that names them takes any arguments */
		return jinja_fault_set(p->fault, p->t->line, ERR_UNSUPPORTED, "%.*s", STR_ARG(e->name));
	e->number = jinja_number_of(p, e->name);
	for (size_t i = 0; i < ARRAY_LEN(consts); i++)
		if (jinja_at_name(p, consts[i].word)) {
			e->kind = JINJA_E_CONST;
			e->value = (struct jinja_val){ .type = consts[i].type, .b = consts[i].b };
		}
	p->t++;
	*ret_e = e;
	return ERR_OK;
}

/* Values up to the closing bracket, a last comma allowed. */
static enum err values(struct jinja_parser *p, const char *close, arg_vec *out)
{
	while (!jinja_skip_op(p, close)) {
		struct jinja_arg a = { 0 };
		if (out->n)
			TRY(jinja_want_op(p, ","));
		if (out->n && jinja_skip_op(p, close))
			return ERR_OK;
		TRY(jinja_parse_expr(p, &a.val));
		VEC_PUSH(out, a);
	}
	return ERR_OK;
}

static enum err list(struct jinja_parser *p, const struct jinja_expr **ret_e)
{
	struct jinja_expr *e = node(p, JINJA_E_LIST);
	arg_vec v = { 0 };
	p->t++;
	enum err err = values(p, "]", &v);
	e->n_args = v.n;
	e->args = keep(p, &v);
	*ret_e = e;
	return err;
}

static enum err pairs(struct jinja_parser *p, arg_vec *out)
{
	while (!jinja_skip_op(p, "}")) {
		struct jinja_arg k = { 0 }, v = { 0 };
		if (out->n)
			TRY(jinja_want_op(p, ","));
		if (out->n && jinja_skip_op(p, "}"))
			return ERR_OK;
		TRY(jinja_parse_expr(p, &k.val));
		TRY(jinja_want_op(p, ":"));
		TRY(jinja_parse_expr(p, &v.val));
		VEC_PUSH(out, k);
		VEC_PUSH(out, v);
	}
	return ERR_OK;
}

static enum err dict(struct jinja_parser *p, const struct jinja_expr **ret_e)
{
	struct jinja_expr *e = node(p, JINJA_E_DICT);
	arg_vec v = { 0 };
	p->t++;
	enum err err = pairs(p, &v);
	e->n_args = v.n;
	e->args = keep(p, &v);
	*ret_e = e;
	return err;
}

/* ( ), (a), (a,), (a, b) */
static enum err parenthesis(struct jinja_parser *p, const struct jinja_expr **ret_e)
{
	struct jinja_expr *e = node(p, JINJA_E_TUPLE);
	arg_vec v = { 0 };
	p->t++;
	enum err err = values(p, ")", &v);
	bool comma = err == ERR_OK && p->t[-2].type == JINJA_T_OP && str_eq(p->t[-2].text, STR(","));
	e->n_args = v.n;
	e->args = keep(p, &v);
	*ret_e = e->n_args == 1 && !comma ? e->args[0].val : e;
	return err;
}

static enum err primary(struct jinja_parser *p, const struct jinja_expr **ret_e)
{
	switch (p->t->type) {
	case JINJA_T_NAME: return name(p, ret_e);
	case JINJA_T_STR: return string(p, ret_e);
	case JINJA_T_INT: return integer(p, ret_e);
	case JINJA_T_FLOAT: return real(p, ret_e);
	case JINJA_T_OP:
		if (jinja_at_op(p, "("))
			return parenthesis(p, ret_e);
		if (jinja_at_op(p, "["))
			return list(p, ret_e);
		if (jinja_at_op(p, "{"))
			return dict(p, ret_e);
		return jinja_unexpected(p, "an expression");
	case JINJA_T_DATA:
	case JINJA_T_VAR:
	case JINJA_T_VAR_END:
	case JINJA_T_BLOCK:
	case JINJA_T_BLOCK_END:
	case JINJA_T_END: break;
	}
	return jinja_unexpected(p, "an expression");
}

/* ---- postfix, filters, tests */

static enum err arguments(struct jinja_parser *p, arg_vec *out)
{
	TRY(jinja_want_op(p, "("));
	while (!jinja_skip_op(p, ")")) {
		struct jinja_arg a = { 0 };
		if (out->n)
			TRY(jinja_want_op(p, ","));
		if (out->n && jinja_skip_op(p, ")"))
			return ERR_OK;
		if (jinja_at_op(p, "*") || jinja_at_op(p, "**"))
			return jinja_fault_set(p->fault, p->t->line, ERR_UNSUPPORTED, "* in a call's arguments");
		if (p->t->type == JINJA_T_NAME && p->t[1].type == JINJA_T_OP && str_eq(p->t[1].text, STR("="))) {
			a.name = p->t->text;
			p->t += 2;
		}
		TRY(jinja_parse_expr(p, &a.val));
		VEC_PUSH(out, a);
	}
	return ERR_OK;
}

static enum err args_of(struct jinja_parser *p, struct jinja_expr *e)
{
	arg_vec v = { 0 };
	enum err err = arguments(p, &v);
	e->n_args = v.n;
	e->args = keep(p, &v);
	return err;
}

static enum err call(struct jinja_parser *p, const struct jinja_expr **io_e)
{
	struct jinja_expr *e = node(p, JINJA_E_CALL);
	e->a = *io_e;
	TRY(args_of(p, e));
	*io_e = e;
	return ERR_OK;
}

static enum err slice_part(struct jinja_parser *p, const struct jinja_expr **ret_e)
{
	if (jinja_at_op(p, ":") || jinja_at_op(p, "]"))
		return ERR_OK;
	return jinja_parse_expr(p, ret_e);
}

static enum err subscript(struct jinja_parser *p, const struct jinja_expr **io_e)
{
	struct jinja_expr *e = node(p, JINJA_E_ITEM);
	p->t++;
	TRY(slice_part(p, &e->b));
	if (jinja_skip_op(p, ":")) {
		e->kind = JINJA_E_SLICE;
		e->d = *io_e;
		e->a = e->b;
		e->b = NULL;
		TRY(slice_part(p, &e->b));
		if (jinja_skip_op(p, ":"))
			TRY(slice_part(p, &e->c));
	} else {
		e->a = *io_e;
		if (!e->b)
			return jinja_unexpected(p, "a subscript");
	}
	if (jinja_at_op(p, ","))
		return jinja_fault_set(p->fault, p->t->line, ERR_UNSUPPORTED, "a tuple as subscript");
	TRY(jinja_want_op(p, "]"));
	*io_e = e;
	return ERR_OK;
}

static enum err attribute(struct jinja_parser *p, const struct jinja_expr **io_e)
{
	struct jinja_expr *e = node(p, JINJA_E_ATTR);
	p->t++;
	e->a = *io_e;
	if (p->t->type == JINJA_T_INT) {
		e->kind = JINJA_E_ITEM;
		TRY(integer(p, &e->b));
	} else if (p->t->type == JINJA_T_NAME) {
		e->name = (p->t++)->text;
		e->plain = !str_starts(e->name, STR("__")) && !jinja_method_of_dicts(e->name);
	} else {
		return jinja_unexpected(p, "an attribute's name");
	}
	*io_e = e;
	return ERR_OK;
}

static enum err postfix(struct jinja_parser *p, const struct jinja_expr **io_e)
{
	for (;;) {
		if (jinja_at_op(p, "."))
			TRY(attribute(p, io_e));
		else if (jinja_at_op(p, "["))
			TRY(subscript(p, io_e));
		else if (jinja_at_op(p, "("))
			TRY(call(p, io_e));
		else
			return ERR_OK;
	}
}

static enum err filter(struct jinja_parser *p, const struct jinja_expr **io_e)
{
	struct jinja_expr *e = node(p, JINJA_E_FILTER);
	p->t++;
	if (p->t->type != JINJA_T_NAME)
		return jinja_unexpected(p, "a filter's name");
	e->a = *io_e;
	e->name = p->t->text;
	e->op = jinja_filter_find(e->name);
	if (e->op < 0)
		return jinja_fault_set(p->fault, p->t->line, ERR_UNSUPPORTED, "the filter %.*s", STR_ARG(e->name));
	p->t++;
	if (jinja_at_op(p, "("))
		TRY(args_of(p, e));
	*io_e = e;
	return ERR_OK;
}

static bool bare_test_argument(const struct jinja_parser *p)
{
	if (p->t->type == JINJA_T_NAME)
		return !jinja_at_name(p, "else") && !jinja_at_name(p, "or") && !jinja_at_name(p, "and") && !jinja_at_name(p, "if") && !jinja_at_name(p, "is") && !jinja_at_name(p, "in") && !jinja_at_name(p, "not");
	return p->t->type == JINJA_T_STR || p->t->type == JINJA_T_INT || p->t->type == JINJA_T_FLOAT || jinja_at_op(p, "[") || jinja_at_op(p, "{");
}

static enum err test(struct jinja_parser *p, const struct jinja_expr **io_e)
{
	struct jinja_expr *e = node(p, JINJA_E_TEST);
	arg_vec v = { 0 };
	p->t++;
	e->negated = jinja_skip_name(p, "not");
	if (p->t->type != JINJA_T_NAME)
		return jinja_unexpected(p, "a test's name");
	e->a = *io_e;
	e->name = p->t->text;
	e->op = jinja_test_find(e->name);
	if (e->op < 0)
		return jinja_fault_set(p->fault, p->t->line, ERR_UNSUPPORTED, "the test %.*s", STR_ARG(e->name));
	p->t++;
	if (jinja_at_op(p, "(")) {
		TRY(args_of(p, e));
	} else if (bare_test_argument(p)) {
		struct jinja_arg a = { 0 };
		TRY(primary(p, &a.val));
		TRY(postfix(p, &a.val));
		VEC_PUSH(&v, a);
		e->n_args = 1;
		e->args = keep(p, &v);
	}
	*io_e = e;
	return ERR_OK;
}

enum err jinja_parse_filters(struct jinja_parser *p, const struct jinja_expr **io_e)
{
	for (;;) {
		if (jinja_at_op(p, "|"))
			TRY(filter(p, io_e));
		else if (jinja_at_name(p, "is"))
			TRY(test(p, io_e));
		else if (jinja_at_op(p, "("))
			TRY(call(p, io_e));
		else
			return ERR_OK;
	}
}

static enum err unary(struct jinja_parser *p, bool with_filter, const struct jinja_expr **ret_e)
{
	if (jinja_at_op(p, "-") || jinja_at_op(p, "+")) {
		struct jinja_expr *e = node(p, jinja_at_op(p, "-") ? JINJA_E_NEG : JINJA_E_POS);
		if (p->depth++ > JINJA_NEST_MAX)
			return jinja_fault_set(p->fault, p->t->line, ERR_LIMIT, "nested too deep");
		p->t++;
		TRY(unary(p, false, &e->a));
		p->depth--;
		*ret_e = e;
	} else {
		TRY(primary(p, ret_e));
	}
	TRY(postfix(p, ret_e));
	return with_filter ? jinja_parse_filters(p, ret_e) : ERR_OK;
}

static enum err unary_filtered(struct jinja_parser *p, const struct jinja_expr **ret_e) { return unary(p, true, ret_e); }

static enum err power(struct jinja_parser *p, const struct jinja_expr **ret_e)
{
	TRY(unary(p, true, ret_e));
	while (jinja_at_op(p, "**"))
		TRY(binary(p, JINJA_E_BIN, JINJA_POW, ret_e, unary_filtered));
	return ERR_OK;
}

static int product_op(const struct jinja_parser *p)
{
	return jinja_at_op(p, "*") ? JINJA_MUL : jinja_at_op(p, "/") ? JINJA_DIV : jinja_at_op(p, "//") ? JINJA_FLOORDIV : jinja_at_op(p, "%") ? JINJA_MOD : -1;
}

static enum err product(struct jinja_parser *p, const struct jinja_expr **ret_e)
{
	int op;
	TRY(power(p, ret_e));
	while ((op = product_op(p)) >= 0)
		TRY(binary(p, JINJA_E_BIN, op, ret_e, power));
	return ERR_OK;
}

static enum err concat(struct jinja_parser *p, const struct jinja_expr **ret_e)
{
	arg_vec v = { 0 };
	struct jinja_arg a = { 0 };
	TRY(product(p, &a.val));
	*ret_e = a.val;
	if (!jinja_at_op(p, "~"))
		return ERR_OK;
	struct jinja_expr *e = node(p, JINJA_E_CONCAT);
	enum err err = ERR_OK;
	VEC_PUSH(&v, a);
	while (err == ERR_OK && jinja_skip_op(p, "~")) {
		err = product(p, &a.val);
		VEC_PUSH(&v, a);
	}
	e->n_args = v.n;
	e->args = keep(p, &v);
	*ret_e = e;
	return err;
}

static enum err sum(struct jinja_parser *p, const struct jinja_expr **ret_e)
{
	TRY(concat(p, ret_e));
	while (jinja_at_op(p, "+") || jinja_at_op(p, "-"))
		TRY(binary(p, JINJA_E_BIN, jinja_at_op(p, "+") ? JINJA_ADD : JINJA_SUB, ret_e, concat));
	return ERR_OK;
}

static bool compare_op(struct jinja_parser *p, int *ret_op)
{
	static const char *const ops[] = { "==", "!=", "<", "<=", ">", ">=" };
	for (size_t i = 0; i < ARRAY_LEN(ops); i++)
		if (jinja_skip_op(p, ops[i])) {
			*ret_op = (int)i;
			return true;
		}
	if (jinja_skip_name(p, "in")) {
		*ret_op = JINJA_IN;
		return true;
	}
	if (jinja_at_name(p, "not") && p->t[1].type == JINJA_T_NAME && str_eq(p->t[1].text, STR("in"))) {
		p->t += 2;
		*ret_op = JINJA_NOT_IN;
		return true;
	}
	return false;
}

static enum err compare(struct jinja_parser *p, const struct jinja_expr **ret_e)
{
	arg_vec v = { 0 };
	int ops[16], op;
	size_t n = 0;
	struct jinja_arg a = { 0 };
	TRY(sum(p, &a.val));
	*ret_e = a.val;
	struct jinja_expr *e = node(p, JINJA_E_COMPARE);
	enum err err = ERR_OK;
	while (err == ERR_OK && n < ARRAY_LEN(ops) && compare_op(p, &op)) {
		if (v.n == 0)
			VEC_PUSH(&v, a);
		ops[n++] = op;
		err = sum(p, &a.val);
		VEC_PUSH(&v, a);
	}
	if (v.n == 0)
		return err;
	int *kept = arena_new(&p->to->arena, int, n);
	memcpy(kept, ops, n * sizeof(*kept));
	e->ops = kept;
	e->n_args = v.n;
	e->args = keep(p, &v);
	*ret_e = e;
	return err;
}

static enum err negation(struct jinja_parser *p, const struct jinja_expr **ret_e)
{
	if (!jinja_at_name(p, "not"))
		return compare(p, ret_e);
	struct jinja_expr *e = node(p, JINJA_E_NOT);
	if (p->depth++ > JINJA_NEST_MAX)
		return jinja_fault_set(p->fault, p->t->line, ERR_LIMIT, "nested too deep");
	p->t++;
	TRY(negation(p, &e->a));
	p->depth--;
	*ret_e = e;
	return ERR_OK;
}

static enum err conjunction(struct jinja_parser *p, const struct jinja_expr **ret_e)
{
	TRY(negation(p, ret_e));
	while (jinja_at_name(p, "and"))
		TRY(binary(p, JINJA_E_AND, 0, ret_e, negation));
	return ERR_OK;
}

enum err jinja_parse_expr_no_if(struct jinja_parser *p, const struct jinja_expr **ret_e)
{
	if (p->depth++ > JINJA_NEST_MAX)
		return jinja_fault_set(p->fault, p->t->line, ERR_LIMIT, "nested too deep");
	TRY(conjunction(p, ret_e));
	while (jinja_at_name(p, "or"))
		TRY(binary(p, JINJA_E_OR, 0, ret_e, conjunction));
	p->depth--;
	return ERR_OK;
}

enum err jinja_parse_expr(struct jinja_parser *p, const struct jinja_expr **ret_e)
{
	TRY(jinja_parse_expr_no_if(p, ret_e));
	while (jinja_at_name(p, "if")) {
		struct jinja_expr *e = node(p, JINJA_E_COND);
		p->t++;
		e->a = *ret_e;
		TRY(jinja_parse_expr_no_if(p, &e->b));
		if (jinja_skip_name(p, "else"))
			TRY(jinja_parse_expr(p, &e->c));
		*ret_e = e;
	}
	return ERR_OK;
}

enum err jinja_parse_tuple(struct jinja_parser *p, bool no_if, const struct jinja_expr **ret_e)
{
	arg_vec v = { 0 };
	struct jinja_arg a = { 0 };
	struct jinja_expr *e = node(p, JINJA_E_TUPLE);
	TRY(no_if ? jinja_parse_expr_no_if(p, &a.val) : jinja_parse_expr(p, &a.val));
	*ret_e = a.val;
	if (!jinja_at_op(p, ","))
		return ERR_OK;
	enum err err = ERR_OK;
	VEC_PUSH(&v, a);
	while (err == ERR_OK && jinja_skip_op(p, ",") && p->t->type != JINJA_T_BLOCK_END && p->t->type != JINJA_T_VAR_END) {
		err = no_if ? jinja_parse_expr_no_if(p, &a.val) : jinja_parse_expr(p, &a.val);
		VEC_PUSH(&v, a);
	}
	e->n_args = v.n;
	e->args = keep(p, &v);
	*ret_e = e;
	return err;
}
