/* What routing does to time to first token, in virtual time over simulated engines (lab.h). Every bound here is a promise
 * of issue 3, or a case of the field's routers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "lab.h"

/* Sanitizers and debug builds run a shorter form: it looks for faults of memory there, not of policy. */
#ifdef KVASIR_DEBUG
#define SEEDS 1
#define RUN_S 80
#else
#define SEEDS 2
#define RUN_S 120
#endif

static double mean_ms(const struct lab_load *load, enum brain_routing routing, uint32_t workers, double run_s)
{
	double sum = 0;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct lab_opts o = { .load = load, .routing = routing, .profile = "qwen3-32b-h100-tp2", .workers = workers, .run_s = run_s, .warm_s = 60,
			.seed = seed, .event_delay_us = 2000, .gauges_every_us = 1000000 };
		struct lab_result r = lab_run(&o);
		lab_print(&o, &r);
		assert_true(r.ledger_zero);
		assert_true(r.measured > 50);
		sum += r.ttft_mean_ms;
	}
	return sum / SEEDS;
}

static void hot(uint32_t workers, double rate, bool same)
{
	struct lab_load load = { .name = same ? "one hot prompt" : "one hot prefix", .families = 1, .prefix_tok = 6000, .own_tok = 200, .same = same,
		.output_tok = 200, .rate_per_s = rate };
	double kv = mean_ms(&load, BRAIN_KV, workers, RUN_S), turn = mean_ms(&load, BRAIN_ROUND_ROBIN, workers, RUN_S);
	assert_true(kv <= 1.10 * turn);
}

static void case_sglang_21199_one_hot_prompt_is_no_worse_than_round_robin_2_workers(void **state)
{
	(void)state;
	hot(2, 3, true);
	hot(2, 9, false);
}

static void case_sglang_21199_one_hot_prompt_is_no_worse_than_round_robin_4_workers(void **state)
{
	(void)state;
	hot(4, 6, true);
	hot(4, 18, false);
}

static void without_sharing_it_is_no_worse_than_least_request(void **state)
{
	(void)state;
	for (double rate = 6; rate <= (SEEDS == 1 ? 6 : 18); rate += 6) {
		struct lab_load load = { .name = "no sharing", .prefix_tok = 2048, .own_tok = 10, .output_tok = 128, .rate_per_s = rate };
		assert_true(mean_ms(&load, BRAIN_KV, 4, RUN_S) <= 1.02 * mean_ms(&load, BRAIN_LEAST_REQUEST, 4, RUN_S));
	}
}

static void shared_families_are_much_better_than_both(void **state)
{
	(void)state;
	struct lab_load load = { .name = "60 families", .families = 60, .prefix_tok = 6000, .own_tok = 200, .output_tok = 200, .rate_per_s = 14 };
	double kv = mean_ms(&load, BRAIN_KV, 4, RUN_S);
	assert_true(kv < 0.5 * mean_ms(&load, BRAIN_LEAST_REQUEST, 4, RUN_S));
	assert_true(kv < 0.5 * mean_ms(&load, BRAIN_ROUND_ROBIN, 4, RUN_S));
}

/* workloads.md: greedy predicted TTFT needs 5 to 12 s here. The bar of S2 is 200 ms a seed; ours is within 3 times. */
static void near_the_knee_it_does_not_collapse(void **state)
{
	(void)state;
	struct lab_load load = { .name = "b2b", .families = 150, .prefix_tok = 6000, .own_tok = 1200, .variants = 5, .output_tok = 600, .rate_per_s = 35,
		.warm_rate_per_s = 15 };
	struct lab_opts o = { .load = &load, .routing = BRAIN_KV, .profile = "qwen3-32b-h100-tp2", .workers = 8, .run_s = RUN_S - 10, .warm_s = 60, .seed = 1,
		.event_delay_us = 2000 };
	struct lab_result r = lab_run(&o);
	lab_print(&o, &r);
	assert_true(r.ttft_mean_ms < 600 && r.ttft_p50_ms < 200);
	assert_true(r.hit_share > 0.94);
	assert_true(r.ledger_zero);
}

/* ray 59390: an imbalance threshold silently undid affinity for many clients. */
static void case_ray_59390_many_chats_keep_their_workers(void **state)
{
	(void)state;
	struct lab_load load = { .name = "chats", .prefix_tok = 500, .own_tok = 300, .turns = 8, .output_tok = 200, .rate_per_s = 25 };
	struct lab_opts o = { .load = &load, .routing = BRAIN_KV, .profile = "qwen3-32b-h100-tp2", .workers = 4, .run_s = RUN_S, .warm_s = 60, .seed = 3,
		.event_delay_us = 2000 };
	struct lab_result kv = lab_run(&o);
	lab_print(&o, &kv);
	o.routing = BRAIN_LEAST_REQUEST;
	struct lab_result least = lab_run(&o);
	lab_print(&o, &least);
	assert_true(kv.hit_share > 0.8 && least.hit_share < 0.65);
	assert_true(kv.ttft_mean_ms < 0.5 * least.ttft_mean_ms);
}

static void predictions_are_exact_while_events_lag(void **state)
{
	(void)state;
	struct lab_load load = { .name = "20 families", .families = 20, .prefix_tok = 2000, .own_tok = 100, .output_tok = 50, .rate_per_s = 30 };
	struct lab_opts o = { .load = &load, .routing = BRAIN_RANDOM, .profile = "llama-8b-h100", .workers = 2, .run_s = 30, .warm_s = 0, .seed = 5,
		.event_delay_us = 20000 };
	struct lab_result r = lab_run(&o);
	lab_print(&o, &r);
	assert_true(r.exact_share > 0.99);
}

/* The profile says L4, the engines are H100: nothing is lost but the first seconds. */
static void a_wrong_profile_and_a_slow_worker_are_learnt(void **state)
{
	(void)state;
	struct lab_load load = { .name = "no sharing, one slow", .prefix_tok = 2048, .own_tok = 10, .output_tok = 64, .rate_per_s = 12 };
	struct lab_opts o = { .load = &load, .routing = BRAIN_KV, .profile = "qwen3-32b-h100-tp2", .workers = 4, .run_s = RUN_S, .warm_s = 60, .seed = 1,
		.wrong_profile = true, .slow = { 3 }, .event_delay_us = 2000 };
	struct lab_result kv = lab_run(&o);
	lab_print(&o, &kv);
	o.routing = BRAIN_ROUND_ROBIN;
	struct lab_result turn = lab_run(&o);
	lab_print(&o, &turn);
	assert_true(kv.ttft_mean_ms < 0.8 * turn.ttft_mean_ms);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(case_sglang_21199_one_hot_prompt_is_no_worse_than_round_robin_2_workers),
		cmocka_unit_test(case_sglang_21199_one_hot_prompt_is_no_worse_than_round_robin_4_workers),
		cmocka_unit_test(without_sharing_it_is_no_worse_than_least_request), cmocka_unit_test(shared_families_are_much_better_than_both),
		cmocka_unit_test(near_the_knee_it_does_not_collapse), cmocka_unit_test(case_ray_59390_many_chats_keep_their_workers),
		cmocka_unit_test(predictions_are_exact_while_events_lag), cmocka_unit_test(a_wrong_profile_and_a_slow_worker_are_learnt),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
