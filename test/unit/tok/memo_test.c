/* Conversations that grow, with the memo and without: the same ids at every turn, for every kind of tokenizer; what is known is not
 * done again; bounded; usable by many threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/rand.h"
#include "base/vec.h"
#include "golden.h"
#include "tok/memo.h"
#include "tok/tok_priv.h"

static struct tok_memo *memo_of(size_t max_bytes, size_t least_bytes)
{
	return tok_memo_new(&(struct tok_memo_opts){ .max_bytes = max_bytes, .least_bytes = least_bytes, .seed = 7 });
}

static void put(struct buf *b, struct str s) { assert_int_equal(buf_add(b, s), ERR_OK); }

/* At most n, not inside a character. */
static size_t utf8_head(struct str s, size_t n)
{
	while (n && n < s.n && ((uint8_t)s.p[n] & 0xc0) == 0x80)
		n--;
	return n;
}

/* A turn: its own texts, what stands between, added tokens and beginnings of them. */
static void grow(struct golden *g, struct buf *b, struct rand *r)
{
	static const struct str JOINS[] = { STR_INIT(""), STR_INIT("\n"), STR_INIT("\n\n"), STR_INIT(" "), STR_INIT("\na"), STR_INIT("b c"),
		STR_INIT("\r\n1"), STR_INIT("<s>"), STR_INIT("</s>\n"), STR_INIT("<|im_end|>\n"), STR_INIT("<|im_start|>user\nHello"), STR_INIT("\xcc\x81"), STR_INIT(" <v>"), STR_INIT(">"), STR_INIT("]") };
	for (size_t n = 1 + rand_below(r, 6); n; n--) {
		put(b, g->texts[rand_below(r, g->n)]);
		put(b, JOINS[rand_below(r, ARRAY_LEN(JOINS))]);
		for (size_t k = g->t->n_tokens ? rand_below(r, 4) : 0; k; k--) {
			struct str token = g->t->tokens[rand_below(r, g->t->n_tokens)].content;
			put(b, rand_below(r, 8) ? token : str_sub(token, 0, utf8_head(token, rand_below(r, token.n))));
			put(b, rand_below(r, 3) ? STR("") : JOINS[rand_below(r, ARRAY_LEN(JOINS))]);
		}
	}
}

static void check(struct golden *g, const char *name, struct tok_memo *m, struct str text)
{
	struct tok_ids whole = { 0 }, grown = { 0 };
	assert_int_equal(tok_encode(g->t, g->s, &(struct tok_job){ .text = text }, &whole), ERR_OK);
	assert_int_equal(tok_encode(g->t, g->s, &(struct tok_job){ .text = text, .memo = m }, &grown), ERR_OK);
	if (grown.n != whole.n || (whole.n && memcmp(grown.p, whole.p, whole.n * sizeof(*whole.p))))
		fail_msg("%s: other ids with the memo for \"%.*s\"", name, STR_ARG(text));
	tok_ids_done(&whole);
	tok_ids_done(&grown);
}

static void converse(struct golden *g, const char *name, struct tok_memo *m, struct rand *r)
{
	enum { CHATS = 4, TURNS = 40, LONG = 6000 };
	struct buf chats[CHATS];
	for (size_t c = 0; c < CHATS; c++)
		buf_init(&chats[c], 1 << 20);
	for (size_t i = 0; i < TURNS; i++) {
		struct buf *b = &chats[rand_below(r, CHATS)], *other = &chats[rand_below(r, CHATS)];
		if (b->n > LONG)
			buf_clear(b);
		if (b->n == 0 && other->n && other != b)
			put(b, buf_str(other)); /* it shares another's past */
		grow(g, b, r);
		check(g, name, m, buf_str(b));
	}
	for (size_t c = 0; c < CHATS; c++)
		buf_done(&chats[c]);
}

/* Returns how much was known. */
static size_t converse_all(struct golden *g, const char *name, struct rand *r)
{
	size_t known = 0;
	for (size_t least = 1; least <= 256; least *= 16) {
		struct tok_memo *m = memo_of(least == 16 ? 64 << 8 : 1 << 24, least); /* once with room for next to nothing */
		converse(g, name, m, r);
		known += tok_memo_stats(m).known_bytes;
		tok_memo_unref(m);
	}
	golden_close(g);
	return known;
}

static void test_conversations_give_the_ids_of_a_full_run(void **state)
{
	(void)state;
	struct rand r = { 11 };
	struct golden g;
	size_t known = 0;
	for (size_t k = 0; GOLDEN[k]; k++) {
		golden_open(&g, GOLDEN[k]);
		known += converse_all(&g, GOLDEN[k], &r);
		if (golden_open_odd(&g, GOLDEN[k]))
			known += converse_all(&g, GOLDEN[k], &r);
	}
	assert_true(known > 2000000);
}

/* ---- where stretches end */

/* The first cut at or behind least, with the tokens looked for from the text's start on. */
static size_t slow_cut(const struct tok *t, struct str text, size_t least, enum tok_from *ret_from)
{
	size_t plain = tok_cut_ordinary(t, text, least);
	struct tok_match m;
	for (size_t from = 0; t->token_cuts && tok_trie_next(&t->raw, text, from, &m) && (!plain || m.start < plain); from = m.end)
		if (m.end >= least && !t->tokens[m.token].rstrip) {
			*ret_from = TOK_FROM_TOKEN;
			return m.end;
		}
	*ret_from = TOK_FROM_TEXT;
	return plain;
}

/* Returns how many cuts there were. */
static size_t check_cuts(struct golden *g, const char *name, struct rand *r)
{
	enum { LONG = 9000, TIMES = 100 };
	struct buf b;
	size_t seen = 0;
	buf_init(&b, 1 << 20);
	while (b.n < LONG)
		grow(g, &b, r);
	for (size_t i = 0; i < TIMES; i++) {
		struct str text = str_skip(buf_str(&b), rand_below(r, LONG));
		size_t least = 1 + rand_below(r, rand_below(r, 2) ? 64 : text.n + 2);
		enum tok_from from, slow_from;
		size_t cut = tok_cut_next(g->t, text, least, &from), slow = slow_cut(g->t, text, least, &slow_from);
		if (cut != slow || (cut && from != slow_from))
			fail_msg("%s: cut at %zu, not at %zu, from %zu on in \"%.*s\"", name, cut, slow, least, STR_ARG(text));
		seen += cut != 0;
	}
	buf_done(&b);
	golden_close(g);
	return seen;
}

static void test_a_stretch_ends_at_its_first_cut(void **state)
{
	(void)state;
	struct rand r = { 5 };
	struct golden g;
	size_t seen = 0;
	for (size_t k = 0; GOLDEN[k]; k++) {
		golden_open(&g, GOLDEN[k]);
		seen += check_cuts(&g, GOLDEN[k], &r);
		if (golden_open_odd(&g, GOLDEN[k]))
			seen += check_cuts(&g, GOLDEN[k], &r);
	}
	assert_true(seen > 2000);
}

/* ---- what it saves */

static void test_the_next_turn_costs_what_is_new(void **state)
{
	(void)state;
	struct golden g;
	struct buf b;
	golden_open(&g, "qwen2");
	buf_init(&b, 1 << 20);
	struct tok_memo *m = memo_of(1 << 20, 64);
	for (int i = 0; i < 200; i++)
		assert_int_equal(buf_printf(&b, "line %d of a long story\n", i), ERR_OK);
	check(&g, "qwen2", m, buf_str(&b));
	size_t first = b.n;
	assert_int_equal(tok_memo_stats(m).new_bytes, first);
	put(&b, STR("and a little more\n"));
	check(&g, "qwen2", m, buf_str(&b));
	struct tok_memo_stats s = tok_memo_stats(m);
	assert_true(s.new_bytes - first < 200 && s.known_bytes > first - 200);
	assert_true(s.table.items > 20 && s.table.bytes > first && s.table.evicted == 0);

	struct tok_ids ids = { 0 };
	struct tok_job job = { .text = buf_str(&b), .memo = m, .max_new_bytes = 200 };
	assert_int_equal(tok_encode(g.t, g.s, &job, &ids), ERR_OK); /* the rest is known */
	size_t had = ids.n;
	job.memo = NULL;
	assert_int_equal(tok_encode(g.t, g.s, &job, &ids), ERR_AGAIN);
	assert_int_equal(ids.n, had);
	tok_ids_done(&ids);
	tok_memo_unref(m);
	buf_done(&b);
	golden_close(&g);
}

/* Another tokenizer, or another place in the prompt, has other ids for the same bytes. */
static void test_stretches_of_others_are_not_taken(void **state)
{
	(void)state;
	struct golden a, b;
	golden_open(&a, "qwen2");
	golden_open(&b, "o200k");
	struct tok_memo *m = memo_of(1 << 20, 1);
	uint32_t one[] = { 4, 5 };
	struct tok_stretch s = { .text = STR("some text\n"), .from = TOK_FROM_START };
	struct tok_ids ids = { 0 };
	tok_memo_keep(m, a.t, &s, (struct tok_ids){ .p = one, .n = 2 });
	assert_false(tok_memo_find(m, b.t, &s, &ids));
	s.from = TOK_FROM_TEXT;
	assert_false(tok_memo_find(m, a.t, &s, &ids));
	s.from = TOK_FROM_START;
	assert_true(tok_memo_find(m, a.t, &s, &ids));
	assert_true(ids.n == 2 && ids.p[1] == 5);
	tok_ids_done(&ids);
	tok_memo_unref(m);
	golden_close(&a);
	golden_close(&b);
}

static void test_it_is_bounded(void **state)
{
	(void)state;
	enum { MAX = 256 << 10 };
	struct golden g;
	golden_open(&g, "qwen2");
	struct tok_memo *m = memo_of(MAX, 1);
	char text[4000];
	uint32_t ids[100] = { 0 };
	struct tok_ids out = { 0 };
	struct tok_stretch s = { .text = { text, sizeof(text) }, .from = TOK_FROM_START };
	memset(text, 'x', sizeof(text));
	for (uint32_t i = 0; i < 2000; i++) {
		memcpy(text, &i, sizeof(i));
		s.text.n = 10 + i;
		tok_memo_keep(m, g.t, &s, (struct tok_ids){ .p = ids, .n = 100 });
		assert_true(tok_memo_stats(m).table.bytes <= MAX);
	}
	assert_true(tok_memo_stats(m).table.evicted > 1000);
	struct tok_memo *none = memo_of(0, 1);
	tok_memo_keep(none, g.t, &s, (struct tok_ids){ .p = ids, .n = 1 });
	assert_false(tok_memo_find(none, g.t, &s, &out));
	assert_int_equal(tok_memo_stats(none).table.bytes, 0);
	tok_memo_unref(none);
	tok_memo_unref(m);
	tok_ids_done(&out);
	golden_close(&g);
}

/* ---- threads */

struct worker {
	const struct golden *g;
	struct tok_memo *m;
	uint64_t seed;
	bool ok;
};

static void *work(void *arg)
{
	struct worker *w = arg;
	struct rand r = { w->seed };
	struct tok_scratch *s = tok_scratch_new(w->g->t, 1 << 14);
	for (int i = 0; i < 300; i++) {
		size_t k = rand_below(&r, w->g->n);
		struct tok_ids with = { 0 }, without = { 0 };
		w->ok &= tok_encode(w->g->t, s, &(struct tok_job){ .text = w->g->texts[k], .memo = w->m }, &with) == ERR_OK;
		w->ok &= tok_encode(w->g->t, s, &(struct tok_job){ .text = w->g->texts[k] }, &without) == ERR_OK;
		w->ok &= with.n == without.n && (with.n == 0 || memcmp(with.p, without.p, with.n * sizeof(*with.p)) == 0);
		tok_ids_done(&with);
		tok_ids_done(&without);
	}
	tok_scratch_free(s);
	return NULL;
}

static void test_threads_share_it(void **state)
{
	(void)state;
	enum { THREADS = 4 };
	struct golden g;
	golden_open(&g, "llama2");
	struct tok_memo *m = memo_of(1 << 16, 4);
	pthread_t threads[THREADS];
	struct worker w[THREADS];
	for (size_t i = 0; i < THREADS; i++) {
		w[i] = (struct worker){ &g, m, i + 1, true };
		assert_int_equal(pthread_create(&threads[i], NULL, work, &w[i]), 0);
	}
	for (size_t i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		assert_true(w[i].ok);
	}
	tok_memo_unref(m);
	golden_close(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_conversations_give_the_ids_of_a_full_run),
		cmocka_unit_test(test_a_stretch_ends_at_its_first_cut),
		cmocka_unit_test(test_the_next_turn_costs_what_is_new),
		cmocka_unit_test(test_stretches_of_others_are_not_taken),
		cmocka_unit_test(test_it_is_bounded),
		cmocka_unit_test(test_threads_share_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
