/* A rank's view as bytes: the same view comes out, or none; and it is believed only when the worker is the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/rand.h"
#include "kit.h"

/* Two groups, a copy, a block below the GPU, an adapter whose key two engine hashes share. */
static void fill(struct kit *k)
{
	kit_store(k, 1, 0, 4, 16);
	kit_store(k, 1, 0, 2, 16)->group = 1;
	kit_store(k, 2, 0, 1, 16)->adapter = STR("a");
	kit_send(k, 0);
	kit_store(k, 1, 0, 1, 16);
	struct kv_event *e = kit_store(k, 2, 0, 1, 16);
	*(uint64_t *)(uintptr_t)e->hashes = kit_hash(3, 0);
	e->adapter = STR("a");
	kit_offload(k, KV_TIER_CPU, 1, 1);
	kit_send(k, 1);
}

static void the_same_worker_is_known_again(void **state)
{
	struct kit k;
	struct map before;
	(void)state;
	kit_init(&k);
	fill(&k);
	struct kv_rank_stats was = kv_rank_stats(k.r);
	double ts = was.last_ts_s;
	before = k.held;
	map_init(&k.held);
	kit_start_again(&k, true);
	struct kv_rank_stats is = kv_rank_stats(k.r);
	assert_int_equal(is.blocks, was.blocks);
	assert_int_equal(is.lower_blocks, 1);
	assert_int_equal(k.n_groups, 2);
	assert_int_equal(k.held.n, before.n);
	for (size_t i = map_first(&before); i < before.cap; i = map_next(&before, i))
		assert_true(map_get(&k.held, before.slots[i].key, &(uint64_t){ 0 }));
	assert_true(is.uncertain);
	assert_int_equal(kv_rank_reconnected(k.r), KV_ACT_REPLAY);
	assert_int_equal(kv_rank_want_seq(k.r), 1);
	kit_send_at(&k, 1, ts, true);
	assert_int_equal(kv_rank_replay_end(k.r, true), KV_ACT_NONE);
	assert_false(kv_rank_stats(k.r).uncertain);
	kit_remove(&k, 1, 0);                  /* one of two copies */
	kit_remove(&k, 3, 0);                  /* one of two hashes of one key */
	kit_send(&k, 2);
	assert_int_equal(k.held.n, before.n);
	kit_remove(&k, 1, 0);
	kit_remove(&k, 2, 0);
	kit_send(&k, 3);
	assert_int_equal(k.held.n, before.n - 2);
	assert_int_equal(k.wrong, 0);
	map_done(&before);
	kit_done(&k);
}

static void another_worker_is_another(void **state)
{
	struct kit k;
	(void)state;
	for (int way = 0; way < 4; way++) {    /* the number at another time; only older ones; only newer ones; silence */
		kit_init(&k);
		fill(&k);
		kit_start_again(&k, true);
		assert_int_equal(kv_rank_reconnected(k.r), KV_ACT_REPLAY);
		if (way < 3)
			kit_send_at(&k, (uint64_t[]){ 1, 0, 7 }[way], 5000, true);
		assert_int_equal(kv_rank_replay_end(k.r, true), KV_ACT_REPLAY);
		assert_int_equal(k.held.n, 0);
		assert_int_equal(kv_rank_want_seq(k.r), 0);
		assert_int_equal(kv_rank_stats(k.r).restarts, 1);
		assert_false(kv_rank_stats(k.r).uncertain);
		kit_done(&k);
	}
}

static void without_a_replay_nothing_is_believed(void **state)
{
	struct kit k;
	(void)state;
	kit_init(&k);
	fill(&k);
	kit_start_again(&k, false);
	assert_int_equal(kv_rank_reconnected(k.r), KV_ACT_UNCERTAIN);
	assert_int_equal(k.held.n, 0);
	kit_done(&k);
	kit_init(&k);
	fill(&k);
	kit_start_again(&k, true);
	assert_int_equal(kv_rank_reconnected(k.r), KV_ACT_REPLAY);
	assert_int_equal(kv_rank_replay_end(k.r, false), KV_ACT_UNCERTAIN);    /* the replay socket is silent */
	kit_done(&k);
}

static void what_is_not_sure_is_not_saved(void **state)
{
	struct kit k;
	struct buf b;
	(void)state;
	kit_init(&k);
	buf_init(&b, 1 << 20);
	assert_int_equal(kv_rank_save(k.r, &b), ERR_NOT_FOUND);
	fill(&k);
	kit_store(&k, 9, 0, 1, 16);
	kit_send(&k, 5);                       /* a gap */
	assert_int_equal(kv_rank_save(k.r, &b), ERR_NOT_FOUND);
	assert_int_equal(b.n, 0);
	kit_done(&k);
	kit_init(&k);
	fill(&k);
	buf_init(&b, 100);
	assert_int_equal(kv_rank_save(k.r, &b), ERR_LIMIT);
	assert_int_equal(b.n, 0);
	kit_done(&k);
}

static void broken_text_is_refused_or_harmless(void **state)
{
	struct kit k;
	struct buf b;
	struct rand r = { 7 };
	(void)state;
	kit_init(&k);
	fill(&k);
	buf_init(&b, 1 << 20);
	assert_int_equal(kv_rank_save(k.r, &b), ERR_OK);
	for (size_t n = 0; n < b.n; n++) {
		struct kv_rank *fresh = kv_rank_new(&kit_sink, &k);
		assert_int_equal(kv_rank_load(fresh, str_from(b.p, n)), ERR_SYNTAX);
		assert_int_equal(kv_rank_stats(fresh).blocks, 0);
		assert_false(kv_rank_stats(fresh).seen_any);
		kv_rank_free(fresh);
	}
	for (int i = 0; i < 5000; i++) {
		char *text = memcpy(arena_new(&k.a, char, b.n), b.p, b.n);
		text[rand_below(&r, b.n)] = (char)rand_below(&r, 256);
		struct kv_rank *fresh = kv_rank_new(&kit_sink, &k);
		if (kv_rank_load(fresh, str_from(text, b.n)) != ERR_OK)
			assert_false(kv_rank_stats(fresh).seen_any);
		kv_rank_free(fresh);
	}
	buf_done(&b);
	kit_done(&k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_same_worker_is_known_again),
		cmocka_unit_test(another_worker_is_another),
		cmocka_unit_test(without_a_replay_nothing_is_believed),
		cmocka_unit_test(what_is_not_sure_is_not_saved),
		cmocka_unit_test(broken_text_is_refused_or_harmless),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
