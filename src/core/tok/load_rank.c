/* load_rank.c: tokenizer files of ranks: tiktoken.model and tekken.json. */
#include "tok/tok_priv.h"

enum err tok_load_tiktoken(struct tok *t, const struct tok_files *f, struct tok_why why)
{
	(void)t;
	(void)f;
	return tok_say(why, ERR_UNSUPPORTED, "tiktoken.model is not supported");
}

enum err tok_load_tekken(struct tok *t, const struct tok_files *f, struct tok_why why)
{
	(void)t;
	(void)f;
	return tok_say(why, ERR_UNSUPPORTED, "tekken.json is not supported");
}
