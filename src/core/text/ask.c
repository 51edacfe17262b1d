/* ask.c: the request bodies. For /render the client's own body with one member more; for /tokenize a new object made of
 * the spans that the call understands, so that no text is unescaped and escaped again.
 *
 * A chat request reaches the template with documents and reasoning_effort as further keyword arguments, which win over
 * those of chat_template_kwargs; /tokenize has no such members, so they are put there. */
#include "text/ask.h"

#include <stdlib.h>

#include "base/must.h"
#include "wire/json.h"

struct str text_call_path(enum text_form form, enum text_call call)
{
	if (call == TEXT_TOKENIZE)
		return STR("/tokenize");
	static const struct str RENDER[] = {
		[TEXT_CHAT] = STR_INIT("/v1/chat/completions/render"),
		[TEXT_COMPLETIONS] = STR_INIT("/v1/completions/render"),
		[TEXT_RESPONSES] = STR_INIT("/v1/responses/render"),
		[TEXT_MESSAGES] = STR_INIT("/v1/messages/render"),
		[TEXT_EMBEDDINGS] = STR_INIT(""),
		[TEXT_SCORE] = STR_INIT(""),
	};
	return RENDER[form];
}

/* ---- render */

/* At the end: of two equal members the last counts, and ours must. */
static enum err put_render(struct buf *b, struct str body)
{
	struct str s = str_trim(body);
	bool empty = json_scan_members(s, NULL, 0) == 0;
	if (s.n < 2)
		return ERR_UNSUPPORTED;
	TRY(buf_add(b, str_sub(s, 0, s.n - 1)));
	return buf_add(b, empty ? STR("\"return_mm_kwargs\":false}") : STR(",\"return_mm_kwargs\":false}"));
}

/* ---- tokenize */

enum field {
	F_MODEL,
	F_MESSAGES,
	F_PROMPT,
	F_INPUT,
	F_TOOLS,
	F_TEMPLATE,
	F_GENERATION,
	F_CONTINUE,
	F_SPECIAL,
	F_MM_KWARGS,
	F_MEDIA_KWARGS,
	F_KWARGS,
	F_DOCUMENTS,
	F_EFFORT,
	F_TRUNCATE,
	F_EMBEDS,
	F_PADDING,
	F_COUNT
};
static const struct str NAMES[F_COUNT] = {
	[F_MODEL] = STR_INIT("model"),
	[F_MESSAGES] = STR_INIT("messages"),
	[F_PROMPT] = STR_INIT("prompt"),
	[F_INPUT] = STR_INIT("input"),
	[F_TOOLS] = STR_INIT("tools"),
	[F_TEMPLATE] = STR_INIT("chat_template"),
	[F_GENERATION] = STR_INIT("add_generation_prompt"),
	[F_CONTINUE] = STR_INIT("continue_final_message"),
	[F_SPECIAL] = STR_INIT("add_special_tokens"),
	[F_MM_KWARGS] = STR_INIT("mm_processor_kwargs"),
	[F_MEDIA_KWARGS] = STR_INIT("media_io_kwargs"),
	[F_KWARGS] = STR_INIT("chat_template_kwargs"),
	[F_DOCUMENTS] = STR_INIT("documents"),
	[F_EFFORT] = STR_INIT("reasoning_effort"),
	[F_TRUNCATE] = STR_INIT("truncate_prompt_tokens"),
	[F_EMBEDS] = STR_INIT("prompt_embeds"),
	[F_PADDING] = STR_INIT("padding"),
};
/* What goes along as it stands. */
static const enum field CHAT_FIELDS[] = { F_MODEL, F_TOOLS, F_TEMPLATE, F_GENERATION, F_CONTINUE, F_SPECIAL, F_MM_KWARGS, F_MEDIA_KWARGS };
static const enum field PROMPT_FIELDS[] = { F_MODEL, F_SPECIAL };

struct fields {
	struct str v[F_COUNT];
}; /* values as written; empty: absent or null */

static void take_field(struct str name, struct str value, struct fields *f)
{
	for (size_t i = 0; i < F_COUNT; i++)
		if (json_quoted_eq(name, NAMES[i]))
			f->v[i] = str_eq(value, STR("null")) ? STR("") : value;
}

static void read_fields(struct str body, struct fields *f)
{
	size_t n = json_scan_members(body, NULL, 0);
	struct json_member *m = must_calloc(n + 1, sizeof(*m));
	json_scan_members(body, m, n);
	for (size_t i = 0; i < n; i++)
		take_field(json_span_str(body, m[i].key), json_span_str(body, m[i].val), f);
	free(m);
}

static void put_fields(struct json_writer *w, const struct fields *f, const enum field *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (f->v[list[i]].n == 0)
			continue;
		json_put_key(w, NAMES[list[i]]);
		json_put_raw(w, f->v[list[i]]);
	}
}

/* Puts the members of the client's chat_template_kwargs; says whether enable_thinking is one of them. */
static bool put_given_kwargs(struct json_writer *w, struct str object)
{
	bool thinking = false;
	size_t n = json_scan_members(object, NULL, 0);
	struct json_member *m = must_calloc(n + 1, sizeof(*m));
	json_scan_members(object, m, n);
	for (size_t i = 0; i < n; i++) {
		struct str key = json_span_str(object, m[i].key);
		thinking |= json_quoted_eq(key, STR("enable_thinking"));
		json_put_quoted_key(w, key);
		json_put_raw(w, json_span_str(object, m[i].val));
	}
	free(m);
	return thinking;
}

static void put_kwargs(struct json_writer *w, const struct fields *f)
{
	/* a worker's merge takes "auto" for "not given" */
	bool effort = f->v[F_EFFORT].n && !json_quoted_eq(f->v[F_EFFORT], STR("auto"));
	if (f->v[F_KWARGS].n == 0 && f->v[F_DOCUMENTS].n == 0 && !effort)
		return;
	json_put_key(w, NAMES[F_KWARGS]);
	json_put_open(w, '{');
	bool thinking = put_given_kwargs(w, f->v[F_KWARGS]);
	if (f->v[F_DOCUMENTS].n) {
		json_put_key(w, NAMES[F_DOCUMENTS]);
		json_put_raw(w, f->v[F_DOCUMENTS]);
	}
	if (effort) {
		json_put_key(w, NAMES[F_EFFORT]);
		json_put_raw(w, f->v[F_EFFORT]);
		if (!thinking) {
			json_put_key(w, STR("enable_thinking"));
			json_put_bool(w, !json_quoted_eq(f->v[F_EFFORT], STR("none")));
		}
	}
	json_put_close(w, '}');
}

static bool is_text_part(const struct json_val *part)
{
	struct str type;
	if (!json_is(part, JSON_OBJECT))
		return true;
	if (!json_str(json_get(part, STR("type")), &type))
		return json_get(part, STR("text")) != NULL;
	return str_eq(type, STR("text")) || str_eq(type, STR("input_text")) || str_eq(type, STR("output_text")) ||
	       str_eq(type, STR("refusal")) || str_eq(type, STR("thinking"));
}

/* Images and the like: the answer of /tokenize names no content hashes. */
static bool only_text(const struct json_val *messages)
{
	for (struct json_iter m = json_each(messages); json_next(&m);)
		for (struct json_iter part = json_each(json_get(m.val, STR("content"))); json_next(&part);)
			if (!is_text_part(part.val))
				return false;
	return true;
}

/* A chat request's reasoning_content is read as reasoning; /tokenize would drop it. */
static const struct json_val *old_reasoning(const struct json_val *message)
{
	const struct json_val *v = json_get(message, STR("reasoning_content"));
	return json_absent(v) || !json_absent(json_get(message, STR("reasoning"))) ? NULL : v;
}

static bool any_old_reasoning(const struct json_val *messages)
{
	for (struct json_iter m = json_each(messages); json_next(&m);)
		if (old_reasoning(m.val))
			return true;
	return false;
}

static void put_message(struct json_writer *w, const struct json_val *message)
{
	const struct json_val *reasoning = old_reasoning(message);
	if (!reasoning) {
		json_put_val(w, message);
		return;
	}
	json_put_open(w, '{');
	for (struct json_iter member = json_each(message); json_next(&member);) {
		json_put_key(w, member.key);
		json_put_val(w, member.val);
	}
	json_put_key(w, STR("reasoning"));
	json_put_val(w, reasoning);
	json_put_close(w, '}');
}

static enum err put_messages(struct json_writer *w, struct str text)
{
	struct json_doc *d;
	if (json_parse(text, text.n, &d) != ERR_OK)
		return ERR_UNSUPPORTED;
	const struct json_val *messages = json_root(d);
	bool ok = only_text(messages);
	json_put_key(w, NAMES[F_MESSAGES]);
	if (any_old_reasoning(messages)) {
		json_put_open(w, '[');
		for (struct json_iter m = json_each(messages); json_next(&m);)
			put_message(w, m.val);
		json_put_close(w, ']');
	} else {
		json_put_raw(w, text);
	}
	json_free(d);
	return ok ? ERR_OK : ERR_UNSUPPORTED;
}

/* "text" or ["text"]: the string as written; empty for other forms. */
static struct str single_string(struct str prompt)
{
	if (prompt.n > 2 && prompt.p[0] == '[') {
		prompt = str_trim(str_sub(prompt, 1, prompt.n - 2));
		struct json_doc *d;
		if (prompt.n == 0 || prompt.p[0] != '"' || json_parse(prompt, prompt.n, &d) != ERR_OK)
			return STR("");
		json_free(d);
	}
	return prompt.n >= 2 && prompt.p[0] == '"' ? prompt : STR("");
}

/* As the completion or chat that it is: of another default, and without what only a chat request's class knows. False: it is neither. */
static bool from_embeddings(struct fields *f)
{
	bool chat = f->v[F_MESSAGES].n > 0;
	if (chat == (f->v[F_INPUT].n > 0) || f->v[F_PADDING].n)
		return false;
	f->v[F_PROMPT] = f->v[F_INPUT];
	f->v[F_TOOLS] = f->v[F_DOCUMENTS] = f->v[F_EFFORT] = STR("");
	if (!f->v[F_GENERATION].n)
		f->v[F_GENERATION] = STR("false");
	return true;
}

static enum err put_tokenize(struct buf *b, enum text_form form, struct str body)
{
	struct fields f = { 0 };
	struct json_writer w = json_writer(b);
	if (form == TEXT_RESPONSES || form == TEXT_MESSAGES || form == TEXT_SCORE)
		return ERR_UNSUPPORTED;
	read_fields(body, &f);
	if (f.v[F_TRUNCATE].n || f.v[F_EMBEDS].n || (form == TEXT_EMBEDDINGS && !from_embeddings(&f)))
		return ERR_UNSUPPORTED;
	json_put_open(&w, '{');
	if (form == TEXT_CHAT || (form == TEXT_EMBEDDINGS && f.v[F_MESSAGES].n)) {
		if (f.v[F_MESSAGES].n == 0)
			return ERR_UNSUPPORTED;
		TRY(put_messages(&w, f.v[F_MESSAGES]));
		put_fields(&w, &f, CHAT_FIELDS, ARRAY_LEN(CHAT_FIELDS));
		put_kwargs(&w, &f);
	} else {
		struct str prompt = single_string(f.v[F_PROMPT]);
		if (prompt.n == 0)
			return ERR_UNSUPPORTED;
		put_fields(&w, &f, PROMPT_FIELDS, ARRAY_LEN(PROMPT_FIELDS));
		json_put_key(&w, NAMES[F_PROMPT]);
		json_put_raw(&w, prompt);
	}
	json_put_close(&w, '}');
	return json_writer_done(&w);
}

enum err text_put_ask(struct buf *b, enum text_form form, enum text_call call, struct str body)
{
	if (call == TEXT_TOKENIZE)
		return put_tokenize(b, form, body);
	return text_has_render(form) ? put_render(b, body) : ERR_UNSUPPORTED;
}
