/* The command line of kvasir serve, and options by any way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "conf/args.h"

#define ARGS(...) (const char *[]){ __VA_ARGS__ }, (int)(sizeof((const char *[]){ __VA_ARGS__ }) / sizeof(char *))
static bool parse(const char **argv, int argc, struct conf_args *a, struct conf_faults *f)
{
	conf_faults_init(f);
	return conf_args_parse(argc, (char **)(uintptr_t)argv, a, f);
}

static void test_the_fixed_flags(void **state)
{
	(void)state;
	struct conf_args a;
	struct conf_faults f;
	assert_true(parse(ARGS("-c", "x.yaml", "--worker", "http://a:1", "--worker=http://b:1", "-c", "dir", "--listen", "127.0.0.1:1", "--admin", "[::1]:2", "--routing", "p2c-ewma",
	                       "--threads", "2", "--tokens", "none", "--log-level", "debug"), &a, &f));
	assert_true(a.sources.paths.n == 2 && a.sources.workers.n == 2 && a.sources.overrides.n == 6);
	a.sources.paths.n = 0;
	struct conf *c = conf_load(&a.sources, 1, &f);
	assert_non_null(c);
	assert_true(str_eq(c->opts.gate.listen, STR("127.0.0.1:1")) && str_eq(c->opts.ops.admin, STR("[::1]:2")));
	assert_true(c->opts.brain.routing == 4 && c->opts.gate.threads == 2 && c->opts.gate.tokens == 3 && c->opts.ops.log_level == 3);
	assert_true(c->n_pools == 1 && c->pools[0].name.n == 0 && c->pools[0].n_workers == 2);
	conf_unref(c);
	conf_args_done(&a);
	conf_faults_done(&f);
}

static void test_defaults_of_the_issue(void **state)
{
	(void)state;
	struct conf_opts o;
	conf_opts_default(&o);
	assert_true(str_eq(o.gate.listen, STR("127.0.0.1:8080")) && str_eq(o.ops.admin, STR("127.0.0.1:9090")));
	assert_true(o.gate.max_header_bytes == 32 << 10 && o.gate.max_body_bytes == 32 << 20 && o.gate.tokens_budget_us == 300000);
	assert_true(o.feed.events_port == 5557 && o.feed.replay_port == 5558 && o.gate.explain == 1 && o.brain.routing == 0);
}

static void test_every_row_prints_its_default(void **state)
{
	(void)state;
	const struct conf_option *rows;
	struct conf_opts o, again;
	struct arena arena;
	arena_init(&arena, 0);
	conf_opts_default(&o);
	conf_opts_default(&again);
	size_t n = conf_options(&rows);
	for (size_t i = 0; i < n; i++) {
		struct buf b;
		const char *what;
		buf_init(&b, 4096);
		assert_int_equal(conf_option_print(&b, &o, &rows[i]), ERR_OK);
		assert_true(conf_option_set(&again, &rows[i], buf_str(&b), &arena, &what));
		assert_true(conf_option_same(&o, &again, &rows[i]));
		assert_ptr_equal(conf_option_of_flag(str_of(rows[i].flag)), &rows[i]);
		assert_ptr_equal(conf_option_of_key(str_of(rows[i].key)), &rows[i]);
		assert_true(strlen(rows[i].doc) > 10 && rows[i].doc[strlen(rows[i].doc) - 1] == '.');
		buf_done(&b);
	}
	arena_done(&arena);
}

static void test_all_faults_of_the_line_at_once(void **state)
{
	(void)state;
	struct conf_args a;
	struct conf_faults f;
	assert_false(parse(ARGS("--wroker", "http://a:1", "stray", "--listen"), &a, &f));
	assert_int_equal(f.list.n, 4);       /* the flag, its value, the stray word, the missing value */
	conf_args_done(&a);
	conf_faults_done(&f);
	assert_false(parse(ARGS("--threads", "2"), &a, &f));
	assert_true(f.list.n == 1 && str_find(f.list.p[0].what, STR("nothing to serve")) != SIZE_MAX);
	conf_args_done(&a);
	conf_faults_done(&f);
	assert_true(parse(ARGS("--worker", "https://a:1", "--worker", "http://b:1", "--worker", "http://b:1/", "--threads", "many", "--tokens", "locals", "--routing", "best"), &a, &f));
	assert_null(conf_load(&a.sources, 1, &f));
	assert_int_equal(f.list.n, 5);
	conf_args_done(&a);
	conf_faults_done(&f);
}

static void test_a_secret_is_never_printed(void **state)
{
	(void)state;
	struct conf_args a;
	struct conf_faults f;
	struct buf b;
	assert_true(parse(ARGS("--worker", "http://a:1", "--worker-api-key", "sesame"), &a, &f));
	struct conf *c = conf_load(&a.sources, 1, &f);
	assert_non_null(c);
	assert_true(str_eq(c->pools[0].workers[0].api_key, STR("sesame")));
	buf_init(&b, 1 << 20);
	assert_int_equal(conf_print(&b, c), ERR_OK);
	assert_true(str_find(buf_str(&b), STR("sesame")) == SIZE_MAX);
	buf_done(&b);
	conf_unref(c);
	conf_args_done(&a);
	conf_faults_done(&f);
}

static void test_switches(void **state)
{
	(void)state;
	struct conf_args a;
	struct conf_faults f;
	assert_true(parse(ARGS("--access-log", "--version", "--print-config", "--help", "--events=false"), &a, &f));
	assert_true(a.version && a.print_config && a.help && a.sources.overrides.n == 2);
	conf_args_done(&a);
	conf_faults_done(&f);
}

static void test_durations_and_sizes(void **state)
{
	(void)state;
	static const struct { const char *flag, *text; int64_t value; } good[] = {
		{ "stall-timeout", "1.5s", 1500000 }, { "stall-timeout", "300ms", 300000 }, { "stall-timeout", "2h", INT64_C(7200000000) }, { "shutdown-timeout", "0", 0 }, { "max-body", "4096", 4096 },
		{ "max-body", "1.5MiB", 3 << 19 }, { "max-body", "2Mi", 2 << 20 }, { "threads", "64", 64 },
	};
	static const struct { const char *flag, *text; } bad[] = {
		{ "stall-timeout", "5" }, { "stall-timeout", "-5s" }, { "stall-timeout", "5 s" }, { "stall-timeout", "s" }, { "stall-timeout", "1e3s" }, { "stall-timeout", "1us" }, { "max-body", "1MB" },
		{ "max-body", "1023" }, { "max-body", "999999TiB" }, { "threads", "65" }, { "threads", "" }, { "threads", "1.5" }, { "access-log", "on" }, { "listen", "" }, { "listen", "a:b" }, { "listen", "gpu1:8080" }, { "listen", "127.0.0.1" }, { "listen", "::1:80" },
	};
	struct arena arena;
	struct conf_opts o;
	const char *what;
	arena_init(&arena, 0);
	conf_opts_default(&o);
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		const struct conf_option *row = conf_option_of_flag(str_of(good[i].flag));
		assert_true(conf_option_set(&o, row, str_of(good[i].text), &arena, &what));
		assert_int_equal(*(int64_t *)(void *)((char *)&o + row->offset), good[i].value);
	}
	static const struct { const char *text, *addr; } addrs[] = { { ":80", "0.0.0.0:80" }, { "localhost:8080", "127.0.0.1:8080" }, { "[::1]:0", "[::1]:0" }, { "10.0.0.1:1", "10.0.0.1:1" } };
	for (size_t i = 0; i < ARRAY_LEN(addrs); i++) {
		assert_true(conf_option_set(&o, conf_option_of_flag(STR("listen")), str_of(addrs[i].text), &arena, &what));
		assert_string_equal(o.gate.listen.p, addrs[i].addr);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (conf_option_set(&o, conf_option_of_flag(str_of(bad[i].flag)), str_of(bad[i].text), &arena, &what))
			fail_msg("taken: %s %s", bad[i].flag, bad[i].text);
	arena_done(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_fixed_flags), cmocka_unit_test(test_defaults_of_the_issue), cmocka_unit_test(test_every_row_prints_its_default),
		cmocka_unit_test(test_all_faults_of_the_line_at_once), cmocka_unit_test(test_switches), cmocka_unit_test(test_a_secret_is_never_printed), cmocka_unit_test(test_durations_and_sizes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
