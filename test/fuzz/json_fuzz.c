/* json_fuzz.c: any text: the scanner agrees with the parser, and what is written is read again. */
#include <stdint.h>
#include <stdlib.h>

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = str_from(data, size);
	struct json_doc *d, *again;
	struct buf out;
	json_scan_members(text, NULL, 0); /* unchecked text: only no crash is asked */
	if (json_parse(text, 1 << 20, &d) != ERR_OK)
		return 0;
	if (json_is(json_root(d), JSON_OBJECT))
		check_spans(d, text);
	buf_init(&out, 16 * size + 64);
	struct json_writer w = json_writer(&out);
	walk(json_root(d), &w);
	must(json_writer_done(&w) == ERR_OK);
	must(json_parse(buf_str(&out), out.n, &again) == ERR_OK);
	json_free(again);
	json_free(d);
	buf_done(&out);
	return 0;
}
