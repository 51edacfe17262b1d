/* The report: quantiles by nearest rank, warm-up left out, errors never counted as good. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "bench/report.h"

static bool near(double a, double b) { return fabs(a - b) < 1e-9; }

static void test_quantile_is_nearest_rank(void **state)
{
	(void)state;
	double x[] = { 5, 1, 4, 2, 3 };
	assert_true(near(bench_quantile(x, 5, 0.5), 3));
	assert_true(near(bench_quantile(x, 5, 0.95), 5));
	assert_true(near(bench_quantile(x, 5, 0.2), 1));
	assert_true(near(bench_quantile(x, 5, 0), 1));
	assert_true(near(bench_quantile(x, 0, 0.5), 0));
}

static void test_summary_counts(void **state)
{
	(void)state;
	struct bench_sample s[] = {
		{ .intended_s = 0, .ttft_s = 99, .e2e_s = 99, .ok = true, .prompt_tok = 1000, .worker = 0 },                 /* warm-up */
		{ .intended_s = 10, .ttft_s = 1, .e2e_s = 2, .ok = true, .prompt_tok = 100, .cached_tok = 50, .output_tok = 101, .worker = 0 },
		{ .intended_s = 11, .ttft_s = 3, .e2e_s = 4, .ok = true, .prompt_tok = 100, .cached_tok = 100, .output_tok = 11, .worker = 0 },
		{ .intended_s = 12, .ttft_s = 0.1, .e2e_s = 0.1, .ok = false, .worker = 1 },
	};
	struct bench_summary r = bench_summarize(s, 4, 5, (struct bench_slo){ 2, 0.05 });
	assert_int_equal(r.n, 3);
	assert_int_equal(r.ok, 2);
	assert_int_equal(r.errors, 1);
	assert_int_equal(r.good, 1);        /* the second is too late, the third failed */
	assert_true(near(r.hit_rate, 0.75));
	assert_true(near(r.ttft_mean_s, 2));
	assert_true(near(r.span_s, 5));
	assert_true(near(r.offered_rps, 1.5));
	assert_true(near(r.goodput_rpm, 12));
	assert_true(near(r.imbalance, 2.0 * 2 / 3));
}

static void test_reports_carry_the_numbers(void **state)
{
	(void)state;
	struct buf b;
	struct bench_sample s = { .intended_s = 1, .ttft_s = 0.25, .e2e_s = 0.5, .ok = true, .status = 200, .prompt_tok = 10, .output_tok = 2, .worker = 3, .turn = 1 };
	struct bench_slo slo = { 2, 0.05 };
	struct bench_summary r = bench_summarize(&s, 1, 0, slo);
	buf_init(&b, 1 << 16);
	assert_int_equal(bench_report_json(&b, &r, slo), ERR_OK);
	assert_true(str_find(buf_str(&b), STR("\"ttft_p50_s\":0.25")) != SIZE_MAX);
	buf_clear(&b);
	assert_int_equal(bench_report_csv(&b, &s, 1), ERR_OK);
	assert_true(str_find(buf_str(&b), STR("1.000000,0.250000,0.500000,0.000000,10,0,2,0,200,1,3,1\n")) != SIZE_MAX);
	buf_clear(&b);
	assert_int_equal(bench_report_text(&b, &r, slo), ERR_OK);
	assert_true(str_find(buf_str(&b), STR("p50 250.0")) != SIZE_MAX);
	buf_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_quantile_is_nearest_rank),
		cmocka_unit_test(test_summary_counts),
		cmocka_unit_test(test_reports_carry_the_numbers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
