#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sim/pool.h"

static struct sim_batch batch;
static struct sim_pool *pool;

static int setup(void **state)
{
	(void)state;
	sim_batch_init(&batch);
	pool = sim_pool_new(4, &batch); /* three blocks to give */
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	sim_pool_free(pool);
	sim_batch_done(&batch);
	return 0;
}

static void freed_blocks_stay_findable_until_taken(void **state)
{
	(void)state;
	uint32_t b = sim_pool_take(pool);
	sim_pool_hold(pool, b, 0, 77);
	sim_pool_drop(pool, b);
	assert_int_equal(sim_pool_find(pool, 0, 77), b);
	assert_int_equal(sim_pool_find(pool, 1, 77), SIM_NO_BLOCK);
	for (int i = 0; i < 3; i++)
		assert_true(sim_pool_take(pool) != SIM_NO_BLOCK);
	assert_int_equal(sim_pool_take(pool), SIM_NO_BLOCK);
	assert_int_equal(sim_pool_find(pool, 0, 77), SIM_NO_BLOCK);
	assert_int_equal(batch.ev.n, 1);
	assert_int_equal(batch.ev.p[0].kind, SIM_REMOVED);
	assert_int_equal(batch.ev.p[0].hashes[0], 77);
}

static void each_copy_is_removed_on_its_own(void **state)
{
	(void)state;
	uint32_t a = sim_pool_take(pool), b = sim_pool_take(pool);
	sim_pool_hold(pool, a, 0, 5);
	sim_pool_hold(pool, b, 0, 5);
	sim_pool_drop(pool, a);
	sim_pool_drop(pool, b);
	assert_int_equal(sim_pool_find(pool, 0, 5), a);
	(void)sim_pool_take(pool); /* the one that never held anything */
	assert_int_equal(sim_pool_take(pool), a);
	assert_int_equal(sim_pool_find(pool, 0, 5), b);
	assert_int_equal(sim_pool_take(pool), b);
	assert_int_equal(sim_pool_find(pool, 0, 5), SIM_NO_BLOCK);
	assert_int_equal(batch.ev.n, 2);
}

/* Copies come and go in any order; the oldest that is left is the one found. */
static void copies_keep_their_order(void **state)
{
	(void)state;
	struct sim_pool *p = sim_pool_new(101, &batch);
	uint32_t b[100];
	for (int i = 0; i < 100; i++) {
		b[i] = sim_pool_take(p);
		sim_pool_hold(p, b[i], 0, i % 2);
	}
	for (int i = 99; i >= 0; i -= 3)
		sim_pool_drop(p, b[i]); /* freed: 99, 96, ... 0 */
	for (int i = 99; i > 50; i -= 3)
		assert_int_equal(sim_pool_take(p), b[i]);
	assert_int_equal(sim_pool_find(p, 0, 0), b[0]);
	assert_int_equal(sim_pool_find(p, 0, 1), b[1]);
	while (sim_pool_take(p))
		;
	assert_int_equal(sim_pool_find(p, 0, 0), b[2]);
	assert_int_equal(sim_pool_held(p), 66);
	for (int i = 0; i < 100; i++)
		if (i % 3)
			sim_pool_drop(p, b[i]);
	while (sim_pool_take(p))
		;
	assert_int_equal(sim_pool_find(p, 0, 0), SIM_NO_BLOCK);
	assert_int_equal(sim_pool_held(p), 0);
	assert_int_equal(batch.ev.n, 100);
	sim_pool_free(p);
}

static void blocks_without_content_are_reused_first(void **state)
{
	(void)state;
	uint32_t a = sim_pool_take(pool), b = sim_pool_take(pool), c = sim_pool_take(pool);
	sim_pool_hold(pool, a, 0, 1);
	sim_pool_drop(pool, a);
	sim_pool_drop(pool, b);
	assert_int_equal(sim_pool_take(pool), b);
	sim_pool_drop(pool, c);
	assert_int_equal(sim_pool_take(pool), c);
	assert_int_equal(batch.ev.n, 0);
}

static void reset_waits_for_the_last_user(void **state)
{
	(void)state;
	uint32_t a = sim_pool_take(pool);
	sim_pool_hold(pool, a, 0, 1);
	assert_false(sim_pool_reset(pool));
	sim_pool_drop(pool, a);
	assert_true(sim_pool_reset(pool));
	assert_int_equal(sim_pool_find(pool, 0, 1), SIM_NO_BLOCK);
	assert_int_equal(sim_pool_held(pool), 0);
	assert_int_equal(batch.ev.p[0].kind, SIM_CLEARED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(freed_blocks_stay_findable_until_taken, setup, teardown),
		cmocka_unit_test_setup_teardown(each_copy_is_removed_on_its_own, setup, teardown),
		cmocka_unit_test_setup_teardown(copies_keep_their_order, setup, teardown),
		cmocka_unit_test_setup_teardown(blocks_without_content_are_reused_first, setup, teardown),
		cmocka_unit_test_setup_teardown(reset_waits_for_the_last_user, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
