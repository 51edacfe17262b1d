/* convert_responses.c: the Responses API. Each item of the input becomes a message, but what an assistant did in several items (thought,
 * said, called) gathers in one message as long as each part is there once. */
#include "base/vec.h"
#include "text/convert_priv.h"

/* The assistant's message that is still open. */
struct open {
	bool any, has_text, has_reasoning;
	struct str text, reasoning;
	VEC(const struct json_val *) calls;
};

static void put_call(struct text_conv *c, const struct json_val *item)
{
	struct str id = { 0 }, name = { 0 }, arguments = { 0 };
	(void)(json_str(json_get(item, STR("call_id")), &id) && json_str(json_get(item, STR("name")), &name) && json_str(json_get(item, STR("arguments")), &arguments));
	json_put_open(&c->w, '{');
	text_conv_put_str(c, STR("id"), id);
	text_conv_put_str(c, STR("type"), STR("function"));
	json_put_key(&c->w, STR("function"));
	json_put_open(&c->w, '{');
	text_conv_put_str(c, STR("name"), name);
	text_conv_put_str(c, STR("arguments"), arguments);
	json_put_close(&c->w, '}');
	json_put_close(&c->w, '}');
}

static void close_open(struct text_conv *c, struct open *a)
{
	if (a->any) {
		json_put_open(&c->w, '{');
		text_conv_put_str(c, STR("role"), STR("assistant"));
		if (a->has_text)
			text_conv_put_str(c, STR("content"), a->text);
		if (a->has_reasoning)
			text_conv_put_str(c, STR("reasoning"), a->reasoning);
		if (a->calls.n) {
			json_put_key(&c->w, STR("tool_calls"));
			json_put_open(&c->w, '[');
			for (size_t i = 0; i < a->calls.n; i++)
				put_call(c, a->calls.p[i]);
			json_put_close(&c->w, ']');
		}
		json_put_close(&c->w, '}');
	}
	a->calls.n = 0;
	*a = (struct open){ .calls = a->calls };
}

/* ---- items */

static void said(struct text_conv *c, struct open *a, struct str text)
{
	if (a->has_text)
		close_open(c, a);
	a->any = a->has_text = true;
	a->text = text;
}

/* A part that holds text and nothing else that counts. */
static bool text_part(const struct json_val *part, struct str type, struct str *ret_text)
{
	static const struct str NAMES[] = { STR_INIT("type"), STR_INIT("text"), STR_INIT("annotations"), STR_INIT("logprobs") };
	return text_conv_is(part, type) && json_str(json_get(part, STR("text")), ret_text) && json_only(part, NAMES, ARRAY_LEN(NAMES));
}

/* Of several parts the worker reads the first only. */
static enum err assistant(struct text_conv *c, struct open *a, const struct json_val *item)
{
	const struct json_val *content = json_get(item, STR("content"));
	struct json_iter first = json_each(content);
	struct str text, status = STR("completed");
	if (json_get(item, STR("status")) && (!json_str(json_get(item, STR("status")), &status) || !str_eq(status, STR("completed"))))
		return text_conv_refuse(c, "unfinished_item");
	if (json_str(content, &text)) {
		said(c, a, text);
		return ERR_OK;
	}
	if (!text_conv_is(item, STR("message")) || !json_is(content, JSON_ARRAY) || json_len(content) != 1 || !json_next(&first) ||
	    !text_part(first.val, STR("output_text"), &text))
		return text_conv_refuse(c, "assistant_form");
	said(c, a, text);
	return ERR_OK;
}

/* The worker takes the changing first line away from text that came as a string only, not from these parts. */
static bool billed(struct str role, struct str text) { return !str_eq(role, STR("user")) && text_is_billing(text); }

static enum err put_parts(struct text_conv *c, struct str role, const struct json_val *content)
{
	struct str text;
	if (json_str(content, &text)) {
		json_put_str(&c->w, text);
		return ERR_OK;
	}
	if (!json_is(content, JSON_ARRAY) || json_len(content) == 0)
		return text_conv_refuse(c, "content_form");
	json_put_open(&c->w, '[');
	for (struct json_iter it = json_each(content); json_next(&it);) {
		if (!text_part(it.val, STR("input_text"), &text) || billed(role, text))
			return text_conv_refuse(c, "part_kind");
		json_put_open(&c->w, '{');
		text_conv_put_str(c, STR("type"), STR("text"));
		text_conv_put_str(c, STR("text"), text);
		json_put_close(&c->w, '}');
	}
	json_put_close(&c->w, ']');
	return ERR_OK;
}

static enum err message(struct text_conv *c, struct open *a, const struct json_val *item)
{
	static const struct str NAMES[] = { STR_INIT("type"), STR_INIT("role"), STR_INIT("content"), STR_INIT("id"), STR_INIT("status") };
	struct str role;
	if (!json_only(item, NAMES, ARRAY_LEN(NAMES)) || !json_str(json_get(item, STR("role")), &role))
		return text_conv_refuse(c, "item_form");
	if (str_eq(role, STR("assistant")))
		return assistant(c, a, item);
	if (!str_eq(role, STR("user")) && !str_eq(role, STR("system")) && !str_eq(role, STR("developer")))
		return text_conv_refuse(c, "item_role");
	close_open(c, a);
	json_put_open(&c->w, '{');
	text_conv_put_str(c, STR("role"), role);
	json_put_key(&c->w, STR("content"));
	TRY(put_parts(c, role, json_get(item, STR("content"))));
	json_put_close(&c->w, '}');
	return ERR_OK;
}

static enum err function_call(struct text_conv *c, struct open *a, const struct json_val *item)
{
	static const struct str NEEDED[] = { STR_INIT("call_id"), STR_INIT("name"), STR_INIT("arguments") };
	struct str s;
	for (size_t i = 0; i < ARRAY_LEN(NEEDED); i++)
		if (!json_str(json_get(item, NEEDED[i]), &s))
			return text_conv_refuse(c, "function_call_form");
	if (!json_absent(json_get(item, STR("namespace"))))
		return text_conv_refuse(c, "function_call_form");
	a->any = true;
	VEC_PUSH(&a->calls, item);
	return ERR_OK;
}

static enum err function_output(struct text_conv *c, struct open *a, const struct json_val *item)
{
	struct str id, text;
	if (!json_str(json_get(item, STR("call_id")), &id) || !json_str(json_get(item, STR("output")), &text))
		return text_conv_refuse(c, "function_output_form");
	close_open(c, a);
	json_put_open(&c->w, '{');
	text_conv_put_str(c, STR("role"), STR("tool"));
	text_conv_put_str(c, STR("content"), text);
	text_conv_put_str(c, STR("tool_call_id"), id);
	json_put_close(&c->w, '}');
	return ERR_OK;
}

static enum err reasoning(struct text_conv *c, struct open *a, const struct json_val *item)
{
	const struct json_val *content = json_get(item, STR("content")), *summary = json_get(item, STR("summary"));
	struct json_iter first = json_each(json_len(content) ? content : summary);
	struct str text = { 0 };
	if (!json_absent(json_get(item, STR("encrypted_content"))) || !json_is(summary, JSON_ARRAY) || !json_absent(json_get(item, STR("status"))))
		return text_conv_refuse(c, "reasoning_form");
	if (json_next(&first) && !text_part(first.val, json_len(content) ? STR("reasoning_text") : STR("summary_text"), &text))
		return text_conv_refuse(c, "reasoning_form");
	if (a->has_reasoning)
		close_open(c, a);
	a->any = a->has_reasoning = true;
	a->reasoning = text;
	return ERR_OK;
}

static enum err item(struct text_conv *c, struct open *a, const struct json_val *v)
{
	if (text_conv_is(v, STR("message")) || (!json_get(v, STR("type")) && json_get(v, STR("role"))))
		return message(c, a, v);
	if (text_conv_is(v, STR("function_call")))
		return function_call(c, a, v);
	if (text_conv_is(v, STR("function_call_output")))
		return function_output(c, a, v);
	return text_conv_is(v, STR("reasoning")) ? reasoning(c, a, v) : text_conv_refuse(c, "item_kind");
}

static enum err items(struct text_conv *c, const struct json_val *input)
{
	struct open a = { 0 };
	enum err e = ERR_OK;
	for (struct json_iter it = json_each(input); e == ERR_OK && json_next(&it);)
		e = item(c, &a, it.val);
	if (e == ERR_OK)
		close_open(c, &a);
	VEC_FREE(&a.calls);
	return e;
}

static enum err put_messages(struct text_conv *c, const struct json_val *body)
{
	const struct json_val *input = json_get(body, STR("input")), *instructions = json_get(body, STR("instructions"));
	struct str text;
	json_put_key(&c->w, STR("messages"));
	json_put_open(&c->w, '[');
	if (!json_absent(instructions) && !json_str(instructions, &text))
		return text_conv_refuse(c, "instructions_form");
	if (json_str(instructions, &text) && text.n)
		text_conv_put_message(c, STR("system"), text);
	if (json_str(input, &text))
		text_conv_put_message(c, STR("user"), text);
	else if (json_is(input, JSON_ARRAY))
		TRY(items(c, input));
	else
		return text_conv_refuse(c, "no_input");
	json_put_close(&c->w, ']');
	return ERR_OK;
}

/* ---- the rest */

static enum err put_tool(struct text_conv *c, const struct json_val *t)
{
	const struct json_val *parameters = json_get(t, STR("parameters"));
	if (!text_conv_is(t, STR("function")) || !json_absent(json_get(t, STR("defer_loading"))) || (!json_absent(parameters) && !json_is(parameters, JSON_OBJECT)))
		return text_conv_refuse(c, "tool_kind");
	json_put_open(&c->w, '{');
	text_conv_put_str(c, STR("type"), STR("function"));
	json_put_key(&c->w, STR("function"));
	json_put_open(&c->w, '{');
	text_conv_keep(c, t, STR("name"));
	text_conv_keep(c, t, STR("description"));
	text_conv_keep(c, t, STR("parameters"));
	text_conv_keep(c, t, STR("strict"));
	json_put_close(&c->w, '}');
	json_put_close(&c->w, '}');
	return ERR_OK;
}

enum err text_conv_responses_tools(struct text_conv *c, const struct json_val *tools)
{
	return json_is(tools, JSON_ARRAY) ? text_conv_put_tools(c, tools, put_tool) : text_conv_refuse(c, "tool_kind");
}

static enum err put_tools(struct text_conv *c, const struct json_val *body)
{
	const struct json_val *tools = json_get(body, STR("tools"));
	struct str choice;
	if (json_str(json_get(body, STR("tool_choice")), &choice) && str_eq(choice, STR("none")))
		text_conv_put_str(c, STR("tool_choice"), choice);
	if (!tools || (json_is(tools, JSON_ARRAY) && json_len(tools) == 0))
		return ERR_OK;
	json_put_key(&c->w, STR("tools"));
	return text_conv_responses_tools(c, tools);
}

const char *text_conv_responses_odd(const struct json_val *body)
{
	static const struct { struct str name; const char *why; } ODD[] = {
		{ STR_INIT("previous_response_id"), "previous_response" }, { STR_INIT("previous_input_messages"), "previous_response" },
		{ STR_INIT("prompt"), "prompt_template" }, { STR_INIT("conversation"), "previous_response" },
	};
	for (size_t i = 0; i < ARRAY_LEN(ODD); i++)
		if (!json_absent(json_get(body, ODD[i].name)))
			return ODD[i].why;
	return NULL;
}

bool text_conv_responses_truncates(const struct json_val *body)
{
	const struct json_val *v = json_get(body, STR("truncation"));
	struct str s;
	return v && (!json_str(v, &s) || !str_eq(s, STR("disabled")));
}

/* What a chat calls so. */
static enum err put_truncation(struct text_conv *c, const struct json_val *body)
{
	struct str s;
	if (!text_conv_responses_truncates(body))
		return ERR_OK;
	if (!json_str(json_get(body, STR("truncation")), &s) || !str_eq(s, STR("auto")))
		return text_conv_refuse(c, "truncation");
	json_put_key(&c->w, STR("truncate_prompt_tokens"));
	json_put_i64(&c->w, -1);
	if (!json_absent(json_get(body, STR("max_output_tokens")))) {
		json_put_key(&c->w, STR("max_tokens"));
		json_put_val(&c->w, json_get(body, STR("max_output_tokens")));
	}
	return ERR_OK;
}

static enum err put_effort(struct text_conv *c, const struct json_val *body)
{
	const struct json_val *reasoning_ = json_get(body, STR("reasoning")), *effort = json_get(reasoning_, STR("effort"));
	if (!json_absent(reasoning_) && !json_is(reasoning_, JSON_OBJECT))
		return text_conv_refuse(c, "reasoning_form");
	if (json_absent(effort))
		return ERR_OK;
	json_put_key(&c->w, STR("reasoning_effort"));
	json_put_val(&c->w, effort);
	return ERR_OK;
}

enum err text_conv_responses(struct text_conv *c, const struct json_val *body)
{
	const char *odd = text_conv_responses_odd(body);
	if (odd)
		return text_conv_refuse(c, odd);
	json_put_open(&c->w, '{');
	TRY(put_messages(c, body));
	TRY(put_tools(c, body));
	TRY(put_effort(c, body));
	TRY(put_truncation(c, body));
	text_conv_keep(c, body, STR("chat_template_kwargs"));
	text_conv_keep(c, body, STR("mm_processor_kwargs"));
	text_conv_keep(c, body, STR("media_io_kwargs"));
	text_conv_keep(c, body, STR("kv_transfer_params"));
	json_put_key(&c->w, STR("add_special_tokens"));   /* as in completions, not as in chats */
	json_put_bool(&c->w, true);
	json_put_close(&c->w, '}');
	return ERR_OK;
}
