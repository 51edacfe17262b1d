/* operate.c: operators: arithmetic, joining, comparison, by Python's rules for operands. */
#include <math.h>
#include <string.h>

#include "jinja/run.h"

#define EXACT_MAX (INT64_C(1) << 53)   /* up to here a double holds every integer */

enum { REPEAT_MAX = 1 << 20 };

/* ---- arithmetic */

static bool whole(const struct jinja_val *v, int64_t *ret_i)
{
	if (v->type != JINJA_INT && v->type != JINJA_BOOL)
		return false;
	*ret_i = v->type == JINJA_BOOL ? v->b : v->i;
	return true;
}

static enum err integer_op(struct jinja_run *r, int op, int64_t x, int64_t y, struct jinja_val *ret_v)
{
	int64_t z = 0;
	bool over = false;
	if ((op == JINJA_DIV || op == JINJA_FLOORDIV || op == JINJA_MOD) && y == 0)
		return jinja_raise(r, "division by zero");
	if (op == JINJA_DIV) {
		if (x > EXACT_MAX || x < -EXACT_MAX || y > EXACT_MAX || y < -EXACT_MAX)
			return jinja_refuse(r, "dividing integers beyond 53 bits");
		*ret_v = jinja_float((double)x / (double)y);
		return ERR_OK;
	}
	if (op == JINJA_ADD)
		over = __builtin_add_overflow(x, y, &z);
	else if (op == JINJA_SUB)
		over = __builtin_sub_overflow(x, y, &z);
	else if (op == JINJA_MUL)
		over = __builtin_mul_overflow(x, y, &z);
	else if (op == JINJA_POW || (x == INT64_MIN && y == -1))
		over = true;
	else if (op == JINJA_FLOORDIV)
		z = x / y - (x % y != 0 && (x < 0) != (y < 0));
	else
		z = x % y + (x % y != 0 && (x < 0) != (y < 0) ? y : 0);
	*ret_v = jinja_int(z);
	return over ? jinja_refuse(r, "integers beyond 64 bits, or a power") : ERR_OK;
}

/* Python's // and % of floats: the rest has the divisor's sign, and the quotient goes with that rest. */
static double floor_div(double x, double y, double *ret_rest)
{
	double rest = fmod(x, y), q = (x - rest) / y;
	bool nonzero = rest < 0 || rest > 0;
	if (nonzero && (y < 0) != (rest < 0)) {
		rest += y;
		q -= 1.0;
	}
	*ret_rest = nonzero ? rest : copysign(0.0, y);
	if (!(q < 0 || q > 0))
		return copysign(0.0, x / y);
	double whole_q = floor(q);
	return q - whole_q > 0.5 ? whole_q + 1.0 : whole_q;
}

static enum err real_op(struct jinja_run *r, int op, double x, double y, struct jinja_val *ret_v)
{
	double z = 0, rest;
	if ((op == JINJA_DIV || op == JINJA_FLOORDIV || op == JINJA_MOD) && !(y < 0 || y > 0))
		return jinja_raise(r, "float division by zero");
	switch ((enum jinja_bin)op) {
	case JINJA_ADD: z = x + y; break;
	case JINJA_SUB: z = x - y; break;
	case JINJA_MUL: z = x * y; break;
	case JINJA_DIV: z = x / y; break;
	case JINJA_FLOORDIV: z = floor_div(x, y, &rest); break;
	case JINJA_MOD: (void)floor_div(x, y, &z); break;
	case JINJA_POW: return jinja_refuse(r, "a power of floats");
	}
	*ret_v = jinja_float(z);
	return ERR_OK;
}

/* & < > " ' as the library for marked text writes them. */
static enum err escaped(struct jinja_run *r, struct jinja_val *io_v)
{
	static const char from[] = "&<>\"'";
	static const char *const to[] = { "&amp;", "&lt;", "&gt;", "&#34;", "&#39;" };
	struct buf b;
	enum err e = ERR_OK;
	buf_init(&b, r->max_text_bytes);
	for (size_t i = 0; e == ERR_OK && i < io_v->s.n; i++) {
		const char *at = io_v->s.p[i] ? strchr(from, io_v->s.p[i]) : NULL;
		e = at ? buf_add(&b, str_of(to[at - from])) : buf_add_byte(&b, io_v->s.p[i]);
	}
	if (e == ERR_OK)
		*io_v = jinja_str(arena_str(r->a, buf_str(&b)));
	buf_done(&b);
	return e;
}

/* a + b + c + … grows in place: behind the text that was joined last is room that is nobody's. */
static struct str joined_text(struct jinja_run *r, struct str x, struct str y)
{
	if (x.n == 0 || x.p + x.n != r->joined_end || r->joined_room < y.n) {
		size_t room = y.n + (x.n + y.n) / 8 + 64;
		char *p = arena_alloc(r->a, x.n + room, 1);
		if (x.n)
			memcpy(p, x.p, x.n);
		x.p = p;
		r->joined_end = p + x.n;
		r->joined_room = room;
	}
	if (y.n)
		memcpy(r->joined_end, y.p, y.n);
	r->joined_end += y.n;
	r->joined_room -= y.n;
	return str_from(x.p, x.n + y.n);
}

static enum err joined(struct jinja_run *r, const struct jinja_val *x, const struct jinja_val *y, struct jinja_val *ret_v);

/* One of the two is marked: the other is escaped, the sum is marked. */
static enum err joined_marked(struct jinja_run *r, struct jinja_val x, struct jinja_val y, struct jinja_val *ret_v)
{
	if (!x.markup)
		TRY(escaped(r, &x));
	if (!y.markup)
		TRY(escaped(r, &y));
	x.markup = y.markup = false;
	TRY(joined(r, &x, &y, ret_v));
	ret_v->markup = true;
	return ERR_OK;
}

static enum err joined(struct jinja_run *r, const struct jinja_val *x, const struct jinja_val *y, struct jinja_val *ret_v)
{
	if (x->markup || y->markup)
		return joined_marked(r, *x, *y, ret_v);
	if (x->type == JINJA_STR) {
		*ret_v = jinja_str(joined_text(r, x->s, y->s));
		return jinja_step(r, 1 + ret_v->s.n / 4096);
	}
	TRY(jinja_step(r, x->list->n + y->list->n));
	struct jinja_val *p = arena_new(r->a, struct jinja_val, x->list->n + y->list->n);
	if (x->list->n)
		memcpy(p, x->list->p, x->list->n * sizeof(*p));
	if (y->list->n)
		memcpy(p + x->list->n, y->list->p, y->list->n * sizeof(*p));
	*ret_v = x->type == JINJA_TUPLE ? jinja_tuple_of(r->a, p, x->list->n + y->list->n) : jinja_list_of(r->a, p, x->list->n + y->list->n);
	return ERR_OK;
}

static enum err repeated(struct jinja_run *r, struct str s, int64_t n, struct jinja_val *ret_v)
{
	n = MAX(n, (int64_t)0);
	if (s.n && n > (int64_t)(REPEAT_MAX / s.n))
		return jinja_fault_set(r->fault, r->line, ERR_LIMIT, "a repeated string is too long");
	char *p = arena_alloc(r->a, s.n * (size_t)n + 1, 1);
	for (int64_t i = 0; i < n; i++)
		memcpy(p + (size_t)i * s.n, s.p, s.n);
	*ret_v = jinja_str(str_from(p, s.n * (size_t)n));
	jinja_toiled(r, ret_v->s.n);
	return ERR_OK;
}

enum err jinja_binary(struct jinja_run *r, int op, const struct jinja_val *x, const struct jinja_val *y, struct jinja_val *ret_v)
{
	int64_t i, k;
	if (x->type == JINJA_UNDEFINED || y->type == JINJA_UNDEFINED)
		return jinja_undefined_fault(r, x->type == JINJA_UNDEFINED ? x : y);
	if (whole(x, &i) && whole(y, &k))
		return integer_op(r, op, i, k, ret_v);
	if (jinja_is_number(x) && jinja_is_number(y))
		return real_op(r, op, jinja_as_f64(x), jinja_as_f64(y), ret_v);
	if (op == JINJA_ADD && x->type == y->type && (x->type == JINJA_STR || x->type == JINJA_LIST || x->type == JINJA_TUPLE))
		return joined(r, x, y, ret_v);
	if (x->markup || y->markup)
		return jinja_refuse(r, "this operator on marked text");
	if (op == JINJA_MUL && x->type == JINJA_STR && whole(y, &i))
		return repeated(r, x->s, i, ret_v);
	if (op == JINJA_MUL && y->type == JINJA_STR && whole(x, &i))
		return repeated(r, y->s, i, ret_v);
	if (x->type == JINJA_BIGINT || y->type == JINJA_BIGINT || (op == JINJA_MOD && x->type == JINJA_STR) || op == JINJA_MUL)
		return jinja_refuse(r, "this operator on %s and %s", jinja_type_name(x), jinja_type_name(y));
	return jinja_raise(r, "unsupported operand types: '%s' and '%s'", jinja_type_name(x), jinja_type_name(y));
}

/* ---- comparison */

enum err jinja_equals(struct jinja_run *r, const struct jinja_val *x, const struct jinja_val *y, bool *ret_yes)
{
	if (x->type == JINJA_STR && y->type == JINJA_STR) { /* nearly all there is: as below, without the way there */
		*ret_yes = str_eq(x->s, y->s);
		if (++r->steps > r->max_steps)
			return jinja_spent(r);
		jinja_toiled(r, MIN(x->s.n, y->s.n));
		return ERR_OK;
	}
	struct jinja_toil t = { .max_steps = r->max_steps - MIN(r->steps, r->max_steps) };
	*ret_yes = jinja_equal(x, y, &t);
	r->steps += t.steps;
	return t.over ? jinja_spent(r) : ERR_OK;
}

static enum err in_list(struct jinja_run *r, const struct jinja_val *x, const struct jinja_list *l, bool *ret_yes)
{
	for (size_t i = 0; i < l->n && !*ret_yes; i++)
		TRY(jinja_equals(r, &l->p[i], x, ret_yes));
	return jinja_step(r, l->n);
}

static enum err contains(struct jinja_run *r, const struct jinja_val *x, const struct jinja_val *in, bool *ret_yes)
{
	*ret_yes = false;
	if (in->type == JINJA_STR) {
		if (x->type != JINJA_STR)
			return jinja_raise(r, "'in <string>' requires string as left operand, not %s", jinja_type_name(x));
		*ret_yes = str_find(in->s, x->s) != SIZE_MAX;
		jinja_toiled(r, in->s.n + x->s.n);
	} else if (in->type == JINJA_DICT) {
		*ret_yes = jinja_dict_get(in->dict, x) != NULL;
		jinja_sought(r, in->dict->n, x);
	} else if (in->type == JINJA_LIST || in->type == JINJA_TUPLE) {
		return in_list(r, x, in->list, ret_yes);
	} else if (in->type == JINJA_ITER) {
		const struct jinja_list *l;
		TRY(jinja_items(r, in, &l));
		return in_list(r, x, l, ret_yes);
	} else if (in->type != JINJA_UNDEFINED) {
		return jinja_raise(r, "argument of type '%s' is not iterable", jinja_type_name(in));
	}
	return ERR_OK;
}

static enum err ordered(struct jinja_run *r, int op, const struct jinja_val *x, const struct jinja_val *y, bool *ret_yes);

/* Lists and tuples: by the first pair that differs, else by length. */
static enum err ordered_lists(struct jinja_run *r, int op, const struct jinja_list *x, const struct jinja_list *y, bool *ret_yes)
{
	size_t n = MIN(x->n, y->n), i = 0;
	bool equal = true;
	for (; i < n; i++) {
		TRY(jinja_equals(r, &x->p[i], &y->p[i], &equal));
		if (!equal)
			break;
	}
	TRY(jinja_step(r, 1 + i));
	if (i < n)
		return ordered(r, op, &x->p[i], &y->p[i], ret_yes);
	*ret_yes = op == JINJA_LT ? x->n < y->n : op == JINJA_LE ? x->n <= y->n : op == JINJA_GT ? x->n > y->n : x->n >= y->n;
	return ERR_OK;
}

static int texts_ordered(struct jinja_run *r, struct str x, struct str y)
{
	jinja_toiled(r, MIN(x.n, y.n));
	return str_cmp(x, y);
}

static enum err ordered(struct jinja_run *r, int op, const struct jinja_val *x, const struct jinja_val *y, bool *ret_yes)
{
	int c;
	int64_t i, k;
	if (x->type == JINJA_UNDEFINED || y->type == JINJA_UNDEFINED)
		return jinja_undefined_fault(r, x->type == JINJA_UNDEFINED ? x : y);
	if (whole(x, &i) && whole(y, &k))
		c = (i > k) - (i < k);
	else if (jinja_is_number(x) && jinja_is_number(y))
		c = (jinja_as_f64(x) > jinja_as_f64(y)) - (jinja_as_f64(x) < jinja_as_f64(y));
	else if (x->type == JINJA_STR && y->type == JINJA_STR)
		c = texts_ordered(r, x->s, y->s);
	else if (x->type == y->type && (x->type == JINJA_LIST || x->type == JINJA_TUPLE))
		return ordered_lists(r, op, x->list, y->list, ret_yes);
	else if (x->type == JINJA_BIGINT || y->type == JINJA_BIGINT)
		return jinja_refuse(r, "comparing the order of %ss", jinja_type_name(x));
	else
		return jinja_raise(r, "'<' not supported between instances of '%s' and '%s'", jinja_type_name(x), jinja_type_name(y));
	*ret_yes = op == JINJA_LT ? c < 0 : op == JINJA_LE ? c <= 0 : op == JINJA_GT ? c > 0 : c >= 0;
	return ERR_OK;
}

enum err jinja_compare(struct jinja_run *r, int op, const struct jinja_val *x, const struct jinja_val *y, bool *ret_yes)
{
	switch ((enum jinja_cmp)op) {
	case JINJA_EQ: return jinja_equals(r, x, y, ret_yes);
	case JINJA_NE:
		TRY(jinja_equals(r, x, y, ret_yes));
		*ret_yes = !*ret_yes;
		return ERR_OK;
	case JINJA_IN: return contains(r, x, y, ret_yes);
	case JINJA_NOT_IN:
		TRY(contains(r, x, y, ret_yes));
		*ret_yes = !*ret_yes;
		return ERR_OK;
	case JINJA_LT:
	case JINJA_LE:
	case JINJA_GT:
	case JINJA_GE: return ordered(r, op, x, y, ret_yes);
	}
	return ERR_INTERNAL;
}
