/* text/harmony.h: the prompts of GPT-OSS. A vLLM worker makes them by code and not by a template: OpenAI's harmony form, whose special
 * tokens never come from a client's text, and whose texts are encoded one by one, so that no token reaches over a seam.
 *
 * A body of /v1/chat/completions (or what text_convert makes of /v1/messages) or of /v1/responses becomes pieces, in the order of the
 * prompt: special tokens with their ids, and texts to be encoded each by itself, with tok_job.ordinary. As vLLM 0.32 does it with
 * oss-harmony 0.0.11; the prompt names the day. What is not known for sure is refused with a reason (a static word).
 *
 * Pure. Held against vLLM and the library by test/tokenizers/harmony_corpus.py (vllm_oracle.py) and a golden file. */
#ifndef TEXT_HARMONY_H
#define TEXT_HARMONY_H

#include "text/chat.h"

struct text_piece {
	size_t end;            /* in the text; it begins where the one before ends */
	uint32_t special;      /* the id of the special token that it names; 0: a text */
};
struct text_pieces {
	struct buf text;       /* the whole prompt, for people; its limit is the prompt's */
	size_t n, cap;
	struct text_piece *p;  /* VEC_PUSH of base/vec.h */
};
void text_pieces_init(struct text_pieces *x, size_t max_bytes);
void text_pieces_clear(struct text_pieces *x);
void text_pieces_done(struct text_pieces *x);

/* Does a worker make this model's chats so? By its config.json. */
bool text_harmony_is(struct str model_config);
/* Has it the tokens that the library writes, with the library's ids? */
bool text_harmony_fits(const struct tok *t);
/* How a body of /v1/messages becomes its chat. has_template: the model's folder has one, which the worker tries (and never uses). */
struct text_convert_opts text_harmony_convert_opts(bool has_template);

/* body: a chat's, or of responses as the client sent it (job->from_responses). Results as text_chat_render's. */
must_use enum err text_harmony_render(const struct text_chat_job *job, struct text_pieces *out, const char **ret_why);

#endif
