/* Literals, printing, names. */
#include "io/addr.h"
#include "kit.h"

static void test_parse_and_print(void **state)
{
	static const char *const good[] = { "127.0.0.1:80", "[::1]:8080", "10.1.2.3:0", "[2001:db8::7]:65535" };
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		struct io_addr a;
		char out[64];
		assert_int_equal(io_addr_parse(str_of(good[i]), &a), ERR_OK);
		assert_true(str_eq(io_addr_print(&a, out), str_of(good[i])));
	}
}

static void test_parse_refuses(void **state)
{
	static const char *const bad[] = { "", "127.0.0.1", ":80", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1", "::1:80",
		                           "[::1]", "[::1]80", "[127.0.0.1]:80", "localhost:80", "256.0.0.1:80", "127.0.0.1:80x",
		                           "[::1:80", "1.2.3:80" };
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct io_addr a = { .len = 99 };
		assert_int_equal(io_addr_parse(str_of(bad[i]), &a), ERR_SYNTAX);
		assert_int_equal(a.len, 99);    /* untouched */
	}
}

static void test_loopback_and_port(void **state)
{
	static const struct { const char *s; bool loopback; } rows[] = {
		{ "127.0.0.1:1", true }, { "127.9.9.9:1", true }, { "[::1]:1", true }, { "[::ffff:127.0.0.1]:1", true },
		{ "10.0.0.1:1", false }, { "[::2]:1", false }, { "0.0.0.0:1", false },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct io_addr a;
		assert_int_equal(io_addr_parse(str_of(rows[i].s), &a), ERR_OK);
		assert_int_equal(io_addr_is_loopback(&a), rows[i].loopback);
		assert_int_equal(io_addr_port(&a), 1);
	}
	struct io_addr none = { 0 };
	assert_false(io_addr_is_loopback(&none));
	assert_int_equal(io_addr_port(&none), 0);
}

static int resolved;
static enum err last_err;
static struct io_addr last_addr;
static bool inside;

static void on_resolved(void *arg, enum err e, struct io_addr a)
{
	(void)arg;
	assert_false(inside);
	resolved++;
	last_err = e;
	last_addr = a;
}

static void ask(const char *host, uint16_t port)
{
	inside = true;
	io_resolve(kit_loop, str_of(host), port, on_resolved, NULL);
	inside = false;
}

static void test_resolve(void **state)
{
	char out[64];
	(void)state;
	resolved = 0;
	ask("127.0.0.1", 7);
	kit_until_n(&resolved, 1);
	assert_int_equal(last_err, ERR_OK);
	assert_true(str_eq(io_addr_print(&last_addr, out), STR("127.0.0.1:7")));
	ask("localhost", 8);
	ask("localhost", 9);    /* joins the lookup that runs, with its own port */
	kit_until_n(&resolved, 3);
	assert_int_equal(last_err, ERR_OK);
	assert_true(io_addr_is_loopback(&last_addr));
	assert_int_equal(io_addr_port(&last_addr), 9);
	ask("localhost", 10);   /* from the cache */
	kit_until_n(&resolved, 4);
	assert_int_equal(io_addr_port(&last_addr), 10);
}

static void test_resolve_fails(void **state)
{
	(void)state;
	resolved = 0;
	ask("", 1);
	kit_until_n(&resolved, 1);
	assert_int_equal(last_err, ERR_CONNECT);
	ask("no such host.invalid", 1);
	kit_until_n(&resolved, 2);
	assert_int_equal(last_err, ERR_CONNECT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_parse_and_print), TEST(test_parse_refuses), TEST(test_loopback_and_port), TEST(test_resolve),
		TEST(test_resolve_fails),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
