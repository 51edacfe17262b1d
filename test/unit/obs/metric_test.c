#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "obs/metric.h"
#include "obs/text.h"

#define ROWS(X)                                                                                               \
	X(M_REQ, COUNTER, "t_requests_total", "Requests\nby \\ outcome.", NULL, 1, 3, "pool", "outcome")      \
	X(M_OPEN, GAUGE, "t_open", "Open things.", NULL, 1, 1)                                                \
	X(M_TTFT, HISTOGRAM, "t_ttft_seconds", "Time.", &obs_bounds_short_us, 1e-6, 4, "pool")
enum { ROWS(OBS_ROW_ID) M_COUNT };
static const struct obs_def defs[] = { ROWS(OBS_ROW_DEF) };

static const char *text(struct buf *b, const struct obs_set *const *sets, size_t n)
{
	buf_clear(b);
	for (uint32_t id = 0; id < obs_rows(sets[0]); id++)
		assert_int_equal(obs_write(b, sets, n, id), ERR_OK);
	assert_int_equal(buf_add_byte(b, 0), ERR_OK);
	return buf_str(b).p;
}

static struct str *two(struct str a, struct str b)
{
	static struct str v[2];
	v[0] = a;
	v[1] = b;
	return v;
}

static void counters_are_summed_over_threads(void **state)
{
	(void)state;
	struct obs_set *a = obs_set_new(defs, M_COUNT), *b = obs_set_new(defs, M_COUNT);
	obs_add(a, obs_find(a, M_REQ, two(STR("p"), STR("ok"))), 3);
	obs_add(b, obs_find(b, M_REQ, two(STR("q"), STR("ok"))), 1);
	obs_add(b, obs_find(b, M_REQ, two(STR("p"), STR("ok"))), 4);
	obs_add(a, obs_find(a, M_OPEN, NULL), 5);
	obs_sub(a, obs_find(a, M_OPEN, NULL), 2);
	struct buf out;
	buf_init(&out, 1 << 20);
	const char *t = text(&out, (const struct obs_set *[]){ a, b }, 2);
	assert_non_null(strstr(t, "# HELP t_requests_total Requests\\nby \\\\ outcome.\n# TYPE t_requests_total counter\n"));
	assert_non_null(strstr(t, "t_requests_total{pool=\"p\",outcome=\"ok\"} 7\n"));
	assert_non_null(strstr(t, "t_requests_total{pool=\"q\",outcome=\"ok\"} 1\n"));
	assert_non_null(strstr(t, "# TYPE t_open gauge\nt_open 3\n"));
	buf_done(&out);
	obs_set_free(a);
	obs_set_free(b);
}

static void a_full_table_counts_under_other(void **state)
{
	(void)state;
	struct obs_set *a = obs_set_new(defs, M_COUNT);
	char name[16];
	for (int i = 0; i < 10; i++) {
		(void)snprintf(name, sizeof(name), "p%d", i);
		obs_add(a, obs_find(a, M_REQ, two(str_of(name), STR("ok"))), 1);
	}
	obs_series p0 = obs_find(a, M_REQ, two(STR("p0"), STR("ok"))), p1 = obs_find(a, M_REQ, two(STR("p1"), STR("ok")));
	assert_true(p0 != p1);
	assert_true(p0 == obs_find(a, M_REQ, two(STR("p0"), STR("ok"))) && p0 == obs_find(a, M_REQ, two(STR("p0"), STR("ok"))));
	struct buf out;
	buf_init(&out, 1 << 20);
	const char *t = text(&out, (const struct obs_set *[]){ a }, 1);
	assert_non_null(strstr(t, "{pool=\"p2\",outcome=\"ok\"} 1\n"));
	assert_null(strstr(t, "{pool=\"p3\""));
	assert_non_null(strstr(t, "{pool=\"_other\",outcome=\"_other\"} 7\n"));
	buf_done(&out);
	obs_set_free(a);
}

static void hostile_label_values_are_escaped(void **state)
{
	(void)state;
	struct obs_set *a = obs_set_new(defs, M_COUNT);
	obs_add(a, obs_find(a, M_REQ, two(STR("a\"b\\c\nd"), STR(""))), 1);
	struct buf out;
	buf_init(&out, 1 << 20);
	assert_non_null(strstr(text(&out, (const struct obs_set *[]){ a }, 1), "{pool=\"a\\\"b\\\\c\\nd\",outcome=\"\"} 1\n"));
	buf_done(&out);
	obs_set_free(a);
}

static void histograms_are_cumulative_and_in_base_units(void **state)
{
	(void)state;
	struct obs_set *a = obs_set_new(defs, M_COUNT);
	obs_series x = obs_find(a, M_TTFT, (struct str[]){ STR("p") });
	obs_observe(a, x, 5);          /* le is inclusive */
	obs_observe(a, x, 6);
	obs_observe(a, x, 2000000);
	assert_int_equal(obs_value(a, x), 3);
	struct buf out;
	buf_init(&out, 1 << 20);
	const char *t = text(&out, (const struct obs_set *[]){ a }, 1);
	assert_non_null(strstr(t, "t_ttft_seconds_bucket{pool=\"p\",le=\"5e-06\"} 1\n"));
	assert_non_null(strstr(t, "t_ttft_seconds_bucket{pool=\"p\",le=\"1e-05\"} 2\n"));
	assert_non_null(strstr(t, "t_ttft_seconds_bucket{pool=\"p\",le=\"1\"} 2\n"));
	assert_non_null(strstr(t, "t_ttft_seconds_bucket{pool=\"p\",le=\"+Inf\"} 3\n"));
	assert_non_null(strstr(t, "t_ttft_seconds_sum{pool=\"p\"} 2.000011\n"));
	assert_non_null(strstr(t, "t_ttft_seconds_count{pool=\"p\"} 3\n"));
	buf_done(&out);
	obs_set_free(a);
}

static void a_full_buffer_keeps_whole_lines(void **state)
{
	(void)state;
	struct buf out;
	buf_init(&out, 40);
	assert_int_equal(obs_text_sample(&out, "t_x", (const char *[]){ "l" }, (struct str[]){ STR("v") }, 1, 1.5), ERR_OK);
	assert_int_equal(obs_text_sample(&out, "t_x_that_is_too_long_for_it", NULL, NULL, 0, 12345678), ERR_LIMIT);
	assert_true(str_eq(buf_str(&out), STR("t_x{l=\"v\"} 1.5\n")));
	buf_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counters_are_summed_over_threads), cmocka_unit_test(a_full_table_counts_under_other),
		cmocka_unit_test(hostile_label_values_are_escaped), cmocka_unit_test(histograms_are_cumulative_and_in_base_units),
		cmocka_unit_test(a_full_buffer_keeps_whole_lines),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
