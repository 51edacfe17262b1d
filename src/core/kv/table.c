/* table.c: engine hash -> slot. 21 bytes a slot and up to 88 % full: this is most of what a block costs the feed. A search
 * begins with the first slot of a cache line and seldom needs a second line. */
#include "kv/rank_priv.h"

enum { LINE_BYTES = 64 };
_Static_assert(sizeof(struct kv_line) == LINE_BYTES, "a line of the table is one of the cache");

static uint32_t cap_of(const struct kv_table *t) { return t->n_lines * KV_LINE_SLOTS; }

static struct kv_slot *slot_at(const struct kv_table *t, uint32_t i) { return &t->lines[i / KV_LINE_SLOTS].slots[i % KV_LINE_SLOTS]; }

static uint32_t home_line(const struct kv_table *t, uint64_t hash)
{
	/* Engine hashes are digests: one multiplication spreads what few bits a stranger may have left equal. */
	return (uint32_t)(((hash * 0x9e3779b97f4a7c15u >> 32) * t->n_lines) >> 32);
}

static uint32_t home(const struct kv_table *t, uint64_t hash) { return home_line(t, hash) * KV_LINE_SLOTS; }

static uint32_t after(const struct kv_table *t, uint32_t i) { return i + 1 == cap_of(t) ? 0 : i + 1; }

/* How many lines hold n slots at the highest load. */
static uint32_t lines_for(uint32_t n) { return (uint32_t)((uint64_t)n * 25 / (22 * KV_LINE_SLOTS) + 3); }

void kv_table_done(struct kv_table *t)
{
	free(t->raw);
	*t = (struct kv_table){ 0 };
}

/* The slot of this hash, or the empty one where it would lie. */
static struct kv_slot *seek(const struct kv_table *t, uint64_t hash, uint32_t *ret_at)
{
	for (uint32_t line = home_line(t, hash);; line = line + 1 == t->n_lines ? 0 : line + 1) {
		struct kv_slot *s = t->lines[line].slots;
		for (uint32_t k = 0; k < KV_LINE_SLOTS; k++)
			if (!s[k].groups || s[k].hash == hash) {
				*ret_at = line * KV_LINE_SLOTS + k;
				return &s[k];
			}
	}
}

struct kv_slot *kv_table_find(const struct kv_table *t, uint64_t hash)
{
	uint32_t at;
	struct kv_slot *s = t->n_lines ? seek(t, hash, &at) : NULL;
	return s && s->groups ? s : NULL;
}

void kv_table_prefetch(const struct kv_table *t, uint64_t hash)
{
	if (!t->n_lines)
		return;
	const struct kv_line *l = &t->lines[home_line(t, hash)];
	__builtin_prefetch(l);
	__builtin_prefetch(l + 1);
}

/* By an eighth, but never past what a full cache needs: there a slot costs 26 bytes, both halves of the index less than 48. */
static void grow(struct kv_table *t, uint32_t capacity, uint32_t limit)
{
	struct kv_table bigger = { .n = t->n };
	uint64_t want = (uint64_t)t->n + t->n / 8 + 32, full = (uint64_t)capacity + capacity / 14;
	if (t->n < full)
		want = MIN(want, full);
	uint32_t at;
	bigger.n_lines = lines_for((uint32_t)MIN(want, (uint64_t)MAX(limit, t->n + 1)));
	char *raw = must_calloc((size_t)bigger.n_lines + 1, LINE_BYTES);
	bigger.raw = raw;
	bigger.lines = (void *)(raw + (-(uintptr_t)raw & (LINE_BYTES - 1)));
	for (uint32_t i = 0; i < cap_of(t); i++)
		if (slot_at(t, i)->groups)
			*seek(&bigger, slot_at(t, i)->hash, &at) = *slot_at(t, i);
	free(t->raw);
	*t = bigger;
}

struct kv_slot *kv_table_add(struct kv_table *t, uint64_t hash, uint32_t capacity, uint32_t limit)
{
	uint32_t at;
	if (lines_for(t->n + 1) > t->n_lines)
		grow(t, capacity, limit);
	struct kv_slot *s = seek(t, hash, &at);
	*s = (struct kv_slot){ .hash = hash };
	t->n++;
	return s;
}

/* Shifts what follows back, so that no search ever meets a hole it should have crossed. */
void kv_table_del(struct kv_table *t, struct kv_slot *s)
{
	uint32_t hole;
	seek(t, s->hash, &hole);
	for (uint32_t i = after(t, hole); slot_at(t, i)->groups; i = after(t, i)) {
		uint32_t h = home(t, slot_at(t, i)->hash);
		bool stays = hole <= i ? hole < h && h <= i : hole < h || h <= i;
		if (!stays) {
			*slot_at(t, hole) = *slot_at(t, i);
			hole = i;
		}
	}
	slot_at(t, hole)->groups = 0;
	t->n--;
}
