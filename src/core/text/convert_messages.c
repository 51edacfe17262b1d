/* convert_messages.c: Anthropic's messages, and the entry to both conversions. System texts are put together without anything between;
 * results of tools become messages before the one that they stood in; thinking becomes reasoning. */
#include "base/must.h"
#include "text/chat_tool.h"
#include "text/convert_priv.h"

enum { TEXT_MAX_BYTES = 64 << 20 };

/* ---- system */

/* Adds the texts of a system value (a string, or blocks) to c->text. */
static enum err add_system(struct text_conv *c, const struct json_val *v, bool strip_string)
{
	struct str text;
	if (json_str(v, &text))
		return strip_string && text_is_billing(text) ? ERR_OK : buf_add(&c->text, text);
	if (!json_is(v, JSON_ARRAY))
		return text_conv_refuse(c, "system_form");
	for (struct json_iter it = json_each(v); json_next(&it);) {
		if (!text_conv_is(it.val, STR("text")))
			return text_conv_refuse(c, "system_form");
		if (json_absent(json_get(it.val, STR("text"))))
			continue;
		if (!json_str(json_get(it.val, STR("text")), &text))
			return text_conv_refuse(c, "system_form");
		if (!text_is_billing(text))
			TRY(buf_add(&c->text, text));
	}
	return ERR_OK;
}

static bool has_role(const struct json_val *message, struct str role)
{
	struct str s;
	return json_str(json_get(message, STR("role")), &s) && str_eq(s, role);
}

static enum err first_system(struct text_conv *c, const struct json_val *body)
{
	const struct json_val *system = json_get(body, STR("system"));
	buf_clear(&c->text);
	if (!json_absent(system))
		TRY(add_system(c, system, false));
	for (struct json_iter it = json_each(json_get(body, STR("messages"))); json_next(&it);)
		if (has_role(it.val, STR("system"))) {
			if (c->o->inline_system == TEXT_INLINE_UNKNOWN)
				return text_conv_refuse(c, "inline_system");
			if (c->o->inline_system == TEXT_INLINE_MERGED)
				TRY(add_system(c, json_get(it.val, STR("content")), true));
		}
	if (c->text.n)
		text_conv_put_message(c, STR("system"), buf_str(&c->text));
	return ERR_OK;
}

static enum err inline_system(struct text_conv *c, const struct json_val *m)
{
	if (c->o->inline_system == TEXT_INLINE_MERGED)
		return ERR_OK;
	buf_clear(&c->text);
	TRY(add_system(c, json_get(m, STR("content")), true));
	if (c->text.n)
		text_conv_put_message(c, STR("system"), buf_str(&c->text));
	return ERR_OK;
}

/* ---- blocks */

static enum err result_text(struct text_conv *c, const struct json_val *content)
{
	struct str text;
	bool more = false;
	buf_clear(&c->text);
	if (json_absent(content))
		return ERR_OK;
	if (json_str(content, &text))
		return buf_add(&c->text, text);
	if (!json_is(content, JSON_ARRAY))
		return text_conv_refuse(c, "tool_result_form");
	for (struct json_iter it = json_each(content); json_next(&it);) {
		if (!text_conv_is(it.val, STR("text")))
			return text_conv_refuse(c, "tool_result_kind");
		if (!json_str(json_get(it.val, STR("text")), &text))
			return text_conv_refuse(c, "tool_result_form");
		if (more)
			TRY(buf_add_byte(&c->text, '\n'));
		TRY(buf_add(&c->text, text));
		more = true;
	}
	return ERR_OK;
}

static enum err tool_result(struct text_conv *c, const struct json_val *block)
{
	struct str id;
	if (!json_str(json_get(block, STR("tool_use_id")), &id))
		return text_conv_refuse(c, "tool_result_form");
	TRY(result_text(c, json_get(block, STR("content"))));
	json_put_open(&c->w, '{');
	text_conv_put_str(c, STR("role"), STR("tool"));
	text_conv_put_str(c, STR("tool_call_id"), id);
	text_conv_put_str(c, STR("content"), buf_str(&c->text));
	json_put_close(&c->w, '}');
	return ERR_OK;
}

struct blocks {
	size_t texts, calls;
	struct str text;             /* the only one, if it is one */
	bool reasoning;
};

static enum err count_text(struct text_conv *c, const struct json_val *block, struct blocks *b)
{
	struct str text = { 0 };
	if (!json_absent(json_get(block, STR("text"))) && !json_str(json_get(block, STR("text")), &text))
		return text_conv_refuse(c, "block_form");
	if (text.n) {
		b->texts++;
		b->text = text;
	}
	return ERR_OK;
}

static enum err thinking(struct text_conv *c, const struct json_val *block, struct blocks *b)
{
	struct str text;
	if (!json_str(json_get(block, STR("thinking")), &text))
		return text_conv_refuse(c, "thinking_form");
	b->reasoning = true;
	return buf_add(&c->text, text);
}

/* The first pass over a message's blocks: results of tools go out at once, the rest is counted; reasoning gathers in c->text. */
static enum err look_at(struct text_conv *c, const struct json_val *content, bool user, struct blocks *ret_b)
{
	*ret_b = (struct blocks){ 0 };
	for (struct json_iter it = json_each(content); json_next(&it);)
		if (user && text_conv_is(it.val, STR("tool_result")))
			TRY(tool_result(c, it.val));
	buf_clear(&c->text);
	for (struct json_iter it = json_each(content); json_next(&it);) {
		if (text_conv_is(it.val, STR("text")))
			TRY(count_text(c, it.val, ret_b));
		else if (!user && text_conv_is(it.val, STR("thinking")))
			TRY(thinking(c, it.val, ret_b));
		else if (!user && text_conv_is(it.val, STR("tool_use")))
			ret_b->calls++;
		else if (!(user && text_conv_is(it.val, STR("tool_result"))) && !text_conv_is(it.val, STR("redacted_thinking")))
			return text_conv_refuse(c, "block_kind");
	}
	return ERR_OK;
}

static void put_texts(struct text_conv *c, const struct json_val *content, const struct blocks *b)
{
	struct str text;
	json_put_key(&c->w, STR("content"));
	if (b->texts == 1) {
		json_put_str(&c->w, b->text);
		return;
	}
	json_put_open(&c->w, '[');
	for (struct json_iter it = json_each(content); json_next(&it);)
		if (text_conv_is(it.val, STR("text")) && json_str(json_get(it.val, STR("text")), &text) && text.n) {
			json_put_open(&c->w, '{');
			text_conv_put_str(c, STR("type"), STR("text"));
			text_conv_put_str(c, STR("text"), text);
			json_put_close(&c->w, '}');
		}
	json_put_close(&c->w, ']');
}

/* As Python prints them: where no template parses them again, they stand in the prompt. */
static enum err add_arguments(struct text_conv *c, const struct json_val *input)
{
	static const struct jinja_json_opts PYTHON = { .ensure_ascii = true, .indent = -1, .item_sep = STR_INIT(", "), .key_sep = STR_INIT(": ") };
	struct arena a;
	struct jinja_val v;
	arena_init(&a, 0);
	struct text_shape s = { .a = &a };
	enum err e = text_shape_value(&s, input, &v);
	if (e == ERR_OK)
		e = jinja_print_json(&c->text, &v, &PYTHON);
	else
		c->why = s.why;
	arena_done(&a);
	return e;
}

static enum err put_call(struct text_conv *c, const struct json_val *block)
{
	const struct json_val *input = json_get(block, STR("input"));
	struct str id, name;
	if (!json_str(json_get(block, STR("id")), &id) || !id.n || !json_str(json_get(block, STR("name")), &name))
		return text_conv_refuse(c, "tool_use_form");
	if (!json_absent(input) && !json_is(input, JSON_OBJECT))
		return text_conv_refuse(c, "tool_use_form");
	buf_clear(&c->text);
	if (json_absent(input))
		TRY(buf_add(&c->text, STR("{}")));
	else
		TRY(add_arguments(c, input));
	json_put_open(&c->w, '{');
	text_conv_put_str(c, STR("id"), id);
	text_conv_put_str(c, STR("type"), STR("function"));
	json_put_key(&c->w, STR("function"));
	json_put_open(&c->w, '{');
	text_conv_put_str(c, STR("name"), name);
	text_conv_put_str(c, STR("arguments"), buf_str(&c->text));
	json_put_close(&c->w, '}');
	json_put_close(&c->w, '}');
	return ERR_OK;
}

static enum err put_calls(struct text_conv *c, const struct json_val *content)
{
	json_put_key(&c->w, STR("tool_calls"));
	json_put_open(&c->w, '[');
	for (struct json_iter it = json_each(content); json_next(&it);)
		if (text_conv_is(it.val, STR("tool_use")))
			TRY(put_call(c, it.val));
	json_put_close(&c->w, ']');
	return ERR_OK;
}

static enum err blocks_message(struct text_conv *c, const struct json_val *content, bool user)
{
	struct blocks b;
	TRY(look_at(c, content, user, &b));
	if (user && b.texts == 0)
		return ERR_OK;
	json_put_open(&c->w, '{');
	text_conv_put_str(c, STR("role"), user ? STR("user") : STR("assistant"));
	if (b.reasoning)
		text_conv_put_str(c, STR("reasoning"), buf_str(&c->text));
	if (b.texts)
		put_texts(c, content, &b);
	if (b.calls)
		TRY(put_calls(c, content));
	json_put_close(&c->w, '}');
	return ERR_OK;
}

static enum err message(struct text_conv *c, const struct json_val *m)
{
	const struct json_val *content = json_get(m, STR("content"));
	bool user = has_role(m, STR("user"));
	struct str text;
	if (has_role(m, STR("system")))
		return inline_system(c, m);
	if (!user && !has_role(m, STR("assistant")))
		return text_conv_refuse(c, "message_form");
	if (json_str(content, &text)) {
		text_conv_put_message(c, user ? STR("user") : STR("assistant"), text);
		return ERR_OK;
	}
	return json_is(content, JSON_ARRAY) ? blocks_message(c, content, user) : text_conv_refuse(c, "content_form");
}

/* ---- tools */

/* The schema, with the type that it means when it names none. */
static void put_schema(struct text_conv *c, const struct json_val *schema)
{
	if (json_get(schema, STR("type"))) {
		json_put_val(&c->w, schema);
		return;
	}
	json_put_open(&c->w, '{');
	for (struct json_iter it = json_each(schema); json_next(&it);) {
		json_put_key(&c->w, it.key);
		json_put_val(&c->w, it.val);
	}
	text_conv_put_str(c, STR("type"), STR("object"));
	json_put_close(&c->w, '}');
}

static enum err put_tool(struct text_conv *c, const struct json_val *t)
{
	const struct json_val *schema = json_get(t, STR("input_schema")), *description = json_get(t, STR("description"));
	struct str name, text;
	if (!json_str(json_get(t, STR("name")), &name) || !json_is(schema, JSON_OBJECT) || !json_absent(json_get(t, STR("defer_loading"))) ||
	    (!json_absent(description) && !json_str(description, &text)))
		return text_conv_refuse(c, "tool_form");
	json_put_open(&c->w, '{');
	text_conv_put_str(c, STR("type"), STR("function"));
	json_put_key(&c->w, STR("function"));
	json_put_open(&c->w, '{');
	text_conv_put_str(c, STR("name"), name);
	text_conv_keep(c, t, STR("description"));
	json_put_key(&c->w, STR("parameters"));
	put_schema(c, schema);
	text_conv_keep(c, t, STR("strict"));
	json_put_close(&c->w, '}');
	json_put_close(&c->w, '}');
	return ERR_OK;
}

static enum err put_tools(struct text_conv *c, const struct json_val *body)
{
	const struct json_val *tools = json_get(body, STR("tools")), *choice = json_get(body, STR("tool_choice"));
	if (!json_absent(choice) && !json_is(choice, JSON_OBJECT))
		return text_conv_refuse(c, "tool_choice_form");
	if (text_conv_is(choice, STR("none")))
		text_conv_put_str(c, STR("tool_choice"), STR("none"));
	if (json_absent(tools))
		return ERR_OK;
	json_put_key(&c->w, STR("tools"));
	return json_is(tools, JSON_ARRAY) ? text_conv_put_tools(c, tools, put_tool) : text_conv_refuse(c, "tool_form");
}

/* ---- the rest */

static enum err put_effort(struct text_conv *c, const struct json_val *body)
{
	const struct json_val *mode = json_get(body, STR("thinking")), *config = json_get(body, STR("output_config"));
	if (!json_absent(mode) && !text_conv_is(mode, STR("enabled")) && !text_conv_is(mode, STR("adaptive")) && !text_conv_is(mode, STR("disabled")))
		return text_conv_refuse(c, "thinking_form");
	if (text_conv_is(mode, STR("disabled"))) {
		if (!c->o->disabled_effort.n)
			return text_conv_refuse(c, "thinking_disabled");
		text_conv_put_str(c, STR("reasoning_effort"), c->o->disabled_effort);
		return ERR_OK;
	}
	if (!json_absent(config) && !json_is(config, JSON_OBJECT))
		return text_conv_refuse(c, "output_config_form");
	if (json_absent(json_get(config, STR("effort"))))
		return ERR_OK;
	json_put_key(&c->w, STR("reasoning_effort"));
	json_put_val(&c->w, json_get(config, STR("effort")));
	return ERR_OK;
}

enum err text_conv_messages(struct text_conv *c, const struct json_val *body)
{
	const struct json_val *messages = json_get(body, STR("messages"));
	if (!json_is(messages, JSON_ARRAY))
		return text_conv_refuse(c, "no_messages");
	json_put_open(&c->w, '{');
	json_put_key(&c->w, STR("messages"));
	json_put_open(&c->w, '[');
	TRY(first_system(c, body));
	for (struct json_iter it = json_each(messages); json_next(&it);)
		TRY(message(c, it.val));
	json_put_close(&c->w, ']');
	TRY(put_tools(c, body));
	TRY(put_effort(c, body));
	text_conv_keep(c, body, STR("chat_template_kwargs"));
	text_conv_keep(c, body, STR("kv_transfer_params"));
	json_put_close(&c->w, '}');
	return ERR_OK;
}

/* ---- embeddings: a chat without a beginning of an answer, and without tools, documents and effort, which that request has not */

static const char *embeddings_odd(const struct json_val *body)
{
	static const struct str PLAIN[] = { STR_INIT("role"), STR_INIT("content") };
	if (!json_absent(json_get(body, STR("input"))) || !json_absent(json_get(body, STR("padding"))))
		return "prompt_form";
	for (struct json_iter it = json_each(json_get(body, STR("messages"))); json_next(&it);)
		if (!json_only(it.val, PLAIN, ARRAY_LEN(PLAIN)))
			return "message_form";
	return NULL;
}

static enum err embeddings(struct text_conv *c, const struct json_val *body)
{
	static const struct str KEPT[] = { STR_INIT("messages"), STR_INIT("continue_final_message"), STR_INIT("add_special_tokens"), STR_INIT("chat_template"),
		STR_INIT("chat_template_kwargs"), STR_INIT("truncate_prompt_tokens"), STR_INIT("truncation_side"), STR_INIT("mm_processor_kwargs"), STR_INIT("media_io_kwargs") };
	const struct json_val *generate = json_get(body, STR("add_generation_prompt"));
	const char *odd = embeddings_odd(body);
	if (odd)
		return text_conv_refuse(c, odd);
	json_put_open(&c->w, '{');
	for (size_t i = 0; i < ARRAY_LEN(KEPT); i++)
		text_conv_keep(c, body, KEPT[i]);
	json_put_key(&c->w, STR("add_generation_prompt"));
	if (generate)
		json_put_val(&c->w, generate);
	else
		json_put_bool(&c->w, false);
	json_put_close(&c->w, '}');
	return ERR_OK;
}

enum err text_convert(enum text_form form, const struct json_val *body, const struct text_convert_opts *o, struct buf *out, const char **ret_why)
{
	struct text_conv c = { .o = o, .w = json_writer(out), .why = "too_long" };
	must(form == TEXT_MESSAGES || form == TEXT_RESPONSES || form == TEXT_EMBEDDINGS);
	buf_init(&c.text, TEXT_MAX_BYTES);
	enum err e = form == TEXT_MESSAGES ? text_conv_messages(&c, body) : form == TEXT_RESPONSES ? text_conv_responses(&c, body) : embeddings(&c, body);
	if (e == ERR_OK)
		e = json_writer_done(&c.w);
	buf_done(&c.text);
	if (e != ERR_OK)
		*ret_why = c.why;
	return e;
}
