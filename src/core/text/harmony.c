/* harmony.c: messages -> pieces. Reasoning that came before the last final answer is left out, as the worker leaves it out; headers of
 * tool calls have the older of their two orders, into which the worker rewrites them. */
#include "text/harmony.h"

#include <string.h>

#include "base/vec.h"
#include "text/day.h"
#include "text/harmony_priv.h"

enum { CONFIG_MAX_BYTES = 64 << 20 };

/* The special tokens that are written here, by their ids. */
static const struct special { struct str name; uint32_t id; } START = { STR_INIT("<|start|>"), 200006 }, CHANNEL = { STR_INIT("<|channel|>"), 200005 },
	MESSAGE = { STR_INIT("<|message|>"), 200008 }, END = { STR_INIT("<|end|>"), 200007 }, CALL = { STR_INIT("<|call|>"), 200012 };

void text_pieces_init(struct text_pieces *x, size_t max_bytes)
{
	*x = (struct text_pieces){ 0 };
	buf_init(&x->text, max_bytes);
}

void text_pieces_clear(struct text_pieces *x)
{
	buf_clear(&x->text);
	x->n = 0;
}

void text_pieces_done(struct text_pieces *x)
{
	buf_done(&x->text);
	VEC_FREE(x);
}

/* ---- whose */

bool text_harmony_is(struct str model_config)
{
	struct json_doc *d;
	struct str type;
	if (!model_config.n || json_parse(model_config, CONFIG_MAX_BYTES, &d) != ERR_OK)
		return false;
	bool is = json_str(json_get(json_root(d), STR("model_type")), &type) && str_eq(type, STR("gpt_oss"));
	json_free(d);
	return is;
}

bool text_harmony_fits(const struct tok *t)
{
	const struct special *const all[] = { &START, &CHANNEL, &MESSAGE, &END, &CALL };
	uint32_t id;
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		if (!tok_id_of(t, all[i]->name, &id) || id != all[i]->id)
			return false;
	return str_eq(str_of(tok_scheme_name(t)), STR("o200k"));
}

/* No template: merged. A trial of an effort that it does not know raises: no thinking is the low effort. */
struct text_convert_opts text_harmony_convert_opts(bool has_template)
{
	return (struct text_convert_opts){ .inline_system = has_template ? TEXT_INLINE_UNKNOWN : TEXT_INLINE_MERGED, .disabled_effort = STR("low") };
}

/* ---- what both bodies say */

enum err text_harmony_effort(struct text_harmony_shape *h, const struct json_val *v)
{
	h->effort = STR("medium");
	if (json_absent(v))
		return ERR_OK;
	if (json_str(v, &h->effort) && (str_eq(h->effort, STR("low")) || str_eq(h->effort, STR("medium")) || str_eq(h->effort, STR("high"))))
		return ERR_OK;
	return text_shape_refuse(&h->s, "reasoning_effort_form");
}

/* A name that spells a special token makes the worker fail. */
enum err text_harmony_name(struct text_harmony_shape *h, const struct json_val *v, struct str *ret_name)
{
	if (!json_str(v, ret_name))
		return text_shape_refuse(&h->s, "tool_call_form");
	return str_find(*ret_name, STR("<|")) == SIZE_MAX ? ERR_OK : text_shape_refuse(&h->s, "special_token_in_name");
}

static char *add_to(char *at, struct str s)
{
	if (s.n)
		memcpy(at, s.p, s.n);
	return at + s.n;
}

struct str text_harmony_joined(struct text_harmony_shape *h, const struct json_val *parts, struct str sep)
{
	struct str text = { 0 };
	size_t n = 0, more = 0;
	for (struct json_iter it = json_each(parts); json_next(&it);)
		n += (json_str(json_get(it.val, STR("text")), &text) ? text.n : 0) + sep.n;
	char *p = arena_alloc(h->s.a, n + 1, 1), *at = p;
	for (struct json_iter it = json_each(parts); json_next(&it);) {
		if (more++)
			at = add_to(at, sep);
		if (json_str(json_get(it.val, STR("text")), &text))
			at = add_to(at, text);
	}
	return str_from(p, (size_t)(at - p));
}

/* ---- pieces */

static enum err put_special(struct text_pieces *x, struct special token)
{
	TRY(buf_add(&x->text, token.name));
	VEC_PUSH(x, (struct text_piece){ .end = x->text.n, .special = token.id });
	return ERR_OK;
}

static enum err put(struct text_pieces *x, struct str s)
{
	if (s.n == 0)
		return ERR_OK;
	TRY(buf_add(&x->text, s));
	VEC_PUSH(x, (struct text_piece){ .end = x->text.n });
	return ERR_OK;
}

/* What was added to the text since the last piece is a piece. */
static void close_piece(struct text_pieces *x)
{
	if (x->text.n > (x->n ? x->p[x->n - 1].end : 0))
		VEC_PUSH(x, (struct text_piece){ .end = x->text.n });
}

static enum err put_system(const struct text_harmony_shape *h, int64_t now_s, struct text_pieces *x)
{
	struct jinja_time t = text_day_of(now_s);
	TRY(put_special(x, START));
	TRY(put(x, STR("system")));
	TRY(put_special(x, MESSAGE));
	TRY(buf_printf(&x->text,
		"You are ChatGPT, a large language model trained by OpenAI.\nKnowledge cutoff: 2024-06\nCurrent date: %04d-%02d-%02d\n\nReasoning: %.*s\n\n"
		"# Valid channels: analysis, commentary, final. Channel must be included for every message.",
		t.year, t.month, t.day, STR_ARG(h->effort)));
	if (h->tools.type == JINJA_LIST)
		TRY(buf_add(&x->text, STR("\nCalls to these tools must go to the commentary channel: 'functions'.")));
	close_piece(x);
	return put_special(x, END);
}

static enum err put_developer(struct text_pieces *x, const struct str *instructions, const struct jinja_val *tools)
{
	TRY(put_special(x, START));
	TRY(put(x, STR("developer")));
	TRY(put_special(x, MESSAGE));
	if (instructions) {
		TRY(buf_add(&x->text, STR("# Instructions\n\n")));
		TRY(buf_add(&x->text, *instructions));
	}
	if (tools) {
		if (instructions)
			TRY(buf_add(&x->text, STR("\n\n")));
		TRY(text_harmony_put_tools(&x->text, tools));
	}
	close_piece(x);
	return put_special(x, END);
}

static enum err put_channel(const struct text_turn *t, struct text_pieces *x)
{
	static const struct str NAMES[] = { [TEXT_TURN_ANALYSIS] = STR_INIT("analysis"), [TEXT_TURN_COMMENTARY] = STR_INIT("commentary"), [TEXT_TURN_FINAL] = STR_INIT("final") };
	if (t->channel == TEXT_TURN_PLAIN)
		return ERR_OK;
	TRY(put_special(x, CHANNEL));
	return put(x, t->call ? STR("commentary json") : NAMES[t->channel]);
}

static enum err put_header(const struct text_turn *t, struct text_pieces *x)
{
	TRY(put_special(x, START));
	if (t->call)
		TRY(buf_add(&x->text, STR("assistant to=functions.")));
	else if (t->from == TEXT_TURN_TOOL)
		TRY(buf_add(&x->text, STR("functions.")));
	else
		TRY(buf_add(&x->text, t->from == TEXT_TURN_USER ? STR("user") : STR("assistant")));
	TRY(buf_add(&x->text, t->name));
	close_piece(x);
	TRY(put_channel(t, x));
	if (t->from == TEXT_TURN_TOOL)
		TRY(put(x, STR(" to=assistant")));
	return put_special(x, MESSAGE);
}

static enum err put_turn(const struct text_turn *t, struct text_pieces *x)
{
	struct str text;
	if (t->from == TEXT_TURN_DEVELOPER)
		return put_developer(x, &t->text, NULL);
	TRY(put_header(t, x));
	TRY(put(x, t->text));
	for (struct json_iter it = json_each(t->parts); json_next(&it);)
		if (json_str(json_get(it.val, STR("text")), &text))
			TRY(put(x, text));
	return put_special(x, t->call ? CALL : END);
}

/* ---- the whole */

static size_t last_final(const struct text_harmony_shape *h)
{
	size_t i = h->n;
	while (i > 0 && h->p[i - 1].channel != TEXT_TURN_FINAL)
		i--;
	return i;
}

static enum err put_all(const struct text_harmony_shape *h, int64_t now_s, struct text_pieces *x)
{
	bool tools = h->tools.type == JINJA_LIST;
	size_t last = last_final(h);
	TRY(put_system(h, now_s, x));
	if (h->instructions.n || tools)
		TRY(put_developer(x, h->has_instructions ? &h->instructions : NULL, tools ? &h->tools : NULL));
	for (size_t i = 0; i < h->n; i++)
		if (h->p[i].channel != TEXT_TURN_ANALYSIS || i + 1 > last)
			TRY(put_turn(&h->p[i], x));
	TRY(put_special(x, START));
	return put(x, STR("assistant"));
}

enum err text_harmony_render(const struct text_chat_job *job, struct text_pieces *out, const char **ret_why)
{
	struct text_harmony_shape h = { .s = { .a = job->arena, .known_version = true, .why = "too_long" }, .tools = JINJA_V_NONE };
	enum err e = ERR_OK;
	text_pieces_clear(out);
	if (text_day_is_near_its_end(job->now_s))
		e = text_shape_refuse(&h.s, "midnight");
	if (e == ERR_OK)
		e = job->from_responses ? text_harmony_responses(&h, job->body) : text_harmony_chat(&h, job->body);
	if (e == ERR_OK) {
		e = put_all(&h, job->now_s, out);
		h.s.why = e == ERR_UNSUPPORTED ? "tool_default_number" : "too_long";
	}
	if (e == ERR_OK && arena_over(job->arena))
		e = text_shape_refuse(&h.s, "too_much_memory");
	VEC_FREE(&h);
	json_free(h.tools_doc);
	if (e != ERR_OK)
		*ret_why = h.s.why;
	return e;
}
