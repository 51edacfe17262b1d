/* chat_probe.c: the worker's own trials of a template, repeated. */
#include "text/chat_probe.h"

enum { PROBE_MAX_BYTES = 16 << 20, NOON_S = 12 * 3600 };

/* ---- may a system message stand between others? */

static struct jinja_val probe_messages(struct arena *a)
{
	struct jinja_val *p = arena_new(a, struct jinja_val, 4);
	for (size_t i = 0; i < 4; i++) {
		p[i] = jinja_dict_new(a, 2);
		jinja_dict_put(a, p[i], jinja_str(STR("role")), jinja_str(i % 2 ? STR("user") : STR("system")));
		jinja_dict_put(a, p[i], jinja_str(STR("content")), jinja_str(STR("t")));
	}
	return jinja_list_of(a, p, 4);
}

static enum text_inline_system probe_render(const struct jinja_template *t)
{
	struct arena a;
	struct buf out;
	struct jinja_fault fault;
	if (jinja_uses_clock(t))
		return TEXT_INLINE_UNKNOWN;
	arena_init(&a, PROBE_MAX_BYTES);
	buf_init(&out, PROBE_MAX_BYTES);
	struct jinja_val vars = jinja_dict_new(&a, 2);
	struct jinja_render_opts o = { .vars = &vars, .day_only = true };
	jinja_dict_put(&a, vars, jinja_str(STR("messages")), probe_messages(&a));
	jinja_dict_put(&a, vars, jinja_str(STR("add_generation_prompt")), jinja_bool(false));
	enum err e = jinja_render(t, &o, &a, &out, &fault);
	buf_done(&out);
	arena_done(&a);
	return e == ERR_OK ? TEXT_INLINE_STAYS : e == ERR_BAD_REQUEST ? TEXT_INLINE_MERGED : TEXT_INLINE_UNKNOWN;
}

static bool opens_generation(struct str s)
{
	while (s.n && (s.p[0] == '-' || s.p[0] == '+' || s.p[0] == ' ' || s.p[0] == '\n' || s.p[0] == '\t'))
		s = str_skip(s, 1);
	return str_starts(s, STR("generation")) && s.n > 10 && (s.p[10] == ' ' || s.p[10] == '-' || s.p[10] == '%');
}

static bool has_generation(struct str source)
{
	for (size_t at; (at = str_find(source, STR("{%"))) != SIZE_MAX;) {
		source = str_skip(source, at + 2);
		if (opens_generation(source))
			return true;
	}
	return false;
}

/* The worker tries without the tag `generation`: a template that has it does not even compile there. */
enum text_inline_system text_probe_inline(const struct jinja_template *t, struct str source)
{
	if (!has_generation(source))
		return probe_render(t);
	bool sure = str_find(source, STR("{#")) == SIZE_MAX && str_find(source, STR("raw")) == SIZE_MAX;
	return sure ? TEXT_INLINE_MERGED : TEXT_INLINE_UNKNOWN;
}

/* ---- which effort stands for no thinking? */

static enum err render(const struct text_chat *c, struct str effort, struct buf *out)
{
	struct arena a;
	struct buf body;
	struct json_doc *d;
	bool special;
	const char *why;
	buf_init(&body, 256);
	buf_init(out, PROBE_MAX_BYTES);
	enum err e = buf_printf(&body, "{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}],\"reasoning_effort\":\"%.*s\"}", STR_ARG(effort));
	if (e == ERR_OK)
		e = json_parse(buf_str(&body), body.n, &d);
	if (e == ERR_OK) {
		arena_init(&a, PROBE_MAX_BYTES);
		e = text_chat_render(c, &(struct text_chat_job){ .body = json_root(d), .now_s = NOON_S, .arena = &a }, out, &special, &why);
		arena_done(&a);
		json_free(d);
	}
	buf_done(&body);
	return e;
}

/* Is `none` the same as that effort? Not OK: nobody knows. */
static enum err same_as(const struct text_chat *c, struct str effort, struct str none, bool *ret_same)
{
	struct buf out;
	enum err e = render(c, effort, &out);
	*ret_same = e == ERR_OK && str_eq(buf_str(&out), none);
	buf_done(&out);
	return e == ERR_BAD_REQUEST ? ERR_OK : e;
}

static struct str effort_for(const struct text_chat *c, struct str none)
{
	static const struct str EFFORTS[] = { STR_INIT("low"), STR_INIT("medium"), STR_INIT("high"), STR_INIT("xhigh"), STR_INIT("max") };
	for (size_t i = 0; i < ARRAY_LEN(EFFORTS); i++) {
		bool same;
		if (same_as(c, EFFORTS[i], none, &same) != ERR_OK)
			return STR("");
		if (same)
			return STR("low");
	}
	return STR("none");
}

struct str text_probe_disabled_effort(const struct text_chat *c)
{
	struct buf none;
	enum err e = render(c, STR("none"), &none);
	struct str effort = e == ERR_OK ? effort_for(c, buf_str(&none)) : e == ERR_BAD_REQUEST ? STR("low") : STR("");
	buf_done(&none);
	return effort;
}
