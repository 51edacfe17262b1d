/* chat_message.c: messages. Per message the template sees role and content, then, where there are any, tool_calls, reasoning (twice),
 * tool_call_id, name, task and tools; everything else a client sends is dropped. */
#include <string.h>

#include "base/vec.h"
#include "text/chat_tool.h"

#define REPLACEMENT STR("\x02")   /* begins as no template's picture does */
#define BILLING STR("x-anthropic-billing-header")   /* a line that changes with each request; the worker drops it from system texts */

bool text_is_billing(struct str text) { return str_starts(text, BILLING); }

struct part {
	struct str text, media;          /* media: "image" …; empty: text */
	const struct json_val *object;   /* NULL: the content was a string */
};
typedef VEC(struct part) part_vec;

/* Members that make a part more than text, or text of another kind. */
static bool odd_member(struct str key)
{
	static const struct str NAMES[] = {
		STR_INIT("image_url"), STR_INIT("image_pil"), STR_INIT("image_embeds"), STR_INIT("input_image"), STR_INIT("audio_embeds"), STR_INIT("audio_url"),
		STR_INIT("input_audio"), STR_INIT("video_embeds"), STR_INIT("video_url"), STR_INIT("prompt_embeds"), STR_INIT("data"), STR_INIT("file"),
		STR_INIT("tool_reference"), STR_INIT("name"), STR_INIT("uuid"), STR_INIT("thinking"), STR_INIT("closed"), STR_INIT("refusal"),
		STR_INIT("detail"), STR_INIT("prompt_cache_breakpoint"),
	};
	for (size_t i = 0; i < ARRAY_LEN(NAMES); i++)
		if (str_eq(key, NAMES[i]))
			return true;
	return false;
}

enum err text_shape_part(struct text_shape *s, const struct json_val *v, struct str *ret_text)
{
	struct str type;
	if (!json_str(json_get(v, STR("type")), &type))
		return text_shape_refuse(s, "part_form");
	if (!str_eq(type, STR("text")))
		return text_shape_refuse(s, "part_kind");
	if (!json_str(json_get(v, STR("text")), ret_text))
		return text_shape_refuse(s, "part_form");
	for (struct json_iter it = json_each(v); json_next(&it);)
		if (odd_member(it.key))
			return text_shape_refuse(s, "part_kind");
	return ERR_OK;
}

static const struct media { struct str type, member, kind; } MEDIA[] = {
	{ STR_INIT("image_url"), STR_INIT("image_url"), STR_INIT("image") },
	{ STR_INIT("input_image"), STR_INIT("image_url"), STR_INIT("image") },
	{ STR_INIT("image_embeds"), STR_INIT("image_embeds"), STR_INIT("image") },
	{ STR_INIT("audio_url"), STR_INIT("audio_url"), STR_INIT("audio") },
	{ STR_INIT("input_audio"), STR_INIT("input_audio"), STR_INIT("audio") },
	{ STR_INIT("audio_embeds"), STR_INIT("audio_embeds"), STR_INIT("audio") },
	{ STR_INIT("video_url"), STR_INIT("video_url"), STR_INIT("video") },
	{ STR_INIT("video_embeds"), STR_INIT("video_embeds"), STR_INIT("video") },
};

static const struct media *media_of(const struct json_val *v)
{
	struct str type = { 0 };
	(void)json_str(json_get(v, STR("type")), &type);
	for (size_t i = 0; i < ARRAY_LEN(MEDIA); i++)
		if (str_eq(type, MEDIA[i].type))
			return &MEDIA[i];
	return NULL;
}

/* Further members go to the template, or make it media of another kind. */
static enum err media_part(struct text_shape *s, struct str role, const struct json_val *v, const struct media *m)
{
	if (str_eq(role, STR("system")) || str_eq(role, STR("developer")))
		return text_shape_refuse(s, "media_in_system");
	for (struct json_iter it = json_each(v); json_next(&it);)
		if (!str_eq(it.key, STR("type")) && !str_eq(it.key, m->member) && !str_eq(it.key, STR("uuid")) && !str_eq(it.key, STR("detail")))
			return text_shape_refuse(s, "part_kind");
	s->n_media++;
	return ERR_OK;
}

static enum err read_part(struct text_shape *s, struct str role, const struct json_val *v, struct part *ret_p)
{
	const struct media *m = s->media == TEXT_MEDIA_REFUSED ? NULL : media_of(v);
	*ret_p = (struct part){ .object = v };
	if (!m)
		return text_shape_part(s, v, &ret_p->text);
	ret_p->media = m->kind;
	return media_part(s, role, v, m);
}

static enum err read_parts(struct text_shape *s, struct str role, const struct json_val *content, part_vec *out)
{
	struct part p;
	if (!content)
		return ERR_OK;
	if (json_is(content, JSON_NULL) && str_eq(role, STR("assistant")))
		return ERR_OK;
	if (!json_is(content, JSON_ARRAY))
		return text_shape_refuse(s, "content_form");
	for (struct json_iter it = json_each(content); json_next(&it);) {
		TRY(read_part(s, role, it.val, &p));
		VEC_PUSH(out, p);
	}
	return ERR_OK;
}

/* Newer workers only: the first line of such a text goes, and the part with it when nothing is left. */
static enum err strip_billing(struct text_shape *s, part_vec *parts)
{
	size_t kept = 0;
	for (size_t i = 0; i < parts->n; i++) {
		struct part p = parts->p[i];
		struct str line;
		if (text_is_billing(p.text)) {
			if (!s->known_version)
				return text_shape_refuse(s, "version");
			str_cut(p.text, '\n', &line, &p.text);
			if (p.text.n == 0)
				continue;
		}
		parts->p[kept++] = p;
	}
	parts->n = kept;
	return ERR_OK;
}

/* As text, empty parts leave no line end; in a list (and in a tool's answer made of one) they count. */
static void drop_empty(part_vec *parts)
{
	size_t kept = 0;
	for (size_t i = 0; i < parts->n; i++)
		if (parts->p[i].text.n)
			parts->p[kept++] = parts->p[i];
	parts->n = kept;
}

static char *put(char *at, struct str s)
{
	if (s.n)
		memcpy(at, s.p, s.n);
	return at + s.n;
}

static struct jinja_val joined(struct text_shape *s, const part_vec *parts, struct str sep)
{
	size_t n = 1;
	if (parts->n == 1)
		return jinja_str(parts->p[0].text);
	for (size_t i = 0; i < parts->n; i++)
		n += parts->p[i].text.n + sep.n;
	char *p = arena_alloc(s->a, n, 1), *at = p;
	for (size_t i = 0; i < parts->n; i++) {
		if (i)
			at = put(at, sep);
		at = put(at, parts->p[i].text);
	}
	return jinja_str(str_from(p, (size_t)(at - p)));
}

/* As text, a message's media stand before its text (or among it). By two renderings with unlike beginnings one sees where that is. */
static void stand_in(const struct text_shape *s, part_vec *parts, uint32_t n_media)
{
	if (!n_media)
		return;
	VEC_PUSH(parts, (struct part){ 0 });
	memmove(parts->p + 1, parts->p, (parts->n - 1) * sizeof(*parts->p));
	parts->p[0] = (struct part){ .text = s->media == TEXT_MEDIA_SEEN ? STR("x") : REPLACEMENT };
}

/* {"type": "image"}: where it comes from is not for the template. */
static struct jinja_val listed_media(struct text_shape *s, struct str kind)
{
	bool seen = s->media == TEXT_MEDIA_SEEN;
	struct jinja_val d = jinja_dict_new(s->a, 2);
	text_shape_put(s, d, STR("type"), jinja_str(seen ? kind : STR("text")));
	if (!seen)
		text_shape_put(s, d, STR("text"), jinja_str(REPLACEMENT));
	return d;
}

/* {"type": "text", "text": …} and what else the part had. */
static enum err listed(struct text_shape *s, const part_vec *parts, struct jinja_val *ret_v)
{
	struct jinja_val *p = arena_new(s->a, struct jinja_val, parts->n);
	for (size_t i = 0; i < parts->n; i++) {
		if (parts->p[i].media.n) {
			p[i] = listed_media(s, parts->p[i].media);
			continue;
		}
		p[i] = jinja_dict_new(s->a, 2);
		text_shape_put(s, p[i], STR("type"), jinja_str(STR("text")));
		text_shape_put(s, p[i], STR("text"), jinja_str(parts->p[i].text));
		for (struct json_iter it = json_each(parts->p[i].object); json_next(&it);) {
			struct jinja_val v;
			if (str_eq(it.key, STR("type")) || str_eq(it.key, STR("text")))
				continue;
			if (!s->known_version || json_len(parts->p[i].object) > 64)
				return text_shape_refuse(s, "part_extra_member");
			TRY(text_shape_value(s, json_get(parts->p[i].object, it.key), &v));
			text_shape_put(s, p[i], arena_str(s->a, it.key), v);
		}
	}
	*ret_v = jinja_list_of(s->a, p, parts->n);
	return ERR_OK;
}

static enum err content(struct text_shape *s, struct str role, const struct json_val *v, struct jinja_val *ret_v)
{
	struct part whole = { 0 };
	bool text = json_str(v, &whole.text);
	part_vec parts = text ? (part_vec){ &whole, 1, 1 } : (part_vec){ 0 }; /* mostly text: no memory for that */
	uint32_t had = s->n_media;
	bool tool_parts = s->parts && str_eq(role, STR("tool"));   /* joined by newer workers only, and when all are text */
	if (tool_parts && !s->known_version)
		return text_shape_refuse(s, "version");
	enum err e = text ? ERR_OK : read_parts(s, role, v, &parts);
	if (e == ERR_OK && str_eq(role, STR("system")))
		e = strip_billing(s, &parts);
	if (e == ERR_OK && s->parts && (!tool_parts || s->n_media > had))
		e = listed(s, &parts, ret_v);
	else if (e == ERR_OK) {
		if (!s->parts) {
			drop_empty(&parts);
			stand_in(s, &parts, s->n_media - had);
		}
		*ret_v = joined(s, &parts, STR("\n"));
	}
	if (!text)
		VEC_FREE(&parts);
	return e;
}

/* What a message may have that is for the template. */
enum member { ROLE, CONTENT, TOOL_CALLS, REASONING, REASONING_CONTENT, TOOL_CALL_ID, NAME, TASK, TOOLS, N_MEMBERS };
static const struct str MEMBERS[N_MEMBERS] = { STR_INIT("role"), STR_INIT("content"), STR_INIT("tool_calls"), STR_INIT("reasoning"),
	STR_INIT("reasoning_content"), STR_INIT("tool_call_id"), STR_INIT("name"), STR_INIT("task"), STR_INIT("tools") };
struct members {
	const struct json_val *v[N_MEMBERS];
};

/* Of a member that is there twice the last. */
static struct members members_of(const struct json_val *message)
{
	struct members m = { 0 };
	for (struct json_iter it = json_each(message); json_next(&it);)
		for (size_t i = 0; i < N_MEMBERS; i++)
			if (str_eq(it.key, MEMBERS[i])) {
				m.v[i] = it.val;
				break;
			}
	return m;
}

/* Each is put once. */
static void put_member(struct text_shape *s, struct jinja_val dict, enum member name, struct jinja_val v)
{
	jinja_dict_add(s->a, dict, jinja_str(MEMBERS[name]), v);
}

/* A member that is a string or not there. */
static inline enum err text_member(struct text_shape *s, const struct members *m, enum member name, struct jinja_val dict)
{
	struct str text;
	if (!m->v[name])
		return ERR_OK;
	if (!json_str(m->v[name], &text))
		return text_shape_refuse(s, "message_form");
	put_member(s, dict, name, jinja_str(text));
	return ERR_OK;
}

enum err text_shape_reasoning(
	struct text_shape *s, const struct json_val *newer, const struct json_val *older, const struct json_val **ret_v)
{
	const struct json_val *v = json_absent(newer) ? older : newer;
	if (json_absent(v)) {
		*ret_v = NULL;
		return ERR_OK;
	}
	if (!json_is(v, JSON_STRING))
		return text_shape_refuse(s, "message_form");
	if (!s->known_version)
		return text_shape_refuse(s, "version");
	*ret_v = v;
	return ERR_OK;
}

/* It arrives under both names. */
static enum err reasoning(struct text_shape *s, const struct members *m, struct jinja_val dict)
{
	const struct json_val *v;
	struct str text;
	TRY(text_shape_reasoning(s, m->v[REASONING], m->v[REASONING_CONTENT], &v));
	if (!json_str(v, &text))
		return ERR_OK;
	put_member(s, dict, REASONING, jinja_str(text));
	put_member(s, dict, REASONING_CONTENT, jinja_str(text));
	return ERR_OK;
}

static enum err assistant(struct text_shape *s, const struct members *m, struct jinja_val dict)
{
	struct jinja_val list;
	if (!json_absent(m->v[TOOL_CALLS])) {
		TRY(text_shape_tool_calls(s, m->v[TOOL_CALLS], &list));
		if (list.list->n)
			put_member(s, dict, TOOL_CALLS, list);
		else if (!s->known_version)
			return text_shape_refuse(s, "version");   /* older ones leave the empty list there */
	}
	return reasoning(s, m, dict);
}

static enum err developer(struct text_shape *s, const struct members *m, struct jinja_val dict)
{
	if (!s->known_version)
		return text_shape_refuse(s, "version");
	if (!json_absent(m->v[TOOLS]))
		return text_shape_refuse(s, "developer_tools");
	put_member(s, dict, TOOLS, JINJA_V_NONE);
	s->developer = true;
	return ERR_OK;
}

static enum err message(struct text_shape *s, const struct json_val *v, struct jinja_val *ret_v)
{
	struct members m = members_of(v);
	struct jinja_val dict = jinja_dict_new(s->a, 6), text;
	struct str role;
	if (!json_str(m.v[ROLE], &role))
		return text_shape_refuse(s, "message_form");
	TRY(content(s, role, m.v[CONTENT], &text));
	put_member(s, dict, ROLE, jinja_str(role));
	put_member(s, dict, CONTENT, text);
	if (str_eq(role, STR("assistant")))
		TRY(assistant(s, &m, dict));
	else if (str_eq(role, STR("tool")))
		TRY(text_member(s, &m, TOOL_CALL_ID, dict));
	TRY(text_member(s, &m, NAME, dict));
	if (m.v[TASK] && !s->known_version)
		return text_shape_refuse(s, "version");
	TRY(text_member(s, &m, TASK, dict));
	if (str_eq(role, STR("developer")))
		TRY(developer(s, &m, dict));
	*ret_v = dict;
	return ERR_OK;
}

enum err text_shape_messages(struct text_shape *s, const struct json_val *messages, struct jinja_val *ret_list)
{
	struct jinja_val *p = arena_new(s->a, struct jinja_val, json_len(messages));
	size_t n = 0;
	if (!json_is(messages, JSON_ARRAY) || json_len(messages) == 0)
		return text_shape_refuse(s, "no_messages");
	for (struct json_iter it = json_each(messages); json_next(&it);) {
		TRY(message(s, it.val, &p[n++]));
		if (arena_over(s->a))
			return text_shape_refuse(s, "too_much_memory");
	}
	*ret_list = jinja_list_of(s->a, p, n);
	return ERR_OK;
}

/* ---- the developer's role */

static const struct jinja_val *member(const struct jinja_val *dict, struct str key) { return jinja_dict_get_str(dict->dict, key); }
static bool has_role(const struct jinja_val *dict, struct str role) { return str_eq(member(dict, STR("role"))->s, role); }

/* A system message's text: its parts, with a line end between. */
static struct str text_of(struct text_shape *s, const struct jinja_val *dict)
{
	const struct jinja_val *v = member(dict, STR("content"));
	part_vec parts = { 0 };
	struct jinja_val text;
	if (v->type == JINJA_STR)
		return v->s;
	for (size_t i = 0; i < v->list->n; i++)
		VEC_PUSH(&parts, (struct part){ .text = member(&v->list->p[i], STR("text"))->s });
	text = joined(s, &parts, STR("\n"));
	VEC_FREE(&parts);
	return text.s;
}

static struct jinja_val as_system(struct text_shape *s, const struct jinja_val *dict)
{
	struct jinja_val copy = jinja_dict_new(s->a, dict->dict->n);
	for (size_t i = 0; i < dict->dict->n; i++)
		if (!str_eq(dict->dict->p[i].key.s, STR("tools")))
			jinja_dict_put(s->a, copy, dict->dict->p[i].key, dict->dict->p[i].val);
	text_shape_put(s, copy, STR("role"), jinja_str(STR("system")));
	return copy;
}

/* One message with all system texts that are not empty, then the others. */
static void consolidate(struct text_shape *s, struct jinja_val *p, size_t n, struct jinja_val *ret_list)
{
	struct jinja_val *out = arena_new(s->a, struct jinja_val, n + 1);
	part_vec texts = { 0 };
	size_t kept = 1;
	for (size_t i = 0; i < n; i++) {
		if (!has_role(&p[i], STR("system"))) {
			out[kept++] = p[i];
			continue;
		}
		struct part text = { .text = text_of(s, &p[i]) };
		if (text.text.n)
			VEC_PUSH(&texts, text);
	}
	out[0] = jinja_dict_new(s->a, 2);
	text_shape_put(s, out[0], STR("role"), jinja_str(STR("system")));
	text_shape_put(s, out[0], STR("content"), joined(s, &texts, STR("\n\n")));
	VEC_FREE(&texts);
	*ret_list = jinja_list_of(s->a, out, kept);
}

void text_shape_no_developer(struct text_shape *s, struct jinja_val *list)
{
	size_t n = list->list->n;
	struct jinja_val *p = arena_new(s->a, struct jinja_val, n);
	bool scattered = false;
	for (size_t i = 0; i < n; i++) {
		p[i] = has_role(&list->list->p[i], STR("developer")) ? as_system(s, &list->list->p[i]) : list->list->p[i];
		scattered |= i > 0 && has_role(&p[i], STR("system"));
	}
	if (scattered)
		consolidate(s, p, n, list);
	else
		*list = jinja_list_of(s->a, p, n);
}
