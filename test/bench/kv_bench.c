/* The bars of the index, one line each: events applied per second, bytes per (block, rank), time of a hits query. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/hash.h"
#include "base/rand.h"
#include "engine/engine.h"
#include "kv/index.h"
#include "kv/rank.h"
#include "wire/msgpack.h"

enum { BLOCK = 16, RANKS = 100, PROMPT_BLOCKS = 6250, ROUNDS = 200 };

/* Time this thread spent on a core: other work on the machine does not count, the cache it takes does. */
static double now_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* ---- one rank from the wire to the index ---- */

struct feed { struct kv_index *x; kv_rank_id id; struct kv_rank *r; uint64_t seq, next_block, oldest; struct rand rand; };

static void on_deltas(void *arg, const struct kv_delta *d, size_t n) { kv_index_apply(((struct feed *)arg)->x, ((struct feed *)arg)->id, d, n); }
static void on_clear(void *arg) { kv_index_clear(((struct feed *)arg)->x, ((struct feed *)arg)->id); }
static void on_groups(void *arg, const struct kv_group *g, size_t n) { kv_index_groups(((struct feed *)arg)->x, ((struct feed *)arg)->id, g, n); }

static void feed_init(struct feed *f, struct kv_index *x, uint64_t seed, uint32_t capacity)
{
	static const struct kv_rank_sink sink = { on_deltas, on_clear, on_groups };
	*f = (struct feed){ .x = x, .next_block = seed << 40, .oldest = seed << 40, .rand = { seed } };
	if (kv_index_rank_add(x, &f->id) != ERR_OK)
		abort();
	f->r = kv_rank_new(&sink, f);
	kv_rank_capacity(f->r, capacity);
	kv_index_capacity(x, f->id, capacity);
}

static uint64_t engine_hash(uint64_t block) { return hash_mix(block * 2 + 1); }

/* What one step of a real worker sends: a removal per evicted block, then one store of a prompt's blocks. */
static void encode_step(struct feed *f, struct buf *b, uint32_t blocks, uint32_t evict)
{
	static const char *const keys[] = { "block_hashes", "parent_block_hash", "token_ids", "block_size", "lora_id", "medium", "lora_name", "extra_keys", "group_idx", "kv_cache_spec_kind" };
	struct msgpack_out o = msgpack_out(b);
	msgpack_write_array(&o, 3);
	msgpack_write_float(&o, (double)f->seq + 1);
	msgpack_write_array(&o, evict + 1);
	for (uint32_t i = 0; i < evict; i++) {
		msgpack_write_map(&o, 4);
		msgpack_write_str(&o, STR("type")), msgpack_write_str(&o, STR("BlockRemoved"));
		msgpack_write_str(&o, STR("block_hashes")), msgpack_write_array(&o, 1), msgpack_write_uint(&o, engine_hash(f->oldest++));
		msgpack_write_str(&o, STR("medium")), msgpack_write_str(&o, STR("GPU"));
		msgpack_write_str(&o, STR("group_idx")), msgpack_write_uint(&o, 0);
	}
	msgpack_write_map(&o, 1 + ARRAY_LEN(keys));
	msgpack_write_str(&o, STR("type")), msgpack_write_str(&o, STR("BlockStored"));
	for (size_t k = 0; k < ARRAY_LEN(keys); k++) {
		msgpack_write_str(&o, str_of(keys[k]));
		switch (k) {
		case 0:
			msgpack_write_array(&o, blocks);
			for (uint32_t i = 0; i < blocks; i++)
				msgpack_write_uint(&o, engine_hash(f->next_block++));
			break;
		case 2:
			msgpack_write_array(&o, blocks * BLOCK);
			for (uint32_t i = 0; i < blocks * BLOCK; i++)
				msgpack_write_uint(&o, rand_below(&f->rand, 150000));
			break;
		case 3: msgpack_write_uint(&o, BLOCK); break;
		case 5: msgpack_write_str(&o, STR("GPU")); break;
		case 7:
			msgpack_write_array(&o, blocks);
			for (uint32_t i = 0; i < blocks; i++)
				msgpack_write_nil(&o);
			break;
		case 8: msgpack_write_uint(&o, 0); break;
		case 9: msgpack_write_str(&o, STR("full_attention")); break;
		default: msgpack_write_nil(&o);
		}
	}
	msgpack_write_uint(&o, 0);
	if (o.err != ERR_OK)
		abort();
}

/* Encodes first, then measures decode + rank + index over the same bytes. */
static double feed_steps(struct feed *f, uint32_t steps, uint32_t blocks, uint32_t evict)
{
	struct buf b;
	size_t *ends = malloc((steps + 1) * sizeof(*ends));
	buf_init(&b, (size_t)1 << 30);
	ends[0] = 0;
	for (uint32_t i = 0; i < steps; i++) {
		encode_step(f, &b, blocks, evict);
		ends[i + 1] = b.n;
	}
	const struct engine *e = engine_of(STR(""));
	struct arena a;
	struct kv_batch batch;
	arena_init(&a, 0);
	double start = now_us();
	for (uint32_t i = 0; i < steps; i++) {
		struct arena_mark mark = arena_mark(&a);
		if (e->events(str_sub(buf_str(&b), ends[i], ends[i + 1] - ends[i]), &a, &batch) != ERR_OK)
			abort();
		kv_rank_batch(f->r, f->seq++, &batch, false);
		arena_rewind(&a, mark);
	}
	double took = now_us() - start;
	arena_done(&a);
	buf_done(&b);
	free(ends);
	return took;
}

static void bench_feed(void)
{
	struct kv_index *x = kv_index_new();
	struct feed f;
	enum { CAPACITY = 60000, STEPS = 4000, BLOCKS = 32 };
	feed_init(&f, x, 1, CAPACITY);
	feed_steps(&f, CAPACITY / BLOCKS, BLOCKS, 0);
	double us = feed_steps(&f, STEPS, BLOCKS, BLOCKS);
	printf("kv feed: decode + rank + index, blocks of %d, each step stores %d and evicts %d: %.2f M blocks/s stored (%.2f M changes/s)\n", BLOCK,
		BLOCKS, BLOCKS, STEPS * BLOCKS / us, 2.0 * STEPS * BLOCKS / us);
	kv_rank_free(f.r);
	feed_init(&f, x, 2, CAPACITY);
	feed_steps(&f, CAPACITY / BLOCKS / 2, BLOCKS, 0);
	us = feed_steps(&f, 400, 64, 0);
	printf("kv feed: stores only, 64 blocks a step, the cache half full to nine tenths: %.2f M blocks/s\n", 400 * 64 / us);
	kv_rank_free(f.r);
	kv_index_free(x);
}

static void bench_memory(void)
{
	enum { N = 16, CAPACITY = 60000 };
	struct kv_index *x = kv_index_new();
	struct feed f[N];
	size_t rank_bytes = 0;
	size_t empty = kv_index_stats(x).bytes - kv_index_stats(x).owner_bytes;
	for (int i = 0; i < N; i++) {
		feed_init(&f[i], x, (uint64_t)i + 1, CAPACITY);
		feed_steps(&f[i], CAPACITY / 100, 100, 0);
		rank_bytes += kv_rank_stats(f[i].r).bytes;
	}
	struct kv_index_stats s = kv_index_stats(x);
	double n = (double)s.holdings;
	printf("kv memory: %.0f (block, rank) pairs, none shared: index %.1f B, rank %.1f B, together %.1f B each; owner memory %.1f B\n", n,
		(double)(s.bytes - empty - s.owner_bytes) / n, (double)rank_bytes / n, (double)(s.bytes - empty - s.owner_bytes + rank_bytes) / n,
		(double)s.owner_bytes / n);
	for (int i = 0; i < N; i++)
		kv_rank_free(f[i].r);
	kv_index_free(x);
}

/* ---- hits ---- */

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

struct fleet { struct kv_index *x; kv_rank_id ids[RANKS]; uint64_t *keys; struct kv_prompt p; };

static void hold(struct fleet *f, size_t rank, const uint64_t *keys, size_t n)
{
	struct kv_delta d[500];
	for (size_t at = 0; at < n; at += 500) {
		size_t m = MIN(n - at, (size_t)500);
		for (size_t i = 0; i < m; i++)
			d[i] = (struct kv_delta){ .key = keys[at + i], .add_groups = 1 };
		kv_index_apply(f->x, f->ids[rank], d, m);
	}
}

/* Each rank also holds 20,000 blocks of its own, so that the prompt's keys lie in a large table. */
static void fleet_init(struct fleet *f, bool full)
{
	struct rand r = { 7 };
	uint64_t own[2000];
	f->x = kv_index_new();
	f->keys = malloc(PROMPT_BLOCKS * sizeof(*f->keys));
	for (int i = 0; i < PROMPT_BLOCKS; i++)
		f->keys[i] = rand_u64(&r);
	f->p = (struct kv_prompt){ PROMPT_BLOCKS * BLOCK, 1, { { BLOCK, PROMPT_BLOCKS, f->keys } } };
	for (int i = 0; i < RANKS; i++) {
		if (kv_index_rank_add(f->x, &f->ids[i]) != ERR_OK)
			abort();
		kv_index_groups(f->x, f->ids[i], &(struct kv_group){ KV_GROUP_FULL, 0, BLOCK }, 1);
		hold(f, (size_t)i, f->keys, full ? PROMPT_BLOCKS : rand_below(&r, PROMPT_BLOCKS));
		for (int j = 0; j < 10; j++) {
			for (size_t k = 0; k < ARRAY_LEN(own); k++)
				own[k] = rand_u64(&r);
			hold(f, (size_t)i, own, ARRAY_LEN(own));
		}
	}
}

static uint64_t sum;

/* Walks over more than any cache holds. */
static void chill(uint64_t *trash, size_t n)
{
	for (size_t i = 0; i < n; i += 8)
		sum += trash[i]++;
}

/* What the machine itself takes to load as many lines, spread over as much memory, with nothing to do on them. */
static void bench_floor(void)
{
	enum { COLD = 60 };
	size_t n = (size_t)44 << 17, n_trash = (size_t)64 << 17;
	uint64_t *table = calloc(n, sizeof(*table)), *trash = calloc(n_trash, sizeof(*trash));
	uint32_t *at = malloc(PROMPT_BLOCKS * sizeof(*at));
	double warm[ROUNDS], cold[COLD];
	struct rand r = { 3 };
	for (size_t i = 0; i < n; i++)
		table[i] = i;
	for (int i = 0; i < PROMPT_BLOCKS; i++)
		at[i] = (uint32_t)rand_below(&r, n / 8) * 8;
	for (int round = 0; round < ROUNDS + COLD; round++) {
		if (round >= ROUNDS)
			chill(trash, n_trash);
		double t = now_us();
		for (int i = 0; i < PROMPT_BLOCKS; i++)
			sum += table[at[i]];
		*(round < ROUNDS ? &warm[round] : &cold[round - ROUNDS]) = now_us() - t;
	}
	qsort(warm, ROUNDS, sizeof(*warm), by_value);
	qsort(cold, COLD, sizeof(*cold), by_value);
	printf("floor: %d plain loads over 44 MB: warm p50 %.1f us p99 %.1f us, cold p50 %.1f us p99 %.1f us\n", PROMPT_BLOCKS, warm[ROUNDS / 2],
		warm[ROUNDS * 99 / 100], cold[COLD / 2], cold[COLD - 1]);
	free(table);
	free(trash);
	free(at);
}

/* One hot prompt sent to every rank before any event came: all of its hits are prompts in flight. */
static void bench_flights(void)
{
	struct fleet f;
	uint32_t hit[RANKS];
	double warm[ROUNDS];
	fleet_init(&f, true);
	for (int i = 0; i < RANKS; i++) {
		kv_index_clear(f.x, f.ids[i]);
		kv_index_flight_begin(f.x, f.ids[i], &f.p);
	}
	for (int i = 0; i < ROUNDS; i++) {
		double t = now_us();
		kv_index_hits(f.x, &f.p, f.ids, RANKS, hit, NULL);
		warm[i] = now_us() - t;
	}
	if (hit[RANKS - 1] != (PROMPT_BLOCKS - 1) * BLOCK)
		abort();
	qsort(warm, ROUNDS, sizeof(*warm), by_value);
	printf("kv hits: the same prompt in flight at all %d ranks, nothing held: warm p50 %.1f us p99 %.1f us\n", RANKS, warm[ROUNDS / 2],
		warm[ROUNDS * 99 / 100]);
	kv_index_free(f.x);
	free(f.keys);
}

static void bench_hits(bool full)
{
	enum { COLD = 60 };
	struct fleet f;
	uint32_t hit[RANKS];
	double warm[ROUNDS], cold[COLD];
	size_t n_trash = (size_t)64 << 17;
	uint64_t *trash = calloc(n_trash, sizeof(*trash));
	fleet_init(&f, full);
	for (int i = -5; i < ROUNDS; i++) {
		double t = now_us();
		kv_index_hits(f.x, &f.p, f.ids, RANKS, hit, NULL);
		warm[MAX(i, 0)] = now_us() - t;
	}
	for (int i = 0; i < COLD; i++) {
		chill(trash, n_trash);
		double t = now_us();
		kv_index_hits(f.x, &f.p, f.ids, RANKS, hit, NULL);
		cold[i] = now_us() - t;
	}
	qsort(warm, ROUNDS, sizeof(*warm), by_value);
	qsort(cold, COLD, sizeof(*cold), by_value);
	printf("kv hits: %d ranks, %d blocks, %s holders: warm p50 %.1f us p99 %.1f us, cold p50 %.1f us p99 %.1f us\n", RANKS, PROMPT_BLOCKS,
		full ? "full" : "spread", warm[ROUNDS / 2], warm[ROUNDS * 99 / 100], cold[COLD / 2], cold[COLD - 1]);
	double t = now_us();
	kv_flight h = kv_index_flight_begin(f.x, f.ids[0], &f.p);
	double begun = now_us();
	kv_index_flight_end(f.x, h);
	double ended = now_us();
	printf("kv flight: begin %.0f us, end %.0f us for %d blocks\n", begun - t, ended - begun, PROMPT_BLOCKS);
	kv_index_free(f.x);
	free(f.keys);
	free(trash);
}

/* kv_bench [feed|memory|hits]...: all of them by default. */
int main(int argc, char **argv)
{
	bool feed = argc == 1, memory = argc == 1, hits = argc == 1;
	for (int i = 1; i < argc; i++) {
		feed |= strcmp(argv[i], "feed") == 0;
		memory |= strcmp(argv[i], "memory") == 0;
		hits |= strcmp(argv[i], "hits") == 0;
	}
	if (feed)
		bench_feed();
	if (memory)
		bench_memory();
	if (hits) {
		bench_floor();
		bench_hits(false);
		bench_hits(true);
		bench_flights();
	}
	return sum == 1;
}
