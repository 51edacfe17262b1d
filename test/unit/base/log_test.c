/* Lines that are written, and lines that are not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/log.h"

static int worked;

static int work(void) { return ++worked; }

/* llm-d-router#1171: what a line would say was put together although its level was off. */
static void case_llmd_1171_a_line_that_is_off_does_no_work(void **state)
{
	(void)state;
	log_set_level(LOG_LEVEL_ERROR);
	LOG_DEBUG("test", "n=%d", work());
	LOG_INFO("test", "n=%d", work());
	LOG_WARN("test", "n=%d", work());
	LOG_WARN_EVERY(1, "test", "n=%d", work());
	assert_int_equal(worked, 0);
	log_set_level(LOG_LEVEL_INFO);
	LOG_DEBUG("test", "n=%d", work());
	assert_int_equal(worked, 0);
	LOG_INFO("test", "n=%d", work());
	assert_int_equal(worked, 1);
}

/* llm-d-router#2404: the same line for every endpoint and request. */
static void case_llmd_2404_a_repeated_line_is_cut_and_counted(void **state)
{
	(void)state;
	struct log_gate gate = { 0 };
	uint64_t cut = 77;
	assert_true(log_pass(&gate, 60, &cut));
	assert_int_equal(cut, 0);
	for (int i = 0; i < 1000; i++)
		assert_false(log_pass(&gate, 60, &cut));
	gate.next_s = 0; /* a minute later */
	assert_true(log_pass(&gate, 60, &cut));
	assert_int_equal(cut, 1000);
}

static void values_are_quoted_where_they_must_be(void **state)
{
	(void)state;
	char out[32];
	assert_string_equal(log_quote(STR("plain"), out, sizeof(out)), "plain");
	assert_string_equal(log_quote(STR("two words"), out, sizeof(out)), "\"two words\"");
	const char *hostile = log_quote(STR("a\nevent=b"), out, sizeof(out));
	assert_int_equal(str_find(str_of(hostile), STR("\n")), SIZE_MAX);
}

static void a_time_is_written_in_one_form(void **state)
{
	(void)state;
	char room[LOG_TIME_BYTES];
	assert_true(str_eq(log_time(0, room), STR("1970-01-01T00:00:00.000Z")));
	assert_true(str_eq(log_time(INT64_C(1709251199999999), room), STR("2024-02-29T23:59:59.999Z")));
	assert_true(str_eq(log_time(INT64_C(4102444800001000), room), STR("2100-01-01T00:00:00.001Z")));
}

static void a_value_begins_no_line(void **state)
{
	(void)state;
	int ends[2], old = dup(2);
	char text[512];
	assert_int_equal(pipe(ends), 0);
	dup2(ends[1], 2);
	LOG_WARN("test", "model=%s path=%s", "a\nevent=forged", LOG_Q(STR("a \x1b[31m")));
	dup2(old, 2);
	ssize_t n = read(ends[0], text, sizeof(text) - 1);
	assert_true(n > 0);
	text[n] = 0;
	assert_non_null(strstr(text, " level=warn event=test model=a?event=forged path=\"a \\x1b[31m\"\n"));
	assert_ptr_equal(strchr(text, '\n'), text + n - 1);
	close(ends[0]);
	close(ends[1]);
	close(old);
}

static size_t count(const char *text, const char *word)
{
	size_t n = 0;
	for (const char *at = text; (at = strstr(at, word)); at++)
		n++;
	return n;
}

/* What a pipe holds that nobody read must not stop us; what was lost meanwhile is counted. */
static void a_full_pipe_costs_lines_and_no_time(void **state)
{
	(void)state;
	static char text[1 << 17];
	int ends[2], old = dup(2);
	enum { LINES = 5000, PADDING = 100 };
	assert_int_equal(pipe(ends), 0);
	dup2(ends[1], 2);
	for (int i = 0; i < LINES; i++)
		LOG_WARN("test", "filler=%0*d", PADDING, i);
	ssize_t n = read(ends[0], text, sizeof(text) - 1);
	log_write(STR("one=1\ntwo=2\n"));
	dup2(old, 2);
	assert_true(n > 0);
	text[n] = 0;
	assert_int_equal(text[n - 1], '\n');
	unsigned long long kept = count(text, " event=test "), lost = 0;
	n = read(ends[0], text, sizeof(text) - 1);
	assert_true(n > 0);
	text[n] = 0;
	const char *said = strstr(text, " level=warn event=log_dropped lines=");
	assert_non_null(said);
	lost = strtoull(said + strlen(" level=warn event=log_dropped lines="), NULL, 10);
	assert_int_equal(kept + lost, LINES);
	assert_non_null(strstr(text, "\none=1\ntwo=2\n"));
	close(ends[0]);
	close(ends[1]);
	close(old);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(case_llmd_1171_a_line_that_is_off_does_no_work),
		cmocka_unit_test(case_llmd_2404_a_repeated_line_is_cut_and_counted),
		cmocka_unit_test(values_are_quoted_where_they_must_be),
		cmocka_unit_test(a_time_is_written_in_one_form),
		cmocka_unit_test(a_value_begins_no_line),
		cmocka_unit_test(a_full_pipe_costs_lines_and_no_time),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
