/* api/messages_priv.h: the prompt member itself, for facts.c only. */
#ifndef API_MESSAGES_PRIV_H
#define API_MESSAGES_PRIV_H

#include "api/facts.h"

/* Are there images, audio or the like in chat messages? Returns about how many bytes of JSON they take. */
size_t api_messages_media(const struct json_val *messages, bool *ret_media);
/* The prompt of /v1/completions, or the input of /v1/embeddings: sets form and ids. Returns NULL, or why it is refused. */
const char *api_prompt_read(const struct json_val *prompt, struct arena *a, struct api_facts *f);

#endif
