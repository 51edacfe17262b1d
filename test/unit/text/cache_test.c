/* cache_test.c: hits, shared calls, the byte bound, and callbacks that come back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/rand.h"
#include "text/cache.h"

static struct hash128 key(uint64_t n) { return (struct hash128){ n, n * 7 }; }

static struct text_ids *ids_of(uint32_t first, size_t n)
{
	uint32_t *p = calloc(n, sizeof(*p));
	p[0] = first;
	struct text_span s = { p, n, 0 };
	struct text_ids *t = text_ids_from(&s, 1);
	free(p);
	return t;
}

struct waiter {
	struct text_wait w;
	int calls;
	enum err e;
	uint32_t first;
	struct text_cache *ask_again;
	struct waiter *leave;
};

static void on_ids(struct text_wait *w, enum err e, struct text_ids *ids)
{
	struct waiter *x = container_of(w, struct waiter, w);
	struct text_ids *again = NULL;
	x->calls++;
	x->e = e;
	x->first = ids ? ids->prompts[0].ids[0] : 0;
	if (x->leave)
		text_cache_leave(&x->leave->w);
	if (x->ask_again && text_cache_ask(x->ask_again, key(1), w, &again) == TEXT_HIT)
		text_ids_unref(again);
}

static struct waiter waiter(void) { return (struct waiter){ .w.fn = on_ids }; }

static void fill(struct text_cache *c, uint64_t k, uint32_t first, size_t n)
{
	struct text_ids *t = ids_of(first, n);
	text_cache_fill(c, key(k), t);
	text_ids_unref(t);
}

static bool hit(struct text_cache *c, uint64_t k, uint32_t first)
{
	struct waiter w = waiter();
	struct text_ids *t = NULL;
	enum text_found f = text_cache_ask(c, key(k), &w.w, &t);
	if (f == TEXT_LEAD)
		text_cache_fail(c, key(k), ERR_IO);
	if (f != TEXT_HIT)
		return false;
	bool same = t->prompts[0].ids[0] == first;
	text_ids_unref(t);
	return same;
}

static void equal_prompts_share_a_call(void **state)
{
	(void)state;
	struct text_cache *c = text_cache_new(1 << 20, 10);
	struct waiter a = waiter(), b = waiter(), d = waiter(), gone = waiter();
	struct text_ids *t = NULL;
	assert_int_equal(text_cache_ask(c, key(1), &a.w, &t), TEXT_LEAD);
	assert_int_equal(text_cache_ask(c, key(1), &b.w, &t), TEXT_JOIN);
	assert_int_equal(text_cache_ask(c, key(1), &gone.w, &t), TEXT_JOIN);
	assert_int_equal(text_cache_ask(c, key(1), &d.w, &t), TEXT_JOIN);
	assert_int_equal(text_cache_waiting(c, key(1)), 3);
	text_cache_leave(&gone.w);
	text_cache_leave(&gone.w);
	fill(c, 1, 42, 10);
	assert_true(a.calls == 0 && gone.calls == 0 && b.calls == 1 && d.calls == 1 && b.e == ERR_OK && d.first == 42);
	assert_true(hit(c, 1, 42));
	struct text_cache_stats s = text_cache_stats(c);
	assert_true(s.hits == 1 && s.joins == 3 && s.leads == 1 && s.entries == 1 && s.calls == 0);
	text_cache_free(c);
	assert_int_equal(b.calls, 1);
}

static void a_failed_call_is_not_remembered(void **state)
{
	(void)state;
	struct text_cache *c = text_cache_new(1 << 20, 10);
	struct waiter a = waiter(), b = waiter();
	struct text_ids *t = NULL;
	assert_int_equal(text_cache_ask(c, key(1), &a.w, &t), TEXT_LEAD);
	assert_int_equal(text_cache_ask(c, key(1), &b.w, &t), TEXT_JOIN);
	text_cache_fail(c, key(1), ERR_TIMEOUT_FIRST_BYTE);
	assert_true(b.calls == 1 && b.e == ERR_TIMEOUT_FIRST_BYTE && b.first == 0);
	assert_int_equal(text_cache_ask(c, key(1), &b.w, &t), TEXT_LEAD);
	/* the leads that are open when it ends */
	struct waiter w = waiter();
	assert_int_equal(text_cache_ask(c, key(1), &w.w, &t), TEXT_JOIN);
	text_cache_free(c);
	assert_true(w.calls == 1 && w.e == ERR_DRAINING);
	text_cache_leave(&(struct text_wait){ 0 });
}

static void bounded_by_bytes(void **state)
{
	(void)state;
	size_t max = 100000;
	struct text_cache *c = text_cache_new(max, 10);
	struct rand r = { 5 };
	for (uint32_t i = 1; i < 2000; i++) {
		fill(c, i, i, 1 + rand_below(&r, 3000));
		assert_true(text_cache_stats(c).bytes <= max);
		assert_true(hit(c, i, i));
		if (i > 1 && i < 4)
			assert_true(hit(c, 1, 1));
	}
	assert_true(text_cache_stats(c).evicted > 1000);
	assert_false(hit(c, 1, 1));
	fill(c, 5000, 7, 100000); /* larger than all: not kept */
	assert_false(hit(c, 5000, 7));
	text_cache_forget(c);
	assert_true(text_cache_stats(c).bytes == 0 && text_cache_stats(c).entries == 0);
	text_cache_free(c);
}

static void least_recently_used_goes(void **state)
{
	(void)state;
	size_t one = 0;
	struct text_cache *probe = text_cache_new(1 << 20, 10);
	fill(probe, 1, 1, 100);
	one = text_cache_stats(probe).bytes;
	text_cache_free(probe);
	struct text_cache *c = text_cache_new(3 * one, 10);
	for (uint32_t i = 1; i <= 3; i++)
		fill(c, i, i, 100);
	assert_true(hit(c, 1, 1));
	fill(c, 4, 4, 100);
	assert_true(hit(c, 1, 1) && !hit(c, 2, 2) && hit(c, 3, 3) && hit(c, 4, 4));
	text_cache_free(c);
}

static void callbacks_may_come_back(void **state)
{
	(void)state;
	struct text_cache *c = text_cache_new(1 << 20, 10);
	struct waiter lead = waiter(), a = waiter(), b = waiter();
	struct text_ids *t = NULL;
	assert_int_equal(text_cache_ask(c, key(1), &lead.w, &t), TEXT_LEAD);
	assert_int_equal(text_cache_ask(c, key(1), &a.w, &t), TEXT_JOIN);
	assert_int_equal(text_cache_ask(c, key(1), &b.w, &t), TEXT_JOIN);
	a.leave = &b;
	a.ask_again = c;
	fill(c, 1, 9, 5);
	assert_true(a.calls == 1 && b.calls == 0);
	text_cache_free(c);
}

/* Beyond max_calls an ask leads alone; its fill still helps later ones, its failure disturbs nobody. */
static void too_many_calls(void **state)
{
	(void)state;
	struct text_cache *c = text_cache_new(1 << 20, 1);
	struct waiter a = waiter(), b = waiter(), d = waiter();
	struct text_ids *t = NULL;
	assert_int_equal(text_cache_ask(c, key(1), &a.w, &t), TEXT_LEAD);
	assert_int_equal(text_cache_ask(c, key(2), &b.w, &t), TEXT_LEAD);
	assert_int_equal(text_cache_ask(c, key(2), &d.w, &t), TEXT_LEAD);
	text_cache_fail(c, key(2), ERR_IO);
	fill(c, 2, 2, 5);
	fill(c, 2, 2, 5);
	assert_true(hit(c, 2, 2));
	assert_int_equal(text_cache_stats(c).calls, 1);
	/* same low half, other high half: never mixed up */
	struct hash128 other = { 2, 999 };
	assert_int_equal(text_cache_ask(c, other, &b.w, &t), TEXT_LEAD);
	struct text_ids *x = ids_of(3, 5);
	text_cache_fill(c, other, x);
	text_ids_unref(x);
	assert_true(hit(c, 2, 2));
	fill(c, 1, 1, 5);
	assert_int_equal(text_cache_stats(c).calls, 0);
	text_cache_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_prompts_share_a_call),
		cmocka_unit_test(a_failed_call_is_not_remembered),
		cmocka_unit_test(bounded_by_bytes),
		cmocka_unit_test(least_recently_used_goes),
		cmocka_unit_test(callbacks_may_come_back),
		cmocka_unit_test(too_many_calls),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
