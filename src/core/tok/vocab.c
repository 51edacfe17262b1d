/* vocab.c: the pieces of a vocabulary by id and by bytes, the table of merges, and the alphabet in which byte-level files
 * write bytes as letters. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "tok/tok_priv.h"

/* ---- pieces */

void tok_pool_init(struct tok_pool *p, const struct str *by_id, uint32_t n)
{
	size_t total = 0;
	for (uint32_t i = 0; i < n; i++)
		total += by_id[i].n;
	must(total < UINT32_MAX);
	*p = (struct tok_pool){ .bytes = must_malloc(total + 1), .off = must_malloc((n + (size_t)1) * sizeof(*p->off)), .n = n };
	uint32_t at = 0;
	for (uint32_t i = 0; i < n; i++) {
		p->off[i] = at;
		if (by_id[i].n)
			memcpy(p->bytes + at, by_id[i].p, by_id[i].n);
		at += (uint32_t)by_id[i].n;
	}
	p->off[n] = at;
}

static bool slot_is(const struct tok_pool *p, uint64_t slot, uint64_t hash, struct str s)
{
	return slot >> 32 == hash >> 32 && str_eq(tok_pool_get(p, (uint32_t)slot), s);
}

/* True when the string was there already. */
static bool index_one(struct tok_pool *p, uint32_t id, uint64_t hash)
{
	struct str s = tok_pool_get(p, id);
	size_t i = hash & p->mask;
	bool twice = false;
	if (s.n == 0)
		return false;
	for (; p->slots[i] != TOK_EMPTY_SLOT; i = (i + 1) & p->mask)
		twice |= slot_is(p, p->slots[i], hash, s);
	p->slots[i] = hash >> 32 << 32 | id;
	return twice;
}

uint32_t tok_pool_index(struct tok_pool *p, const bool *hidden)
{
	size_t cap = 16;
	while (cap < (size_t)p->n * 3 / 2)
		cap *= 2;
	p->slots = must_table(cap * sizeof(*p->slots));
	memset(p->slots, 0xff, cap * sizeof(*p->slots));
	p->mask = cap - 1;
	uint32_t twice = TOK_NONE;
	for (uint32_t from = 0; from < p->n; from += TOK_AHEAD) {
		uint64_t hash[TOK_AHEAD];
		uint32_t n = MIN(p->n - from, (uint32_t)TOK_AHEAD);
		for (uint32_t k = 0; k < n; k++) {
			hash[k] = hash_str(tok_pool_get(p, from + k), 0);
			__builtin_prefetch(&p->slots[hash[k] & p->mask], 1);
		}
		for (uint32_t k = 0; k < n; k++)
			if (!(hidden && hidden[from + k]) && index_one(p, from + k, hash[k]))
				twice = from + k;
	}
	return twice;
}

void tok_pool_done(struct tok_pool *p)
{
	free(p->bytes);
	free(p->off);
	must_table_free(p->slots, (p->mask + 1) * sizeof(*p->slots));
	*p = (struct tok_pool){ 0 };
}

static uint32_t find_hashed(const struct tok_pool *p, struct str s, uint64_t hash)
{
	if (s.n == 0)
		return TOK_NONE;
	for (size_t i = hash & p->mask; p->slots[i] != TOK_EMPTY_SLOT; i = (i + 1) & p->mask)
		if (slot_is(p, p->slots[i], hash, s))
			return (uint32_t)p->slots[i];
	return TOK_NONE;
}

uint32_t tok_pool_find(const struct tok_pool *p, struct str s) { return p->slots ? find_hashed(p, s, hash_str(s, 0)) : TOK_NONE; }

/* The first string on the way with the upper half of this hash: nearly always the one that is sought. */
static uint32_t first_alike(const struct tok_pool *p, uint64_t hash)
{
	size_t i = hash & p->mask;
	while (p->slots[i] >> 32 != hash >> 32 && p->slots[i] != TOK_EMPTY_SLOT)
		i = (i + 1) & p->mask;
	return (uint32_t)p->slots[i];
}
_Static_assert((uint32_t)TOK_EMPTY_SLOT == TOK_NONE, "an empty slot has no string");

/* Each string's way is slot, place, bytes, all of them far away: they are asked for in rounds. */
static void find_some(const struct tok_pool *p, const struct str *s, size_t n, uint32_t *ret_ids)
{
	uint64_t hash[TOK_AHEAD];
	for (size_t i = 0; i < n; i++) {
		hash[i] = hash_str(s[i], 0);
		__builtin_prefetch(&p->slots[hash[i] & p->mask]);
	}
	for (size_t i = 0; i < n; i++) {
		ret_ids[i] = first_alike(p, hash[i]);
		if (ret_ids[i] != TOK_NONE)
			__builtin_prefetch(&p->off[ret_ids[i]]);
	}
	for (size_t i = 0; i < n; i++)
		if (ret_ids[i] != TOK_NONE)
			__builtin_prefetch(p->bytes + p->off[ret_ids[i]]);
	for (size_t i = 0; i < n; i++)
		if (ret_ids[i] != TOK_NONE && !str_eq(tok_pool_get(p, ret_ids[i]), s[i]))
			ret_ids[i] = find_hashed(p, s[i], hash[i]);
}

void tok_pool_find_all(const struct tok_pool *p, const struct str *s, size_t n, uint32_t *ret_ids)
{
	for (size_t i = 0; i < n; i += TOK_AHEAD)
		find_some(p, s + i, MIN(n - i, (size_t)TOK_AHEAD), ret_ids + i);
}

size_t tok_pool_held(const struct tok_pool *p)
{
	if (!p->off)
		return 0;
	return p->off[p->n] + (p->n + (size_t)1) * sizeof(*p->off) + (p->slots ? (p->mask + 1) * sizeof(*p->slots) : 0);
}

/* ---- merges */

void tok_merges_init(struct tok_merges *m, size_t n_pairs, size_t n_ranks)
{
	size_t cap = 1024;
	unsigned bits = 10;
	while (cap < n_pairs * 3 / 2) {
		cap *= 2;
		bits++;
	}
	*m = (struct tok_merges){
		.slots = must_table(cap * sizeof(*m->slots)), .shift = 64 - bits, .mask = cap - 1, .n = (uint32_t)n_ranks
	};
	memset(m->slots, 0xff, cap * sizeof(*m->slots));
	m->result = must_calloc(n_ranks + 1, sizeof(*m->result));
}

void tok_merges_put(struct tok_merges *m, uint32_t a, uint32_t b, uint32_t rank)
{
	uint64_t key = (uint64_t)a << TOK_ID_BITS | b;
	size_t i = tok_merges_home(m, key);
	while (m->slots[i] != TOK_EMPTY_SLOT && m->slots[i] >> TOK_RANK_BITS != key)
		i = (i + 1) & m->mask;
	m->slots[i] = key << TOK_RANK_BITS | rank;
}

void tok_merges_ask(const struct tok_merges *m, uint32_t a, uint32_t b)
{
	__builtin_prefetch(&m->slots[tok_merges_home(m, (uint64_t)a << TOK_ID_BITS | b)], 1);
}

void tok_merges_first(struct tok_merges *m, const uint32_t byte_id[256])
{
	m->first = must_malloc(65536 * sizeof(*m->first));
	memset(m->first, 0xff, 65536 * sizeof(*m->first));
	for (size_t a = 0; a < 256; a++) {
		for (size_t b = 0; b < 256; b++)
			tok_merges_ask(m, byte_id[a], byte_id[b]);
		for (size_t b = 0; byte_id[a] != TOK_NONE && b < 256; b++)
			if (byte_id[b] != TOK_NONE)
				m->first[a << 8 | b] = tok_merges_rank(m, byte_id[a], byte_id[b]);
	}
}

void tok_merges_done(struct tok_merges *m)
{
	must_table_free(m->slots, (m->mask + 1) * sizeof(*m->slots));
	free(m->result);
	free(m->first);
	*m = (struct tok_merges){ 0 };
}

/* ---- the byte alphabet: printable Latin-1 characters stand for themselves, the other 68 bytes for U+0100 onward */

static bool stands_for_itself(uint32_t b) { return (b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b <= 0xac) || (b >= 0xae && b <= 0xff); }

int tok_alphabet_byte(uint32_t cp)
{
	if (cp < 256)
		return stands_for_itself(cp) ? (int)cp : -1;
	uint32_t left = cp - 256;
	if (left < 33)
		return (int)left;
	if (left < 67)
		return (int)(left - 33 + 0x7f);
	return left == 67 ? 0xad : -1;
}

bool tok_alphabet_decode(struct str piece, char *out, size_t *ret_n)
{
	const uint8_t *p = (const uint8_t *)piece.p;
	size_t n = 0, len;
	for (size_t i = 0; i < piece.n; i += len) {
		if (p[i] > ' ' && p[i] < 0x7f) {
			out[n++] = piece.p[i];
			len = 1;
			continue;
		}
		int byte = tok_alphabet_byte(tok_cp(p + i, &len));
		if (byte < 0)
			return false;
		out[n++] = (char)byte;
	}
	*ret_n = n;
	return true;
}
