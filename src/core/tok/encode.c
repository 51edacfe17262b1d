/* encode.c: a text's way to ids, in the reference's order: added tokens out of the raw text; each piece between them
 * normalised by itself; late added tokens out of that; splitters in turn on each rest; words through the cache to bpe.c. */
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "tok/memo.h"
#include "tok/tok_priv.h"

struct run {
	const struct tok *t;
	struct tok_scratch *s;
	struct tok_ids *ids;
	size_t known_bytes, new_bytes; /* of text */
	const uint8_t *end; /* of the bytes that may be read behind a word */
	bool mid_text; /* it continues the text before a plain cut */
	struct tok_cache_entry nothing[2]; /* where words lie that must be looked at closer: no key is in it */
	uint8_t last[16]; /* of the text, when a word's key would be read beyond its end; from here on nothing is set at first */
	struct tok_ends ends[TOK_MAX_STAGES];
	struct word {
		struct word_key {
			uint64_t a, b;
		} key, tail; /* tail: of a word too long for one key */
		struct tok_cache_entry *set;
		struct tok_cache_entry *long_set; /* of a word too long for one key; NULL: too long for the cache */
	} words[TOK_ENDS];
};

/* ---- scratch */

enum { KEEP_BYTES = 4 << 20 }; /* working memory that survives a long text */
enum {
	WORD_BYTES = 15,
	WORD_IDS = 6,
	ID_BITS = 20
}; /* what a cache entry holds; a word of twice as many bytes or ids takes both of a set */
enum { SET_BYTES = 64 }; /* two entries; so aligned, a line of the processor's */

struct tok_scratch *tok_scratch_new(const struct tok *t, size_t cache_bytes)
{
	struct tok_scratch *s = must_calloc(1, sizeof(*s));
	s->t = t;
	buf_init(&s->normal, (size_t)TOK_MAX_TEXT_BYTES * 24);
	buf_init(&s->spaced, (size_t)TOK_MAX_TEXT_BYTES * 24);
	size_t sets = 1;
	while (sets * 2 * SET_BYTES <= cache_bytes)
		sets *= 2;
	if (cache_bytes >= SET_BYTES) {
		s->cache = must_table(sets * SET_BYTES);
		s->cache_mask = sets - 1;
	}
	return s;
}

static void drop_arrays(struct tok_scratch *s)
{
	VEC_FREE(&s->cps);
	VEC_FREE(&s->sym);
	VEC_FREE(&s->rank);
	VEC_FREE(&s->next);
	VEC_FREE(&s->prev);
	VEC_FREE(&s->heap);
	VEC_FREE(&s->due);
	VEC_FREE(&s->later);
	VEC_FREE(&s->spare);
	buf_done(&s->normal);
	buf_done(&s->spaced);
}

void tok_scratch_free(struct tok_scratch *s)
{
	if (!s)
		return;
	drop_arrays(s);
	must_table_free(s->cache, (s->cache_mask + 1) * SET_BYTES);
	free(s);
}

void tok_ids_done(struct tok_ids *ids) { VEC_FREE(ids); }

/* ---- words */

/* n bytes, 15 at most, and the length of the word that they are of. */
static inline struct word_key key_of(struct run *r, const uint8_t *p, size_t n, size_t length)
{
	static const uint64_t ones[4] = { UINT64_MAX, UINT64_MAX };
	struct word_key k, keep; /* n ones, then zeros */
	if (r->end - p < (ptrdiff_t)sizeof(k))
		p = memcpy(r->last, p, n);
	memcpy(&k, p, sizeof(k));
	memcpy(&keep, (const char *)ones + sizeof(keep) - n, sizeof(keep));
	return (struct word_key){ k.a & keep.a, (k.b & keep.b) | (uint64_t)length << 56 };
}

/* A product's upper bits depend on every byte of the key, its lower ones only on the first. */
static inline uint64_t mixed(struct word_key k) { return (k.a ^ k.b * 0x9e3779b97f4a7c15u) * 0xd6e8feb86659fd93u; }
static inline struct tok_cache_entry *set_of(const struct tok_scratch *s, uint64_t h)
{
	return s->cache + 2 * (__builtin_bswap64(h) & s->cache_mask);
}

static inline bool is_key(const struct tok_cache_entry *e, struct word_key k) { return ((e->key[0] ^ k.a) | (e->key[1] ^ k.b)) == 0; }

static inline void push_id(struct tok_ids *ids, uint32_t id) { VEC_PUSH(ids, id); }

enum { MOST_IDS = 2 * WORD_IDS }; /* of a cached word; so many places are written to */

static void room_for(struct tok_ids *ids, size_t n)
{
	if (ids->n + n <= ids->cap)
		return;
	ids->cap = MAX(ids->cap * 2, ids->n + n);
	ids->p = must_realloc(ids->p, ids->cap * sizeof(*ids->p));
}

static inline void put_six(const struct tok_cache_entry *e, uint32_t *out)
{
	const uint64_t mask = (1u << ID_BITS) - 1;
	for (size_t i = 0; i < WORD_IDS; i++)
		out[i] = (uint32_t)(e->ids[i / 3] >> (i % 3 * ID_BITS) & mask);
}

/* Returns where the next one's begin. */
static inline uint32_t *put_cached(const struct tok_cache_entry *e, uint32_t *out)
{
	const uint64_t mask = (1u << ID_BITS) - 1;
	size_t n = e->ids[0] >> 60;
	out[0] = (uint32_t)(e->ids[0] & mask);
	out[1] = (uint32_t)(e->ids[0] >> ID_BITS & mask);
	if (n > 2)
		put_six(e, out);
	if (n > WORD_IDS)
		put_six(e + 1, out + WORD_IDS);
	return out + n;
}

/* A short word moves the one before it to the second place. The tail of a long word is no key of a short one: of its length. */
static void cache_put(const struct word *w, const uint32_t *ids, size_t n)
{
	struct tok_cache_entry e[2] = { { .key = { w->key.a, w->key.b } }, { .key = { w->tail.a, w->tail.b } } };
	for (size_t i = 0; i < n; i++)
		e[i / WORD_IDS].ids[i % WORD_IDS / 3] |= (uint64_t)ids[i] << (i % 3 * ID_BITS);
	e[0].ids[0] |= (uint64_t)n << 60;
	struct tok_cache_entry *set = w->long_set ? w->long_set : w->set;
	set[1] = w->long_set ? e[1] : set[0];
	set[0] = e[0];
}

static void __attribute__((noinline)) ask_long(struct run *r, struct word *w, struct str text)
{
	const uint8_t *p = (const uint8_t *)text.p;
	*w = (struct word){ .key = { .a = 1 }, .set = r->nothing };
	if (text.n > 2 * WORD_BYTES || !r->s->cache)
		return;
	w->key = key_of(r, p, WORD_BYTES, text.n);
	w->tail = key_of(r, p + text.n - WORD_BYTES, WORD_BYTES, text.n);
	w->long_set = set_of(r->s, mixed((struct word_key){ mixed(w->key) ^ w->tail.a, w->tail.b }));
	__builtin_prefetch(w->long_set);
}

/* A word that is long or new. */
static void __attribute__((noinline)) look_closer(struct run *r, struct word *w, struct str text)
{
	struct tok_ids *ids = r->ids;
	size_t before = ids->n;
	if (w->set != r->nothing)
		w->long_set = NULL;
	if (w->long_set && is_key(w->long_set, w->key) && is_key(w->long_set + 1, w->tail)) {
		ids->n = (size_t)(put_cached(w->long_set, ids->p + before) - ids->p);
		return;
	}
	tok_word(r->t, r->s, text, ids);
	size_t made = ids->n - before;
	if ((w->long_set && made <= MOST_IDS) || (w->set != r->nothing && made <= WORD_IDS))
		cache_put(w, made ? ids->p + before : NULL, made); /* nothing in the vocabulary: no ids at all yet */
}

/* The ids of the words that end there, the first one beginning at p. The cache is larger than the processor's: all their lines are asked for first. */
static void words(struct run *r, const uint8_t *first, const struct tok_ends *ends)
{
	struct tok_ids *ids = r->ids;
	size_t most = r->s->cache ? WORD_BYTES : 0, n_words = ends->n;
	const uint8_t *p = first;
	for (size_t i = 0; i < n_words; p = ends->p[i++]) {
		struct word *w = &r->words[i];
		size_t n = (size_t)(ends->p[i] - p);
		if (n > most) {
			ask_long(r, w, (struct str){ (const char *)p, n });
			continue;
		}
		w->key = key_of(r, p, n, n);
		w->set = set_of(r->s, mixed(w->key));
		__builtin_prefetch(w->set);
	}
	room_for(ids, n_words * MOST_IDS);
	uint32_t *out = ids->p + ids->n;
	for (size_t i = 0; i < n_words; i++) {
		struct word *w = &r->words[i];
		const struct tok_cache_entry *e = w->set + !is_key(w->set, w->key);
		if (is_key(e, w->key)) {
			out = put_cached(e, out);
			continue;
		}
		const uint8_t *begin = i ? ends->p[i - 1] : first;
		ids->n = (size_t)(out - ids->p);
		look_closer(r, w, (struct str){ (const char *)begin, (size_t)(ends->p[i] - begin) });
		room_for(ids, (n_words - i) * MOST_IDS);
		out = ids->p + ids->n;
	}
	ids->n = (size_t)(out - ids->p);
}

/* ---- splitting */

/* Stages nest: each piece of one is cut by the next. At most TOK_MAX_STAGES deep. */
static void split(struct run *r, size_t stage, const uint8_t *p, const uint8_t *end)
{
	const struct tok *t = r->t;
	struct tok_ends *ends = &r->ends[stage];
	for (; p < end; p = ends->p[ends->n - 1]) {
		t->stages[stage]->split(&t->classes, p, end, ends);
		if (stage + 1 == t->n_stages) {
			words(r, p, ends);
			continue;
		}
		for (size_t i = 0; i < ends->n; i++)
			split(r, stage + 1, i ? ends->p[i - 1] : p, ends->p[i]);
	}
}

/* No piece of the vocabulary spans the place p of a spaced text (p stands at a space, behind another character). */
static bool crossing_at(const struct tok *t, const uint8_t *text, const uint8_t *p, const uint8_t *end)
{
	for (size_t i = 0; i < t->n_crossings; i++) {
		struct str a = t->crossings[i].before, b = t->crossings[i].after;
		if ((size_t)(p - text) >= a.n && (size_t)(end - p) >= b.n && memcmp(p - a.n, a.p, a.n) == 0 && memcmp(p, b.p, b.n) == 0)
			return true;
	}
	return false;
}

/* May a spaced text be cut at p (behind its first character), between a and b? */
static inline bool may_cut(const struct tok *t, const uint8_t *text, const uint8_t *p, const uint8_t *end)
{
	size_t pair = (size_t)p[-1] << 8 | *p;
	if (t->neighbours && (*p & 0xc0) != 0x80 && !(t->neighbours[pair >> 3] >> (pair & 7) & 1))
		return true;
	return *p == ' ' && p[-1] != ' ' && !crossing_at(t, text, p, end);
}

/* The end of the word at p of a spaced text (U+2581 and the space are both the byte 0x20): words begin with their spaces. Nobody has
 * to cut where he may: between two letters it is not tried. */
static inline const uint8_t *spaced_end(const struct tok *t, const uint8_t *text, const uint8_t *p, const uint8_t *end)
{
	p++;
	if (t->split_spaces)
		while (p < end && *p != ' ')
			p++;
	else if (t->cut_words)
		while (p < end && !may_cut(t, text, p, end)) {
			const uint8_t *q = tok_ascii_letters(p, end, false);
			p = q > p ? q : p + 1;
		}
	else
		p = end;
	return p;
}

static void split_spaces(struct run *r, const uint8_t *text, const uint8_t *end)
{
	struct tok_ends *ends = &r->ends[0];
	for (const uint8_t *p = text, *q; p < end; p = q) {
		for (ends->n = 0, q = p; q < end && ends->n < TOK_ENDS;)
			ends->p[ends->n++] = q = spaced_end(r->t, text, q, end);
		words(r, p, ends);
	}
}

/* ---- pieces */

#define MARK "\xe2\x96\x81"

/* memchr passes far more bytes at once than memmem with so short a needle. */
static const char *next_mark(struct str text)
{
	const char *end = text.p + text.n, *q = text.p;
	while ((q = memchr(q, MARK[0], (size_t)(end - q))) && !(end - q >= 3 && memcmp(q, MARK, 3) == 0))
		q++;
	return q;
}

/* Writes text with U+2581 and the space as 0x20, maybe one more before it. */
static enum err put_spaced(struct str text, bool prepend_any, bool prepend_missing, struct buf *b)
{
	bool spaced = str_starts(text, STR(" ")) || str_starts(text, STR(MARK));
	if (text.n && (prepend_any || (prepend_missing && !spaced)))
		TRY(buf_add_byte(b, ' '));
	while (text.n) {
		const char *q = next_mark(text);
		size_t n = q ? (size_t)(q - text.p) : text.n;
		TRY(buf_add(b, str_sub(text, 0, n)));
		if (q)
			TRY(buf_add_byte(b, ' '));
		text = str_skip(text, n + (q ? 3 : 0));
	}
	return ERR_OK;
}

/* A piece between all added tokens; start: it begins the prompt. */
static enum err encode_rest(struct run *r, struct str text, bool start)
{
	const struct tok *t = r->t;
	if (text.n == 0)
		return ERR_OK;
	r->end = (const uint8_t *)text.p + text.n;
	if (t->kind == TOK_BYTES) {
		split(r, 0, (const uint8_t *)text.p, r->end);
		return ERR_OK;
	}
	if (t->late_spaces) {
		bool missing = !r->mid_text && (t->prepend == TOK_PREPEND_MISSING || (t->prepend == TOK_PREPEND_FIRST && start));
		buf_clear(&r->s->spaced);
		TRY(put_spaced(text, false, missing, &r->s->spaced));
		text = buf_str(&r->s->spaced);
		r->end = (const uint8_t *)text.p + text.n;
	}
	split_spaces(r, (const uint8_t *)text.p, r->end);
	return ERR_OK;
}

enum err tok_normalize(const struct tok *t, struct tok_scratch *s, bool mid_text, struct str *text)
{
	if (!tok_normal_quick(&t->normal, *text)) {
		buf_clear(&s->normal);
		TRY(tok_normal_put(&t->normal, *text, &s->cps, &s->normal));
		*text = buf_str(&s->normal);
	}
	if (t->kind == TOK_SPACES && !t->late_spaces) {
		buf_clear(&s->normal);
		TRY(put_spaced(*text, t->prepend == TOK_PREPEND_PIECE && !mid_text, false, &s->normal));
		*text = buf_str(&s->normal);
	}
	return ERR_OK;
}

/* ---- added tokens */

/* What a token may swallow at p. In a marked text the byte 0x20 is U+2581, which is no white space. */
static bool is_space(const struct tok *t, const uint8_t *p, bool marked, size_t *n)
{
	enum tok_class c = tok_class_at(&t->classes, p, n);
	return c == TOK_NEWLINE || (c == TOK_SPACE && !(marked && *p == ' '));
}

static bool inside_word(const struct tok_match *m, struct str text)
{
	const uint8_t *p = (const uint8_t *)text.p;
	size_t n;
	return (m->start > 0 && tok_is_word(tok_cp(tok_back(p + m->start), &n))) ||
	       (m->end < text.n && tok_is_word(tok_cp(p + m->end, &n)));
}

/* What a match takes: false when it is no match after all; spaces beside it may belong to it, but not those before done. */
static bool settle(const struct tok *t, const struct tok_trie *trie, struct str text, size_t done, struct tok_match *m)
{
	const struct tok_token *token = &t->tokens[m->token];
	const uint8_t *p = (const uint8_t *)text.p;
	bool marked = trie == &t->late && t->kind == TOK_SPACES && !t->late_spaces;
	size_t n;
	if (token->single_word && inside_word(m, text))
		return false;
	while (token->lstrip && m->start > 0 && is_space(t, tok_back(p + m->start), marked, &n))
		m->start -= n;
	if (token->lstrip)
		m->start = MAX(m->start, done);
	while (token->rstrip && m->end < text.n && is_space(t, p + m->end, marked, &n))
		m->end += n;
	return true;
}

typedef enum err (*piece_fn)(struct run *r, struct str piece, bool start);

/* Cuts the tokens of a trie out of text; the pieces between go to fn. */
static enum err each_piece(struct run *r, const struct tok_trie *trie, struct str text, bool start, piece_fn fn)
{
	const struct tok *t = r->t;
	size_t done = 0, from = 0;
	struct tok_match m;
	while (tok_trie_next(trie, text, from, &m)) {
		from = m.end;
		if (!settle(t, trie, text, done, &m))
			continue;
		if (done < m.start)
			TRY(fn(r, str_sub(text, done, m.start - done), start && done == 0));
		r->mid_text = false;
		push_id(r->ids, t->tokens[m.token].id);
		done = m.end;
	}
	if (done < text.n)
		TRY(fn(r, str_skip(text, done), start && done == 0));
	return ERR_OK;
}

static enum err encode_piece(struct run *r, struct str text, bool start)
{
	TRY(tok_normalize(r->t, r->s, r->mid_text, &text));
	return each_piece(r, &r->t->late, text, start, encode_rest);
}

static enum err encode_ordinary(struct run *r, struct str text, bool start)
{
	TRY(tok_normalize(r->t, r->s, r->mid_text, &text));
	return encode_rest(r, text, start);
}

/* ---- the call */

/* Some workers cut runs of 25,000 characters with or without spaces, and texts of 400,000: those are theirs to encode. */
static bool too_long_for_worker(const struct tok *t, struct str text)
{
	enum { MOST_RUN = 25000, MOST_TEXT = 400000 };
	size_t run = 0, all = 0, len;
	bool last = false;
	for (size_t i = 0; i < text.n; i += len) {
		uint32_t cp = tok_cp((const uint8_t *)text.p + i, &len);
		enum tok_class c = (enum tok_class)tok_table_get(&t->classes, cp);
		bool space = c == TOK_SPACE || c == TOK_NEWLINE || (cp >= 0x1c && cp <= 0x1f);
		run = space == last ? run + 1 : 1;
		last = space;
		if (run > MOST_RUN || ++all > MOST_TEXT)
			return true;
	}
	return false;
}

static void push_all(struct tok_ids *ids, const uint32_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		push_id(ids, p[i]);
}

static bool disputed(const struct tok *t, struct str text)
{
	size_t n;
	for (size_t i = 0; i < text.n; i += n)
		if (tok_table_get(&t->disputed, tok_cp((const uint8_t *)text.p + i, &n)))
			return true;
	return false;
}

/* A text between two safe cuts. */
static enum err encode_stretch(struct run *r, const struct tok_job *job, const struct tok_stretch *s)
{
	r->new_bytes += s->text.n;
	if (job->max_new_bytes && r->new_bytes + (job->new_bytes ? *job->new_bytes : 0) > job->max_new_bytes)
		return ERR_AGAIN;
	if (!utf8_valid(s->text))
		return ERR_SYNTAX;
	if (r->t->disputed.n_blocks && disputed(r->t, s->text))
		return ERR_UNSUPPORTED;
	r->mid_text = s->from == TOK_FROM_TEXT;
	return s->ordinary ? encode_ordinary(r, s->text, s->from == TOK_FROM_START) : each_piece(r, &r->t->raw, s->text, s->from == TOK_FROM_START, encode_piece);
}

/* One that others may have done before, or will do again. */
static enum err known_stretch(struct run *r, const struct tok_job *job, const struct tok_stretch *s)
{
	size_t before = r->ids->n;
	if (tok_memo_find(job->memo, r->t, s, r->ids)) {
		r->known_bytes += s->text.n;
		return ERR_OK;
	}
	TRY(encode_stretch(r, job, s));
	size_t made = r->ids->n - before;
	tok_memo_keep(job->memo, r->t, s, (struct tok_ids){ .p = made ? r->ids->p + before : NULL, .n = made });
	return ERR_OK;
}

static size_t next_cut(const struct run *r, const struct tok_job *job, struct str text, enum tok_from *ret_from)
{
	size_t least = tok_memo_least(job->memo);
	if (!job->ordinary)
		return tok_cut_next(r->t, text, least, ret_from);
	*ret_from = TOK_FROM_TEXT;
	return tok_cut_ordinary(r->t, text, least);
}

/* The last stretch ends where the text does, not at a cut: it is nobody else's, unless the text is all that stands there. */
static enum err encode_all(struct run *r, const struct tok_job *job)
{
	struct tok_stretch s = { .from = job->from, .ordinary = job->ordinary };
	struct str rest = job->text;
	enum tok_from next;
	for (size_t end; job->memo && (end = next_cut(r, job, rest, &next)) != 0; s.from = next) {
		s.text = str_sub(rest, 0, end);
		TRY(known_stretch(r, job, &s));
		rest = str_skip(rest, end);
	}
	s.text = rest;
	return job->memo && job->ordinary && rest.n >= TOK_MEMO_PIECE_BYTES ? known_stretch(r, job, &s) : encode_stretch(r, job, &s);
}

struct tok_around tok_around(const struct tok *t) { return (struct tok_around){ t->n_before, t->n_after }; }

static enum err check(const struct tok *t, const struct tok_job *job)
{
	if (job->text.n > TOK_MAX_TEXT_BYTES)
		return ERR_LIMIT;
	if (t->around_unknown && (job->add_bos || job->add_eos))
		return ERR_UNSUPPORTED;
	if (!t->long_runs_differ || job->text.n <= 25000)
		return ERR_OK;
	if (!utf8_valid(job->text))
		return ERR_SYNTAX;
	return too_long_for_worker(t, job->text) ? ERR_UNSUPPORTED : ERR_OK;
}

enum err tok_encode(const struct tok *t, struct tok_scratch *s, const struct tok_job *job, struct tok_ids *ids)
{
	struct run r __attribute__((uninitialized)); /* five kilobytes are room for words: too much to clear for a short text */
	memset(&r, 0, offsetof(struct run, last));
	r.t = t;
	r.s = s;
	r.ids = ids;
	size_t had = ids->n;
	must(s->t == t);
	TRY(check(t, job));
	if (job->add_bos)
		push_all(ids, t->before, t->n_before);
	enum err e = encode_all(&r, job);
	if (e != ERR_OK) {
		ids->n = had;
		return e;
	}
	if (job->add_eos)
		push_all(ids, t->after, t->n_after);
	if (job->new_bytes)
		*job->new_bytes += r.new_bytes;
	if (job->memo)
		tok_memo_count(job->memo, r.known_bytes, r.new_bytes);
	if (s->sym.cap * sizeof(uint32_t) > KEEP_BYTES || s->normal.cap > KEEP_BYTES || s->spaced.cap > KEEP_BYTES)
		drop_arrays(s);
	return ERR_OK;
}
