/* base/err.h: one enum of everything that can fail, from the table err.def.
 *
 * Functions that can fail return `enum err` and are marked must_use; ERR_OK is 0. Outputs (last, `ret_`) are
 * untouched on failure. Bugs do not use this: they use must(). Out of memory aborts. */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include "base/base.h"

enum err {
#define X(name, http, retry, text, label) ERR_##name,
#include "base/err.def"
#undef X
	ERR_COUNT_
};

const char *err_text(enum err e);    /* a sentence part for people */
const char *err_label(enum err e);   /* the metric label and machine-readable reason */
int err_http(enum err e);            /* the HTTP status a client sees; 0 = never reaches a client */
bool err_retryable(enum err e);      /* may another worker be tried, as far as the error alone tells? */

#define TRY(x)                                \
	do {                                  \
		enum err try_err_ = (x);      \
		if (try_err_ != ERR_OK)       \
			return try_err_;      \
	} while (0)

#endif
