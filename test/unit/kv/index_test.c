/* The brain half: hits, clears, prompts in flight, the approximate mode, owner memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/hash.h"
#include "kv/index.h"

enum { B = 16, MAX_KEYS = 256 };

static const struct kv_group FULL[] = { { KV_GROUP_FULL, 0, B } };
/* Five window groups and one full, as a real hybrid has them. */
static const struct kv_group HYBRID[] = { { KV_GROUP_WINDOW, 64, B }, { KV_GROUP_WINDOW, 64, B }, { KV_GROUP_FULL, 0, B } };

/* A prompt of n tokens along chain `seed`; keys of it live as long as the caller's array. */
static struct kv_prompt prompt(uint64_t *keys, uint32_t seed, uint32_t n_tok)
{
	for (uint32_t i = 0; i < n_tok / B; i++)
		keys[i] = hash_mix((uint64_t)seed << 32 | (i + 1)) * 0x9e3779b97f4a7c15u;
	return (struct kv_prompt){ n_tok, 1, { { B, n_tok / B, keys } } };
}

static kv_rank_id add(struct kv_index *x, const struct kv_group *g, size_t n)
{
	kv_rank_id id;
	assert_int_equal(kv_index_rank_add(x, &id), ERR_OK);
	kv_index_groups(x, id, g, n);
	return id;
}

static void hold(struct kv_index *x, kv_rank_id id, uint64_t key, uint32_t groups, bool yes)
{
	struct kv_delta d = { key, (uint16_t)(yes ? groups : 0), (uint16_t)(yes ? 0 : groups), KV_TIER_GPU };
	kv_index_apply(x, id, &d, 1);
}

static void hold_run(struct kv_index *x, kv_rank_id id, const struct kv_prompt *p, uint32_t from, uint32_t to, uint32_t groups)
{
	for (uint32_t i = from; i < to; i++)
		hold(x, id, p->sets[0].keys[i], groups, true);
}

static uint32_t hit(const struct kv_index *x, const struct kv_prompt *p, kv_rank_id id)
{
	uint32_t tok = 12345;
	kv_index_hits(x, p, &id, 1, &tok, NULL);
	return tok;
}

/* One token is always computed: a prompt of whole blocks, all held, hits one block less. */
static void the_last_token_is_never_a_hit(void **state)
{
	(void)state;
	struct kv_index *x = kv_index_new();
	uint64_t keys[MAX_KEYS];
	kv_rank_id id = add(x, FULL, 1);
	struct kv_prompt p = prompt(keys, 1, 64);
	hold_run(x, id, &p, 0, 4, 1);
	assert_int_equal(hit(x, &p, id), 48);
	assert_int_equal(kv_index_max_hit(x, &p, id), 48);
	p.n_tok = 65;
	assert_int_equal(hit(x, &p, id), 64);
	p.n_tok = 0;
	assert_int_equal(hit(x, &p, id), 0);
	kv_index_free(x);
}

/* Blocks of 16, 32 and 48 tokens end together every 96: a hit ends there, whatever is held beyond. */
static void a_hit_ends_where_blocks_of_all_sizes_end(void **state)
{
	(void)state;
	static const struct kv_group sizes[] = { { KV_GROUP_FULL, 0, 16 }, { KV_GROUP_MAMBA, 0, 32 }, { KV_GROUP_MAMBA, 0, 48 } };
	struct kv_index *x = kv_index_new();
	uint64_t keys[MAX_KEYS];
	kv_rank_id id = add(x, sizes, 3);
	struct kv_prompt p = prompt(keys, 1, 300);
	hold_run(x, id, &p, 0, 300 / B, 7);
	assert_int_equal(hit(x, &p, id), 288);
	p.n_tok = 280;
	assert_int_equal(hit(x, &p, id), 192);
	assert_int_equal(kv_index_max_hit(x, &p, id), 192);
	hold(x, id, keys[17], 2, false);                /* the state at 288 of one group: back to where both have one */
	p.n_tok = 300;
	assert_int_equal(hit(x, &p, id), 192);
	kv_index_free(x);
}

static void case_non_contiguous_hits(void **state)
{
	(void)state;
	struct kv_index *x = kv_index_new();
	uint64_t keys[MAX_KEYS];
	kv_rank_id a = add(x, FULL, 1), b = add(x, FULL, 1);
	struct kv_prompt p = prompt(keys, 1, 200);
	hold_run(x, a, &p, 0, 12, 1);
	hold_run(x, b, &p, 0, 12, 1);
	hold(x, a, keys[0], 1, false);
	hold(x, b, keys[5], 1, false);
	assert_int_equal(hit(x, &p, a), 0);
	assert_int_equal(hit(x, &p, b), 80);
	kv_index_free(x);
}

/* Every warm rank is credited: with five, six, 130 and 300 holders of one key. */
static void case_index_keeps_10_endpoints(void **state)
{
	(void)state;
	enum { RANKS = 300 };
	struct kv_index *x = kv_index_new();
	uint64_t keys[MAX_KEYS];
	kv_rank_id ids[RANKS];
	uint32_t tok[RANKS];
	struct kv_prompt p = prompt(keys, 1, 400);
	for (uint32_t i = 0; i < RANKS; i++) {
		ids[i] = add(x, FULL, 1);
		hold_run(x, ids[i], &p, 0, i % 25, 1);
	}
	kv_index_hits(x, &p, ids, RANKS, tok, NULL);
	for (uint32_t i = 0; i < RANKS; i++)
		assert_int_equal(tok[i], i % 25 * B);
	for (uint32_t i = 3; i < RANKS; i++)
		for (uint32_t k = 0; k < i % 25; k++)
			hold(x, ids[i], keys[k], 1, false);
	kv_index_hits(x, &p, ids, RANKS, tok, NULL);
	for (uint32_t i = 0; i < RANKS; i++)
		assert_int_equal(tok[i], i < 3 ? i * B : 0);
	assert_int_equal(kv_index_stats(x).holdings, 3);
	kv_index_free(x);
}

/* Prompts in flight outlive a clear: it leads the batch of the next step. */
static void case_aibrix_2287_a_clear_leaves_the_prompts_in_flight(void **state)
{
	(void)state;
	struct kv_index *x = kv_index_new();
	uint64_t keys[MAX_KEYS], other[MAX_KEYS];
	kv_rank_id a = add(x, FULL, 1), b = add(x, FULL, 1);
	struct kv_prompt p = prompt(keys, 1, 100), q = prompt(other, 2, 100);
	hold_run(x, a, &p, 0, 6, 1);
	hold_run(x, a, &q, 0, 6, 1);
	hold_run(x, b, &p, 0, 6, 1);
	kv_flight f = kv_index_flight_begin(x, a, &q);
	kv_index_clear(x, a);
	assert_int_equal(hit(x, &p, a), 0);
	assert_int_equal(hit(x, &q, a), 96);
	assert_int_equal(hit(x, &p, b), 96);
	assert_int_equal(kv_index_rank_blocks(x, a), 0);
	hold_run(x, a, &p, 0, 2, 1);
	assert_int_equal(hit(x, &p, a), 32);
	kv_index_flight_end(x, f);
	assert_int_equal(hit(x, &q, a), 0);
	kv_index_free(x);
}

static void flights_are_counted_and_end_once(void **state)
{
	(void)state;
	struct kv_index *x = kv_index_new();
	uint64_t keys[MAX_KEYS];
	kv_rank_id a = add(x, FULL, 1), b = add(x, FULL, 1);
	struct kv_prompt p = prompt(keys, 1, 100);
	kv_flight f1 = kv_index_flight_begin(x, a, &p), f2 = kv_index_flight_begin(x, a, &p);
	assert_true(f1 && f2 && f1 != f2);
	assert_int_equal(hit(x, &p, a), 96);
	assert_int_equal(hit(x, &p, b), 0);
	kv_index_flight_end(x, f1);
	kv_index_flight_end(x, f1);
	kv_index_flight_end(x, 0);
	kv_index_flight_end(x, 0x7700000001);
	assert_int_equal(hit(x, &p, a), 96);
	kv_index_flight_end(x, f2);
	assert_int_equal(hit(x, &p, a), 0);
	struct kv_index_stats s = kv_index_stats(x);
	assert_true(s.flights == 0 && s.flight_entries == 0);
	/* A flight joins what is held to what comes behind it. */
	hold_run(x, a, &p, 3, 6, 1);
	struct kv_prompt head = { 50, 1, { { B, 3, keys } } };
	f1 = kv_index_flight_begin(x, a, &head);
	assert_int_equal(hit(x, &p, a), 96);
	kv_index_flight_end(x, f1);
	kv_index_free(x);
}

/* Window groups: the tail a resend goes on from, and the tail of its own match; nothing between. */
static void flights_of_a_hybrid_store_sparsely(void **state)
{
	(void)state;
	struct kv_index *x = kv_index_new();
	uint64_t keys[MAX_KEYS];
	kv_rank_id id = add(x, HYBRID, 3);
	struct kv_prompt p = prompt(keys, 1, 1000);
	kv_flight f = kv_index_flight_begin(x, id, &p);
	assert_int_equal(hit(x, &p, id), 992);
	p.n_tok = 900;                                  /* ends where no window was stored */
	assert_int_equal(hit(x, &p, id), 0);
	p.n_tok = 1000;
	kv_index_flight_end(x, f);
	hold_run(x, id, &p, 0, 40, 4);                  /* full attention alone */
	assert_int_equal(hit(x, &p, id), 0);
	f = kv_index_flight_begin(x, id, &p);           /* its match ends at 640 tokens: the next of the family can go on there */
	p.n_tok = 650;
	assert_int_equal(hit(x, &p, id), 640);
	kv_index_flight_end(x, f);
	assert_int_equal(kv_index_stats(x).flight_entries, 0);
	kv_index_free(x);
}

/* Groups become known while a prompt is in flight: it is put down anew. */
static void flights_follow_the_groups(void **state)
{
	(void)state;
	struct kv_index *x = kv_index_new();
	uint64_t keys[MAX_KEYS];
	kv_rank_id id;
	assert_int_equal(kv_index_rank_add(x, &id), ERR_OK);
	struct kv_prompt p = prompt(keys, 1, 1000);
	kv_flight f = kv_index_flight_begin(x, id, &p);
	assert_int_equal(hit(x, &p, id), 0);
	kv_index_groups(x, id, FULL, 1);
	assert_int_equal(hit(x, &p, id), 992);
	kv_index_groups(x, id, HYBRID, 3);
	assert_int_equal(hit(x, &p, id), 992);
	p.n_tok = 500;
	assert_int_equal(hit(x, &p, id), 0);
	kv_index_flight_end(x, f);
	assert_int_equal(kv_index_stats(x).flight_entries, 0);
	kv_index_free(x);
}

static void a_rank_that_goes_leaves_nothing(void **state)
{
	(void)state;
	struct kv_index *x = kv_index_new();
	uint64_t keys[MAX_KEYS];
	kv_rank_id a = add(x, FULL, 1), again, owner;
	uint32_t tok;
	struct kv_prompt p = prompt(keys, 1, 100);
	hold_run(x, a, &p, 0, 6, 1);
	kv_index_own(x, a, &p, (struct mono){ 1 });
	kv_flight f = kv_index_flight_begin(x, a, &p);
	kv_index_rank_del(x, a);
	assert_int_equal(hit(x, &p, a), 0);
	assert_int_equal(kv_index_flight_begin(x, a, &p), 0);
	again = add(x, FULL, 1);
	assert_int_equal(again, a);
	assert_int_equal(hit(x, &p, again), 0);
	assert_false(kv_index_owner(x, &p, &again, 1, 0, &owner, &tok));
	kv_index_flight_end(x, f);
	assert_int_equal(hit(x, &p, again), 0);
	struct kv_index_stats s = kv_index_stats(x);
	assert_true(s.flights == 0 && s.flight_entries == 0);
	kv_index_free(x);
}

/* routers 39 and 43: ranks come and go, caches clear; entries without a holder are freed, memory is flat. */
static void case_39_43_memory_is_flat_when_ranks_come_and_go(void **state)
{
	(void)state;
	struct kv_index *x = kv_index_new();
	uint64_t keys[MAX_KEYS];
	size_t steady = 0;
	for (uint32_t i = 0; i < 3000; i++) {
		kv_rank_id id = add(x, FULL, 1);
		struct kv_prompt p = prompt(keys, i, 256 * B);
		hold_run(x, id, &p, 0, 128, 1);
		kv_index_clear(x, id);
		hold_run(x, id, &p, 128, 256, 1);
		kv_flight f = kv_index_flight_begin(x, id, &p);
		kv_index_rank_del(x, id);
		kv_index_flight_end(x, f);
		if (i == 1500)
			steady = kv_index_stats(x).bytes;
	}
	struct kv_index_stats s = kv_index_stats(x);
	assert_true(s.holdings < 8 * 256);
	assert_true(s.bytes < steady + steady / 20);
	kv_index_free(x);
}

static void every_rank_id_can_be_in_use(void **state)
{
	(void)state;
	struct kv_index *x = kv_index_new();
	uint64_t keys[MAX_KEYS];
	kv_rank_id id = 0;
	struct kv_prompt p = prompt(keys, 1, 40);
	for (uint32_t i = 0; i < KV_MAX_RANKS; i++) {
		id = add(x, FULL, 1);
		hold_run(x, id, &p, 0, 2, 1);
	}
	kv_rank_id more;
	assert_int_equal(kv_index_rank_add(x, &more), ERR_LIMIT);
	assert_int_equal(hit(x, &p, id), 32);
	kv_index_clear(x, id);                          /* no seat is free: it waits for its own */
	assert_int_equal(hit(x, &p, id), 0);
	assert_int_equal(hit(x, &p, 0), 32);
	hold_run(x, id, &p, 0, 1, 1);
	assert_int_equal(hit(x, &p, id), 16);
	kv_index_free(x);
}

static void without_groups_or_keys_nothing_is_predicted(void **state)
{
	(void)state;
	struct kv_index *x = kv_index_new();
	uint64_t keys[MAX_KEYS];
	kv_rank_id id;
	assert_int_equal(kv_index_rank_add(x, &id), ERR_OK);
	struct kv_prompt p = prompt(keys, 1, 100);
	hold_run(x, id, &p, 0, 6, 1);
	assert_int_equal(hit(x, &p, id), 0);
	kv_index_groups(x, id, FULL, 1);
	assert_int_equal(hit(x, &p, id), 96);
	p.sets[0].block_size = 32;                      /* keyed for other workers */
	assert_int_equal(hit(x, &p, id), 0);
	p.n_sets = 0;
	assert_int_equal(hit(x, &p, id), 0);
	assert_int_equal(hit(x, &p, 77), 0);
	kv_index_free(x);
}

static void approximate_mode_is_a_bounded_lru(void **state)
{
	(void)state;
	struct kv_index *x = kv_index_new();
	uint64_t k1[MAX_KEYS], k2[MAX_KEYS], k3[MAX_KEYS];
	kv_rank_id id = add(x, FULL, 1);
	struct kv_prompt p1 = prompt(k1, 1, 65), p2 = prompt(k2, 2, 65), p3 = prompt(k3, 3, 65);
	kv_index_capacity(x, id, 10);
	kv_index_approx(x, id, true);
	kv_index_approx_note(x, id, &p1, (struct mono){ 1 });
	kv_index_approx_note(x, id, &p2, (struct mono){ 2 });
	assert_int_equal(hit(x, &p1, id), 64);
	kv_index_approx_note(x, id, &p1, (struct mono){ 3 });
	kv_index_approx_note(x, id, &p3, (struct mono){ 4 });
	assert_int_equal(hit(x, &p1, id), 64);
	assert_int_equal(hit(x, &p2, id), 32);          /* its tail went first */
	assert_int_equal(hit(x, &p3, id), 64);
	assert_int_equal(kv_index_rank_blocks(x, id), 10);
	struct kv_prompt longer = prompt(k1, 4, 320);
	kv_index_approx_note(x, id, &longer, (struct mono){ 5 });
	assert_int_equal(hit(x, &longer, id), 160);
	kv_index_approx(x, id, false);                  /* events came after all */
	assert_int_equal(hit(x, &longer, id), 0);
	kv_index_approx_note(x, id, &p1, (struct mono){ 6 });
	assert_int_equal(kv_index_rank_blocks(x, id), 0);
	kv_index_free(x);
}

/* A long prompt is put down piece by piece, tail first, and ends as if it had been put down at once. */
static void a_long_prompt_is_put_down_in_pieces(void **state)
{
	(void)state;
	enum { N = 1000, CAP = 1100 };
	struct kv_index *x = kv_index_new();
	static uint64_t k1[N], k2[N], k3[8];
	kv_rank_id id = add(x, FULL, 1), other = add(x, FULL, 1);
	for (size_t i = 0; i < N; i++) {
		k1[i] = hash_mix(i + 1);
		k2[i] = hash_mix(i + 5001);
	}
	struct kv_prompt a = { .n_tok = N * 16 + 1, .n_sets = 1, .sets = { { 16, N, k1 } } }, b = a, small = prompt(k3, 3, 65);
	b.sets[0].keys = k2;
	kv_index_capacity(x, id, CAP);
	kv_index_capacity(x, other, CAP);
	kv_index_approx(x, id, true);
	kv_index_approx(x, other, true);
	assert_false(kv_index_approx_work(x, 100));
	kv_index_approx_note(x, id, &a, (struct mono){ 1 });
	kv_index_approx_note(x, id, &small, (struct mono){ 2 });       /* in order: it waits for the long one */
	assert_int_equal(kv_index_rank_blocks(x, id), 0);
	assert_true(kv_index_approx_work(x, 300));
	assert_int_equal(kv_index_rank_blocks(x, id), 300);
	assert_int_equal(hit(x, &a, id), 0);
	assert_true(kv_index_approx_work(x, 700));
	assert_int_equal(hit(x, &a, id), N * 16);
	assert_int_equal(hit(x, &small, id), 0);
	assert_false(kv_index_approx_work(x, 4));
	assert_int_equal(hit(x, &small, id), 64);
	kv_index_approx_note(x, id, &b, (struct mono){ 3 });
	while (kv_index_approx_work(x, 7))
		;
	assert_int_equal(kv_index_rank_blocks(x, id), CAP);             /* 1000 new, the 4 before, and the head of the first */
	assert_int_equal(hit(x, &b, id), N * 16);
	assert_int_equal(hit(x, &small, id), 64);
	assert_int_equal(hit(x, &a, id), 96 * 16);
	kv_index_approx_note(x, other, &a, (struct mono){ 4 });         /* what is not meant any more is dropped */
	kv_index_approx_note(x, id, &a, (struct mono){ 5 });
	assert_true(kv_index_approx_work(x, 1));
	kv_index_rank_del(x, other);
	kv_rank_id again = add(x, FULL, 1);
	kv_index_approx(x, again, true);
	kv_index_approx(x, id, false);
	assert_false(kv_index_approx_work(x, 1));
	assert_int_equal(kv_index_rank_blocks(x, again) + kv_index_rank_blocks(x, id), 0);
	kv_index_approx(x, id, true);
	kv_index_approx_note(x, id, &a, (struct mono){ 6 });            /* and what still waits dies with the index */
	kv_index_free(x);
}

/* Events are lost for a while and come back where they stopped, without a clear: what they told is still there, what was
 * guessed meanwhile is not. */
static void events_that_come_back_find_their_blocks(void **state)
{
	(void)state;
	struct kv_index *x = kv_index_new();
	uint64_t k1[MAX_KEYS], k2[MAX_KEYS], k3[MAX_KEYS];
	kv_rank_id id = add(x, FULL, 1);
	struct kv_prompt told = prompt(k1, 1, 65), guessed = prompt(k2, 2, 65), both = prompt(k3, 3, 65);
	hold_run(x, id, &told, 0, 4, 1);
	kv_index_approx(x, id, true);
	kv_index_approx_note(x, id, &told, (struct mono){ 1 });
	kv_index_approx_note(x, id, &guessed, (struct mono){ 2 });
	kv_index_approx_note(x, id, &both, (struct mono){ 3 });
	assert_int_equal(hit(x, &told, id), 64);
	assert_int_equal(hit(x, &guessed, id), 64);
	hold_run(x, id, &both, 0, 2, 1);                /* the first events are here before the mode ends */
	kv_index_approx(x, id, false);
	assert_int_equal(hit(x, &told, id), 64);
	assert_int_equal(hit(x, &guessed, id), 0);
	assert_int_equal(hit(x, &both, id), 32);
	assert_int_equal(kv_index_rank_blocks(x, id), 6);
	/* Guesses made under provisional groups go with them. */
	kv_index_approx(x, id, true);
	kv_index_approx_note(x, id, &guessed, (struct mono){ 4 });
	kv_index_groups(x, id, HYBRID, 3);
	kv_index_approx(x, id, false);
	assert_int_equal(kv_index_rank_blocks(x, id), 6);
	kv_index_free(x);
}

static void owners_outlive_the_cache(void **state)
{
	(void)state;
	struct kv_index *x = kv_index_new();
	uint64_t keys[MAX_KEYS];
	kv_rank_id a = add(x, FULL, 1), b = add(x, FULL, 1), got = 99;
	kv_rank_id both[] = { a, b };
	uint32_t tok = 0;
	struct kv_prompt p = prompt(keys, 1, 200 * B + 1);
	assert_false(kv_index_owner(x, &p, both, 2, 0, &got, &tok));
	kv_index_own(x, a, &p, (struct mono){ 1000000 });
	kv_index_clear(x, a);
	assert_true(kv_index_owner(x, &p, both, 2, 100 * B, &got, &tok));
	assert_true(got == a && tok == 200 * B);
	/* Most of it shared, a longer and a shorter one. */
	struct kv_prompt most = { 180 * B + 1, 1, { { B, 180, keys } } };
	assert_true(kv_index_owner(x, &most, both, 2, 144 * B, &got, &tok));
	assert_true(got == a && tok >= 160 * B && tok <= 180 * B);
	uint64_t grown[MAX_KEYS];
	struct kv_prompt chat = prompt(grown, 9, 230 * B + 1);
	for (uint32_t i = 0; i < 200; i++)
		grown[i] = keys[i];
	assert_true(kv_index_owner(x, &chat, both, 2, 180 * B, &got, &tok));
	assert_true(got == a && tok >= 180 * B && tok <= 200 * B);
	assert_false(kv_index_owner(x, &chat, both, 2, 210 * B, &got, &tok));
	assert_false(kv_index_owner(x, &p, &b, 1, 0, &got, &tok));          /* not asked for */
	kv_index_own(x, b, &p, (struct mono){ 2000000 });                   /* the last owner counts */
	assert_true(kv_index_owner(x, &p, both, 2, 0, &got, &tok));
	assert_int_equal(got, b);
	kv_index_free(x);
}

/* Endless owners: the table stays, the youngest are in it. */
static void owner_memory_is_bounded(void **state)
{
	(void)state;
	struct kv_index *x = kv_index_new();
	uint64_t keys[MAX_KEYS];
	kv_rank_id id = add(x, FULL, 1), got;
	uint32_t tok;
	kv_index_capacity(x, id, 1000);
	size_t before = kv_index_stats(x).bytes;
	for (uint32_t i = 0; i < 20000; i++) {
		struct kv_prompt p = prompt(keys, i, 64);
		kv_index_own(x, id, &p, (struct mono){ (int64_t)i * 2000 });
	}
	assert_int_equal(kv_index_stats(x).bytes, before);
	assert_true(kv_index_stats(x).owners <= 1024);
	struct kv_prompt p = prompt(keys, 19999, 64);
	assert_true(kv_index_owner(x, &p, &id, 1, 48, &got, &tok));
	kv_index_free(x);
}

static void offload(struct kv_index *x, kv_rank_id id, const struct kv_prompt *p, uint32_t from, uint32_t to, enum kv_tier tier)
{
	for (uint32_t i = from; i < to; i++)
		kv_index_apply(x, id, &(struct kv_delta){ .key = p->sets[0].keys[i], .add_groups = 1, .tier = tier }, 1);
}

/* Where the GPU's run ends the tiers below go on; what is behind a gap, or on the GPU behind it, does not count. */
static void a_hit_goes_on_below_the_gpu(void **state)
{
	(void)state;
	struct kv_index *x = kv_index_new();
	uint64_t keys[MAX_KEYS];
	struct kv_prompt p = prompt(keys, 1, 12 * B);
	kv_rank_id ids[6];
	uint32_t tok[6];
	struct kv_load load[6];
	for (size_t i = 0; i < 6; i++)
		ids[i] = add(x, FULL, 1);
	hold_run(x, ids[0], &p, 0, 4, 1);              /* GPU alone */
	hold_run(x, ids[1], &p, 0, 4, 1);              /* then CPU, then storage, then a gap */
	offload(x, ids[1], &p, 3, 7, KV_TIER_CPU);
	offload(x, ids[1], &p, 6, 9, KV_TIER_STORAGE);
	offload(x, ids[1], &p, 10, 12, KV_TIER_CPU);
	offload(x, ids[2], &p, 0, 12, KV_TIER_CPU);    /* CPU alone, to the last token */
	hold_run(x, ids[3], &p, 6, 12, 1);             /* the GPU's blocks behind its own gap are not asked for */
	offload(x, ids[3], &p, 0, 6, KV_TIER_CPU);
	hold_run(x, ids[4], &p, 0, 12, 1);             /* all on both: the last block comes from the CPU */
	offload(x, ids[4], &p, 0, 12, KV_TIER_CPU);
	kv_index_hits(x, &p, ids, 6, tok, load);
	const uint32_t want[6][3] = { { 4, 0, 0 }, { 9, 3, 2 }, { 12, 12, 0 }, { 6, 6, 0 }, { 12, 1, 0 }, { 0, 0, 0 } };
	for (size_t i = 0; i < 6; i++) {
		assert_int_equal(tok[i], want[i][0] * B);
		assert_int_equal(load[i].cpu_tok, want[i][1] * B);
		assert_int_equal(load[i].storage_tok, want[i][2] * B);
	}
	assert_int_equal(kv_index_rank_blocks(x, ids[1]), 4);
	assert_int_equal(kv_index_rank_lower_blocks(x, ids[1]), 9);
	kv_index_clear(x, ids[2]);
	assert_int_equal(hit(x, &p, ids[2]), 0);
	assert_int_equal(kv_index_rank_lower_blocks(x, ids[2]), 0);
	kv_index_apply(x, ids[4], &(struct kv_delta){ .key = keys[11], .del_groups = 1, .tier = KV_TIER_CPU }, 1);
	assert_int_equal(hit(x, &p, ids[4]), 11 * B);
	kv_index_free(x);
}

/* More holders than a slot has room for, on the CPU too; each with its own end. */
static void many_ranks_hold_it_below(void **state)
{
	(void)state;
	enum { RANKS = 150 };
	struct kv_index *x = kv_index_new();
	uint64_t keys[MAX_KEYS];
	kv_rank_id ids[RANKS];
	uint32_t tok[RANKS];
	struct kv_load load[RANKS];
	struct kv_prompt p = prompt(keys, 1, 400);
	for (uint32_t i = 0; i < RANKS; i++) {
		ids[i] = add(x, FULL, 1);
		hold_run(x, ids[i], &p, 0, i % 7, 1);
		offload(x, ids[i], &p, 0, i % 25, KV_TIER_CPU);
	}
	kv_index_hits(x, &p, ids, RANKS, tok, load);
	for (uint32_t i = 0; i < RANKS; i++) {
		assert_int_equal(tok[i], MAX(i % 7, i % 25) * B);
		assert_int_equal(load[i].cpu_tok, (MAX(i % 7, i % 25) - i % 7) * B);
	}
	kv_index_free(x);
}

/* Windows and states below the GPU are not predicted: the GPU's hit stands. */
static void hybrids_are_counted_on_the_gpu(void **state)
{
	(void)state;
	struct kv_index *x = kv_index_new();
	uint64_t keys[MAX_KEYS];
	struct kv_prompt p = prompt(keys, 1, 200);
	kv_rank_id id = add(x, HYBRID, 3);
	hold_run(x, id, &p, 0, 6, 7);
	offload(x, id, &p, 6, 12, KV_TIER_CPU);
	assert_int_equal(hit(x, &p, id), 96);
	kv_index_free(x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_last_token_is_never_a_hit),
		cmocka_unit_test(a_hit_ends_where_blocks_of_all_sizes_end),
		cmocka_unit_test(case_non_contiguous_hits),
		cmocka_unit_test(case_index_keeps_10_endpoints),
		cmocka_unit_test(case_aibrix_2287_a_clear_leaves_the_prompts_in_flight),
		cmocka_unit_test(flights_are_counted_and_end_once),
		cmocka_unit_test(flights_of_a_hybrid_store_sparsely),
		cmocka_unit_test(flights_follow_the_groups),
		cmocka_unit_test(a_rank_that_goes_leaves_nothing),
		cmocka_unit_test(case_39_43_memory_is_flat_when_ranks_come_and_go),
		cmocka_unit_test(every_rank_id_can_be_in_use),
		cmocka_unit_test(without_groups_or_keys_nothing_is_predicted),
		cmocka_unit_test(approximate_mode_is_a_bounded_lru), cmocka_unit_test(a_long_prompt_is_put_down_in_pieces),
		cmocka_unit_test(events_that_come_back_find_their_blocks),
		cmocka_unit_test(owners_outlive_the_cache),
		cmocka_unit_test(owner_memory_is_bounded),
		cmocka_unit_test(a_hit_goes_on_below_the_gpu),
		cmocka_unit_test(many_ranks_hold_it_below),
		cmocka_unit_test(hybrids_are_counted_on_the_gpu),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
