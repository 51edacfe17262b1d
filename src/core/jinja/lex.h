/* jinja/lex.h: template text -> tokens, with Jinja's white space rules (trim_blocks, lstrip_blocks, the signs - and +).
 * Private to the room. Token texts point into the source or the arena. */
#ifndef JINJA_LEX_H
#define JINJA_LEX_H

#include "jinja/jinja.h"

enum jinja_tok { JINJA_T_DATA, JINJA_T_VAR, JINJA_T_VAR_END, JINJA_T_BLOCK, JINJA_T_BLOCK_END, JINJA_T_NAME, JINJA_T_STR, JINJA_T_INT, JINJA_T_FLOAT, JINJA_T_OP, JINJA_T_END };
struct jinja_token { enum jinja_tok type; unsigned line; struct str text; };   /* STR: unescaped; OP: one of the operators */

/* The tokens, closed by JINJA_T_END. Memory in the arena. */
must_use enum err jinja_lex(struct str source, struct arena *a, struct jinja_token **ret_tokens, struct jinja_fault *fault);
/* Fills the fault and returns e. */
enum err jinja_fault_set(struct jinja_fault *f, unsigned line, enum err e, const char *fmt, ...) printf_like(4, 5);

#endif
