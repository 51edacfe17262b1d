/* chat_tool.c: tools and tool calls. The worker's classes know these members, in this order, and print an absent description or
 * parameters as null. */
#include "text/chat_tool.h"

enum { MEMBERS_MAX = 2048 };   /* of one object: a dict is searched from its front */

/* Is the value small enough for jinja's dicts? */
static bool narrow(const struct json_val *v)
{
	if (json_is(v, JSON_OBJECT) && json_len(v) > MEMBERS_MAX)
		return false;
	for (struct json_iter it = json_each(v); json_next(&it);)
		if (!narrow(it.val))
			return false;
	return true;
}

enum err text_shape_value(struct text_shape *s, const struct json_val *v, struct jinja_val *ret_v)
{
	if (!narrow(v))
		return text_shape_refuse(s, "object_too_large");
	*ret_v = jinja_from_json(s->a, v);
	return ERR_OK;
}

/* ---- tools */

static bool one_of(struct str name, const struct str *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(name, names[i]))
			return true;
	return false;
}

/* 0.32 drops members it does not know, older versions keep them. */
static enum err only_known(struct text_shape *s, const struct json_val *object, const struct str *names, size_t n)
{
	for (struct json_iter it = json_each(object); json_next(&it);)
		if (!s->known_version && !one_of(it.key, names, n))
			return text_shape_refuse(s, "tool_extra_member");
	return ERR_OK;
}

static enum err function(struct text_shape *s, const struct json_val *f, struct jinja_val *ret_v)
{
	static const struct str NAMES[] = { STR_INIT("name"), STR_INIT("description"), STR_INIT("parameters"), STR_INIT("strict") };
	const struct json_val *desc = json_get(f, STR("description")), *params = json_get(f, STR("parameters")), *strict = json_get(f, STR("strict"));
	struct jinja_val d = jinja_dict_new(s->a, 4), params_v = JINJA_V_NONE;
	struct str name, text;
	bool flag;
	if (!json_str(json_get(f, STR("name")), &name) || json_get(f, STR("defer_loading")))
		return text_shape_refuse(s, "tool_form");
	TRY(only_known(s, f, NAMES, ARRAY_LEN(NAMES)));
	text_shape_put(s, d, STR("name"), jinja_str(arena_str(s->a, name)));
	if (desc && !json_is(desc, JSON_NULL) && !json_str(desc, &text))
		return text_shape_refuse(s, "tool_form");
	text_shape_put(s, d, STR("description"), json_str(desc, &text) ? jinja_str(arena_str(s->a, text)) : JINJA_V_NONE);
	if (params && !json_is(params, JSON_NULL)) {
		if (!json_is(params, JSON_OBJECT))
			return text_shape_refuse(s, "tool_form");
		TRY(text_shape_value(s, params, &params_v));
	}
	text_shape_put(s, d, STR("parameters"), params_v);
	if (json_bool(strict, &flag))
		text_shape_put(s, d, STR("strict"), jinja_bool(flag));
	else if (strict && (!json_is(strict, JSON_NULL) || !s->known_version))
		return text_shape_refuse(s, "tool_form");
	*ret_v = d;
	return ERR_OK;
}

static enum err tool(struct text_shape *s, const struct json_val *v, struct jinja_val *ret_v)
{
	static const struct str NAMES[] = { STR_INIT("type"), STR_INIT("function") };
	struct jinja_val d = jinja_dict_new(s->a, 2), f;
	struct str type = STR("function");
	if (!json_is(v, JSON_OBJECT) || !json_is(json_get(v, STR("function")), JSON_OBJECT) || json_get(v, STR("defer_loading")))
		return text_shape_refuse(s, "tool_form");
	if (json_get(v, STR("type")) && !json_str(json_get(v, STR("type")), &type))
		return text_shape_refuse(s, "tool_form");
	if (!str_eq(type, STR("function")))
		return text_shape_refuse(s, "tool_form");
	TRY(only_known(s, v, NAMES, ARRAY_LEN(NAMES)));
	TRY(function(s, json_get(v, STR("function")), &f));
	text_shape_put(s, d, STR("type"), jinja_str(STR("function")));
	text_shape_put(s, d, STR("function"), f);
	*ret_v = d;
	return ERR_OK;
}

enum err text_shape_tools(struct text_shape *s, const struct json_val *tools, struct jinja_val *ret_list)
{
	struct jinja_val *p = arena_new(s->a, struct jinja_val, json_len(tools));
	size_t n = 0;
	if (!json_is(tools, JSON_ARRAY) || json_len(tools) == 0)
		return text_shape_refuse(s, "tool_form");
	for (struct json_iter it = json_each(tools); json_next(&it);)
		TRY(tool(s, it.val, &p[n++]));
	*ret_list = jinja_list_of(s->a, p, n);
	return ERR_OK;
}

/* ---- tool calls */

/* Python takes more than JSON here (NaN, lone surrogates): a text that we cannot read may be one that it can. */
static enum err arguments(struct text_shape *s, struct str text, struct jinja_val *ret_v)
{
	struct json_doc *d;
	enum err e = ERR_OK;
	*ret_v = jinja_dict_new(s->a, 0);
	if (text.n == 0)
		return ERR_OK;
	if (json_parse(text, text.n, &d) != ERR_OK)
		return text_shape_refuse(s, "tool_arguments_not_json");
	if (json_is(json_root(d), JSON_OBJECT))
		e = text_shape_value(s, json_root(d), ret_v);
	json_free(d);
	return e;
}

/* The other members of an object, behind those that were put already. */
static enum err put_rest(struct text_shape *s, const struct json_val *object, struct jinja_val dict)
{
	if (json_len(object) > MEMBERS_MAX)
		return text_shape_refuse(s, "object_too_large");
	for (struct json_iter it = json_each(object); json_next(&it);) {
		struct jinja_val v;
		if (jinja_dict_get_str(dict.dict, it.key))
			continue;
		if (!s->known_version)
			return text_shape_refuse(s, "version");
		TRY(text_shape_value(s, json_get(object, it.key), &v));
		text_shape_put(s, dict, arena_str(s->a, it.key), v);
	}
	return ERR_OK;
}

static enum err tool_call(struct text_shape *s, const struct json_val *v, struct jinja_val *ret_v)
{
	const struct json_val *f = json_get(v, STR("function"));
	struct jinja_val call = jinja_dict_new(s->a, 4), fn = jinja_dict_new(s->a, 2), args;
	struct str id, type, name, text;
	if (!json_str(json_get(v, STR("id")), &id) || !json_str(json_get(v, STR("type")), &type) || !str_eq(type, STR("function")) ||
	    !json_str(json_get(f, STR("name")), &name) || !json_str(json_get(f, STR("arguments")), &text))
		return text_shape_refuse(s, "tool_call_form");
	TRY(arguments(s, text, &args));
	if (s->name_first)
		text_shape_put(s, fn, STR("name"), jinja_str(arena_str(s->a, name)));
	text_shape_put(s, fn, STR("arguments"), args);
	if (!s->name_first)
		text_shape_put(s, fn, STR("name"), jinja_str(arena_str(s->a, name)));
	TRY(put_rest(s, f, fn));
	text_shape_put(s, call, STR("id"), jinja_str(arena_str(s->a, id)));
	text_shape_put(s, call, STR("function"), fn);
	text_shape_put(s, call, STR("type"), jinja_str(STR("function")));
	TRY(put_rest(s, v, call));
	*ret_v = call;
	return ERR_OK;
}

enum err text_shape_tool_calls(struct text_shape *s, const struct json_val *calls, struct jinja_val *ret_list)
{
	struct jinja_val *p = arena_new(s->a, struct jinja_val, json_len(calls));
	size_t n = 0;
	if (!json_is(calls, JSON_ARRAY))
		return text_shape_refuse(s, "tool_call_form");
	for (struct json_iter it = json_each(calls); json_next(&it);)
		TRY(tool_call(s, it.val, &p[n++]));
	*ret_list = jinja_list_of(s->a, p, n);
	return ERR_OK;
}
