/* format.c: vLLM's detection of the content format, by the shape of a template's loops. It decides whether messages reach the
 * template with their content as text or as a list of parts, so it follows the worker's own rule to the letter, order of search
 * and failures included: a loop or assignment with an odd target that is met first means "text". */
#include <stdlib.h>

#include "base/must.h"
#include "base/vec.h"
#include "jinja/ast.h"

enum { NAMES_MAX = 64 };   /* variables that stand for messages: beyond that nobody looks */

struct names {
	VEC(struct str) v;
};

struct format {
	const struct jinja_template *t;
	bool old;
	struct names lists, items;   /* variables that hold messages; variables that hold one */
	bool odd, grew, too_many;
	enum { SEARCHING, FOUND, FAILED } state;
};

/* A macro on the way down to a loop: NULL outside of macros. */
struct frame {
	const struct names *content_params;
};

static bool has(const struct names *n, struct str name)
{
	for (size_t i = 0; i < n->v.n; i++)
		if (str_eq(n->v.p[i], name))
			return true;
	return false;
}

static bool plain_target(const struct jinja_target *t) { return t->n == 1 && !t->tuple && !t->space.text.n; }

static void add_target(struct format *f, struct names *n, const struct jinja_target *t)
{
	f->odd |= !plain_target(t);
	if (f->odd || has(n, t->names[0].text))
		return;
	f->too_many |= n->v.n == NAMES_MAX;
	if (f->too_many)
		return;
	VEC_PUSH(&n->v, t->names[0].text);
	f->grew = true;
}

/* Through filters, tests and slices to what they are applied to. */
static const struct jinja_expr *peeled(const struct jinja_expr *e)
{
	while (e && (e->kind == JINJA_E_FILTER || e->kind == JINJA_E_TEST || e->kind == JINJA_E_SLICE))
		e = e->kind == JINJA_E_SLICE ? e->d : e->a;
	return e;
}

static bool names_one_of(const struct jinja_expr *e, const struct names *n) { return e && e->kind == JINJA_E_NAME && has(n, e->name); }

static bool is_content(const struct jinja_expr *e, const struct names *of)
{
	e = peeled(e);
	if (!e || !names_one_of(e->a, of))
		return false;
	if (e->kind == JINJA_E_ATTR)
		return str_eq(e->name, STR("content"));
	return e->kind == JINJA_E_ITEM && e->b->kind == JINJA_E_CONST && e->b->value.type == JINJA_STR && str_eq(e->b->value.s, STR("content"));
}

/* ---- the variables */

static void see_aliases(struct format *f, const struct jinja_body *b)
{
	for (size_t i = 0; i < b->n; i++) {
		const struct jinja_stmt *s = &b->p[i];
		if (s->kind == JINJA_S_SET && names_one_of(peeled(s->e), &f->lists))
			add_target(f, &f->lists, &s->target);
		if (s->kind == JINJA_S_FOR && names_one_of(peeled(s->e), &f->lists))
			add_target(f, &f->items, &s->target);
		see_aliases(f, &s->body);
		see_aliases(f, &s->other);
	}
}

/* ---- macros that are given a message's content */

struct macro_calls {
	const struct format *f;
	const struct jinja_stmt *macro;
	struct names *params;
};

static void see_call(void *arg, const struct jinja_expr *e)
{
	struct macro_calls *m = arg;
	if (e->kind != JINJA_E_CALL || e->a->kind != JINJA_E_NAME || !str_eq(e->a->name, m->macro->name.text))
		return;
	size_t at = 0;
	for (size_t i = 0; i < e->n_args; i++) {
		const struct jinja_arg *a = &e->args[i];
		bool content = is_content(a->val, &m->f->items);
		if (!a->name.n && at++ < m->macro->n_params && content)
			VEC_PUSH(&m->params->v, m->macro->params[at - 1].name.text);
		for (size_t k = 0; a->name.n && content && k < m->macro->n_params; k++)
			if (str_eq(a->name, m->macro->params[k].name.text))
				VEC_PUSH(&m->params->v, a->name);
	}
}

static void content_params(const struct format *f, const struct jinja_stmt *macro, struct names *ret_params)
{
	struct macro_calls m = { f, macro, ret_params };
	struct jinja_walk w = { .on_expr = see_call, .arg = &m };
	jinja_walk_body(&w, &f->t->body);
}

/* ---- the loops, in the order they are written */

static void search(struct format *f, const struct jinja_body *b, const struct frame *in);

static void see_loop(struct format *f, const struct jinja_stmt *s, const struct frame *in)
{
	bool hit = is_content(s->e, &f->items);
	if (!hit && !f->old && s->e->kind == JINJA_E_NAME)
		hit = in ? has(in->content_params, s->e->name) : str_eq(s->e->name, STR("content"));
	if (hit)
		f->state = plain_target(&s->target) ? FOUND : FAILED;
}

static void search_macro(struct format *f, const struct jinja_stmt *s, const struct frame *in)
{
	struct names params = { 0 };
	content_params(f, s, &params);
	struct frame inner = { params.v.n || !in ? &params : in->content_params };
	search(f, &s->body, &inner);
	VEC_FREE(&params.v);
}

static void search(struct format *f, const struct jinja_body *b, const struct frame *in)
{
	for (size_t i = 0; i < b->n && f->state == SEARCHING; i++) {
		const struct jinja_stmt *s = &b->p[i];
		if (s->kind == JINJA_S_FOR)
			see_loop(f, s, in);
		if (s->kind == JINJA_S_MACRO)
			search_macro(f, s, in);
		else if (f->state == SEARCHING)
			search(f, &s->body, in);
		if (f->state == SEARCHING)
			search(f, &s->other, in);
	}
}

enum err jinja_format_of(const struct jinja_template *t, bool old, bool *ret_found)
{
	struct format f = { .t = t, .old = old };
	VEC_PUSH(&f.lists.v, STR("messages"));
	do {
		f.grew = false;
		see_aliases(&f, &t->body);
	} while (f.grew && !f.odd);
	if (!f.odd)
		search(&f, &t->body, NULL);
	VEC_FREE(&f.lists.v);
	VEC_FREE(&f.items.v);
	*ret_found = f.state == FOUND;
	return f.too_many ? ERR_LIMIT : ERR_OK;
}
