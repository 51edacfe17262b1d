/* facts.c: one walk over the members of a request body, by a table.
 *
 * A member has a reader, or only stands in the table because it cannot change the prompt's token ids. Whatever is not in
 * the table goes into the digest: a member that is new in some worker makes two requests different, never equal.
 * Types are as lenient as a worker's own validation (it takes "true", 1 and "on" for a bool): a request that a worker
 * would serve must not fail here, and what only the worker can judge is left to it. */
#include "api/facts.h"

#include <string.h>

#include "api/messages_priv.h"

struct reader {
	const struct api_path *path;
	struct str body;
	struct arena *arena;
	struct api_facts f;
	struct api_fault fault;
	enum err e;
	bool echo, logprobs, has_max_completion;
	const struct json_val *prompt; /* `messages` or `prompt` */
	const struct json_val *input; /* of an embeddings body */
};

typedef void read_fn(struct reader *r, const struct json_val *v, struct json_span at);

static void refuse(struct reader *r, const char *message, const char *param)
{
	if (r->e != ERR_OK)
		return;
	r->e = ERR_BAD_REQUEST;
	r->fault = (struct api_fault){ message, param };
}

static bool any_word(struct str s, const char *const words[], size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (str_ieq(s, str_of(words[i])))
			return true;
	return false;
}

static bool lenient_bool(const struct json_val *v, bool *ret_b)
{
	static const char *const YES[] = { "true", "t", "yes", "y", "on", "1" }, *const NO[] = { "false", "f", "no", "n", "off", "0" };
	struct str s;
	int64_t n;
	if (json_bool(v, ret_b))
		return true;
	if (json_i64(v, &n) && (n == 0 || n == 1)) {
		*ret_b = n == 1;
		return true;
	}
	if (!json_str(v, &s))
		return false;
	*ret_b = any_word(s, YES, ARRAY_LEN(YES));
	return *ret_b || any_word(s, NO, ARRAY_LEN(NO));
}

/* Numbers may come as text. */
static bool lenient_u64(const struct json_val *v, uint64_t *ret_n)
{
	struct str s;
	return json_u64(v, ret_n) || (json_str(v, &s) && str_to_u64(str_trim(s), ret_n));
}

static void take_str(struct reader *r, const struct json_val *v, struct str *out)
{
	struct str s;
	if (json_str(v, &s))
		*out = arena_str(r->arena, s);
}

/* ---- readers */

static void read_model(struct reader *r, const struct json_val *v, struct json_span at)
{
	(void)at;
	if (!json_is(v, JSON_STRING))
		refuse(r, "`model` must be a string", "model");
	take_str(r, v, &r->f.model);
}

static void read_stream(struct reader *r, const struct json_val *v, struct json_span at)
{
	(void)at;
	if (!lenient_bool(v, &r->f.stream))
		refuse(r, "`stream` must be true or false", "stream");
}

static void read_stream_options(struct reader *r, const struct json_val *v, struct json_span at)
{
	(void)at;
	r->f.stream_options_object = json_is(v, JSON_OBJECT);
	if (!lenient_bool(json_get(v, STR("include_usage")), &r->f.usage_asked))
		r->f.usage_asked = false;
	if (!lenient_bool(json_get(v, STR("continuous_usage_stats")), &r->f.usage_each))
		r->f.usage_each = false;
}

static void read_max_tokens(struct reader *r, const struct json_val *v, struct json_span at)
{
	(void)at;
	uint64_t n;
	if (r->has_max_completion || !lenient_u64(v, &n))
		return;
	r->f.has_max_tok = true;
	r->f.max_tok = n;
}

static void read_max_completion(struct reader *r, const struct json_val *v, struct json_span at)
{
	r->has_max_completion = false;
	read_max_tokens(r, v, at);
	r->has_max_completion = true;
}

static void read_n(struct reader *r, const struct json_val *v, struct json_span at)
{
	(void)at;
	uint64_t n;
	if (lenient_u64(v, &n) && n)
		r->f.n = n;
}

static void read_echo(struct reader *r, const struct json_val *v, struct json_span at)
{
	(void)at;
	if (!lenient_bool(v, &r->echo))
		r->echo = false;
}

static void read_logprobs(struct reader *r, const struct json_val *v, struct json_span at)
{
	(void)at;
	r->logprobs = !json_is(v, JSON_BOOL) || json_true(v);
}

static void read_prompt_logprobs(struct reader *r, const struct json_val *v, struct json_span at)
{
	(void)v;
	(void)at;
	r->f.no_lookup = true;
}

static void read_truncate(struct reader *r, const struct json_val *v, struct json_span at)
{
	(void)v;
	(void)at;
	r->f.truncates = true;
}

static void read_template(struct reader *r, const struct json_val *v, struct json_span at)
{
	(void)v;
	(void)at;
	r->f.own_template = true;
}

/* /v1/responses: its word for the same. */
static void read_truncation(struct reader *r, const struct json_val *v, struct json_span at)
{
	struct str s;
	(void)at;
	if (r->path->route == API_ROUTE_RESPONSES)
		r->f.truncates = !json_str(v, &s) || !str_eq(s, STR("disabled"));
}

static void read_priority(struct reader *r, const struct json_val *v, struct json_span at)
{
	(void)at;
	r->f.has_priority = json_i64(v, &r->f.priority);
}

#define STRING_READER(fn, member)                                                                                                          \
	static void fn(struct reader *r, const struct json_val *v, struct json_span at)                                                    \
	{                                                                                                                                  \
		(void)at;                                                                                                                  \
		take_str(r, v, &r->f.member);                                                                                              \
	}
STRING_READER(read_user, user)
STRING_READER(read_cache_key, prompt_cache_key)
STRING_READER(read_cache_salt, cache_salt)
STRING_READER(read_session_id, session_id)
STRING_READER(read_previous_response, previous_response_id)

static void read_xargs(struct reader *r, const struct json_val *v, struct json_span at)
{
	(void)at;
	struct str mode;
	r->f.report_full = json_str(json_get(v, STR("kv_cache_report_mode")), &mode) && str_eq(mode, STR("full"));
	if (r->f.session_id.n == 0)
		take_str(r, json_get(v, STR("session_id")), &r->f.session_id);
}

static void read_tools(struct reader *r, const struct json_val *v, struct json_span at)
{
	(void)v;
	r->f.tools = json_span_str(r->body, at);
	r->f.prompt_text_bytes += at.n;
}

/* The text that a worker will see as prompt; of `messages`, the walk below takes media out again. */
static void take_prompt(struct reader *r, struct json_span at)
{
	r->f.prompt = json_span_str(r->body, at);
	r->f.prompt_head = str_sub(r->f.prompt, 0, 1024);
	r->f.prompt_text_bytes += at.n;
}

static void read_messages(struct reader *r, const struct json_val *v, struct json_span at)
{
	if (r->path->route == API_ROUTE_COMPLETIONS)
		return;
	take_prompt(r, at);
	r->prompt = v;
}

static void read_prompt(struct reader *r, const struct json_val *v, struct json_span at)
{
	if (r->path->route == API_ROUTE_CHAT || r->path->route == API_ROUTE_EMBEDDINGS)
		return;
	take_prompt(r, at);
	r->prompt = v;
}

static void read_input(struct reader *r, const struct json_val *v, struct json_span at)
{
	if (r->path->route == API_ROUTE_EMBEDDINGS)
		r->input = v;
	if (r->path->route == API_ROUTE_LOAD || r->path->route == API_ROUTE_RESPONSES || r->path->route == API_ROUTE_EMBEDDINGS)
		take_prompt(r, at);
}

static void read_embeds(struct reader *r, const struct json_val *v, struct json_span at)
{
	(void)v;
	(void)at;
	if (r->path->route == API_ROUTE_COMPLETIONS)
		r->f.form = API_PROMPT_EMBEDS;
}

/* ---- the table */

static const struct member {
	struct str name;
	read_fn *read;
	bool in_digest;
} MEMBERS[] = {
	{ STR_INIT("model"), read_model, true },
	{ STR_INIT("messages"), read_messages, true },
	{ STR_INIT("prompt"), read_prompt, true },
	{ STR_INIT("input"), read_input, true },
	{ STR_INIT("tools"), read_tools, true },
	{ STR_INIT("prompt_embeds"), read_embeds, true },
	{ STR_INIT("truncate_prompt_tokens"), read_truncate, true },
	{ STR_INIT("truncation"), read_truncation, true },
	{ STR_INIT("chat_template"), read_template, true },
	{ STR_INIT("stream"), read_stream, false },
	{ STR_INIT("stream_options"), read_stream_options, false },
	{ STR_INIT("max_tokens"), read_max_tokens, false },
	{ STR_INIT("max_output_tokens"), read_max_tokens, false },
	{ STR_INIT("max_completion_tokens"), read_max_completion, false },
	{ STR_INIT("n"), read_n, false },
	{ STR_INIT("echo"), read_echo, false },
	{ STR_INIT("logprobs"), read_logprobs, false },
	{ STR_INIT("prompt_logprobs"), read_prompt_logprobs, false },
	{ STR_INIT("priority"), read_priority, false },
	{ STR_INIT("user"), read_user, false },
	{ STR_INIT("prompt_cache_key"), read_cache_key, false },
	{ STR_INIT("cache_salt"), read_cache_salt, false },
	{ STR_INIT("session_id"), read_session_id, false },
	{ STR_INIT("previous_response_id"), read_previous_response, true },
	{ STR_INIT("vllm_xargs"), read_xargs, false },
	{ STR_INIT("temperature"), NULL, false },
	{ STR_INIT("top_p"), NULL, false },
	{ STR_INIT("top_k"), NULL, false },
	{ STR_INIT("min_p"), NULL, false },
	{ STR_INIT("seed"), NULL, false },
	{ STR_INIT("stop"), NULL, false },
	{ STR_INIT("stop_token_ids"), NULL, false },
	{ STR_INIT("frequency_penalty"), NULL, false },
	{ STR_INIT("presence_penalty"), NULL, false },
	{ STR_INIT("repetition_penalty"), NULL, false },
	{ STR_INIT("length_penalty"), NULL, false },
	{ STR_INIT("logit_bias"), NULL, false },
	{ STR_INIT("top_logprobs"), NULL, false },
	{ STR_INIT("min_tokens"), NULL, false },
	{ STR_INIT("ignore_eos"), NULL, false },
	{ STR_INIT("best_of"), NULL, false },
	{ STR_INIT("use_beam_search"), NULL, false },
	{ STR_INIT("bad_words"), NULL, false },
	{ STR_INIT("allowed_token_ids"), NULL, false },
	{ STR_INIT("logprob_token_ids"), NULL, false },
	{ STR_INIT("skip_special_tokens"), NULL, false },
	{ STR_INIT("spaces_between_special_tokens"), NULL, false },
	{ STR_INIT("include_stop_str_in_output"), NULL, false },
	{ STR_INIT("return_token_ids"), NULL, false },
	{ STR_INIT("return_tokens_as_token_ids"), NULL, false },
	{ STR_INIT("parallel_tool_calls"), NULL, false },
	{ STR_INIT("metadata"), NULL, false },
	{ STR_INIT("store"), NULL, false },
	{ STR_INIT("service_tier"), NULL, false },
	{ STR_INIT("safety_identifier"), NULL, false },
	{ STR_INIT("request_id"), NULL, false },
	{ STR_INIT("dimensions"), NULL, false },
	{ STR_INIT("encoding_format"), NULL, false },
};

static const struct member *member_of(struct str name)
{
	for (size_t i = 0; i < ARRAY_LEN(MEMBERS); i++)
		if (str_eq(MEMBERS[i].name, name))
			return &MEMBERS[i];
	return NULL;
}

static void add_to_digest(struct reader *r, struct str name, struct str value)
{
	struct hash128 v = hash_bytes128(value.p, value.n, 0);
	const uint64_t mix[] = { r->f.digest.lo, r->f.digest.hi, hash_str(name, 0), v.lo, v.hi, value.n };
	r->f.digest = hash_bytes128(mix, sizeof(mix), 0);
}

static void read_members(struct reader *r, const struct json_doc *d)
{
	size_t n, i = 0;
	const struct json_member *at = json_members(d, &n);
	r->f.digest = (struct hash128){ .lo = r->path->route, .hi = r->path->dialect };
	for (struct json_iter it = json_each(json_root(d)); json_next(&it); i++) {
		const struct member *m = member_of(it.key);
		if (str_eq(it.key, STR("stream_options")))
			r->f.at_stream_options = at[i];
		if (json_is(it.val, JSON_NULL))
			continue; /* as good as absent */
		if (m && m->read)
			m->read(r, it.val, at[i].val);
		if (!m || m->in_digest)
			add_to_digest(r, it.key, json_span_str(r->body, at[i].val));
	}
	r->f.insert_at = json_insert_at(d);
	r->f.empty_object = n == 0;
}

/* ---- what several members say together */

static void finish_chat(struct reader *r)
{
	if (!json_is(r->prompt, JSON_ARRAY)) {
		refuse(r, "`messages` must be a list of messages", "messages");
		return;
	}
	if (json_len(r->prompt) == 0)
		refuse(r, "`messages` must not be empty", "messages");
	r->f.form = API_PROMPT_MESSAGES;
	r->f.no_lookup |= r->echo; /* the worker turns echo into prompt_logprobs = top_logprobs, 0 by default */
}

static void finish_completions(struct reader *r)
{
	r->f.no_lookup |= r->echo && r->logprobs;
	if (r->f.form == API_PROMPT_EMBEDS)
		return;
	const char *why = api_prompt_read(r->prompt, r->arena, &r->f);
	if (why)
		refuse(r, why, "prompt");
}

/* What is no prompt of either kind, or both, is for the worker to judge. */
static void finish_embeddings(struct reader *r)
{
	r->f.stream = false; /* there are none here, whatever the body says */
	if (r->input && !r->prompt)
		(void)api_prompt_read(r->input, r->arena, &r->f);
	else if (!r->input && json_is(r->prompt, JSON_ARRAY))
		r->f.form = API_PROMPT_MESSAGES;
}

/* Two texts at least, in members of many names: what they are is for text/ and the worker to judge. */
static void finish_score(struct reader *r)
{
	r->f.stream = false;
	r->f.form = API_PROMPT_TEXTS;
}

/* A prompt that is cut to the model's length keeps one id less when something is to be generated. */
static void finish_truncation(struct reader *r)
{
	uint64_t new_tok = r->f.has_max_tok ? 1 + (r->f.max_tok > 0) : 0;
	const uint64_t mix[] = { r->f.digest.lo, r->f.digest.hi, new_tok };
	if (r->f.truncates)
		r->f.digest = hash_bytes128(mix, sizeof(mix), 0);
}

static void finish(struct reader *r)
{
	finish_truncation(r);
	if (r->path->route == API_ROUTE_EMBEDDINGS)
		finish_embeddings(r);
	if (r->path->route == API_ROUTE_SCORE)
		finish_score(r);
	if (r->path->route == API_ROUTE_CHAT)
		finish_chat(r);
	if (r->path->route == API_ROUTE_COMPLETIONS)
		finish_completions(r);
	if (r->path->route != API_ROUTE_COMPLETIONS) {
		size_t media_bytes = api_messages_media(r->prompt, &r->f.has_media);
		r->f.prompt_text_bytes -= MIN(media_bytes, r->f.prompt_text_bytes);
	}
	if (r->f.prompt.n == 0) {
		r->f.prompt_head = str_sub(r->body, 0, 1024);
		r->f.prompt_text_bytes = r->body.n;
	}
}

static enum err parse_fault(enum err e, bool too_long, struct api_fault *ret_fault)
{
	static const char *const TEXT[ERR_COUNT_] = {
		[ERR_SYNTAX] = "the body is not valid JSON",
		[ERR_DUPLICATE] = "a member of the body appears twice",
		[ERR_BAD_REQUEST] = "the body is nested too deeply (more than 128 levels), or has too many values (more than 65536 objects and lists, 262144 "
				    "members, 1024 of them its own, or 4194304 values)",
		[ERR_LIMIT] = "the body is too large",
	};
	_Static_assert(JSON_MAX_DEPTH == 128 && JSON_BODY_MAX_OPENS == 65536 && JSON_BODY_MAX_KEYS == 262144 && JSON_MAX_MEMBERS == 1024 &&
			       JSON_MAX_VALUES == 4194304,
		"the message says so");
	if (e == ERR_LIMIT && !too_long)
		e = ERR_BAD_REQUEST;
	*ret_fault = (struct api_fault){ TEXT[e] ? TEXT[e] : err_text(e), NULL };
	return e;
}

enum err api_facts_read(const struct api_path *path, struct str body, const struct json_body_opts *o, struct arena *a, struct api_facts *ret_facts,
	struct api_fault *ret_fault)
{
	struct reader r = { .path = path, .body = body, .arena = a, .f = { .n = 1 } };
	struct json_doc *d;
	if (path->body != API_BODY_JSON) {
		*ret_facts = r.f;
		return ERR_OK;
	}
	enum err e = json_parse_body(body, o, &d);
	if (e != ERR_OK)
		return parse_fault(e, body.n > o->max_bytes, ret_fault);
	if (json_is(json_root(d), JSON_OBJECT)) {
		read_members(&r, d);
		if (r.e == ERR_OK)
			finish(&r);
	} else {
		refuse(&r, "the body must be a JSON object", NULL);
	}
	json_free(d);
	if (r.e == ERR_OK)
		*ret_facts = r.f;
	else
		*ret_fault = r.fault;
	return r.e;
}
