/* table.c: engine hash -> slot. 20 bytes a slot and up to 85 % full: this is most of what a block costs the feed. */
#include "kv/rank_priv.h"

/* Engine hashes are digests: one multiplication spreads what few bits a stranger may have left equal. */
static uint32_t home(const struct kv_table *t, uint64_t hash) { return (uint32_t)(((hash * 0x9e3779b97f4a7c15u >> 32) * t->cap) >> 32); }

static uint32_t after(const struct kv_table *t, uint32_t i) { return i + 1 == t->cap ? 0 : i + 1; }

/* How many slots hold n at the highest load. */
static uint32_t room_for(uint32_t n) { return (uint32_t)((uint64_t)n * 20 / 17 + 8); }

void kv_table_done(struct kv_table *t)
{
	free(t->slots);
	*t = (struct kv_table){ 0 };
}

struct kv_slot *kv_table_find(const struct kv_table *t, uint64_t hash)
{
	if (t->cap == 0)
		return NULL;
	for (uint32_t i = home(t, hash); t->slots[i].groups; i = after(t, i))
		if (t->slots[i].hash == hash)
			return &t->slots[i];
	return NULL;
}

void kv_table_prefetch(const struct kv_table *t, uint64_t hash)
{
	if (t->cap)
		__builtin_prefetch(&t->slots[home(t, hash)]);
}

static struct kv_slot *free_slot(struct kv_table *t, uint64_t hash)
{
	uint32_t i = home(t, hash);
	while (t->slots[i].groups)
		i = after(t, i);
	return &t->slots[i];
}

static void grow(struct kv_table *t, uint32_t limit)
{
	struct kv_table bigger = { .n = t->n };
	uint64_t want = (uint64_t)t->n + t->n / 8 + 32;
	bigger.cap = room_for((uint32_t)MIN(want, (uint64_t)MAX(limit, t->n + 1)));
	bigger.slots = must_calloc(bigger.cap, sizeof(*bigger.slots));
	for (uint32_t i = 0; i < t->cap; i++)
		if (t->slots[i].groups)
			*free_slot(&bigger, t->slots[i].hash) = t->slots[i];
	free(t->slots);
	*t = bigger;
}

struct kv_slot *kv_table_add(struct kv_table *t, uint64_t hash, uint32_t limit)
{
	if (room_for(t->n + 1) > t->cap)
		grow(t, limit);
	struct kv_slot *s = free_slot(t, hash);
	*s = (struct kv_slot){ .hash = hash };
	t->n++;
	return s;
}

/* Shifts what follows back, so that no search ever meets a hole it should have crossed. */
void kv_table_del(struct kv_table *t, struct kv_slot *s)
{
	uint32_t hole = (uint32_t)(s - t->slots);
	for (uint32_t i = after(t, hole); t->slots[i].groups; i = after(t, i)) {
		uint32_t h = home(t, t->slots[i].hash);
		bool stays = hole <= i ? hole < h && h <= i : hole < h || h <= i;
		if (!stays) {
			t->slots[hole] = t->slots[i];
			hole = i;
		}
	}
	t->slots[hole].groups = 0;
	t->n--;
}
