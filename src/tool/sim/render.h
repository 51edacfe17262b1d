/* sim/render.h: from a request's JSON to prompts of token ids. The chat template is our own (ChatML with tools and
 * settings); what counts is that equal prompts give equal ids on every way in: chat completions, their render, and
 * /tokenize with the members that change the prompt, however the JSON was spaced. Pure. */
#ifndef SIM_RENDER_H
#define SIM_RENDER_H

#include "base/arena.h"
#include "sim/cache.h"
#include "sim/token.h"
#include "wire/json.h"

struct sim_prompt {
	sim_ids tok;
	VEC(struct sim_mm) mm; /* hashes live in the arena given */
	struct str text; /* completions with a text prompt: the text */
};
void sim_prompt_done(struct sim_prompt *p);

/* `messages` with tools, chat_template, chat_template_kwargs, documents, reasoning_effort, add_generation_prompt,
 * continue_final_message. LIMIT: the text is over 64 MiB. */
must_use enum err sim_render_chat(struct sim_vocab *v, const struct json_val *body, struct arena *a, struct sim_prompt *out);
/* Plain text. */
void sim_render_text(struct sim_vocab *v, struct str text, struct sim_prompt *out);
/* /v1/responses and /v1/messages (their `system` or `instructions` first). */
must_use enum err sim_render_responses(struct sim_vocab *v, const struct json_val *body, struct arena *a, struct sim_prompt *out);
must_use enum err sim_render_messages(struct sim_vocab *v, const struct json_val *body, struct arena *a, struct sim_prompt *out);

#endif
