/* Numbers: duplicates, gaps, replays, restarts that nobody announces. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "kit.h"

/* One block of chain `seed` a batch. */
static enum kv_act send(struct kit *k, uint64_t seq, uint32_t seed)
{
	kit_store(k, seed, 0, 1, 16);
	return kit_send(k, seq);
}

static enum kv_act replay_at(struct kit *k, uint64_t seq, uint32_t seed, double ts)
{
	kit_store(k, seed, 0, 1, 16);
	return kit_send_at(k, seq, ts, true);
}

static bool has(struct kit *k, uint32_t seed) { return kit_holds(k, kit_key(k, seed, 0, 16), 0); }

/* Idempotent by number; the same hash in two batches is two copies (rank_test.c). */
static void case_smg_946_duplicate_batch(void **state)
{
	(void)state;
	struct kit k;
	kit_init(&k);
	kit_store(&k, 1, 0, 1, 16);
	kit_send_at(&k, 0, 5, false);
	kit_store(&k, 1, 0, 1, 16);
	assert_int_equal(kit_send_at(&k, 0, 5, false), KV_ACT_NONE);
	assert_int_equal(kv_rank_stats(k.r).duplicates, 1);
	kit_remove(&k, 1, 0);
	kit_send_at(&k, 1, 6, false);
	assert_int_equal(k.held.n, 0);
	kit_done(&k);
}

/* No replay socket: a number that falls back clears the rank and the new life is applied. */
static void case_llm_d_router_2853_restart_without_replay(void **state)
{
	(void)state;
	struct kit k;
	kit_init(&k);
	for (uint32_t i = 0; i < 100; i++)
		send(&k, i, i);
	assert_int_equal(k.held.n, 100);
	assert_int_equal(send(&k, 0, 500), KV_ACT_NONE);
	assert_int_equal(k.held.n, 1);
	assert_true(has(&k, 500));
	assert_int_equal(kv_rank_stats(k.r).restarts, 1);
	assert_false(kv_rank_stats(k.r).uncertain);
	assert_int_equal(send(&k, 1, 501), KV_ACT_NONE);
	assert_int_equal(k.held.n, 2);
	kit_done(&k);
}

/* A worker that sleeps, or says otherwise than by an event that its cache is empty: a later look at the replay brings nothing back. */
static void what_is_cleared_is_not_replayed(void **state)
{
	(void)state;
	struct kit k;
	kit_init(&k);
	kv_rank_has_replay(k.r, true);
	for (uint32_t i = 0; i < 10; i++)
		send(&k, i, i);
	double ts = kv_rank_stats(k.r).last_ts_s;
	kv_rank_cleared(k.r);
	assert_int_equal(k.held.n, 0);
	assert_int_equal(kv_rank_reconnected(k.r), KV_ACT_REPLAY);
	assert_int_equal(kv_rank_want_seq(k.r), 9);
	replay_at(&k, 9, 9, ts);
	assert_int_equal(kv_rank_replay_end(k.r, true), KV_ACT_NONE);
	assert_int_equal(k.held.n, 0);
	send(&k, 10, 20);
	assert_int_equal(k.held.n, 1);
	assert_int_equal(kv_rank_stats(k.r).restarts, 0);
	kit_done(&k);
}

static void a_restart_that_is_met_late_asks_for_everything(void **state)
{
	(void)state;
	struct kit k;
	kit_init(&k);
	kv_rank_has_replay(k.r, true);
	for (uint32_t i = 0; i < 10; i++)
		send(&k, i, i);
	assert_int_equal(send(&k, 2, 500), KV_ACT_REPLAY);
	assert_int_equal(kv_rank_want_seq(k.r), 0);
	assert_int_equal(k.held.n, 0);
	replay_at(&k, 0, 600, 2001);
	replay_at(&k, 1, 601, 2002);
	replay_at(&k, 2, 500, k.ts);
	assert_int_equal(kv_rank_replay_end(k.r, true), KV_ACT_NONE);
	assert_int_equal(k.held.n, 3);
	assert_int_equal(send(&k, 3, 602), KV_ACT_NONE);
	assert_int_equal(k.held.n, 4);
	assert_false(kv_rank_stats(k.r).uncertain);
	kit_done(&k);
}

/* Restarted and idle: only the question shows it. The batch last seen is gone. */
static void a_silent_restart_shows_in_the_replay(void **state)
{
	(void)state;
	struct kit k;
	kit_init(&k);
	kv_rank_has_replay(k.r, true);
	for (uint32_t i = 0; i < 10; i++)
		send(&k, i, i);
	assert_int_equal(kv_rank_reconnected(k.r), KV_ACT_REPLAY);
	assert_int_equal(kv_rank_want_seq(k.r), 9);
	assert_int_equal(kv_rank_replay_end(k.r, true), KV_ACT_REPLAY);       /* only the end marker came */
	assert_int_equal(kv_rank_want_seq(k.r), 0);
	assert_int_equal(k.held.n, 0);
	assert_int_equal(kv_rank_replay_end(k.r, true), KV_ACT_NONE);
	struct kv_rank_stats s = kv_rank_stats(k.r);
	assert_true(s.restarts == 1 && !s.seen_any && !s.uncertain);
	assert_int_equal(send(&k, 0, 50), KV_ACT_NONE);
	assert_true(has(&k, 50));
	kit_done(&k);
}

/* The new life has already passed our number: the batch is there, but it is another one. */
static void a_restart_that_overtook_us_shows_by_its_time(void **state)
{
	(void)state;
	struct kit k;
	kit_init(&k);
	kv_rank_has_replay(k.r, true);
	for (uint32_t i = 0; i < 3; i++)
		send(&k, i, i);
	kv_rank_reconnected(k.r);
	replay_at(&k, 2, 70, 3000);
	replay_at(&k, 3, 71, 3001);
	assert_int_equal(kv_rank_replay_end(k.r, true), KV_ACT_REPLAY);
	assert_int_equal(k.held.n, 0);
	assert_int_equal(kv_rank_want_seq(k.r), 0);
	for (uint32_t i = 0; i < 4; i++)
		replay_at(&k, i, 68 + i, 2998 + i);
	assert_int_equal(kv_rank_replay_end(k.r, true), KV_ACT_NONE);
	assert_int_equal(k.held.n, 4);
	kit_done(&k);
}

static void a_reconnect_without_a_loss_changes_nothing(void **state)
{
	(void)state;
	struct kit k;
	kit_init(&k);
	kv_rank_has_replay(k.r, true);
	send(&k, 0, 0);
	send(&k, 1, 1);
	double ts = k.ts;
	assert_int_equal(kv_rank_reconnected(k.r), KV_ACT_REPLAY);
	replay_at(&k, 1, 1, ts);
	assert_int_equal(kv_rank_replay_end(k.r, true), KV_ACT_NONE);
	assert_int_equal(k.held.n, 2);
	assert_int_equal(k.clears, 0);
	assert_int_equal(kv_rank_stats(k.r).restarts, 0);
	kit_done(&k);
}

/* First contact with a worker that has been running: its history first, what comes meanwhile after it, in order. */
static void live_batches_wait_for_the_replay(void **state)
{
	(void)state;
	struct kit k;
	kit_init(&k);
	kv_rank_has_replay(k.r, true);
	assert_int_equal(kv_rank_reconnected(k.r), KV_ACT_REPLAY);
	kit_store(&k, 1, 2, 1, 16);                    /* its parents are in the replay */
	assert_int_equal(kit_send_at(&k, 2, 12, false), KV_ACT_NONE);
	kit_remove(&k, 1, 0);
	kit_send_at(&k, 3, 13, false);
	assert_int_equal(k.held.n, 0);
	for (uint32_t i = 0; i < 3; i++) {
		kit_store(&k, 1, i, 1, 16);
		kit_send_at(&k, i, 10 + i, true);
	}
	assert_int_equal(kv_rank_replay_end(k.r, true), KV_ACT_NONE);
	assert_int_equal(k.held.n, 2);
	assert_true(kit_holds(&k, kit_key(&k, 1, 2, 16), 0));
	struct kv_rank_stats s = kv_rank_stats(k.r);
	assert_true(s.next_seq == 4 && s.duplicates == 1 && !s.uncertain && s.unplaced == 0);
	kit_done(&k);
}

static void a_gap_is_filled_from_the_replay(void **state)
{
	(void)state;
	struct kit k;
	kit_init(&k);
	kv_rank_has_replay(k.r, true);
	kit_store(&k, 0, 0, 1, 16);
	kit_send_at(&k, 0, 10, false);
	kit_store(&k, 3, 0, 1, 16);
	assert_int_equal(kit_send_at(&k, 3, 13, false), KV_ACT_REPLAY);
	assert_int_equal(kv_rank_want_seq(k.r), 0);            /* the last one seen: so a restart would show */
	kit_store(&k, 4, 0, 1, 16);
	assert_int_equal(kit_send_at(&k, 4, 14, false), KV_ACT_NONE);
	for (uint32_t i = 0; i < 4; i++)
		replay_at(&k, i, i, 10 + i);
	assert_int_equal(kv_rank_replay_end(k.r, true), KV_ACT_NONE);
	assert_int_equal(k.held.n, 5);
	struct kv_rank_stats s = kv_rank_stats(k.r);
	assert_true(s.gaps == 1 && s.next_seq == 5 && !s.uncertain && s.stored_blocks == 5);
	kit_done(&k);
}

/* The kept batches begin behind the replay's end: asked again, three times, then it is said. */
static void a_gap_that_no_replay_fills_is_said(void **state)
{
	(void)state;
	struct kit k;
	kit_init(&k);
	kv_rank_has_replay(k.r, true);
	send(&k, 0, 0);
	double ts = k.ts;
	assert_int_equal(send(&k, 5, 5), KV_ACT_REPLAY);
	enum kv_act act = KV_ACT_REPLAY;
	int turns = 0;
	while (act == KV_ACT_REPLAY && turns++ < 20) {
		replay_at(&k, 0, 0, ts);
		act = kv_rank_replay_end(k.r, true);
	}
	assert_int_equal(act, KV_ACT_UNCERTAIN);
	assert_true(turns <= 5);
	assert_true(has(&k, 5));
	assert_true(kv_rank_stats(k.r).uncertain);
	assert_int_equal(send(&k, 6, 6), KV_ACT_NONE);
	kit_done(&k);
}

static void a_gap_without_a_replay_socket_goes_on_uncertain(void **state)
{
	(void)state;
	struct kit k;
	kit_init(&k);
	send(&k, 0, 0);
	assert_int_equal(send(&k, 3, 3), KV_ACT_UNCERTAIN);
	assert_true(has(&k, 0) && has(&k, 3));
	assert_true(kv_rank_stats(k.r).uncertain);
	assert_int_equal(send(&k, 4, 4), KV_ACT_NONE);
	kit_clear(&k);                                 /* an empty cache is a known one */
	kit_send(&k, 5);
	assert_false(kv_rank_stats(k.r).uncertain);
	assert_int_equal(kv_rank_reconnected(k.r), KV_ACT_UNCERTAIN);
	kit_done(&k);
}

static void a_reconnect_without_a_replay_socket_clears(void **state)
{
	(void)state;
	struct kit k;
	kit_init(&k);
	send(&k, 0, 0);
	assert_int_equal(kv_rank_reconnected(k.r), KV_ACT_UNCERTAIN);
	assert_int_equal(k.held.n, 0);
	assert_int_equal(send(&k, 1, 1), KV_ACT_UNCERTAIN);
	assert_int_equal(k.held.n, 1);
	kit_done(&k);
}

/* The worker keeps so many batches; the first are gone. */
static void a_history_that_is_cut_off_is_uncertain(void **state)
{
	(void)state;
	struct kit k;
	kit_init(&k);
	kv_rank_has_replay(k.r, true);
	kv_rank_reconnected(k.r);
	replay_at(&k, 40, 40, 10);
	replay_at(&k, 41, 41, 11);
	kv_rank_replay_end(k.r, true);
	assert_true(kv_rank_stats(k.r).uncertain);
	assert_int_equal(k.held.n, 2);
	kv_rank_capacity(k.r, 16);                      /* until what is known fills the cache */
	k.ts = 11;
	for (uint32_t i = 42; i < 54; i++) {
		assert_true(kv_rank_stats(k.r).uncertain);
		send(&k, i, i);
	}
	assert_false(kv_rank_stats(k.r).uncertain);
	kit_done(&k);
}

static void a_replay_that_ends_early_keeps_what_came(void **state)
{
	(void)state;
	struct kit k;
	kit_init(&k);
	kv_rank_has_replay(k.r, true);
	kv_rank_reconnected(k.r);
	kit_store(&k, 9, 0, 1, 16);
	kit_send_at(&k, 9, 19, false);
	replay_at(&k, 0, 0, 10);
	assert_int_equal(kv_rank_replay_end(k.r, false), KV_ACT_UNCERTAIN);
	assert_true(has(&k, 0) && has(&k, 9));
	assert_int_equal(kv_rank_stats(k.r).next_seq, 10);
	kit_done(&k);
}

/* Batches that arrive out of order are no restart. */
static void a_late_batch_is_dropped(void **state)
{
	(void)state;
	struct kit k;
	kit_init(&k);
	kit_store(&k, 0, 0, 1, 16);
	kit_send_at(&k, 0, 10, false);
	kit_store(&k, 2, 0, 1, 16);
	kit_send_at(&k, 2, 12, false);
	kit_store(&k, 1, 0, 1, 16);
	assert_int_equal(kit_send_at(&k, 1, 11, false), KV_ACT_NONE);
	struct kv_rank_stats s = kv_rank_stats(k.r);
	assert_true(s.restarts == 0 && s.duplicates == 1);
	assert_int_equal(k.held.n, 2);
	kit_done(&k);
}

/* A restarted worker whose clock fell back too is found after some batches. */
static void a_clock_that_fell_back_hides_a_restart_for_a_while_only(void **state)
{
	(void)state;
	struct kit k;
	kit_init(&k);
	for (uint32_t i = 0; i < 40; i++)
		send(&k, i, i);
	for (uint32_t i = 0; i < 30; i++) {
		kit_store(&k, 100 + i, 0, 1, 16);
		kit_send_at(&k, i, 1 + i, false);
	}
	assert_int_equal(kv_rank_stats(k.r).restarts, 1);
	assert_false(has(&k, 5));
	assert_true(has(&k, 129));
	kit_done(&k);
}

static void what_waits_for_a_replay_is_bounded(void **state)
{
	(void)state;
	struct kit k;
	kit_init(&k);
	kv_rank_has_replay(k.r, true);
	kv_rank_reconnected(k.r);
	for (uint32_t i = 0; i < 5000; i++) {
		kit_store(&k, i, 0, 1, 2000);
		kit_send(&k, 100 + i);
		arena_done(&k.a);
	}
	assert_true(kv_rank_stats(k.r).bytes < (size_t)20 << 20);
	kit_done(&k);
}

static void forgetting_everything(void **state)
{
	(void)state;
	struct kit k;
	kit_init(&k);
	send(&k, 0, 0);
	kv_rank_drop(k.r);
	assert_int_equal(k.held.n, 0);
	assert_false(kv_rank_stats(k.r).seen_any);
	assert_int_equal(send(&k, 0, 1), KV_ACT_NONE);
	assert_int_equal(k.held.n, 1);
	kit_done(&k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(case_smg_946_duplicate_batch),
		cmocka_unit_test(case_llm_d_router_2853_restart_without_replay),
		cmocka_unit_test(what_is_cleared_is_not_replayed), cmocka_unit_test(a_restart_that_is_met_late_asks_for_everything),
		cmocka_unit_test(a_silent_restart_shows_in_the_replay),
		cmocka_unit_test(a_restart_that_overtook_us_shows_by_its_time),
		cmocka_unit_test(a_reconnect_without_a_loss_changes_nothing),
		cmocka_unit_test(live_batches_wait_for_the_replay),
		cmocka_unit_test(a_gap_is_filled_from_the_replay),
		cmocka_unit_test(a_gap_that_no_replay_fills_is_said),
		cmocka_unit_test(a_gap_without_a_replay_socket_goes_on_uncertain),
		cmocka_unit_test(a_reconnect_without_a_replay_socket_clears),
		cmocka_unit_test(a_history_that_is_cut_off_is_uncertain),
		cmocka_unit_test(a_replay_that_ends_early_keeps_what_came),
		cmocka_unit_test(a_late_batch_is_dropped),
		cmocka_unit_test(a_clock_that_fell_back_hides_a_restart_for_a_while_only),
		cmocka_unit_test(what_waits_for_a_replay_is_bounded),
		cmocka_unit_test(forgetting_everything),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
