/* json_test.c: reading, spans, refusals, writing. */
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memo.h"
#include "base/must.h"
#include "wire/json.h"

static enum err parse_err(struct str s)
{
	struct json_doc *d;
	enum err e = json_parse(s, 1 << 20, &d);
	if (e == ERR_OK)
		json_free(d);
	return e;
}

static struct json_doc *parse(struct str s)
{
	struct json_doc *d = NULL;
	assert_int_equal(json_parse(s, 1 << 20, &d), ERR_OK);
	return d;
}

#define assert_str(s, lit) assert_true(str_eq(s, STR(lit)))

static void refusals(void **state)
{
	(void)state;
	assert_int_equal(parse_err(STR("")), ERR_SYNTAX);
	assert_int_equal(parse_err(STR("{")), ERR_SYNTAX);
	assert_int_equal(parse_err(STR("{} x")), ERR_SYNTAX);
	assert_int_equal(parse_err(STR("{\"a\":1,}")), ERR_SYNTAX);
	assert_int_equal(parse_err(STR("\"\xff\"")), ERR_SYNTAX);
	assert_int_equal(parse_err(STR("\"\xc3\"")), ERR_SYNTAX);
	assert_int_equal(parse_err(STR("\"\\ud800\"")), ERR_SYNTAX);
	assert_int_equal(parse_err(STR("\"\\udc00x\"")), ERR_SYNTAX);
	assert_int_equal(parse_err(STR("\"a\0b\"")), ERR_SYNTAX);
	assert_int_equal(parse_err(STR("{}\0")), ERR_SYNTAX);
	assert_int_equal(parse_err(STR("NaN")), ERR_SYNTAX);
	assert_int_equal(parse_err(STR("01")), ERR_SYNTAX);
	struct json_doc *d;
	assert_int_equal(json_parse(STR("[1,2]"), 4, &d), ERR_LIMIT);
}

static void depth_is_bounded(void **state)
{
	(void)state;
	char s[4 * JSON_MAX_DEPTH];
	memset(s, '[', JSON_MAX_DEPTH);
	memset(s + JSON_MAX_DEPTH, ']', JSON_MAX_DEPTH);
	assert_int_equal(parse_err(str_from(s, 2 * JSON_MAX_DEPTH)), ERR_OK);
	memset(s, '[', JSON_MAX_DEPTH + 1);
	memset(s + JSON_MAX_DEPTH + 1, ']', JSON_MAX_DEPTH + 1);
	assert_int_equal(parse_err(str_from(s, 2 * JSON_MAX_DEPTH + 2)), ERR_LIMIT);
	/* brackets in strings do not count */
	memset(s, '[', sizeof(s));
	s[0] = s[sizeof(s) - 1] = '"';
	assert_int_equal(parse_err(str_from(s, sizeof(s))), ERR_OK);
}

static void values_are_bounded(void **state)
{
	(void)state;
	size_t n = 2 * (size_t)JSON_MAX_VALUES + 16;
	char *s = malloc(n);
	for (size_t i = 0; i < n; i++)
		s[i] = i % 2 ? ',' : '1';
	s[0] = '[';
	s[1] = '1';
	struct json_doc *d;
	assert_int_equal(json_parse(str_from(s, n), n, &d), ERR_LIMIT);
	free(s);
}

/* Without the first pass the same holds of values, of what is no JSON and of repeated members; memory is bounded while it is read. */
static void files_are_read_at_once(void **state)
{
	(void)state;
	static const size_t VALUES[] = { JSON_MAX_VALUES - 1, JSON_MAX_VALUES, 3 * (size_t)JSON_MAX_VALUES };
	struct json_doc *d;
	size_t cap = 2 * VALUES[2] + 1;
	char *s = malloc(cap);
	for (size_t i = 0; i < cap; i++)
		s[i] = i % 2 ? '1' : ',';
	s[0] = '[';
	for (size_t i = 0; i < ARRAY_LEN(VALUES); i++) {     /* beside the array */
		size_t n = 2 * VALUES[i] + 1;
		char kept = s[n - 1];
		s[n - 1] = ']';
		enum err e = json_parse_file(str_from(s, n), n, &d);
		assert_int_equal(e, i == 0 ? ERR_OK : ERR_LIMIT);
		if (e == ERR_OK) {
			assert_int_equal(json_len(json_root(d)), VALUES[i]);
			json_free(d);
		}
		assert_int_equal(json_parse_file(str_from(s, n - 1), n, &d), i == 2 ? ERR_LIMIT : ERR_SYNTAX);
		s[n - 1] = kept;
	}
	free(s);
	assert_int_equal(json_parse_file(STR("[1]"), 2, &d), ERR_LIMIT);
	assert_int_equal(json_parse_file(STR("[1"), 9, &d), ERR_SYNTAX);
	assert_int_equal(json_parse_file(STR("{\"a\":1,\"\\u0061\":2}"), 99, &d), ERR_DUPLICATE);
	assert_int_equal(json_parse_file(STR("{\"a\":[[1]]}"), 99, &d), ERR_OK);
	assert_int_equal(json_len(json_get(json_root(d), STR("a"))), 1);
	json_free(d);
}

static void pairs_of_strings(void **state)
{
	(void)state;
	struct json_doc *d;
	struct str s[2] = { STR("?"), STR("?") };
	assert_int_equal(json_parse(STR("[[\"a\",\"\\u0062c\"],[\"a\"],[\"a\",\"b\",\"c\"],[\"a\",1],[1,\"a\"],{\"a\":\"b\"},\"ab\",[[\"a\",\"b\"],\"c\"]]"), 999, &d), ERR_OK);
	struct json_iter it = json_each(json_root(d));
	assert_true(json_next(&it) && json_str_pair(it.val, s));
	assert_true(str_eq(s[0], STR("a")) && str_eq(s[1], STR("bc")));
	while (json_next(&it))
		assert_false(json_str_pair(it.val, s));
	assert_false(json_str_pair(NULL, s));
	json_free(d);
}

static enum err stranger(struct str text, size_t max_bytes, struct json_doc **ret_doc)
{
	return json_parse_body(text, &(struct json_body_opts){ .max_bytes = max_bytes }, ret_doc);
}

/* `n` times `item`, with commas, as the value of a member. */
static enum err body_of(const char *item, size_t n, enum err (*fn)(struct str, size_t, struct json_doc **))
{
	struct buf b;
	struct json_doc *d = NULL;
	buf_init(&b, 8 << 20);
	must(buf_add(&b, STR("{\"a\":")) == ERR_OK);
	for (size_t i = 0; i < n; i++)
		must(buf_printf(&b, "%c%s", i ? ',' : '[', item) == ERR_OK);
	must(buf_add(&b, STR("]}")) == ERR_OK);
	enum err e = fn(buf_str(&b), b.n, &d);
	if (e == ERR_OK)
		json_free(d);
	buf_done(&b);
	return e;
}

/* What costs the readers of a request much more than its bytes is bounded there, and there only: a tokenizer's file has more. */
static void bodies_have_less_room(void **state)
{
	(void)state;
	enum { OPENS = JSON_BODY_MAX_OPENS - 2, KEYS = JSON_BODY_MAX_KEYS - 1 };     /* less the outer ones */
	assert_int_equal(body_of("{}", OPENS, stranger), ERR_OK);
	assert_int_equal(body_of("{}", OPENS + 1, stranger), ERR_LIMIT);
	assert_int_equal(body_of("[]", OPENS + 1, stranger), ERR_LIMIT);
	assert_int_equal(body_of("[]", OPENS + 1, json_parse), ERR_OK);
	assert_int_equal(body_of("{\"a\":0,\"a\":0,\"a\":0,\"a\":0,\"a\":0}", KEYS / 5, stranger), ERR_OK);
	assert_int_equal(body_of("{\"a\":0,\"a\":0,\"a\":0,\"a\":0,\"a\":0}", KEYS / 5 + 1, stranger), ERR_LIMIT);
	assert_int_equal(body_of("{\"a\":0,\"a\":0,\"a\":0,\"a\":0,\"a\":0}", KEYS / 5 + 1, json_parse), ERR_OK);
	assert_int_equal(body_of("0", OPENS + 1, stranger), ERR_OK);
	assert_int_equal(body_of("\":{[\\\"\"", OPENS + 1, stranger), ERR_OK);
}

/* jansson and Python take the last of two equal members, this library the first: nobody may guess. */
static void top_members_must_differ(void **state)
{
	(void)state;
	assert_int_equal(parse_err(STR("{\"model\":\"a\",\"model\":\"b\"}")), ERR_DUPLICATE);
	assert_int_equal(parse_err(STR("{\"model\":\"a\",\"mod\\u0065l\":\"b\"}")), ERR_DUPLICATE);
	assert_int_equal(parse_err(STR("{\"a\":{\"x\":1,\"x\":2}}")), ERR_OK);
	struct buf many;
	buf_init(&many, 1024);
	for (int i = 0; i < 40; i++)
		assert_int_equal(buf_printf(&many, "%c\"k%d\":%d", i ? ',' : '{', i, i), ERR_OK);
	assert_int_equal(buf_add(&many, STR(",\"k7\":0}")), ERR_OK);
	assert_int_equal(parse_err(buf_str(&many)), ERR_DUPLICATE);
	buf_done(&many);
	struct json_doc *d = parse(STR("{\"a\":{\"x\":1,\"y\":5,\"x\":2}}"));
	uint64_t n = 0;
	assert_true(json_u64(json_get(json_get(json_root(d), STR("a")), STR("x")), &n));
	assert_int_equal(n, 2);
	json_free(d);
}

static void typed_reads(void **state)
{
	(void)state;
	struct json_doc *d = parse(STR("{\"s\":\"a\\u0000\\u00e9\",\"i\":9007199254740993,\"neg\":-3,\"f\":16.0,\"e\":1e3,\"h\":1.5,"
				       "\"big\":1e999,\"t\":true,\"z\":null,\"l\":[1,[2],{\"k\":3}],\"o\":{}}"));
	const struct json_val *r = json_root(d);
	struct str s;
	uint64_t u = 7;
	int64_t i = 7;
	double x;
	bool b;
	assert_true(json_str(json_get(r, STR("s")), &s) && str_eq(s, STR("a\0\xc3\xa9")));
	assert_true(json_u64(json_get(r, STR("i")), &u) && u == 9007199254740993u);
	assert_true(json_number_text(json_get(r, STR("i")), &s) && str_eq(s, STR("9007199254740993")));
	assert_false(json_u64(json_get(r, STR("neg")), &u));
	assert_true(json_i64(json_get(r, STR("neg")), &i) && i == -3);
	assert_true(json_u64(json_get(r, STR("f")), &u) && u == 16);
	assert_true(json_i64(json_get(r, STR("e")), &i) && i == 1000);
	assert_false(json_u64(json_get(r, STR("h")), &u));
	assert_true(json_f64(json_get(r, STR("h")), &x) && x == 1.5);
	assert_false(json_f64(json_get(r, STR("big")), &x));
	assert_true(json_bool(json_get(r, STR("t")), &b) && b);
	assert_true(json_true(json_get(r, STR("t"))) && !json_true(json_get(r, STR("z"))) && !json_true(NULL));
	assert_true(json_is(json_get(r, STR("z")), JSON_NULL) && !json_is(NULL, JSON_NULL));
	assert_null(json_get(r, STR("absent")));
	assert_null(json_get(json_get(r, STR("l")), STR("k")));
	assert_false(json_str(json_get(r, STR("i")), &s));
	assert_int_equal(json_len(json_get(r, STR("l"))), 3);
	int turns = 0;
	for (struct json_iter it = json_each(json_get(r, STR("l"))); json_next(&it); turns++)
		if (turns == 2)
			assert_true(json_u64(json_get(it.val, STR("k")), &u) && u == 3);
	assert_int_equal(turns, 3);
	for (struct json_iter it = json_each(json_get(r, STR("o"))); json_next(&it);)
		fail();
	json_free(d);
}

static void spans_point_into_the_text(void **state)
{
	(void)state;
	struct str t = STR(" \n{ \"a\" : \"x,}\\\"]\" ,\"b\":[1,{\"c\":\"]\"}] , \"n\":-1.5e3,\"t\":true,\"\\u0065\":{\"q\":null }\n}");
	struct json_doc *d = parse(t);
	size_t n;
	const struct json_member *m = json_members(d, &n);
	assert_int_equal(n, 5);
	assert_str(json_span_str(t, m[0].key), "\"a\"");
	assert_str(json_span_str(t, m[0].val), "\"x,}\\\"]\"");
	assert_str(json_span_str(t, m[1].val), "[1,{\"c\":\"]\"}]");
	assert_str(json_span_str(t, m[2].val), "-1.5e3");
	assert_str(json_span_str(t, m[3].val), "true");
	assert_str(json_span_str(t, m[4].val), "{\"q\":null }");
	struct json_member e;
	assert_true(json_member(d, STR("e"), &e));
	assert_int_equal(e.val.off, m[4].val.off);
	assert_true(json_quoted_eq(json_span_str(t, e.key), STR("e")));
	assert_false(json_quoted_eq(json_span_str(t, e.key), STR("\\u0065")));
	assert_false(json_member(d, STR("zz"), &e));
	assert_int_equal(t.p[json_insert_at(d) - 1], '{');
	struct json_member q[1];
	assert_int_equal(json_scan_members(json_span_str(t, m[4].val), q, 1), 1);
	assert_str(json_span_str(json_span_str(t, m[4].val), q[0].val), "null");
	json_free(d);
	d = parse(STR("{ }"));
	json_members(d, &n);
	assert_int_equal(n, 0);
	assert_int_equal(json_insert_at(d), 1);
	json_free(d);
	d = parse(STR("[{\"a\":1}]"));
	json_members(d, &n);
	assert_int_equal(n, 0);
	assert_false(json_member(d, STR("a"), &e));
	json_free(d);
}

static void strings_with_many_backslashes(void **state)
{
	(void)state;
	struct str t = STR("{\"a\\\\\":\"\\\\\\\\\",\"b\":\"\\\\\\\"\",\"c\":1}");
	struct json_doc *d = parse(t);
	struct json_member m;
	assert_true(json_member(d, STR("a\\"), &m));
	assert_str(json_span_str(t, m.val), "\"\\\\\\\\\"");
	assert_true(json_member(d, STR("c"), &m));
	assert_str(json_span_str(t, m.val), "1");
	json_free(d);
}

static void writes_what_it_reads(void **state)
{
	(void)state;
	struct buf b;
	buf_init(&b, 1000);
	struct json_writer w = json_writer(&b);
	json_put_open(&w, '{');
	json_put_key(&w, STR("a\"\n\x01"));
	json_put_str(&w, STR("\xc3\xa9 \xff\t\\"));
	json_put_key(&w, STR("l"));
	json_put_open(&w, '[');
	json_put_u64(&w, UINT64_MAX);
	json_put_i64(&w, -5);
	json_put_f64(&w, 0.1);
	json_put_f64(&w, 1.0 / 0.0);
	json_put_f64(&w, 1e300);
	json_put_f64(&w, 0.1 + 0.2);
	json_put_bool(&w, true);
	json_put_null(&w);
	json_put_raw(&w, STR("{\"x\":1}"));
	json_put_close(&w, ']');
	json_put_close(&w, '}');
	assert_int_equal(json_writer_done(&w), ERR_OK);
	assert_str(buf_str(&b), "{\"a\\\"\\n\\u0001\":\"\xc3\xa9 \xef\xbf\xbd\\t\\\\\",\"l\":[18446744073709551615,-5,0.1,null,1e+300,"
				"0.30000000000000004,true,null,{\"x\":1}]}");
	assert_int_equal(parse_err(buf_str(&b)), ERR_OK);
	buf_done(&b);
	buf_init(&b, 4);
	w = json_writer(&b);
	json_put_str(&w, STR("too long"));
	json_put_null(&w);
	assert_int_equal(json_writer_done(&w), ERR_LIMIT);
	buf_done(&b);
}

static void writes_a_value_that_it_read(void **state)
{
	struct str text = STR("{\"a\":[1,-2.50e+3,\"q\\\"\\u00e9\",null,true,{}],\"b\":{\"c\":[],\"n\":12345678901234567890123}}");
	struct json_doc *d;
	struct buf b;
	(void)state;
	buf_init(&b, 1000);
	struct json_writer w = json_writer(&b);
	assert_int_equal(json_parse(text, text.n, &d), ERR_OK);
	json_put_open(&w, '[');
	json_put_val(&w, json_root(d));
	json_put_val(&w, NULL);
	json_put_close(&w, ']');
	assert_int_equal(json_writer_done(&w), ERR_OK);
	assert_str(buf_str(&b), "[{\"a\":[1,-2.50e+3,\"q\\\"\xc3\xa9\",null,true,{}],\"b\":{\"c\":[],\"n\":12345678901234567890123}},null]");
	json_free(d);
	buf_done(&b);
}

static void known_members_only(void **state)
{
	static const struct { const char *text; bool only; } rows[] = {
		{ "{}", true }, { "{\"a\":1,\"b\":2}", true }, { "{\"a\":1,\"c\":2}", false }, { "{\"c\":null,\"a\":null}", true }, { "[]", false }, { "null", false },
	};
	static const struct str NAMES[] = { STR_INIT("a"), STR_INIT("b") };
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct json_doc *d;
		assert_int_equal(json_parse(str_of(rows[i].text), 100, &d), ERR_OK);
		assert_int_equal(json_only(json_root(d), NAMES, ARRAY_LEN(NAMES)), rows[i].only);
		json_free(d);
	}
	assert_false(json_only(NULL, NAMES, ARRAY_LEN(NAMES)));
}

/* ---- what is remembered of bodies */

/* How a body reads with that memory: its value written again; "" when it is refused. */
static struct str read_with(struct memo *memo, size_t large_bytes, const char *text, struct buf *out, enum err *ret_e)
{
	struct json_doc *d;
	buf_clear(out);
	*ret_e = json_parse_body(str_of(text), &(struct json_body_opts){ .max_bytes = 1 << 20, .memo = memo, .large_bytes = large_bytes }, &d);
	if (*ret_e != ERR_OK)
		return (struct str){ 0 };
	struct json_writer w = json_writer(out);
	json_put_val(&w, json_root(d));
	assert_int_equal(json_writer_done(&w), ERR_OK);
	json_free(d);
	return buf_str(out);
}

/* With nothing remembered, with everything, and with parts of it: always the same. */
static void large_elements_change_nothing(void **state)
{
	static const char *const TEXTS[] = {
		"{\"messages\":[{\"a\":\"x\\n\\u00e9\\\"]\"}, {\"a\":[1,{\"b\":2}]} ,\"three\"],\"n\":0}",
		"{\"messages\":[{\"a\":\"x\\n\\u00e9\\\"]\"}, {\"a\":[1,{\"b\":2}]} ,\"three\",{\"new\":true}],\"n\":0}",
		"{\"a\":[0,[0,0],0,-0.0,\"0\"],\"b\":[0,{\"a\":0}],\"c\":[],\"d\":[[]],\"e\":{\"f\":[{\"a\":\"xyz\"}]}}",
		" { \"a\" : [ 1e5 , 100 , null , true , \"\\ud83d\\ude00\" ] } ",
		"[{\"a\":[1,2,3]},[1,2,3]]", "[]", "{}", "17", "{\"a\":[ ]}",
		"{\"a\":[{\"x\":1,\"x\":2}],\"a\":[1]}", /* the inner one is legal, the outer one not */
		"{\"a\":[{\"b\":1}{\"c\":2}]}", "{\"a\":[{\"b\":1],2}}", "{\"a\":[{\"b\":1},]}", "{\"a\":[,{\"b\":1}]}", "{\"a\":[{\"b\":1}", "{\"a\":[{\"b\":1}]]}",
		"{\"a\":[{\"b\":1}]}x", "{\"a\":[{\"b\":01}]}", "{\"a\":[{\"b\":\"\\ud800\"}]}", "{\"a\":[\"\xff\"]}", "{\"a\":[\"unfinished]}", "{\"a\":[1 2]}", "{[1,2]:3}",
	};
	struct buf plain, with;
	buf_init(&plain, 1 << 20);
	buf_init(&with, 1 << 20);
	(void)state;
	for (size_t large = 1; large < 20; large++) {
		struct memo *memo = memo_new(1 << 20, large);
		for (size_t i = 0; i < 2 * ARRAY_LEN(TEXTS); i++) {
			enum err want, got;
			struct str a = read_with(NULL, 0, TEXTS[i % ARRAY_LEN(TEXTS)], &plain, &want);
			struct str b = read_with(memo, large, TEXTS[i % ARRAY_LEN(TEXTS)], &with, &got);
			if (got != want || !str_eq(a, b))
				fail_msg("%s: %s, with memory %s", TEXTS[i % ARRAY_LEN(TEXTS)], err_text(want), err_text(got));
		}
		assert_true(memo_stats(memo).items > 0);
		memo_free(memo);
	}
	buf_done(&plain);
	buf_done(&with);
}

static void a_next_turn_adds_what_is_new(void **state)
{
	struct buf b, out;
	enum err e;
	struct memo *memo = memo_new(1 << 24, 1);
	(void)state;
	buf_init(&b, 1 << 20);
	buf_init(&out, 1 << 20);
	for (size_t turns = 1; turns < 40; turns++) {
		buf_clear(&b);
		must(buf_add(&b, STR("{\"messages\":[\"short\"")) == ERR_OK);
		for (size_t i = 0; i < turns; i++)
			must(buf_printf(&b, ",{\"content\":\"%0*zu\"}", JSON_LARGE_BYTES, i) == ERR_OK);
		must(buf_printf(&b, "],\"stream\":true}%c", 0) == ERR_OK);
		assert_true(str_eq(read_with(memo, 0, b.p, &out, &e), str_of(b.p)));
		assert_int_equal(memo_stats(memo).items, turns < 4 ? 0 : turns); /* the first ones are short bodies */
	}
	memo_free(memo);
	buf_done(&b);
	buf_done(&out);
}

/* What the table counts is what the process holds: its bound bounds memory. */
static void what_is_remembered_is_counted(void **state)
{
	enum { MESSAGES = 400 };
	struct buf b;
	struct json_doc *d;
	(void)state;
	if (mallinfo2().uordblks == 0)
		skip(); /* a sanitizer's allocator */
	buf_init(&b, 2 << 20);
	must(buf_add(&b, STR("{\"messages\":[0")) == ERR_OK);
	for (size_t i = 0; i < MESSAGES; i++)
		must(buf_printf(&b, ",{\"role\":\"user\",\"content\":\"%0*zu\"}", 600 + (int)i * 5, i) == ERR_OK);
	must(buf_add(&b, STR("]}")) == ERR_OK);
	struct memo *memo = memo_new(64 << 20, 1);
	size_t before = mallinfo2().uordblks;
	assert_int_equal(json_parse_body(buf_str(&b), &(struct json_body_opts){ .max_bytes = b.n, .memo = memo }, &d), ERR_OK);
	json_free(d);
	size_t held = mallinfo2().uordblks - before, counted = memo_stats(memo).bytes;
	assert_int_equal(memo_stats(memo).items, MESSAGES);
	if (held > counted * 11 / 10 || held < counted * 3 / 4)
		fail_msg("%zu bytes held, %zu counted", held, counted);
	memo_free(memo);
	buf_done(&b);
}

/* A document is whole as long as it lives, whatever the table forgets. */
static void a_document_outlives_the_memory(void **state)
{
	struct memo *memo = memo_new(1 << 20, 1);
	struct str text = STR("{\"a\":[{\"b\":\"a\\tb\"},{\"c\":[1,2]}],\"d\":5}"), s;
	struct json_doc *d[2];
	struct json_member m;
	(void)state;
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(json_parse_body(text, &(struct json_body_opts){ .max_bytes = text.n, .memo = memo, .large_bytes = 4 }, &d[i]), ERR_OK);
	json_free(d[0]);
	memo_free(memo);
	struct json_iter it = json_each(json_get(json_root(d[1]), STR("a")));
	assert_true(json_next(&it) && json_str(json_get(it.val, STR("b")), &s) && str_eq(s, STR("a\tb")));
	assert_true(json_next(&it) && json_len(json_get(it.val, STR("c"))) == 2 && !json_next(&it));
	assert_true(json_member(d[1], STR("d"), &m) && str_eq(json_span_str(text, m.val), STR("5")));
	assert_true(json_member(d[1], STR("a"), &m) && m.val.n == text.n - 12);
	assert_int_equal(json_insert_at(d[1]), 1);
	json_free(d[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_members_only), cmocka_unit_test(refusals),
		cmocka_unit_test(depth_is_bounded),
		cmocka_unit_test(values_are_bounded),
		cmocka_unit_test(files_are_read_at_once),
		cmocka_unit_test(pairs_of_strings),
		cmocka_unit_test(bodies_have_less_room),
		cmocka_unit_test(large_elements_change_nothing),
		cmocka_unit_test(a_next_turn_adds_what_is_new),
		cmocka_unit_test(what_is_remembered_is_counted),
		cmocka_unit_test(a_document_outlives_the_memory),
		cmocka_unit_test(top_members_must_differ),
		cmocka_unit_test(typed_reads),
		cmocka_unit_test(spans_point_into_the_text),
		cmocka_unit_test(strings_with_many_backslashes),
		cmocka_unit_test(writes_what_it_reads),
		cmocka_unit_test(writes_a_value_that_it_read),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
