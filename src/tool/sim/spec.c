#include "sim/spec.h"

#include <stdio.h>

#define BAD "BadRequestError"
#define INVALID "Bad Request"

void sim_fail_set(struct sim_fail *f, int status, const char *type, const char *param, const char *fmt, ...)
{
	va_list ap;
	f->status = status;
	f->type = type;
	snprintf(f->param, sizeof(f->param), "%s", param);
	va_start(ap, fmt);
	vsnprintf(f->message, sizeof(f->message), fmt, ap);
	va_end(ap);
}

void sim_fail_bad_json(struct sim_fail *f, size_t body_bytes)
{
	char loc[48];
	snprintf(loc, sizeof(loc), "body.%zu", body_bytes ? body_bytes - 1 : 0);
	sim_fail_set(f, 400, INVALID, loc,
		"1 validation error:\n  {'type': 'json_invalid', 'loc': '%s', 'msg': 'JSON decode error', 'input': '<dict of 0 items>', "
		"'ctx': {'error': 'Expecting value'}}",
		loc);
}

enum err sim_fail_write(const struct sim_fail *f, struct buf *out)
{
	struct json_writer w = json_writer(out);
	json_put_open(&w, '{');
	json_put_key(&w, STR("error"));
	json_put_open(&w, '{');
	json_put_key(&w, STR("message"));
	json_put_str(&w, str_of(f->message));
	json_put_key(&w, STR("type"));
	json_put_str(&w, str_of(f->type));
	json_put_key(&w, STR("param"));
	if (f->param[0])
		json_put_str(&w, str_of(f->param));
	else
		json_put_null(&w);
	json_put_key(&w, STR("code"));
	json_put_i64(&w, f->status);
	json_put_close(&w, '}');
	json_put_close(&w, '}');
	return json_writer_done(&w);
}

static bool invalid(struct sim_fail *f, const char *member, const char *type, const char *msg)
{
	char loc[48];
	snprintf(loc, sizeof(loc), "body.%s", member);
	sim_fail_set(f, 400, INVALID, loc, "1 validation error:\n  {'type': '%s', 'loc': '%s', 'msg': '%s', 'input': '<a value>'}", type,
		loc, msg);
	return false;
}

static bool missing(struct sim_fail *f, const char *member) { return invalid(f, member, "missing", "Field required"); }

/* ---- members -------------------------------------------------------------------------------------------------- */

static bool read_bool(const struct json_val *body, const char *name, bool *out, struct sim_fail *f)
{
	const struct json_val *v = json_get(body, str_of(name));
	return json_absent(v) || json_bool(v, out) ||
	       invalid(f, name, "bool_parsing", "Input should be a valid boolean, unable to interpret input");
}

static bool read_str(const struct json_val *body, const char *name, struct str *out, struct sim_fail *f)
{
	const struct json_val *v = json_get(body, str_of(name));
	return json_absent(v) || json_str(v, out) || invalid(f, name, "string_type", "Input should be a valid string");
}

/* false: mistyped; *found tells whether it is there. */
static bool read_count(const struct json_val *body, const char *name, int64_t *out, bool *found, struct sim_fail *f)
{
	const struct json_val *v = json_get(body, str_of(name));
	*found = !json_absent(v);
	return !*found || json_i64(v, out) ||
	       invalid(f, name, "int_parsing", "Input should be a valid integer, unable to parse string as an integer");
}

static const struct sim_lora *find_lora(const struct sim_serving *s, struct str name)
{
	for (size_t i = 0; i < s->loras.n; i++)
		if (str_eq(name, str_of(s->loras.p[i].name)))
			return &s->loras.p[i];
	return NULL;
}

bool sim_spec_model(
	const struct sim_serving *s, const struct json_val *body, struct str *ret_model, struct sim_identity *ret_lora, struct sim_fail *f)
{
	struct str name = { 0 };
	if (!read_str(body, "model", &name, f))
		return false;
	if (!name.n || str_eq(name, s->model)) {
		*ret_model = s->model;
		return true;
	}
	const struct sim_lora *l = find_lora(s, name);
	if (!l) {
		sim_fail_set(f, 404, "NotFoundError", "model", "The model `%.*s` does not exist. Valid aliases: %.*s.",
			(int)MIN(name.n, 100u), name.p, STR_ARG(s->model));
		return false;
	}
	*ret_model = str_of(l->name);
	ret_lora->lora = str_of(l->name);
	ret_lora->lora_path = str_of(l->path);
	ret_lora->lora_id = l->id;
	return true;
}

bool sim_spec_messages(const struct json_val *body, struct sim_fail *f)
{
	const struct json_val *m = json_get(body, STR("messages"));
	if (!m)
		return missing(f, "messages");
	if (!json_is(m, JSON_ARRAY))
		return invalid(f, "messages", "list_type", "Input should be a valid list");
	if (!json_len(m)) {
		sim_fail_set(f, 400, BAD, "", "Cannot apply chat template to an empty conversation. Provide at least one message.");
		return false;
	}
	for (struct json_iter it = json_each(m); json_next(&it);)
		if (!json_is(it.val, JSON_OBJECT))
			return invalid(f, "messages.0", "dict_type", "Input should be a valid dictionary");
	if (json_true(json_get(body, STR("continue_final_message"))) && json_true(json_get(body, STR("add_generation_prompt"))))
		return invalid(f, "messages", "value_error", "Cannot set both continue_final_message and add_generation_prompt to True.");
	return true;
}

/* ---- lengths -------------------------------------------------------------------------------------------------- */

static bool check_new_tok(const struct sim_serving *s, const char *name, int64_t v, struct sim_fail *f)
{
	if (v < 1)
		sim_fail_set(f, 400, BAD, name, "%s must be at least 1, got %lld. (parameter=%s, value=%lld)", name, (long long)v, name,
			(long long)v);
	else if (v > s->max_model_tok)
		sim_fail_set(f, 400, BAD, name,
			"%s=%lld cannot be greater than max_model_len=%u. Please request fewer output tokens. (parameter=%s, value=%lld)",
			name, (long long)v, s->max_model_tok, name, (long long)v);
	else
		return true;
	return false;
}

static bool read_max_new(const struct sim_serving *s, const struct json_val *body, struct sim_spec_call *c, struct sim_fail *f)
{
	static const char *const names[] = { "max_tokens", "max_completion_tokens", "max_output_tokens" };
	bool found;
	int64_t v;
	if (sim_api_pools(c->api)) {
		c->max_new = 1; /* an embedding takes the step that a first token would */
		return true;
	}
	if (!read_bool(body, "ignore_eos", &c->ignore_eos, f))
		return false;
	c->max_new = c->api == SIM_COMPLETION ? 16 : c->ignore_eos ? s->max_model_tok : s->default_new_tok;
	const struct json_val *from = c->api == SIM_GENERATE ? json_get(body, STR("sampling_params")) : body;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (!read_count(from, names[i], &v, &found, f) || (found && !check_new_tok(s, names[i], v, f)))
			return false;
		if (found)
			c->max_new = (uint32_t)v;
		c->max_given |= found;
	}
	c->natural_end = !c->max_given && !c->ignore_eos && c->api != SIM_COMPLETION;
	if (c->api == SIM_MESSAGES && !c->max_given)
		return missing(f, "max_tokens");
	return true;
}

static bool check_length(const struct sim_serving *s, const struct sim_spec_call *c, struct sim_fail *f)
{
	for (size_t i = 0; i < c->prompts.n; i++) {
		size_t n = c->prompts.p[i].tok.n;
		if (n >= s->max_model_tok) {
			size_t said = MIN(n, s->max_model_tok + 1u);
			sim_fail_set(f, 400, BAD, "input_tokens",
				"This model's maximum context length is %u tokens. However, your prompt contains at least %zu input "
				"tokens, which exceeds this limit "
				"even without any output tokens. Please reduce the length of the input prompt. (parameter=input_tokens, "
				"value=%zu)",
				s->max_model_tok, said, said);
			return false;
		}
	}
	return true;
}

/* ---- prompts -------------------------------------------------------------------------------------------------- */

static bool read_ids(const struct json_val *list, struct sim_prompt *p, struct sim_fail *f)
{
	for (struct json_iter it = json_each(list); json_next(&it);) {
		uint64_t id;
		if (!json_u64(it.val, &id))
			return invalid(f, "prompt.0", "greater_than_equal", "Input should be greater than or equal to 0");
		if (id >= SIM_VOCAB) {
			sim_fail_set(f, 400, BAD, "", "Token id %llu is out of vocabulary", (unsigned long long)id);
			return false;
		}
		VEC_PUSH(&p->tok, (uint32_t)id);
	}
	return true;
}

static bool add_prompt(const struct sim_serving *s, const struct json_val *v, struct sim_spec_call *c, struct sim_fail *f)
{
	struct sim_prompt p = { 0 };
	struct str text;
	bool ok = true;
	if (json_str(v, &text) && text.n)
		sim_render_text(s->vocab, text, &p);
	else if (json_is(v, JSON_ARRAY) && json_len(v))
		ok = read_ids(v, &p, f);
	else {
		sim_fail_set(f, 400, BAD, "prompt", "Either prompt or prompt_embeds must be provided and non-empty. (parameter=prompt)");
		ok = false;
	}
	VEC_PUSH(&c->prompts, p);
	return ok;
}

/* A string, a list of ids, or a list of either. */
static bool read_prompts(const struct sim_serving *s, const struct json_val *v, struct sim_spec_call *c, struct sim_fail *f)
{
	struct json_iter first = json_each(v);
	if (json_is(v, JSON_STRING))
		return add_prompt(s, v, c, f);
	if (!json_is(v, JSON_ARRAY)) {
		sim_fail_set(f, 400, BAD, "prompt", "Either prompt or prompt_embeds must be provided and non-empty. (parameter=prompt)");
		return false;
	}
	if (!json_next(&first)) {
		sim_fail_set(f, 400, BAD, "", "You must pass at least one prompt");
		return false;
	}
	if (json_is(first.val, JSON_NUMBER))
		return add_prompt(s, v, c, f);
	for (struct json_iter it = json_each(v); json_next(&it);)
		if (!add_prompt(s, it.val, c, f))
			return false;
	return true;
}

typedef enum err render_fn(struct sim_vocab *v, const struct json_val *body, struct arena *a, struct sim_prompt *out);

static bool rendered(const struct sim_serving *s, render_fn *fn, const struct json_val *body, struct sim_spec_call *c, struct sim_fail *f)
{
	struct sim_prompt p = { 0 };
	enum err e = fn(s->vocab, body, &c->mem, &p);
	VEC_PUSH(&c->prompts, p);
	if (e != ERR_OK)
		sim_fail_set(f, 400, BAD, "", "The prompt is too long to be rendered");
	return e == ERR_OK;
}

/* As a model that embeds has it: each text is a prompt of its own. */
static bool read_sides(const struct sim_serving *s, const struct json_val *body, struct sim_spec_call *c, struct sim_fail *f)
{
	bool old = !json_absent(json_get(body, STR("text_1")));
	const char *first = c->api == SIM_RERANK ? "query" : old ? "text_1" : "queries", *second = c->api == SIM_SCORE && old ? "text_2" : "documents";
	const struct json_val *queries = json_get(body, str_of(first)), *documents = json_get(body, str_of(second));
	if (json_absent(queries) || json_absent(documents))
		return missing(f, json_absent(queries) ? first : second);
	if (!read_prompts(s, queries, c, f))
		return false;
	c->n_queries = c->prompts.n;
	if (!read_prompts(s, documents, c, f))
		return false;
	if (c->n_queries == 1 || c->prompts.n == 2 * c->n_queries)
		return true;
	sim_fail_set(f, 400, BAD, "", "Input lengths must be either 1:1, 1:N or N:N");
	return false;
}

static bool read_input(const struct sim_serving *s, const struct json_val *body, struct sim_spec_call *c, struct sim_fail *f)
{
	switch (c->api) {
	case SIM_CHAT: return sim_spec_messages(body, f) && rendered(s, sim_render_chat, body, c, f);
	case SIM_COMPLETION: return read_prompts(s, json_get(body, STR("prompt")), c, f);
	case SIM_RESPONSES: return json_get(body, STR("input")) ? rendered(s, sim_render_responses, body, c, f) : missing(f, "input");
	case SIM_MESSAGES: return sim_spec_messages(body, f) && rendered(s, sim_render_messages, body, c, f);
	case SIM_EMBEDDING: return read_prompts(s, json_get(body, STR("input")), c, f);
	case SIM_SCORE:
	case SIM_RERANK: return read_sides(s, body, c, f);
	case SIM_GENERATE:
		return json_len(json_get(body, STR("token_ids"))) ? read_prompts(s, json_get(body, STR("token_ids")), c, f)
								  : missing(f, "token_ids");
	}
	return false;
}

/* ---- the whole ------------------------------------------------------------------------------------------------ */

static bool read_stream(const struct json_val *body, struct sim_spec_call *c, struct sim_fail *f)
{
	const struct json_val *o = json_get(body, STR("stream_options"));
	if (sim_api_pools(c->api))
		return true;
	if (!read_bool(body, "stream", &c->stream, f))
		return false;
	if (!json_absent(o) && !c->stream) {
		sim_fail_set(f, 400, INVALID, "body",
			"1 validation error:\n  {'type': 'value_error', 'loc': 'body', 'msg': 'Value error, Stream options can only be "
			"defined when `stream=True`.', 'input': '<dict>'}");
		return false;
	}
	c->include_usage = json_true(json_get(o, STR("include_usage")));
	c->continuous_usage = c->include_usage && json_true(json_get(o, STR("continuous_usage_stats")));
	return true;
}

static bool read_n(const struct json_val *body, struct sim_spec_call *c, struct sim_fail *f)
{
	int64_t n = 1;
	bool found;
	double temperature = 1;
	if (!read_count(body, "n", &n, &found, f))
		return false;
	(void)json_f64(json_get(body, STR("temperature")), &temperature);
	if (temperature < 0)
		sim_fail_set(f, 400, BAD, "temperature", "temperature must be non-negative, got %.1f. (parameter=temperature, value=%.1f)",
			temperature, temperature);
	else if (n < 1)
		sim_fail_set(f, 400, BAD, "", "n must be at least 1, got %lld.", (long long)n);
	else if (n > 1 && temperature == 0)
		sim_fail_set(f, 400, BAD, "", "n must be 1 when using greedy sampling, got %lld.", (long long)n);
	else if (n > 128)
		sim_fail_set(f, 400, BAD, "n", "n must be at most 128, got %lld.", (long long)n);
	else {
		c->n = (uint32_t)n;
		return true;
	}
	return false;
}

static bool read_salt(const struct json_val *body, struct sim_spec_call *c, struct sim_fail *f)
{
	const struct json_val *v = json_get(body, STR("cache_salt"));
	if (json_absent(v) || (json_str(v, &c->salt) && c->salt.n))
		return true;
	return invalid(f, "cache_salt", "value_error", "Value error, Parameter cache_salt must be a non-empty string if provided.");
}

/* Without the four members that say where the blocks are the prompt is computed here, as vLLM does then. */
static void read_transfer(const struct json_val *body, struct sim_spec_call *c)
{
	const struct json_val *p = json_get(body, STR("kv_transfer_params"));
	uint64_t port;
	struct str s;
	c->remote_decode = json_true(json_get(p, STR("do_remote_decode")));
	c->remote_prefill = json_true(json_get(p, STR("do_remote_prefill"))) && json_str(json_get(p, STR("remote_engine_id")), &s) &&
			    json_str(json_get(p, STR("remote_request_id")), &s) && json_str(json_get(p, STR("remote_host")), &s) &&
			    json_u64(json_get(p, STR("remote_port")), &port) && json_is(json_get(p, STR("remote_block_ids")), JSON_ARRAY);
}

static bool read_members(const struct sim_serving *s, const struct json_val *body, struct sim_spec_call *c, struct sim_fail *f)
{
	struct str mode = { 0 };
	bool echo = false;
	c->store = true;
	if (!read_stream(body, c, f) || !read_max_new(s, body, c, f) || !read_n(body, c, f) || !read_salt(body, c, f) ||
		!read_bool(body, "return_token_ids", &c->return_ids, f) || !read_bool(body, "echo", &echo, f) ||
		!read_bool(body, "store", &c->store, f))
		return false;
	(void)json_str(json_get(body, STR("session_id")), &c->session);
	(void)json_str(json_get(body, STR("previous_response_id")), &c->previous);
	(void)json_str(json_get(json_get(body, STR("vllm_xargs")), STR("kv_cache_report_mode")), &mode);
	c->report_full = str_eq(mode, STR("full"));
	read_transfer(body, c);
	c->no_lookup = !json_absent(json_get(body, STR("prompt_logprobs"))) || (echo && !json_absent(json_get(body, STR("logprobs"))));
	return true;
}

bool sim_spec_read(
	const struct sim_serving *s, enum sim_api api, const struct json_val *body, struct sim_spec_call *out, struct sim_fail *f)
{
	*out = (struct sim_spec_call){ .api = api };
	arena_init(&out->mem, 0);
	if (read_members(s, body, out, f) && sim_spec_model(s, body, &out->model, &out->lora, f) && read_input(s, body, out, f) &&
		check_length(s, out, f))
		return true;
	sim_spec_done(out);
	return false;
}

void sim_spec_done(struct sim_spec_call *c)
{
	for (size_t i = 0; i < c->prompts.n; i++)
		sim_prompt_done(&c->prompts.p[i]);
	VEC_FREE(&c->prompts);
	arena_done(&c->mem);
}
