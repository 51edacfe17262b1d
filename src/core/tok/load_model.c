/* load_model.c: the BPE model of a tokenizer.json: vocabulary, merges, and what follows from them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tok/tok_priv.h"
#include "wire/json.h"

static const struct str MARK = STR_INIT("\xe2\x96\x81");

/* ---- vocabulary */

/* Pieces by id: there are seldom more ids than pieces, so they are given room once. */
struct by_id {
	struct str *p;
	size_t n, cap;
};

static void by_id_init(struct by_id *b, size_t cap) { *b = (struct by_id){ must_table(cap * sizeof(*b->p)), 0, cap }; }
static void by_id_done(struct by_id *b) { must_table_free(b->p, b->cap * sizeof(*b->p)); }

static struct str *by_id_at(struct by_id *b, size_t id)
{
	if (id >= b->cap) {
		struct by_id wider;
		by_id_init(&wider, 2 * (id + 1));
		memcpy(wider.p, b->p, b->n * sizeof(*b->p));
		wider.n = b->n;
		by_id_done(b);
		*b = wider;
	}
	b->n = MAX(b->n, id + 1);
	return &b->p[id];
}

static enum err sort_pieces(const struct json_val *vocab, struct by_id *b, struct tok_why why)
{
	for (struct json_iter it = json_each(vocab); json_next(&it);) {
		uint64_t id;
		if (!json_u64(it.val, &id) || id >= TOK_MAX_VOCAB)
			return tok_say(why, ERR_LIMIT, "the vocabulary has an id that is no number below %d", TOK_MAX_VOCAB);
		struct str *piece = by_id_at(b, id);
		if (piece->p)
			return tok_say(why, ERR_UNSUPPORTED, "two pieces of the vocabulary have the id %u", (unsigned)id);
		*piece = it.key;
	}
	return ERR_OK;
}

static enum err read_vocab(struct tok *t, const struct json_val *vocab, uint32_t *ret_size, struct tok_why why)
{
	size_t n = json_len(vocab);
	struct by_id b;
	by_id_init(&b, n);
	enum err e = sort_pieces(vocab, &b, why);
	if (e == ERR_OK) {
		tok_pool_init(&t->pieces, b.p, (uint32_t)b.n);
		if (tok_pool_index(&t->pieces, NULL) != TOK_NONE)
			e = tok_say(why, ERR_UNSUPPORTED, "the vocabulary lists a piece twice");
	}
	by_id_done(&b);
	*ret_size = (uint32_t)n;
	return e;
}

/* ---- merges */

static bool merge_parts(const struct json_val *v, struct str parts[2])
{
	struct str line;
	if (json_str_pair(v, parts))
		return true;
	return json_str(v, &line) && str_cut(line, ' ', &parts[0], &parts[1]) && !(parts[1].n && memchr(parts[1].p, ' ', parts[1].n));
}

/* Reading merges: `last` is the result of the one before, for the next result is mostly that or the id behind it. */
struct merging {
	struct buf both;
	uint32_t last, rank;
	struct str parts[2 * TOK_AHEAD]; /* of the merges from `rank` on */
	size_t n; /* parts */
};

static bool is_joined(const struct tok *t, uint32_t id, struct str a, struct str b)
{
	struct str s = tok_pool_get(&t->pieces, id);
	return s.n == a.n + b.n && memcmp(s.p, a.p, a.n) == 0 && memcmp(s.p + a.n, b.p, b.n) == 0;
}

static enum err find_result(const struct tok *t, struct merging *m, struct str a, struct str b)
{
	if (is_joined(t, m->last, a, b))
		return ERR_OK;
	if (is_joined(t, m->last + 1, a, b)) {
		m->last++;
		return ERR_OK;
	}
	buf_clear(&m->both);
	TRY(buf_add(&m->both, a));
	TRY(buf_add(&m->both, b));
	m->last = tok_pool_find(&t->pieces, buf_str(&m->both));
	return ERR_OK;
}

/* Some merges, the first of them of rank m->rank. */
static enum err keep_merges(struct tok *t, struct merging *m, struct tok_why why)
{
	uint32_t ids[ARRAY_LEN(m->parts)];
	tok_pool_find_all(&t->pieces, m->parts, m->n, ids);
	for (size_t i = 0; i < m->n; i += 2)
		tok_merges_ask(&t->merges, ids[i], ids[i + 1]);
	for (size_t i = 0; i < m->n; i += 2, m->rank++) {
		TRY(find_result(t, m, m->parts[i], m->parts[i + 1]));
		if (ids[i] == TOK_NONE || ids[i + 1] == TOK_NONE || m->last == TOK_NONE)
			return tok_say(why, ERR_SYNTAX, "merge %u names a piece that is not in the vocabulary", m->rank);
		tok_merges_put(&t->merges, ids[i], ids[i + 1], m->rank);
		t->merges.result[m->rank] = m->last;
	}
	m->n = 0;
	return ERR_OK;
}

static enum err read_merge(struct tok *t, const struct json_val *v, struct merging *m, struct tok_why why)
{
	if (!merge_parts(v, &m->parts[m->n]))
		return tok_say(why, ERR_SYNTAX, "merge %u is not two pieces", m->rank + (uint32_t)m->n / 2);
	m->n += 2;
	return m->n == ARRAY_LEN(m->parts) ? keep_merges(t, m, why) : ERR_OK;
}

static enum err read_merges(struct tok *t, const struct json_val *merges, struct tok_why why)
{
	size_t n = json_len(merges);
	if (!json_is(merges, JSON_ARRAY))
		return tok_say(why, ERR_SYNTAX, "the model has no list of merges");
	if (n >= TOK_MAX_RANKS)
		return tok_say(why, ERR_LIMIT, "more than %d merges", TOK_MAX_RANKS);
	struct merging m = { .last = TOK_NONE };
	enum err e = ERR_OK;
	buf_init(&m.both, TOK_MAX_FILE_BYTES);
	tok_merges_init(&t->merges, n, n);
	for (struct json_iter it = json_each(merges); e == ERR_OK && json_next(&it);)
		e = read_merge(t, it.val, &m, why);
	if (e == ERR_OK)
		e = keep_merges(t, &m, why);
	buf_done(&m.both);
	return e;
}

/* ---- the model's switches */

static bool unset(const struct json_val *v)
{
	struct str s;
	double x;
	return json_absent(v) || (json_str(v, &s) && s.n == 0) || (json_f64(v, &x) && x == 0);
}

static enum err read_switches(struct tok *t, const struct json_val *m, struct tok_why why)
{
	struct str unk;
	if (!unset(json_get(m, STR("dropout"))))
		return tok_say(why, ERR_UNSUPPORTED, "BPE with dropout gives no fixed ids");
	if (!unset(json_get(m, STR("continuing_subword_prefix"))) || !unset(json_get(m, STR("end_of_word_suffix"))))
		return tok_say(why, ERR_UNSUPPORTED, "BPE with a subword prefix or word suffix is not supported");
	t->whole_words = json_true(json_get(m, STR("ignore_merges")));
	t->byte_fallback = json_true(json_get(m, STR("byte_fallback")));
	t->fuse_unk = json_true(json_get(m, STR("fuse_unk")));
	if (!json_str(json_get(m, STR("unk_token")), &unk))
		return ERR_OK;
	t->unk_id = tok_pool_find(&t->pieces, unk);
	return t->unk_id != TOK_NONE ? ERR_OK : tok_say(why, ERR_UNSUPPORTED, "the unknown token is not in the vocabulary");
}

enum err tok_load_model(struct tok *t, const struct json_val *m, uint32_t *ret_vocab_size, struct tok_why why)
{
	struct str type;
	if (!json_str(json_get(m, STR("type")), &type))
		return tok_say(why, ERR_UNSUPPORTED, "the model does not say its type");
	if (!str_eq(type, STR("BPE")))
		return tok_say(why, ERR_UNSUPPORTED, "models of type %.*s are not supported", STR_ARG(type));
	TRY(read_vocab(t, json_get(m, STR("vocab")), ret_vocab_size, why));
	TRY(read_merges(t, json_get(m, STR("merges")), why));
	return read_switches(t, m, why);
}

/* ---- byte-level: bytes and pairs of bytes */

static enum err finish_bytes(struct tok *t, struct tok_why why)
{
	size_t missing = 0;
	for (uint32_t cp = 0; cp < 0x144; cp++) {
		int byte = tok_alphabet_byte(cp);
		char utf8[2] = { (char)cp, 0 };
		if (cp >= 0x80) {
			utf8[0] = (char)(0xc0 | cp >> 6);
			utf8[1] = (char)(0x80 | (cp & 63));
		}
		if (byte < 0)
			continue;
		t->byte_id[byte] = tok_pool_find(&t->pieces, (struct str){ utf8, cp < 0x80 ? 1 : 2 });
		missing += t->byte_id[byte] == TOK_NONE;
	}
	if (missing && (t->unk_id != TOK_NONE || t->byte_fallback))
		return tok_say(
			why, ERR_UNSUPPORTED, "%zu bytes are not in the vocabulary, and what stands for them is not supported", missing);
	tok_merges_first(&t->merges, t->byte_id);
	return ERR_OK;
}

/* ---- spaces: where words may be cut */

/* The piece with U+2581 as a space, into out (of at least its length). */
static struct str spaced(struct str piece, char *out)
{
	size_t n = 0;
	for (size_t i = 0; i < piece.n; i++, n++) {
		out[n] = piece.p[i];
		if (out[n] == MARK.p[0] && piece.n - i >= 3 && memcmp(piece.p + i, MARK.p, 3) == 0) {
			out[n] = ' ';
			i += 2;
		}
	}
	return (struct str){ out, n };
}

enum { MAX_CROSSINGS = 64 };

static void find_crossings(struct tok *t, struct str s)
{
	for (size_t i = 1; i < s.n; i++) {
		if (s.p[i] != ' ' || s.p[i - 1] == ' ')
			continue;
		if (t->n_crossings == MAX_CROSSINGS) {
			t->cut_words = false;
			return;
		}
		t->crossings[t->n_crossings++] = (struct tok_crossing){ str_clone(str_sub(s, 0, i)), str_clone(str_skip(s, i)) };
	}
}

static bool all_bytes(const struct tok *t)
{
	bool all = t->byte_fallback;
	for (size_t b = 0; b < 256; b++)
		all &= t->byte_id[b] != TOK_NONE;
	return all;
}

/* Do merges reach from one character's bytes to the next? Then no look at the text tells where words may be cut. */
static bool bytes_merge(const struct tok *t)
{
	bool *is_byte = must_calloc(t->pieces.n + (size_t)1, sizeof(*is_byte)), found = false;
	for (size_t b = 0; b < 256; b++)
		if (t->byte_id[b] != TOK_NONE)
			is_byte[t->byte_id[b]] = true;
	for (size_t i = 0; i <= t->merges.mask && !found; i++) {
		uint64_t slot = t->merges.slots[i];
		if (slot != TOK_EMPTY_SLOT)
			found = is_byte[slot >> (TOK_ID_BITS + TOK_RANK_BITS)] ||
				is_byte[slot >> TOK_RANK_BITS & ((1u << TOK_ID_BITS) - 1)];
	}
	free(is_byte);
	return found;
}

static void note_neighbours(struct tok *t, struct str s)
{
	for (size_t i = 1; i < s.n; i++) {
		size_t pair = (size_t)(uint8_t)s.p[i - 1] << 8 | (uint8_t)s.p[i];
		t->neighbours[pair >> 3] |= (uint8_t)(1u << (pair & 7));
	}
}

/* Only results of merges can span a cut; each is looked at once. */
static void look_at_results(struct tok *t)
{
	bool *seen = must_calloc(t->pieces.n + (size_t)1, sizeof(*seen));
	for (uint32_t r = 0; r < t->merges.n && t->cut_words; r++) {
		struct str piece = tok_pool_get(&t->pieces, t->merges.result[r]);
		if (seen[t->merges.result[r]])
			continue;
		seen[t->merges.result[r]] = true;
		char small[256], *room = piece.n <= sizeof(small) ? small : must_malloc(piece.n);
		struct str s = spaced(piece, room);
		find_crossings(t, s);
		if (t->neighbours)
			note_neighbours(t, s);
		if (room != small)
			free(room);
	}
	free(seen);
}

/* Characters that are neither pieces nor bytes nor unknown vanish, and what stood around them may merge: then nothing is
 * cut; nor when the whole text is looked up. Unknown ones may fuse: then words are cut at spaces only. */
static void decide_words(struct tok *t)
{
	bool all = all_bytes(t);
	t->crossings = must_calloc(MAX_CROSSINGS, sizeof(*t->crossings));
	t->cut_words = t->ascii_id[' '] != TOK_NONE && !t->whole_words && (all || t->unk_id != TOK_NONE) && !bytes_merge(t);
	t->neighbours = t->cut_words && all ? must_calloc(8192, 1) : NULL;
	look_at_results(t);
}

static void finish_spaces(struct tok *t)
{
	for (uint32_t b = 0; b < 256; b++) {
		char name[8];
		snprintf(name, sizeof(name), "<0x%02X>", b);
		t->byte_id[b] = tok_pool_find(&t->pieces, (struct str){ name, 6 });
		char c = (char)b;
		if (b < 128)
			t->ascii_id[b] = tok_pool_find(&t->pieces, b == ' ' ? MARK : (struct str){ &c, 1 });
	}
	decide_words(t);
}

/* ---- what every id stands for */

/* What a piece stands for, into out (of at least its length). true: no word of a text can be looked up as it. */
static bool stands_for(const struct tok *t, struct str piece, char *out, size_t *ret_n)
{
	if (t->kind == TOK_SPACES) {
		*ret_n = spaced(piece, out).n;
		return piece.n && memchr(piece.p, ' ', piece.n);
	}
	if (tok_alphabet_decode(piece, out, ret_n))
		return false;
	memcpy(out, piece.p, piece.n);
	*ret_n = piece.n;
	return true;
}

/* Of an id that both have, the added token counts and not the model's piece. */
static void make_bytes(struct tok *t)
{
	struct tok_pool *p = &t->bytes;
	size_t room_bytes = t->pieces.off[t->pieces.n], at = 0, n;
	p->n = t->pieces.n;
	for (size_t i = 0; i < t->n_tokens; i++) {
		p->n = MAX(p->n, t->tokens[i].id + 1);
		room_bytes += t->tokens[i].content.n;
	}
	must(room_bytes < UINT32_MAX);
	p->bytes = must_malloc(room_bytes + 1);
	p->off = must_malloc((p->n + (size_t)1) * sizeof(*p->off));
	bool *hidden = must_calloc(p->n + (size_t)1, sizeof(*hidden));
	uint32_t *token = must_calloc(p->n + (size_t)1, sizeof(*token)); /* of an id: its place + 1 */
	for (size_t i = 0; i < t->n_tokens; i++)
		token[t->tokens[i].id] = (uint32_t)i + 1;
	for (uint32_t id = 0; id < p->n; id++, at += n) {
		struct str piece = tok_pool_get(&t->pieces, id), content = token[id] ? t->tokens[token[id] - 1].content : piece;
		p->off[id] = (uint32_t)at;
		hidden[id] = stands_for(t, content, p->bytes + at, &n) || !str_eq(piece, content);
	}
	p->off[p->n] = (uint32_t)at;
	p->bytes = must_realloc(p->bytes, at + 1);
	if (t->whole_words)
		(void)tok_pool_index(p, hidden);
	free(token);
	free(hidden);
}

enum err tok_finish_model(struct tok *t, struct tok_why why)
{
	if (t->kind == TOK_BYTES)
		TRY(finish_bytes(t, why));
	else
		finish_spaces(t);
	make_bytes(t);
	return ERR_OK;
}
