/* Random histories against naive models: the feed half against plain counts, the brain half's hits against the rule read
 * off the page, candidate by candidate. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/hash.h"
#include "base/rand.h"
#include "kit.h"

/* ---- the feed half: chains of blocks, in three groups, with copies ---- */

enum { CHAINS = 12, LENGTH = 10, GROUPS = 3, BLOCK = 8 };

struct model { int copies[CHAINS][LENGTH][GROUPS]; };

static bool block_held(const struct model *m, uint32_t c, uint32_t i)
{
	for (uint32_t g = 0; g < GROUPS; g++)
		if (m->copies[c][i][g])
			return true;
	return false;
}

/* Stores blocks [from, to) of a chain in group 0 (full attention), some of them sparsely in another before it. */
static void model_store(struct kit *k, struct model *m, struct rand *r)
{
	uint32_t c = (uint32_t)rand_below(r, CHAINS), from = 0;
	while (from < LENGTH && m->copies[c][from][0] && rand_below(r, 8))
		from++;
	if (from == LENGTH || (from && !block_held(m, c, from - 1)))
		return;
	uint32_t to = from + 1 + (uint32_t)rand_below(r, LENGTH - from), g = 1 + (uint32_t)rand_below(r, GROUPS - 1);
	struct kv_event *sparse = kit_store(k, c, from, to - from, BLOCK);
	uint32_t n = (uint32_t)rand_below(r, to - from + 1);
	sparse->group = g;
	sparse->kind = KV_GROUP_WINDOW;
	sparse->window_tok = 24;
	sparse->hashes += to - from - n;
	sparse->n_hashes = n;
	sparse->extras = n == to - from ? sparse->extras : NULL;
	kit_store(k, c, from, to - from, BLOCK);
	for (uint32_t i = from; i < to; i++) {
		m->copies[c][i][0]++;
		m->copies[c][i][g] += i >= to - n;
	}
}

static void model_remove(struct kit *k, struct model *m, struct rand *r)
{
	uint32_t c = (uint32_t)rand_below(r, CHAINS), i = (uint32_t)rand_below(r, LENGTH), g = (uint32_t)rand_below(r, GROUPS);
	struct kv_event *e = kit_remove(k, c, i);
	e->group = g;
	e->group_known = rand_below(r, 4) != 0;
	for (uint32_t j = 0; j < GROUPS; j++)
		if (m->copies[c][i][j] && (!e->group_known || j == g))
			m->copies[c][i][j]--;
}

static void compare(struct kit *k, const struct model *m, const uint64_t keys[CHAINS][LENGTH])
{
	size_t n = 0;
	for (uint32_t c = 0; c < CHAINS; c++)
		for (uint32_t i = 0; i < LENGTH; i++)
			for (uint32_t g = 0; g < GROUPS; g++) {
				assert_int_equal(kit_holds(k, keys[c][i], g), m->copies[c][i][g] > 0);
				n += m->copies[c][i][g] > 0;
			}
	assert_int_equal(k->held.n, n);
	assert_int_equal(k->wrong, 0);
}

static void the_feed_half_counts_as_a_plain_table_does(void **state)
{
	(void)state;
	uint64_t keys[CHAINS][LENGTH];
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct rand r = { seed };
		struct model m = { 0 };
		struct kit k;
		kit_init(&k);
		for (uint32_t c = 0; c < CHAINS; c++)
			for (uint32_t i = 0; i < LENGTH; i++)
				keys[c][i] = kit_key(&k, c, i, BLOCK);
		for (uint32_t seq = 0; seq < 400; seq++) {
			for (uint64_t op = rand_below(&r, 6); op; op--) {
				uint64_t dice = rand_below(&r, 100);
				if (dice == 0) {
					kit_clear(&k);
					memset(&m, 0, sizeof(m));
				} else if (dice < 45) {
					model_store(&k, &m, &r);
				} else {
					model_remove(&k, &m, &r);
				}
			}
			assert_int_equal(kit_send(&k, seq), KV_ACT_NONE);
			compare(&k, &m, keys);
			arena_done(&k.a);
		}
		assert_int_equal(kv_rank_stats(k.r).unplaced, 0);
		kit_done(&k);
	}
}

/* ---- the brain half ---- */

enum { FLIGHTS = 12, FLEET = 9, PROMPTS = 6, TOKENS = 700, MAX_BLOCKS = TOKENS / 8 };

struct layout { struct kv_group g[4]; size_t n; };
static const struct layout LAYOUTS[] = {
	{ { { KV_GROUP_FULL, 0, 8 } }, 1 },
	{ { { KV_GROUP_FULL, 0, 16 }, { KV_GROUP_FULL, 0, 16 } }, 2 },
	{ { { KV_GROUP_WINDOW, 40, 8 }, { KV_GROUP_FULL, 0, 8 } }, 2 },
	{ { { KV_GROUP_MAMBA, 0, 32 }, { KV_GROUP_FULL, 0, 8 }, { KV_GROUP_MAMBA, 0, 32 } }, 3 },
	{ { { KV_GROUP_WINDOW, 20, 8 }, { KV_GROUP_WINDOW, 70, 16 }, { KV_GROUP_FULL, 0, 8 }, { KV_GROUP_MAMBA, 0, 16 } }, 4 },
	{ { { KV_GROUP_WINDOW, 33, 8 } }, 1 },
	{ { { KV_GROUP_CHUNKED, 64, 8 }, { KV_GROUP_FULL, 0, 8 } }, 2 },
	{ { { KV_GROUP_FULL, 0, 16 }, { KV_GROUP_FULL, 0, 8 }, { KV_GROUP_WINDOW, 17, 16 } }, 3 },
	{ { { KV_GROUP_UNKNOWN, 0, 8 }, { KV_GROUP_MAMBA, 0, 8 } }, 2 },
};

/* keys[size class 0: blocks of 8, 1: of 16]; a rank's keys are chained in its smallest size. */
struct fleet {
	struct kv_index *x;
	kv_rank_id ids[FLEET];
	const struct layout *layout[FLEET];
	uint64_t keys[PROMPTS][2][MAX_BLOCKS];
	bool held[FLEET][PROMPTS][4][MAX_BLOCKS];      /* by rank, prompt, group, block of the group's size */
	struct flight { kv_flight h; size_t rank, p; uint32_t n_tok, match_tok; } flights[FLIGHTS];
};

/* Will this prompt in flight hold the block? Full attention: all whole blocks; a window: the tail of a resend and that of
 * its own match; the last chunk; no Mamba state. */
static bool vouches(const struct kv_group *g, const struct flight *f, uint32_t block)
{
	uint32_t end = (f->n_tok - 1) / g->block_size, match = f->match_tok / g->block_size;
	uint32_t need = g->window_tok ? (g->window_tok - 1 + g->block_size - 1) / g->block_size : 0;
	switch (g->kind) {
	case KV_GROUP_WINDOW: return (block < end && block + need >= end) || (block < match && block + need >= match);
	case KV_GROUP_CHUNKED: return block < end && block >= (f->n_tok - 1) / g->window_tok * g->window_tok / g->block_size;
	case KV_GROUP_MAMBA: return false;
	case KV_GROUP_FULL:
	case KV_GROUP_UNKNOWN: break;
	}
	return block < f->n_tok / g->block_size;
}

static uint32_t unit_of(const struct layout *l)
{
	uint32_t u = l->g[0].block_size;
	for (size_t i = 1; i < l->n; i++)
		u = MIN(u, l->g[i].block_size);
	return u;
}

static uint64_t key_of(const struct fleet *f, size_t rank, size_t p, size_t g, uint32_t block)
{
	uint32_t unit = unit_of(f->layout[rank]), step = f->layout[rank]->g[g].block_size / unit;
	return f->keys[p][unit == 16][(block + 1) * step - 1];
}

static bool held(const struct fleet *f, size_t rank, size_t p, size_t g, uint32_t block)
{
	bool yes = f->held[rank][p][g][block];
	for (size_t i = 0; i < FLIGHTS && !yes; i++)
		yes = f->flights[i].h && f->flights[i].rank == rank && f->flights[i].p == p && vouches(&f->layout[rank]->g[g], &f->flights[i], block);
	return yes;
}

static bool holds(const struct fleet *f, size_t rank, size_t p, size_t g, uint32_t n_blocks, uint32_t from)
{
	for (uint32_t i = from; i < n_blocks; i++)
		if (!held(f, rank, p, g, i))
			return false;
	return true;
}

/* May a hit end behind n tokens, as far as this group goes? */
static bool group_allows(const struct fleet *f, size_t rank, size_t p, size_t g, uint32_t n)
{
	const struct kv_group *k = &f->layout[rank]->g[g];
	uint32_t blocks = n / k->block_size;
	if (n == 0)
		return true;
	if (k->kind == KV_GROUP_MAMBA)
		return held(f, rank, p, g, blocks - 1);
	if (k->kind == KV_GROUP_WINDOW) {
		uint32_t need = (k->window_tok - 1 + k->block_size - 1) / k->block_size;
		return holds(f, rank, p, g, blocks, blocks > need ? blocks - need : 0);
	}
	if (k->kind == KV_GROUP_CHUNKED)
		return holds(f, rank, p, g, blocks, n / k->window_tok * k->window_tok / k->block_size);
	return holds(f, rank, p, g, blocks, 0);
}

/* The longest aligned length that every group allows: what the fixed point must find. */
static uint32_t brute(const struct fleet *f, size_t rank, size_t p, uint32_t n_tok)
{
	uint32_t align = 1;
	for (size_t g = 0; g < f->layout[rank]->n; g++)
		align = MAX(align, f->layout[rank]->g[g].block_size);      /* powers of two */
	for (uint32_t n = (n_tok - 1) / align * align; n > 0; n -= align) {
		bool all = true;
		for (size_t g = 0; g < f->layout[rank]->n && all; g++)
			all = group_allows(f, rank, p, g, n);
		if (all)
			return n;
	}
	return 0;
}

static void fleet_init(struct fleet *f, struct rand *r)
{
	f->x = kv_index_new();
	for (size_t i = 0; i < FLEET; i++) {
		f->layout[i] = &LAYOUTS[i % ARRAY_LEN(LAYOUTS)];
		assert_int_equal(kv_index_rank_add(f->x, &f->ids[i]), ERR_OK);
		kv_index_groups(f->x, f->ids[i], f->layout[i]->g, f->layout[i]->n);
	}
	for (size_t p = 0; p < PROMPTS; p++)
		for (int s = 0; s < 2; s++)
			for (size_t i = 0; i < MAX_BLOCKS; i++)
				f->keys[p][s][i] = rand_u64(r);
}

static void set(struct fleet *f, size_t rank, size_t p, size_t g, uint32_t block, bool yes)
{
	struct kv_delta d = { .key = key_of(f, rank, p, g, block) };
	*(yes ? &d.add_groups : &d.del_groups) = 1u << g;
	kv_index_apply(f->x, f->ids[rank], &d, 1);
	f->held[rank][p][g][block] = yes;
}

/* A stretch stored or evicted in one group or in all. */
static void change(struct fleet *f, struct rand *r)
{
	size_t rank = rand_below(r, FLEET), p = rand_below(r, PROMPTS), only = rand_below(r, 8);
	bool yes = rand_below(r, 10) < 6;
	uint32_t from_tok = rand_below(r, 3) ? 0 : (uint32_t)rand_below(r, TOKENS), n_tok = (uint32_t)rand_below(r, yes ? TOKENS : 60);
	for (size_t g = 0; g < f->layout[rank]->n; g++)
		for (uint32_t b = 0, size = f->layout[rank]->g[g].block_size; b < TOKENS / size; b++)
			if ((only >= 4 || only == g) && b * size >= from_tok && b * size < from_tok + n_tok)
				set(f, rank, p, g, b, yes);
}

/* Where full attention alone would end: the first such group's, and those of its size. */
static uint32_t own_match(const struct fleet *f, size_t rank, size_t p, uint32_t n_tok)
{
	const struct layout *l = f->layout[rank];
	uint32_t size = 0, n = 0;
	for (size_t g = 0; g < l->n; g++)
		if (!size && (l->g[g].kind == KV_GROUP_FULL || l->g[g].kind == KV_GROUP_UNKNOWN))
			size = l->g[g].block_size;
	for (bool all = size != 0; all && (n + 1) * size <= n_tok - 1; n += all)
		for (size_t g = 0; g < l->n; g++)
			if ((l->g[g].kind == KV_GROUP_FULL || l->g[g].kind == KV_GROUP_UNKNOWN) && l->g[g].block_size == size)
				all = all && held(f, rank, p, g, n);
	return n * size;
}

static struct kv_prompt prompt_of(const struct fleet *f, size_t p, uint32_t n_tok)
{
	return (struct kv_prompt){ n_tok, 2, { { 8, n_tok / 8, f->keys[p][0] }, { 16, n_tok / 16, f->keys[p][1] } } };
}

static void fly(struct fleet *f, struct rand *r)
{
	struct flight *fl = &f->flights[rand_below(r, FLIGHTS)];
	kv_index_flight_end(f->x, fl->h);
	*fl = (struct flight){ 0 };
	if (rand_below(r, 3) == 0)
		return;
	struct flight now = { .rank = rand_below(r, FLEET), .p = rand_below(r, PROMPTS), .n_tok = 1 + (uint32_t)rand_below(r, TOKENS) };
	now.match_tok = own_match(f, now.rank, now.p, now.n_tok);
	struct kv_prompt kp = prompt_of(f, now.p, now.n_tok);
	now.h = kv_index_flight_begin(f->x, f->ids[now.rank], &kp);
	*fl = now;
}

static void compare_hits(struct fleet *f, struct rand *r)
{
	uint32_t tok[FLEET], n_tok = 1 + (uint32_t)rand_below(r, TOKENS);
	for (size_t p = 0; p < PROMPTS; p++) {
		struct kv_prompt kp = prompt_of(f, p, n_tok);
		kv_index_hits(f->x, &kp, f->ids, FLEET, tok, NULL);
		for (size_t i = 0; i < FLEET; i++)
			assert_int_equal(tok[i], brute(f, i, p, n_tok));
	}
}

static void hits_follow_each_groups_rule(void **state)
{
	(void)state;
	static struct fleet f;
	for (uint64_t seed = 1; seed <= 6; seed++) {
		struct rand r = { seed };
		memset(&f, 0, sizeof(f));
		fleet_init(&f, &r);
		for (int i = 0; i < 500; i++) {
			change(&f, &r);
			fly(&f, &r);
			if (rand_below(&r, 60) == 0) {
				size_t rank = rand_below(&r, FLEET);
				kv_index_clear(f.x, f.ids[rank]);
				memset(f.held[rank], 0, sizeof(f.held[rank]));
			}
			compare_hits(&f, &r);
		}
		for (size_t i = 0; i < FLIGHTS; i++)
			kv_index_flight_end(f.x, f.flights[i].h);
		assert_int_equal(kv_index_stats(f.x).flight_entries, 0);
		kv_index_free(f.x);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_feed_half_counts_as_a_plain_table_does),
		cmocka_unit_test(hits_follow_each_groups_rule),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
