/* Slices: cutting, finding, and numbers that refuse whatever is not wholly a number. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#include "base/str.h"

static void test_compare_and_cut(void **state)
{
	(void)state;
	struct str head, tail;
	assert_true(str_eq(STR("abc"), str_of("abc")));
	assert_false(str_eq(STR("abc"), STR("abd")));
	assert_true(str_ieq(STR("Content-Type"), STR("content-TYPE")));
	assert_true(str_istarts(STR("Bearer x"), STR("bearer ")));
	assert_true(str_ends(STR("a.yaml"), STR(".yaml")));
	assert_false(str_ends(STR("l"), STR(".yaml")));
	assert_true(str_cut(STR("k=v=w"), '=', &head, &tail));
	assert_true(str_eq(head, STR("k")) && str_eq(tail, STR("v=w")));
	assert_false(str_cut(STR("kv"), '=', &head, &tail));
	assert_true(str_eq(head, STR("kv")) && tail.n == 0);
	assert_true(str_cut(STR("kv="), '=', &head, &tail));
	assert_true(tail.n == 0);
	assert_true(str_eq(str_trim(STR(" \t a b\r\n")), STR("a b")));
	assert_int_equal(str_find(STR("hello"), STR("ll")), 2);
	assert_true(str_find(STR("hello"), STR("xx")) == SIZE_MAX);
	assert_true(str_find(STR("hell"), STR("lo")) == SIZE_MAX && str_find((struct str){ 0 }, STR("l")) == SIZE_MAX);
	assert_int_equal(str_find(STR("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab"), STR("aab")), 40);
	assert_true(str_find(STR("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"), STR("ab")) == SIZE_MAX);
	assert_true(str_cmp(STR("a"), STR("ab")) < 0 && str_cmp(STR("b"), STR("ab")) > 0);
	assert_true(str_sub(STR("abc"), 5, 2).n == 0);
}

static void test_numbers_are_strict(void **state)
{
	(void)state;
	uint64_t u = 1;
	int64_t i = 1;
	double f = 1;
	assert_true(str_to_u64(STR("18446744073709551615"), &u) && u == UINT64_MAX);
	assert_false(str_to_u64(STR("18446744073709551616"), &u));
	assert_false(str_to_u64(STR("+1"), &u));
	assert_false(str_to_u64(STR(""), &u));
	assert_false(str_to_u64(STR("1 "), &u));
	assert_true(str_to_i64(STR("-9223372036854775808"), &i) && i == INT64_MIN);
	assert_false(str_to_i64(STR("9223372036854775808"), &i));
	assert_true(str_to_f64(STR("-1.5e3"), &f) && fabs(f + 1500) < 1e-9);
	assert_true(str_to_f64(STR("0.10000000000000000000000000000000000000000000000000000000000000000000000000001"), &f) && fabs(f - 0.1) < 1e-12);
	assert_false(str_to_f64(STR("inf"), &f));
	assert_false(str_to_f64(STR("0x10"), &f));
	assert_false(str_to_f64(STR("1e999"), &f));
	assert_false(str_to_f64(STR("1.2.3"), &f));
	char room[STR_U64_MAX];
	assert_true(str_eq(str_of_u64(0, room), STR("0")));
	assert_true(str_eq(str_of_u64(1234567890, room), STR("1234567890")));
	assert_true(str_eq(str_of_u64(UINT64_MAX, room), STR("18446744073709551615")));
}

static void test_const_time_equality(void **state)
{
	(void)state;
	assert_true(str_eq_const_time(STR("secret"), STR("secret")));
	assert_false(str_eq_const_time(STR("secret"), STR("secreT")));
	assert_false(str_eq_const_time(STR("secret"), STR("secre")));
	assert_false(str_eq_const_time(STR("secret"), STR("")));
	assert_false(str_eq_const_time(STR(""), STR("x")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_compare_and_cut),
		cmocka_unit_test(test_numbers_are_strict),
		cmocka_unit_test(test_const_time_equality),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
