/* chat.c: a model's templates, the variables of a request, the rendering, and the cut for a message to be continued. */
#include "text/chat.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/must.h"
#include "base/vec.h"
#include "text/chat_probe.h"
#include "text/chat_tool.h"
#include "text/day.h"

enum { CONFIG_MAX_BYTES = 64 << 20, KWARGS_MAX = 256 };
/* A request's own template: hundreds of turns pass, and what is hostile ends within a second or so. */
enum { OWN_MAX_BYTES = 64 << 10, OWN_MAX_STEPS = 500000, OWN_MAX_OUTPUT_BYTES = 8 << 20, OWN_MAX_MEMORY_BYTES = 64 << 20 };

#define CONTINUE_TAG STR("CONTINUE_FINAL_MESSAGE_TAG ")   /* what transformers appends to the text that is to be continued */

struct template {
	struct jinja_template *jinja;
	bool developer;              /* its text names the developer's role */
	bool content;                /* ... and the word content */
	enum text_inline_system inline_system;
	const char *why;             /* static: it cannot be used; NULL: it can */
};

struct special {
	struct str name, text;
};

enum { N_SPECIALS = 7 };
struct text_chat {
	struct template plain, tools;   /* tools: when the request has tools; may be the same text compiled twice */
	bool named;                     /* templates with names: a request may ask for one by its name */
	bool known_version;
	bool media_first;               /* its pictures stand before all text, wherever the chat has them */
	struct str disabled_effort;     /* see text_convert_opts */
	VEC(struct special) specials;   /* bos_token … as a template sees them */
	bool told[N_SPECIALS];          /* in the order of SPECIALS: known, be it that there is none */
	VEC(struct str) odd_tokens;     /* names that some loaders hand to templates and others do not: image_token and the like */
};

static const struct str SPECIALS[N_SPECIALS] = { STR_INIT("bos_token"), STR_INIT("eos_token"), STR_INIT("unk_token"), STR_INIT("sep_token"),
	STR_INIT("pad_token"), STR_INIT("cls_token"), STR_INIT("mask_token") };

/* ---- loading */

bool text_chat_knows(struct str engine_version) { return str_eq(engine_version, STR("0.32")) || str_starts(engine_version, STR("0.32.")); }

/* Tokenizer classes that have no special tokens of their own: what the config does not name is not there. */
static bool plain_class(const struct json_val *config)
{
	struct str c;
	if (!json_str(json_get(config, STR("tokenizer_class")), &c))
		return false;
	return str_eq(c, STR("PreTrainedTokenizerFast")) || str_eq(c, STR("PreTrainedTokenizer")) || str_eq(c, STR("TokenizersBackend"));
}

static bool standard_name(struct str name)
{
	for (size_t i = 0; i < ARRAY_LEN(SPECIALS); i++)
		if (str_eq(name, SPECIALS[i]))
			return true;
	return false;
}

static void note_odd_tokens(struct text_chat *c, const struct json_val *object)
{
	for (struct json_iter it = json_each(object); json_next(&it);)
		if (json_is(object, JSON_OBJECT) && str_ends(it.key, STR("_token")) && !standard_name(it.key))
			VEC_PUSH(&c->odd_tokens, str_clone(it.key));
}

/* What the config says about names that a template may use. */
static void note_tokens(struct text_chat *c, const struct json_val *config)
{
	note_odd_tokens(c, config);
	note_odd_tokens(c, json_get(config, STR("extra_special_tokens")));
	note_odd_tokens(c, json_get(config, STR("model_specific_special_tokens")));
	for (size_t i = 0; i < N_SPECIALS; i++) {
		c->told[i] = json_get(config, SPECIALS[i]) != NULL || plain_class(config);
		for (size_t k = 0; k < c->specials.n; k++)
			c->told[i] |= str_eq(c->specials.p[k].name, SPECIALS[i]);
	}
}

static const char *special_fault(const struct text_chat *c, const struct jinja_template *t)
{
	bool odd = jinja_mentions(t, STR("additional_special_tokens")) || jinja_mentions(t, STR("extra_special_tokens"));
	for (size_t i = 0; i < c->odd_tokens.n; i++)
		odd |= jinja_mentions(t, c->odd_tokens.p[i]);
	for (size_t i = 0; i < N_SPECIALS; i++)
		odd |= !c->told[i] && jinja_mentions(t, SPECIALS[i]);
	return odd ? "special_tokens" : NULL;
}

static const char *template_fault(const struct text_chat *c, const struct template *t)
{
	if (!c->known_version && jinja_content_disputed(t->jinja))
		return "content_format";
	return special_fault(c, t->jinja);
}

static enum text_inline_system inline_of(const struct text_chat *c)
{
	enum text_inline_system plain = c->plain.inline_system, tools = c->tools.jinja ? c->tools.inline_system : plain;
	if (plain == TEXT_INLINE_UNKNOWN || tools == TEXT_INLINE_UNKNOWN)
		return TEXT_INLINE_UNKNOWN;
	return plain == TEXT_INLINE_MERGED || tools == TEXT_INLINE_MERGED ? TEXT_INLINE_MERGED : TEXT_INLINE_STAYS;
}

static enum err compile(const struct text_chat *c, struct str source, struct template *ret_t, struct jinja_fault *fault)
{
	TRY(jinja_compile(source, &ret_t->jinja, fault));
	ret_t->developer = str_find(source, STR("\"developer\"")) != SIZE_MAX || str_find(source, STR("'developer'")) != SIZE_MAX;
	ret_t->content = str_find(source, STR("content")) != SIZE_MAX;
	ret_t->why = template_fault(c, ret_t);
	return ERR_OK;
}

static enum err load_template(const struct text_chat *c, struct str source, struct template *ret_t, struct jinja_fault *fault)
{
	TRY(compile(c, source, ret_t, fault));
	ret_t->inline_system = text_probe_inline(ret_t->jinja, source);
	return ERR_OK;
}

static void load_specials(struct text_chat *c, const struct tok *t)
{
	for (size_t i = 0; i < ARRAY_LEN(SPECIALS); i++) {
		struct str text;
		if (tok_special_text(t, SPECIALS[i], &text))
			VEC_PUSH(&c->specials, (struct special){ SPECIALS[i], str_clone(text) });
	}
}

/* The two texts: for requests without and with tools. Empty: none. */
struct sources {
	struct str plain, tools;
};

/* chat_template: a text, or a list of {name, template}. */
static enum err config_sources(const struct json_val *v, struct sources *ret_s)
{
	struct str name, text;
	*ret_s = (struct sources){ 0 };
	if (json_str(v, &text)) {
		*ret_s = (struct sources){ text, text };
		return ERR_OK;
	}
	for (struct json_iter it = json_each(v); json_next(&it);) {
		if (!json_str(json_get(it.val, STR("name")), &name) || !json_str(json_get(it.val, STR("template")), &text))
			return ERR_UNSUPPORTED;
		if (str_eq(name, STR("default")))
			ret_s->plain = text;
		if (str_eq(name, STR("tool_use")))
			ret_s->tools = text;
	}
	if (!ret_s->tools.n)
		ret_s->tools = ret_s->plain;
	return ERR_OK;
}

/* Models whose chats the worker renders by code of its own, whatever template lies there. */
static bool renders_by_code(const struct json_val *model)
{
	static const struct str TYPES[] = { STR_INIT("gpt_oss"), STR_INIT("deepseek_v32"), STR_INIT("deepseek_v4"), STR_INIT("kimi_audio"),
		STR_INIT("kimi_k3"), STR_INIT("inkling"), STR_INIT("terratorch") };
	static const struct str CLASSES[] = { STR_INIT("GptOss"), STR_INIT("DeepseekV32"), STR_INIT("DeepseekV4"), STR_INIT("MoonshotKimia"),
		STR_INIT("KimiK3"), STR_INIT("Inkling"), STR_INIT("Terratorch") };
	struct str s;
	for (size_t i = 0; i < ARRAY_LEN(TYPES); i++)
		if (json_str(json_get(model, STR("model_type")), &s) && str_starts(s, TYPES[i]))
			return true;
	for (struct json_iter it = json_each(json_get(model, STR("architectures"))); json_next(&it);)
		for (size_t i = 0; i < ARRAY_LEN(CLASSES); i++)
			if (json_str(it.val, &s) && str_starts(s, CLASSES[i]))
				return true;
	return false;
}

static bool puts_media_first(const struct json_val *model)
{
	static const struct str TYPES[] = { STR_INIT("blip-2"), STR_INIT("molmo"), STR_INIT("openvla"), STR_INIT("paligemma") };
	struct str s;
	for (size_t i = 0; i < ARRAY_LEN(TYPES); i++)
		if (json_str(json_get(model, STR("model_type")), &s) && str_eq(s, TYPES[i]))
			return true;
	return false;
}

static const char *find_sources(const struct text_chat_files *f, const struct json_val *config, const struct json_val *processor, struct sources *ret_s)
{
	struct str own;
	if (f->more_templates)
		return "several chat template files";
	if (f->template_file.n)
		*ret_s = (struct sources){ f->template_file, f->template_file };
	else if (config_sources(json_get(config, STR("chat_template")), ret_s) != ERR_OK)
		return "a chat_template of another form";
	if (json_str(json_get(processor, STR("chat_template")), &own)) {
		if (ret_s->plain.n && !str_eq(ret_s->plain, own))
			return "the processor's chat template is another than the tokenizer's";
		ret_s->plain = own;
	}
	return ret_s->plain.n ? NULL : "no chat template";
}

/* The JSON files, parsed; NULL: not there. */
struct docs {
	struct json_doc *config, *processor, *model;
};

static const struct json_val *root(const struct json_doc *d) { return d ? json_root(d) : NULL; }

static enum err load(struct text_chat *c, const struct text_chat_files *f, const struct docs *d, char *why, size_t cap)
{
	struct sources s;
	struct jinja_fault fault;
	const struct json_val *config = root(d->config);
	const char *none = find_sources(f, config, root(d->processor), &s);
	c->media_first = puts_media_first(root(d->model));
	c->named = json_is(json_get(config, STR("chat_template")), JSON_ARRAY);
	note_tokens(c, config);
	if (f->other_tokenizer || renders_by_code(root(d->model)))
		none = "the worker renders this model's chats without a template";
	if (none) {
		snprintf(why, cap, "%s", none);
		return ERR_UNSUPPORTED;
	}
	enum err e = load_template(c, s.plain, &c->plain, &fault);
	if (e == ERR_OK && s.tools.n)
		e = load_template(c, s.tools, &c->tools, &fault);
	else
		c->tools.why = "no_template";
	if (e != ERR_OK)
		snprintf(why, cap, "the chat template, line %u: %s", fault.line, fault.text);
	return e == ERR_OK ? ERR_OK : ERR_UNSUPPORTED;
}

static enum err parse_optional(struct str text, const char *name, struct json_doc **ret_doc, char *why, size_t cap)
{
	*ret_doc = NULL;
	enum err e = text.n ? json_parse(text, CONFIG_MAX_BYTES, ret_doc) : ERR_OK;
	if (e != ERR_OK)
		snprintf(why, cap, "%s: %s", name, err_text(e));
	return e == ERR_OK ? ERR_OK : ERR_UNSUPPORTED;
}

bool text_chat_convert_opts(const struct text_chat *c, struct text_convert_opts *ret_o)
{
	*ret_o = (struct text_convert_opts){ .inline_system = inline_of(c), .disabled_effort = c->disabled_effort };
	return c->known_version;
}

enum err text_chat_load(const struct text_chat_files *f, const struct tok *t, char *why, size_t why_cap, struct text_chat **ret_c)
{
	struct docs d = { 0 };
	struct text_chat *c = must_calloc(1, sizeof(*c));
	c->known_version = f->known_version;
	load_specials(c, t);
	enum err e = parse_optional(f->config, "tokenizer_config.json", &d.config, why, why_cap);
	if (e == ERR_OK)
		e = parse_optional(f->processor_template, "chat_template.json", &d.processor, why, why_cap);
	if (e == ERR_OK)
		e = parse_optional(f->model, "config.json", &d.model, why, why_cap);
	if (e == ERR_OK)
		e = load(c, f, &d, why, why_cap);
	if (e == ERR_OK && c->known_version)
		c->disabled_effort = text_probe_disabled_effort(c);
	json_free(d.config);
	json_free(d.processor);
	json_free(d.model);
	if (e == ERR_OK)
		*ret_c = c;
	else
		text_chat_free(c);
	return e;
}

void text_chat_free(struct text_chat *c)
{
	if (!c)
		return;
	jinja_free(c->plain.jinja);
	jinja_free(c->tools.jinja);
	for (size_t i = 0; i < c->specials.n; i++)
		free((void *)(uintptr_t)c->specials.p[i].text.p);
	VEC_FREE(&c->specials);
	for (size_t i = 0; i < c->odd_tokens.n; i++)
		free((void *)(uintptr_t)c->odd_tokens.p[i].p);
	VEC_FREE(&c->odd_tokens);
	free(c);
}

bool text_chat_uses_clock(const struct text_chat *c)
{
	return jinja_uses_clock(c->plain.jinja) || (c->tools.jinja && jinja_uses_clock(c->tools.jinja));
}

/* ---- a request's variables */

struct request {
	const struct text_chat *c;
	const struct template *t;
	const struct template *own;   /* the request's; NULL: the model's */
	struct text_shape shape;
	struct jinja_val vars, messages;
	bool generate, resume, special;
};

static enum err flag(struct request *r, const struct json_val *body, struct str name, bool def, bool *ret_b)
{
	const struct json_val *v = json_get(body, name);
	*ret_b = def;
	return !v || json_bool(v, ret_b) ? ERR_OK : text_shape_refuse(&r->shape, "flag_form");
}

enum err text_shape_odd_members(struct text_shape *s, const struct json_val *body)
{
	static const struct { struct str name; const char *why; } ODD[] = {
		{ STR_INIT("mm_processor_kwargs"), "media" },
		{ STR_INIT("media_io_kwargs"), "media" },
		{ STR_INIT("prompt_embeds"), "embeds" },
	};
	struct str choice;
	for (size_t i = 0; i < ARRAY_LEN(ODD); i++)
		if (!json_absent(json_get(body, ODD[i].name)))
			return text_shape_refuse(s, ODD[i].why);
	if (!json_absent(json_get(json_get(body, STR("kv_transfer_params")), STR("prompt_token_ids"))))
		return text_shape_refuse(s, "ids_in_kv_transfer_params");
	/* a worker's switch decides whether the template sees the tools then */
	if (!json_absent(json_get(body, STR("tools"))) && json_str(json_get(body, STR("tool_choice")), &choice) && str_eq(choice, STR("none")))
		return text_shape_refuse(s, "tool_choice_none");
	return ERR_OK;
}

/* Parameters of the library's own function, and names that a template cannot be given. */
static bool reserved_kwarg(struct str name)
{
	static const struct str NAMES[] = { STR_INIT("conversation"), STR_INIT("messages"), STR_INIT("tools"), STR_INIT("chat_template"),
		STR_INIT("tokenize"), STR_INIT("padding"), STR_INIT("truncation"), STR_INIT("max_length"), STR_INIT("return_tensors"),
		STR_INIT("return_dict"), STR_INIT("return_assistant_tokens_mask"), STR_INIT("tokenizer_kwargs"), STR_INIT("self"),
		STR_INIT("raise_exception"), STR_INIT("strftime_now"), STR_INIT("loop"), STR_INIT("caller"), STR_INIT("super"),
		STR_INIT("varargs"), STR_INIT("kwargs") };
	for (size_t i = 0; i < ARRAY_LEN(NAMES); i++)
		if (str_eq(name, NAMES[i]))
			return true;
	return false;
}

/* Names the worker takes from itself whatever the request says. */
static bool ignored_kwarg(struct str name)
{
	static const struct str NAMES[] = { STR_INIT("add_generation_prompt"), STR_INIT("continue_final_message"), STR_INIT("range"), STR_INIT("dict"),
		STR_INIT("lipsum"), STR_INIT("cycler"), STR_INIT("joiner"), STR_INIT("namespace") };
	for (size_t i = 0; i < ARRAY_LEN(NAMES); i++)
		if (str_eq(name, NAMES[i]))
			return true;
	return false;
}

/* null and "auto" mean: not given. */
static bool unset(const struct json_val *v)
{
	struct str s;
	return json_is(v, JSON_NULL) || (json_str(v, &s) && str_eq(s, STR("auto")));
}

static enum err put_kwargs(struct request *r, const struct json_val *kwargs)
{
	if (json_absent(kwargs))
		return ERR_OK;
	if (!json_is(kwargs, JSON_OBJECT) || json_len(kwargs) > KWARGS_MAX)
		return text_shape_refuse(&r->shape, "kwargs_form");
	for (struct json_iter it = json_each(kwargs); json_next(&it);) {
		const struct json_val *v = json_get(kwargs, it.key);
		struct jinja_val x;
		if (reserved_kwarg(it.key))
			return text_shape_refuse(&r->shape, "reserved_kwarg");
		if (ignored_kwarg(it.key) || unset(v)) {
			if (!r->c->known_version)
				return text_shape_refuse(&r->shape, "version");
			continue;
		}
		TRY(text_shape_value(&r->shape, v, &x));
		text_shape_put(&r->shape, r->vars, arena_str(r->shape.a, it.key), x);
	}
	return ERR_OK;
}

/* reasoning_effort also switches thinking on or off, in workers that do that. */
static enum err put_effort(struct request *r, const struct json_val *body)
{
	static const char *const EFFORTS[] = { "none", "minimal", "low", "medium", "high", "xhigh", "max" };
	const struct json_val *v = json_get(body, STR("reasoning_effort"));
	struct str effort = { 0 };
	bool known = false;
	if (json_absent(v))
		return ERR_OK;
	(void)json_str(v, &effort);
	for (size_t i = 0; i < ARRAY_LEN(EFFORTS); i++)
		known |= str_eq(effort, str_of(EFFORTS[i]));
	if (!known)
		return text_shape_refuse(&r->shape, "reasoning_effort_form");
	if (!r->c->known_version && (jinja_mentions(r->t->jinja, STR("reasoning_effort")) || jinja_mentions(r->t->jinja, STR("enable_thinking"))))
		return text_shape_refuse(&r->shape, "version");
	text_shape_put(&r->shape, r->vars, STR("reasoning_effort"), jinja_str(arena_str(r->shape.a, effort)));
	if (!json_get(json_get(body, STR("chat_template_kwargs")), STR("enable_thinking")))
		text_shape_put(&r->shape, r->vars, STR("enable_thinking"), jinja_bool(!str_eq(effort, STR("none"))));
	return ERR_OK;
}

/* A list of objects; the body's own hold strings only. */
static enum err put_documents(struct request *r, const struct json_val *body)
{
	const struct json_val *own = json_get(body, STR("documents")), *v = own;
	struct jinja_val list = JINJA_V_NONE;
	struct str s;
	if (json_absent(own)) {
		own = NULL;
		v = json_get(json_get(body, STR("chat_template_kwargs")), STR("documents"));
	}
	if (!json_absent(v)) {
		if (!json_is(v, JSON_ARRAY))
			return text_shape_refuse(&r->shape, "documents_form");
		for (struct json_iter it = json_each(v); json_next(&it);) {
			if (!json_is(it.val, JSON_OBJECT))
				return text_shape_refuse(&r->shape, "documents_form");
			for (struct json_iter m = json_each(it.val); own && json_next(&m);)
				if (!json_str(m.val, &s))
					return text_shape_refuse(&r->shape, "documents_form");
		}
		TRY(text_shape_value(&r->shape, v, &list));
	}
	text_shape_put(&r->shape, r->vars, STR("documents"), list);
	return ERR_OK;
}

static enum err read_flags(struct request *r, const struct json_val *body)
{
	TRY(flag(r, body, STR("add_generation_prompt"), true, &r->generate));
	TRY(flag(r, body, STR("continue_final_message"), false, &r->resume));
	TRY(flag(r, body, STR("add_special_tokens"), false, &r->special));
	if (r->resume && !r->c->known_version)
		return text_shape_refuse(&r->shape, "version");
	return r->generate && r->resume ? text_shape_refuse(&r->shape, "continue_and_generate") : ERR_OK;
}

static enum err put_vars(struct request *r, const struct json_val *body)
{
	const struct json_val *tools = json_get(body, STR("tools"));
	struct jinja_val list = JINJA_V_NONE;
	r->vars = jinja_dict_new(r->shape.a, 16);
	for (size_t i = 0; i < r->c->specials.n; i++)
		text_shape_put(&r->shape, r->vars, r->c->specials.p[i].name, jinja_str(r->c->specials.p[i].text));
	TRY(put_kwargs(r, json_get(body, STR("chat_template_kwargs"))));
	TRY(put_effort(r, body));
	TRY(put_documents(r, body));
	if (!json_absent(tools))
		TRY(text_shape_tools(&r->shape, tools, &list));
	text_shape_put(&r->shape, r->vars, STR("tools"), list);
	text_shape_put(&r->shape, r->vars, STR("add_generation_prompt"), jinja_bool(r->generate));
	TRY(text_shape_messages(&r->shape, json_get(body, STR("messages")), &r->messages));
	if (r->shape.developer && !r->t->developer)
		text_shape_no_developer(&r->shape, &r->messages);
	return ERR_OK;
}

/* ---- a message to be continued: its text gets a tag, and the rendered prompt ends where the tag stands */

static struct jinja_val tagged(struct request *r, struct str text)
{
	char *p = arena_alloc(r->shape.a, text.n + CONTINUE_TAG.n + 1, 1);
	if (text.n)
		memcpy(p, text.p, text.n);
	memcpy(p + text.n, CONTINUE_TAG.p, CONTINUE_TAG.n);
	return jinja_str(str_from(p, text.n + CONTINUE_TAG.n));
}

/* The messages were made for this request: changing the last one is changing nobody else's. */
static enum err tag_last(struct request *r, struct str *ret_text)
{
	const struct jinja_val *last = &r->messages.list->p[r->messages.list->n - 1], *content = jinja_dict_get_str(last->dict, STR("content"));
	if (!r->t->content)
		return text_shape_refuse(&r->shape, "continue_without_content");
	if (content->type == JINJA_STR) {
		*ret_text = content->s;
		text_shape_put(&r->shape, *last, STR("content"), tagged(r, content->s));
		return ERR_OK;
	}
	if (content->list->n == 0)
		return text_shape_refuse(&r->shape, "continue_without_content");
	const struct jinja_val *part = &content->list->p[content->list->n - 1];
	*ret_text = jinja_dict_get_str(part->dict, STR("text"))->s;
	text_shape_put(&r->shape, *part, STR("text"), tagged(r, *ret_text));
	return ERR_OK;
}

static size_t find_last(struct str s, struct str needle)
{
	size_t found = SIZE_MAX, from = 0;
	for (size_t at; (at = str_find(str_skip(s, from), needle)) != SIZE_MAX; from += at + 1)
		found = from + at;
	return found;
}

static enum err cut_at_tag(struct request *r, struct str text, struct buf *out, size_t had)
{
	struct str prompt = str_skip(buf_str(out), had), bare = str_sub(CONTINUE_TAG, 0, CONTINUE_TAG.n - 1);
	size_t at = find_last(prompt, bare);
	if (at == SIZE_MAX || str_find(prompt, jinja_strip(text, true, true)) == SIZE_MAX) {
		r->shape.why = "continued_text_not_in_prompt";
		return ERR_BAD_REQUEST;
	}
	struct str kept = str_sub(prompt, 0, at);
	if (!str_starts(str_skip(prompt, at), CONTINUE_TAG))
		kept = jinja_strip(kept, false, true);
	out->n = had + kept.n;
	return ERR_OK;
}

/* ---- rendering */

static enum err render(struct request *r, int64_t now_s, struct buf *out)
{
	struct jinja_render_opts o = { .vars = &r->vars, .now = text_day_of(now_s), .day_only = true, .max_steps = r->own ? OWN_MAX_STEPS : 0,
		.max_output_bytes = r->own ? OWN_MAX_OUTPUT_BYTES : 0 };
	struct jinja_fault fault;
	struct str text = { 0 };
	size_t had = out->n;
	if (jinja_uses_clock(r->t->jinja) && text_day_is_near_its_end(now_s))
		return text_shape_refuse(&r->shape, "midnight");
	if (r->resume)
		TRY(tag_last(r, &text));
	text_shape_put(&r->shape, r->vars, STR("messages"), r->messages);
	enum err e = jinja_render(r->t->jinja, &o, r->shape.a, out, &fault);
	if (e == ERR_OK)
		return r->resume ? cut_at_tag(r, text, out, had) : ERR_OK;
	r->shape.why = e == ERR_BAD_REQUEST ? "template_raised" : e == ERR_LIMIT ? "template_limit" : "template_unsupported";
	return e;
}

/* ---- the whole, once or twice */

static enum err render_as(const struct text_chat *c, const struct text_chat_job *job, struct request *r, struct buf *out)
{
	r->c = c;
	r->t = r->own ? r->own : json_absent(json_get(job->body, STR("tools"))) ? &c->plain : &c->tools;
	r->shape = (struct text_shape){ .a = job->arena, .known_version = c->known_version, .name_first = job->from_responses, .why = r->t->why,
		.media = r->shape.media };
	if (r->t->why)
		return ERR_UNSUPPORTED;
	TRY(text_shape_odd_members(&r->shape, job->body));
	r->shape.parts = jinja_iterates_content(r->t->jinja);
	TRY(read_flags(r, job->body));
	TRY(put_vars(r, job->body));
	if (r->shape.n_media && (r->resume || c->media_first))
		return text_shape_refuse(&r->shape, r->resume ? "continue_with_media" : "media_first");
	return render(r, job->now_s, out);
}

static size_t common(struct str a, struct str b)
{
	size_t n = 0;
	while (n < a.n && n < b.n && a.p[n] == b.p[n])
		n++;
	while (n > 0 && n < a.n && ((uint8_t)a.p[n] & 0xc0) == 0x80)
		n--;
	return n;
}

/* What comes before the media is what stays when they are others. */
static enum err cut_at_media(const struct text_chat *c, const struct text_chat_job *job, struct request *r, struct buf *out, size_t had)
{
	struct buf other;
	job->rest->n_media = r->shape.n_media;
	r->shape.media = TEXT_MEDIA_REPLACED;
	buf_init(&other, out->max);
	enum err e = render_as(c, job, r, &other);
	size_t n = e == ERR_OK ? common(str_skip(buf_str(out), had), buf_str(&other)) : 0;
	job->rest->bytes = out->n - had - n;
	out->n = had + n;
	buf_done(&other);
	return e;
}

static enum err render_whole(const struct text_chat *c, const struct text_chat_job *job, struct request *r, struct buf *out)
{
	size_t had = out->n;
	TRY(render_as(c, job, r, out));
	return r->shape.n_media ? cut_at_media(c, job, r, out, had) : ERR_OK;
}

/* ---- a request's own template */

bool text_chat_has_own(const struct json_val *body)
{
	struct str source;
	const struct json_val *v = json_get(body, STR("chat_template"));
	return !json_absent(v) && !(json_str(v, &source) && source.n == 0);
}

static enum err compile_own(const struct text_chat *c, const struct json_val *v, struct template *ret_t, const char **ret_why)
{
	struct jinja_fault fault;
	struct str source;
	bool odd = !json_str(v, &source) || source.n > OWN_MAX_BYTES || (c->named && str_find(source, STR("{")) == SIZE_MAX);
	*ret_why = c->known_version ? "request_template" : "version";
	return odd || !c->known_version ? ERR_UNSUPPORTED : compile(c, source, ret_t, &fault);
}

/* Compiled for this once: that costs less than what it renders. */
static enum err render_own(const struct text_chat *c, const struct text_chat_job *job, struct request *r, struct buf *out)
{
	struct template own = { 0 };
	size_t max_bytes = job->arena->max_bytes, own_max_bytes = job->arena->used_bytes + OWN_MAX_MEMORY_BYTES;
	enum err e = compile_own(c, json_get(job->body, STR("chat_template")), &own, &r->shape.why);
	if (e != ERR_OK)
		return e;
	r->own = &own;
	job->arena->max_bytes = max_bytes ? MIN(max_bytes, own_max_bytes) : own_max_bytes;
	e = render_whole(c, job, r, out);
	job->arena->max_bytes = max_bytes;
	jinja_free(own.jinja);
	return e;
}

enum err text_chat_render(const struct text_chat *c, const struct text_chat_job *job, struct buf *out, bool *ret_special, const char **ret_why)
{
	struct request r = { .shape.media = job->rest ? TEXT_MEDIA_SEEN : TEXT_MEDIA_REFUSED };
	size_t had = out->n;
	if (job->rest)
		*job->rest = (struct text_chat_rest){ 0 };
	enum err e = text_chat_has_own(job->body) ? render_own(c, job, &r, out) : render_whole(c, job, &r, out);
	if (e != ERR_OK) {
		out->n = had;
		*ret_why = r.shape.why;
		return e;
	}
	*ret_special = r.special;
	return ERR_OK;
}
