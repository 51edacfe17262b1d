/* text/convert.h: the body of /v1/responses, /v1/messages or (as a chat) /v1/embeddings -> the body of the chat request that a vLLM 0.32 worker makes of it.
 *
 * The worker's own conversion, item by item. What was not seen to be the same on a real worker is refused with a reason (a static
 * word): media, references to earlier responses, odd forms. Members without influence on the prompt are left out.
 * Pure. Checked against a worker's /v1/responses/render and /v1/messages/render by
 * `kvasir tokenize --check`, and on the bodies of test/tokenizers/convert_corpus.py against vLLM itself (vllm_oracle.py). */
#ifndef TEXT_CONVERT_H
#define TEXT_CONVERT_H

#include "text/ask.h"
#include "wire/json.h"

/* Where a system message between others goes; it depends on the model's template. */
enum text_inline_system { TEXT_INLINE_UNKNOWN, TEXT_INLINE_STAYS, TEXT_INLINE_MERGED };

struct text_convert_opts {
	enum text_inline_system inline_system;
	struct str disabled_effort;   /* what `thinking: disabled` means to the template: "none" or "low"; empty: not known */
};

/* form: RESPONSES, MESSAGES (count_tokens bodies as well) or EMBEDDINGS. Appends the chat body to out. UNSUPPORTED: *ret_why says why; LIMIT. */
must_use enum err text_convert(enum text_form form, const struct json_val *body, const struct text_convert_opts *o, struct buf *out, const char **ret_why);

/* Does it begin with the line that changes with each request and that workers take away? */
bool text_is_billing(struct str text);

#endif
