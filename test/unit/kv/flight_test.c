/* Prompts in flight that share beginnings, against a plain comparison of every pair. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/base.h"
#include "base/rand.h"
#include "kv/index.h"

enum { BLOCK = 16, MAX_BLOCKS = 40, FAMILY = 24, RANKS = 70, FLIGHTS = 60 };

struct family { uint64_t keys[FAMILY][MAX_BLOCKS]; uint32_t n[FAMILY]; };
struct flying { kv_flight h; size_t rank, member; };

/* Each member goes with an earlier one for a while and then its own way. */
static void make_family(struct family *f, struct rand *r)
{
	for (size_t m = 0; m < FAMILY; m++) {
		size_t elder = m ? rand_below(r, m) : 0;
		uint32_t shared = m ? (uint32_t)rand_below(r, f->n[elder] + 1) : 0;
		f->n[m] = MAX(shared, (uint32_t)rand_below(r, MAX_BLOCKS + 1));
		memcpy(f->keys[m], f->keys[elder], shared * sizeof(uint64_t));
		for (uint32_t i = shared; i < f->n[m]; i++)
			f->keys[m][i] = rand_u64(r);
	}
}

static struct kv_prompt prompt_of(const struct family *f, size_t m)
{
	return (struct kv_prompt){ f->n[m] * BLOCK + 1, 1, { { BLOCK, f->n[m], f->keys[m] } } };
}

static uint32_t shared(const struct family *f, size_t a, size_t b)
{
	uint32_t n = 0;
	while (n < MIN(f->n[a], f->n[b]) && f->keys[a][n] == f->keys[b][n])
		n++;
	return n;
}

static void compare(struct kv_index *x, const struct family *f, const kv_rank_id *ids, const struct flying *fl)
{
	uint32_t hit[RANKS];
	for (size_t m = 0; m < FAMILY; m++) {
		struct kv_prompt p = prompt_of(f, m);
		uint32_t want[RANKS] = { 0 };
		for (size_t i = 0; i < FLIGHTS; i++)
			if (fl[i].h)
				want[fl[i].rank] = MAX(want[fl[i].rank], shared(f, m, fl[i].member));
		kv_index_hits(x, &p, ids, RANKS, hit, NULL);
		for (size_t i = 0; i < RANKS; i++)
			assert_int_equal(hit[i], want[i] * BLOCK);
	}
}

static struct kv_index *new_fleet(kv_rank_id *ids)
{
	struct kv_index *x = kv_index_new();
	for (size_t i = 0; i < RANKS; i++) {
		assert_int_equal(kv_index_rank_add(x, &ids[i]), ERR_OK);
		kv_index_groups(x, ids[i], &(struct kv_group){ KV_GROUP_FULL, 0, BLOCK }, 1);
	}
	return x;
}

static void a_family_of_prompts_shares_its_beginnings(void **state)
{
	(void)state;
	static struct family f;
	kv_rank_id ids[RANKS];
	for (uint64_t seed = 1; seed <= 10; seed++) {
		struct rand r = { seed };
		struct flying fl[FLIGHTS] = { 0 };
		make_family(&f, &r);
		struct kv_index *x = new_fleet(ids);
		for (int round = 0; round < 300; round++) {
			struct flying *at = &fl[rand_below(&r, FLIGHTS)];
			kv_index_flight_end(x, at->h);
			*at = (struct flying){ 0, rand_below(&r, RANKS), rand_below(&r, FAMILY) };
			struct kv_prompt p = prompt_of(&f, at->member);
			if (rand_below(&r, 4))
				at->h = kv_index_flight_begin(x, ids[at->rank], &p);
			compare(x, &f, ids, fl);
			struct kv_index_stats s = kv_index_stats(x);
			assert_true(s.flight_entries <= 2 * s.flights);      /* however often runs were cut */
		}
		for (size_t i = 0; i < FLIGHTS; i++)
			kv_index_flight_end(x, fl[i].h);
		assert_int_equal(kv_index_stats(x).flight_entries, 0);
		kv_index_free(x);
	}
}

/* A client that finds equal keys behind different beginnings gets shorter hits and nothing else. */
static void equal_keys_in_wrong_places_do_no_harm(void **state)
{
	(void)state;
	kv_rank_id ids[RANKS];
	struct rand r = { 5 };
	struct kv_index *x = new_fleet(ids);
	kv_flight fl[FLIGHTS] = { 0 };
	for (int round = 0; round < 3000; round++) {
		uint64_t keys[12];
		uint32_t hit[RANKS], n = 1 + (uint32_t)rand_below(&r, ARRAY_LEN(keys));
		for (uint32_t i = 0; i < n; i++)
			keys[i] = rand_below(&r, 4);
		struct kv_prompt p = { n * BLOCK + 1, 1, { { BLOCK, n, keys } } };
		size_t at = rand_below(&r, FLIGHTS);
		kv_index_flight_end(x, fl[at]);
		fl[at] = kv_index_flight_begin(x, ids[rand_below(&r, RANKS)], &p);
		kv_index_hits(x, &p, ids, RANKS, hit, NULL);
		for (size_t i = 0; i < RANKS; i++)
			assert_true(hit[i] <= n * BLOCK);
	}
	for (size_t i = 0; i < FLIGHTS; i++)
		kv_index_flight_end(x, fl[i]);
	assert_int_equal(kv_index_stats(x).flight_entries, 0);
	kv_index_free(x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_family_of_prompts_shares_its_beginnings),
		cmocka_unit_test(equal_keys_in_wrong_places_do_no_harm),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
