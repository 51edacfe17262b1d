/* run.c: statements, scopes, output. A scope is a short list of names; loops, macros and blocks open their own, so that a
 * `set` inside a loop does not outlive its turn, as in Jinja. */
#include "jinja/run.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { STEPS_DEFAULT = 2000000, DEPTH_MAX = 200, SUM_MAX = 8 };

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

enum err jinja_too_deep(struct jinja_run *r) { return jinja_fault_set(r->fault, r->line, ERR_LIMIT, "nested too deep"); }

/* ---- names */

struct jinja_scope *jinja_scope_push(struct jinja_run *r, struct jinja_scope *up)
{
	struct jinja_scope *before = r->scope, *s = arena_new(r->a, struct jinja_scope, 1);
	s->up = up;
	r->scope = s;
	return before;
}

static struct jinja_binding *binding_of(struct jinja_scope *s, unsigned number)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->p[i].number == number)
			return &s->p[i];
	return NULL;
}

void jinja_bind(struct jinja_run *r, unsigned number, const struct jinja_val *v)
{
	struct jinja_scope *s = r->scope;
	struct jinja_binding *b = binding_of(s, number);
	jinja_searched(r, s->n);
	if (b) {
		b->val = *v;
		return;
	}
	if (s->n == s->cap) {
		size_t cap = s->cap ? s->cap * 2 : 4;
		struct jinja_binding *p = arena_new(r->a, struct jinja_binding, cap);
		if (s->n)
			memcpy(p, s->p, s->n * sizeof(*p));
		s->p = p;
		s->cap = cap;
	}
	s->p[s->n++] = (struct jinja_binding){ number, *v };
}

const struct jinja_val *jinja_lookup(struct jinja_run *r, unsigned number, struct str name)
{
	for (const struct jinja_scope *s = r->scope; s; s = s->up) {
		jinja_searched(r, s->n);
		for (size_t i = 0; i < s->n; i++)
			if (s->p[i].number == number)
				return &s->p[i].val;
	}
	jinja_searched(r, r->n_vars);
	if (!r->given[number])
		r->given[number] = jinja_given(r, name);
	return r->given[number];
}

/* ---- output */

static enum err put_texts(struct jinja_run *r, const struct jinja_val *parts, size_t n)
{
	size_t bytes = 0;
	char *at;
	for (size_t i = 0; i < n; i++) {
		jinja_toiled(r, parts[i].s.n);
		bytes += parts[i].s.n;
	}
	if (bytes == 0)
		return ERR_OK;
	if (r->out->n + bytes > r->max_text_bytes || buf_reserve(r->out, bytes, &at) != ERR_OK)
		return jinja_fault_set(r->fault, r->line, ERR_LIMIT, "the output is too long");
	for (size_t i = 0; i < n; at += parts[i++].s.n)
		if (parts[i].s.n)
			memcpy(at, parts[i].s.p, parts[i].s.n);
	buf_commit(r->out, bytes);
	return ERR_OK;
}

static enum err put_value(struct jinja_run *r, const struct jinja_val *v)
{
	if (v->type == JINJA_STR)
		return put_texts(r, v, 1);
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
	if (t->n == 1 && !t->tuple) {
		jinja_bind(r, t->names[0].number, v);
		return ERR_OK;
	}
	if (t->space.text.n) {
		struct jinja_val space = *jinja_lookup(r, t->space.number, t->space.text);
		if (space.type != JINJA_NAMESPACE)
			return jinja_raise(r, "cannot assign attribute on non-namespace object");
		jinja_dict_put(r->a, (struct jinja_val){ .type = JINJA_DICT, .space = space.space }, jinja_str(t->attr), *v);
		jinja_sought_str(r, space.space->n, t->attr);
		return ERR_OK;
	}
	const struct jinja_list *items;
	TRY(jinja_items(r, v, &items));
	if (items->n != t->n)
		return jinja_raise(r, "%zu values to unpack into %zu names", items->n, t->n);
	for (size_t i = 0; i < t->n; i++)
		jinja_bind(r, t->names[i].number, &items->p[i]);
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

/* What each turn of a loop takes, in one piece. */
struct turn {
	struct jinja_scope scope;
	struct jinja_loop loop;
	struct jinja_binding first[4];
};

static enum err turn(struct jinja_run *r, const struct jinja_stmt *s, const struct jinja_loop *loop)
{
	struct jinja_scope *before = r->scope;
	struct turn *t = arena_new(r->a, struct turn, 1);
	t->loop = *loop;
	t->first[0] = (struct jinja_binding){ JINJA_N_LOOP, { .type = JINJA_LOOP, .loop = &t->loop } };
	t->scope = (struct jinja_scope){ .up = before, .p = t->first, .n = 1, .cap = ARRAY_LEN(t->first) };
	r->scope = &t->scope;
	enum err e = assign(r, &s->target, &loop->items->p[loop->i]);
	if (e == ERR_OK)
		e = jinja_exec(r, &s->body);
	r->scope = before;
	return e;
}

/* What is set inside does not outlive it. */
static enum err exec_within(struct jinja_run *r, const struct jinja_body *b)
{
	if (b->n == 0)
		return ERR_OK;
	struct jinja_scope *before = jinja_scope_push(r, r->scope);
	enum err e = jinja_exec(r, b);
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
	return completed ? ERR_OK : exec_within(r, &s->other);
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
	TRY(jinja_eval(r, s->e, &v));
	return assign(r, &s->target, &v);
}

static enum err do_set_block(struct jinja_run *r, const struct jinja_stmt *s)
{
	struct jinja_val v;
	struct jinja_scope *before = jinja_scope_push(r, r->scope);
	enum err e = captured(r, &s->body, &v);
	r->scope = before;
	return e == ERR_OK ? assign(r, &s->target, &v) : e;
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
		jinja_bind(r, JINJA_N_BODY, &v);
		e = jinja_eval(r, s->e, &v);
	}
	r->scope = before;
	return e == ERR_OK ? put_value(r, &v) : e;
}

/* For the worker it is the body of a call. */
static enum err do_scope(struct jinja_run *r, const struct jinja_stmt *s) { return exec_within(r, &s->body); }

static bool plain_text(const struct jinja_val *v) { return v->type == JINJA_STR && !v->markup; }

static enum err do_output(struct jinja_run *r, const struct jinja_stmt *s)
{
	struct jinja_val v;
	TRY(jinja_eval(r, s->e, &v));
	return put_value(r, &v);
}

/* Texts go out as they are, one behind the other. */
static enum err do_sum(struct jinja_run *r, const struct jinja_stmt *s)
{
	struct jinja_val parts[SUM_MAX + 1], sum;
	size_t n = 0;
	TRY(jinja_step(r, s->n_terms - 1));
	for (size_t i = 0; i < s->n_terms; i++) {
		TRY(jinja_eval(r, s->terms[i], &parts[n]));
		if (n == 0 || (n < SUM_MAX && plain_text(&parts[n - 1]) && plain_text(&parts[n]))) {
			n++;
			continue;
		}
		for (size_t k = 1; k <= n; k++, parts[0] = sum)
			TRY(jinja_binary(r, JINJA_ADD, &parts[0], &parts[k], &sum));
		n = 1;
	}
	return n == 1 ? put_value(r, &parts[0]) : put_texts(r, parts, n);
}

static enum err do_data(struct jinja_run *r, const struct jinja_stmt *s) { return put_texts(r, &(struct jinja_val){ .s = s->data }, 1); }

static enum err do_macro(struct jinja_run *r, const struct jinja_stmt *s)
{
	struct jinja_val m = macro_of(r, s);
	jinja_bind(r, s->name.number, &m);
	return ERR_OK;
}

static enum err do_jump(struct jinja_run *r, const struct jinja_stmt *s)
{
	r->flow = s->kind == JINJA_S_BREAK ? JINJA_FLOW_BREAK : JINJA_FLOW_CONTINUE;
	return ERR_OK;
}

static enum err (*const execs[])(struct jinja_run *r, const struct jinja_stmt *s) = {
	[JINJA_S_DATA] = do_data,
	[JINJA_S_OUTPUT] = do_output,
	[JINJA_S_SUM] = do_sum,
	[JINJA_S_IF] = do_if,
	[JINJA_S_FOR] = do_for,
	[JINJA_S_SET] = do_set,
	[JINJA_S_SET_BLOCK] = do_set_block,
	[JINJA_S_MACRO] = do_macro,
	[JINJA_S_CALL] = do_call,
	[JINJA_S_FILTER] = do_filter,
	[JINJA_S_SCOPE] = do_scope,
	[JINJA_S_BREAK] = do_jump,
	[JINJA_S_CONTINUE] = do_jump,
};

enum err jinja_exec(struct jinja_run *r, const struct jinja_body *b)
{
	if (r->depth > DEPTH_MAX)
		return jinja_too_deep(r);
	if (b->n == 0) /* no else: so are most */
		return ERR_OK;
	r->depth++;
	for (size_t i = 0; i < b->n && r->flow == JINJA_FLOW_ON; i++) {
		TRY(jinja_step(r, 1));
		r->line = b->p[i].line;
		TRY(execs[b->p[i].kind](r, &b->p[i]));
	}
	r->depth--;
	return ERR_OK;
}

/* ---- macros */

static enum err check_args(struct jinja_run *r, const struct jinja_stmt *s, const struct jinja_args *args)
{
	if (args->n > s->n_params)
		return jinja_raise(r, "macro '%.*s' takes not more than %zu argument(s)", STR_ARG(s->name.text), s->n_params);
	for (size_t i = 0; i < args->n_named; i++) {
		size_t k = 0;
		while (k < s->n_params && !str_eq(s->params[k].name.text, args->named[i].name))
			k++;
		if (k == s->n_params || k < args->n)
			return jinja_raise(
				r, "macro '%.*s' takes no keyword argument '%.*s'", STR_ARG(s->name.text), STR_ARG(args->named[i].name));
	}
	return ERR_OK;
}

static const struct jinja_val *given_for(const struct jinja_args *args, size_t i, struct str name)
{
	if (i < args->n)
		return &args->p[i];
	for (size_t k = 0; k < args->n_named; k++)
		if (str_eq(args->named[k].name, name))
			return &args->named[k].val;
	return NULL;
}

/* A default sees all that was given, and of the other parameters those before it. */
static enum err bind_params(struct jinja_run *r, const struct jinja_stmt *s, const struct jinja_args *args)
{
	TRY(check_args(r, s, args));
	bool all = true;
	for (size_t i = 0; i < s->n_params; i++) {
		struct jinja_name name = s->params[i].name;
		struct jinja_val none = jinja_undefined(name.text);
		const struct jinja_val *given = given_for(args, i, name.text);
		all &= given || !s->params[i].def;
		jinja_bind(r, name.number, given ? given : &none);
	}
	for (size_t i = 0; !all && i < s->n_params; i++) {
		struct jinja_val v;
		if (!s->params[i].def || given_for(args, i, s->params[i].name.text))
			continue;
		TRY(jinja_eval(r, s->params[i].def, &v));
		jinja_bind(r, s->params[i].name.number, &v);
	}
	return ERR_OK;
}

enum err jinja_call_macro(struct jinja_run *r, const struct jinja_macro *m, const struct jinja_args *args, const struct jinja_val *caller, struct jinja_val *ret_v)
{
	unsigned line = r->line;
	struct jinja_scope *before = jinja_scope_push(r, m->scope);
	struct jinja_val nobody = jinja_undefined(STR("caller")); /* not whoever calls the macro around this one */
	jinja_bind(r, JINJA_N_CALLER, caller ? caller : &nobody);
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
	r.n_vars = o->vars ? o->vars->dict->n : 0;
	r.given = arena_new(scratch, const struct jinja_val *, t->n_names);
	jinja_scope_push(&r, NULL);
	return jinja_exec(&r, &t->body);
}
