/* Look-ups, and what must not be forwarded. */
#include "kit.h"

#define ROW(n, v) { STR_INIT(n), STR_INIT(v) }
static const struct http_header rows[] = {
	ROW("Host", "a"), ROW("X-Twice", "one"), ROW("x-twice", "two"), ROW("Connection", "close , X-Private"),
	ROW("connection", "x-other"), ROW("Accept", "text/html, application/json"),
};
static const struct http_headers h = { rows, ARRAY_LEN(rows) };

static void test_find(void **state)
{
	(void)state;
	assert_true(str_eq(http_find(h, STR("X-TWICE")), STR("one")));
	assert_null(http_find(h, STR("x-none")).p);
	assert_null(http_find((struct http_headers){ 0 }, STR("host")).p);
}

static void test_tokens(void **state)
{
	(void)state;
	assert_true(http_has_token(h, STR("connection"), STR("Close")));
	assert_true(http_has_token(h, STR("connection"), STR("X-Other")));
	assert_true(http_has_token(h, STR("accept"), STR("application/json")));
	assert_false(http_has_token(h, STR("accept"), STR("application")));
	assert_false(http_has_token(h, STR("connection"), STR("")));
}

static void test_hop_by_hop(void **state)
{
	static const char *const stay[] = { "Connection", "keep-alive", "TE", "Trailer", "Transfer-Encoding", "Upgrade", "Proxy-Authorization",
		                            "proxy-connection", "x-private", "X-Other", "HTTP2-Settings" };
	static const char *const go[] = { "host", "accept", "authorization", "content-type", "x-twice", "traceparent" };
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(stay); i++)
		assert_true(http_is_hop_by_hop(h, str_of(stay[i])));
	for (size_t i = 0; i < ARRAY_LEN(go); i++)
		assert_false(http_is_hop_by_hop(h, str_of(go[i])));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_find), cmocka_unit_test(test_tokens), cmocka_unit_test(test_hop_by_hop) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
