/* tokenize/check.h: our ids of request bodies or texts against a worker's own, line by line. */
#ifndef TOKENIZE_CHECK_H
#define TOKENIZE_CHECK_H

#include "text/local.h"

enum tokenize_input {
	TOKENIZE_TEXT,           /* a line is a text */
	TOKENIZE_QUOTED,         /* a text as a JSON string */
	TOKENIZE_BODY            /* a body, as JSON object or as JSON string */
};
struct tokenize_check {
	struct text_local_scratch *s;
	enum tokenize_input input;
	enum text_form form;     /* of a text: TEXT_COMPLETIONS */
	bool no_special;         /* of a text: without the ids around it */
	bool render_only;        /* the worker's /tokenize gives other ids than its engine gets (text_local_is_harmony) */
	const char *worker;      /* http://HOST:PORT[/PREFIX] */
	const char *api_key;     /* NULL: none */
};
/* Prints each difference on standard error and a summary as one JSON object on standard output; ends early when the worker wants
 * another key. Returns 0: compared, and no difference; 1: one, or no answer, or nothing to compare; 2: the URL is wrong. */
int tokenize_check(const struct tokenize_check *c, struct str text);

#endif
