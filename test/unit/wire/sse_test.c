/* sse_test.c: every stream is delivered whole, byte by byte, cut at every place; the events must be the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "wire/sse.h"

/* One line an event, unambiguous: raw, data, event, id, flags. */
static void note(struct buf *out, const struct sse_event *ev)
{
	assert_int_equal(buf_printf(out, "[%zu:%.*s|%zu:%.*s|%.*s|%.*s|%d%d]\n", ev->raw.n, STR_ARG(ev->raw), ev->data.n, STR_ARG(ev->data),
				 STR_ARG(ev->event), STR_ARG(ev->id), ev->has_data, ev->whole),
		ERR_OK);
}

static void feed(struct sse *s, struct str piece, struct buf *out, struct buf *raw)
{
	struct sse_event ev;
	sse_feed(s, piece);
	enum err e;
	while ((e = sse_next(s, &ev)) == ERR_OK) {
		note(out, &ev);
		assert_int_equal(buf_add(raw, ev.raw), ERR_OK);
	}
	assert_int_equal(e, ERR_AGAIN);
}

static void split(struct str t, size_t cut_a, size_t cut_b, bool bytes, struct buf *out)
{
	struct sse s;
	struct buf raw;
	struct sse_event ev;
	sse_init(&s, 1 << 22);
	buf_init(&raw, 1 << 23);
	buf_clear(out);
	if (bytes) {
		for (size_t i = 0; i < t.n; i++) {
			char c = t.p[i]; /* a piece that dies at once: nothing may point into it later */
			feed(&s, (struct str){ &c, 1 }, out, &raw);
		}
	} else {
		feed(&s, str_sub(t, 0, cut_a), out, &raw);
		feed(&s, str_sub(t, cut_a, cut_b - cut_a), out, &raw);
		feed(&s, str_skip(t, cut_b), out, &raw);
	}
	if (sse_end(&s, &ev)) {
		note(out, &ev);
		assert_int_equal(buf_add(&raw, ev.raw), ERR_OK);
	}
	assert_true(str_eq(buf_str(&raw), t));
	sse_done(&s);
	buf_done(&raw);
}

static void same_for_every_cut(struct str t, struct str expect)
{
	struct buf whole, other;
	buf_init(&whole, 1 << 23);
	buf_init(&other, 1 << 23);
	split(t, t.n, t.n, false, &whole);
	if (expect.p && !str_eq(buf_str(&whole), expect))
		fail_msg("got:\n%.*swanted:\n%.*s", STR_ARG(buf_str(&whole)), STR_ARG(expect));
	split(t, 0, 0, true, &other);
	assert_true(str_eq(buf_str(&whole), buf_str(&other)));
	for (size_t a = 0; a <= t.n; a++)
		for (size_t b = a; b <= t.n; b += 1 + (b - a) * (t.n > 200)) {
			split(t, a, b, false, &other);
			if (!str_eq(buf_str(&whole), buf_str(&other)))
				fail_msg("cut at %zu and %zu", a, b);
		}
	buf_done(&whole);
	buf_done(&other);
}

/* Vector J.1 and case 46 (praxis#739, pasteguard#112): cut characters, CRLF, no space, a last line without newline. */
static void case_praxis_739_cut_anywhere(void **state)
{
	(void)state;
	same_for_every_cut(STR("data: {\"a\":\"h\xc3\xa9\"}\n\ndata:{\"b\":\"\xf0\x9f\x98\x80\"}\r\n\r\ndata: last"),
		STR("[19:data: {\"a\":\"h\xc3\xa9\"}\n\n|11:{\"a\":\"h\xc3\xa9\"}|||11]\n"
		    "[21:data:{\"b\":\"\xf0\x9f\x98\x80\"}\r\n\r\n|12:{\"b\":\"\xf0\x9f\x98\x80\"}|||11]\n"
		    "[10:data: last|4:last|||10]\n"));
}

/* Case 38 (envoy ai-gateway#2470): the space behind `data:` is optional, and only one is taken away. */
static void case_ai_gateway_2470_no_space(void **state)
{
	(void)state;
	same_for_every_cut(STR("data:{}\n\ndata:  x\n\n"), STR("[9:data:{}\n\n|2:{}|||11]\n[10:data:  x\n\n|2: x|||11]\n"));
}

/* Case 43 (gateway-api-inference-extension#1626): several events in one read, [DONE] among them. */
static void case_gaie_1626_usage_and_done_in_one_read(void **state)
{
	(void)state;
	same_for_every_cut(STR("data: {\"usage\":1}\n\ndata: [DONE]\n\n"),
		STR("[19:data: {\"usage\":1}\n\n|11:{\"usage\":1}|||11]\n[14:data: [DONE]\n\n|6:[DONE]|||11]\n"));
}

/* Case 41 (liter-llm#152): a character cut by the read is no error. */
static void case_liter_llm_152_cut_character(void **state)
{
	(void)state;
	same_for_every_cut(STR("data: \xe6\x97\xa5\xe6\x9c\xac\xf0\x9f\x8d\xa3\n\n"), (struct str){ 0 });
}

/* Vector J.2. */
static void line_ends_and_comments(void **state)
{
	(void)state;
	same_for_every_cut(STR("\xef\xbb\xbf"
			       "data: a\n\n"),
		STR("[12:\xef\xbb\xbf"
		    "data: a\n\n|1:a|||11]\n"));
	same_for_every_cut(STR("data: a\r\rdata: b\r\r"), STR("[9:data: a\r\r|1:a|||11]\n[9:data: b\r\r|1:b|||11]\n"));
	same_for_every_cut(STR("event: x\r\ndata: a\r\nid: 7\r\n\r\n"), STR("[28:event: x\r\ndata: a\r\nid: 7\r\n\r\n|1:a|x|7|11]\n"));
	same_for_every_cut(STR(": ping\n\n\n\ndata: a\ndata: b\ndata\n\n"),
		STR("[8:: ping\n\n|0:|||01]\n[1:\n|0:|||01]\n[1:\n|0:|||01]\n[22:data: a\ndata: b\ndata\n\n|4:a\nb\n|||11]\n"));
	same_for_every_cut(
		STR("data:\ndata:\n\nother: 1\nnocolon\n\n"), STR("[13:data:\ndata:\n\n|1:\n|||11]\n[18:other: 1\nnocolon\n\n|0:|||01]\n"));
	same_for_every_cut(STR("data: a\r\n\r"), STR("[10:data: a\r\n\r|1:a|||11]\n"));
	same_for_every_cut(STR("data: a\r\r\ndata: b\n\r\ndata: c\n\rdata: d\r\n\n"), (struct str){ 0 });
	same_for_every_cut(STR("\r\n\r\r\n\n\xef\xbb\xbf\r"), (struct str){ 0 });
	same_for_every_cut(STR(""), STR(""));
}

static void big_events(void **state)
{
	(void)state;
	size_t n = (size_t)1 << 20;
	char *t = malloc(n);
	memset(t, 'x', n);
	memcpy(t, "data: ", 6);
	memcpy(t + n - 2, "\n\n", 2);
	struct sse s;
	struct sse_event ev;
	sse_init(&s, n);
	for (size_t at = 0; at < n; at += 8192) {
		sse_feed(&s, str_from(t + at, MIN((size_t)8192, n - at)));
		assert_int_equal(sse_next(&s, &ev), at + 8192 < n ? ERR_AGAIN : ERR_OK);
	}
	assert_int_equal(ev.data.n, n - 8);
	assert_int_equal(sse_next(&s, &ev), ERR_AGAIN);
	assert_int_equal(sse_held_bytes(&s), 0);
	sse_done(&s);
	free(t);
}

/* What is beyond the limit is handed back, so that the bytes can still pass. */
static void an_event_over_the_limit(void **state)
{
	(void)state;
	for (size_t first = 0; first < 40; first++) {
		struct sse s;
		struct sse_event ev;
		struct str t = STR("data: ok\n\ndata: 0123456789012345678901234567890123456789\n\n"), held, unread;
		struct buf all;
		buf_init(&all, 1000);
		sse_init(&s, 20);
		enum err e = ERR_AGAIN;
		struct str pieces[2] = { str_sub(t, 0, first), str_skip(t, first) };
		for (int i = 0; i < 2 && e == ERR_AGAIN; i++) {
			sse_feed(&s, pieces[i]);
			while ((e = sse_next(&s, &ev)) == ERR_OK)
				assert_int_equal(buf_add(&all, ev.raw), ERR_OK);
			if (e == ERR_LIMIT) {
				sse_take_rest(&s, &held, &unread);
				assert_int_equal(buf_add(&all, held), ERR_OK);
				assert_int_equal(buf_add(&all, unread), ERR_OK);
				for (i++; i < 2; i++)
					assert_int_equal(buf_add(&all, pieces[i]), ERR_OK);
			}
		}
		assert_int_equal(e, ERR_LIMIT);
		assert_true(str_eq(buf_str(&all), t));
		buf_done(&all);
		sse_done(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(case_praxis_739_cut_anywhere),
		cmocka_unit_test(case_ai_gateway_2470_no_space),
		cmocka_unit_test(case_gaie_1626_usage_and_done_in_one_read),
		cmocka_unit_test(case_liter_llm_152_cut_character),
		cmocka_unit_test(line_ends_and_comments),
		cmocka_unit_test(big_events),
		cmocka_unit_test(an_event_over_the_limit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
