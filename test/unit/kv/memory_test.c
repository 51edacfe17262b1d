/* What a pair of block and rank costs in memory where the caches are full, both halves of the index together, owner memory
 * apart: at most 48 bytes, whatever the capacity (issue 3, section 6). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "kit.h"

enum { RANKS = 4, AT_ONCE = 100, SIZE = 4 };

struct follower { struct kv_index *x; kv_rank_id id; struct kv_rank *r; };

static void on_deltas(void *arg, const struct kv_delta *d, size_t n)
{
	struct follower *f = arg;
	kv_index_apply(f->x, f->id, d, n);
}

static void on_clear(void *arg)
{
	struct follower *f = arg;
	kv_index_clear(f->x, f->id);
}

static void on_groups(void *arg, const struct kv_group *g, size_t n)
{
	struct follower *f = arg;
	kv_index_groups(f->x, f->id, g, n);
}

static void follow(struct follower *f, struct kv_index *x, uint32_t capacity)
{
	static const struct kv_rank_sink sink = { on_deltas, on_clear, on_groups };
	f->x = x;
	assert_int_equal(kv_index_rank_add(x, &f->id), ERR_OK);
	f->r = kv_rank_new(&sink, f);
	kv_rank_capacity(f->r, capacity);
	kv_index_capacity(x, f->id, capacity);
}

/* Blocks that no other rank has. */
static void store(struct follower *f, struct kit *k, uint32_t step)
{
	kit_store(k, f->id << 24 | step, 0, AT_ONCE, SIZE);
	struct kv_batch b = { .ts_s = step + 1, .dp_rank = -1, .events = k->events, .n_events = k->n_events };
	assert_int_equal(kv_rank_batch(f->r, step, &b, false), KV_ACT_NONE);
	k->n_events = 0;
	arena_done(&k->a);
}

static void full_caches(uint32_t capacity)
{
	struct follower f[RANKS];
	struct kit k;
	struct kv_index *x = kv_index_new();
	struct kv_index_stats empty = kv_index_stats(x), full;
	size_t bytes = 0;
	kit_init(&k);
	for (uint32_t i = 0; i < RANKS; i++) {
		follow(&f[i], x, capacity);
		for (uint32_t step = 0; step < capacity / AT_ONCE; step++)
			store(&f[i], &k, step);
		bytes += kv_rank_stats(f[i].r).bytes;
	}
	full = kv_index_stats(x);
	bytes += full.bytes - full.owner_bytes - (empty.bytes - empty.owner_bytes);
	assert_int_equal(full.holdings, RANKS * capacity);
	assert_in_range(bytes, 1, 48 * full.holdings);
	for (uint32_t i = 0; i < RANKS; i++)
		kv_rank_free(f[i].r);
	kit_done(&k);
	kv_index_free(x);
}

static void a_pair_costs_at_most_48_bytes(void **state)
{
	(void)state;
	static const uint32_t capacities[] = { 20000, 37400, 59200 };
	for (size_t i = 0; i < ARRAY_LEN(capacities); i++)
		full_caches(capacities[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(a_pair_costs_at_most_48_bytes) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
