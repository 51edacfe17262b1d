/* url_test.c: what an operator may write, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "wire/url.h"

struct row {
	const char *text;
	enum err e;
	enum url_scheme scheme;
	const char *host;
	uint16_t port;
	const char *path;
	bool v6;
};

static void urls(void **state)
{
	(void)state;
	static const struct row ROWS[] = {
		{ "http://a:8000", ERR_OK, URL_HTTP, "a", 8000, "", false },
		{ "HTTP://a.example/v1/?x=1", ERR_OK, URL_HTTP, "a.example", 80, "/v1/?x=1", false },
		{ "https://10.0.0.1", ERR_OK, URL_HTTPS, "10.0.0.1", 443, "", false },
		{ "http://[::1]:8000/", ERR_OK, URL_HTTP, "::1", 8000, "/", true },
		{ "http://[fe80::1%eth0]:80", ERR_OK, URL_HTTP, "fe80::1%eth0", 80, "", true },
		{ "tcp://*:5557", ERR_OK, URL_TCP, "*", 5557, "", false },
		{ "tcp://[::]:5557", ERR_OK, URL_TCP, "::", 5557, "", true },
		{ "tcp://host_1:5557", ERR_OK, URL_TCP, "host_1", 5557, "", false },
		{ "tcp://a", ERR_SYNTAX, 0, NULL, 0, NULL, false },
		{ "tcp://a:1/x", ERR_SYNTAX, 0, NULL, 0, NULL, false },
		{ "http://*:80", ERR_SYNTAX, 0, NULL, 0, NULL, false },
		{ "http://user:pw@a:80", ERR_SYNTAX, 0, NULL, 0, NULL, false },
		{ "http://user@a", ERR_SYNTAX, 0, NULL, 0, NULL, false },
		{ "http://a b", ERR_SYNTAX, 0, NULL, 0, NULL, false },
		{ "http://a\n", ERR_SYNTAX, 0, NULL, 0, NULL, false },
		{ "http://a/#x", ERR_SYNTAX, 0, NULL, 0, NULL, false },
		{ "http://a?x", ERR_SYNTAX, 0, NULL, 0, NULL, false },
		{ "http://", ERR_SYNTAX, 0, NULL, 0, NULL, false },
		{ "http://:80", ERR_SYNTAX, 0, NULL, 0, NULL, false },
		{ "http://a:", ERR_SYNTAX, 0, NULL, 0, NULL, false },
		{ "http://a:8x", ERR_SYNTAX, 0, NULL, 0, NULL, false },
		{ "http://a:0", ERR_RANGE, 0, NULL, 0, NULL, false },
		{ "http://a:65536", ERR_RANGE, 0, NULL, 0, NULL, false },
		{ "http://a:99999999999999999999999", ERR_RANGE, 0, NULL, 0, NULL, false },
		{ "http://::1:80", ERR_SYNTAX, 0, NULL, 0, NULL, false },
		{ "http://[::1", ERR_SYNTAX, 0, NULL, 0, NULL, false },
		{ "http://[a.b]:1", ERR_SYNTAX, 0, NULL, 0, NULL, false },
		{ "http://[::1]x", ERR_SYNTAX, 0, NULL, 0, NULL, false },
		{ "ftp://a", ERR_UNSUPPORTED, 0, NULL, 0, NULL, false },
		{ "a:8000", ERR_SYNTAX, 0, NULL, 0, NULL, false },
		{ "", ERR_SYNTAX, 0, NULL, 0, NULL, false },
	};
	for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
		struct url u;
		enum err e = url_parse(str_of(ROWS[i].text), &u);
		if (e != ROWS[i].e)
			fail_msg("%s: %s", ROWS[i].text, err_text(e));
		if (e != ERR_OK)
			continue;
		assert_int_equal(u.scheme, ROWS[i].scheme);
		assert_true(str_eq(u.host, str_of(ROWS[i].host)));
		assert_true(str_eq(u.path, str_of(ROWS[i].path)));
		assert_int_equal(u.port, ROWS[i].port);
		assert_int_equal(u.ipv6, ROWS[i].v6);
	}
}

static void pairs(void **state)
{
	(void)state;
	static const struct row ROWS[] = {
		{ "127.0.0.1:8080", ERR_OK, 0, "127.0.0.1", 8080, NULL, false },
		{ "[::]:9090", ERR_OK, 0, "::", 9090, NULL, true },
		{ ":80", ERR_OK, 0, "", 80, NULL, false },
		{ "*:80", ERR_OK, 0, "*", 80, NULL, false },
		{ "::1:80", ERR_SYNTAX, 0, NULL, 0, NULL, false },
		{ "a", ERR_SYNTAX, 0, NULL, 0, NULL, false },
		{ "", ERR_SYNTAX, 0, NULL, 0, NULL, false },
		{ "http://a:1", ERR_SYNTAX, 0, NULL, 0, NULL, false },
		{ "a:70000", ERR_RANGE, 0, NULL, 0, NULL, false },
	};
	for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
		struct url_host_port hp;
		enum err e = url_parse_host_port(str_of(ROWS[i].text), 0, &hp);
		if (e != ROWS[i].e)
			fail_msg("%s: %s", ROWS[i].text, err_text(e));
		if (e == ERR_OK) {
			assert_true(str_eq(hp.host, str_of(ROWS[i].host)));
			assert_int_equal(hp.port, ROWS[i].port);
			assert_int_equal(hp.ipv6, ROWS[i].v6);
		}
	}
	struct url_host_port hp;
	assert_int_equal(url_parse_host_port(STR("a"), 5557, &hp), ERR_OK);
	assert_int_equal(hp.port, 5557);
	struct buf b;
	buf_init(&b, 100);
	assert_int_equal(url_put_host_port(&b, STR("::1"), true, 80), ERR_OK);
	assert_int_equal(url_put_host_port(&b, STR("a"), false, 81), ERR_OK);
	assert_true(str_eq(buf_str(&b), STR("[::1]:80a:81")));
	buf_done(&b);
}

static void escapes(void **state)
{
	(void)state;
	struct buf b;
	buf_init(&b, 100);
	assert_int_equal(url_put_escaped(&b, STR("Qwen/Q 3?%\xc3\xa4~")), ERR_OK);
	assert_true(str_eq(buf_str(&b), STR("Qwen%2FQ%203%3F%25%C3%A4~")));
	struct buf back;
	buf_init(&back, 100);
	assert_int_equal(url_put_unescaped(&back, buf_str(&b)), ERR_OK);
	assert_true(str_eq(buf_str(&back), STR("Qwen/Q 3?%\xc3\xa4~")));
	buf_clear(&back);
	assert_int_equal(url_put_unescaped(&back, STR("a%2fb+c/d%7E")), ERR_OK);
	assert_true(str_eq(buf_str(&back), STR("a/b+c/d~")));
	static const char *const BAD[] = { "%", "a%2", "%g0", "%0g", "%00", "%%20" };
	for (size_t i = 0; i < ARRAY_LEN(BAD); i++)
		if (url_put_unescaped(&back, str_of(BAD[i])) != ERR_SYNTAX)
			fail_msg("taken: %s", BAD[i]);
	buf_done(&back);
	buf_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(urls), cmocka_unit_test(pairs), cmocka_unit_test(escapes) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
