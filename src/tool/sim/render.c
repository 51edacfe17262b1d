#include "sim/render.h"

#include <stdio.h>

#include "base/hash.h"

enum { MAX_TEXT = 64 << 20 };

struct image {
	struct str hash;
	uint32_t n_tok;
};

struct render {
	struct buf text;
	VEC(struct image) images;
	struct arena *a;
	enum err e;
};

static void put(struct render *r, struct str s)
{
	if (r->e == ERR_OK)
		r->e = buf_add(&r->text, s);
}

/* JSON written anew, so that a client's spacing does not matter (a real template prints parsed values too). The depth
 * is bounded by the parser. */
static void put_value(struct json_writer *w, const struct json_val *v)
{
	struct str s;
	bool b;
	if (json_str(v, &s)) {
		json_put_str(w, s);
	} else if (json_bool(v, &b)) {
		json_put_bool(w, b);
	} else if (json_number_text(v, &s)) {
		json_put_raw(w, s);
	} else if (json_is(v, JSON_ARRAY) || json_is(v, JSON_OBJECT)) {
		bool object = json_is(v, JSON_OBJECT);
		json_put_open(w, object ? '{' : '[');
		for (struct json_iter it = json_each(v); json_next(&it);) {
			if (object)
				json_put_key(w, it.key);
			put_value(w, it.val);
		}
		json_put_close(w, object ? '}' : ']');
	} else {
		json_put_null(w);
	}
}

static void put_json(struct render *r, const struct json_val *v)
{
	struct json_writer w = json_writer(&r->text);
	put_value(&w, v);
	if (r->e == ERR_OK)
		r->e = json_writer_done(&w);
}

static bool present(const struct json_val *v) { return v && !json_is(v, JSON_NULL); }

static void put_setting(struct render *r, struct str name, const struct json_val *v)
{
	if (!present(v))
		return;
	put(r, name);
	put(r, STR("="));
	put_json(r, v);
	put(r, STR("\n"));
}

static const struct json_val *either(const struct json_val *a, const struct json_val *b) { return present(a) ? a : b; }

/* What a template would be told. The same two members may stand beside or inside the kwargs. */
static void put_settings(struct render *r, const struct json_val *body)
{
	static const struct str named[] = { STR_INIT("documents"), STR_INIT("reasoning_effort") };
	const struct json_val *kwargs = json_get(body, STR("chat_template_kwargs"));
	size_t mark = r->text.n;
	put(r, STR("<|im_start|>settings\n"));
	size_t empty = r->text.n;
	put_setting(r, STR("template"), json_get(body, STR("chat_template")));
	for (size_t i = 0; i < ARRAY_LEN(named); i++)
		put_setting(r, named[i], either(json_get(kwargs, named[i]), json_get(body, named[i])));
	for (struct json_iter it = json_each(kwargs); json_next(&it);)
		if (!str_eq(it.key, named[0]) && !str_eq(it.key, named[1]))
			put_setting(r, it.key, it.val);
	if (r->text.n == empty)
		r->text.n = mark; /* nothing said: no such message */
	else
		put(r, STR("<|im_end|>\n"));
}

static void put_tools(struct render *r, const struct json_val *tools)
{
	if (!json_len(tools))
		return;
	put(r, STR("<|im_start|>tools\n"));
	for (struct json_iter it = json_each(tools); json_next(&it);) {
		put_json(r, it.val);
		put(r, STR("\n"));
	}
	put(r, STR("<|im_end|>\n"));
}

/* An image is as many pads as its URL's digest says: 16, 32, 48 or 64. */
static void put_image(struct render *r, struct str url)
{
	char hex[65];
	for (unsigned i = 0; i < 4; i++)
		snprintf(hex + i * 16, 17, "%016llx", (unsigned long long)hash_str(url, i + 1));
	uint32_t n = 16 * (1 + (uint32_t)(hash_str(url, 1) & 3));
	VEC_PUSH(&r->images, (struct image){ arena_str(r->a, str_from(hex, 64)), n });
	put(r, STR("<|vision_start|>"));
	for (uint32_t i = 0; i < n; i++)
		put(r, STR("<|image_pad|>"));
	put(r, STR("<|vision_end|>"));
}

static void put_part(struct render *r, const struct json_val *part, bool *first)
{
	struct str s;
	if (json_str(part, &s) || json_str(json_get(part, STR("text")), &s)) {
		if (!*first)
			put(r, STR("\n"));
		*first = false;
		put(r, s);
		return;
	}
	const struct json_val *url = json_get(part, STR("image_url"));
	if (json_str(url, &s) || json_str(json_get(url, STR("url")), &s) ||
		json_str(json_get(json_get(part, STR("source")), STR("data")), &s))
		put_image(r, s);
	else if (json_is(part, JSON_OBJECT))
		put_json(r, part);
}

static void put_content(struct render *r, const struct json_val *content)
{
	struct str s;
	bool first = true;
	if (json_str(content, &s)) {
		put(r, s);
		return;
	}
	for (struct json_iter it = json_each(content); json_next(&it);)
		put_part(r, it.val, &first);
}

static void open_message(struct render *r, struct str role)
{
	put(r, STR("<|im_start|>"));
	put(r, role);
	put(r, STR("\n"));
}

static void put_message(struct render *r, const struct json_val *m, bool closed)
{
	struct str role = STR("user"), s;
	(void)json_str(json_get(m, STR("role")), &role);
	open_message(r, role);
	put_content(r, json_get(m, STR("content")));
	const struct json_val *calls = json_get(m, STR("tool_calls"));
	if (json_len(calls))
		put_json(r, calls);
	if (json_str(json_get(m, STR("tool_call_id")), &s)) {
		put(r, STR("\n"));
		put(r, s);
	}
	if (closed)
		put(r, STR("<|im_end|>\n"));
}

static void put_messages(struct render *r, const struct json_val *messages, bool last_open)
{
	size_t left = json_len(messages);
	for (struct json_iter it = json_each(messages); json_next(&it);)
		put_message(r, it.val, --left || !last_open);
}

/* Tokens, and the images where their pads lie. */
static enum err finish(struct sim_vocab *v, struct render *r, struct sim_prompt *out)
{
	if (r->e == ERR_OK)
		sim_tokenize(v, buf_str(&r->text), &out->tok);
	size_t image = 0;
	for (uint32_t i = 0; i < out->tok.n && image < r->images.n; i++) {
		if (out->tok.p[i] != SIM_TOK_IMAGE_START)
			continue;
		struct image *im = &r->images.p[image++];
		VEC_PUSH(&out->mm, (struct sim_mm){ im->hash, i + 1, im->n_tok });
		i += im->n_tok;
	}
	VEC_FREE(&r->images);
	buf_done(&r->text);
	return r->e;
}

static struct render start(struct arena *a)
{
	struct render r = { .a = a };
	buf_init(&r.text, MAX_TEXT);
	return r;
}

enum err sim_render_chat(struct sim_vocab *v, const struct json_val *body, struct arena *a, struct sim_prompt *out)
{
	struct render r = start(a);
	bool generation = true;
	(void)json_bool(json_get(body, STR("add_generation_prompt")), &generation);
	bool open = json_true(json_get(body, STR("continue_final_message")));
	put_settings(&r, body);
	put_tools(&r, json_get(body, STR("tools")));
	put_messages(&r, json_get(body, STR("messages")), open);
	if (generation && !open)
		open_message(&r, STR("assistant"));
	return finish(v, &r, out);
}

void sim_render_text(struct sim_vocab *v, struct str text, struct sim_prompt *out)
{
	out->text = text;
	sim_tokenize(v, text, &out->tok);
}

static enum err render_with_system(
	struct sim_vocab *v, struct render *r, const struct json_val *body, const struct json_val *system, struct sim_prompt *out)
{
	put_tools(r, json_get(body, STR("tools")));
	if (present(system)) {
		open_message(r, STR("system"));
		put_content(r, system);
		put(r, STR("<|im_end|>\n"));
	}
	const struct json_val *input = json_get(body, STR("input"));
	struct str text;
	if (json_str(input, &text)) {
		open_message(r, STR("user"));
		put(r, text);
		put(r, STR("<|im_end|>\n"));
	}
	put_messages(r, json_is(input, JSON_ARRAY) ? input : json_get(body, STR("messages")), false);
	open_message(r, STR("assistant"));
	return finish(v, r, out);
}

enum err sim_render_responses(struct sim_vocab *v, const struct json_val *body, struct arena *a, struct sim_prompt *out)
{
	struct render r = start(a);
	return render_with_system(v, &r, body, json_get(body, STR("instructions")), out);
}

enum err sim_render_messages(struct sim_vocab *v, const struct json_val *body, struct arena *a, struct sim_prompt *out)
{
	struct render r = start(a);
	return render_with_system(v, &r, body, json_get(body, STR("system")), out);
}

void sim_prompt_done(struct sim_prompt *p)
{
	VEC_FREE(&p->tok);
	VEC_FREE(&p->mm);
}
