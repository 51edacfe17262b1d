#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/map.h"
#include "base/rand.h"
#include "sim/engine.h"

static struct sim_engine *engine_of(const char *profile, uint32_t blocks)
{
	struct sim_engine_opts o = { .profile = sim_profile_find(str_of(profile)), .cache = { .blocks = blocks }, .seed = 1 };
	return sim_engine_new(&o);
}

static struct sim_req *add(struct sim_engine *e, uint32_t first, size_t n, uint32_t max_new, int64_t at)
{
	uint32_t *tok = must_malloc(n * sizeof(*tok));
	for (size_t i = 0; i < n; i++)
		tok[i] = first + (uint32_t)i;
	struct sim_req *r = NULL;
	struct sim_ask a = { .tok = tok, .n_tok = n, .max_new = max_new, .keep = true };
	assert_int_equal(sim_engine_add(e, &a, at, &r), ERR_OK);
	free(tok);
	return r;
}

static void run_dry(struct sim_engine *e)
{
	while (sim_engine_next(e) != SIM_NEVER)
		sim_engine_advance(e, sim_engine_next(e));
}

static void a_cold_prompt_takes_what_the_formula_says(void **state)
{
	(void)state;
	struct sim_engine *e = engine_of("qwen3-32b-h100-tp2", 0);
	struct sim_req *r = add(e, 0, 8192, 2, 1000);
	run_dry(e);
	/* a 25 ms, c0 1 ms, b 55 us, q 0.95 ns */
	double expect = 25e3 + 1e3 + 55.0 * 8192 + 0.95e-3 * 8192 * 8192;
	assert_in_range(sim_req_first_us(r), 1000 + (int64_t)expect - 2, 1000 + (int64_t)expect + 2);
	/* one decode: c0 + w + k*L + r */
	double decode = 1e3 + 9.8e3 + 0.062 * 8192 + 30;
	int64_t gap = sim_req_end_us(r) - sim_req_first_us(r);
	assert_in_range(gap, (int64_t)decode - 2, (int64_t)decode + 2);
	assert_int_equal(sim_req_cached_tok(r), 0);
	assert_int_equal(sim_req_created_tok(r), 8192);
	sim_req_free(r);
	sim_engine_free(e);
}

static void a_warm_prompt_answers_sooner(void **state)
{
	(void)state;
	struct sim_engine *e = engine_of("qwen3-32b-h100-tp2", 0);
	struct sim_req *cold = add(e, 0, 6000, 1, 0);
	run_dry(e);
	int64_t t = sim_engine_time(e);
	struct sim_req *warm = add(e, 0, 6000, 1, t);
	run_dry(e);
	assert_int_equal(sim_req_cached_tok(warm), 5984);
	assert_true((sim_req_first_us(warm) - t) * 5 < sim_req_first_us(cold));
	struct sim_engine_stats s = sim_engine_stats(e);
	assert_int_equal(s.query_tok, 12000);
	assert_int_equal(s.hit_tok, 5984);
	assert_int_equal(s.used_blocks, 0);
	sim_req_free(cold);
	sim_req_free(warm);
	sim_engine_free(e);
}

static void equal_prompts_of_one_step_share_blocks(void **state)
{
	(void)state;
	struct sim_engine *e = engine_of("instant", 0);
	struct sim_req *a = add(e, 0, 180, 1, 0), *b = add(e, 0, 180, 1, 0);
	run_dry(e);
	assert_int_equal(sim_req_cached_tok(a), 0);
	assert_int_equal(sim_req_cached_tok(b), 176);
	sim_req_free(a);
	sim_req_free(b);
	sim_engine_free(e);
}

static void a_prompt_that_does_not_fit_waits(void **state)
{
	(void)state;
	struct sim_engine *e = engine_of("qwen3-32b-h100-tp2", 101); /* 1600 tokens */
	struct sim_req *a = add(e, 0, 1000, 20, 0), *b = add(e, 100000, 1000, 20, 0);
	sim_engine_advance(e, 26000);
	struct sim_engine_stats s = sim_engine_stats(e);
	assert_int_equal(s.running, 1);
	assert_int_equal(s.waiting, 1);
	run_dry(e);
	assert_true(sim_req_first_us(b) > sim_req_end_us(a));
	sim_req_free(a);
	sim_req_free(b);
	sim_engine_free(e);
}

/* A step of at most 8,192 tokens: who decodes comes first, then the prompt that is half computed, then who waits. */
static void decodes_then_running_prompts_then_waiting_ones(void **state)
{
	(void)state;
	struct sim_engine *e = engine_of("qwen3-32b-h100-tp2", 0);
	struct sim_req *talking = add(e, 0, 100, 6, 0); /* about three of them before the others are in */
	while (sim_req_first_us(talking) == SIM_NEVER)
		sim_engine_advance(e, sim_engine_next(e));
	struct sim_req *big = add(e, 50000, 30000, 1, sim_engine_time(e)), *small = add(e, 200000, 5000, 1, sim_engine_time(e) + 1);
	run_dry(e);
	assert_true(sim_req_end_us(talking) < sim_req_first_us(big));
	assert_true(sim_req_first_us(small) > sim_req_first_us(big));
	assert_true(sim_req_first_us(small) < sim_req_first_us(big) + 400000); /* the big one's last step had room for its beginning */
	sim_req_free(talking);
	sim_req_free(big);
	sim_req_free(small);
	sim_engine_free(e);
}

/* 20 blocks: ten and a half hold a prompt, another takes 15, so five of the first are left: its beginning. */
static void the_tail_of_a_request_is_reused_first(void **state)
{
	(void)state;
	struct sim_engine *e = engine_of("qwen3-32b-h100-tp2", 21);
	struct sim_req *r[3];
	for (int i = 0; i < 3; i++) {
		r[i] = add(e, i == 1 ? 9000 : 0, i == 1 ? 15 * 16 : 10 * 16 + 1, 1, sim_engine_time(e));
		run_dry(e);
	}
	assert_int_equal(sim_req_cached_tok(r[2]), 5 * 16);
	for (int i = 0; i < 3; i++)
		sim_req_free(r[i]);
	sim_engine_free(e);
}

static void the_youngest_is_preempted_and_recomputed(void **state)
{
	(void)state;
	struct sim_engine *e = engine_of("qwen3-32b-h100-tp2", 101);
	struct sim_req *a = add(e, 0, 790, 200, 0), *b = add(e, 100000, 780, 200, 0);
	run_dry(e);
	struct sim_engine_stats s = sim_engine_stats(e);
	assert_true(s.preempted >= 1);
	assert_int_equal(sim_req_new_tok(a), 200);
	assert_int_equal(sim_req_new_tok(b), 200);
	assert_true(sim_req_end_us(a) < sim_req_end_us(b));
	assert_int_equal(sim_req_cached_tok(b), 0); /* the first scheduling counts */
	assert_int_equal(s.used_blocks, 0);
	assert_int_equal(s.generated_tok, 400);
	sim_req_free(a);
	sim_req_free(b);
	sim_engine_free(e);
}

static void an_abort_frees_at_once(void **state)
{
	(void)state;
	struct sim_engine *e = engine_of("qwen3-32b-h100-tp2", 0);
	struct sim_req *a = add(e, 0, 4000, 100, 0), *w = add(e, 50000, 100, 1, 0);
	sim_engine_advance(e, 30000);
	assert_true(sim_engine_stats(e).used_blocks > 0);
	sim_engine_abort(e, a);
	sim_engine_abort(e, w);
	struct sim_engine_stats s = sim_engine_stats(e);
	assert_int_equal(s.used_blocks, 0);
	assert_int_equal(s.running + s.waiting, 0);
	assert_int_equal(s.aborted, 2);
	run_dry(e);
	sim_engine_free(e);
}

static void limits_are_errors(void **state)
{
	(void)state;
	struct sim_engine *e = engine_of("qwen3-32b-h100-tp2", 101);
	assert_int_equal(sim_engine_max_model_tok(e), 1600);
	uint32_t tok[1600] = { 0 };
	struct sim_req *r = NULL;
	assert_int_equal(sim_engine_add(e, &(struct sim_ask){ .tok = tok, .n_tok = 1600, .max_new = 1 }, 0, &r), ERR_RANGE);
	assert_int_equal(sim_engine_add(e, &(struct sim_ask){ .tok = tok, .n_tok = 0, .max_new = 1 }, 0, &r), ERR_RANGE);
	assert_int_equal(sim_engine_add(e, &(struct sim_ask){ .tok = tok, .n_tok = 5, .max_new = 0 }, 0, &r), ERR_RANGE);
	sim_engine_free(e);
}

struct seen {
	size_t batches, stored, cleared_first, tokens, lasts;
};

static void see_batch(void *arg, const struct sim_batch *b)
{
	struct seen *s = arg;
	s->batches++;
	for (size_t i = 0; i < b->ev.n; i++)
		s->stored += b->ev.p[i].kind == SIM_STORED;
	s->cleared_first += b->ev.p[0].kind == SIM_CLEARED;
}

static void see_token(void *arg, struct sim_req *r, uint32_t tok, bool last)
{
	struct seen *s = arg;
	(void)r;
	(void)tok;
	s->tokens++;
	s->lasts += last;
}

static void a_clear_leads_the_next_steps_batch(void **state)
{
	(void)state;
	static const struct sim_engine_ops ops = { .on_batch = see_batch, .on_token = see_token };
	struct seen seen = { 0 };
	struct sim_engine_opts o = { .profile = sim_profile_find(STR("instant")), .ops = &ops, .arg = &seen };
	struct sim_engine *e = sim_engine_new(&o);
	struct sim_req *a = add(e, 0, 100, 3, 0);
	run_dry(e);
	assert_int_equal(seen.tokens, 3);
	assert_int_equal(seen.lasts, 1);
	assert_int_equal(seen.batches, 1);
	assert_true(sim_engine_reset_cache(e));
	run_dry(e);
	assert_int_equal(seen.batches, 1); /* an idle engine says nothing */
	struct sim_req *b = add(e, 0, 100, 1, 0);
	run_dry(e);
	assert_int_equal(sim_req_cached_tok(b), 0);
	assert_int_equal(seen.batches, 2);
	assert_int_equal(seen.cleared_first, 1);
	sim_req_free(a);
	sim_req_free(b);
	sim_engine_free(e);
}

static void same_seed_same_history(void **state)
{
	(void)state;
	int64_t end[2];
	for (int k = 0; k < 2; k++) {
		struct sim_engine_opts o = { .profile = sim_profile_find(STR("llama-8b-h100")), .jitter = 0.05, .seed = 9 };
		struct sim_engine *e = sim_engine_new(&o);
		struct sim_req *r[30];
		for (uint32_t i = 0; i < 30; i++)
			r[i] = add(e, i % 5 * 10000, 2000 + i, 50, i * 5000);
		run_dry(e);
		end[k] = sim_engine_time(e);
		for (uint32_t i = 0; i < 30; i++)
			sim_req_free(r[i]);
		sim_engine_free(e);
	}
	assert_int_equal(end[0], end[1]);
}

/* Mean of a shared-prefix load near saturation: the place of the knee (8192-token prefill, 15.2k tokens a second). */
static void prefill_rate_is_the_tables(void **state)
{
	(void)state;
	struct sim_engine *e = engine_of("qwen3-32b-h100-tp2", 0);
	struct sim_req *r[20];
	for (uint32_t i = 0; i < 20; i++)
		r[i] = add(e, i * 20000, 8192, 1, 0);
	run_dry(e);
	double rate = 20 * 8192.0 / ((double)sim_engine_time(e) * 1e-6);
	assert_true(rate > 14.5e3 && rate < 16.0e3);
	for (uint32_t i = 0; i < 20; i++)
		sim_req_free(r[i]);
	sim_engine_free(e);
}

static void mamba_chunks_end_where_a_state_is_kept(void **state)
{
	(void)state;
	struct sim_engine_opts o = { .profile = sim_profile_find(STR("llama-8b-h100")) };
	o.cache =
		(struct sim_cache_opts){ .blocks = 1000, .block_tok = 256, .n_groups = 2, .groups = { { SIM_MAMBA, 0 }, { SIM_FULL, 0 } } };
	struct sim_engine *e = sim_engine_new(&o);
	struct sim_req *a = add(e, 0, 1100, 4, 0);
	run_dry(e);
	struct sim_req *b = add(e, 0, 1100, 4, sim_engine_time(e));
	run_dry(e);
	assert_int_equal(sim_req_cached_tok(b), 1024);
	sim_req_free(a);
	sim_req_free(b);
	assert_int_equal(sim_engine_stats(e).used_blocks, 0);
	sim_engine_free(e);
}

/* What a reader of the events believes: copies per (group, hash). */
struct reader {
	struct map copies;
	uint64_t total;
};

static void read_batch(void *arg, const struct sim_batch *b)
{
	struct reader *r = arg;
	for (size_t i = 0; i < b->ev.n; i++) {
		const struct sim_event *v = &b->ev.p[i];
		for (size_t h = 0; h < v->n_hashes; h++) {
			uint64_t key = v->hashes[h] + v->group * 0x9e3779b97f4a7c15u, n = 0;
			(void)map_get(&r->copies, key, &n);
			if (v->kind == SIM_REMOVED)
				assert_true(n > 0);
			n = v->kind == SIM_STORED ? n + 1 : n - 1;
			r->total = v->kind == SIM_STORED ? r->total + 1 : r->total - 1;
			map_put(&r->copies, key, n);
		}
	}
}

/* Random work with clients that leave, on caches too small for it: the events say exactly what is held, no block is
 * left in use, every request ends once. */
static void random_load(const struct sim_cache_opts *cache, uint64_t seed)
{
	static const struct sim_engine_ops ops = { .on_batch = read_batch };
	struct reader reader = { 0 };
	struct rand rand = { seed };
	struct sim_engine_opts o = { .profile = sim_profile_find(STR("llama-8b-h100")),
		.cache = *cache,
		.budget_tok = 512,
		.max_seqs = 12,
		.max_model_tok = 3000,
		.jitter = 0.05,
		.seed = seed,
		.ops = &ops,
		.arg = &reader };
	struct sim_engine *e = sim_engine_new(&o);
	struct sim_req *open[400] = { 0 };
	uint32_t tok[1200];
	map_init(&reader.copies);
	for (size_t i = 0; i < ARRAY_LEN(open); i++) {
		size_t n = 1 + rand_below(&rand, ARRAY_LEN(tok) - 1), shared = rand_below(&rand, n);
		uint32_t family = (uint32_t)rand_below(&rand, 4) * 100000;
		for (size_t k = 0; k < n; k++)
			tok[k] = k < shared ? family + (uint32_t)k : (uint32_t)rand_u64(&rand);
		struct sim_ask a = { .tok = tok, .n_tok = n, .max_new = 1 + (uint32_t)rand_below(&rand, 150), .keep = true };
		assert_int_equal(sim_engine_add(e, &a, sim_engine_time(e), &open[i]), ERR_OK);
		for (size_t steps = rand_below(&rand, 30); steps && sim_engine_next(e) != SIM_NEVER; steps--)
			sim_engine_advance(e, sim_engine_next(e));
		size_t victim = i - rand_below(&rand, MIN(i + 1, 8)); /* one of the last */
		if (rand_below(&rand, 5) == 0 && open[victim] && sim_req_end_us(open[victim]) == SIM_NEVER) {
			sim_engine_abort(e, open[victim]);
			open[victim] = NULL;
		}
	}
	run_dry(e);
	struct sim_engine_stats s = sim_engine_stats(e);
	assert_int_equal(s.begun, ARRAY_LEN(open));
	assert_int_equal(s.ended + s.aborted, s.begun);
	assert_int_equal(s.used_blocks + s.running + s.waiting, 0);
	assert_int_equal(s.held_blocks, reader.total);
	assert_true(s.hit_tok > 0 && s.aborted > 10 && s.held_blocks > 0);
	for (size_t i = 0; i < ARRAY_LEN(open); i++)
		sim_req_free(open[i]);
	map_done(&reader.copies);
	sim_engine_free(e);
}

static void events_say_exactly_what_is_held(void **state)
{
	(void)state;
	const struct sim_group full = { SIM_FULL, 0 }, window = { SIM_WINDOW, 200 }, mamba = { SIM_MAMBA, 0 };
	const struct sim_cache_opts caches[] = {
		{ .blocks = 300, .block_tok = 16 },
		{ .blocks = 500, .block_tok = 16, .n_groups = 3, .groups = { window, window, full } },
		{ .blocks = 400, .block_tok = 16, .n_groups = 2, .groups = { mamba, full } },
		{ .blocks = 400, .block_tok = 16, .n_groups = 3, .groups = { mamba, window, full }, .retain_tok = 64 },
		{ .blocks = 500, .block_tok = 16, .n_groups = 2, .groups = { window, full }, .retain_tok = SIM_RETAIN_ALL },
	};
	for (size_t c = 0; c < ARRAY_LEN(caches); c++)
		for (uint64_t seed = 1; seed <= 3; seed++)
			random_load(&caches[c], seed);
}

static struct sim_engine *tiered(const char *profile, uint32_t blocks, uint32_t cpu_blocks)
{
	struct sim_engine_opts o = { .profile = sim_profile_find(str_of(profile)), .cache = { .blocks = blocks, .cpu_blocks = cpu_blocks } };
	return sim_engine_new(&o);
}

static void a_load_from_below_takes_its_time_and_counts_as_cached(void **state)
{
	(void)state;
	struct sim_engine *e = tiered("qwen3-32b-h100-tp2", 401, 2000);
	struct sim_req *first = add(e, 0, 6000, 1, 0), *other = add(e, 100000, 6000, 1, 2000000);
	run_dry(e);
	struct sim_req *again = add(e, 0, 6000, 1, 4000000);
	run_dry(e);
	assert_int_equal(sim_req_cached_tok(other), 0);
	assert_int_equal(sim_req_cached_tok(again), 6000);
	assert_int_equal(sim_req_created_tok(again), 0);
	assert_int_equal(sim_engine_stats(e).load_tok, 6000 - sim_engine_stats(e).hit_tok);
	assert_int_equal(sim_engine_stats(e).cpu_blocks, 750);
	/* a, the load at 20 GB/s, a step of one token; a cold one takes over 360 ms */
	double load = (double)sim_engine_stats(e).load_tok * 131072 / 20e3, step = 1e3 + 9.8e3 + 0.95e-3 * (2 * 5999 + 1);
	assert_in_range(sim_req_first_us(again) - 4000000, (int64_t)(25e3 + load + step) - 3, (int64_t)(25e3 + load + step) + 3);
	sim_req_free(first);
	sim_req_free(other);
	sim_req_free(again);
	sim_engine_free(e);
}

static void a_remote_prefill_computes_one_token(void **state)
{
	(void)state;
	struct sim_engine *e = engine_of("qwen3-32b-h100-tp2", 0);
	uint32_t tok[1000];
	for (uint32_t i = 0; i < 1000; i++)
		tok[i] = i;
	struct sim_req *r = NULL;
	struct sim_ask a = { .tok = tok, .n_tok = 1000, .max_new = 1, .keep = true, .remote_prefill = true };
	assert_int_equal(sim_engine_add(e, &a, 0, &r), ERR_OK);
	run_dry(e);
	assert_int_equal(sim_req_cached_tok(r), 1000);
	assert_true(sim_req_first_us(r) < 25e3 + 13e3);
	a.remote_prefill = false;
	assert_int_equal(sim_engine_would_hit(e, &a), 992); /* its blocks are stored */
	sim_req_free(r);
	sim_engine_free(e);
}

/* Loads, preemptions and aborts on a cache that is always too small: all end, nothing stays taken. */
static void a_crowded_tiered_engine_ends_all(void **state)
{
	(void)state;
	struct rand r = { 5 };
	struct sim_engine *e = tiered("llama-8b-h100", 60, 120);
	for (int round = 0; round < 40; round++) {
		struct sim_req *q[12];
		for (size_t i = 0; i < 12; i++)
			q[i] = add(e, 10000 * (uint32_t)rand_below(&r, 4), 100 + rand_below(&r, 600), 1 + (uint32_t)rand_below(&r, 60), sim_engine_time(e));
		for (int i = 0; i < 20 && sim_engine_next(e) != SIM_NEVER; i++)
			sim_engine_advance(e, sim_engine_next(e));
		for (size_t i = 0; i < 12; i += 3)
			if (sim_req_end_us(q[i]) == SIM_NEVER) {
				sim_engine_abort(e, q[i]);
				q[i] = NULL;
			}
		run_dry(e);
		for (size_t i = 0; i < 12; i++) {
			assert_true(!q[i] || sim_req_end_us(q[i]) != SIM_NEVER);
			sim_req_free(q[i]);
		}
		struct sim_engine_stats s = sim_engine_stats(e);
		assert_int_equal(s.used_blocks + s.running + s.waiting, 0);
	}
	assert_true(sim_engine_stats(e).load_tok > 0);
	assert_true(sim_engine_stats(e).preempted > 0);
	sim_engine_free(e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cold_prompt_takes_what_the_formula_says),
		cmocka_unit_test(a_warm_prompt_answers_sooner),
		cmocka_unit_test(equal_prompts_of_one_step_share_blocks),
		cmocka_unit_test(a_prompt_that_does_not_fit_waits),
		cmocka_unit_test(decodes_then_running_prompts_then_waiting_ones),
		cmocka_unit_test(the_tail_of_a_request_is_reused_first),
		cmocka_unit_test(the_youngest_is_preempted_and_recomputed),
		cmocka_unit_test(an_abort_frees_at_once),
		cmocka_unit_test(limits_are_errors),
		cmocka_unit_test(a_clear_leads_the_next_steps_batch),
		cmocka_unit_test(same_seed_same_history),
		cmocka_unit_test(prefill_rate_is_the_tables),
		cmocka_unit_test(events_say_exactly_what_is_held),
		cmocka_unit_test(mamba_chunks_end_where_a_state_is_kept),
		cmocka_unit_test(a_load_from_below_takes_its_time_and_counts_as_cached),
		cmocka_unit_test(a_remote_prefill_computes_one_token),
		cmocka_unit_test(a_crowded_tiered_engine_ends_all),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
