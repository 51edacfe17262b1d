/* harmony_responses.c: the turns of a body of /v1/responses, which do not go the way of a chat: each item is a message of its own,
 * summaries of reasoning are not read, and every assistant's text is final. */
#include "base/vec.h"
#include "text/convert_priv.h"
#include "text/harmony_priv.h"

static bool is_text(const struct json_val *part, struct str type)
{
	static const struct str NAMES[] = { STR_INIT("type"), STR_INIT("text"), STR_INIT("annotations"), STR_INIT("logprobs") };
	struct str text;
	return text_conv_is(part, type) && json_str(json_get(part, STR("text")), &text) && json_only(part, NAMES, ARRAY_LEN(NAMES));
}

static bool all_text(const struct json_val *parts, struct str type)
{
	for (struct json_iter it = json_each(parts); json_next(&it);)
		if (!is_text(it.val, type))
			return false;
	return json_is(parts, JSON_ARRAY) && json_len(parts) > 0;
}

/* ---- items */

static enum err add_developer(struct text_harmony_shape *h, struct str text, bool instructs)
{
	if (instructs) {
		h->has_instructions = true;
		h->instructions = text;
	} else if (text.n) {
		VEC_PUSH(h, (struct text_turn){ .from = TEXT_TURN_DEVELOPER, .text = text });
	}
	return ERR_OK;
}

static enum err add_message(struct text_harmony_shape *h, const struct json_val *item, bool instructs)
{
	static const struct str NAMES[] = { STR_INIT("type"), STR_INIT("role"), STR_INIT("content"), STR_INIT("id"), STR_INIT("status") };
	const struct json_val *content = json_get(item, STR("content"));
	struct str role, text = { 0 };
	if (!json_only(item, NAMES, ARRAY_LEN(NAMES)) || !json_str(json_get(item, STR("role")), &role))
		return text_shape_refuse(&h->s, "item_form");
	bool assistant = str_eq(role, STR("assistant")), developer = str_eq(role, STR("system")) || str_eq(role, STR("developer"));
	if (!assistant && !developer && !str_eq(role, STR("user")))
		return text_shape_refuse(&h->s, "item_role");
	const struct json_val *parts = json_str(content, &text) ? NULL : content;
	if (parts && !all_text(parts, assistant ? STR("output_text") : STR("input_text")))
		return text_shape_refuse(&h->s, "content_form");
	if (developer)
		return add_developer(h, parts ? text_harmony_joined(h, parts, STR("")) : text, instructs);
	struct text_turn t = { .from = assistant ? TEXT_TURN_ASSISTANT : TEXT_TURN_USER, .channel = assistant ? TEXT_TURN_FINAL : TEXT_TURN_PLAIN, .text = text, .parts = parts };
	VEC_PUSH(h, t);
	return ERR_OK;
}

static bool is_call(const struct json_val *item)
{
	static const struct str NAMES[] = { STR_INIT("type"), STR_INIT("call_id"), STR_INIT("name"), STR_INIT("arguments"), STR_INIT("id"), STR_INIT("status") };
	struct str s;
	for (size_t i = 1; i < 4; i++)
		if (!json_str(json_get(item, NAMES[i]), &s))
			return false;
	return json_only(item, NAMES, ARRAY_LEN(NAMES)) && text_conv_is(item, STR("function_call"));
}

static enum err add_call(struct text_harmony_shape *h, const struct json_val *item)
{
	struct text_turn t = { .from = TEXT_TURN_ASSISTANT, .channel = TEXT_TURN_COMMENTARY, .call = true };
	if (!is_call(item) || !json_str(json_get(item, STR("arguments")), &t.text))
		return text_shape_refuse(&h->s, "function_call_form");
	TRY(text_harmony_name(h, json_get(item, STR("name")), &t.name));
	VEC_PUSH(h, t);
	return ERR_OK;
}

/* It answers the last call of its id before it; where there is none, the worker refuses. */
static enum err add_output(struct text_harmony_shape *h, const struct json_val *input, const struct json_val *item)
{
	struct text_turn t = { .from = TEXT_TURN_TOOL, .channel = TEXT_TURN_COMMENTARY };
	struct str id, other;
	bool found = false;
	if (!json_str(json_get(item, STR("call_id")), &id) || !json_str(json_get(item, STR("output")), &t.text))
		return text_shape_refuse(&h->s, "function_output_form");
	for (struct json_iter it = json_each(input); json_next(&it) && it.val != item;)
		if (text_conv_is(it.val, STR("function_call")) && json_str(json_get(it.val, STR("call_id")), &other) && str_eq(id, other))
			found = json_str(json_get(it.val, STR("name")), &t.name);
	if (!found)
		return text_shape_refuse(&h->s, "no_such_call");
	VEC_PUSH(h, t);
	return ERR_OK;
}

static enum err add_thought(struct text_harmony_shape *h, const struct json_val *item)
{
	const struct json_val *content = json_get(item, STR("content"));
	if (!json_is(json_get(item, STR("summary")), JSON_ARRAY) || !json_absent(json_get(item, STR("status"))))
		return text_shape_refuse(&h->s, "reasoning_form");
	if (json_absent(content) || (json_is(content, JSON_ARRAY) && json_len(content) == 0))
		return ERR_OK;
	if (!all_text(content, STR("reasoning_text")))
		return text_shape_refuse(&h->s, "reasoning_form");
	struct text_turn t = { .from = TEXT_TURN_ASSISTANT, .channel = TEXT_TURN_ANALYSIS, .text = text_harmony_joined(h, content, STR("\n")) };
	VEC_PUSH(h, t);
	return ERR_OK;
}

static enum err add_item(struct text_harmony_shape *h, const struct json_val *input, const struct json_val *item, bool instructs)
{
	if (text_conv_is(item, STR("message")) || (!json_get(item, STR("type")) && json_get(item, STR("role"))))
		return add_message(h, item, instructs);
	if (text_conv_is(item, STR("function_call")))
		return add_call(h, item);
	if (text_conv_is(item, STR("function_call_output")))
		return add_output(h, input, item);
	return text_conv_is(item, STR("reasoning")) ? add_thought(h, item) : text_shape_refuse(&h->s, "item_kind");
}

/* ---- the whole */

static enum err add_input(struct text_harmony_shape *h, const struct json_val *input)
{
	struct str text;
	bool instructs = !h->has_instructions;
	if (json_str(input, &text)) {
		VEC_PUSH(h, (struct text_turn){ .from = TEXT_TURN_USER, .text = text });
		return ERR_OK;
	}
	if (!json_is(input, JSON_ARRAY))
		return text_shape_refuse(&h->s, "no_input");
	for (struct json_iter it = json_each(input); json_next(&it); instructs = false) {
		TRY(add_item(h, input, it.val, instructs));
		if (arena_over(h->s.a))
			return text_shape_refuse(&h->s, "too_much_memory");
	}
	return ERR_OK;
}

/* The tools in the form of a chat's. */
static enum err read_tools(struct text_harmony_shape *h, const struct json_val *tools)
{
	struct buf b;
	if (!tools || (json_is(tools, JSON_ARRAY) && json_len(tools) == 0))
		return ERR_OK;
	buf_init(&b, JSON_MAX_VALUES * (size_t)16);
	struct text_conv c = { .w = json_writer(&b), .why = "too_long" };
	enum err e = text_conv_responses_tools(&c, tools);
	if (e == ERR_OK)
		e = json_writer_done(&c.w);
	if (e == ERR_OK)
		e = json_parse(buf_str(&b), b.n, &h->tools_doc);
	if (e == ERR_OK)
		e = text_shape_tools(&h->s, json_root(h->tools_doc), &h->tools);
	else
		h->s.why = c.why;
	buf_done(&b);
	return e;
}

enum err text_harmony_responses(struct text_harmony_shape *h, const struct json_val *body)
{
	const struct json_val *reasoning = json_get(body, STR("reasoning")), *instructions = json_get(body, STR("instructions"));
	const char *odd = text_conv_responses_odd(body);
	if (odd)
		return text_shape_refuse(&h->s, odd);
	if (text_conv_responses_truncates(body))
		return text_shape_refuse(&h->s, "truncation");
	if (!json_absent(reasoning) && !json_is(reasoning, JSON_OBJECT))
		return text_shape_refuse(&h->s, "reasoning_form");
	if (json_get(json_get(body, STR("chat_template_kwargs")), STR("chat_template")))
		return text_shape_refuse(&h->s, "request_template");
	TRY(text_harmony_effort(h, json_get(reasoning, STR("effort"))));
	h->has_instructions = json_str(instructions, &h->instructions);
	if (!h->has_instructions && !json_absent(instructions))
		return text_shape_refuse(&h->s, "instructions_form");
	TRY(read_tools(h, json_get(body, STR("tools"))));
	return add_input(h, json_get(body, STR("input")));
}
