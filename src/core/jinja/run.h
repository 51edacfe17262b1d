/* jinja/run.h: a rendering under way. Private to the room. */
#ifndef JINJA_RUN_H
#define JINJA_RUN_H

#include "jinja/ast.h"
#include "jinja/lex.h"

struct jinja_binding { unsigned number; struct jinja_val val; };   /* number: of a name */
struct jinja_scope { struct jinja_scope *up; struct jinja_binding *p; size_t n, cap; };
struct jinja_run {
	struct arena *a;
	struct buf *out;                     /* where output goes now: the result, or a block's text */
	struct jinja_scope *scope;
	const struct jinja_render_opts *o;
	const struct jinja_val **given;      /* by number of a name: what it is outside of all scopes; NULL: not looked up yet */
	size_t n_vars;                       /* of the options */
	struct jinja_fault *fault;
	uint64_t steps, max_steps;
	size_t max_text_bytes;
	unsigned depth, line;
	char *joined_end; size_t joined_room; /* of the text that + made last */
	enum { JINJA_FLOW_ON, JINJA_FLOW_BREAK, JINJA_FLOW_CONTINUE } flow;
};
struct jinja_loop { const struct jinja_list *items; size_t i; };
struct jinja_macro { const struct jinja_stmt *s; struct jinja_scope *scope; };
struct jinja_method { struct jinja_val self; int number; };
/* Arguments of a call, in order, and the named ones. */
struct jinja_args { const struct jinja_val *p; size_t n; const struct jinja_arg_named { struct str name; struct jinja_val val; } *named; size_t n_named; };

must_use enum err jinja_exec(struct jinja_run *r, const struct jinja_body *b);
must_use enum err jinja_call(struct jinja_run *r, const struct jinja_val *fn, const struct jinja_args *args, struct jinja_val *ret_v);
must_use enum err jinja_call_macro(struct jinja_run *r, const struct jinja_macro *m, const struct jinja_args *args, const struct jinja_val *caller, struct jinja_val *ret_v);
must_use enum err jinja_call_global(struct jinja_run *r, int number, const struct jinja_args *args, struct jinja_val *ret_v);
must_use enum err jinja_call_method(struct jinja_run *r, const struct jinja_method *m, const struct jinja_args *args, struct jinja_val *ret_v);
must_use enum err jinja_filter(struct jinja_run *r, int number, const struct jinja_val *v, const struct jinja_args *args, struct jinja_val *ret_v);
must_use enum err jinja_test(struct jinja_run *r, int number, const struct jinja_val *v, const struct jinja_args *args, bool *ret_yes);

/* obj.name and obj[key] by Jinja's rules; a missing one is an undefined value, not an error. */
must_use enum err jinja_get_attr(struct jinja_run *r, const struct jinja_val *obj, struct str name, struct jinja_val *ret_v);
must_use enum err jinja_get_item(struct jinja_run *r, const struct jinja_val *obj, const struct jinja_val *key, struct jinja_val *ret_v);
/* The method of a value by name; false when its type has none of that name. */
bool jinja_method_find(struct jinja_run *r, const struct jinja_val *self, struct str name, struct jinja_val *ret_v);
/* What a name stands for outside of all scopes. */
const struct jinja_val *jinja_given(struct jinja_run *r, struct str name);
must_use enum err jinja_binary(struct jinja_run *r, int op, const struct jinja_val *x, const struct jinja_val *y, struct jinja_val *ret_v);
must_use enum err jinja_compare(struct jinja_run *r, int op, const struct jinja_val *x, const struct jinja_val *y, bool *ret_yes);
must_use enum err jinja_slice(struct jinja_run *r, const struct jinja_val *v, const struct jinja_val part[3], struct jinja_val *ret_v);   /* NONE = absent */
/* What iterating over v gives. */
must_use enum err jinja_items(struct jinja_run *r, const struct jinja_val *v, const struct jinja_list **ret_l);
/* str(v), in the arena. */
must_use enum err jinja_text(struct jinja_run *r, const struct jinja_val *v, struct str *ret_s);
enum err jinja_spent(struct jinja_run *r);                                      /* LIMIT, with a fault; so is the next */
enum err jinja_too_deep(struct jinja_run *r);
static inline must_use enum err jinja_step(struct jinja_run *r, uint64_t n)     /* LIMIT when the budget is used up */
{
	r->steps += n;
	return r->steps > r->max_steps || r->a->used_bytes > r->a->max_bytes ? jinja_spent(r) : ERR_OK;   /* jinja_render sees to a maximum */
}
/* A step for each stretch of text, or few entries of a dict, that one operation goes through; found out at the next step. */
enum { JINJA_STEP_BYTES = 256, JINJA_STEP_ENTRIES = 16, JINJA_PRINTING = 16 };   /* PRINTING: by so much dearer than copying */
static inline void jinja_toiled(struct jinja_run *r, size_t bytes) { r->steps += bytes / JINJA_STEP_BYTES; }
static inline void jinja_searched(struct jinja_run *r, size_t entries) { r->steps += entries / JINJA_STEP_ENTRIES; }
/* A key in so many entries of a dict, each of which may begin as it does. */
static inline void jinja_sought_str(struct jinja_run *r, size_t entries, struct str key)
{
	r->steps += entries / JINJA_STEP_ENTRIES + entries * (key.n / JINJA_STEP_BYTES);
}
static inline void jinja_sought(struct jinja_run *r, size_t entries, const struct jinja_val *key)
{
	jinja_sought_str(r, entries, key->type == JINJA_STR || key->type == JINJA_BIGINT ? key->s : (struct str){ 0 });
}
/* By kind. Each has a function of its own: one for all would save and check for every node what only the largest of them needs. */
typedef enum err jinja_eval_fn(struct jinja_run *r, const struct jinja_expr *e, struct jinja_val *ret_v);
extern jinja_eval_fn *const jinja_evals[];
static inline must_use enum err jinja_eval_step(struct jinja_run *r)
{
	TRY(jinja_step(r, 1));
	return r->depth > JINJA_HEIGHT_MAX + JINJA_NEST_MAX ? jinja_too_deep(r) : ERR_OK;
}
static inline must_use enum err jinja_eval(struct jinja_run *r, const struct jinja_expr *e, struct jinja_val *ret_v)
{
	TRY(jinja_eval_step(r));
	r->depth++;
	enum err err = jinja_evals[e->kind](r, e, ret_v);
	r->depth--;
	return err;
}
must_use enum err jinja_equals(struct jinja_run *r, const struct jinja_val *x, const struct jinja_val *y, bool *ret_yes);
enum err jinja_undefined_fault(struct jinja_run *r, const struct jinja_val *v); /* raises: 'name' is undefined */
enum err jinja_raise(struct jinja_run *r, const char *fmt, ...) printf_like(2, 3);         /* BAD_REQUEST with a fault */
enum err jinja_refuse(struct jinja_run *r, const char *fmt, ...) printf_like(2, 3);        /* UNSUPPORTED with a fault */

/* Names, by number. What is nowhere bound is a variable of the options, a global or undefined. A value that was looked up stays where
 * it is until something is bound: as long as an expression is worked out. */
void jinja_bind(struct jinja_run *r, unsigned number, const struct jinja_val *v);
const struct jinja_val *jinja_lookup(struct jinja_run *r, unsigned number, struct str name);
struct jinja_scope *jinja_scope_push(struct jinja_run *r, struct jinja_scope *up);         /* returns the scope to restore */

/* Argument `i`, else the one called `name`, else NULL. */
const struct jinja_val *jinja_arg_get(const struct jinja_args *a, size_t i, const char *name);
must_use enum err jinja_arg_i64(struct jinja_run *r, const struct jinja_args *a, size_t i, const char *name, int64_t def, int64_t *ret_n);
must_use enum err jinja_arg_str(struct jinja_run *r, const struct jinja_args *a, size_t i, const char *name, struct str def, struct str *ret_s);
/* UNSUPPORTED when there are arguments beyond the first n or named otherwise than in names (space separated). */
must_use enum err jinja_args_checked(struct jinja_run *r, const struct jinja_args *a, size_t n, const char *names, const char *what);
static inline must_use enum err jinja_args_only(struct jinja_run *r, const struct jinja_args *a, size_t n, const char *names, const char *what)
{
	return a->n <= n && a->n_named == 0 ? ERR_OK : jinja_args_checked(r, a, n, names, what);
}

#endif
