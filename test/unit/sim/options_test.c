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

static void every_profile_is_usable(void **state)
{
	(void)state;
	for (size_t i = 0; sim_profile_at(i); i++) {
		const struct sim_profile *p = sim_profile_at(i);
		struct sim_step_load one = { .decodes = 1, .decode_ctx_tok = 1000 },
				     prefill = { .prefill_tok = 8192, .chunk_tok2 = 8192.0 * 8192 };
		assert_ptr_equal(sim_profile_find(str_of(p->name)), p);
		assert_true(p->kv_tok >= p->block_tok && p->budget_tok && p->max_seqs && p->max_model_tok);
		assert_true(p->instant || sim_profile_step_us(p, &one) > 1e3);
		assert_true(p->instant || sim_profile_step_us(p, &prefill) > 1e5);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_fixed_names_work),
		cmocka_unit_test(ports_follow_each_other),
		cmocka_unit_test(groups_and_adapters),
		cmocka_unit_test(faults_of_the_line_are_named),
		cmocka_unit_test(help_names_options_profiles_and_faults),
		cmocka_unit_test(every_profile_is_usable),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
