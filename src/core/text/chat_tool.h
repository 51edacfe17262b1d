/* text/chat_tool.h: tools and tool calls as a template sees them. Private to the room. */
#ifndef TEXT_CHAT_TOOL_H
#define TEXT_CHAT_TOOL_H

#include "text/chat_priv.h"

/* Any value of the body, as Python's json module reads it. */
must_use enum err text_shape_value(struct text_shape *s, const struct json_val *v, struct jinja_val *ret_v);
/* An assistant's tool_calls: each with id, function (arguments parsed, name), type, and what else it had. */
must_use enum err text_shape_tool_calls(struct text_shape *s, const struct json_val *calls, struct jinja_val *ret_list);

#endif
