/* bpe.c: the ids of one word. Merges by lowest rank, leftmost first, by a scan of the whole word each time; long words are
 * long.c's. */
#include <string.h>

#include "tok/tok_priv.h"

enum { SHORT = 48 }; /* symbols; above, the other way is faster */

/* ---- symbols: what the characters of the word are before any merge */

static void push_bytes(const struct tok *t, struct tok_scratch *s, struct str word)
{
	for (size_t i = 0; i < word.n; i++) {
		uint32_t id = t->byte_id[(uint8_t)word.p[i]];
		if (id != TOK_NONE) /* the reference drops a byte without an id */
			VEC_PUSH(&s->sym, id);
	}
}

static uint32_t char_id(const struct tok *t, struct str c)
{
	uint8_t b = (uint8_t)c.p[0];
	return b < 128 ? t->ascii_id[b] : tok_pool_find(&t->pieces, c);
}

/* A character that is no piece becomes its bytes, if all of them are pieces. */
static bool push_fallback(const struct tok *t, struct tok_scratch *s, struct str c)
{
	if (!t->byte_fallback)
		return false;
	if (c.n == 1 && c.p[0] == ' ') /* the space stands for U+2581 here */
		c = STR("\xe2\x96\x81");
	for (size_t i = 0; i < c.n; i++)
		if (t->byte_id[(uint8_t)c.p[i]] == TOK_NONE)
			return false;
	for (size_t i = 0; i < c.n; i++)
		VEC_PUSH(&s->sym, t->byte_id[(uint8_t)c.p[i]]);
	return true;
}

/* Unknown characters wait until the next known one (not until the next byte): so does the reference. */
static void push_chars(const struct tok *t, struct tok_scratch *s, struct str word)
{
	bool waiting = false;
	size_t len;
	for (size_t i = 0; i < word.n; i += len) {
		tok_cp((const uint8_t *)word.p + i, &len);
		struct str c = { word.p + i, len };
		uint32_t id = char_id(t, c);
		if (id != TOK_NONE) {
			if (waiting)
				VEC_PUSH(&s->sym, t->unk_id);
			waiting = false;
			VEC_PUSH(&s->sym, id);
		} else if (!push_fallback(t, s, c) && t->unk_id != TOK_NONE) {
			if (waiting && !t->fuse_unk)
				VEC_PUSH(&s->sym, t->unk_id);
			waiting = true;
		}
	}
	if (waiting)
		VEC_PUSH(&s->sym, t->unk_id);
}

/* ---- merging */

static size_t merge_short(const struct tok_merges *m, uint32_t *sym, uint32_t *rank, size_t n)
{
	while (n > 1) {
		size_t best = 0;
		for (size_t i = 1; i + 1 < n; i++)
			if (rank[i] < rank[best])
				best = i;
		if (rank[best] == TOK_NONE)
			break;
		sym[best] = m->result[rank[best]];
		n--;
		memmove(sym + best + 1, sym + best + 2, (n - best - 1) * sizeof(*sym));
		memmove(rank + best, rank + best + 1, (n - best) * sizeof(*rank));
		rank[best] = best + 1 < n ? tok_merges_rank(m, sym[best], sym[best + 1]) : TOK_NONE;
		if (best > 0)
			rank[best - 1] = tok_merges_rank(m, sym[best - 1], sym[best]);
	}
	return n;
}

static void rank_pairs(const struct tok *t, struct tok_scratch *s, struct str word)
{
	const struct tok_merges *m = &t->merges;
	size_t n = s->sym.n;
	s->rank.n = 0;
	bool bytes = m->first && n == word.n; /* else a byte was dropped and pairs are not those of the text */
	for (size_t i = 0; i + 1 < n; i++)
		VEC_PUSH(&s->rank, bytes ? m->first[(size_t)(uint8_t)word.p[i] << 8 | (uint8_t)word.p[i + 1]]
					 : tok_merges_rank(m, s->sym.p[i], s->sym.p[i + 1]));
	VEC_PUSH(&s->rank, TOK_NONE);
}

void tok_word(const struct tok *t, struct tok_scratch *s, struct str word, struct tok_ids *ids)
{
	uint32_t whole = t->whole_words ? tok_pool_find(&t->bytes, word) : TOK_NONE;
	if (whole != TOK_NONE) {
		VEC_PUSH(ids, whole);
		return;
	}
	s->sym.n = 0;
	if (t->kind == TOK_BYTES)
		push_bytes(t, s, word);
	else
		push_chars(t, s, word);
	if (s->sym.n == 0)
		return;
	rank_pairs(t, s, word);
	if (s->sym.n > SHORT) {
		tok_merge_long(t, s, ids);
		return;
	}
	size_t n = merge_short(&t->merges, s->sym.p, s->rank.p, s->sym.n);
	for (size_t i = 0; i < n; i++)
		VEC_PUSH(ids, s->sym.p[i]);
}
