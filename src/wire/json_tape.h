/* wire/json_tape.h: a JSON text, checked and laid out as one array of its values: a container, then what is in it, then what follows it;
 * in an object each key (a string) before its value. What json.h hands out are pointers into it. For json.c only.
 *
 * One pass, no recursion. Texts and numbers are copied, so that a tape outlives its text. */
#ifndef WIRE_JSON_TAPE_H
#define WIRE_JSON_TAPE_H

#include "base/vec.h"
#include "wire/json.h"

struct json_val {
	enum json_type type;
	uint32_t n; /* bytes of a string or a number as written; elements or members; 0 or 1 of a bool */
	union {
		const char *p;
		size_t span; /* of a container: values up to the one behind it, itself counted */
	};
};

struct json_tape {
	VEC(struct json_val) vals; /* the first is the outermost */
	char *bytes; /* of strings and numbers */
	VEC(struct json_member) members; /* where those of an outermost object lie in the text */
};

struct json_tape_limits { size_t values, opens, keys; };

/* SYNTAX; LIMIT: also 4 GiB of text, deeper than JSON_MAX_DEPTH, more than JSON_MAX_MEMBERS at the top. Free with json_tape_done. */
must_use enum err json_tape_read(struct str text, const struct json_tape_limits *most, struct json_tape *ret_t);
void json_tape_done(struct json_tape *t);

#endif
