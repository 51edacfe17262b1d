#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "obs/record.h"

static void a_line_of_fields(void **state)
{
	(void)state;
	struct buf b;
	buf_init(&b, 4096);
	struct obs_record r;
	obs_record_begin(&r, &b);
	obs_record_str(&r, "id", STR("abc"));
	obs_record_str(&r, "model", STR("a b\"c\\\n\x1b[31m\xff\xc3\xa9"));
	obs_record_str(&r, "none", STR(""));
	obs_record_u64(&r, "n", 7);
	obs_record_i64(&r, "rank", -1);
	obs_record_i64(&r, "least", INT64_MIN);
	obs_record_us(&r, "now_ms", 7);
	obs_record_us(&r, "ttft_ms", 12345);
	obs_record_us(&r, "gone_ms", -1);
	obs_record_end(&r);
	assert_true(str_eq(buf_str(&b), STR("id=abc model=\"a b\\\"c\\\\\\x0a\\x1b[31m\\xff\xc3\xa9\" none=- n=7 rank=-1 least=-9223372036854775808 now_ms=0.007 ttft_ms=12.345 gone_ms=-\n")));
	buf_done(&b);
}

static void what_does_not_fit_is_left_out_and_said(void **state)
{
	(void)state;
	struct buf b;
	buf_init(&b, 40);
	struct obs_record r;
	obs_record_begin(&r, &b);
	obs_record_str(&r, "a", STR("0123456789"));
	obs_record_str(&r, "b", STR("01234567890123456789"));
	obs_record_u64(&r, "c", 1);
	obs_record_end(&r);
	assert_true(str_eq(buf_str(&b), STR("a=0123456789 c=1 cut=1\n")));
	buf_done(&b);
}

static void long_values_are_cut(void **state)
{
	(void)state;
	char big[OBS_FIELD_MAX + 10];
	memset(big, 'x', sizeof(big));
	struct buf b;
	buf_init(&b, 4096);
	struct obs_record r;
	obs_record_begin(&r, &b);
	obs_record_str(&r, "k", str_from(big, sizeof(big)));
	obs_record_end(&r);
	assert_int_equal(b.n, 2 + 1 + OBS_FIELD_MAX + 4 + 1);
	buf_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(a_line_of_fields), cmocka_unit_test(what_does_not_fit_is_left_out_and_said),
		cmocka_unit_test(long_values_are_cut) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
