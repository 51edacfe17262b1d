/* parse.c: statements. The tags that chat templates use; others are refused by name. */
#include "jinja/parse.h"

#include <string.h>

#include "base/hash.h"
#include "base/must.h"

typedef VEC(struct jinja_stmt) stmt_vec;

static enum err body(struct jinja_parser *p, const char *const *ends, struct jinja_body *ret_body);

static enum err block_end(struct jinja_parser *p)
{
	if (p->t->type != JINJA_T_BLOCK_END)
		return jinja_unexpected(p, "the end of the tag");
	p->t++;
	return ERR_OK;
}

/* At `{% word %}` (p->t at the name): takes both. */
static enum err end_tag(struct jinja_parser *p, const char *word)
{
	if (!jinja_skip_name(p, word))
		return jinja_unexpected(p, word);
	return block_end(p);
}

/* Of two names with one digest the second gets that of another seed. */
unsigned jinja_number_of(struct jinja_parser *p, struct str name)
{
	for (uint64_t seed = 0;; seed++) {
		uint64_t digest = hash_str(name, seed), number = 0;
		if (!map_get(&p->numbers, digest, &number)) {
			map_put(&p->numbers, digest, p->names.n);
			VEC_PUSH(&p->names, name);
			return (unsigned)p->names.n - 1;
		}
		if (str_eq(p->names.p[number], name))
			return (unsigned)number;
	}
}

/* At a name: takes it. */
static struct jinja_name take_name(struct jinja_parser *p)
{
	struct str text = (p->t++)->text;
	return (struct jinja_name){ text, jinja_number_of(p, text) };
}

static enum err target(struct jinja_parser *p, struct jinja_target *ret_t)
{
	VEC(struct jinja_name) names = { 0 };
	bool parens = jinja_skip_op(p, "(");
	do {
		if (names.n && (jinja_at_name(p, "in") || jinja_at_op(p, "=")))
			break;
		if (p->t->type != JINJA_T_NAME) {
			VEC_FREE(&names);
			return jinja_unexpected(p, "a name");
		}
		VEC_PUSH(&names, take_name(p));
		ret_t->tuple |= jinja_at_op(p, ",");
	} while (jinja_skip_op(p, ","));
	struct jinja_name *kept = arena_new(&p->to->arena, struct jinja_name, names.n);
	memcpy(kept, names.p, names.n * sizeof(*kept));
	ret_t->names = kept;
	ret_t->n = names.n;
	VEC_FREE(&names);
	return parens ? jinja_want_op(p, ")") : ERR_OK;
}

static enum err st_for(struct jinja_parser *p, struct jinja_stmt *s)
{
	static const char *const ends[] = { "else", "endfor", NULL }, *const last[] = { "endfor", NULL };
	s->kind = JINJA_S_FOR;
	TRY(target(p, &s->target));
	if (!jinja_skip_name(p, "in"))
		return jinja_unexpected(p, "in");
	TRY(jinja_parse_tuple(p, true, &s->e));
	if (jinja_skip_name(p, "if"))
		TRY(jinja_parse_expr(p, &s->filter));
	if (jinja_at_name(p, "recursive"))
		return jinja_fault_set(p->fault, p->t->line, ERR_UNSUPPORTED, "a recursive for");
	TRY(block_end(p));
	TRY(body(p, ends, &s->body));
	if (jinja_skip_name(p, "else")) {
		TRY(block_end(p));
		TRY(body(p, last, &s->other));
	}
	return end_tag(p, "endfor");
}

static enum err st_if(struct jinja_parser *p, struct jinja_stmt *s)
{
	static const char *const ends[] = { "elif", "else", "endif", NULL }, *const last[] = { "endif", NULL };
	s->kind = JINJA_S_IF;
	TRY(jinja_parse_tuple(p, false, &s->e));
	TRY(block_end(p));
	TRY(body(p, ends, &s->body));
	if (jinja_skip_name(p, "elif")) {
		struct jinja_stmt *inner = arena_new(&p->to->arena, struct jinja_stmt, 1);
		if (p->depth++ > JINJA_NEST_MAX)
			return jinja_fault_set(p->fault, p->t->line, ERR_LIMIT, "nested too deep");
		inner->line = p->t->line;
		TRY(st_if(p, inner));
		p->depth--;
		s->other = (struct jinja_body){ inner, 1 };
		return ERR_OK;
	}
	if (jinja_skip_name(p, "else")) {
		TRY(block_end(p));
		TRY(body(p, last, &s->other));
	}
	return end_tag(p, "endif");
}

static enum err st_set(struct jinja_parser *p, struct jinja_stmt *s)
{
	static const char *const ends[] = { "endset", NULL };
	s->kind = JINJA_S_SET;
	if (p->t->type == JINJA_T_NAME && p->t[1].type == JINJA_T_OP && str_eq(p->t[1].text, STR(".")) && p->t[2].type == JINJA_T_NAME) {
		s->target.space = take_name(p);
		s->target.attr = p->t[1].text;
		p->t += 2;
	} else {
		TRY(target(p, &s->target));
	}
	if (jinja_skip_op(p, "=")) {
		TRY(jinja_parse_tuple(p, false, &s->e));
		return block_end(p);
	}
	s->kind = JINJA_S_SET_BLOCK;
	if (jinja_at_op(p, "|"))
		return jinja_fault_set(p->fault, p->t->line, ERR_UNSUPPORTED, "a filter on a set block");
	TRY(block_end(p));
	TRY(body(p, ends, &s->body));
	return end_tag(p, "endset");
}

static enum err params(struct jinja_parser *p, struct jinja_stmt *s)
{
	VEC(struct jinja_param) v = { 0 };
	enum err e = jinja_want_op(p, "(");
	while (e == ERR_OK && !jinja_skip_op(p, ")")) {
		struct jinja_param x = { 0 };
		if (v.n)
			e = jinja_want_op(p, ",");
		if (e == ERR_OK && p->t->type != JINJA_T_NAME)
			e = jinja_unexpected(p, "a parameter's name");
		if (e == ERR_OK && jinja_at_name(p, "caller"))
			e = jinja_fault_set(p->fault, p->t->line, ERR_UNSUPPORTED, "a parameter called caller");
		if (e != ERR_OK)
			break;
		x.name = take_name(p);
		if (jinja_skip_op(p, "="))
			e = jinja_parse_expr(p, &x.def);
		VEC_PUSH(&v, x);
	}
	struct jinja_param *kept = arena_new(&p->to->arena, struct jinja_param, v.n);
	if (v.n)
		memcpy(kept, v.p, v.n * sizeof(*kept));
	s->params = kept;
	s->n_params = v.n;
	VEC_FREE(&v);
	return e;
}

static enum err st_macro(struct jinja_parser *p, struct jinja_stmt *s)
{
	static const char *const ends[] = { "endmacro", NULL };
	s->kind = JINJA_S_MACRO;
	if (p->t->type != JINJA_T_NAME)
		return jinja_unexpected(p, "the macro's name");
	s->name = take_name(p);
	TRY(params(p, s));
	TRY(block_end(p));
	TRY(body(p, ends, &s->body));
	return end_tag(p, "endmacro");
}

static enum err st_call(struct jinja_parser *p, struct jinja_stmt *s)
{
	static const char *const ends[] = { "endcall", NULL };
	s->kind = JINJA_S_CALL;
	if (jinja_at_op(p, "("))
		TRY(params(p, s));
	TRY(jinja_parse_expr(p, &s->e));
	if (s->e->kind != JINJA_E_CALL)
		return jinja_unexpected(p, "a call");
	TRY(block_end(p));
	TRY(body(p, ends, &s->body));
	return end_tag(p, "endcall");
}

/* {% filter f|g %}: filters on a name that stands for the body's text. */
static enum err st_filter(struct jinja_parser *p, struct jinja_stmt *s)
{
	static const char *const ends[] = { "endfilter", NULL };
	struct jinja_expr *self = arena_new(&p->to->arena, struct jinja_expr, 1), *e = arena_new(&p->to->arena, struct jinja_expr, 1);
	*self = (struct jinja_expr){ .kind = JINJA_E_NAME, .name = p->names.p[JINJA_N_BODY], .number = JINJA_N_BODY, .line = p->t->line };
	*e = (struct jinja_expr){ .kind = JINJA_E_FILTER, .line = p->t->line, .a = self, .name = p->t->text, .op = jinja_filter_find(p->t->text) };
	s->kind = JINJA_S_FILTER;
	if (e->op < 0 || (p->t[1].type == JINJA_T_OP && str_eq(p->t[1].text, STR("("))))
		return jinja_fault_set(p->fault, p->t->line, ERR_UNSUPPORTED, "this form of a filter block");
	p->t++;
	s->e = e;
	TRY(jinja_parse_filters(p, &s->e));
	TRY(block_end(p));
	TRY(body(p, ends, &s->body));
	return end_tag(p, "endfilter");
}

static enum err st_scope(struct jinja_parser *p, struct jinja_stmt *s)
{
	static const char *const ends[] = { "endgeneration", NULL };
	s->kind = JINJA_S_SCOPE;
	TRY(block_end(p));
	TRY(body(p, ends, &s->body));
	return end_tag(p, "endgeneration");
}

static enum err st_break(struct jinja_parser *p, struct jinja_stmt *s)
{
	s->kind = JINJA_S_BREAK;
	return block_end(p);
}

static enum err st_continue(struct jinja_parser *p, struct jinja_stmt *s)
{
	s->kind = JINJA_S_CONTINUE;
	return block_end(p);
}

static const struct { const char *word; enum err (*fn)(struct jinja_parser *, struct jinja_stmt *); } tags[] = {
	{ "if", st_if },         { "for", st_for },       { "set", st_set },           { "macro", st_macro },  { "call", st_call },
	{ "filter", st_filter }, { "break", st_break },   { "continue", st_continue }, { "generation", st_scope },
};

static enum err tag(struct jinja_parser *p, struct jinja_stmt *s)
{
	for (size_t i = 0; i < ARRAY_LEN(tags); i++)
		if (jinja_skip_name(p, tags[i].word))
			return tags[i].fn(p, s);
	return jinja_fault_set(p->fault, p->t->line, ERR_UNSUPPORTED, "the tag %.*s", (int)MIN(p->t->text.n, 40u), p->t->text.p ? p->t->text.p : "");
}

static bool at_end(const struct jinja_parser *p, const char *const *ends)
{
	for (; ends && *ends; ends++)
		if (p->t->type == JINJA_T_BLOCK && p->t[1].type == JINJA_T_NAME && str_eq(p->t[1].text, str_of(*ends)))
			return true;
	return false;
}

static bool is_sum(const struct jinja_expr *e) { return e->kind == JINJA_E_BIN && e->op == JINJA_ADD; }

/* a + b + c is (a + b) + c: from the right to the left. */
static void note_terms(struct jinja_parser *p, struct jinja_stmt *s)
{
	const struct jinja_expr **terms, *at;
	size_t n = 1;
	if (!is_sum(s->e))
		return;
	for (at = s->e; is_sum(at); at = at->a)
		n++;
	s->kind = JINJA_S_SUM;
	s->terms = terms = arena_new(&p->to->arena, const struct jinja_expr *, n);
	s->n_terms = n;
	for (at = s->e; is_sum(at); at = at->a)
		terms[--n] = at->b;
	terms[0] = at;
}

static enum err one(struct jinja_parser *p, struct jinja_stmt *s)
{
	s->line = p->t->line;
	if (p->t->type == JINJA_T_DATA) {
		s->kind = JINJA_S_DATA;
		s->data = (p->t++)->text;
		return ERR_OK;
	}
	if (p->t->type == JINJA_T_VAR) {
		p->t++;
		s->kind = JINJA_S_OUTPUT;
		TRY(jinja_parse_tuple(p, false, &s->e));
		if (p->t->type != JINJA_T_VAR_END)
			return jinja_unexpected(p, "}}");
		note_terms(p, s);
		p->t++;
		return ERR_OK;
	}
	p->t++;
	return tag(p, s);
}

/* Statements up to one of the end tags (p->t is then at its name), or the end of the template. */
static enum err body(struct jinja_parser *p, const char *const *ends, struct jinja_body *ret_body)
{
	stmt_vec v = { 0 };
	enum err e = ERR_OK;
	if (p->depth++ > JINJA_NEST_MAX)
		return jinja_fault_set(p->fault, p->t->line, ERR_LIMIT, "nested too deep");
	while (e == ERR_OK && p->t->type != JINJA_T_END && !at_end(p, ends)) {
		struct jinja_stmt s = { 0 };
		e = one(p, &s);
		VEC_PUSH(&v, s);
	}
	p->depth--;
	if (e == ERR_OK && ends && p->t->type == JINJA_T_END)
		e = jinja_fault_set(p->fault, p->t->line, ERR_SYNTAX, "%s is missing", ends[0]);
	p->t += e == ERR_OK && ends;
	struct jinja_stmt *kept = arena_new(&p->to->arena, struct jinja_stmt, v.n);
	if (v.n)
		memcpy(kept, v.p, v.n * sizeof(*kept));
	*ret_body = (struct jinja_body){ kept, v.n };
	VEC_FREE(&v);
	return e;
}

enum err jinja_parse(const struct jinja_token *tokens, struct jinja_template *t, struct jinja_fault *fault)
{
	struct jinja_parser p = { .t = tokens, .to = t, .fault = fault };
	map_init(&p.numbers);
#define X(id, text) must(jinja_number_of(&p, STR(text)) == JINJA_N_##id);
	JINJA_OWN_NAMES(X)
#undef X
	enum err e = body(&p, NULL, &t->body);
	t->n_names = p.names.n;
	map_done(&p.numbers);
	VEC_FREE(&p.names);
	return e;
}
