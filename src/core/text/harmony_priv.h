/* text/harmony_priv.h: what the files of the harmony form share. Private to the room. */
#ifndef TEXT_HARMONY_PRIV_H
#define TEXT_HARMONY_PRIV_H

#include "text/chat_priv.h"
#include "text/harmony.h"

enum text_turn_from { TEXT_TURN_USER, TEXT_TURN_ASSISTANT, TEXT_TURN_DEVELOPER, TEXT_TURN_TOOL };
enum text_turn_channel { TEXT_TURN_PLAIN, TEXT_TURN_ANALYSIS, TEXT_TURN_COMMENTARY, TEXT_TURN_FINAL };

/* A message of the prompt. */
struct text_turn {
	enum text_turn_from from;
	enum text_turn_channel channel;
	bool call;                 /* an assistant's, of the function `name` */
	struct str name;           /* TOOL: whose answer it is */
	struct str text;           /* the only text; or */
	const struct json_val *parts;   /* texts of their own, read already: members `text` */
};

/* A body on its way to a prompt. */
struct text_harmony_shape {
	struct text_shape s;
	size_t n, cap;
	struct text_turn *p;       /* VEC_PUSH */
	struct str effort;
	bool has_instructions;
	struct str instructions;   /* of the preamble */
	struct jinja_val tools;    /* as text_shape_tools makes them, or none */
	struct json_doc *tools_doc;   /* their strings, where the body's are not theirs; freed with the turns */
};

/* Fill the turns, and what the preamble says. */
must_use enum err text_harmony_chat(struct text_harmony_shape *h, const struct json_val *body);
must_use enum err text_harmony_responses(struct text_harmony_shape *h, const struct json_val *body);
/* The effort that v names; absent: the default one. */
must_use enum err text_harmony_effort(struct text_harmony_shape *h, const struct json_val *v);
/* A function's name, safe to stand in a header. */
must_use enum err text_harmony_name(struct text_harmony_shape *h, const struct json_val *v, struct str *ret_name);
/* The texts of parts one behind the other, in the arena. */
struct str text_harmony_joined(struct text_harmony_shape *h, const struct json_val *parts, struct str sep);
/* The section on tools: their parameters as TypeScript. UNSUPPORTED: a number that the library may print in another way. */
must_use enum err text_harmony_put_tools(struct buf *b, const struct jinja_val *tools);

#endif
