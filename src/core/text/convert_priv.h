/* text/convert_priv.h: what convert_messages.c and convert_responses.c share. Private to the room. */
#ifndef TEXT_CONVERT_PRIV_H
#define TEXT_CONVERT_PRIV_H

#include "text/convert.h"

struct text_conv {
	const struct text_convert_opts *o;
	struct json_writer w;        /* the chat body */
	struct buf text;             /* a text being put together */
	const char *why;
};

must_use enum err text_conv_messages(struct text_conv *c, const struct json_val *body);
must_use enum err text_conv_responses(struct text_conv *c, const struct json_val *body);
/* The tools of a responses body as a chat's: a list. */
must_use enum err text_conv_responses_tools(struct text_conv *c, const struct json_val *tools);
/* The reason why the body needs what only its worker has, or NULL. */
const char *text_conv_responses_odd(const struct json_val *body);
/* Is its prompt cut to what the model takes? */
bool text_conv_responses_truncates(const struct json_val *body);

static inline enum err text_conv_refuse(struct text_conv *c, const char *why)
{
	c->why = why;
	return ERR_UNSUPPORTED;
}

static inline void text_conv_put_str(struct text_conv *c, struct str key, struct str value)
{
	json_put_key(&c->w, key);
	json_put_str(&c->w, value);
}

static inline void text_conv_put_message(struct text_conv *c, struct str role, struct str text)
{
	json_put_open(&c->w, '{');
	text_conv_put_str(c, STR("role"), role);
	text_conv_put_str(c, STR("content"), text);
	json_put_close(&c->w, '}');
}

/* An array: each tool of the body as `put` writes it. */
static inline enum err text_conv_put_tools(struct text_conv *c, const struct json_val *tools, enum err (*put)(struct text_conv *c, const struct json_val *tool))
{
	json_put_open(&c->w, '[');
	for (struct json_iter it = json_each(tools); json_next(&it);)
		TRY(put(c, it.val));
	json_put_close(&c->w, ']');
	return ERR_OK;
}

/* A member that goes along as it is, when it is there. */
static inline void text_conv_keep(struct text_conv *c, const struct json_val *body, struct str key)
{
	const struct json_val *v = json_get(body, key);
	if (json_absent(v))
		return;
	json_put_key(&c->w, key);
	json_put_val(&c->w, v);
}

/* Is `type` this word? */
static inline bool text_conv_is(const struct json_val *object, struct str type)
{
	struct str s;
	return json_str(json_get(object, STR("type")), &s) && str_eq(s, type);
}

#endif
