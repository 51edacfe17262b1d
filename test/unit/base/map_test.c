/* The table against a plain array, and arenas that rewind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/rand.h"

static void test_random_operations_match_an_array(void **state)
{
	(void)state;
	enum { KEYS = 300 };
	uint64_t value[KEYS] = { 0 };
	bool there[KEYS] = { 0 };
	struct map m;
	struct rand r = { 99 };
	map_init(&m);
	for (int i = 0; i < 50000; i++) {
		uint64_t k = rand_below(&r, KEYS), v = rand_u64(&r), got;
		if (rand_below(&r, 3) == 0) {
			assert_int_equal(map_del(&m, k), there[k]);
			there[k] = false;
		} else {
			map_put(&m, k, v);
			there[k] = true;
			value[k] = v;
		}
		k = rand_below(&r, KEYS);
		assert_int_equal(map_get(&m, k, &got), there[k]);
		if (there[k])
			assert_true(got == value[k]);
	}
	size_t n = 0, seen = 0;
	for (int k = 0; k < KEYS; k++)
		n += there[k];
	for (size_t i = map_first(&m); i < m.cap; i = map_next(&m, i))
		seen++;
	assert_int_equal(m.n, n);
	assert_int_equal(seen, n);
	map_done(&m);
}

static void test_reserved_room_moves_nothing(void **state)
{
	(void)state;
	struct map m;
	map_init(&m);
	map_put(&m, 7, 70);
	map_reserve(&m, 1000);
	const struct map_slot *slots = m.slots;
	for (uint64_t k = 8; k < 1007; k++)
		map_put(&m, k, k * 10);
	assert_ptr_equal(m.slots, slots);
	map_reserve(&m, 10);
	assert_ptr_equal(m.slots, slots);
	uint64_t v = 0;
	assert_true(map_get(&m, 7, &v) && v == 70);
	assert_int_equal(m.n, 1000);
	map_done(&m);
}

static void test_arena_rewinds_and_counts(void **state)
{
	(void)state;
	struct arena a;
	arena_init(&a, 1000);
	char *first = arena_alloc(&a, 10, 1);
	memset(first, 'x', 10);
	struct arena_mark mark = arena_mark(&a);
	for (int i = 0; i < 100; i++) {
		char *p = arena_alloc(&a, 500, 1);
		assert_int_equal(p[0] + p[499], 0);
		assert_int_equal((uintptr_t)p % 16, 0);
		memset(p, 'y', 500);
	}
	assert_true(arena_over(&a));
	arena_rewind(&a, mark);
	assert_false(arena_over(&a));
	assert_int_equal(first[9], 'x');
	assert_int_equal(((char *)arena_alloc(&a, 16, 1))[0], 0);
	assert_string_equal(arena_printf(&a, "%s-%d", "a", 7), "a-7");
	arena_done(&a);
	assert_int_equal(a.used_bytes, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_operations_match_an_array),
		cmocka_unit_test(test_reserved_room_moves_nothing),
		cmocka_unit_test(test_arena_rewinds_and_counts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
