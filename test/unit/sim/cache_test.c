#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sim/cache.h"

enum { B = 32 };

static struct sim_cache *cache;

static void make_cache(struct sim_cache_opts o)
{
	o.block_tok = B;
	o.blocks = o.blocks ? o.blocks : 2000;
	o.chunk_tok = 8192;
	cache = sim_cache_new(&o);
}

static void make_gemma(void)
{
	struct sim_group w = { SIM_WINDOW, 512 };
	make_cache((struct sim_cache_opts){ .n_groups = 3, .groups = { w, w, { SIM_FULL, 0 } } });
}

static int teardown(void **state)
{
	(void)state;
	sim_cache_free(cache);
	return 0;
}

/* n tokens, the first `shared` of them equal for all, the rest told apart by `salt`. */
static void fill(uint32_t *tok, size_t n, size_t shared, uint32_t salt)
{
	for (size_t i = 0; i < n; i++)
		tok[i] = (uint32_t)(i < shared ? i : i + 1000000 * salt);
}

/* Runs a prompt to its end, with `more` generated tokens whose KV is computed; returns what it found. */
static uint32_t run_as(const struct sim_identity *id, const uint32_t *tok, size_t n, size_t more)
{
	struct sim_seq s;
	sim_seq_init(&s, id, tok, n);
	uint32_t hit = sim_cache_match(cache, &s), upto = (uint32_t)n;
	assert_true(sim_cache_fits(cache, &s));
	sim_cache_attach(cache, &s);
	assert_true(sim_cache_grow(cache, &s, hit, upto));
	sim_cache_commit(cache, &s, upto);
	for (size_t i = 0; i < more; i++, upto++) {
		VEC_PUSH(&s.tok, (uint32_t)(5000000 + i));
		assert_true(sim_cache_grow(cache, &s, upto, upto + 1));
		sim_cache_commit(cache, &s, upto + 1);
	}
	sim_cache_release(cache, &s);
	sim_seq_done(&s);
	return hit;
}

static uint32_t run(const uint32_t *tok, size_t n) { return run_as(&(struct sim_identity){ 0 }, tok, n, 0); }

static void last_token_is_always_computed(void **state)
{
	(void)state;
	make_cache((struct sim_cache_opts){ 0 });
	uint32_t tok[65];
	fill(tok, 65, 65, 0);
	assert_int_equal(run(tok, 64), 0);
	assert_int_equal(run(tok, 64), 32);
	assert_int_equal(run(tok, 65), 64);
	/* the second block was stored twice: two copies are held */
	assert_int_equal(sim_pool_held(sim_cache_pool(cache)), 3);
}

static void generated_tokens_are_cached(void **state)
{
	(void)state;
	make_cache((struct sim_cache_opts){ 0 });
	uint32_t tok[200];
	fill(tok, 60, 60, 0);
	assert_int_equal(run_as(&(struct sim_identity){ 0 }, tok, 60, 40), 0);
	for (uint32_t i = 0; i < 40; i++)
		tok[60 + i] = 5000000 + i;
	tok[100] = 1;
	assert_int_equal(run(tok, 101), 96);
}

static void identity_tells_blocks_apart(void **state)
{
	(void)state;
	make_cache((struct sim_cache_opts){ 0 });
	uint32_t tok[100];
	fill(tok, 100, 100, 0);
	struct sim_identity salted = { .salt = STR("s") }, lora = { .lora = STR("a"), .lora_path = STR("/p"), .lora_id = 1 };
	struct sim_identity other = { .lora = STR("a"), .lora_path = STR("/q"), .lora_id = 2 };
	assert_int_equal(run(tok, 100), 0);
	assert_int_equal(run_as(&salted, tok, 100, 0), 0);
	assert_int_equal(run_as(&lora, tok, 100, 0), 0);
	assert_int_equal(run_as(&other, tok, 100, 0), 0);
	assert_int_equal(run_as(&salted, tok, 100, 0), 96);
	assert_int_equal(run_as(&lora, tok, 100, 0), 96);
	struct sim_mm image = { STR("ff"), 40, 16 }, same = { STR("ff"), 41, 16 };
	assert_int_equal(run_as(&(struct sim_identity){ .mm = &image, .n_mm = 1 }, tok, 100, 0), 32);
	assert_int_equal(run_as(&(struct sim_identity){ .mm = &image, .n_mm = 1 }, tok, 100, 0), 96);
	assert_int_equal(run_as(&(struct sim_identity){ .mm = &same, .n_mm = 1 }, tok, 100, 0), 32);
}

static void events_carry_extra_keys_and_parents(void **state)
{
	(void)state;
	make_cache((struct sim_cache_opts){ 0 });
	uint32_t tok[100];
	fill(tok, 100, 100, 0);
	struct sim_mm image = { STR("ff"), 20, 30 };
	struct sim_identity id = { .salt = STR("s"), .lora = STR("a"), .lora_id = 3, .mm = &image, .n_mm = 1 };
	run_as(&id, tok, 100, 0);
	const struct sim_event *v = &sim_cache_batch(cache)->ev.p[0];
	assert_int_equal(v->kind, SIM_STORED);
	assert_int_equal(v->n_hashes, 3);
	assert_int_equal(v->n_tok, 96);
	assert_false(v->has_parent);
	assert_int_equal(v->lora_id, 3);
	assert_int_equal(v->extra[0].mm[0].offset, 20);
	assert_int_equal(v->extra[1].mm[0].offset, -12);
	assert_int_equal(v->extra[2].n_mm, 0);
	assert_int_equal(v->extra[0].salt.n, 1);
	assert_int_equal(v->extra[1].salt.n, 0);
	assert_int_equal(v->extra[2].lora.n, 1);
	uint64_t last = v->hashes[2];
	sim_batch_clear(sim_cache_batch(cache));
	fill(tok, 100, 96, 1);
	uint32_t more[140];
	fill(more, 140, 140, 0);
	run_as(&id, more, 140, 0);
	v = &sim_cache_batch(cache)->ev.p[0];
	assert_true(v->has_parent);
	assert_int_equal(v->parent, last);
	assert_int_equal(v->n_hashes, 1);
}

/* The numbers of a real worker (recording hybrid-gemma3): window 512, block 32, 768 tokens. */
static void window_groups_store_only_the_tail(void **state)
{
	(void)state;
	make_gemma();
	uint32_t tok[800];
	fill(tok, 769, 769, 0);
	run_as(&(struct sim_identity){ 0 }, tok, 769, 40);
	struct sim_batch *b = sim_cache_batch(cache);
	assert_int_equal(b->ev.p[0].spec, SIM_WINDOW);
	assert_int_equal(b->ev.p[0].n_hashes, 16);
	assert_int_equal(b->ev.p[0].n_tok, 768);
	assert_int_equal(b->ev.p[2].spec, SIM_FULL);
	assert_int_equal(b->ev.p[2].n_hashes, 24);
	assert_int_equal(b->ev.p[3].n_hashes, 0); /* a generated block: the windows name none */
	assert_int_equal(b->ev.p[3].n_tok, 32);
	assert_int_equal(b->ev.p[5].n_hashes, 1);
	assert_int_equal(run(tok, 769), 768);
}

static void new_question_on_a_long_document_misses_once(void **state)
{
	(void)state;
	make_gemma();
	uint32_t tok[800];
	fill(tok, 769, 740, 1);
	assert_int_equal(run(tok, 769), 0);
	fill(tok, 769, 740, 2);
	assert_int_equal(run(tok, 769), 0); /* full attention holds 736, the windows end elsewhere */
	sim_batch_clear(sim_cache_batch(cache));
	fill(tok, 769, 740, 3);
	assert_int_equal(run(tok, 769), 736); /* the junction was stored by the second */
}

static void mamba_hits_only_where_a_state_was_kept(void **state)
{
	(void)state;
	make_cache((struct sim_cache_opts){ .n_groups = 2, .groups = { { SIM_MAMBA, 0 }, { SIM_FULL, 0 } } });
	uint32_t tok[200];
	fill(tok, 129, 129, 0);
	assert_int_equal(run(tok, 128 + 1), 0); /* one chunk that ends off a boundary: no state */
	assert_int_equal(run(tok, 129), 0);
	struct sim_seq s;
	sim_seq_init(&s, &(struct sim_identity){ 0 }, tok, 129);
	(void)sim_cache_match(cache, &s);
	sim_cache_attach(cache, &s);
	assert_true(sim_cache_grow(cache, &s, 0, 128));
	sim_cache_commit(cache, &s, 128);
	assert_true(sim_cache_grow(cache, &s, 128, 129));
	sim_cache_commit(cache, &s, 129);
	sim_cache_release(cache, &s);
	sim_seq_done(&s);
	assert_int_equal(run(tok, 129), 128);
	assert_int_equal(run(tok, 100), 0);
}

static void blocks_return_to_the_pool(void **state)
{
	(void)state;
	make_gemma();
	struct sim_pool *p = sim_cache_pool(cache);
	uint32_t tok[3000];
	for (uint32_t i = 0; i < 20; i++) {
		fill(tok, 3000, 1000, i);
		run_as(&(struct sim_identity){ 0 }, tok, 3000, 100);
	}
	assert_int_equal(sim_pool_free_blocks(p), sim_pool_size(p));
}

static void what_the_gpu_lost_is_found_below(void **state)
{
	(void)state;
	make_cache((struct sim_cache_opts){ .blocks = 16, .cpu_blocks = 30 });
	uint32_t tok[10 * B];
	struct sim_seq s;
	for (uint32_t k = 1; k <= 3; k++) {
		fill(tok, 10 * B, 0, k);
		assert_int_equal(run(tok, 10 * B), 0);
	}
	assert_int_equal(sim_cache_below_blocks(cache), 30);
	fill(tok, 10 * B, 0, 2);
	sim_seq_init(&s, &(struct sim_identity){ 0 }, tok, 10 * B);
	uint32_t hit = sim_cache_match(cache, &s);
	assert_true(hit < 9 * B);
	assert_int_equal(hit + sim_cache_match_below(cache, &s), 10 * B); /* to the last token, other than on the GPU */
	sim_seq_done(&s);
	fill(tok, 10 * B, 0, 4); /* the least recently used of the tier goes, whole */
	assert_int_equal(run(tok, 10 * B), 0);
	fill(tok, 10 * B, 0, 1);
	sim_seq_init(&s, &(struct sim_identity){ 0 }, tok, 10 * B);
	assert_int_equal(sim_cache_match(cache, &s) + sim_cache_match_below(cache, &s), 0);
	sim_seq_done(&s);
	assert_int_equal(sim_cache_below_blocks(cache), 30);
}

/* Behind the GPU's events of a step, whatever was evicted for it; hashes alone or all there is to say. */
static void the_tier_below_has_events_of_its_own(void **state)
{
	(void)state;
	for (int full = 0; full < 2; full++) {
		make_cache((struct sim_cache_opts){ .blocks = 4, .cpu_blocks = 3, .cpu_events_full = full });
		uint32_t tok[2 * B];
		fill(tok, 2 * B, 0, 1);
		(void)run(tok, 2 * B);
		sim_batch_clear(sim_cache_batch(cache));
		fill(tok, 2 * B, 0, 2);
		(void)run(tok, 2 * B);
		const struct sim_batch *b = sim_cache_batch(cache);
		const enum sim_event_kind kinds[] = { SIM_REMOVED, SIM_STORED, SIM_STORED, SIM_REMOVED, SIM_STORED };
		assert_int_equal(b->ev.n, 5);
		for (size_t i = 0; i < 5; i++) {
			const struct sim_event *v = &b->ev.p[i];
			bool below = i >= 2;
			assert_int_equal(v->kind, kinds[i]);
			assert_int_equal(v->medium, below ? SIM_CPU : SIM_GPU);
			assert_int_equal(v->bare, below && !full && v->kind == SIM_STORED);
			assert_int_equal(v->n_tok, v->kind == SIM_REMOVED || v->bare ? 0 : below ? B : 2 * B);
		}
		assert_int_equal(b->ev.p[4].has_parent, full);
		if (!full)
			sim_cache_free(cache);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(last_token_is_always_computed, teardown),
		cmocka_unit_test_teardown(generated_tokens_are_cached, teardown),
		cmocka_unit_test_teardown(identity_tells_blocks_apart, teardown),
		cmocka_unit_test_teardown(events_carry_extra_keys_and_parents, teardown),
		cmocka_unit_test_teardown(window_groups_store_only_the_tail, teardown),
		cmocka_unit_test_teardown(new_question_on_a_long_document_misses_once, teardown),
		cmocka_unit_test_teardown(mamba_hits_only_where_a_state_was_kept, teardown),
		cmocka_unit_test_teardown(blocks_return_to_the_pool, teardown),
		cmocka_unit_test_teardown(what_the_gpu_lost_is_found_below, teardown),
		cmocka_unit_test_teardown(the_tier_below_has_events_of_its_own, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
