/* run.c: statements, scopes, output. A scope is a short list of names; loops, macros and blocks open their own, so that a
 * `set` inside a loop does not outlive its turn, as in Jinja. */
#include "jinja/run.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { STEPS_DEFAULT = 2000000, DEPTH_MAX = 200, SUM_MAX = 8 };

struct binding { struct str name; struct jinja_val val; };
struct jinja_scope { struct jinja_scope *up; struct binding *p; size_t n, cap; };

static printf_like(3, 0) enum err fail(struct jinja_run *r, enum err e, const char *fmt, va_list ap)
{
	vsnprintf(r->fault->text, sizeof(r->fault->text), fmt, ap);
	r->fault->line = r->line;
	return e;
}

enum err jinja_raise(struct jinja_run *r, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	enum err e = fail(r, ERR_BAD_REQUEST, fmt, ap);
	va_end(ap);
	return e;
}

enum err jinja_refuse(struct jinja_run *r, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	enum err e = fail(r, ERR_UNSUPPORTED, fmt, ap);
	va_end(ap);
	return e;
}

enum err jinja_spent(struct jinja_run *r)
{
	return jinja_fault_set(r->fault, r->line, ERR_LIMIT, "the template takes too many steps or too much memory");
}

/* ---- names */

struct jinja_scope *jinja_scope_push(struct jinja_run *r, struct jinja_scope *up)
{
	struct jinja_scope *before = r->scope, *s = arena_new(r->a, struct jinja_scope, 1);
	s->up = up;
	r->scope = s;
	return before;
}

static struct binding *binding_of(struct jinja_scope *s, struct str name)
{
	for (size_t i = 0; i < s->n; i++)
		if (str_eq(s->p[i].name, name))
			return &s->p[i];
	return NULL;
}

void jinja_bind(struct jinja_run *r, struct str name, struct jinja_val v)
{
	struct jinja_scope *s = r->scope;
	struct binding *b = binding_of(s, name);
	jinja_searched(r, s->n);
	if (b) {
		b->val = v;
		return;
	}
	if (s->n == s->cap) {
		size_t cap = s->cap ? s->cap * 2 : 4;
		struct binding *p = arena_new(r->a, struct binding, cap);
		if (s->n)
			memcpy(p, s->p, s->n * sizeof(*p));
		s->p = p;
		s->cap = cap;
	}
	s->p[s->n++] = (struct binding){ name, v };
}

bool jinja_lookup(struct jinja_run *r, struct str name, struct jinja_val *ret_v)
{
	for (struct jinja_scope *s = r->scope; s; s = s->up) {
		struct binding *b = binding_of(s, name);
		jinja_searched(r, s->n);
		if (b) {
			*ret_v = b->val;
			return true;
		}
	}
	const struct jinja_val *given = r->o->vars ? jinja_dict_get_str(r->o->vars->dict, name) : NULL;
	jinja_searched(r, r->o->vars ? r->o->vars->dict->n : 0);
	if (given)
		*ret_v = *given;
	return given != NULL;
}

/* ---- output */

static enum err put(struct jinja_run *r, struct str s)
{
	jinja_toiled(r, s.n);
	if (r->out->n + s.n > r->max_text_bytes || buf_add(r->out, s) != ERR_OK)
		return jinja_fault_set(r->fault, r->line, ERR_LIMIT, "the output is too long");
	return ERR_OK;
}

static enum err put_value(struct jinja_run *r, const struct jinja_val *v)
{
	if (v->type == JINJA_STR)
		return put(r, v->s);
	size_t had = r->out->n;
	enum err e = jinja_print(r->out, v);
	jinja_toiled(r, (r->out->n - had) * JINJA_PRINTING);
	if (e == ERR_UNSUPPORTED)
		return jinja_refuse(r, "printing a %s", jinja_type_name(v));
	if (e != ERR_OK || r->out->n > r->max_text_bytes)
		return jinja_fault_set(r->fault, r->line, ERR_LIMIT, "the output is too long");
	return ERR_OK;
}

/* The text a body prints, in the arena. */
static enum err captured(struct jinja_run *r, const struct jinja_body *b, struct jinja_val *ret_v)
{
	struct buf text, *before = r->out;
	buf_init(&text, r->max_text_bytes + 4096);
	r->out = &text;
	enum err e = jinja_exec(r, b);
	r->out = before;
	if (e == ERR_OK)
		*ret_v = jinja_str(arena_str(r->a, buf_str(&text)));
	buf_done(&text);
	return e;
}

/* ---- statements */

static enum err assign(struct jinja_run *r, const struct jinja_target *t, const struct jinja_val *v)
{
	if (t->space.n) {
		struct jinja_val space;
		if (!jinja_lookup(r, t->space, &space) || space.type != JINJA_NAMESPACE)
			return jinja_raise(r, "cannot assign attribute on non-namespace object");
		jinja_dict_put(r->a, (struct jinja_val){ .type = JINJA_DICT, .space = space.space }, jinja_str(t->attr), *v);
		jinja_sought(r, space.space->n, &(struct jinja_val){ .type = JINJA_STR, .s = t->attr });
		return ERR_OK;
	}
	if (t->n == 1 && !t->tuple) {
		jinja_bind(r, t->names[0], *v);
		return ERR_OK;
	}
	const struct jinja_list *items;
	TRY(jinja_items(r, v, &items));
	if (items->n != t->n)
		return jinja_raise(r, "%zu values to unpack into %zu names", items->n, t->n);
	for (size_t i = 0; i < t->n; i++)
		jinja_bind(r, t->names[i], items->p[i]);
	return ERR_OK;
}

/* The items that pass the loop's own `if`, with the target bound for each in a scope of its own. */
static enum err loop_items(struct jinja_run *r, const struct jinja_stmt *s, const struct jinja_list **ret_l)
{
	struct jinja_val what, keep;
	const struct jinja_list *all;
	TRY(jinja_eval(r, s->e, &what));
	TRY(jinja_items(r, &what, &all));
	*ret_l = all;
	if (!s->filter)
		return ERR_OK;
	struct jinja_val *kept = arena_new(r->a, struct jinja_val, all->n);
	struct jinja_list *l = arena_new(r->a, struct jinja_list, 1);
	for (size_t i = 0; i < all->n; i++) {
		struct jinja_scope *before = jinja_scope_push(r, r->scope);
		enum err e = assign(r, &s->target, &all->p[i]);
		if (e == ERR_OK)
			e = jinja_eval(r, s->filter, &keep);
		r->scope = before;
		TRY(e);
		if (jinja_truthy(&keep))
			kept[l->n++] = all->p[i];
	}
	l->p = kept;
	*ret_l = l;
	return ERR_OK;
}

static enum err turn(struct jinja_run *r, const struct jinja_stmt *s, struct jinja_loop *loop)
{
	struct jinja_scope *before = jinja_scope_push(r, r->scope);
	struct jinja_loop *now = arena_new(r->a, struct jinja_loop, 1);
	*now = *loop;
	jinja_bind(r, STR("loop"), (struct jinja_val){ .type = JINJA_LOOP, .loop = now });
	enum err e = assign(r, &s->target, &loop->items->p[loop->i]);
	if (e == ERR_OK)
		e = jinja_exec(r, &s->body);
	r->scope = before;
	return e;
}

static enum err do_for(struct jinja_run *r, const struct jinja_stmt *s)
{
	struct jinja_loop loop = { 0 };
	bool completed = false;              /* a turn that ends in break or continue does not count for the else, as in Jinja's own code */
	TRY(loop_items(r, s, &loop.items));
	for (; loop.i < loop.items->n; loop.i++) {
		TRY(jinja_step(r, 1));
		TRY(turn(r, s, &loop));
		bool stop = r->flow == JINJA_FLOW_BREAK;
		completed |= r->flow == JINJA_FLOW_ON;
		r->flow = JINJA_FLOW_ON;
		if (stop)
			break;
	}
	return completed ? ERR_OK : jinja_exec(r, &s->other);
}

static enum err do_if(struct jinja_run *r, const struct jinja_stmt *s)
{
	struct jinja_val v;
	TRY(jinja_eval(r, s->e, &v));
	return jinja_exec(r, jinja_truthy(&v) ? &s->body : &s->other);
}

static enum err do_set(struct jinja_run *r, const struct jinja_stmt *s)
{
	struct jinja_val v;
	if (s->kind == JINJA_S_SET) {
		TRY(jinja_eval(r, s->e, &v));
	} else {
		struct jinja_scope *before = jinja_scope_push(r, r->scope);
		enum err e = captured(r, &s->body, &v);
		r->scope = before;
		TRY(e);
	}
	return assign(r, &s->target, &v);
}

static struct jinja_val macro_of(struct jinja_run *r, const struct jinja_stmt *s)
{
	struct jinja_macro *m = arena_new(r->a, struct jinja_macro, 1);
	*m = (struct jinja_macro){ s, r->scope };
	return (struct jinja_val){ .type = JINJA_MACRO, .macro = m };
}

/* {% call(x) m(...) %}body{% endcall %}: m sees the body as caller(). */
static enum err do_call(struct jinja_run *r, const struct jinja_stmt *s)
{
	struct jinja_val fn, caller = macro_of(r, s), text, args[16];
	if (s->e->n_args > ARRAY_LEN(args))
		return jinja_refuse(r, "more than %zu arguments", ARRAY_LEN(args));
	TRY(jinja_eval(r, s->e->a, &fn));
	for (size_t i = 0; i < s->e->n_args; i++) {
		if (s->e->args[i].name.n)
			return jinja_refuse(r, "named arguments of a call block");
		TRY(jinja_eval(r, s->e->args[i].val, &args[i]));
	}
	if (fn.type != JINJA_MACRO)
		return jinja_raise(r, "'%s' object is not callable with a caller", jinja_type_name(&fn));
	TRY(jinja_call_macro(r, fn.macro, &(struct jinja_args){ args, s->e->n_args, NULL, 0 }, &caller, &text));
	return put_value(r, &text);
}

static enum err do_filter(struct jinja_run *r, const struct jinja_stmt *s)
{
	struct jinja_val v;
	struct jinja_scope *before = jinja_scope_push(r, r->scope);
	enum err e = captured(r, &s->body, &v);
	if (e == ERR_OK) {
		jinja_bind(r, JINJA_BODY_NAME, v);
		e = jinja_eval(r, s->e, &v);
	}
	r->scope = before;
	return e == ERR_OK ? put_value(r, &v) : e;
}

/* What is set inside does not outlive it: for the worker it is the body of a call. */
static enum err do_scope(struct jinja_run *r, const struct jinja_stmt *s)
{
	struct jinja_scope *before = jinja_scope_push(r, r->scope);
	enum err e = jinja_exec(r, &s->body);
	r->scope = before;
	return e;
}

static bool plain_text(const struct jinja_val *v) { return v->type == JINJA_STR && !v->markup; }

/* The value of e, in one part; or, when e is a sum of plain strings, maybe in several that follow each other. */
static enum err eval_sum(struct jinja_run *r, const struct jinja_expr *e, struct jinja_val parts[SUM_MAX], size_t *ret_n)
{
	struct jinja_val next, sum;
	if (e->kind != JINJA_E_BIN || e->op != JINJA_ADD) {
		*ret_n = 1;
		return jinja_eval(r, e, &parts[0]);
	}
	TRY(jinja_step(r, 1));
	TRY(eval_sum(r, e->a, parts, ret_n));
	TRY(jinja_eval(r, e->b, &next));
	if (*ret_n < SUM_MAX && plain_text(&parts[*ret_n - 1]) && plain_text(&next)) {
		parts[(*ret_n)++] = next;
		return ERR_OK;
	}
	for (size_t i = 1; i < *ret_n; i++, parts[0] = sum)
		TRY(jinja_binary(r, JINJA_ADD, &parts[0], &parts[i], &sum));
	*ret_n = 1;
	TRY(jinja_binary(r, JINJA_ADD, &parts[0], &next, &sum));
	parts[0] = sum;
	return ERR_OK;
}

/* a + b + c … of texts goes out piece by piece. */
static enum err do_output(struct jinja_run *r, const struct jinja_expr *e)
{
	struct jinja_val parts[SUM_MAX];
	size_t n = 0;
	TRY(eval_sum(r, e, parts, &n));
	for (size_t i = 0; i < n; i++)
		TRY(put_value(r, &parts[i]));
	return ERR_OK;
}

static enum err exec_one(struct jinja_run *r, const struct jinja_stmt *s)
{
	r->line = s->line;
	switch (s->kind) {
	case JINJA_S_DATA: return put(r, s->data);
	case JINJA_S_OUTPUT: return do_output(r, s->e);
	case JINJA_S_IF: return do_if(r, s);
	case JINJA_S_FOR: return do_for(r, s);
	case JINJA_S_SET:
	case JINJA_S_SET_BLOCK: return do_set(r, s);
	case JINJA_S_MACRO: jinja_bind(r, s->name, macro_of(r, s)); return ERR_OK;
	case JINJA_S_CALL: return do_call(r, s);
	case JINJA_S_FILTER: return do_filter(r, s);
	case JINJA_S_SCOPE: return do_scope(r, s);
	case JINJA_S_BREAK: r->flow = JINJA_FLOW_BREAK; return ERR_OK;
	case JINJA_S_CONTINUE: r->flow = JINJA_FLOW_CONTINUE; return ERR_OK;
	}
	return ERR_INTERNAL;
}

enum err jinja_exec(struct jinja_run *r, const struct jinja_body *b)
{
	if (r->depth > DEPTH_MAX)
		return jinja_fault_set(r->fault, r->line, ERR_LIMIT, "nested too deep");
	r->depth++;
	for (size_t i = 0; i < b->n && r->flow == JINJA_FLOW_ON; i++) {
		TRY(jinja_step(r, 1));
		TRY(exec_one(r, &b->p[i]));
	}
	r->depth--;
	return ERR_OK;
}

/* ---- macros */

static enum err bind_params(struct jinja_run *r, const struct jinja_stmt *s, const struct jinja_args *args)
{
	if (args->n > s->n_params)
		return jinja_raise(r, "macro '%.*s' takes not more than %zu argument(s)", STR_ARG(s->name), s->n_params);
	for (size_t i = 0; i < args->n_named; i++) {
		size_t k = 0;
		while (k < s->n_params && !str_eq(s->params[k].name, args->named[i].name))
			k++;
		if (k == s->n_params || k < args->n)
			return jinja_raise(r, "macro '%.*s' takes no keyword argument '%.*s'", STR_ARG(s->name), STR_ARG(args->named[i].name));
	}
	for (size_t i = 0; i < s->n_params; i++) {
		struct jinja_val v = jinja_undefined(s->params[i].name);
		const struct jinja_val *given = i < args->n ? &args->p[i] : NULL;
		for (size_t k = 0; !given && k < args->n_named; k++)
			if (str_eq(args->named[k].name, s->params[i].name))
				given = &args->named[k].val;
		if (given)
			v = *given;
		else if (s->params[i].def)
			TRY(jinja_eval(r, s->params[i].def, &v));
		jinja_bind(r, s->params[i].name, v);
	}
	return ERR_OK;
}

enum err jinja_call_macro(struct jinja_run *r, const struct jinja_macro *m, const struct jinja_args *args, const struct jinja_val *caller, struct jinja_val *ret_v)
{
	unsigned line = r->line;
	struct jinja_scope *before = jinja_scope_push(r, m->scope);
	if (caller)
		jinja_bind(r, STR("caller"), *caller);
	enum err e = bind_params(r, m->s, args);
	if (e == ERR_OK)
		e = captured(r, &m->s->body, ret_v);
	r->scope = before;
	r->line = e == ERR_OK ? line : r->line;
	return e;
}

/* ---- entry */

enum err jinja_render(const struct jinja_template *t, const struct jinja_render_opts *o, struct arena *scratch, struct buf *out, struct jinja_fault *ret_fault)
{
	size_t had = out->n;
	struct jinja_run r = { .a = scratch, .out = out, .o = o, .fault = ret_fault, .max_steps = o->max_steps ? o->max_steps : STEPS_DEFAULT,
	                       .max_text_bytes = o->max_output_bytes ? had + o->max_output_bytes : out->max };
	*ret_fault = (struct jinja_fault){ 0 };
	if (!scratch->max_bytes)
		scratch->max_bytes = (size_t)256 << 20;
	jinja_scope_push(&r, NULL);
	return jinja_exec(&r, &t->body);
}
