/* holders.c: key -> who holds it.
 *
 * Most keys have one holder, hot ones have all: up to five numbers lie in the slot itself, more get a row of bits. Shards
 * grow by an eighth at 80 %, so the table stays near 21 bytes a key and no growth takes longer than its shard. */
#include "kv/index_priv.h"

#include <string.h>

enum { MIN_LINES = 2, MIN_WORDS = 2, SHRINK_LINES = 16, LINE_BYTES = 64 };
_Static_assert(KV_LINE * sizeof(struct kv_entry) == LINE_BYTES, "a search begins with one cache line");
#define NO_ROW UINT32_MAX

/* What a shard without slots points to, so that a search needs no look whether there are any. Never written. */
static struct kv_entry no_line[KV_LINE];

void kv_holders_init(struct kv_holders *h)
{
	*h = (struct kv_holders){ .words = MIN_WORDS, .free_row = NO_ROW };
	h->shards = must_calloc(KV_SHARDS, sizeof(*h->shards));
	h->raw = must_calloc(KV_SHARDS, sizeof(*h->raw));
	for (uint32_t i = 0; i < KV_SHARDS; i++)
		h->shards[i].slots = no_line;
}

void kv_holders_done(struct kv_holders *h)
{
	for (uint32_t i = 0; h->raw && i < KV_SHARDS; i++)
		free(h->raw[i]);
	free(h->raw);
	free(h->shards);
	free(h->rows);
	*h = (struct kv_holders){ 0 };
}

size_t kv_holders_bytes(const struct kv_holders *h)
{
	return KV_SHARDS * (sizeof(*h->shards) + sizeof(*h->raw)) + h->slot_bytes + (size_t)h->cap_rows * h->words * sizeof(*h->rows);
}

/* ---- values ---- */

static uint32_t inline_at(uint64_t v, uint32_t i) { return (uint32_t)(v >> (4 + 12 * i)) & 0xfff; }

static bool inline_find(uint64_t v, uint32_t who, uint32_t *ret_at)
{
	for (uint32_t i = 0, n = v & 15; i < n; i++)
		if (inline_at(v, i) == who) {
			*ret_at = i;
			return true;
		}
	return false;
}

static uint64_t inline_push(uint64_t v, uint32_t who)
{
	uint32_t n = v & 15;
	return (v | (uint64_t)who << (4 + 12 * n)) + 1;
}

static uint64_t inline_drop(uint64_t v, uint32_t at)
{
	uint32_t n = v & 15;
	uint64_t out = 0;
	for (uint32_t i = 0; i < n; i++)
		if (i != at)
			out = inline_push(out, inline_at(v, i));
	return out;
}

static uint32_t row_count(uint64_t v) { return (uint32_t)v >> 4; }

static uint64_t row_value(uint32_t row, uint32_t count) { return (uint64_t)row << 32 | (uint64_t)count << 4 | KV_IS_ROW; }

static uint64_t *row_bits(struct kv_holders *h, uint64_t v) { return h->rows + (v >> 32) * h->words; }

static uint32_t new_row(struct kv_holders *h)
{
	uint32_t row = h->free_row;
	if (row != NO_ROW) {
		h->free_row = (uint32_t)h->rows[(size_t)row * h->words];
	} else {
		if (h->n_rows == h->cap_rows) {
			h->cap_rows = MAX(h->cap_rows + h->cap_rows / 2, 64u);
			h->rows = must_realloc(h->rows, (size_t)h->cap_rows * h->words * sizeof(*h->rows));
		}
		row = h->n_rows++;
	}
	memset(h->rows + (size_t)row * h->words, 0, h->words * sizeof(*h->rows));
	return row;
}

static void free_row(struct kv_holders *h, uint64_t v)
{
	row_bits(h, v)[0] = h->free_row;
	h->free_row = (uint32_t)(v >> 32);
}

static uint64_t to_row(struct kv_holders *h, uint64_t v)
{
	uint32_t n = v & 15;
	uint64_t out = row_value(new_row(h), n);
	for (uint32_t i = 0; i < n; i++)
		row_bits(h, out)[inline_at(v, i) / 64] |= 1ull << (inline_at(v, i) % 64);
	return out;
}

static uint64_t to_inline(struct kv_holders *h, uint64_t v)
{
	const uint64_t *bits = row_bits(h, v);
	uint64_t out = 0;
	for (uint32_t w = 0; w < h->words; w++)
		for (uint64_t b = bits[w]; b; b &= b - 1)
			out = inline_push(out, w * 64 + (uint32_t)__builtin_ctzll(b));
	free_row(h, v);
	return out;
}

static uint64_t value_add(struct kv_holders *h, uint64_t v, uint32_t who, bool *ret_added)
{
	uint32_t at;
	*ret_added = false;
	if (!kv_is_row(v)) {
		if (inline_find(v, who, &at))
			return v;
		*ret_added = true;
		if ((v & 15) < KV_INLINE_MAX)
			return inline_push(v, who);
		v = to_row(h, v);
	}
	uint64_t *word = &row_bits(h, v)[who / 64], bit = 1ull << (who % 64);
	if (*word & bit)
		return v;
	*word |= bit;
	*ret_added = true;
	return row_value((uint32_t)(v >> 32), row_count(v) + 1);
}

/* Rows fall back to the slot well below five, so that one holder coming and going does not convert each time. */
static uint64_t value_del(struct kv_holders *h, uint64_t v, uint32_t who, bool *ret_deleted)
{
	uint32_t at = 0;
	*ret_deleted = false;
	if (!kv_is_row(v)) {
		*ret_deleted = inline_find(v, who, &at);
		return *ret_deleted ? inline_drop(v, at) : v;
	}
	uint64_t *word = &row_bits(h, v)[who / 64], bit = 1ull << (who % 64);
	if (!(*word & bit))
		return v;
	*word &= ~bit;
	*ret_deleted = true;
	v = row_value((uint32_t)(v >> 32), row_count(v) - 1);
	return row_count(v) <= 3 ? to_inline(h, v) : v;
}

/* ---- slots ---- */

static uint32_t cap_of(const struct kv_shard *s) { return s->lines * KV_LINE; }

static uint32_t after(const struct kv_shard *s, uint32_t i) { return i + 1 == cap_of(s) ? 0 : i + 1; }

static struct kv_entry *seek(struct kv_shard *s, uint64_t key)
{
	uint32_t i = kv_home(s, key);
	while (s->slots[i].value && s->slots[i].key != key)
		i = after(s, i);
	return &s->slots[i];
}

static void resize(struct kv_holders *h, struct kv_shard *s, uint32_t lines)
{
	size_t at = (size_t)(s - h->shards), bytes = (size_t)lines * LINE_BYTES;
	char *raw = must_calloc(1, bytes + LINE_BYTES);
	struct kv_shard to = { (void *)(raw + (-(uintptr_t)raw & (LINE_BYTES - 1))), lines, s->n };
	for (uint32_t i = 0; i < cap_of(s); i++)
		if (s->slots[i].value)
			*seek(&to, s->slots[i].key) = s->slots[i];
	h->slot_bytes += bytes;
	h->slot_bytes -= (size_t)s->lines * LINE_BYTES;
	free(h->raw[at]);
	h->raw[at] = raw;
	*s = to;
}

static void remove_slot(struct kv_holders *h, struct kv_shard *s, struct kv_entry *e)
{
	uint32_t hole = (uint32_t)(e - s->slots);
	for (uint32_t i = after(s, hole); s->slots[i].value; i = after(s, i)) {
		uint32_t home = kv_home(s, s->slots[i].key);
		bool stays = hole <= i ? hole < home && home <= i : hole < home || home <= i;
		if (!stays) {
			s->slots[hole] = s->slots[i];
			hole = i;
		}
	}
	s->slots[hole] = (struct kv_entry){ 0 };
	s->n--;
	h->entries--;
}

bool kv_holders_add(struct kv_holders *h, uint64_t key, uint32_t who)
{
	struct kv_shard *s = &h->shards[key >> 54];
	bool added;
	if ((uint64_t)(s->n + 1) * 5 > (uint64_t)cap_of(s) * 4)
		resize(h, s, s->lines + s->lines / 8 + MIN_LINES);
	struct kv_entry *e = seek(s, key);
	bool fresh = e->value == 0;
	e->value = value_add(h, e->value, who, &added);
	e->key = key;
	s->n += fresh;
	h->entries += fresh;
	h->holdings += added;
	return added;
}

bool kv_holders_del(struct kv_holders *h, uint64_t key, uint32_t who)
{
	struct kv_shard *s = &h->shards[key >> 54];
	bool deleted = false;
	if (s->lines == 0)
		return false;
	struct kv_entry *e = seek(s, key);
	if (e->value == 0)
		return false;
	e->value = value_del(h, e->value, who, &deleted);
	h->holdings -= deleted;
	if (e->value == 0) {
		remove_slot(h, s, e);
		if (s->lines > SHRINK_LINES && s->n < s->lines)
			resize(h, s, s->lines / 2);
	}
	return deleted;
}

bool kv_holders_has(const struct kv_holders *h, uint64_t key, uint32_t who)
{
	uint64_t v = kv_value(h, key);
	uint32_t at;
	return kv_is_row(v) ? who / 64 < h->words && kv_row(h, v)[who / 64] >> (who % 64) & 1 : inline_find(v, who, &at);
}

void kv_holders_widen(struct kv_holders *h, uint32_t who)
{
	uint32_t words = h->words;
	while (words * 64 <= who)
		words *= 2;
	if (words == h->words)
		return;
	uint64_t *rows = h->cap_rows ? must_calloc((size_t)h->cap_rows * words, sizeof(*rows)) : NULL;
	for (uint32_t i = 0; i < h->n_rows; i++)
		memcpy(rows + (size_t)i * words, h->rows + (size_t)i * h->words, h->words * sizeof(*rows));
	free(h->rows);
	h->rows = rows;
	h->words = words;
}

static uint64_t value_scrub(struct kv_holders *h, uint64_t v, const uint64_t *mask)
{
	bool deleted;
	if (!kv_is_row(v)) {
		for (uint32_t i = v & 15; i-- > 0;)
			if (mask[inline_at(v, i) / 64] >> (inline_at(v, i) % 64) & 1) {
				v = inline_drop(v, i);
				h->holdings--;
			}
		return v;
	}
	for (uint32_t w = 0; w < h->words; w++)
		for (uint64_t b = kv_is_row(v) ? row_bits(h, v)[w] & mask[w] : 0; b; b &= b - 1) {
			v = value_del(h, v, w * 64 + (uint32_t)__builtin_ctzll(b), &deleted);
			h->holdings -= deleted;
			if (!kv_is_row(v))
				return value_scrub(h, v, mask);
		}
	return v;
}

void kv_holders_scrub(struct kv_holders *h, uint32_t shard, const uint64_t *mask)
{
	struct kv_shard *s = &h->shards[shard];
	for (uint32_t i = 0; i < cap_of(s);) {
		struct kv_entry *e = &s->slots[i];
		uint64_t v = e->value ? value_scrub(h, e->value, mask) : 0;
		if (e->value && v == 0) {
			remove_slot(h, s, e); /* what shifts in here is looked at next */
		} else {
			e->value = v;
			i++;
		}
	}
	if (s->lines > SHRINK_LINES && s->n < s->lines)
		resize(h, s, s->n / 2 + MIN_LINES);
}
