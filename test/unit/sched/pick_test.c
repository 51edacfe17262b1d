#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/hash.h"
#include "sched/cost.h"
#include "sched_kit.h"

static void spread(struct kit *k, uint32_t *ret_least, uint32_t *ret_most)
{
	*ret_least = UINT32_MAX;
	*ret_most = 0;
	for (size_t i = 0; i < k->n; i++) {
		*ret_least = MIN(*ret_least, k->c[i].load.requests);
		*ret_most = MAX(*ret_most, k->c[i].load.requests);
	}
}

static void least_request_is_even(void **state)
{
	(void)state;
	struct kit k;
	kit_init(&k, 8, 1);
	struct sched_ask a = kit_ask(&k);
	for (int i = 0; i < 100; i++)
		kit_send(&k, &sched_least_request, &a);
	uint32_t least, most;
	spread(&k, &least, &most);
	assert_true(most - least <= 1);
	kit_done(&k);
}

static void least_request_ties_go_to_everybody(void **state)
{
	(void)state;
	struct kit k;
	kit_init(&k, 8, 2);
	uint32_t got[8] = { 0 };
	for (int i = 0; i < 800; i++) {
		struct sched_ask a = kit_ask(&k);
		const char *why;
		got[sched_least_request.pick(&a, k.c, k.n, &why)]++;
	}
	for (int i = 0; i < 8; i++)
		assert_true(got[i] > 50);
	kit_done(&k);
}

static void round_robin_takes_turns(void **state)
{
	(void)state;
	struct kit k;
	kit_init(&k, 3, 1);
	struct sched_ask a = kit_ask(&k);
	for (size_t i = 0; i < 9; i++)
		assert_int_equal(kit_send(&k, &sched_round_robin, &a), i % 3);
	kit_done(&k);
}

static void random_is_uneven_and_fair_in_the_long_run(void **state)
{
	(void)state;
	struct kit k;
	kit_init(&k, 4, 3);
	struct sched_ask a = kit_ask(&k);
	for (int i = 0; i < 4000; i++)
		kit_send(&k, &sched_random, &a);
	uint32_t least, most;
	spread(&k, &least, &most);
	assert_true(least > 900 && most < 1100 && most != least);
	kit_done(&k);
}

/* vllm-project/router 177: power of two choices that only knows polled load sends a whole wave to one worker. */
static void case_router_177_two_choices_see_their_own_last_choice(void **state)
{
	(void)state;
	struct kit k;
	kit_init(&k, 2, 4);
	struct sched_ask a = kit_ask(&k);
	for (int i = 0; i < 8; i++)
		kit_send(&k, &sched_p2c_ewma, &a);
	assert_int_equal(k.c[0].load.requests, 4);
	assert_int_equal(k.c[1].load.requests, 4);
	kit_done(&k);
}

/* Two at random are compared, not all: the fastest of eight wins its quarter of the draws, the slowest none. */
static void p2c_compares_two_at_random(void **state)
{
	(void)state;
	struct kit k;
	kit_init(&k, 8, 10);
	uint32_t got[8] = { 0 };
	for (int i = 0; i < 8; i++)
		sched_learn_peak(k.worker[i], 1e5 * (i + 1), (struct mono){ 0 });
	for (int i = 0; i < 4000; i++) {
		struct sched_ask a = kit_ask(&k);
		const char *why;
		got[sched_p2c_ewma.pick(&a, k.c, k.n, &why)]++;
	}
	assert_true(got[0] > 850 && got[0] < 1150 && got[7] == 0);
	for (int i = 1; i < 8; i++)
		assert_true(got[i] < got[i - 1]);
	kit_done(&k);
}

static void p2c_leaves_a_slow_worker_and_comes_back(void **state)
{
	(void)state;
	struct kit k;
	kit_init(&k, 2, 5);
	sched_learn_peak(k.worker[0], 2e6, (struct mono){ 0 });        /* a peak counts at once */
	sched_learn_peak(k.worker[1], 1e5, (struct mono){ 0 });
	struct sched_ask a = kit_ask(&k);
	for (int i = 0; i < 10; i++)
		assert_int_equal(kit_send(&k, &sched_p2c_ewma, &a), 1);
	for (int t = 1; t <= 40; t++)
		sched_learn_peak(k.worker[1], 1e5, (struct mono){ t * 1000000 });
	a.now = (struct mono){ 40000000 };
	k.c[1].load.unanswered = 0;
	assert_int_equal(kit_send(&k, &sched_p2c_ewma, &a), 0);        /* silence wins it back */
	kit_done(&k);
}

static size_t home(struct kit *k, uint64_t key)
{
	struct sched_ask a = kit_ask(k);
	a.affinity_key = key;
	const char *why;
	return sched_consistent_hash.pick(&a, k->c, k->n, &why);
}

static void consistent_hash_moves_only_the_keys_of_who_leaves(void **state)
{
	(void)state;
	struct kit k;
	kit_init(&k, 10, 6);
	size_t before[1000], moved = 0, of_last = 0;
	uint32_t got[10] = { 0 };
	for (uint64_t i = 0; i < 1000; i++) {
		before[i] = home(&k, hash_mix(i + 1));
		got[before[i]]++;
	}
	for (int i = 0; i < 10; i++)
		assert_true(got[i] > 60 && got[i] < 140);
	k.n = 9;
	for (uint64_t i = 0; i < 1000; i++) {
		of_last += before[i] == 9;
		moved += home(&k, hash_mix(i + 1)) != before[i];
	}
	assert_int_equal(moved, of_last);
	kit_done(&k);
}

static void consistent_hash_keeps_a_key_until_its_worker_is_full(void **state)
{
	(void)state;
	struct kit k;
	kit_init(&k, 4, 7);
	for (uint32_t i = 0; i < 100; i++) {
		struct sched_ask a = kit_ask(&k);
		a.affinity_key = 42;
		kit_send(&k, &sched_consistent_hash, &a);
		for (size_t w = 0; w < 4; w++)
			assert_true(k.c[w].load.requests <= (uint32_t)(1.25 * (i + 1) / 4) + 1);
	}
	kit_done(&k);
}

/* sglang 23-like: ties. 8 idle workers with slightly different measured speed must all be used. */
static void case_sglang_6164_ties_do_not_always_fall_to_the_same_worker(void **state)
{
	(void)state;
	struct kit k;
	kit_init(&k, 8, 8);
	uint32_t got[8] = { 0 };
	for (int i = 0; i < 8; i++)
		k.c[i].ttft_us = 30000 + 100 * i;
	for (int i = 0; i < 800; i++) {
		struct sched_ask a = kit_ask(&k);
		const char *why;
		got[sched_kv.pick(&a, k.c, k.n, &why)]++;
	}
	for (int i = 0; i < 8; i++)
		assert_true(got[i] > 50);
	kit_done(&k);
}

static void alternates_are_other_workers_by_predicted_time(void **state)
{
	(void)state;
	struct kit k;
	kit_init(&k, 4, 9);
	k.c[1].worker = k.c[0].worker;               /* a second rank of the same worker */
	k.c[0].ttft_us = 10;
	k.c[1].ttft_us = 20;
	k.c[2].ttft_us = 40;
	k.c[3].ttft_us = 30;
	size_t order[8];
	assert_int_equal(sched_order(k.c, 4, 2, order, 8), 3);
	assert_int_equal(order[0], 2);
	assert_int_equal(order[1], 0);
	assert_int_equal(order[2], 3);
	assert_int_equal(sched_order(k.c, 4, 2, order, 2), 2);
	kit_done(&k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(least_request_is_even), cmocka_unit_test(least_request_ties_go_to_everybody), cmocka_unit_test(round_robin_takes_turns),
		cmocka_unit_test(random_is_uneven_and_fair_in_the_long_run), cmocka_unit_test(case_router_177_two_choices_see_their_own_last_choice),
		cmocka_unit_test(p2c_compares_two_at_random), cmocka_unit_test(p2c_leaves_a_slow_worker_and_comes_back), cmocka_unit_test(consistent_hash_moves_only_the_keys_of_who_leaves),
		cmocka_unit_test(consistent_hash_keeps_a_key_until_its_worker_is_full),
		cmocka_unit_test(case_sglang_6164_ties_do_not_always_fall_to_the_same_worker),
		cmocka_unit_test(alternates_are_other_workers_by_predicted_time),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
