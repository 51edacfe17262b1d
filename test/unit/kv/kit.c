#include "kit.h"

#include "base/hash.h"
#include "base/must.h"

static uint64_t place(enum kv_tier tier, uint64_t key, uint32_t group) { return key + ((uint64_t)tier * KV_MAX_GROUPS + group) * 1000003u; }

static void on_deltas(void *arg, const struct kv_delta *d, size_t n)
{
	struct kit *k = arg;
	k->largest = MAX(k->largest, n);
	for (size_t i = 0; i < n; i++)
		for (uint32_t g = 0; g < KV_MAX_GROUPS; g++) {
			uint64_t at = place(d[i].tier, d[i].key, g);
			if (d[i].add_groups >> g & 1) {
				k->wrong += kit_holds_on(k, d[i].tier, d[i].key, g);
				map_put(&k->held, at, 1);
			}
			if (d[i].del_groups >> g & 1)
				k->wrong += !map_del(&k->held, at);
		}
}

static void on_clear(void *arg)
{
	struct kit *k = arg;
	k->clears++;
	map_done(&k->held);
}

static void on_groups(void *arg, const struct kv_group *g, size_t n)
{
	struct kit *k = arg;
	k->n_groups = n;
	for (size_t i = 0; i < n; i++)
		k->groups[i] = g[i];
}

const struct kv_rank_sink kit_sink = { on_deltas, on_clear, on_groups };

void kit_start_again(struct kit *k, bool has_replay)
{
	struct buf saved;
	buf_init(&saved, 1 << 20);
	enum err e = kv_rank_save(k->r, &saved);
	must(e == ERR_OK || e == ERR_NOT_FOUND);
	must(e != ERR_OK || saved.n == kv_rank_save_bytes(k->r));
	kv_rank_free(k->r);
	map_done(&k->held);
	k->n_groups = 0;
	k->r = kv_rank_new(&kit_sink, k);
	kv_rank_has_replay(k->r, has_replay);
	must(e != ERR_OK || kv_rank_load(k->r, buf_str(&saved)) == ERR_OK);
	buf_done(&saved);
}

void kit_init(struct kit *k)
{
	*k = (struct kit){ .ts = 1000 };
	map_init(&k->held);
	arena_init(&k->a, 0);
	k->r = kv_rank_new(&kit_sink, k);
}

void kit_done(struct kit *k)
{
	kv_rank_free(k->r);
	map_done(&k->held);
	arena_done(&k->a);
}

bool kit_holds_on(const struct kit *k, enum kv_tier tier, uint64_t key, uint32_t group)
{
	uint64_t one;
	return map_get(&k->held, place(tier, key, group), &one);
}

bool kit_holds(const struct kit *k, uint64_t key, uint32_t group) { return kit_holds_on(k, KV_TIER_GPU, key, group); }

const uint32_t *kit_ids(struct kit *k, uint32_t seed, uint32_t from_block, uint32_t n_blocks, uint32_t block_size)
{
	uint32_t *ids = arena_new(&k->a, uint32_t, (size_t)n_blocks * block_size);
	for (uint32_t i = 0; i < n_blocks * block_size; i++)
		ids[i] = (uint32_t)hash_mix((uint64_t)seed << 32 | (from_block * block_size + i)) & 0xffff;
	return ids;
}

uint64_t kit_key(struct kit *k, uint32_t seed, uint32_t block, uint32_t block_size)
{
	uint64_t *keys = arena_new(&k->a, uint64_t, block + 1);
	kv_prompt_keys(kv_seed(STR("")), kit_ids(k, seed, 0, block + 1, block_size), (size_t)(block + 1) * block_size, block_size, NULL, keys);
	return keys[block];
}

uint64_t kit_hash(uint32_t seed, uint32_t block) { return hash_mix((uint64_t)(seed + 1) << 32 | (block + 1)); }

struct kv_event *kit_store(struct kit *k, uint32_t seed, uint32_t from, uint32_t n, uint32_t block_size)
{
	uint64_t *hashes = arena_new(&k->a, uint64_t, n);
	for (uint32_t i = 0; i < n; i++)
		hashes[i] = kit_hash(seed, from + i);
	struct kv_event *e = &k->events[k->n_events++];
	*e = (struct kv_event){ .type = KV_EVENT_STORED, .group_known = true, .hashes = hashes, .n_hashes = n, .ids = kit_ids(k, seed, from, n, block_size),
		.n_ids = n * block_size, .block_size = block_size, .kind = KV_GROUP_FULL, .extras = arena_new(&k->a, struct kv_block_extras, n) };
	if (from) {
		e->has_parent = true;
		e->parent = kit_hash(seed, from - 1);
	}
	return e;
}

struct kv_event *kit_remove(struct kit *k, uint32_t seed, uint32_t block)
{
	uint64_t *hash = arena_new(&k->a, uint64_t, 1);
	*hash = kit_hash(seed, block);
	struct kv_event *e = &k->events[k->n_events++];
	*e = (struct kv_event){ .type = KV_EVENT_REMOVED, .group_known = true, .hashes = hash, .n_hashes = 1 };
	return e;
}

struct kv_event *kit_offload(struct kit *k, enum kv_tier tier, uint32_t seed, uint32_t block)
{
	uint64_t *hash = arena_new(&k->a, uint64_t, 1);
	*hash = kit_hash(seed, block);
	struct kv_event *e = &k->events[k->n_events++];
	*e = (struct kv_event){ .type = KV_EVENT_STORED, .tier = tier, .group_known = true, .hashes = hash, .n_hashes = 1, .kind = KV_GROUP_FULL };
	return e;
}

struct kv_event *kit_clear(struct kit *k)
{
	k->events[k->n_events] = (struct kv_event){ .type = KV_EVENT_CLEARED };
	return &k->events[k->n_events++];
}

enum kv_act kit_send_at(struct kit *k, uint64_t seq, double ts, bool from_replay)
{
	struct kv_batch b = { .ts_s = ts, .dp_rank = 0, .events = k->events, .n_events = k->n_events };
	enum kv_act act = kv_rank_batch(k->r, seq, &b, from_replay);
	k->n_events = 0;
	return act;
}

enum kv_act kit_send(struct kit *k, uint64_t seq) { return kit_send_at(k, seq, ++k->ts, false); }
enum kv_act kit_replay(struct kit *k, uint64_t seq) { return kit_send_at(k, seq, ++k->ts, true); }
