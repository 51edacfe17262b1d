/* json_priv.h: what the files of json.h share. */
#ifndef WIRE_JSON_PRIV_H
#define WIRE_JSON_PRIV_H

#include <yyjson.h>

#include "base/memo.h"
#include "wire/json.h"

extern const yyjson_alc json_alc; /* running out of memory aborts, as everywhere */

/* ---- json_scan.c: one pass over a text, checked or not. It bounds nesting and the number of values, and notes where the members of the
 * outermost object lie, and the large elements of its members that are arrays: rightly so when the text is JSON. */
enum { JSON_LARGE_MAX = 512, JSON_LARGE_MOST_BYTES = 256 << 10 };
struct json_scan {
	struct str s;
	size_t max_opens, max_keys; /* 0: as many as values are allowed */
	struct json_member *out; /* the first cap members */
	size_t cap, n;
	struct json_span *large; /* NULL: not asked for; else room for JSON_LARGE_MAX */
	size_t n_large, large_bytes;
	size_t inside; /* behind the outermost value's brace */
	/* insides */
	size_t depth, values, opens, keys, element; /* element: where the present one begins, 0 outside such arrays */
	bool object, want_key; /* the outermost value is one; of its member */
	struct json_member now;
};
must_use enum err json_scan_text(struct json_scan *c);

/* ---- json_known.c: a text whose large elements were read before. Each is a document of its own, the text between them another, in
 * which a link stands for each: a raw value of no bytes (no number is that). */
struct json_known {
	char *rest; /* the text between, which its document refers to */
	struct memo_item **values;
	size_t n;
};
/* NULL: no JSON. Done in both cases. */
yyjson_doc *json_known_read(const struct json_scan *c, struct memo *memo, struct json_known *ret_k);
void json_known_done(struct json_known *k);

static inline yyjson_val *json_linked(yyjson_val *v)
{
	return yyjson_is_raw(v) && unsafe_yyjson_get_len(v) == 0 ? v->uni.ptr : v;
}

#endif
