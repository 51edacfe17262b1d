/* golden.h: the tokenizers of test/tokenizers/golden and the library's answers to their texts. */
#ifndef TEST_TOK_GOLDEN_H
#define TEST_TOK_GOLDEN_H

#include "tok/tok.h"

/* In the order of the folder's names; NULL ends. */
extern const char *const GOLDEN[];

struct golden {
	struct tok *t;
	struct tok_scratch *s;
	size_t n;
	struct str *texts; /* owned */
	struct tok_ids *ids; /* with what the post-processor puts around them */
};
void golden_open(struct golden *g, const char *name);
/* With added tokens of every flag beside its own, none of which the texts were encoded with; false: not with this kind of file. */
bool golden_open_odd(struct golden *g, const char *name);
void golden_close(struct golden *g);

#endif
