/* json.c: yyjson behind our own names.
 *
 * The library keeps no positions and its parser is iterative, so depth and the number of values are counted beforehand in
 * one cheap pass (json_scan.c), which also bounds its memory: 16 bytes a value. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/must.h"
#include "base/utf8.h"
#include "wire/json_priv.h"

enum { FEW_MEMBERS = 24 };

struct json_doc {
	yyjson_doc *doc;
	struct str text;
	struct json_member *members;
	size_t n_members;
	size_t insert_at;
	struct json_known known;
};

/* ---- memory: as everywhere, running out aborts */

static void *alc_malloc(void *ctx, size_t n)
{
	(void)ctx;
	return must_malloc(n);
}

static void *alc_realloc(void *ctx, void *p, size_t old, size_t n)
{
	(void)ctx;
	(void)old;
	return must_realloc(p, n);
}

static void alc_free(void *ctx, void *p)
{
	(void)ctx;
	free(p);
}

const yyjson_alc json_alc = { alc_malloc, alc_realloc, alc_free, NULL };

/* Of files: the library begins with room for a value in six bytes of text, or less, and grows by half. */
enum { MAX_FILE_GROWN_BYTES = JSON_MAX_VALUES * sizeof(yyjson_val) / 2 * 3 };

static void *file_malloc(void *ctx, size_t n)
{
	(void)ctx;
	return must_large(n);
}

static void *file_realloc(void *ctx, void *p, size_t old, size_t n)
{
	(void)ctx;
	(void)old;
	return n <= MAX_FILE_GROWN_BYTES ? must_large_grow(p, n) : NULL;
}

static void file_free(void *ctx, void *p)
{
	(void)ctx;
	must_large_free(p);
}

static const yyjson_alc FILE_ALC = { file_malloc, file_realloc, file_free, NULL };

bool json_quoted_eq(struct str quoted, struct str plain)
{
	if (quoted.n < 2)
		return false;
	struct str inner = str_sub(quoted, 1, quoted.n - 2);
	if (inner.n == 0 || !memchr(inner.p, '\\', inner.n))
		return str_eq(inner, plain);
	struct json_doc *d;
	struct str s;
	if (json_parse(quoted, quoted.n, &d) != ERR_OK)
		return false;
	bool same = json_str(json_root(d), &s) && str_eq(s, plain);
	json_free(d);
	return same;
}

/* ---- reading */

static yyjson_val *val_of(const struct json_val *v) { return (yyjson_val *)(uintptr_t)v; }
static const struct json_val *handle_of(yyjson_val *v) { return (const struct json_val *)v; }
static struct str str_of_val(yyjson_val *v) { return (struct str){ unsafe_yyjson_get_str(v), unsafe_yyjson_get_len(v) }; }

static bool seen_before(yyjson_val *root, yyjson_val *key)
{
	yyjson_obj_iter it = yyjson_obj_iter_with(root);
	for (yyjson_val *k; (k = yyjson_obj_iter_next(&it)) && k != key;)
		if (str_eq(str_of_val(k), str_of_val(key)))
			return true;
	return false;
}

/* Few keys are compared with each other; many go through a table of hashes (an accidental equality would only refuse a
 * request that carries its own cause). */
static bool repeats_a_key(yyjson_val *root)
{
	bool few = yyjson_obj_size(root) <= FEW_MEMBERS, repeated = false;
	struct map seen;
	map_init(&seen);
	yyjson_obj_iter it = yyjson_obj_iter_with(root);
	for (yyjson_val *k; !repeated && (k = yyjson_obj_iter_next(&it));) {
		if (few) {
			repeated = seen_before(root, k);
			continue;
		}
		uint64_t h = hash_str(str_of_val(k), 0), unused;
		repeated = map_get(&seen, h, &unused);
		map_put(&seen, h, 1);
	}
	map_done(&seen);
	return repeated;
}

static enum err check_members(yyjson_val *root)
{
	if (yyjson_obj_size(root) > JSON_MAX_MEMBERS)
		return ERR_LIMIT;
	return repeats_a_key(root) ? ERR_DUPLICATE : ERR_OK;
}

/* The spans that the scan found fit the members that the parser found, one by one. */
static enum err take_members(struct json_doc *d, const struct json_scan *c)
{
	yyjson_val *root = yyjson_doc_get_root(d->doc);
	if (!yyjson_is_obj(root))
		return ERR_OK;
	TRY(check_members(root));
	must(c->n == yyjson_obj_size(root));
	d->insert_at = c->inside;
	d->members = must_malloc((c->n + 1) * sizeof(*d->members));
	d->n_members = c->n;
	if (c->n <= c->cap)
		memcpy(d->members, c->out, c->n * sizeof(*d->members));
	else
		json_scan_members(d->text, d->members, c->n);
	return ERR_OK;
}

static enum err parse(struct json_scan *c, struct memo *memo, struct json_doc **ret_doc)
{
	struct str text = c->s;
	TRY(json_scan_text(c));
	struct json_doc *d = must_calloc(1, sizeof(*d));
	d->text = text;
	d->doc = c->n_large ? json_known_read(c, memo, &d->known) :
			      yyjson_read_opts((char *)(uintptr_t)text.p, text.n, YYJSON_READ_NUMBER_AS_RAW, &json_alc, NULL);
	enum err e = d->doc ? take_members(d, c) : ERR_SYNTAX;
	if (e != ERR_OK) {
		json_free(d);
		return e;
	}
	*ret_doc = d;
	return ERR_OK;
}

enum err json_parse(struct str text, size_t max_bytes, struct json_doc **ret_doc)
{
	struct json_member first[FEW_MEMBERS];
	struct json_scan c = { .s = text, .out = first, .cap = FEW_MEMBERS };
	return text.n > max_bytes ? ERR_LIMIT : parse(&c, NULL, ret_doc);
}

enum err json_parse_body(struct str text, const struct json_body_opts *o, struct json_doc **ret_doc)
{
	struct json_member first[FEW_MEMBERS];
	struct json_span large[JSON_LARGE_MAX];
	struct json_scan c = { .s = text, .out = first, .cap = FEW_MEMBERS, .max_opens = JSON_BODY_MAX_OPENS, .max_keys = JSON_BODY_MAX_KEYS,
		.large_bytes = o->large_bytes ? o->large_bytes : JSON_LARGE_BYTES };
	if (o->memo && text.n >= 4 * c.large_bytes) /* a short body is read at once */
		c.large = large;
	return text.n > o->max_bytes ? ERR_LIMIT : parse(&c, o->memo, ret_doc);
}

static enum err read_file(struct json_doc *d, const yyjson_alc *alc)
{
	yyjson_read_err why;
	d->doc = yyjson_read_opts((char *)(uintptr_t)d->text.p, d->text.n, YYJSON_READ_NUMBER_AS_RAW, alc, &why);
	if (!d->doc)
		return why.code == YYJSON_READ_ERROR_MEMORY_ALLOCATION ? ERR_LIMIT : ERR_SYNTAX;
	return yyjson_doc_get_val_count(d->doc) > JSON_MAX_VALUES ? ERR_LIMIT : check_members(yyjson_doc_get_root(d->doc));
}

enum err json_parse_file(struct str text, size_t max_bytes, struct json_doc **ret_doc)
{
	if (text.n > max_bytes)
		return ERR_LIMIT;
	struct json_doc *d = must_calloc(1, sizeof(*d));
	d->text = text;
	enum err e = read_file(d, text.n < MUST_LARGE_PAGE ? &json_alc : &FILE_ALC);
	if (e != ERR_OK) {
		json_free(d);
		return e;
	}
	*ret_doc = d;
	return ERR_OK;
}

void json_free(struct json_doc *d)
{
	if (!d)
		return;
	yyjson_doc_free(d->doc);
	json_known_done(&d->known);
	free(d->members);
	free(d);
}

const struct json_val *json_root(const struct json_doc *d) { return handle_of(yyjson_doc_get_root(d->doc)); }

bool json_is(const struct json_val *v, enum json_type t)
{
	yyjson_val *y = val_of(v);
	switch (t) {
	case JSON_NULL: return yyjson_is_null(y);
	case JSON_BOOL: return yyjson_is_bool(y);
	case JSON_NUMBER: return yyjson_is_raw(y);
	case JSON_STRING: return yyjson_is_str(y);
	case JSON_ARRAY: return yyjson_is_arr(y);
	case JSON_OBJECT: return yyjson_is_obj(y);
	}
	return false;
}

const struct json_val *json_get(const struct json_val *object, struct str key)
{
	yyjson_obj_iter it = yyjson_obj_iter_with(val_of(object)); /* of nothing when it is none */
	yyjson_val *found = NULL;
	for (yyjson_val *k; (k = yyjson_obj_iter_next(&it));)
		if (str_eq(str_of_val(k), key))
			found = yyjson_obj_iter_get_val(k);
	return handle_of(found);
}

size_t json_len(const struct json_val *v)
{
	return json_is(v, JSON_ARRAY) || json_is(v, JSON_OBJECT) ? unsafe_yyjson_get_len(val_of(v)) : 0;
}

bool json_str(const struct json_val *v, struct str *ret_s)
{
	if (!json_is(v, JSON_STRING))
		return false;
	*ret_s = str_of_val(val_of(v));
	return true;
}

bool json_bool(const struct json_val *v, bool *ret_b)
{
	if (!json_is(v, JSON_BOOL))
		return false;
	*ret_b = unsafe_yyjson_get_bool(val_of(v));
	return true;
}

bool json_number_text(const struct json_val *v, struct str *ret_digits)
{
	if (!json_is(v, JSON_NUMBER))
		return false;
	*ret_digits = str_of_val(val_of(v));
	return true;
}

bool json_f64(const struct json_val *v, double *ret_x)
{
	struct str s;
	return json_number_text(v, &s) && str_to_f64(s, ret_x);
}

/* A whole number that doubles carry exactly: 16.0, 1e3. */
static bool whole_f64(const struct json_val *v, double *ret_x)
{
	double x;
	if (!json_f64(v, &x) || fabs(x) > 0x1p53 || trunc(x) != x)
		return false;
	*ret_x = x;
	return true;
}

bool json_u64(const struct json_val *v, uint64_t *ret_n)
{
	struct str s;
	double x;
	if (json_number_text(v, &s) && str_to_u64(s, ret_n))
		return true;
	if (!whole_f64(v, &x) || x < 0)
		return false;
	*ret_n = (uint64_t)x;
	return true;
}

bool json_i64(const struct json_val *v, int64_t *ret_n)
{
	struct str s;
	double x;
	if (json_number_text(v, &s) && str_to_i64(s, ret_n))
		return true;
	if (!whole_f64(v, &x))
		return false;
	*ret_n = (int64_t)x;
	return true;
}

bool json_only(const struct json_val *object, const struct str *names, size_t n)
{
	for (struct json_iter it = json_each(object); json_next(&it);) {
		bool known = json_is(it.val, JSON_NULL);
		for (size_t i = 0; i < n; i++)
			known |= str_eq(it.key, names[i]);
		if (!known)
			return false;
	}
	return json_is(object, JSON_OBJECT);
}

bool json_true(const struct json_val *v)
{
	bool b = false;
	return json_bool(v, &b) && b;
}

bool json_str_pair(const struct json_val *v, struct str ret_s[2])
{
	yyjson_val *array = val_of(v);
	if (!yyjson_is_arr(array) || unsafe_yyjson_get_len(array) != 2)
		return false;
	yyjson_val *a = unsafe_yyjson_get_first(array), *b = json_linked(unsafe_yyjson_get_next(a));
	a = json_linked(a);
	if (!unsafe_yyjson_is_str(a) || !unsafe_yyjson_is_str(b))
		return false;
	ret_s[0] = str_of_val(a);
	ret_s[1] = str_of_val(b);
	return true;
}

struct json_iter json_each(const struct json_val *v)
{
	struct json_iter it = { .left = json_len(v), .object = json_is(v, JSON_OBJECT) };
	if (it.left)
		it.at = handle_of(unsafe_yyjson_get_first(val_of(v)));
	return it;
}

bool json_next(struct json_iter *it)
{
	if (it->left == 0)
		return false;
	it->left--;
	yyjson_val *v = val_of(it->at);
	if (it->object) {
		it->key = str_of_val(v);
		v++; /* a key is followed by its value */
	}
	it->val = handle_of(it->object ? v : json_linked(v));
	if (it->left)
		it->at = handle_of(unsafe_yyjson_get_next(v));
	return true;
}

const struct json_member *json_members(const struct json_doc *d, size_t *ret_n)
{
	*ret_n = d->n_members;
	return d->members;
}

bool json_member(const struct json_doc *d, struct str key, struct json_member *ret_m)
{
	size_t i = 0;
	if (!d->members)
		return false;
	for (struct json_iter it = json_each(json_root(d)); json_next(&it); i++)
		if (str_eq(it.key, key)) {
			*ret_m = d->members[i];
			return true;
		}
	return false;
}

size_t json_insert_at(const struct json_doc *d) { return d->insert_at; }

/* ---- writing */

static void put(struct json_writer *w, struct str s)
{
	if (w->e == ERR_OK)
		w->e = buf_add(w->b, s);
}

static void before_value(struct json_writer *w)
{
	if (w->comma)
		put(w, STR(","));
	w->comma = true;
}

void json_put_open(struct json_writer *w, char brace)
{
	before_value(w);
	put(w, (struct str){ &brace, 1 });
	w->comma = false;
}

void json_put_close(struct json_writer *w, char brace)
{
	put(w, (struct str){ &brace, 1 });
	w->comma = true;
}

/* Bytes of s that need no change, from the front. */
static size_t plain_run(struct str s)
{
	size_t i = 0;
	for (uint32_t cp; i < s.n;) {
		unsigned char c = (unsigned char)s.p[i];
		if (c < 0x20 || c == '"' || c == '\\')
			break;
		size_t n = c < 0x80 ? 1 : utf8_next(str_skip(s, i), &cp);
		if (n == 0)
			break;
		i += n;
	}
	return i;
}

static enum err quote_byte(struct buf *b, unsigned char c)
{
	static const char SHORT[] = "\"\"\\\\\bb\ff\nn\rr\tt";
	if (c >= 0x80)
		return buf_add(b, STR("\xef\xbf\xbd"));
	for (size_t i = 0; i + 1 < sizeof(SHORT); i += 2)
		if ((unsigned char)SHORT[i] == c)
			return buf_printf(b, "\\%c", SHORT[i + 1]);
	return buf_printf(b, "\\u%04x", c);
}

enum err json_quote(struct buf *b, struct str s)
{
	TRY(buf_add_byte(b, '"'));
	while (s.n) {
		size_t n = plain_run(s);
		TRY(buf_add(b, str_sub(s, 0, n)));
		s = str_skip(s, n);
		if (s.n == 0)
			break;
		TRY(quote_byte(b, (unsigned char)s.p[0]));
		s = str_skip(s, 1);
	}
	return buf_add_byte(b, '"');
}

static void put_quoted(struct json_writer *w, struct str s)
{
	if (w->e == ERR_OK)
		w->e = json_quote(w->b, s);
}

void json_put_key(struct json_writer *w, struct str key)
{
	before_value(w);
	put_quoted(w, key);
	put(w, STR(":"));
	w->comma = false;
}

void json_put_quoted_key(struct json_writer *w, struct str quoted)
{
	before_value(w);
	put(w, quoted);
	put(w, STR(":"));
	w->comma = false;
}

void json_put_str(struct json_writer *w, struct str s)
{
	before_value(w);
	put_quoted(w, s);
}

void json_put_raw(struct json_writer *w, struct str json)
{
	before_value(w);
	put(w, json);
}

static void put_number(struct json_writer *w, const char *text) { json_put_raw(w, str_of(text)); }

void json_put_u64(struct json_writer *w, uint64_t n)
{
	char room[STR_U64_MAX];
	json_put_raw(w, str_of_u64(n, room));
}

void json_put_i64(struct json_writer *w, int64_t n)
{
	char text[24];
	snprintf(text, sizeof(text), "%lld", (long long)n);
	put_number(w, text);
}

void json_put_f64(struct json_writer *w, double x)
{
	char text[40];
	double back;
	if (!isfinite(x)) {
		json_put_null(w);
		return;
	}
	for (int digits = 6; digits <= 17; digits += digits == 6 ? 9 : 2) {
		snprintf(text, sizeof(text), "%.*g", digits, x);
		/* an exact round trip is what is asked: the shorter text stands for the same number */
		if (str_to_f64(str_of(text), &back) && memcmp(&back, &x, sizeof(x)) == 0)
			break;
	}
	put_number(w, text);
}

void json_put_bool(struct json_writer *w, bool b) { json_put_raw(w, b ? STR("true") : STR("false")); }
void json_put_null(struct json_writer *w) { json_put_raw(w, STR("null")); }
static void put_members(struct json_writer *w, const struct json_val *v, bool object)
{
	json_put_open(w, object ? '{' : '[');
	for (struct json_iter it = json_each(v); json_next(&it);) {
		if (object)
			json_put_key(w, it.key);
		json_put_val(w, it.val);
	}
	json_put_close(w, object ? '}' : ']');
}

/* As deep as json_parse lets a text be, JSON_MAX_DEPTH. */
void json_put_val(struct json_writer *w, const struct json_val *v)
{
	struct str s;
	bool b;
	if (json_str(v, &s))
		json_put_str(w, s);
	else if (json_number_text(v, &s))
		json_put_raw(w, s);
	else if (json_bool(v, &b))
		json_put_bool(w, b);
	else if (json_is(v, JSON_ARRAY) || json_is(v, JSON_OBJECT))
		put_members(w, v, json_is(v, JSON_OBJECT));
	else
		json_put_null(w);
}

enum err json_writer_done(const struct json_writer *w) { return w->e; }
