/* The table against a plain array, and arenas that rewind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/must.h"
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

static void test_tables_are_zeroed_and_aligned(void **state)
{
	(void)state;
	static const size_t SIZES[] = { 0, 1, 64, 100, MUST_LARGE_PAGE - 1, MUST_LARGE_PAGE, MUST_LARGE_PAGE + 1, 3 * MUST_LARGE_PAGE };
	must_table_free(NULL, 0);
	must_table_free(NULL, MUST_LARGE_PAGE);
	for (size_t i = 0; i < ARRAY_LEN(SIZES); i++) {
		unsigned char *p = must_table(SIZES[i]);
		size_t align = SIZES[i] >= MUST_LARGE_PAGE ? MUST_LARGE_PAGE : 64, bad = 0;
		assert_int_equal((uintptr_t)p % align, 0);
		for (size_t k = 0; k < SIZES[i]; k++) {
			bad += p[k] != 0;
			p[k] = 1;
		}
		assert_int_equal(bad, 0);
		must_table_free(p, SIZES[i]);
	}
}

static void test_large_memory_grows_in_place_and_keeps_its_bytes(void **state)
{
	(void)state;
	static const size_t SIZES[] = { 1, 4000, MUST_LARGE_PAGE, 3 * (size_t)MUST_LARGE_PAGE + 5 };
	must_large_free(NULL);
	for (size_t i = 0; i < ARRAY_LEN(SIZES); i++) {
		size_t n = SIZES[i];
		unsigned char *p = must_large(n), *old = p;
		assert_int_equal((uintptr_t)p % 64, 0);
		memset(p, 'x', n);
		p = must_large_grow(p, 2 * n);
		assert_ptr_equal(p, old);
		memset(p + n, 'y', n);
		p = must_large_grow(p, 2 * n + 3 * (size_t)MUST_LARGE_PAGE);
		assert_true(p[0] == 'x' && p[n - 1] == 'x' && p[n] == 'y' && p[2 * n - 1] == 'y');
		memset(p + 2 * n, 'z', 3 * (size_t)MUST_LARGE_PAGE);
		must_large_free(p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_operations_match_an_array),
		cmocka_unit_test(test_tables_are_zeroed_and_aligned),
		cmocka_unit_test(test_large_memory_grows_in_place_and_keeps_its_bytes),
		cmocka_unit_test(test_reserved_room_moves_nothing),
		cmocka_unit_test(test_arena_rewinds_and_counts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
