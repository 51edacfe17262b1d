/* wire/json.h: the wall around the JSON library. Nobody else includes it.
 *
 * Reading. json_parse checks the whole text first: valid UTF-8, no lone surrogate escape, nesting <= JSON_MAX_DEPTH,
 * <= JSON_MAX_VALUES values, nothing behind the value, no member of the top object twice (compared after unescaping).
 * The text is borrowed by the spans below and must outlive the doc for them; values own their bytes (strings may hold
 * NUL; never NUL-terminated for us). A value handle is a pointer into the doc; NULL means "absent" and every function
 * takes it. Numbers are kept as written.
 *
 * Inside nested objects a repeated member is legal and the LAST one counts (as in Python's json, so in the workers).
 *
 * Spans. For an object at the top, json_members gives where each key and value lies in the ORIGINAL text, in order, so
 * that a body is patched without being written anew. json_scan_members does the same for any object text that is part
 * of a checked text (offsets are relative to the slice given).
 *
 * Writing. A json_writer appends to a buf, puts commas itself and keeps the first error until json_writer_done.
 *
 * Pure; not thread-safe per doc while being freed, otherwise read-only. */
#ifndef WIRE_JSON_H
#define WIRE_JSON_H

#include "base/buf.h"

enum { JSON_MAX_DEPTH = 128, JSON_MAX_VALUES = 4 << 20, JSON_MAX_MEMBERS = 1024 };
enum { JSON_BODY_MAX_OPENS = 64 << 10, JSON_BODY_MAX_KEYS = 256 << 10, JSON_LARGE_BYTES = 512 };

enum json_type { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

struct json_doc;
struct json_val;
struct memo;

/* LIMIT: longer than max_bytes, too deep, too many values or top members. DUPLICATE: a top member twice. SYNTAX: the rest. */
must_use enum err json_parse(struct str text, size_t max_bytes, struct json_doc **ret_doc);
/* The same for what a stranger sends: in all no more than JSON_BODY_MAX_OPENS objects and arrays and JSON_BODY_MAX_KEYS members,
 * else LIMIT, known before anything is built. Each costs whoever goes over the body far more than its few bytes.
 * Of a body with lists at the top (messages, tools, input) the large elements are remembered as they were read: the next turn of a chat, and
 * whoever parses the same body again, has to read the new ones only. The result is the same as without. */
struct json_body_opts {
	size_t max_bytes;
	struct memo *memo;              /* NULL: nothing is remembered */
	size_t large_bytes;             /* what is large; 0: JSON_LARGE_BYTES, below which reading is as cheap as finding (a body: four times that) */
};
must_use enum err json_parse_body(struct str text, const struct json_body_opts *o, struct json_doc **ret_doc);
/* As json_parse, for a model's big files, with one pass less: nesting is not bounded (go over it without recursion), there are no spans,
 * and while it is read the memory of its values is bounded by JSON_MAX_VALUES or, where that is more, three times the text. */
must_use enum err json_parse_file(struct str text, size_t max_bytes, struct json_doc **ret_doc);
void json_free(struct json_doc *d);
const struct json_val *json_root(const struct json_doc *d);

bool json_is(const struct json_val *v, enum json_type t);
static inline bool json_absent(const struct json_val *v) { return !v || json_is(v, JSON_NULL); }   /* null says the same as nothing */
const struct json_val *json_get(const struct json_val *object, struct str key);   /* the last such member, or NULL */
size_t json_len(const struct json_val *v);                                         /* elements or members; 0 for others */
/* Typed reads: false (and ret untouched) when v is absent or of another type. */
bool json_str(const struct json_val *v, struct str *ret_s);
bool json_bool(const struct json_val *v, bool *ret_b);
bool json_u64(const struct json_val *v, uint64_t *ret_n);        /* 16, and 16.0 or 1e3 up to 2^53 */
bool json_i64(const struct json_val *v, int64_t *ret_n);         /* likewise */
bool json_f64(const struct json_val *v, double *ret_x);          /* finite */
bool json_number_text(const struct json_val *v, struct str *ret_digits);
/* An object with no members but these, and others that are null, which says the same as nothing. */
bool json_only(const struct json_val *object, const struct str *names, size_t n);
bool json_true(const struct json_val *v);                        /* is it there and `true`? */
bool json_str_pair(const struct json_val *v, struct str ret_s[2]);   /* an array of two strings and nothing else */

/* for (struct json_iter it = json_each(v); json_next(&it);) use it.val (and it.key in objects). Other types: no turn. */
struct json_iter {
	const struct json_val *val;
	struct str key;
	/* insides */
	const struct json_val *at;
	size_t left;
	bool object;
};
struct json_iter json_each(const struct json_val *v);
bool json_next(struct json_iter *it);

struct json_span { size_t off, n; };
struct json_member {
	struct json_span key;     /* with its quotes, as written */
	struct json_span val;
};
/* The members of the top object (n = 0 for other values), in the order of json_each(json_root). */
const struct json_member *json_members(const struct json_doc *d, size_t *ret_n);
/* Span of a top member by its (unescaped) name. */
bool json_member(const struct json_doc *d, struct str key, struct json_member *ret_m);
/* Offset behind the top object's `{`: where `"k":v,` (or `"k":v` when the object is empty) may be inserted. */
size_t json_insert_at(const struct json_doc *d);
/* Members of an object that is part of a checked text. Returns how many there are; fills the first cap. */
size_t json_scan_members(struct str object_text, struct json_member *out, size_t cap);
/* Is the quoted key (or string value), as written, this text once its escapes are undone? */
bool json_quoted_eq(struct str quoted, struct str plain);
static inline struct str json_span_str(struct str text, struct json_span s) { return str_sub(text, s.off, s.n); }

struct json_writer {
	struct buf *b;
	enum err e;
	bool comma;
};
static inline struct json_writer json_writer(struct buf *b) { return (struct json_writer){ .b = b }; }
void json_put_open(struct json_writer *w, char brace);           /* '{' or '[' */
void json_put_close(struct json_writer *w, char brace);          /* '}' or ']' */
void json_put_key(struct json_writer *w, struct str key);
void json_put_quoted_key(struct json_writer *w, struct str quoted);   /* a key as it stood in a checked text */
void json_put_str(struct json_writer *w, struct str s);          /* escaped; bad UTF-8 becomes U+FFFD */
void json_put_u64(struct json_writer *w, uint64_t n);
void json_put_i64(struct json_writer *w, int64_t n);
void json_put_f64(struct json_writer *w, double x);              /* shortest of 17 digits; not finite: null */
void json_put_bool(struct json_writer *w, bool b);
void json_put_null(struct json_writer *w);
void json_put_raw(struct json_writer *w, struct str json);       /* a value already in JSON */
void json_put_val(struct json_writer *w, const struct json_val *v);   /* a value that was read; numbers as written; NULL: null */
must_use enum err json_writer_done(const struct json_writer *w); /* LIMIT when the buf was full */
/* Only the escaping: s with quotes, appended to b. */
must_use enum err json_quote(struct buf *b, struct str s);

#endif
