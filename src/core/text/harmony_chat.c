/* harmony_chat.c: the turns of a chat. A leading system or developer message is the preamble's instructions, one further down a message
 * of the developer's. An assistant that calls tools says its text in the commentary channel, any other in the final one. */
#include "base/vec.h"
#include "text/harmony_priv.h"

/* What a message says: a string, or parts that were looked at; neither: nothing. */
struct said {
	struct str text;
	const struct json_val *parts;
	bool any;
};

static enum err read_content(struct text_harmony_shape *h, const struct json_val *m, bool may_be_null, struct said *ret_s)
{
	const struct json_val *v = json_get(m, STR("content"));
	struct str part;
	*ret_s = (struct said){ 0 };
	if (!v || (json_is(v, JSON_NULL) && may_be_null))
		return ERR_OK;
	ret_s->any = json_str(v, &ret_s->text);
	if (ret_s->any)
		return ERR_OK;
	if (!json_is(v, JSON_ARRAY))
		return text_shape_refuse(&h->s, "content_form");
	for (struct json_iter it = json_each(v); json_next(&it); ret_s->any = true)
		TRY(text_shape_part(&h->s, it.val, &part));
	ret_s->parts = v;
	return ERR_OK;
}

static struct str as_text(struct text_harmony_shape *h, const struct said *s) { return s->parts ? text_harmony_joined(h, s->parts, STR("")) : s->text; }

/* ---- tool calls and their answers */

static const struct json_val *function_of(const struct json_val *call) { return json_get(call, STR("function")); }

static enum err check_call(struct text_harmony_shape *h, const struct json_val *call)
{
	struct str id, type, text;
	if (!json_str(json_get(call, STR("id")), &id) || !json_str(json_get(call, STR("type")), &type) || !str_eq(type, STR("function")) ||
	    !json_str(json_get(function_of(call), STR("arguments")), &text))
		return text_shape_refuse(&h->s, "tool_call_form");
	return text_harmony_name(h, json_get(function_of(call), STR("name")), &text);
}

/* The name of the function that the call was of: the last one of that id in the whole conversation. */
static struct str called_name(const struct json_val *messages, struct str id)
{
	struct str name = { 0 }, other;
	for (struct json_iter m = json_each(messages); json_next(&m);)
		for (struct json_iter c = json_each(json_get(m.val, STR("tool_calls"))); json_next(&c);)
			if (json_str(json_get(c.val, STR("id")), &other) && str_eq(id, other))
				(void)json_str(json_get(function_of(c.val), STR("name")), &name);
	return name;
}

static enum err add_tool(struct text_harmony_shape *h, const struct json_val *messages, const struct json_val *m)
{
	const struct json_val *id_v = json_get(m, STR("tool_call_id"));
	struct said s;
	struct str id = { 0 };
	if (id_v && !json_str(id_v, &id))
		return text_shape_refuse(&h->s, "message_form");
	TRY(read_content(h, m, false, &s));
	struct text_turn t = { .from = TEXT_TURN_TOOL, .channel = TEXT_TURN_COMMENTARY, .name = called_name(messages, id), .text = as_text(h, &s) };
	VEC_PUSH(h, t);
	return ERR_OK;
}

/* ---- the assistant */

static enum err add_thought(struct text_harmony_shape *h, const struct json_val *m)
{
	const struct json_val *v;
	struct str text;
	TRY(text_shape_reasoning(&h->s, json_get(m, STR("reasoning")), json_get(m, STR("reasoning_content")), &v));
	if (json_str(v, &text) && text.n)
		VEC_PUSH(h, (struct text_turn){ .from = TEXT_TURN_ASSISTANT, .channel = TEXT_TURN_ANALYSIS, .text = text });
	return ERR_OK;
}

static enum err add_calls(struct text_harmony_shape *h, const struct json_val *m, const struct said *s)
{
	struct text_turn t = { .from = TEXT_TURN_ASSISTANT, .channel = TEXT_TURN_COMMENTARY, .text = as_text(h, s) };
	if (t.text.n)
		VEC_PUSH(h, t);
	TRY(add_thought(h, m));
	t.call = true;
	for (struct json_iter it = json_each(json_get(m, STR("tool_calls"))); json_next(&it);) {
		TRY(check_call(h, it.val));
		if (json_str(json_get(function_of(it.val), STR("name")), &t.name) && json_str(json_get(function_of(it.val), STR("arguments")), &t.text))
			VEC_PUSH(h, t);
	}
	return ERR_OK;
}

/* Without a first text there is no answer. */
static enum err add_assistant(struct text_harmony_shape *h, const struct json_val *m)
{
	const struct json_val *calls = json_get(m, STR("tool_calls"));
	struct said s;
	struct str first = { 0 };
	if (!json_absent(calls) && !json_is(calls, JSON_ARRAY))
		return text_shape_refuse(&h->s, "tool_call_form");
	TRY(read_content(h, m, true, &s));
	if (json_len(calls))
		return add_calls(h, m, &s);
	TRY(add_thought(h, m));
	first = s.text;
	struct json_iter it = json_each(s.parts);
	if (json_next(&it))
		(void)json_str(json_get(it.val, STR("text")), &first);
	if (first.n)
		VEC_PUSH(h, (struct text_turn){ .from = TEXT_TURN_ASSISTANT, .channel = TEXT_TURN_FINAL, .text = s.text, .parts = s.parts });
	return ERR_OK;
}

/* ---- the others */

static enum err add_developer(struct text_harmony_shape *h, const struct json_val *m, bool first)
{
	struct said s;
	TRY(read_content(h, m, false, &s));
	if (first) {
		h->has_instructions = s.any;
		h->instructions = as_text(h, &s);
	} else if (s.any) {
		VEC_PUSH(h, (struct text_turn){ .from = TEXT_TURN_DEVELOPER, .text = as_text(h, &s) });
	}
	return ERR_OK;
}

static enum err add_user(struct text_harmony_shape *h, const struct json_val *m)
{
	struct said s;
	TRY(read_content(h, m, false, &s));
	VEC_PUSH(h, (struct text_turn){ .from = TEXT_TURN_USER, .text = s.text, .parts = s.parts });
	return ERR_OK;
}

static enum err add(struct text_harmony_shape *h, const struct json_val *messages, const struct json_val *m, bool first)
{
	struct str role;
	if (!json_str(json_get(m, STR("role")), &role))
		return text_shape_refuse(&h->s, "message_form");
	if (str_eq(role, STR("assistant")))
		return add_assistant(h, m);
	if (!json_absent(json_get(m, STR("tool_calls"))) || !json_absent(json_get(m, STR("tools"))))
		return text_shape_refuse(&h->s, "message_form");
	if (str_eq(role, STR("tool")))
		return add_tool(h, messages, m);
	if (str_eq(role, STR("system")) || str_eq(role, STR("developer")))
		return add_developer(h, m, first);
	return str_eq(role, STR("user")) ? add_user(h, m) : text_shape_refuse(&h->s, "message_role");
}

enum err text_harmony_chat(struct text_harmony_shape *h, const struct json_val *body)
{
	const struct json_val *messages = json_get(body, STR("messages")), *tools = json_get(body, STR("tools"));
	bool first = true;
	TRY(text_shape_odd_members(&h->s, body));
	TRY(text_harmony_effort(h, json_get(body, STR("reasoning_effort"))));
	if (!json_absent(tools))
		TRY(text_shape_tools(&h->s, tools, &h->tools));
	if (!json_is(messages, JSON_ARRAY) || json_len(messages) == 0)
		return text_shape_refuse(&h->s, "no_messages");
	for (struct json_iter it = json_each(messages); json_next(&it); first = false) {
		TRY(add(h, messages, it.val, first));
		if (arena_over(h->s.a))
			return text_shape_refuse(&h->s, "too_much_memory");
	}
	return ERR_OK;
}
