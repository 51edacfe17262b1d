/* text/chat.h: a chat request's body -> the text that a vLLM worker gives to its tokenizer.
 *
 * The worker does not hand messages to the template as they came: its request classes order and drop members, it flattens
 * content parts or keeps them (by the shape of the template's loops), parses the arguments of tool calls, copies reasoning
 * under two names, turns the developer's role into the system's, fills in kwargs. All of that is done here, member by member,
 * as vLLM 0.32 does it. What is not known for sure is refused with a reason; the caller asks a worker then.
 *
 * A `struct text_chat` holds a model's templates; immutable, for any number of threads.
 * Pure. Source: vLLM 0.32's behaviour, checked against it by test/tokenizers/vllm_oracle.py; the shared facts tokenizers.md 3.2. */
#ifndef TEXT_CHAT_H
#define TEXT_CHAT_H

#include "base/arena.h"
#include "base/buf.h"
#include "jinja/jinja.h"
#include "text/convert.h"
#include "tok/tok.h"
#include "wire/json.h"

struct text_chat;

/* Is this a version whose message handling is known member by member? */
bool text_chat_knows(struct str engine_version);

struct text_chat_files {
	struct str config;               /* tokenizer_config.json: its chat_template, its special tokens */
	struct str template_file;        /* chat_template.jinja: wins over the config's */
	struct str processor_template;   /* chat_template.json: an image model's own, for requests without tools */
	struct str model;                /* config.json: names the models whose chats do not go through a template */
	bool other_tokenizer;            /* a tokenizer whose chats do not either (tekken) */
	bool more_templates;             /* there is a folder additional_chat_templates: refused */
	/* The worker is known to be a vLLM whose message handling is the one above (0.32). Otherwise what is known to differ
	 * between versions (reasoning, the developer's role, extra members of tools, a disputed content format) is refused. */
	bool known_version;
};

/* The texts are borrowed during the call only; t (its special tokens) likewise. UNSUPPORTED: no template, or one that we cannot
 * compile; `why` (NUL-terminated) says it. */
must_use enum err text_chat_load(const struct text_chat_files *f, const struct tok *t, char *why, size_t why_cap, struct text_chat **ret_c);
void text_chat_free(struct text_chat *c);        /* NULL is fine */
bool text_chat_uses_clock(const struct text_chat *c);
/* How other APIs' bodies become chats with these templates. False: only for workers whose version is known. */
bool text_chat_convert_opts(const struct text_chat *c, struct text_convert_opts *ret_o);

/* What a body with images, audio or video is made into: its prompt ends before the first of them, for how many tokens each becomes
 * only its worker knows. */
struct text_chat_rest {
	uint32_t n_media;                /* 0: the prompt is whole */
	size_t bytes;                    /* about so much text is not in the prompt */
};

/* Does the body bring a template? That is a program of the client's, to be run where it may take a second and 64 MB at most. */
bool text_chat_has_own(const struct json_val *body);

struct text_chat_job {
	const struct json_val *body;     /* the request */
	bool from_responses;             /* made by text_convert of a responses body: that way is a little different */
	int64_t now_s;                   /* Unix time: a template may print the day, taken as UTC's */
	struct arena *arena;             /* for temporaries; its max_bytes bounds them */
	struct text_chat_rest *rest;     /* NULL: bodies with media are refused */
};
/* Appends the prompt to out; its limit is the prompt's.
 * UNSUPPORTED: not known for sure; BAD_REQUEST: the worker will refuse the request as well, or its template raises; LIMIT.
 * In each case *ret_why is a static word that names the reason. *ret_special: the body asks for BOS and EOS around the prompt. */
must_use enum err text_chat_render(const struct text_chat *c, const struct text_chat_job *job, struct buf *out, bool *ret_special, const char **ret_why);

#endif
