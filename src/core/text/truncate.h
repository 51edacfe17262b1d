/* text/truncate.h: truncate_prompt_tokens and truncation_side as vLLM 0.32 reads them. Private to the room.
 *
 * A number keeps so many ids; -1 keeps what the model takes. Without a side the tokenizer itself cuts, at the front (of pooling
 * models at the end), and what it puts around a prompt stays; with one the whole list is cut. */
#ifndef TEXT_TRUNCATE_H
#define TEXT_TRUNCATE_H

#include "text/ask.h"
#include "tok/tok.h"
#include "wire/json.h"

struct text_truncate {
	size_t keep_tok;         /* 0: everything */
	bool last;               /* the last ones are kept, else the first */
	bool named_side;         /* by the body */
	size_t max_text_cp;      /* a longer text is cut by its worker before it is encoded; with a named side only */
};

/* Of a body that has the member; ret_t is set when OK. model_tok: the model's length, 0: not known. UNSUPPORTED: *ret_why says why; what the worker would refuse is among it. */
must_use enum err text_truncate_read(const struct json_val *body, enum text_form form, size_t model_tok, size_t longest_piece_cp,
	struct text_truncate *ret_t, const char **ret_why);
/* Of the longest piece of a vocabulary, as its file writes it: code points. */
size_t text_truncate_longest_cp(const struct tok *t);
/* May this text be encoded whole? around_tok: what stands around any prompt of this tokenizer. */
bool text_truncate_takes(const struct text_truncate *t, struct str text, size_t around_tok);
/* The list that begins at `from`; the ids around it (0: none) stay where no side is named. */
void text_truncate_cut(const struct text_truncate *t, struct tok_ids *ids, size_t from, struct tok_around around);

#endif
