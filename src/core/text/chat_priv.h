/* text/chat_priv.h: what chat.c, chat_message.c and chat_tool.c share. Private to the room. */
#ifndef TEXT_CHAT_PRIV_H
#define TEXT_CHAT_PRIV_H

#include "jinja/from_json.h"
#include "text/chat.h"

/* Parts that are no text: refused; as the template sees them; or something else in their place, to find out where they stand. */
enum text_media { TEXT_MEDIA_REFUSED, TEXT_MEDIA_SEEN, TEXT_MEDIA_REPLACED };

/* A body on its way to a template's variables. */
struct text_shape {
	struct arena *a;
	bool parts;              /* content is a list of parts ("openai"), else text ("string") */
	bool known_version;
	bool name_first;         /* of a tool call's function: the name before the arguments */
	enum text_media media;
	uint32_t n_media;        /* such parts so far */
	bool developer;          /* one of the messages is a developer's */
	const char *why;         /* set when a function fails */
};

static inline enum err text_shape_refuse(struct text_shape *s, const char *why)
{
	s->why = why;
	return ERR_UNSUPPORTED;
}

/* Members of the body that change the prompt in ways that are not done here. */
must_use enum err text_shape_odd_members(struct text_shape *s, const struct json_val *body);
/* A part of a content that is text and nothing else. */
must_use enum err text_shape_part(struct text_shape *s, const struct json_val *part, struct str *ret_text);
/* An assistant's reasoning, under the newer or the older name; NULL: none. */
must_use enum err text_shape_reasoning(struct text_shape *s, const struct json_val *newer, const struct json_val *older, const struct json_val **ret_v);
/* The messages as a list of dicts. */
must_use enum err text_shape_messages(struct text_shape *s, const struct json_val *messages, struct jinja_val *ret_list);
/* Developer's messages become the system's, and all system messages one at the front if one was not there. */
void text_shape_no_developer(struct text_shape *s, struct jinja_val *list);
/* The tools as the worker's request class prints them. */
must_use enum err text_shape_tools(struct text_shape *s, const struct json_val *tools, struct jinja_val *ret_list);

static inline void text_shape_put(struct text_shape *s, struct jinja_val dict, struct str key, struct jinja_val v)
{
	jinja_dict_put(s->a, dict, jinja_str(key), v);
}

#endif
