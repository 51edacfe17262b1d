/* json_fuzz.c: any text: the scanner agrees with the parser, what is written is read again, and what is remembered of bodies
 * changes nothing. */
#include <stdint.h>
#include <stdlib.h>

#include "base/memo.h"
#include "base/must.h"
#include "wire/json.h"

static void walk(const struct json_val *v, struct json_writer *w)
{
	struct str s;
	bool b;
	if (json_is(v, JSON_OBJECT) || json_is(v, JSON_ARRAY)) {
		bool object = json_is(v, JSON_OBJECT);
		json_put_open(w, object ? '{' : '[');
		for (struct json_iter it = json_each(v); json_next(&it);) {
			if (object)
				json_put_key(w, it.key);
			walk(it.val, w);
		}
		json_put_close(w, object ? '}' : ']');
	} else if (json_str(v, &s)) {
		json_put_str(w, s);
	} else if (json_number_text(v, &s)) {
		uint64_t u;
		int64_t i;
		double x;
		(void)(json_u64(v, &u) + json_i64(v, &i) + json_f64(v, &x));
		json_put_raw(w, s);
	} else if (json_bool(v, &b)) {
		json_put_bool(w, b);
	} else {
		must(json_is(v, JSON_NULL));
		json_put_null(w);
	}
}

/* Each span holds, alone, the value that the parser found. */
static void check_spans(const struct json_doc *d, struct str text)
{
	size_t n, i = 0;
	const struct json_member *m = json_members(d, &n);
	for (struct json_iter it = json_each(json_root(d)); i < n && json_next(&it); i++) {
		struct json_doc *one;
		must(json_quoted_eq(json_span_str(text, m[i].key), it.key));
		/* alone at the top, an inner object's equal members are refused */
		enum err e = json_parse(json_span_str(text, m[i].val), text.n, &one);
		must(e == ERR_OK || e == ERR_DUPLICATE || e == ERR_LIMIT);
		if (e == ERR_OK)
			json_free(one);
	}
	must(i == n);
}

static struct str written(const struct json_doc *d, struct buf *out)
{
	struct json_writer w = json_writer(out);
	buf_clear(out);
	walk(json_root(d), &w);
	must(json_writer_done(&w) == ERR_OK);
	return buf_str(out);
}

/* The elements of the lists at the top out of a memory, twice: the second time they are known. */
static void check_body(struct str text, const struct json_doc *plain, enum err want, struct buf out[2])
{
	struct memo *memo = memo_new(1 << 20, 1);
	struct json_doc *d;
	for (int i = 0; i < 2; i++) {
		enum err e = json_parse_body(text, &(struct json_body_opts){ .max_bytes = 1 << 20, .memo = memo, .large_bytes = 1 + text.n % 32 }, &d);
		must(e == want || e == ERR_LIMIT);
		if (e != ERR_OK)
			continue;
		must(str_eq(written(plain, &out[0]), written(d, &out[1])));
		check_spans(d, text);
		json_free(d);
	}
	memo_free(memo);
}

/* Both ways to read agree, but for what only one of them bounds. */
static void check_file(struct str text, enum err e)
{
	struct json_doc *d;
	enum err of_file = json_parse_file(text, 1 << 20, &d);
	must(of_file == e || e == ERR_LIMIT);
	if (of_file == ERR_OK)
		json_free(d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = str_from(data, size);
	struct json_doc *d = NULL, *again;
	struct buf out[2];
	json_scan_members(text, NULL, 0); /* unchecked text: only no crash is asked */
	buf_init(&out[0], 16 * size + 64);
	buf_init(&out[1], 16 * size + 64);
	enum err e = json_parse(text, 1 << 20, &d);
	check_body(text, d, e, out);
	check_file(text, e);
	if (e == ERR_OK) {
		if (json_is(json_root(d), JSON_OBJECT))
			check_spans(d, text);
		must(json_parse(written(d, &out[0]), out[0].n, &again) == ERR_OK);
		json_free(again);
		json_free(d);
	}
	buf_done(&out[0]);
	buf_done(&out[1]);
	return 0;
}
