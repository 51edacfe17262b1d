/* The table of what was made of texts: what is found, what is forgotten, who keeps it alive. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/memo.h"
#include "base/must.h"
#include "base/rand.h"

static atomic_int alive;

struct thing {
	struct memo_item item;
	uint32_t number;
	char text[];
};

static void thing_free(struct memo_item *it)
{
	atomic_fetch_sub(&alive, 1);
	free(container_of(it, struct thing, item));
}

static struct memo_item *thing(struct hash128 kind, struct str text, uint32_t number)
{
	struct thing *t = must_malloc(sizeof(*t) + text.n);
	memo_item_init(&t->item);
	t->number = number;
	t->item.kind = kind;
	t->item.text = (struct str){ memcpy(t->text, text.p, text.n), text.n };
	t->item.bytes = sizeof(*t) + text.n;
	t->item.free = thing_free;
	atomic_fetch_add(&alive, 1);
	return &t->item;
}

static void keep(struct memo *m, struct hash128 kind, struct str text, uint32_t number)
{
	struct memo_item *it = thing(kind, text, number);
	memo_keep(m, it);
	memo_item_unref(it);
}

/* Its number; UINT32_MAX: not known. */
static uint32_t ask(struct memo *m, struct hash128 kind, struct str text)
{
	struct memo_item *it = memo_find(m, kind, text);
	uint32_t number = it ? container_of(it, struct thing, item)->number : UINT32_MAX;
	memo_item_unref(it);
	return number;
}

static const struct hash128 A = { 1, 1 }, B = { 1, 2 }; /* kinds of equal hashes: the rest is compared */

static void test_a_thing_is_found_by_its_text_and_kind(void **state)
{
	(void)state;
	struct memo *m = memo_new(1 << 20, 5);
	keep(m, A, STR("one"), 1);
	keep(m, A, STR("two"), 2);
	assert_int_equal(ask(m, A, STR("one")), 1);
	assert_int_equal(ask(m, A, STR("two")), 2);
	assert_int_equal(ask(m, A, STR("three")), UINT32_MAX);
	assert_int_equal(ask(m, B, STR("one")), UINT32_MAX);
	keep(m, A, STR("one"), 3);
	assert_int_equal(ask(m, A, STR("one")), 3);
	assert_int_equal(memo_stats(m).items, 2);
	assert_int_equal(alive, 2);
	memo_free(m);
	assert_int_equal(alive, 0);
	assert_null(memo_find(NULL, A, STR("one")));
	keep(NULL, A, STR("one"), 1);
	memo_free(NULL);
	assert_int_equal(alive, 0);
}

static void test_whoever_refers_to_a_thing_keeps_it(void **state)
{
	(void)state;
	struct memo *m = memo_new(1 << 20, 5);
	keep(m, A, STR("one"), 1);
	struct memo_item *it = memo_find(m, A, STR("one"));
	keep(m, A, STR("one"), 2);
	assert_int_equal(ask(m, A, STR("one")), 2);
	memo_free(m);
	assert_int_equal(alive, 1);
	assert_int_equal(container_of(it, struct thing, item)->number, 1);
	memo_item_unref(it);
	assert_int_equal(alive, 0);
}

static void test_what_was_not_used_for_longest_goes_first(void **state)
{
	(void)state;
	enum { MAX = 64 * 4096, MANY = 5000 };
	struct memo *m = memo_new(MAX, 5);
	char text[100] = { 0 };
	keep(m, A, STR("asked for all the time"), 7);
	for (uint32_t i = 0; i < MANY; i++) {
		memcpy(text, &i, sizeof(i));
		keep(m, A, str_from(text, sizeof(text)), i);
		assert_true(memo_stats(m).bytes <= MAX);
		assert_int_equal(ask(m, A, STR("asked for all the time")), 7);
	}
	struct memo_stats s = memo_stats(m);
	assert_true(s.evicted > MANY / 2 && s.items + s.evicted == MANY + 1 && s.items == (size_t)alive);
	assert_int_equal(ask(m, A, str_from(text, sizeof(text))), MANY - 1);
	char *large = calloc(1, 5000);
	keep(m, A, str_from(large, 5000), 1);
	assert_int_equal(ask(m, A, str_from(large, 5000)), UINT32_MAX);
	assert_int_equal(memo_stats(m).evicted, s.evicted);
	free(large);
	memo_free(m);
	struct memo *none = memo_new(0, 1);
	keep(none, A, STR("one"), 1);
	assert_int_equal(ask(none, A, STR("one")), UINT32_MAX);
	memo_free(none);
	assert_int_equal(alive, 0);
}

struct worker {
	struct memo *m;
	uint64_t seed;
	uint64_t found, wrong;
};

static void *work(void *arg)
{
	struct worker *w = arg;
	struct rand r = { w->seed };
	for (int i = 0; i < 20000; i++) {
		uint32_t n = (uint32_t)rand_below(&r, 3000), said;
		struct str text = str_from(&n, sizeof(n));
		if (rand_below(&r, 2)) {
			keep(w->m, A, text, n);
			continue;
		}
		said = ask(w->m, A, text);
		w->found += said == n;
		w->wrong += said != n && said != UINT32_MAX;
	}
	return NULL;
}

static void test_threads_share_it(void **state)
{
	(void)state;
	enum { THREADS = 4 };
	struct memo *m = memo_new(64 * 2048, 5);
	pthread_t threads[THREADS];
	struct worker w[THREADS];
	for (size_t i = 0; i < THREADS; i++) {
		w[i] = (struct worker){ .m = m, .seed = i + 1 };
		assert_int_equal(pthread_create(&threads[i], NULL, work, &w[i]), 0);
	}
	for (size_t i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		assert_true(w[i].found > 100 && w[i].wrong == 0);
	}
	assert_int_equal(memo_stats(m).items, alive);
	memo_free(m);
	assert_int_equal(alive, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_thing_is_found_by_its_text_and_kind),
		cmocka_unit_test(test_whoever_refers_to_a_thing_keeps_it),
		cmocka_unit_test(test_what_was_not_used_for_longest_goes_first),
		cmocka_unit_test(test_threads_share_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
