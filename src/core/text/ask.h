/* text/ask.h: asks a worker for the token ids of a prompt: the request bodies and what their answers mean.
 *
 * Two ways. /render (/v1/chat/completions/render and the like, one for each form but embeddings and scores) takes the client's body
 * itself and knows everything, images included. /tokenize takes a subset: every member that changes the prompt goes
 * along; what it cannot express (images, several prompts, truncation, other APIs than chat, completions and embeddings, scores, which are several prompts) gives UNSUPPORTED:
 * route without ids.
 * Shapes checked against real workers 0.12 to 0.32. Pure. */
#ifndef TEXT_ASK_H
#define TEXT_ASK_H

#include "base/buf.h"
#include "text/ids.h"

enum text_form { TEXT_CHAT, TEXT_COMPLETIONS, TEXT_RESPONSES, TEXT_MESSAGES, TEXT_EMBEDDINGS, TEXT_SCORE };
enum text_call { TEXT_RENDER, TEXT_TOKENIZE };

/* Has the API a render call? Those of pooling models have none. */
static inline bool text_has_render(enum text_form form) { return form != TEXT_EMBEDDINGS && form != TEXT_SCORE; }
struct str text_call_path(enum text_form form, enum text_call call);
/* body: the client's, already checked as JSON (api_facts_read). LIMIT: b is full. UNSUPPORTED: see above. */
must_use enum err text_put_ask(struct buf *b, enum text_form form, enum text_call call, struct str body);
/* The answer's body (status 200) -> ids with one reference. UPSTREAM_PROTOCOL: not a known shape. LIMIT: more than max_tok ids. */
must_use enum err text_read_answer(enum text_form form, enum text_call call, struct str answer, size_t max_tok, struct text_ids **ret_ids);

#endif
