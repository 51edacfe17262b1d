/* The workloads: same seed, same bytes; the shapes they promise; broken traces refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "bench/workload.h"

static struct bench_workload_opts opts(const char *name)
{
	return (struct bench_workload_opts){ .name = str_of(name), .seed = 7, .rate = 10, .duration_s = 100, .think_s = -1 };
}

static void test_same_seed_same_sessions(void **state)
{
	(void)state;
	struct arena a, b;
	struct bench_workload x, y, z;
	struct bench_workload_opts o = opts("shared-prefix");
	arena_init(&a, 0);
	arena_init(&b, 0);
	assert_int_equal(bench_workload_make(&o, &a, &x), ERR_OK);
	assert_int_equal(bench_workload_make(&o, &b, &y), ERR_OK);
	o.seed = 8;
	assert_int_equal(bench_workload_make(&o, &b, &z), ERR_OK);
	assert_int_equal(x.n, y.n);
	assert_true(x.n > 850 && x.n < 1150);
	size_t same = 0;
	for (size_t i = 0; i < x.n; i++) {
		assert_true(fabs(x.sessions[i].start_s - y.sessions[i].start_s) < 1e-12);
		assert_int_equal(x.sessions[i].prefix_id, y.sessions[i].prefix_id);
		same += i < z.n && x.sessions[i].prefix_id == z.sessions[i].prefix_id;
	}
	assert_true(same < x.n / 10);
	arena_done(&a);
	arena_done(&b);
}

static void test_words_depend_on_seed_id_and_place_only(void **state)
{
	(void)state;
	struct buf whole, parts;
	buf_init(&whole, 1 << 20);
	buf_init(&parts, 1 << 20);
	assert_int_equal(bench_words(&whole, 1, 42, 0, 100), ERR_OK);
	assert_int_equal(bench_words(&parts, 1, 42, 0, 60), ERR_OK);
	assert_int_equal(bench_words(&parts, 1, 42, 60, 40), ERR_OK);
	assert_true(str_eq(buf_str(&whole), buf_str(&parts)));
	buf_clear(&parts);
	assert_int_equal(bench_words(&parts, 2, 42, 0, 100), ERR_OK);
	assert_false(str_eq(buf_str(&whole), buf_str(&parts)));
	buf_done(&whole);
	buf_done(&parts);
}

static void test_chat_has_turns_and_think_time(void **state)
{
	(void)state;
	struct arena a;
	struct bench_workload w;
	struct bench_workload_opts o = opts("chat");
	o.turns = 4;
	arena_init(&a, 0);
	assert_int_equal(bench_workload_make(&o, &a, &w), ERR_OK);
	assert_int_equal(w.n_requests, w.n * 4);
	double think = 0;
	for (size_t i = 0; i < w.n; i++)
		for (uint32_t k = 0; k < 4; k++)
			think += w.sessions[i].turns[k].think_s;
	think /= (double)w.n_requests;
	assert_true(think > 4 && think < 6);
	arena_done(&a);
}

static void test_trace_keeps_blocks_and_stretches_to_the_rate(void **state)
{
	(void)state;
	struct arena a;
	struct bench_workload w;
	struct bench_workload_opts o = opts("trace");
	o.rate = 0;
	o.trace = STR("{\"timestamp\": 0, \"input_length\": 700, \"output_length\": 5, \"hash_ids\": [0, 1]}\n"
	              "\n{\"timestamp\": 4000, \"input_length\": 100, \"output_length\": 0, \"hash_ids\": [7]}\n");
	arena_init(&a, 0);
	assert_int_equal(bench_workload_make(&o, &a, &w), ERR_OK);
	assert_int_equal(w.n, 2);
	assert_int_equal(w.sessions[0].n_blocks, 2);
	assert_int_equal(w.sessions[1].blocks[0], 7);
	assert_int_equal(w.sessions[1].turns[0].output_tok, 1);
	assert_true(fabs(w.sessions[1].start_s - 4) < 1e-9);
	assert_false(w.goes_round);
	o.rate = 2;
	assert_int_equal(bench_workload_make(&o, &a, &w), ERR_OK);
	assert_true(fabs(w.sessions[1].start_s - 1) < 1e-9);
	arena_done(&a);
}

static void test_a_closed_loop_goes_round_an_open_one_does_not(void **state)
{
	(void)state;
	struct arena a;
	struct bench_workload w;
	struct bench_workload_opts o = opts("no-sharing");
	arena_init(&a, 0);
	assert_int_equal(bench_workload_make(&o, &a, &w), ERR_OK);
	assert_false(w.goes_round);
	o.rate = 0;
	assert_int_equal(bench_workload_make(&o, &a, &w), ERR_OK);
	assert_true(w.goes_round && w.n > 64);
	arena_done(&a);
}

static void test_bad_names_and_traces_are_refused(void **state)
{
	(void)state;
	struct arena a;
	struct bench_workload w;
	struct bench_workload_opts o = opts("nonsense");
	arena_init(&a, 0);
	assert_int_equal(bench_workload_make(&o, &a, &w), ERR_NOT_FOUND);
	o.trace = STR("{\"timestamp\": 0, \"input_length\": -1, \"output_length\": 5, \"hash_ids\": []}\n");
	assert_int_equal(bench_workload_make(&o, &a, &w), ERR_SYNTAX);
	o.trace = STR("nonsense\n");
	assert_int_equal(bench_workload_make(&o, &a, &w), ERR_SYNTAX);
	arena_done(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_seed_same_sessions),
		cmocka_unit_test(test_words_depend_on_seed_id_and_place_only),
		cmocka_unit_test(test_chat_has_turns_and_think_time),
		cmocka_unit_test(test_trace_keeps_blocks_and_stretches_to_the_rate),
		cmocka_unit_test(test_a_closed_loop_goes_round_an_open_one_does_not),
		cmocka_unit_test(test_bad_names_and_traces_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
