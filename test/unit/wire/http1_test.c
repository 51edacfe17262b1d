/* Messages whole and cut at every byte; everything that smuggles is refused, whole and cut alike. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/buf.h"
#include "wire/http1.h"

struct run {
	struct http1 p;
	struct http1_head *head;
	struct buf body;
	int heads;
	enum http1_step step;
	size_t used;
	bool stop_at_head;
};

static bool on_head(void *arg)
{
	struct run *r = arg;
	r->heads++;
	return !r->stop_at_head;
}

static bool on_body(void *arg, struct str piece)
{
	struct run *r = arg;
	assert_int_equal(r->heads, 1);
	assert_int_equal(buf_add(&r->body, piece), ERR_OK);
	return true;
}

static const struct http1_ops ops = { on_head, on_body };
static const struct http1_limits limits = { 4096, 16 };

static void init(struct run *r, enum http1_kind kind, bool no_body)
{
	*r = (struct run){ .head = http1_head_new(), .step = HTTP1_MORE };
	buf_init(&r->body, 1 << 20);
	http1_init(&r->p, kind, limits, &ops, r);
	http1_begin(&r->p, r->head, no_body);
}

static void done(struct run *r)
{
	http1_head_free(r->head);
	buf_done(&r->body);
}

/* Feeds a heap copy of exactly these bytes, so that reading too far is seen. */
static void feed(struct run *r, const char *p, size_t n)
{
	char *copy = malloc(n ? n : 1);
	size_t used = 0;
	memcpy(copy, p, n);
	if (r->step == HTTP1_MORE)
		r->step = http1_feed(&r->p, (struct str){ copy, n }, &used);
	r->used += used;
	free(copy);
}

static const char request[] = "POST /v1/x%20y?a=1&b=2 HTTP/1.1\r\n"
			      "Host: example:80\r\n"
			      "Empty:\r\n"
			      "x-Trailing:  v with space \t\r\n"
			      "Content-Length: 5\r\n"
			      "\r\n"
			      "hello";

static void check_request(struct run *r)
{
	const struct http1_head *h = r->head;
	assert_int_equal(r->step, HTTP1_DONE);
	assert_int_equal(r->heads, 1);
	assert_true(str_eq(h->method, STR("POST")));
	assert_true(str_eq(h->target, STR("/v1/x%20y?a=1&b=2")));
	assert_true(str_eq(h->path, STR("/v1/x%20y")));
	assert_true(str_eq(h->query, STR("a=1&b=2")));
	assert_true(str_eq(h->host, STR("example:80")));
	assert_int_equal(h->n_fields, 4);
	assert_true(str_eq(h->fields[1].name, STR("Empty")));
	assert_int_equal(h->fields[1].value.n, 0);
	assert_true(str_eq(h->fields[2].value, STR("v with space")));
	assert_int_equal(h->content_length, 5);
	assert_true(h->keep_alive);
	assert_true(str_eq(buf_str(&r->body), STR("hello")));
}

static void test_request_cut_at_every_byte(void **state)
{
	(void)state;
	for (size_t cut = 0; cut < sizeof(request); cut++) {
		struct run r;
		init(&r, HTTP1_REQUEST, false);
		feed(&r, request, cut);
		feed(&r, request + cut, sizeof(request) - 1 - cut);
		check_request(&r);
		done(&r);
	}
}

static void test_request_byte_by_byte(void **state)
{
	struct run r;
	(void)state;
	init(&r, HTTP1_REQUEST, false);
	for (size_t i = 0; i + 1 < sizeof(request); i++)
		feed(&r, request + i, 1);
	check_request(&r);
	done(&r);
}

static void test_pipelined_requests_end_where_the_next_begins(void **state)
{
	static const char two[] = "GET /1 HTTP/1.1\r\nHost: a\r\n\r\nPOST /2 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
				  "3;ext=1\r\nabc\r\n2\r\nde\r\n0\r\nTrailer: t\r\n\r\n";
	size_t all = sizeof(two) - 1;
	(void)state;
	for (size_t cut = 0; cut <= all; cut++) {
		struct run r;
		size_t first = strstr(two, "POST") - two;
		init(&r, HTTP1_REQUEST, false);
		feed(&r, two, cut);
		if (r.step == HTTP1_MORE)
			feed(&r, two + cut, all - cut);
		assert_int_equal(r.step, HTTP1_DONE);
		assert_int_equal(r.used, first);
		r.step = HTTP1_MORE;
		r.heads = 0;
		http1_begin(&r.p, r.head, false);
		feed(&r, two + first, all - first);
		assert_int_equal(r.step, HTTP1_DONE);
		assert_int_equal(r.used, all);
		assert_true(str_eq(r.head->path, STR("/2")));
		assert_int_equal(r.head->content_length, HTTP1_CHUNKED);
		assert_int_equal(r.head->n_fields, 2);    /* the trailer is no field */
		assert_true(str_eq(buf_str(&r.body), STR("abcde")));
		done(&r);
	}
}

#define H "Host: a\r\n"
struct bad_row { const char *what, *text; int status; enum err err; };
static const struct bad_row bad_rows[] = {
	{ "length and coding", "POST / HTTP/1.1\r\n" H "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, ERR_SYNTAX },
	{ "coding and length", "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", 400, ERR_SYNTAX },
	{ "two lengths", "POST / HTTP/1.1\r\n" H "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello", 400, ERR_SYNTAX },
	{ "listed lengths", "POST / HTTP/1.1\r\n" H "Content-Length: 5, 5\r\n\r\nhello", 400, ERR_SYNTAX },
	{ "signed length", "POST / HTTP/1.1\r\n" H "Content-Length: +5\r\n\r\nhello", 400, ERR_SYNTAX },
	{ "negative length", "POST / HTTP/1.1\r\n" H "Content-Length: -5\r\n\r\nhello", 400, ERR_SYNTAX },
	{ "hex length", "POST / HTTP/1.1\r\n" H "Content-Length: 0x5\r\n\r\nhello", 400, ERR_SYNTAX },
	{ "length overflow", "POST / HTTP/1.1\r\n" H "Content-Length: 18446744073709551616\r\n\r\n", 400, ERR_SYNTAX },
	{ "length above int64", "POST / HTTP/1.1\r\n" H "Content-Length: 18446744073709551615\r\n\r\n", 400, ERR_SYNTAX },
	{ "xchunked", "POST / HTTP/1.1\r\n" H "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 501, ERR_UNSUPPORTED },
	{ "chunked, identity", "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", 0, ERR_OK },
	{ "gzip, chunked", "POST / HTTP/1.1\r\n" H "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501, ERR_UNSUPPORTED },
	{ "chunked twice", "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 0, ERR_OK },
	{ "coding in 1.0", "POST / HTTP/1.0\r\n" H "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, ERR_SYNTAX },
	{ "bare LF", "GET / HTTP/1.1\n" H "\n", 400, ERR_SYNTAX },
	{ "bare LF in a field", "GET / HTTP/1.1\r\nHost: a\nX: y\r\n\r\n", 400, ERR_SYNTAX },
	{ "bare CR in a value", "GET / HTTP/1.1\r\n" H "X: a\rb\r\n\r\n", 400, ERR_SYNTAX },
	{ "space before colon", "GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400, ERR_SYNTAX },
	{ "folded field", "GET / HTTP/1.1\r\n" H "X: a\r\n b\r\n\r\n", 400, ERR_SYNTAX },
	{ "field starts with space", "GET / HTTP/1.1\r\n X: a\r\n" H "\r\n", 400, ERR_SYNTAX },
	{ "control byte in a value", "GET / HTTP/1.1\r\n" H "X: a\001b\r\n\r\n", 400, ERR_SYNTAX },
	{ "chunk size overflow", "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n11111111111111111\r\n", 400, ERR_SYNTAX },
	{ "LF in a chunk extension", "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n5;a\nb\r\nhello\r\n0\r\n\r\n", 400, ERR_SYNTAX },
	{ "chunk longer than said", "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n3\r\nhello\r\n0\r\n\r\n", 400, ERR_SYNTAX },
	{ "HTTP/1.2", "GET / HTTP/1.2\r\n" H "\r\n", 505, ERR_UNSUPPORTED },
	{ "HTTP/2.0 line", "GET / HTTP/2.0\r\n" H "\r\n", 505, ERR_UNSUPPORTED },
	{ "HTTP/0.9", "GET / HTTP/0.9\r\n" H "\r\n", 505, ERR_UNSUPPORTED },
	{ "h2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505, ERR_UNSUPPORTED },
	{ "lower-case method", "get / HTTP/1.1\r\n" H "\r\n", 400, ERR_SYNTAX },
	{ "unknown method", "BREW / HTTP/1.1\r\n" H "\r\n", 400, ERR_SYNTAX },
	{ "CONNECT", "CONNECT a:80 HTTP/1.1\r\n" H "\r\n", 501, ERR_UNSUPPORTED },
	{ "no Host", "GET / HTTP/1.1\r\nX: y\r\n\r\n", 400, ERR_SYNTAX },
	{ "two Hosts", "GET / HTTP/1.1\r\n" H "host: a\r\n\r\n", 400, ERR_DUPLICATE },
	{ "Host with a space", "GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400, ERR_SYNTAX },
	{ "Host with a slash", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400, ERR_SYNTAX },
	{ "Host list", "GET / HTTP/1.1\r\nHost: a,b\r\n\r\n", 400, ERR_SYNTAX },
	{ "no slash", "GET x HTTP/1.1\r\n" H "\r\n", 400, ERR_SYNTAX },
	{ "fragment", "GET /a#b HTTP/1.1\r\n" H "\r\n", 400, ERR_SYNTAX },
	{ "absolute without host", "GET http:///a HTTP/1.1\r\n" H "\r\n", 400, ERR_SYNTAX },
	{ "userinfo in the target", "GET http://u@h/a HTTP/1.1\r\n" H "\r\n", 400, ERR_SYNTAX },
	{ "TLS hello", "\026\003\001\002\001\003", 400, ERR_SYNTAX },
};

static void test_smuggling_is_refused_whole_and_cut(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad_rows); i++) {
		const struct bad_row *b = &bad_rows[i];
		size_t n = strlen(b->text);
		for (size_t cut = 0; cut < n; cut++) {
			struct run r;
			init(&r, HTTP1_REQUEST, false);
			feed(&r, b->text, cut);
			feed(&r, b->text + cut, n - cut);
			if (r.step != HTTP1_BAD)
				fail_msg("%s, cut at %zu: accepted (step %d)", b->what, cut, r.step);
			if (b->status && (http1_error_status(&r.p) != b->status || http1_error(&r.p) != b->err))
				fail_msg("%s, cut at %zu: %d %s", b->what, cut, http1_error_status(&r.p), err_label(http1_error(&r.p)));
			done(&r);
		}
	}
}

static void whole(struct run *r, enum http1_kind kind, bool no_body, const char *text)
{
	init(r, kind, no_body);
	feed(r, text, strlen(text));
}

static void test_absolute_target_names_the_host(void **state)
{
	static const struct { const char *line, *target, *path, *query; } rows[] = {
		{ "GET http://real:81/p?q HTTP/1.1\r\n", "/p?q", "/p", "q" },
		{ "GET http://real:81 HTTP/1.1\r\n", "/", "/", "" },
		{ "GET HTTP://real:81?q HTTP/1.1\r\n", "/", "/", "q" },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char text[128];
		struct run r;
		snprintf(text, sizeof(text), "%sHost: other\r\n\r\n", rows[i].line);
		whole(&r, HTTP1_REQUEST, false, text);
		assert_int_equal(r.step, HTTP1_DONE);
		assert_true(str_eq(r.head->host, STR("real:81")));
		assert_true(str_eq(r.head->target, str_of(rows[i].target)));
		assert_true(str_eq(r.head->path, str_of(rows[i].path)));
		assert_true(str_eq(r.head->query, str_of(rows[i].query)));
		done(&r);
	}
}

static void test_keep_alive_and_expect(void **state)
{
	static const struct { const char *text; bool keep, expect; } rows[] = {
		{ "GET / HTTP/1.1\r\n" H "\r\n", true, false },
		{ "GET / HTTP/1.1\r\n" H "Connection: close\r\n\r\n", false, false },
		{ "GET / HTTP/1.0\r\n\r\n", false, false },
		{ "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", true, false },
		{ "POST / HTTP/1.1\r\n" H "Expect: 100-continue\r\nContent-Length: 0\r\n\r\n", true, false },
		{ "POST / HTTP/1.1\r\n" H "Expect: 100-Continue\r\nContent-Length: 1\r\n\r\nx", true, true },
		{ "POST / HTTP/1.0\r\n" H "Expect: 100-continue\r\nContent-Length: 1\r\n\r\nx", false, false },
		{ "GET / HTTP/1.1\r\n" H "Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n", true, false },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct run r;
		whole(&r, HTTP1_REQUEST, false, rows[i].text);
		assert_int_equal(r.step, HTTP1_DONE);
		assert_int_equal(r.used, strlen(rows[i].text));
		assert_int_equal(r.head->keep_alive, rows[i].keep);
		assert_int_equal(r.head->expect_continue, rows[i].expect);
		done(&r);
	}
}

/* ---- limits ---- */

static void feed_repeated(struct run *r, const char *piece, int times)
{
	for (int i = 0; i < times && r->step == HTTP1_MORE; i++)
		feed(r, piece, strlen(piece));
}

static void expect_too_large(struct run *r)
{
	assert_int_equal(r->step, HTTP1_BAD);
	assert_int_equal(http1_error(&r->p), ERR_HEADER_TOO_LARGE);
	assert_int_equal(http1_error_status(&r->p), 431);
	done(r);
}

static void test_limits(void **state)
{
	struct run r;
	(void)state;
	whole(&r, HTTP1_REQUEST, false, "GET / HTTP/1.1\r\n" H);
	feed_repeated(&r, "a: b\r\n", 16);
	expect_too_large(&r);
	whole(&r, HTTP1_REQUEST, false, "GET / HTTP/1.1\r\n" H "X: ");
	feed_repeated(&r, "0123456789", 500);
	expect_too_large(&r);
	whole(&r, HTTP1_REQUEST, false, "GET /");
	feed_repeated(&r, "0123456789", 500);
	expect_too_large(&r);
	whole(&r, HTTP1_REQUEST, false, "\r\n");
	feed_repeated(&r, "\r\n\r\n\r\n\r\n\r\n", 1000);
	expect_too_large(&r);
	whole(&r, HTTP1_REQUEST, false, "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n1;");
	feed_repeated(&r, "extension", 2000);
	expect_too_large(&r);
	whole(&r, HTTP1_REQUEST, false, "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n0\r\n");
	feed_repeated(&r, "a: trailer\r\n", 2000);
	expect_too_large(&r);
	/* many tiny chunks are no attack */
	whole(&r, HTTP1_REQUEST, false, "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n");
	feed_repeated(&r, "1\r\nx\r\n", 20000);
	assert_int_equal(r.step, HTTP1_MORE);
	feed(&r, "0\r\n\r\n", 5);
	assert_int_equal(r.step, HTTP1_DONE);
	assert_int_equal(r.body.n, 20000);
	done(&r);
}

static void test_stop_at_the_head(void **state)
{
	struct run r;
	(void)state;
	init(&r, HTTP1_REQUEST, false);
	r.stop_at_head = true;
	feed(&r, request, sizeof(request) - 1);
	assert_int_equal(r.step, HTTP1_STOPPED);
	assert_int_equal(r.body.n, 0);
	done(&r);
}

/* ---- responses ---- */

static void test_responses_cut_at_every_byte(void **state)
{
	static const struct { const char *text, *body; int status; bool keep, eof; } rows[] = {
		{ "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "hello", 200, true, false },
		{ "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", "hello", 200, true, false },
		{ "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nab", "ab", 200, false, false },
		{ "HTTP/1.0 200 OK\r\n\r\nuntil the end", "until the end", 200, false, true },
		{ "HTTP/1.1 200 OK\r\n\r\nuntil the end", "until the end", 200, false, true },
		{ "HTTP/1.1 204 No Content\r\n\r\n", "", 204, true, false },
		{ "HTTP/1.1 304 Not Modified\r\nContent-Length: 77\r\n\r\n", "", 304, true, false },
		{ "HTTP/1.1 503 \r\nContent-Length: 0\r\n\r\n", "", 503, true, false },
		{ "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", "x", 200, true, false },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		size_t n = strlen(rows[i].text);
		for (size_t cut = 0; cut <= n; cut++) {
			struct run r;
			init(&r, HTTP1_RESPONSE, false);
			feed(&r, rows[i].text, cut);
			feed(&r, rows[i].text + cut, n - cut);
			assert_int_equal(r.step, rows[i].eof ? HTTP1_MORE : HTTP1_DONE);
			assert_int_equal(http1_finish(&r.p), HTTP1_DONE);
			assert_int_equal(r.used, n);
			assert_int_equal(r.heads, 1);
			assert_int_equal(r.head->status, rows[i].status);
			assert_int_equal(r.head->keep_alive, rows[i].keep);
			assert_true(str_eq(buf_str(&r.body), str_of(rows[i].body)));
			done(&r);
		}
	}
}

static void test_answer_to_head_has_no_body(void **state)
{
	struct run r;
	(void)state;
	whole(&r, HTTP1_RESPONSE, true, "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n");
	assert_int_equal(r.step, HTTP1_DONE);
	assert_int_equal(r.head->content_length, 500);
	done(&r);
	whole(&r, HTTP1_RESPONSE, true, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
	assert_int_equal(r.step, HTTP1_DONE);
	done(&r);
}

static void test_responses_refused(void **state)
{
	static const char *const rows[] = {
		"garbage\r\n\r\n", "HTTP/2.0 200 OK\r\n\r\n", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", "HTTP/1.1 99 X\r\n\r\n", "HTTP/1.1 600 X\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 999 X\r\nContent-Length: 0\r\n\r\n",
		 "HTTP/1.1 20 X\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct run r;
		whole(&r, HTTP1_RESPONSE, false, rows[i]);
		if (r.step != HTTP1_BAD)
			fail_msg("accepted: %s", rows[i]);
		done(&r);
	}
}

static void test_interim_answers_are_bounded(void **state)
{
	struct run r;
	(void)state;
	init(&r, HTTP1_RESPONSE, false);
	feed_repeated(&r, "HTTP/1.1 103 Early Hints\r\n\r\n", 100);
	assert_int_equal(r.step, HTTP1_BAD);
	done(&r);
}

static void test_end_too_early(void **state)
{
	static const char *const rows[] = { "", "HTTP/1.1 200", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell",
		                            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n" };
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct run r;
		whole(&r, HTTP1_RESPONSE, false, rows[i]);
		assert_int_equal(r.step, HTTP1_MORE);
		assert_int_equal(http1_finish(&r.p), HTTP1_BAD);
		done(&r);
	}
}

/* ---- writing ---- */

static void test_chunk_head(void **state)
{
	static const struct { size_t n; const char *text; } rows[] = {
		{ 1, "1\r\n" }, { 15, "f\r\n" }, { 16, "10\r\n" }, { 255, "ff\r\n" }, { 4096, "1000\r\n" }, { SIZE_MAX, "ffffffffffffffff\r\n" },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char out[20];
		assert_true(str_eq((struct str){ out, http1_chunk_head(out, rows[i].n) }, str_of(rows[i].text)));
	}
}

static void test_tokens_and_values(void **state)
{
	(void)state;
	for (int c = 0; c < 256; c++) {
		char b = (char)c;
		bool alnum = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
		assert_int_equal(http1_is_token((struct str){ &b, 1 }), alnum || (c && strchr("!#$%&'*+-.^_`|~", c)));
		assert_int_equal(http1_is_value((struct str){ &b, 1 }), (c >= ' ' && c != 127) || c == '\t');
	}
	assert_true(http1_is_token(STR("x-Request_Id!")));
	assert_false(http1_is_token(STR("")));
	assert_false(http1_is_token(STR("a b")));
	assert_false(http1_is_token(STR("a:")));
	assert_false(http1_is_token(STR("a\0b")));
	assert_false(http1_is_token(STR("\xc3\xa9")));
	assert_true(http1_is_value(STR("caf\xc3\xa9\tx")));
	assert_true(http1_is_value(STR("")));
	assert_false(http1_is_value(STR("a\r\nX: y")));
	assert_false(http1_is_value(STR("a\0")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_request_cut_at_every_byte),
		cmocka_unit_test(test_request_byte_by_byte),
		cmocka_unit_test(test_pipelined_requests_end_where_the_next_begins),
		cmocka_unit_test(test_smuggling_is_refused_whole_and_cut),
		cmocka_unit_test(test_absolute_target_names_the_host),
		cmocka_unit_test(test_keep_alive_and_expect),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_stop_at_the_head),
		cmocka_unit_test(test_responses_cut_at_every_byte),
		cmocka_unit_test(test_answer_to_head_has_no_body),
		cmocka_unit_test(test_responses_refused),
		cmocka_unit_test(test_interim_answers_are_bounded),
		cmocka_unit_test(test_end_too_early),
		cmocka_unit_test(test_chunk_head),
		cmocka_unit_test(test_tokens_and_values),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
