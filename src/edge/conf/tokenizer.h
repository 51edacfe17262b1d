/* conf/tokenizer.h: where operators say that a tokenizer is, in YAML or as --tokenizer, and whether it can be there. */
#ifndef CONF_TOKENIZER_H
#define CONF_TOKENIZER_H

#include "conf/conf.h"

/* The text of option tokens.tokenizer: worker, a folder (/..., ./..., ../...) or ORG/NAME[@REVISION]; "" names none. Borrows it. */
struct conf_tokenizer conf_tokenizer_of(struct str text);
/* NULL when good: a folder is there with a tokenizer in it; a repository and its revision have the form of such names. Looks at the
 * disk, asks no hub. */
const char *conf_tokenizer_fault(const struct conf_tokenizer *t, struct arena *a);

#endif
