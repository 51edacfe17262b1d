/* Small tokenizers of every supported kind against the ids that the real libraries gave for their texts (made by
 * test/tokenizers/oracle.py golden): whole, without a cache, cut at every safe place, and decoded again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "golden.h"

static void encode(struct golden *g, struct tok_scratch *s, const struct tok_job *job, struct tok_ids *ids)
{
	assert_int_equal(tok_encode(g->t, s, job, ids), ERR_OK);
}

static void same_ids(const char *name, struct str text, const struct tok_ids *got, const struct tok_ids *want)
{
	if (got->n == want->n && (got->n == 0 || memcmp(got->p, want->p, got->n * sizeof(*got->p)) == 0))
		return;
	print_message("%s: \"%.*s\"\n  got ", name, STR_ARG(text));
	for (size_t i = 0; i < got->n; i++)
		print_message(" %u", got->p[i]);
	print_message("\n  want");
	for (size_t i = 0; i < want->n; i++)
		print_message(" %u", want->p[i]);
	fail_msg("\n%s: ids differ", name);
}

/* The tiktoken and tekken answers were taken without BOS. */
static bool around(const char *name) { return strcmp(name, "tekken") != 0; }

static void test_ids_equal_the_library(void **state)
{
	(void)state;
	for (size_t k = 0; GOLDEN[k]; k++) {
		struct golden g;
		golden_open(&g, GOLDEN[k]);
		struct tok_scratch *none = tok_scratch_new(g.t, 0);
		for (size_t i = 0; i < 2 * g.n; i++) { /* twice: the second time from the cache */
			struct tok_ids ids = { 0 };
			struct tok_job job = { .text = g.texts[i % g.n], .add_bos = around(GOLDEN[k]), .add_eos = around(GOLDEN[k]) };
			encode(&g, g.s, &job, &ids);
			same_ids(GOLDEN[k], job.text, &ids, &g.ids[i % g.n]);
			ids.n = 0;
			encode(&g, none, &job, &ids);
			same_ids(GOLDEN[k], job.text, &ids, &g.ids[i % g.n]);
			tok_ids_done(&ids);
		}
		tok_scratch_free(none);
		golden_close(&g);
	}
}

/* head + tail, encoded apart at a cut of head, give what the joined text gives. */
static void check_cut(struct golden *g, const char *name, struct str head, struct str tail, enum tok_from from)
{
	struct tok_ids whole = { 0 }, parts = { 0 };
	struct buf both;
	buf_init(&both, 1 << 20);
	assert_int_equal(buf_add(&both, head), ERR_OK);
	assert_int_equal(buf_add(&both, tail), ERR_OK);
	encode(g, g->s, &(struct tok_job){ .text = buf_str(&both) }, &whole);
	encode(g, g->s, &(struct tok_job){ .text = head }, &parts);
	encode(g, g->s, &(struct tok_job){ .text = tail, .from = from }, &parts);
	same_ids(name, buf_str(&both), &parts, &whole);
	tok_ids_done(&whole);
	tok_ids_done(&parts);
	buf_done(&both);
}

/* Every cut of a text that is found from its start on. */
static size_t check_cuts(struct golden *g, const char *name, struct str text)
{
	enum tok_from from = TOK_FROM_START;
	size_t seen = 0;
	for (size_t at = 0, n; (n = tok_cut_next(g->t, str_skip(text, at), 1, &from)) != 0; seen++) {
		at += n;
		check_cut(g, name, str_sub(text, 0, at), str_skip(text, at), from);
	}
	return seen;
}

/* A text with many chances for cuts in plain text: lines of others. */
static void join_lines(struct golden *g, size_t i, struct buf *b)
{
	buf_clear(b);
	for (size_t k = 0; k < 4; k++) {
		assert_int_equal(buf_add(b, g->texts[(i + k * 7) % g->n]), ERR_OK);
		assert_int_equal(buf_add(b, k % 2 ? STR("\nab") : STR("x b")), ERR_OK);
	}
}

/* The last cut of every beginning of a text stays one, whatever the text goes on with. */
static size_t check_last_cuts(struct golden *g, const char *name, struct str text)
{
	size_t seen = 0;
	for (size_t n = 1; n < text.n; n += 1 + n / 3) {
		size_t at = tok_cut_last(g->t, str_sub(text, 0, n));
		enum tok_from from;
		assert_true(at < n);
		if (!at)
			continue;
		for (size_t c = 0, k; c != at; c += k) {
			k = tok_cut_next(g->t, str_skip(text, c), 1, &from);
			assert_true(k && c + k <= at);      /* it is one of the whole text's */
		}
		check_cut(g, name, str_sub(text, 0, at), str_skip(text, at), from);
		seen++;
	}
	return seen;
}

static void test_cuts_are_safe(void **state)
{
	(void)state;
	size_t seen = 0, last = 0;
	struct buf lines;
	buf_init(&lines, 1 << 20);
	for (size_t k = 0; GOLDEN[k]; k++) {
		struct golden g;
		golden_open(&g, GOLDEN[k]);
		for (size_t i = 0; i < g.n; i++) {
			seen += check_cuts(&g, GOLDEN[k], g.texts[i]);
			join_lines(&g, i, &lines);
			seen += check_cuts(&g, GOLDEN[k], buf_str(&lines));
			last += check_last_cuts(&g, GOLDEN[k], buf_str(&lines));
		}
		golden_close(&g);
	}
	buf_done(&lines);
	assert_true(seen > 2500 && last > 1000);
}

/* gigatoken-like splice bug, ours [facts 25]: Metaspace `first` acts at the very start only. */
static void test_case_first_space_after_a_cut(void **state)
{
	(void)state;
	struct golden g;
	golden_open(&g, "metaspace_first");
	struct tok_ids start = { 0 }, later = { 0 };
	encode(&g, g.s, &(struct tok_job){ .text = STR("cd") }, &start);
	encode(&g, g.s, &(struct tok_job){ .text = STR("cd"), .from = TOK_FROM_TOKEN }, &later);
	assert_true(start.n != later.n || start.p[0] != later.p[0]);
	tok_ids_done(&start);
	tok_ids_done(&later);
	golden_close(&g);
}

/* Ids of plain text without added tokens decode to it again, where the normalizer keeps the text. */
static void test_decode_gives_the_text_back(void **state)
{
	(void)state;
	static const char *const EXACT[] = { "cl100k", "gpt2", "o200k", "deepseek", "tekken", "tiktoken", "qwen35", "metaspace_first" };
	static const struct str TEXTS[] = { STR_INIT("Hello  world,\n\ndon't 12345 \xe4\xb8\xad\xe6\x97\xa5 \xf0\x9f\x98\x80!"),
		STR_INIT("a"), STR_INIT("\xc3\xb4t\xc3\xb4 9/9") };
	for (size_t k = 0; k < ARRAY_LEN(EXACT); k++) {
		struct golden g;
		golden_open(&g, EXACT[k]);
		for (size_t i = 0; i < ARRAY_LEN(TEXTS); i++) {
			struct tok_ids ids = { 0 };
			struct buf b;
			buf_init(&b, 1 << 16);
			encode(&g, g.s, &(struct tok_job){ .text = TEXTS[i], .add_bos = true, .add_eos = true }, &ids);
			assert_int_equal(tok_decode(g.t, &(struct tok_decode_job){ ids.p, ids.n, true }, &b), ERR_OK);
			struct str got = buf_str(&b);
			if (str_starts(got, STR("<s>"))) /* the golden BOS is a piece, no special token */
				got = str_sub(got, 3, got.n - 7);
			if (!str_eq(got, TEXTS[i]) && !str_eq(str_skip(got, 1), TEXTS[i]))
				fail_msg("%s: %.*s", EXACT[k], STR_ARG(got));
			buf_done(&b);
			tok_ids_done(&ids);
		}
		golden_close(&g);
	}
}

static void test_bad_texts_and_ids(void **state)
{
	(void)state;
	struct golden g;
	golden_open(&g, "qwen2");
	struct tok_ids ids = { 0 };
	struct buf b;
	buf_init(&b, 1 << 10);
	assert_int_equal(tok_encode(g.t, g.s, &(struct tok_job){ .text = STR("a\xff") }, &ids), ERR_SYNTAX);
	assert_int_equal(tok_encode(g.t, g.s, &(struct tok_job){ .text = STR("\xed\xa0\x80") }, &ids), ERR_SYNTAX);
	assert_int_equal(tok_encode(g.t, g.s, &(struct tok_job){ .text = STR("\xe4\xb8") }, &ids), ERR_SYNTAX);
	assert_int_equal(ids.n, 0);
	assert_int_equal(tok_encode(g.t, g.s, &(struct tok_job){ .text = { "a\0b", 3 } }, &ids), ERR_OK);
	assert_true(ids.n > 1);
	assert_int_equal(tok_decode(g.t, &(struct tok_decode_job){ (uint32_t[]){ 1u << 30 }, 1, false }, &b), ERR_RANGE);
	tok_ids_done(&ids);
	buf_done(&b);
	golden_close(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ids_equal_the_library),
		cmocka_unit_test(test_cuts_are_safe),
		cmocka_unit_test(test_case_first_space_after_a_cut),
		cmocka_unit_test(test_decode_gives_the_text_back),
		cmocka_unit_test(test_bad_texts_and_ids),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
