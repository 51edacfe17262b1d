/* jinja/ast.h: the tree of a template. Private to the room. Nodes live in the template's arena and never change. */
#ifndef JINJA_AST_H
#define JINJA_AST_H

#include "jinja/jinja.h"

enum { JINJA_NEST_MAX = 100, JINJA_HEIGHT_MAX = 500 };   /* nested brackets; levels of a tree: a + b + c + … is one a term */

enum jinja_expr_kind {
	JINJA_E_CONST, JINJA_E_NAME, JINJA_E_LIST, JINJA_E_TUPLE, JINJA_E_DICT, JINJA_E_ATTR, JINJA_E_ITEM, JINJA_E_SLICE, JINJA_E_CALL, JINJA_E_FILTER,
	JINJA_E_TEST, JINJA_E_NOT, JINJA_E_NEG, JINJA_E_POS, JINJA_E_AND, JINJA_E_OR, JINJA_E_BIN, JINJA_E_CONCAT, JINJA_E_COMPARE, JINJA_E_COND
};
enum jinja_bin { JINJA_ADD, JINJA_SUB, JINJA_MUL, JINJA_DIV, JINJA_FLOORDIV, JINJA_MOD, JINJA_POW };
enum jinja_cmp { JINJA_EQ, JINJA_NE, JINJA_LT, JINJA_LE, JINJA_GT, JINJA_GE, JINJA_IN, JINJA_NOT_IN };

struct jinja_expr;
struct jinja_arg { struct str name; const struct jinja_expr *val; };    /* name empty: positional */
struct jinja_expr {
	enum jinja_expr_kind kind;
	unsigned line;
	struct jinja_val value;              /* CONST */
	struct str name;                     /* NAME, ATTR, FILTER, TEST */
	unsigned number;                     /* NAME: of its name */
	int op;                              /* BIN, or the function number of FILTER and TEST */
	bool negated;                        /* TEST: is not */
	bool plain;                          /* ATTR: no dict has a method of that name, and Python keeps none for itself */
	const struct jinja_expr *a, *b, *c;  /* operands; SLICE: start, stop, step (NULL = absent), of d; COND: a if b else c */
	const struct jinja_expr *d;
	const struct jinja_arg *args;        /* CALL, FILTER, TEST; LIST, TUPLE, CONCAT (values); DICT (pairs in turn: key, value) */
	size_t n_args;
	const int *ops;                      /* COMPARE: args[0] ops[0] args[1] ops[1] args[2] ... */
};

/* A variable's name, and its number: the same name has the same number in a template, so that scopes are searched by numbers. */
struct jinja_name { struct str text; unsigned number; };
/* The interpreter's own come first. BODY, which no template can write: the text of a filter block's body. */
#define JINJA_OWN_NAMES(X) X(LOOP, "loop") X(CALLER, "caller") X(BODY, "\1body")
enum {
#define X(id, text) JINJA_N_##id,
	JINJA_OWN_NAMES(X)
#undef X
};

enum jinja_stmt_kind {
	JINJA_S_DATA, JINJA_S_OUTPUT, JINJA_S_SUM, JINJA_S_IF, JINJA_S_FOR, JINJA_S_SET, JINJA_S_SET_BLOCK, JINJA_S_MACRO, JINJA_S_CALL, JINJA_S_FILTER,
	JINJA_S_SCOPE, JINJA_S_BREAK, JINJA_S_CONTINUE
};
struct jinja_stmt;
struct jinja_body { const struct jinja_stmt *p; size_t n; };
struct jinja_target {                    /* what `set` and `for` bind: names (a tuple when n > 1 or `tuple`), or space.attr */
	const struct jinja_name *names; size_t n; bool tuple;
	struct jinja_name space;
	struct str attr;
};
struct jinja_param { struct jinja_name name; const struct jinja_expr *def; };
struct jinja_stmt {
	enum jinja_stmt_kind kind;
	unsigned line;
	struct str data;                     /* DATA */
	struct jinja_name name;              /* MACRO */
	const struct jinja_expr *e, *filter; /* OUTPUT, SUM, IF (condition), FOR (what), SET, CALL (the call); FOR: its `if` */
	const struct jinja_expr *const *terms; size_t n_terms;   /* SUM, an output of a + b + …: what e adds up */
	struct jinja_target target;
	const struct jinja_param *params; size_t n_params;    /* MACRO, CALL */
	struct jinja_body body, other;       /* other: else */
};

struct jinja_template {
	struct arena arena;
	struct jinja_body body;
	size_t n_names;                      /* of all variables: their numbers are below */
	bool clock;
	bool format, format_before;          /* the content is gone through: by today's rule, by the older one */
};

/* Every expression of a tree, parents first, down to JINJA_HEIGHT_MAX. */
struct jinja_walk {
	void (*on_expr)(void *arg, const struct jinja_expr *e);
	void *arg;
	unsigned depth;
	bool too_deep;                       /* there was more */
};
void jinja_walk_body(struct jinja_walk *w, const struct jinja_body *b);
/* format.c: does some loop run over the content of a message? old: by the rule older workers have. */
must_use enum err jinja_format_of(const struct jinja_template *t, bool old, bool *ret_found);   /* LIMIT: too many variables stand for messages */

/* Tokens -> tree. */
struct jinja_token;
must_use enum err jinja_parse(const struct jinja_token *tokens, struct jinja_template *t, struct jinja_fault *fault);
/* Numbers of filters and tests by name (-1: none). */
int jinja_filter_find(struct str name);
int jinja_test_find(struct str name);

#endif
