/* text/ids_priv.h: how ids are built; for answer.c only. */
#ifndef TEXT_IDS_PRIV_H
#define TEXT_IDS_PRIV_H

#include "base/arena.h"
#include "text/ids.h"

struct text_ids_made {
	struct text_ids pub;
	struct arena mem;
	struct text_prompt *prompts;      /* to be filled; the same as pub.prompts */
};
struct text_ids_made *text_ids_make(size_t n_prompts);
struct text_ids *text_ids_made(struct text_ids_made *m);      /* done: counts the bytes; one reference */

#endif
