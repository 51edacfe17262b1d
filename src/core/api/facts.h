/* api/facts.h: what one parse of a request body tells. The body itself is never changed; see api/patch.h.
 *
 * All slices live in the arena or in the body; the JSON tree is gone when api_facts_read returns. Pure. */
#ifndef API_FACTS_H
#define API_FACTS_H

#include "api/path.h"
#include "base/arena.h"
#include "base/hash.h"
#include "wire/json.h"

enum api_prompt_form {
	API_PROMPT_NONE,         /* not a kv-routed path, or no prompt member */
	API_PROMPT_MESSAGES,     /* chat */
	API_PROMPT_TEXT,         /* one string (or a list of one string) */
	API_PROMPT_TEXTS,        /* a list of several strings, or a mixture that only the worker can judge */
	API_PROMPT_IDS,          /* token ids, one or several lists */
	API_PROMPT_EMBEDS        /* prompt_embeds: not keyed */
};
struct api_ids { const uint32_t *p; size_t n; };

struct api_facts {
	struct str model;                   /* empty: no such member */
	bool stream;
	bool usage_asked;                   /* stream_options.include_usage is true */
	bool usage_each;                    /* stream_options.continuous_usage_stats is true */
	bool has_max_tok; uint64_t max_tok; /* the value a worker honours: max_completion_tokens before max_tokens (and max_output_tokens) */
	uint64_t n;                         /* 1 when absent */
	bool no_lookup;                     /* prompt_logprobs, or echo with logprobs: the engine reports a hit of 0 */
	bool report_full;                   /* vllm_xargs.kv_cache_report_mode is "full" */
	bool has_media;                     /* images, audio, video, embeds in messages */
	bool truncates;                     /* truncate_prompt_tokens is set, or truncation of a responses body is not "disabled" */
	bool own_template;                  /* chat_template is set: a program of the client's that makes the prompt */
	bool has_priority; int64_t priority;
	struct str user, prompt_cache_key, cache_salt, session_id, previous_response_id;   /* empty: absent */

	enum api_prompt_form form;
	struct str prompt;                  /* value of `messages` or `prompt` as written, in the body */
	struct str prompt_head;             /* its first 1 KiB: key of consistent hashing */
	struct str tools;                   /* value as written, or empty */
	size_t prompt_text_bytes;           /* text in it, without media: for an estimate of tokens */
	const struct api_ids *ids; size_t n_ids;   /* API_PROMPT_IDS */

	struct hash128 digest;              /* over model, route and every member that may change the prompt's token ids */
	struct json_member at_stream_options;      /* val.n == 0: absent */
	bool stream_options_object;                /* it is an object */
	size_t insert_at;                          /* see json_insert_at */
	bool empty_object;
};

/* Why a body was refused; static texts. */
struct api_fault {
	const char *message;
	const char *param;                  /* the member, or NULL */
};

/* body: the whole request body, read as o says. SYNTAX, DUPLICATE, LIMIT, BAD_REQUEST (wrong types, no messages ...): answer 400 (LIMIT, longer than o->max_bytes: 413)
 * and send nothing upstream. A path without a JSON body gives empty facts. Unknown members are no fault. */
must_use enum err api_facts_read(const struct api_path *path, struct str body, const struct json_body_opts *o, struct arena *a,
				 struct api_facts *ret_facts, struct api_fault *ret_fault);

/* The `model` field of a multipart form (audio); empty when absent. content_type: the header's value. Slice of body. */
struct str api_form_model(struct str content_type, struct str body);

#endif
