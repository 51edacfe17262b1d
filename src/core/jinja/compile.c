/* compile.c: source -> template, and what is asked of a whole template: does it read the clock, does it iterate over a
 * message's content (the worker's own detection of the content format, by the shape of its loops). */
#include <stdlib.h>
#include <string.h>

#include "base/must.h"
#include "base/vec.h"
#include "jinja/ast.h"
#include "jinja/lex.h"

enum { SOURCE_MAX = 1 << 20, ALIAS_MAX = 64 };

/* ---- walking */

struct walk { void (*on_stmt)(void *arg, const struct jinja_stmt *s); void (*on_expr)(void *arg, const struct jinja_expr *e); void *arg; };

static void walk_expr(const struct walk *w, const struct jinja_expr *e)
{
	if (!e)
		return;
	if (w->on_expr)
		w->on_expr(w->arg, e);
	walk_expr(w, e->a);
	walk_expr(w, e->b);
	walk_expr(w, e->c);
	walk_expr(w, e->d);
	for (size_t i = 0; i < e->n_args; i++)
		walk_expr(w, e->args[i].val);
}

static void walk_body(const struct walk *w, const struct jinja_body *b)
{
	for (size_t i = 0; i < b->n; i++) {
		const struct jinja_stmt *s = &b->p[i];
		if (w->on_stmt)
			w->on_stmt(w->arg, s);
		walk_expr(w, s->e);
		walk_expr(w, s->filter);
		for (size_t k = 0; k < s->n_params; k++)
			walk_expr(w, s->params[k].def);
		walk_body(w, &s->body);
		walk_body(w, &s->other);
	}
}

static void see_clock(void *arg, const struct jinja_expr *e)
{
	struct jinja_template *t = arg;
	t->clock |= e->kind == JINJA_E_NAME && str_eq(e->name, STR("strftime_now"));
}

/* ---- the content format */

struct aliases { struct str p[ALIAS_MAX]; size_t n; };
struct format { struct aliases lists, items; bool odd, grew, found; };

static bool alias_has(const struct aliases *a, struct str name)
{
	for (size_t i = 0; i < a->n; i++)
		if (str_eq(a->p[i], name))
			return true;
	return false;
}

static void alias_add(struct format *f, struct aliases *a, const struct jinja_target *t)
{
	if (t->n != 1 || t->tuple || t->space.n) {
		f->odd = true;
		return;
	}
	if (alias_has(a, t->names[0]))
		return;
	if (a->n == ALIAS_MAX) {
		f->odd = true;
		return;
	}
	a->p[a->n++] = t->names[0];
	f->grew = true;
}

/* Through filters, tests and slices to what they are applied to. */
static const struct jinja_expr *peeled(const struct jinja_expr *e)
{
	while (e && (e->kind == JINJA_E_FILTER || e->kind == JINJA_E_TEST || e->kind == JINJA_E_SLICE))
		e = e->kind == JINJA_E_SLICE ? e->d : e->a;
	return e;
}

static bool names_one_of(const struct jinja_expr *e, const struct aliases *a)
{
	return e && e->kind == JINJA_E_NAME && alias_has(a, e->name);
}

static void see_alias(void *arg, const struct jinja_stmt *s)
{
	struct format *f = arg;
	const struct jinja_expr *from = peeled(s->e);
	if (s->kind == JINJA_S_SET && names_one_of(from, &f->lists))
		alias_add(f, &f->lists, &s->target);
	if (s->kind == JINJA_S_FOR && names_one_of(from, &f->lists))
		alias_add(f, &f->items, &s->target);
}

static bool is_content(const struct jinja_expr *e)
{
	if (e->kind == JINJA_E_ATTR)
		return str_eq(e->name, STR("content"));
	return e->kind == JINJA_E_ITEM && e->b->kind == JINJA_E_CONST && e->b->value.type == JINJA_STR && str_eq(e->b->value.s, STR("content"));
}

static void see_content_loop(void *arg, const struct jinja_stmt *s)
{
	struct format *f = arg;
	const struct jinja_expr *over = peeled(s->e);
	if (s->kind != JINJA_S_FOR || !over || !is_content(over) || !names_one_of(over->a, &f->items))
		return;
	f->odd |= s->target.n != 1 || s->target.tuple;
	f->found = true;
}

static bool content_loops(const struct jinja_template *t)
{
	struct format *f = must_calloc(1, sizeof(*f));
	struct walk aliases = { .on_stmt = see_alias, .arg = f }, content = { .on_stmt = see_content_loop, .arg = f };
	f->lists.p[f->lists.n++] = STR("messages");
	do {
		f->grew = false;
		walk_body(&aliases, &t->body);
	} while (f->grew);
	walk_body(&content, &t->body);
	bool yes = f->found && !f->odd;
	free(f);
	return yes;
}

/* ---- entry */

enum err jinja_compile(struct str source, struct jinja_template **ret_t, struct jinja_fault *ret_fault)
{
	struct jinja_token *tokens;
	*ret_fault = (struct jinja_fault){ 0 };
	if (source.n > SOURCE_MAX)
		return jinja_fault_set(ret_fault, 0, ERR_LIMIT, "a template longer than %d bytes", SOURCE_MAX);
	struct jinja_template *t = must_calloc(1, sizeof(*t));
	arena_init(&t->arena, 0);
	enum err e = jinja_lex(source, &t->arena, &tokens, ret_fault);
	if (e == ERR_OK)
		e = jinja_parse(tokens, t, ret_fault);
	if (e != ERR_OK) {
		jinja_free(t);
		return e;
	}
	struct walk clock = { .on_expr = see_clock, .arg = t };
	walk_body(&clock, &t->body);
	t->iterates_content = content_loops(t);
	*ret_t = t;
	return ERR_OK;
}

void jinja_free(struct jinja_template *t)
{
	if (!t)
		return;
	arena_done(&t->arena);
	free(t);
}

bool jinja_uses_clock(const struct jinja_template *t) { return t->clock; }
bool jinja_iterates_content(const struct jinja_template *t) { return t->iterates_content; }
