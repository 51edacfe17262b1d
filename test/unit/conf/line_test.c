/* What operators write about one worker: URLs, event endpoints, lines of a discovery file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdlib.h>

#include "conf/worker.h"

static struct arena arena;
static int setup(void **state)
{
	(void)state;
	arena_init(&arena, 0);
	return 0;
}
static int teardown(void **state)
{
	(void)state;
	arena_done(&arena);
	return 0;
}

static void test_urls(void **state)
{
	(void)state;
	static const struct { const char *text, *url; } good[] = {
		{ "http://a:8000", "http://a:8000" }, { "http://a", "http://a:80" }, { "http://a:8000/", "http://a:8000" }, { "http://a:1/v/x//", "http://a:1/v/x" },
		{ "http://[fe80::1]:8000", "http://[fe80::1]:8000" }, { "HTTP://10.0.0.1:9", "http://10.0.0.1:9" },
	};
	static const char *const bad[] = { "", "a:8000", "https://a:8000", "tcp://a:1", "http://", "http://a:0", "http://a:65536", "http://a:b", "http://u:p@a:1", "http://a:1/v1", "http://a:1/x/v1/", "http://a:1/#f", "http://a:1/?q=1", "http://::1:80", "http://a b:1" };
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		struct conf_worker w = { 0 };
		assert_null(conf_worker_url(str_of(good[i].text), &w, &arena));
		assert_string_equal(w.url.p, good[i].url);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct conf_worker w = { 0 };
		if (conf_worker_url(str_of(bad[i]), &w, &arena) == NULL)
			fail_msg("taken: %s", bad[i]);
		assert_true(w.url.n == 0);
	}
	struct conf_worker w = { 0 };
	assert_true(str_find(str_of(conf_worker_url(STR("https://a:1"), &w, &arena)), STR("TLS to workers comes later")) != SIZE_MAX);
}

static void test_endpoints(void **state)
{
	(void)state;
	struct str e = { 0 };
	assert_null(conf_worker_endpoint(STR("tcp://a:5557"), &e, &arena));
	assert_string_equal(e.p, "tcp://a:5557");
	assert_null(conf_worker_endpoint(STR("[::1]:5557"), &e, &arena));
	assert_string_equal(e.p, "tcp://[::1]:5557");
	static const char *const binds[] = { "tcp://*:5557", "tcp://0.0.0.0:5557", "tcp://[::]:5557" };
	for (size_t i = 0; i < ARRAY_LEN(binds); i++)
		assert_true(str_find(str_of(conf_worker_endpoint(str_of(binds[i]), &e, &arena)), STR("connecting out")) != SIZE_MAX);
	static const char *const bad[] = { "ipc:///tmp/x", "tcp://a", "tcp://a:0", "tcp://a:70000", "a", "tcp://:1" };
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (conf_worker_endpoint(str_of(bad[i]), &e, &arena) == NULL)
			fail_msg("taken: %s", bad[i]);
}

/* llm-d-router#1242: base port + rank beyond 65535 retried for ever and silently. */
static void case_llmd_1242_port_plus_rank(void **state)
{
	(void)state;
	struct conf_worker w = { .events = STR("tcp://a:65535") };
	assert_null(conf_worker_ranks(&w, 1, &arena));
	assert_non_null(conf_worker_ranks(&w, 2, &arena));
	w = (struct conf_worker){ .events = STR("tcp://a:5557"), .replay = STR("tcp://a:65530") };
	assert_null(conf_worker_ranks(&w, 6, &arena));
	assert_non_null(conf_worker_ranks(&w, 7, &arena));
}

static void test_discovery_lines(void **state)
{
	(void)state;
	const struct conf_pool pool = { .accelerator = STR("h100"), .api_key = STR("k") };
	struct conf_worker w;
	const char *what;
	assert_int_equal(conf_worker_line(STR(""), &pool, &arena, &w, &what), CONF_LINE_EMPTY);
	assert_int_equal(conf_worker_line(STR("   # http://a:1"), &pool, &arena, &w, &what), CONF_LINE_EMPTY);
	assert_int_equal(conf_worker_line(STR(" \t\r"), &pool, &arena, &w, &what), CONF_LINE_EMPTY);

	assert_int_equal(conf_worker_line(STR("http://node1:8000\r"), &pool, &arena, &w, &what), CONF_LINE_WORKER);
	assert_null(what);
	assert_true(str_eq(w.url, STR("http://node1:8000")) && str_eq(w.accelerator, STR("h100")) && str_eq(w.api_key, STR("k")));

	assert_int_equal(conf_worker_line(STR("node1.cluster:8000"), &pool, &arena, &w, &what), CONF_LINE_WORKER);
	assert_true(str_eq(w.url, STR("http://node1.cluster:8000")) && what == NULL);
	assert_int_equal(conf_worker_line(STR("[2001:db8::7]:8000  events=tcp://[2001:db8::7]:6000\treplay=[2001:db8::7]:6001 role=decode accelerator=l4 labels.rack=a # spare"), &pool, &arena, &w, &what),
	                 CONF_LINE_WORKER);
	assert_null(what);
	assert_true(w.ipv6 && str_eq(w.host, STR("2001:db8::7")) && str_eq(w.events, STR("tcp://[2001:db8::7]:6000")) && str_eq(w.replay, STR("tcp://[2001:db8::7]:6001")));
	assert_true(str_eq(w.role, STR("decode")) && str_eq(w.accelerator, STR("l4")) && w.n_labels == 1 && str_eq(w.labels[0].name, STR("rack")));
	assert_int_equal(conf_worker_line(STR("http://a:1 events=off"), &pool, &arena, &w, &what), CONF_LINE_WORKER);
	assert_true(w.events_off && what == NULL);
}

static void test_a_bad_line_says_why(void **state)
{
	(void)state;
	const struct conf_pool pool = { 0 };
	struct conf_worker w;
	const char *what;
	static const char *const bad[] = { "https://a:1", "http://", "::1:8000", "a:99999", "http://a:1/?x=1", "just", "just some words" };
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		assert_int_equal(conf_worker_line(str_of(bad[i]), &pool, &arena, &w, &what), CONF_LINE_BAD);
		assert_non_null(what);
	}
	/* a word that is not known costs nothing but what is said about it */
	static const char *const beside[] = { "http://a:1 gpu=h100", "http://a:1 decode" };
	for (size_t i = 0; i < ARRAY_LEN(beside); i++) {
		assert_int_equal(conf_worker_line(str_of(beside[i]), &pool, &arena, &w, &what), CONF_LINE_WORKER);
		assert_true(str_find(str_of(what), STR("is ignored")) != SIZE_MAX);
		assert_true(str_eq(w.url, STR("http://a:1")) && w.events.n == 0);
	}
	/* a known one with a value that cannot be costs the line: the worker would be used without its events, or without its key */
	static const char *const spoilt[] = { "http://a:1 events=tcp://*:5557", "http://a:1 gpu=x replay=nowhere", "http://a:1 apiKeyFile=/nowhere/at/all", "http://a:1 apiKeyEnv=NO_SUCH_VARIABLE_HERE" };
	for (size_t i = 0; i < ARRAY_LEN(spoilt); i++) {
		assert_int_equal(conf_worker_line(str_of(spoilt[i]), &pool, &arena, &w, &what), CONF_LINE_BAD);
		assert_true(str_find(str_of(what), STR("the line is refused")) != SIZE_MAX);
	}
}

static void test_an_accelerator_without_a_profile_is_told_the_others(void **state)
{
	(void)state;
	assert_null(conf_worker_accelerator(STR("llama-8b-h100"), &arena));
	assert_null(conf_worker_accelerator(STR("H100"), &arena));
	const char *what = conf_worker_accelerator(STR("llama-8b-h1000"), &arena);
	assert_true(what != NULL && str_find(str_of(what), STR("qwen3-32b-h100-tp2, ")) != SIZE_MAX && str_find(str_of(what), STR(", h200")) != SIZE_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_urls, setup, teardown),
		cmocka_unit_test_setup_teardown(test_endpoints, setup, teardown),
		cmocka_unit_test_setup_teardown(case_llmd_1242_port_plus_rank, setup, teardown),
		cmocka_unit_test_setup_teardown(test_discovery_lines, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_bad_line_says_why, setup, teardown),
		cmocka_unit_test_setup_teardown(test_an_accelerator_without_a_profile_is_told_the_others, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
