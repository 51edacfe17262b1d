/* What batches do to a rank's view: copies, groups, placing, limits. The sequence rules are in sequence_test.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "kit.h"

static void stored_and_removed(void **state)
{
	(void)state;
	struct kit k;
	kit_init(&k);
	kit_store(&k, 1, 0, 3, 16);
	assert_int_equal(kit_send(&k, 0), KV_ACT_NONE);
	for (uint32_t i = 0; i < 3; i++)
		assert_true(kit_holds(&k, kit_key(&k, 1, i, 16), 0));
	kit_store(&k, 1, 3, 2, 16);            /* a continuation is keyed behind its parent */
	kit_remove(&k, 1, 1);
	kit_send(&k, 1);
	assert_true(kit_holds(&k, kit_key(&k, 1, 4, 16), 0));
	assert_false(kit_holds(&k, kit_key(&k, 1, 1, 16), 0));
	assert_int_equal(k.held.n, 4);
	assert_int_equal(k.n_groups, 1);
	assert_int_equal(k.groups[0].block_size, 16);
	assert_int_equal(k.wrong, 0);
	kit_done(&k);
}

/* vLLM holds equal blocks twice and announces each eviction. */
static void case_vllm_two_copies(void **state)
{
	(void)state;
	struct kit k;
	kit_init(&k);
	kit_store(&k, 1, 0, 2, 16);
	kit_send(&k, 0);
	kit_store(&k, 1, 1, 1, 16);
	kit_send(&k, 1);
	kit_remove(&k, 1, 1);
	kit_send(&k, 2);
	assert_true(kit_holds(&k, kit_key(&k, 1, 1, 16), 0));
	kit_remove(&k, 1, 1);
	kit_remove(&k, 1, 1);                  /* one too many is nothing */
	kit_send(&k, 3);
	assert_false(kit_holds(&k, kit_key(&k, 1, 1, 16), 0));
	assert_int_equal(kv_rank_stats(k.r).blocks, 1);
	assert_int_equal(k.wrong, 0);
	kit_done(&k);
}

static void case_router_31_all_blocks_cleared(void **state)
{
	(void)state;
	struct kit k;
	kit_init(&k);
	kit_store(&k, 1, 0, 3, 16);
	kit_send(&k, 0);
	kit_clear(&k);                         /* leads the batch of the next step */
	kit_store(&k, 2, 0, 1, 16);
	kit_send(&k, 1);
	assert_int_equal(k.clears, 1);
	assert_int_equal(k.held.n, 1);
	assert_true(kit_holds(&k, kit_key(&k, 2, 0, 16), 0));
	assert_int_equal(kv_rank_stats(k.r).blocks, 1);
	kit_remove(&k, 1, 0);
	kit_send(&k, 2);
	assert_int_equal(k.wrong, 0);
	kit_done(&k);
}

/* Sparse groups name fewer hashes than tokens; what places them comes later in the batch. */
static void case_llm_d_router_2362_hybrid_groups(void **state)
{
	(void)state;
	struct kit k;
	kit_init(&k);
	struct kv_event *e = kit_store(&k, 1, 0, 8, 16);       /* only the last two blocks of eight */
	e->group = 0;
	e->kind = KV_GROUP_WINDOW;
	e->window_tok = 32;
	e->hashes += 6;
	e->n_hashes = 2;
	e->extras = NULL;
	e = kit_store(&k, 1, 0, 8, 16);
	e->group = 1;
	kit_send(&k, 0);
	assert_int_equal(k.held.n, 10);
	assert_true(kit_holds(&k, kit_key(&k, 1, 7, 16), 0));
	assert_false(kit_holds(&k, kit_key(&k, 1, 5, 16), 0));
	assert_int_equal(k.groups[0].kind, KV_GROUP_WINDOW);
	assert_int_equal(k.groups[0].window_tok, 32);
	assert_int_equal(kv_rank_stats(k.r).unplaced, 0);
	/* Later alone: the full group still holds the hash, so it can be placed. */
	e = kit_store(&k, 1, 0, 8, 16);
	e->group = 0;
	e->kind = KV_GROUP_WINDOW;
	e->hashes += 3;
	e->n_hashes = 1;
	kit_send(&k, 1);
	assert_true(kit_holds(&k, kit_key(&k, 1, 3, 16), 0));
	/* No hashes at all is allowed. */
	e = kit_store(&k, 2, 0, 4, 16);
	e->group = 0;
	e->n_hashes = 0;
	kit_send(&k, 2);
	assert_int_equal(kv_rank_stats(k.r).unplaced, 0);
	assert_int_equal(k.wrong, 0);
	kit_done(&k);
}

static void a_lost_parent_never_invents_a_chain(void **state)
{
	(void)state;
	struct kit k;
	kit_init(&k);
	kit_store(&k, 1, 0, 1, 16);
	kit_store(&k, 1, 5, 3, 16);            /* blocks 1 to 4 were never announced */
	kit_send(&k, 0);
	assert_int_equal(k.held.n, 1);
	assert_int_equal(kv_rank_stats(k.r).unplaced, 3);
	kit_done(&k);
}

static void a_removal_without_a_group_counts_for_all(void **state)
{
	(void)state;
	struct kit k;
	kit_init(&k);
	kit_store(&k, 1, 0, 2, 16);
	kit_store(&k, 1, 0, 2, 16)->group = 3;
	kit_send(&k, 0);
	assert_int_equal(k.held.n, 4);
	kit_remove(&k, 1, 1)->group_known = false;
	kit_send(&k, 1);
	assert_int_equal(k.held.n, 2);
	kit_remove(&k, 1, 0)->group = 3;
	kit_send(&k, 2);
	assert_true(kit_holds(&k, kit_key(&k, 1, 0, 16), 0));
	assert_int_equal(k.held.n, 1);
	kit_done(&k);
}

/* A tail of a smaller unit names a parent nobody announced; it neither becomes a block nor changes the group. */
static void a_partial_tail_is_not_a_block(void **state)
{
	(void)state;
	struct kit k;
	kit_init(&k);
	kit_store(&k, 1, 0, 2, 64);
	kit_send(&k, 0);
	struct kv_event *e = kit_store(&k, 9, 3, 1, 16);
	e->kind = KV_GROUP_MAMBA;
	kit_send(&k, 1);
	assert_int_equal(k.held.n, 2);
	assert_int_equal(k.groups[0].block_size, 64);
	assert_int_equal(k.groups[0].kind, KV_GROUP_FULL);
	assert_int_equal(kv_rank_stats(k.r).unplaced, 1);
	kit_done(&k);
}

/* Different block sizes in one worker: the larger group's block is the chain's state at its end. */
static void groups_of_several_block_sizes_share_one_chain(void **state)
{
	(void)state;
	struct kit k;
	kit_init(&k);
	uint64_t *hash = arena_new(&k.a, uint64_t, 1);
	struct kv_event *e = kit_store(&k, 1, 0, 2, 64);       /* 128 tokens; its hashes are those of fine blocks 3 and 7 */
	e->group = 0;
	e->kind = KV_GROUP_MAMBA;
	e->ids = kit_ids(&k, 1, 0, 8, 16);
	e->hashes = hash;
	e->n_hashes = 1;
	*hash = kit_hash(1, 7);
	kit_store(&k, 1, 0, 8, 16)->group = 1;
	kit_send(&k, 0);
	assert_true(kit_holds(&k, kit_key(&k, 1, 7, 16), 0));
	assert_true(kit_holds(&k, kit_key(&k, 1, 7, 16), 1));
	/* The coarse event alone, hashes and tokens in line: chained in the fine unit all the same. */
	e = kit_store(&k, 2, 0, 2, 64);
	e->group = 0;
	e->kind = KV_GROUP_MAMBA;
	e->ids = kit_ids(&k, 2, 0, 8, 16);
	kit_send(&k, 1);
	assert_true(kit_holds(&k, kit_key(&k, 2, 3, 16), 0));
	assert_true(kit_holds(&k, kit_key(&k, 2, 7, 16), 0));
	assert_int_equal(k.wrong, 0);
	kit_done(&k);
}

/* An adapter loaded again over another path: other engine hashes, the same name and tokens, so one key of ours. */
static void two_engine_hashes_of_one_key_are_counted(void **state)
{
	(void)state;
	struct kit k;
	kit_init(&k);
	uint64_t other[] = { 111, 112 };
	kit_store(&k, 1, 0, 2, 16)->adapter = STR("a");
	kit_send(&k, 0);
	struct kv_event *e = kit_store(&k, 1, 0, 2, 16);
	e->adapter = STR("a");
	e->hashes = other;
	kit_send(&k, 1);
	assert_int_equal(k.held.n, 2);
	kit_remove(&k, 1, 0);
	kit_send(&k, 2);
	assert_int_equal(k.held.n, 2);
	uint64_t gone[] = { 111 };
	kit_remove(&k, 1, 0)->hashes = gone;
	kit_send(&k, 3);
	assert_int_equal(k.held.n, 1);
	assert_int_equal(k.wrong, 0);
	kit_done(&k);
}

/* Named by hash alone: found by whichever tier holds it, ignored and counted when none does. */
static void what_is_offloaded_is_found_by_its_hash(void **state)
{
	(void)state;
	struct kit k;
	kit_init(&k);
	kit_store(&k, 1, 0, 3, 16);
	kit_offload(&k, KV_TIER_CPU, 1, 0);
	kit_offload(&k, KV_TIER_CPU, 1, 1);
	kit_offload(&k, KV_TIER_CPU, 7, 0);    /* never heard of */
	kit_send(&k, 0);
	assert_true(kit_holds_on(&k, KV_TIER_CPU, kit_key(&k, 1, 1, 16), 0));
	assert_int_equal(kv_rank_stats(k.r).unplaced, 1);
	kit_remove(&k, 1, 1);                  /* from the GPU alone */
	kit_send(&k, 1);
	assert_false(kit_holds(&k, kit_key(&k, 1, 1, 16), 0));
	assert_true(kit_holds_on(&k, KV_TIER_CPU, kit_key(&k, 1, 1, 16), 0));
	kit_offload(&k, KV_TIER_STORAGE, 1, 1); /* the CPU's hash still says where it belongs */
	kit_send(&k, 2);
	kit_remove(&k, 1, 1)->tier = KV_TIER_CPU;
	kit_send(&k, 3);
	assert_false(kit_holds_on(&k, KV_TIER_CPU, kit_key(&k, 1, 1, 16), 0));
	assert_true(kit_holds_on(&k, KV_TIER_STORAGE, kit_key(&k, 1, 1, 16), 0));
	kit_store(&k, 1, 2, 1, 16);            /* and a parent that only storage holds places what follows it */
	kit_remove(&k, 1, 2);
	kit_store(&k, 1, 2, 1, 16);
	kit_send(&k, 4);
	assert_true(kit_holds(&k, kit_key(&k, 1, 2, 16), 0));
	assert_int_equal(kv_rank_stats(k.r).lower_blocks, 2);
	assert_int_equal(kv_rank_stats(k.r).unplaced, 1);
	assert_int_equal(k.wrong, 0);
	kit_done(&k);
}

/* A step's events of the GPU come first: the eviction before the news that the block lies on the CPU. */
static void evicted_and_offloaded_in_one_batch(void **state)
{
	(void)state;
	struct kit k;
	kit_init(&k);
	kit_store(&k, 1, 0, 2, 16);
	kit_send(&k, 0);
	kit_remove(&k, 1, 1);
	kit_offload(&k, KV_TIER_CPU, 1, 1);
	kit_send(&k, 1);
	assert_true(kit_holds_on(&k, KV_TIER_CPU, kit_key(&k, 1, 1, 16), 0));
	kit_remove(&k, 1, 0);
	kit_send(&k, 2);
	kit_offload(&k, KV_TIER_CPU, 1, 0);    /* a batch later nobody knows it any more */
	kit_send(&k, 3);
	assert_false(kit_holds_on(&k, KV_TIER_CPU, kit_key(&k, 1, 0, 16), 0));
	assert_int_equal(kv_rank_stats(k.r).unplaced, 1);
	kit_done(&k);
}

/* Chunks that overlap announce their common blocks once each. */
static void offloaded_copies_are_counted_by_tier(void **state)
{
	(void)state;
	struct kit k;
	kit_init(&k);
	kit_store(&k, 1, 0, 1, 16);
	for (int i = 0; i < 3; i++)
		kit_offload(&k, KV_TIER_CPU, 1, 0);
	kit_send(&k, 0);
	kit_remove(&k, 1, 0);
	kit_remove(&k, 1, 0);                  /* nothing on the GPU any more: no copy of the CPU's goes */
	kit_remove(&k, 1, 0)->tier = KV_TIER_CPU;
	kit_remove(&k, 1, 0)->tier = KV_TIER_CPU;
	kit_send(&k, 1);
	assert_true(kit_holds_on(&k, KV_TIER_CPU, kit_key(&k, 1, 0, 16), 0));
	kit_remove(&k, 1, 0)->tier = KV_TIER_CPU;
	kit_send(&k, 2);
	assert_int_equal(k.held.n, 0);
	assert_int_equal(k.wrong, 0);
	kit_done(&k);
}

/* The form that says all (self_describing_kv_events, SGLang): its tokens place it; a known hash goes first, as it leaves salts out. */
static void offloaded_blocks_that_describe_themselves(void **state)
{
	(void)state;
	struct kit k;
	kit_init(&k);
	struct kv_event *e = kit_store(&k, 2, 0, 1, 16);
	e->extras = &(struct kv_block_extras){ &(struct kv_extra){ KV_EXTRA_SALT, STR_INIT("s"), 0 }, 1 };
	kit_send(&k, 0);
	assert_false(kit_holds(&k, kit_key(&k, 2, 0, 16), 0));         /* the salt is in its key */
	kit_store(&k, 1, 0, 2, 16)->tier = KV_TIER_CPU;
	e = kit_store(&k, 2, 0, 1, 16);
	e->tier = KV_TIER_CPU;
	e->extras = NULL;
	kit_send(&k, 1);
	assert_true(kit_holds_on(&k, KV_TIER_CPU, kit_key(&k, 1, 1, 16), 0));
	assert_false(kit_holds_on(&k, KV_TIER_CPU, kit_key(&k, 2, 0, 16), 0));
	assert_int_equal(kv_rank_stats(k.r).lower_blocks, 3);
	assert_int_equal(kv_rank_stats(k.r).unplaced, 0);
	kit_done(&k);
}

/* A clear is of every tier, and so is a restart. */
static void tiers_are_cleared_together(void **state)
{
	(void)state;
	struct kit k;
	kit_init(&k);
	kit_store(&k, 1, 0, 2, 16);
	kit_offload(&k, KV_TIER_CPU, 1, 0);
	kit_offload(&k, KV_TIER_STORAGE, 1, 1);
	kit_send(&k, 0);
	kit_clear(&k);
	kit_send(&k, 1);
	assert_int_equal(k.held.n, 0);
	assert_int_equal(kv_rank_stats(k.r).lower_blocks, 0);
	kit_store(&k, 1, 0, 1, 16);
	kit_offload(&k, KV_TIER_CPU, 1, 0);
	kit_send(&k, 2);
	kit_store(&k, 3, 0, 1, 16);
	kit_send(&k, 0);                       /* begins anew */
	assert_int_equal(kv_rank_stats(k.r).restarts, 1);
	assert_int_equal(k.held.n, 1);
	assert_int_equal(kv_rank_stats(k.r).lower_blocks, 0);
	assert_int_equal(k.wrong, 0);
	kit_done(&k);
}

static void strange_tiers_and_groups_are_skipped(void **state)
{
	(void)state;
	struct kit k;
	kit_init(&k);
	kit_store(&k, 1, 0, 1, 16)->tier = KV_TIER_UNKNOWN;
	kit_store(&k, 1, 0, 1, 16)->group = KV_MAX_GROUPS;
	kit_send(&k, 0);
	assert_int_equal(k.held.n, 0);
	assert_int_equal(kv_rank_stats(k.r).skipped, 2);
	kit_done(&k);
}

static void slices_are_bounded(void **state)
{
	(void)state;
	struct kit k;
	kit_init(&k);
	kit_store(&k, 1, 0, 5001, 1);
	kit_send(&k, 0);
	assert_int_equal(k.held.n, 5001);
	assert_int_equal(k.largest, 2000);
	kit_done(&k);
}

/* More than the capacity means the view is wrong: a replay once, then it is said; memory stays. */
static void a_flood_beyond_the_capacity_is_refused(void **state)
{
	(void)state;
	struct kit k;
	kit_init(&k);
	kv_rank_capacity(k.r, 1000);
	kv_rank_has_replay(k.r, true);
	kit_store(&k, 1, 0, 1400, 1);
	assert_int_equal(kit_send(&k, 0), KV_ACT_REPLAY);
	assert_int_equal(kv_rank_want_seq(k.r), 0);
	assert_int_equal(k.held.n, 0);
	kit_store(&k, 1, 0, 1400, 1);
	kit_replay(&k, 0);
	assert_int_equal(kv_rank_replay_end(k.r, true), KV_ACT_UNCERTAIN);
	struct kv_rank_stats s = kv_rank_stats(k.r);
	assert_true(s.uncertain && s.blocks <= 1314 && s.over_capacity > 0);
	for (uint32_t i = 0; i < 1000; i++) {
		kit_store(&k, 2 + i, 0, 1000, 1);
		kit_send(&k, 1 + i);
		arena_done(&k.a);
	}
	s = kv_rank_stats(k.r);
	assert_true(s.blocks <= 1314);
	assert_true(s.bytes < 200000);
	kit_clear(&k);
	kit_store(&k, 1, 0, 3, 16);
	kit_send(&k, 1001);
	assert_false(kv_rank_stats(k.r).uncertain);
	kit_done(&k);
}

/* routers 38, 39, 43: endless unique prompts with evictions; memory is flat once steady. */
static void case_38_39_43_memory_is_flat_under_churn(void **state)
{
	(void)state;
	struct kit k;
	size_t steady = 0;
	kit_init(&k);
	kv_rank_capacity(k.r, 640);
	for (uint32_t i = 0; i < 5000; i++) {
		if (i >= 80)
			for (uint32_t b = 0; b < 8; b++)
				kit_remove(&k, i - 80, b);
		kit_store(&k, i, 0, 8, 4);
		assert_int_equal(kit_send(&k, i), KV_ACT_NONE);
		arena_done(&k.a);
		if (i == 200)
			steady = kv_rank_stats(k.r).bytes;
	}
	assert_int_equal(kv_rank_stats(k.r).bytes, steady);
	assert_int_equal(k.held.n, 640);
	assert_int_equal(k.wrong, 0);
	kit_done(&k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stored_and_removed),
		cmocka_unit_test(case_vllm_two_copies),
		cmocka_unit_test(case_router_31_all_blocks_cleared),
		cmocka_unit_test(case_llm_d_router_2362_hybrid_groups),
		cmocka_unit_test(a_lost_parent_never_invents_a_chain),
		cmocka_unit_test(a_removal_without_a_group_counts_for_all),
		cmocka_unit_test(a_partial_tail_is_not_a_block),
		cmocka_unit_test(groups_of_several_block_sizes_share_one_chain),
		cmocka_unit_test(two_engine_hashes_of_one_key_are_counted),
		cmocka_unit_test(what_is_offloaded_is_found_by_its_hash),
		cmocka_unit_test(evicted_and_offloaded_in_one_batch),
		cmocka_unit_test(offloaded_copies_are_counted_by_tier),
		cmocka_unit_test(offloaded_blocks_that_describe_themselves),
		cmocka_unit_test(tiers_are_cleared_together),
		cmocka_unit_test(strange_tiers_and_groups_are_skipped),
		cmocka_unit_test(slices_are_bounded),
		cmocka_unit_test(a_flood_beyond_the_capacity_is_refused),
		cmocka_unit_test(case_38_39_43_memory_is_flat_under_churn),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
