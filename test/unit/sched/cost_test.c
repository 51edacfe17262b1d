#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/rand.h"
#include "sched/cost.h"
#include "sched_kit.h"

static struct sched_cost_in idle(const struct sched_profile *p, const struct fleet_worker *w, uint32_t hit, uint32_t new_tok)
{
	return (struct sched_cost_in){ .profile = p, .worker = w, .hit_tok = hit, .new_tok = new_tok };
}

/* The facts' own figure: 8,192 tokens of Qwen3-32B on two H100 take 540 ms, less API time and with a cold cache. */
static void an_idle_worker_costs_what_the_table_says(void **state)
{
	(void)state;
	struct kit k;
	kit_init(&k, 1, 1);
	const struct sched_profile *p = sched_profile_find(STR("Qwen3-32B-H100-TP2"), NULL);
	struct sched_cost_in in = idle(p, k.worker[0], 0, 8192);
	double t = sched_ttft_us(&in);
	assert_true(t > 530e3 && t < 560e3);
	in = idle(p, k.worker[0], 8191, 1);
	assert_true(sched_ttft_us(&in) < 40e3);
	in = idle(p, k.worker[0], 4096, 4096);       /* the second half of a prompt costs more than the first */
	double second = sched_ttft_us(&in);
	in = idle(p, k.worker[0], 0, 4096);
	assert_true(second > sched_ttft_us(&in) + 20e3);
	kit_done(&k);
}

static void load_adds_a_wait(void **state)
{
	(void)state;
	struct kit k;
	kit_init(&k, 1, 1);
	const struct sched_profile *p = sched_profile_find(STR("qwen3-32b-h100-tp2"), NULL);
	struct sched_cost_in in = idle(p, k.worker[0], 0, 100), busy = in;
	busy.load = (struct fleet_load){ .requests = 3, .contexts = 2, .context_tok = 2000, .prefill_tok = 8000 };
	double more = sched_ttft_us(&busy) - sched_ttft_us(&in);
	assert_true(more > 440e3 && more < 600e3);
	busy.load = (struct fleet_load){ .requests = 300, .contexts = 256, .context_tok = 25600 };   /* full: a slot must come free */
	struct sched_cost_in nearly = busy;
	nearly.load.requests = nearly.load.contexts = 250;
	assert_true(sched_ttft_us(&busy) > sched_ttft_us(&nearly) + 100e3);
	kit_done(&k);
}

static void an_unknown_accelerator_has_a_stated_default(void **state)
{
	(void)state;
	bool known = true;
	assert_string_equal(sched_profile_find(STR("tpu-v9"), &known)->name, SCHED_PROFILE_DEFAULT);
	assert_false(known);
	assert_string_equal(sched_profile_find(STR("A100"), &known)->name, "llama-8b-a100");
	assert_true(known);
	size_t n = 0;
	for (; sched_profile_name(n); n++) {
		(void)sched_profile_find(str_of(sched_profile_name(n)), &known);
		assert_true(known);
	}
	assert_string_equal(sched_profile_name(n - 1), "cpu");
}

static void the_slow_factor_finds_the_scale_and_one_stall_does_not_move_it(void **state)
{
	(void)state;
	struct kit k;
	kit_init(&k, 1, 1);
	struct rand r = { 7 };
	for (int i = 0; i < 300; i++)
		sched_learn_ttft(k.worker[0], 50e3, 400e3 * rand_lognormal_mean(&r, 1, 0.1));
	assert_true(fabs(sched_slow(k.worker[0]) / 8 - 1) < 0.1);
	assert_true(k.worker[0]->measured.ttft_error_ewma < 0.2);
	double before = sched_slow(k.worker[0]);
	sched_learn_ttft(k.worker[0], 50e3, 600e6);
	assert_true(sched_slow(k.worker[0]) / before < 1.05);
	for (int i = 0; i < 10000; i++)
		sched_learn_ttft(k.worker[0], 1, 1e12);
	assert_true(sched_slow(k.worker[0]) < 70);
	sched_learn_ttft(k.worker[0], 0, 100);
	sched_learn_ttft(k.worker[0], 100, 0);
	assert_true(isfinite(sched_slow(k.worker[0])));
	kit_done(&k);
}

/* What is loaded costs its time and is no prefill: less than computing it from the host, more from storage. */
static void a_load_from_below_costs_its_time(void **state)
{
	(void)state;
	struct kit k;
	kit_init(&k, 1, 1);
	const struct sched_profile *p = sched_profile_find(STR("qwen3-32b-h100-tp2"), NULL);
	struct sched_cost_in gpu = idle(p, k.worker[0], 6000, 50), cpu = gpu, storage = gpu, none = idle(p, k.worker[0], 0, 6050);
	cpu.lower.cpu_tok = storage.lower.storage_tok = 6000;
	double cpu_us = sched_ttft_us(&cpu) - sched_ttft_us(&gpu), storage_us = sched_ttft_us(&storage) - sched_ttft_us(&gpu);
	assert_true(fabs(cpu_us / (6000 * 131072 / 20e3) - 1) < 1e-6);
	assert_true(fabs(storage_us / cpu_us - 10) < 1e-6);
	assert_true(sched_ttft_us(&cpu) < sched_ttft_us(&none) && sched_ttft_us(&none) < sched_ttft_us(&storage));
	for (size_t i = 0; sched_profile_name(i); i++)
		assert_true(sched_load_us(sched_profile_find(str_of(sched_profile_name(i)), NULL), (struct kv_load){ 1, 0 }) > 0);
	kit_done(&k);
}

static void one_that_had_a_bad_time_is_tried_again(void **state)
{
	(void)state;
	struct kit k;
	kit_init(&k, 2, 1);
	for (int i = 0; i < 100; i++)
		sched_learn_ttft(k.worker[0], 50e3, 800e3);
	for (int i = 0; i < 4; i++)
		sched_learn_ttft(k.worker[1], 50e3, 50e3);
	assert_true(sched_slow(k.worker[0]) > 10);
	for (int i = 0; i < 800; i++)
		sched_learn_ttft(k.worker[1], 50e3, 50e3);
	assert_true(sched_slow(k.worker[0]) < 1.5);
	sched_learn_ttft(k.worker[0], 50e3, 800e3);      /* it is still slow: believed at once */
	assert_true(sched_slow(k.worker[0]) > 10);
	kit_done(&k);
}

static void a_newcomer_is_taken_to_be_like_its_pool(void **state)
{
	(void)state;
	struct kit k;
	kit_init(&k, 2, 1);
	for (int i = 0; i < 100; i++)
		sched_learn_ttft(k.worker[0], 50e3, 400e3);
	assert_true(fabs(sched_slow(k.worker[1]) / sched_slow(k.worker[0]) - 1) < 0.1);
	for (int i = 0; i < 100; i++)
		sched_learn_ttft(k.worker[1], 50e3, 50e3);
	assert_true(sched_slow(k.worker[1]) < 1.5);
	kit_done(&k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_idle_worker_costs_what_the_table_says), cmocka_unit_test(load_adds_a_wait),
		cmocka_unit_test(an_unknown_accelerator_has_a_stated_default),
		cmocka_unit_test(the_slow_factor_finds_the_scale_and_one_stall_does_not_move_it),
		cmocka_unit_test(a_load_from_below_costs_its_time),
		cmocka_unit_test(one_that_had_a_bad_time_is_tried_again), cmocka_unit_test(a_newcomer_is_taken_to_be_like_its_pool),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
