/* Any bytes as a worker's message: decoded, and what came out applied to a rank and an index, twice and as a replay. */
#include <stddef.h>
#include <stdint.h>

#include "base/must.h"
#include "engine/vllm.h"
#include "kv/index.h"
#include "kv/rank.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct both { struct kv_index *x; kv_rank_id id; };

static void on_deltas(void *arg, const struct kv_delta *d, size_t n)
{
	struct both *b = arg;
	must(n <= 2000);
	kv_index_apply(b->x, b->id, d, n);
}

static void on_clear(void *arg)
{
	struct both *b = arg;
	kv_index_clear(b->x, b->id);
}

static void on_groups(void *arg, const struct kv_group *g, size_t n)
{
	struct both *b = arg;
	kv_index_groups(b->x, b->id, g, n);
}

/* The first block of a stored event as a prompt: whatever the groups are, the answer is within its bounds. */
static void ask(const struct both *b, const struct kv_batch *batch)
{
	for (size_t i = 0; i < batch->n_events; i++) {
		const struct kv_event *e = &batch->events[i];
		uint64_t key;
		uint32_t hit;
		if (e->type != KV_EVENT_STORED || e->n_ids < e->block_size || e->block_size == 0)
			continue;
		kv_prompt_keys(kv_seed(e->adapter), e->ids, e->block_size, e->block_size, NULL, &key);
		struct kv_prompt p = { e->block_size + 1, 1, { { e->block_size, 1, &key } } };
		kv_flight f = kv_index_flight_begin(b->x, b->id, &p);
		kv_index_hits(b->x, &p, &b->id, 1, &hit, NULL);
		must(hit <= e->block_size);
		kv_index_flight_end(b->x, f);
	}
	must(kv_index_stats(b->x).flight_entries == 0);
}

/* One for all inputs, with a rank that stays: making it and sizing its tables costs more than most inputs. */
static struct kv_index *the_index(void)
{
	static struct kv_index *x;
	kv_rank_id stays;
	if (!x) {
		x = kv_index_new();
		must(kv_index_rank_add(x, &stays) == ERR_OK);
		kv_index_capacity(x, stays, 1 << 20);
	}
	return x;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct kv_rank_sink sink = { on_deltas, on_clear, on_groups };
	struct arena a;
	struct kv_batch batch;
	arena_init(&a, 64 << 20);
	if (vllm_events(str_from(data, size), &a, &batch) == ERR_OK) {
		struct both b = { .x = the_index() };
		must(kv_index_rank_add(b.x, &b.id) == ERR_OK);
		struct kv_rank *r = kv_rank_new(&sink, &b);
		kv_rank_capacity(r, 100);
		kv_rank_has_replay(r, true);
		kv_rank_batch(r, 0, &batch, false);
		kv_rank_batch(r, 1, &batch, false);
		kv_rank_batch(r, 4, &batch, false);
		kv_rank_batch(r, 1, &batch, true);
		kv_rank_batch(r, 2, &batch, true);
		kv_rank_replay_end(r, true);
		ask(&b, &batch);
		must(kv_rank_stats(r).blocks <= 189);
		kv_rank_free(r);
		kv_index_rank_del(b.x, b.id);
	}
	arena_done(&a);
	return 0;
}
