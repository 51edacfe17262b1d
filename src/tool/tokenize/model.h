/* tokenize/model.h: a tokenizer and its chat templates from a folder on disk: the model's own, or one of a hub's cache (with refs/
 * and snapshots/). */
#ifndef TOKENIZE_MODEL_H
#define TOKENIZE_MODEL_H

#include "text/local.h"

/* why: as text_local_load. One reference. */
must_use enum err tokenize_load(const char *folder, enum tok_unicode unicode, char *why, size_t why_cap, struct text_local **ret_l);
/* The whole of a file ("-": standard input), at most max bytes; free((void *)ret->p). NOT_FOUND, LIMIT, IO. */
must_use enum err tokenize_read_file(const char *path, size_t max, struct str *ret_text);

#endif
