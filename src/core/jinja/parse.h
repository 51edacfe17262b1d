/* jinja/parse.h: what parse.c (statements) and parse_expr.c (expressions) share. Private to the room. */
#ifndef JINJA_PARSE_H
#define JINJA_PARSE_H

#include "base/map.h"
#include "base/vec.h"
#include "jinja/ast.h"
#include "jinja/lex.h"

struct jinja_parser {
	const struct jinja_token *t;         /* the current token */
	struct jinja_template *to;
	struct jinja_fault *fault;
	unsigned depth;
	VEC(struct str) names;               /* of variables, by number */
	struct map numbers;                  /* digest of a name -> its number */
};
unsigned jinja_number_of(struct jinja_parser *p, struct str name);      /* a variable's */

must_use enum err jinja_parse_expr(struct jinja_parser *p, const struct jinja_expr **ret_e);            /* with if-else */
must_use enum err jinja_parse_expr_no_if(struct jinja_parser *p, const struct jinja_expr **ret_e);      /* `or` level: the iterable of a for with a filter */
must_use enum err jinja_parse_tuple(struct jinja_parser *p, bool no_if, const struct jinja_expr **ret_e); /* a, b, c without parentheses */
must_use enum err jinja_parse_filters(struct jinja_parser *p, const struct jinja_expr **io_e);         /* | f | g(…) behind *io_e */
bool jinja_at_op(const struct jinja_parser *p, const char *op);
bool jinja_at_name(const struct jinja_parser *p, const char *name);
bool jinja_skip_op(struct jinja_parser *p, const char *op);                 /* takes it if it is there */
bool jinja_skip_name(struct jinja_parser *p, const char *name);
must_use enum err jinja_want_op(struct jinja_parser *p, const char *op);
must_use enum err jinja_unexpected(struct jinja_parser *p, const char *wanted);

#endif
