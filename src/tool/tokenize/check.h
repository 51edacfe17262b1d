/* tokenize/check.h: our ids of request bodies against a worker's own, body by body. */
#ifndef TOKENIZE_CHECK_H
#define TOKENIZE_CHECK_H

#include "text/local.h"

struct tokenize_check {
	struct text_local_scratch *s;
	enum text_form form;
	bool render_only;        /* the worker's /tokenize gives other ids than its engine gets (text_local_is_harmony) */
	const char *worker;      /* http://HOST:PORT[/PREFIX] */
	const char *api_key;     /* NULL: none */
};
/* text: a body a line, as JSON object or as JSON string. Prints each difference on standard error and a summary as one JSON object
 * on standard output. Returns 0: no difference; 1: one, or no answer; 2: the URL is wrong. */
int tokenize_check(const struct tokenize_check *c, struct str text);

#endif
