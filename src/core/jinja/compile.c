/* compile.c: source -> template, and which names a template mentions. */
#include <stdlib.h>

#include "base/must.h"
#include "base/utf8.h"
#include "jinja/ast.h"
#include "jinja/lex.h"

enum { SOURCE_MAX = 1 << 20 };

/* ---- walking */

static void walk_expr(struct jinja_walk *w, const struct jinja_expr *e)
{
	if (!e)
		return;
	if (w->depth == JINJA_HEIGHT_MAX) {
		w->too_deep = true;
		return;
	}
	w->depth++;
	w->on_expr(w->arg, e);
	walk_expr(w, e->a);
	walk_expr(w, e->b);
	walk_expr(w, e->c);
	walk_expr(w, e->d);
	for (size_t i = 0; i < e->n_args; i++)
		walk_expr(w, e->args[i].val);
	w->depth--;
}

void jinja_walk_body(struct jinja_walk *w, const struct jinja_body *b)
{
	for (size_t i = 0; i < b->n; i++) {
		const struct jinja_stmt *s = &b->p[i];
		walk_expr(w, s->e);
		walk_expr(w, s->filter);
		for (size_t k = 0; k < s->n_params; k++)
			walk_expr(w, s->params[k].def);
		jinja_walk_body(w, &s->body);
		jinja_walk_body(w, &s->other);
	}
}

struct sought {
	struct str name;
	bool found;
};

static void see_name(void *arg, const struct jinja_expr *e)
{
	struct sought *s = arg;
	s->found |= e->kind == JINJA_E_NAME && str_eq(e->name, s->name);
}

/* False: the tree is too high. */
static bool seek(const struct jinja_template *t, struct sought *s)
{
	struct jinja_walk w = { .on_expr = see_name, .arg = s };
	jinja_walk_body(&w, &t->body);
	return !w.too_deep;
}

bool jinja_mentions(const struct jinja_template *t, struct str name)
{
	struct sought s = { .name = name };
	return seek(t, &s) && s.found;
}

/* ---- entry */

enum err jinja_compile(struct str source, struct jinja_template **ret_t, struct jinja_fault *ret_fault)
{
	struct jinja_token *tokens;
	*ret_fault = (struct jinja_fault){ 0 };
	if (source.n > SOURCE_MAX)
		return jinja_fault_set(ret_fault, 0, ERR_LIMIT, "a template longer than %d bytes", SOURCE_MAX);
	if (!utf8_valid(source))
		return jinja_fault_set(ret_fault, 0, ERR_SYNTAX, "not UTF-8");
	struct jinja_template *t = must_calloc(1, sizeof(*t));
	arena_init(&t->arena, 0);
	struct sought clock = { .name = STR("strftime_now") };
	enum err e = jinja_lex(source, &t->arena, &tokens, ret_fault);
	if (e == ERR_OK)
		e = jinja_parse(tokens, t, ret_fault);
	if (e == ERR_OK && !seek(t, &clock))
		e = jinja_fault_set(ret_fault, 0, ERR_LIMIT, "an expression too long");
	if (e == ERR_OK && (jinja_format_of(t, false, &t->format) != ERR_OK || jinja_format_of(t, true, &t->format_before) != ERR_OK))
		e = jinja_fault_set(ret_fault, 0, ERR_LIMIT, "too many variables for the messages");
	if (e != ERR_OK) {
		jinja_free(t);
		return e;
	}
	t->clock = clock.found;
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
bool jinja_iterates_content(const struct jinja_template *t) { return t->format; }
bool jinja_content_disputed(const struct jinja_template *t) { return t->format != t->format_before; }
