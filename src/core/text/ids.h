/* text/ids.h: the token ids of a request's prompt(s), immutable and counted. Owner: whoever holds a reference; one
 * thread (the hand's). */
#ifndef TEXT_IDS_H
#define TEXT_IDS_H

#include "base/str.h"

/* A multimodal item: the engine's content hash and the placeholder's place in the ids. */
struct text_mm { struct str hash; uint32_t offset_tok, len_tok; };

struct text_prompt {
	const uint32_t *ids; size_t n;
	const struct text_mm *mm; size_t n_mm;     /* ascending by offset */
	size_t rest_tok;                           /* not 0: ids are those of the prompt's beginning only, and about so many follow */
};
struct text_ids {
	uint32_t refs;
	size_t n;                                  /* prompts: 1, or several in one /v1/completions body */
	const struct text_prompt *prompts;
	size_t bytes;                              /* all memory of this object */
};

struct text_ids *text_ids_ref(struct text_ids *t);
void text_ids_unref(struct text_ids *t);       /* NULL is fine */
/* Is the beginning all that is known? */
bool text_ids_is_prefix(const struct text_ids *t);
/* Copies one or several lists; the result has one reference. rest_tok as above. */
struct text_span { const uint32_t *p; size_t n, rest_tok; };
struct text_ids *text_ids_from(const struct text_span *lists, size_t n);

#endif
