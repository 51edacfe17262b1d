#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "sim/fault.h"

static struct sim_fault parse(const char *spec)
{
	struct sim_fault f;
	assert_int_equal(sim_fault_parse(str_of(spec), &f), ERR_OK);
	return f;
}

static void a_spec_says_whom_what_and_when(void **state)
{
	(void)state;
	struct sim_fault f = parse(" 1-3:cut=300,p=0.5,n=2,after=7,path=/v1/chat \n");
	assert_int_equal(f.kind, SIM_FAULT_CUT);
	assert_true(f.value > 299 && f.value < 301 && f.p > 0.49 && f.p < 0.51);
	assert_int_equal(f.left, 2);
	assert_int_equal(f.after, 7);
	assert_string_equal(f.path, "/v1/chat");
	assert_true(f.worker_given);
	assert_int_equal(f.from, 1);
	assert_int_equal(f.to, 3);
	f = parse("die");
	assert_true(f.value < 0 && !f.worker_given && f.to == UINT32_MAX);
	f = parse("*:status=503");
	assert_true(f.worker_given && f.from == 0 && f.to == UINT32_MAX);
	f = parse("status=500,path=/a:b");
	assert_string_equal(f.path, "/a:b");
}

static void nonsense_is_refused(void **state)
{
	(void)state;
	static const char *const bad[] = { "", "x", "status", "status=", "status=200", "status=600", "reset=1", "cut=-1", "slow=0",
		"lie-block=0", "2-1:die", "a:die", "die,n", "die,n=x", "die,p=1.1", "die,path=", "event-lose=2", ":die", "die,,n=1" };
	struct sim_fault f = { .value = 77 };
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_true(sim_fault_parse(str_of(bad[i]), &f) != ERR_OK);
	assert_true(f.value > 76); /* untouched */
}

static void every_kind_has_a_word_and_its_word_is_read(void **state)
{
	(void)state;
	for (int k = 0; k < SIM_FAULT_COUNT_; k++) {
		char spec[64];
		struct sim_fault f;
		snprintf(spec, sizeof(spec), "%s=500", sim_fault_word((enum sim_fault_kind)k));
		if (sim_fault_parse(str_of(spec), &f) == ERR_OK)
			assert_int_equal(f.kind, k);
		assert_non_null(strstr(sim_fault_help(), sim_fault_word((enum sim_fault_kind)k)));
	}
}

static void calls_are_picked_by_path_count_and_chance(void **state)
{
	(void)state;
	struct sim_faults all = { 0 };
	struct rand r = { 1 };
	struct sim_fault f = parse("reset,n=2,after=1"), t = parse("status=500,path=/tok"), half = parse("hang-before,p=0.5");
	sim_faults_add(&all, &f);
	sim_faults_add(&all, &t);
	assert_null(sim_faults_pick(&all, STR("/v1/x"), true, &r));
	assert_null(sim_faults_pick(&all, STR("/v1/models"), false, &r));
	assert_int_equal(sim_faults_pick(&all, STR("/v1/x"), true, &r)->kind, SIM_FAULT_RESET);
	assert_int_equal(sim_faults_pick(&all, STR("/tokenize"), false, &r)->kind, SIM_FAULT_STATUS);
	assert_int_equal(sim_faults_pick(&all, STR("/v1/x"), true, &r)->kind, SIM_FAULT_RESET);
	assert_null(sim_faults_pick(&all, STR("/v1/x"), true, &r));
	sim_faults_add(&all, &half);
	int hit = 0;
	for (int i = 0; i < 1000; i++)
		hit += sim_faults_pick(&all, STR("/v1/x"), true, &r) != NULL;
	assert_in_range(hit, 430, 570);
	sim_faults_clear(&all);
	assert_null(sim_faults_pick(&all, STR("/tokenize"), false, &r));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_spec_says_whom_what_and_when),
		cmocka_unit_test(nonsense_is_refused),
		cmocka_unit_test(every_kind_has_a_word_and_its_word_is_read),
		cmocka_unit_test(calls_are_picked_by_path_count_and_chance),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
