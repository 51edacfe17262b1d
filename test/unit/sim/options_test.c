#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "sim/options.h"

static char why[256];

static bool parse(struct sim_options *o, const char *line)
{
	static char text[1024];
	static char name[] = "kvasir-sim";
	char *argv[64] = { name };
	int argc = 1;
	snprintf(text, sizeof(text), "%s", line);
	for (char *at = text; *at; argc++) {
		argv[argc] = at;
		at += strcspn(at, " ");
		if (*at)
			*at++ = 0;
	}
	return sim_options_parse(argc, argv, o, why);
}

static void the_fixed_names_work(void **state)
{
	(void)state;
	struct sim_options o;
	assert_true(parse(&o, "--workers 3 --port 9000 --events-port 9100 --replay-port=9200 --model m --profile llama-8b-h100 "
			      "--block-size 32 --blocks 500 "
			      "--encoding array --time-scale 10 --seed 7 --fault die --fault 1:slow=2"));
	assert_int_equal(o.workers, 3);
	assert_int_equal(o.events_port, 9100);
	assert_int_equal(o.replay_port, 9200);
	assert_string_equal(o.model, "m");
	assert_string_equal(o.profile->name, "llama-8b-h100");
	assert_int_equal(o.block_tok, 32);
	assert_int_equal(o.blocks, 500);
	assert_true(o.array_events && o.old_replay && o.time_scale > 9.9);
	assert_int_equal(o.seed, 7);
	assert_int_equal(o.faults.n, 2);
	sim_options_done(&o);
}

static void ports_follow_each_other(void **state)
{
	(void)state;
	struct sim_options o;
	assert_true(parse(&o, "--workers 3 --data-parallel-size 2 --port 8000"));
	assert_int_equal(o.events_port, 8003);
	assert_int_equal(o.replay_port, 8009);
	assert_string_equal(o.model, o.profile->model);
	assert_string_equal(sim_options_vllm_version(&o), "0.32.0");
	assert_true(o.idle_s == 5); /* as vLLM closes idle connections */
	sim_options_done(&o);
	assert_false(parse(&o, "--workers 100 --port 65500"));
	sim_options_done(&o);
}

static void groups_and_adapters(void **state)
{
	(void)state;
	struct sim_options o;
	assert_true(parse(&o, "--groups window:512*5,mamba,full --lora a=/p --lora b --retention all"));
	assert_int_equal(o.n_groups, 7);
	assert_int_equal(o.groups[4].window_tok, 512);
	assert_int_equal(o.groups[5].spec, SIM_MAMBA);
	assert_int_equal(o.groups[6].spec, SIM_FULL);
	assert_string_equal(o.loras.p[0].path, "/p");
	assert_string_equal(o.loras.p[1].path, "b");
	assert_int_equal(o.loras.p[1].id, 2);
	assert_true(o.retain_tok == SIM_RETAIN_ALL);
	sim_options_done(&o);
}

static void a_cpu_tier_is_for_full_attention(void **state)
{
	(void)state;
	struct sim_options o;
	assert_true(parse(&o, "--cpu-blocks 50 --self-describing-events"));
	assert_true(o.cpu_blocks == 50 && o.cpu_events_full);
	sim_options_done(&o);
	assert_true(parse(&o, "--cpu-blocks 50 --groups full"));
	sim_options_done(&o);
	assert_false(parse(&o, "--cpu-blocks 50 --groups full,mamba"));
	assert_non_null(strstr(why, "--cpu-blocks"));
	sim_options_done(&o);
}

static void faults_of_the_line_are_named(void **state)
{
	(void)state;
	static const struct {
		const char *line, *named;
	} bad[] = {
		{ "--nope 1", "--nope" },
		{ "--workers", "--workers" },
		{ "--workers x", "--workers" },
		{ "--workers 0", "--workers" },
		{ "--profile none", "--profile" },
		{ "--encoding json", "--encoding" },
		{ "--time-scale 0", "--time-scale" },
		{ "--groups window", "--groups" },
		{ "--groups full*9", "--groups" },
		{ "--fault what", "--fault" },
		{ "--no-events=1", "--no-events" },
		{ "--retention x", "--retention" },
	};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct sim_options o;
		assert_false(parse(&o, bad[i].line));
		assert_non_null(strstr(why, bad[i].named));
		sim_options_done(&o);
	}
}

static void help_names_options_profiles_and_faults(void **state)
{
	(void)state;
	struct buf b;
	buf_init(&b, 64 << 10);
	sim_options_help(&b);
	assert_true(str_find(buf_str(&b), STR("--events-port")) != SIZE_MAX);
	assert_true(str_find(buf_str(&b), STR("gpt-oss-120b-h200")) != SIZE_MAX);
	assert_true(str_find(buf_str(&b), STR("event-swap")) != SIZE_MAX);
	buf_done(&b);
}

/* Rows of the shared facts (workloads.md section 3): a prompt of 8,192 tokens, a decode step at 10,000 of context, the cache. */
static void profiles_are_the_rows_of_the_facts(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		double prefill_ms, w_ms, k_us_tok, c0_ms;
		uint64_t kv_tok;
	} rows[] = {
		{ "qwen3-32b-h100-tp2", 540, 9.8, 0.062, 1, 307328 },
		{ "qwen3-32b-h200-tp2", 540, 7.2, 0.043, 1, 760000 },
		{ "qwen3-32b-h200", 1000, 14.3, 0.087, 1, 247000 },
		{ "llama-8b-a100", 660, 9.7, 0.10, 1, 420000 },
		{ "llama-8b-h100", 265, 5.0, 0.062, 1, 420000 },
		{ "llama-8b-l4", 2200, 57, 0.69, 1, 30000 },
		{ "llama-70b-h100-tp4", 585, 16, 0.039, 1, 487000 },
		{ "llama-70b-h100-tp8", 375, 10.5, 0.019, 1, 1420000 },
		{ "gpt-oss-120b-h200", 205, 1.2 + 12.0 / 32, 0.012, 2, 1220000 },
		{ "gpt-oss-120b-h100", 210, 1.8 + 17.0 / 32, 0.017, 2, 390000 },
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct sim_profile *p = sim_profile_find(str_of(rows[i].name));
		struct sim_step_load decode = { .decodes = 1, .decode_ctx_tok = 10000 },
				     prefill = { .prefill_tok = 8192, .chunk_tok2 = 8192.0 * 8192 };
		assert_non_null(p);
		assert_int_equal(p->kv_tok, rows[i].kv_tok);
		double ms = p->a_ms + 1e-3 * sim_profile_step_us(p, &prefill); /* the facts round, and count `a` in some rows only */
		assert_true(ms > 0.93 * rows[i].prefill_ms && ms < 1.07 * rows[i].prefill_ms);
		ms = 1e-3 * sim_profile_step_us(p, &decode);
		assert_true(fabs(ms - (rows[i].c0_ms + rows[i].w_ms + rows[i].k_us_tok * 10 + 0.03)) < 1e-6);
	}
}

static void every_profile_is_usable(void **state)
{
	(void)state;
	for (size_t i = 0; sim_profile_at(i); i++) {
		const struct sim_profile *p = sim_profile_at(i);
		struct sim_step_load one = { .decodes = 1, .decode_ctx_tok = 1000 },
				     prefill = { .prefill_tok = 8192, .chunk_tok2 = 8192.0 * 8192 };
		assert_ptr_equal(sim_profile_find(str_of(p->name)), p);
		assert_true(p->kv_tok >= p->block_tok && p->budget_tok && p->max_seqs && p->max_model_tok);
		assert_true(p->instant || (sim_profile_step_us(p, &one) > 1e3 && sim_profile_load_us(p, 1000) > 1e3));
		assert_true(p->instant || sim_profile_step_us(p, &prefill) > 1e5);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_fixed_names_work),
		cmocka_unit_test(ports_follow_each_other),
		cmocka_unit_test(groups_and_adapters),
		cmocka_unit_test(a_cpu_tier_is_for_full_attention),
		cmocka_unit_test(faults_of_the_line_are_named),
		cmocka_unit_test(help_names_options_profiles_and_faults),
		cmocka_unit_test(every_profile_is_usable),
		cmocka_unit_test(profiles_are_the_rows_of_the_facts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
