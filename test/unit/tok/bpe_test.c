/* Merging: short and long words against the definition, and a run of one letter in about linear time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <time.h>

#include "base/rand.h"
#include "slow.h"

/* A byte-level tokenizer without files: pieces are bytes and random merges of what is there. */
static void make(struct tok *t, struct rand *r, uint32_t letters, uint32_t n_merges)
{
	memset(t, 0, sizeof(*t));
	t->kind = TOK_BYTES;
	t->unk_id = TOK_NONE;
	memset(t->byte_id, 0xff, sizeof(t->byte_id));
	for (uint32_t i = 0; i < letters; i++)
		t->byte_id['a' + i] = i;
	tok_merges_init(&t->merges, n_merges, n_merges);
	for (uint32_t rank = 0; rank < n_merges; rank++) {
		uint32_t have = letters + rank;
		tok_merges_put(&t->merges, (uint32_t)rand_below(r, have), (uint32_t)rand_below(r, have), rank);
		t->merges.result[rank] = letters + rank;
	}
	tok_merges_first(&t->merges, t->byte_id);
}

static void compare(const struct tok *t, struct tok_scratch *s, struct str word)
{
	struct tok_ids ids = { 0 };
	uint32_t *want = must_malloc(word.n * sizeof(*want) + 4);
	size_t n = 0;
	for (size_t i = 0; i < word.n; i++)
		if (t->byte_id[(uint8_t)word.p[i]] != TOK_NONE)
			want[n++] = t->byte_id[(uint8_t)word.p[i]];
	n = slow_merge(&t->merges, want, n);
	tok_word(t, s, word, &ids);
	assert_int_equal(ids.n, n);
	if (n)
		assert_memory_equal(ids.p, want, n * sizeof(*want));
	free(want);
	tok_ids_done(&ids);
}

static void test_words_equal_the_definition(void **state)
{
	(void)state;
	struct rand r = { 5 };
	char word[600];
	for (int round = 0; round < 60; round++) {
		struct tok t;
		uint32_t letters = 1 + (uint32_t)rand_below(&r, 5);
		make(&t, &r, letters, 1 + (uint32_t)rand_below(&r, 60));
		struct tok_scratch *s = tok_scratch_new(&t, 0);
		for (int i = 0; i < 60; i++) {
			size_t n = 1 + rand_below(&r, i % 3 ? 60 : sizeof(word));
			for (size_t k = 0; k < n; k++)
				word[k] = (char)('a' + rand_below(&r, letters + (i % 5 == 0))); /* sometimes a byte without an id */
			compare(&t, s, (struct str){ word, n });
		}
		tok_scratch_free(s);
		tok_merges_done(&t.merges);
	}
}

/* Long enough for the sorted list, with few letters so that much merges at once. */
static void test_long_words_equal_the_definition(void **state)
{
	(void)state;
	enum { N = 3000 };
	struct rand r = { 8 };
	char *word = must_malloc(N);
	for (int round = 0; round < 12; round++) {
		struct tok t;
		uint32_t letters = 1 + (uint32_t)rand_below(&r, 3);
		make(&t, &r, letters, 4 + (uint32_t)rand_below(&r, 40));
		struct tok_scratch *s = tok_scratch_new(&t, 0);
		for (size_t i = 0; i < N; i++)
			word[i] = (char)('a' + (round % 2 && i ? (rand_below(&r, 9) ? word[i - 1] - 'a' : (int)rand_below(&r, letters))
							       : (int)rand_below(&r, letters)));
		compare(&t, s, (struct str){ word, N });
		tok_scratch_free(s);
		tok_merges_done(&t.merges);
	}
	free(word);
}

/* aa, aaaa, aaaaaaaa ...: the merges of a run. Twice as long may take little more than twice as long. */
static void test_one_letter_is_about_linear(void **state)
{
	(void)state;
	enum { LEVELS = 8, N = 1 << 18 };
	struct tok t = { .kind = TOK_BYTES, .unk_id = TOK_NONE };
	memset(t.byte_id, 0xff, sizeof(t.byte_id));
	t.byte_id['a'] = 0;
	tok_merges_init(&t.merges, LEVELS, LEVELS);
	for (uint32_t i = 0; i < LEVELS; i++) {
		tok_merges_put(&t.merges, i, i, i);
		t.merges.result[i] = i + 1;
	}
	tok_merges_first(&t.merges, t.byte_id);
	struct tok_scratch *s = tok_scratch_new(&t, 0);
	char *text = must_malloc(2 * N);
	memset(text, 'a', 2 * N);
	double least[2] = { 1e9, 1e9 };
	for (int i = 0; i < 10; i++) {
		struct tok_ids ids = { 0 };
		struct timespec a, b;
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
		tok_word(&t, s, (struct str){ text, (size_t)N << i % 2 }, &ids);
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
		assert_int_equal(ids.n, ((size_t)N << i % 2) >> LEVELS);
		assert_int_equal(ids.p[0], LEVELS);
		double ms = (double)(b.tv_sec - a.tv_sec) * 1e3 + (double)(b.tv_nsec - a.tv_nsec) / 1e6;
		least[i % 2] = MIN(least[i % 2], ms);
		tok_ids_done(&ids);
	}
	assert_true(least[1] < 3.5 * least[0] + 5);
	free(text);
	tok_scratch_free(s);
	tok_merges_done(&t.merges);
}

static void test_pair_listed_twice_counts_last(void **state)
{
	(void)state;
	struct tok_merges m;
	tok_merges_init(&m, 2, 2);
	tok_merges_put(&m, 1, 2, 0);
	tok_merges_put(&m, 1, 2, 1);
	assert_int_equal(tok_merges_rank(&m, 1, 2), 1);
	assert_int_equal(tok_merges_rank(&m, 2, 1), TOK_NONE);
	tok_merges_done(&m);
}

/* Forms of one word differ in their last bytes: each must get a place in the cache of its own. */
static void test_the_cache_holds_words_that_are_alike(void **state)
{
	(void)state;
	enum { STEMS = 300, FORMS = 20, MOST = 30 };
	struct rand r = { 3 };
	struct tok t;
	make(&t, &r, 1, 1); /* other letters have no id: few ids a word */
	tok_classes_init(&t.classes, TOK_UNICODE_16);
	t.stages[t.n_stages++] = tok_splitter_find(STR("<gpt2>"));
	struct tok_scratch *s = tok_scratch_new(&t, 4 << 20);
	for (int n = 6; n <= MOST; n++) {
		struct tok_ids ids = { 0 };
		size_t held = 0;
		char *text = must_malloc(STEMS * FORMS * MOST), *p = text;
		for (int i = 0; i < STEMS; i++) {
			char word[MOST] = " ";
			for (int k = 1; k < n; k++)
				word[k] = (char)('b' + rand_below(&r, 25));
			for (int k = 0; k < FORMS; k++, p += n) {
				word[n - 1] = (char)('a' + k);
				memcpy(p, word, (size_t)n);
			}
		}
		memset(s->cache, 0, 2 * (s->cache_mask + 1) * sizeof(*s->cache));
		assert_int_equal(tok_encode(&t, s, &(struct tok_job){ .text = { text, (size_t)(p - text) } }, &ids), ERR_OK);
		for (size_t i = 0; i < 2 * (s->cache_mask + 1); i++)
			held += s->cache[i].key[1] != 0;
		held /= n > 15 ? 2 : 1; /* a long one takes two places */
		assert_in_range(held, STEMS * FORMS * 9 / 10, STEMS * FORMS);
		tok_ids_done(&ids);
		free(text);
	}
	tok_scratch_free(s);
	tok_merges_done(&t.merges);
	tok_table_done(&t.classes);
}

/* Words of all lengths, many with the beginning or the end of another, in a cache of one to four sets: each pushes others out, and
 * what is found there is what would have been made. */
static void test_a_small_cache_gives_the_same_ids(void **state)
{
	(void)state;
	enum { WORDS = 400, ROUNDS = 200, BYTES = WORDS * 40 };
	struct rand r = { 21 };
	char *text = must_malloc(BYTES), like[40];
	for (int round = 0; round < ROUNDS; round++) {
		struct tok t;
		make(&t, &r, 3, 1 + (uint32_t)rand_below(&r, 60));
		t.byte_id[' '] = 0;
		tok_classes_init(&t.classes, TOK_UNICODE_16);
		t.stages[t.n_stages++] = tok_splitter_find(STR("<gpt2>"));
		struct tok_scratch *small = tok_scratch_new(&t, (size_t)64 << round % 3), *none = tok_scratch_new(&t, 0);
		struct tok_ids got = { 0 }, want = { 0 };
		size_t n = 0;
		memset(like, 'a', sizeof(like));
		for (int i = 0; i < WORDS; i++) {
			size_t length = rand_below(&r, 4) ? 14 + rand_below(&r, 4) : rand_below(&r, 36);
			like[rand_below(&r, sizeof(like))] = (char)('a' + rand_below(&r, 4)); /* d has no id */
			text[n++] = ' ';
			memcpy(text + n, like + rand_below(&r, sizeof(like) - length), length);
			n += length;
		}
		struct tok_job job = { .text = { text, n } };
		assert_int_equal(tok_encode(&t, small, &job, &got), ERR_OK);
		assert_int_equal(tok_encode(&t, none, &job, &want), ERR_OK);
		assert_int_equal(got.n, want.n);
		assert_memory_equal(got.p, want.p, want.n * sizeof(*want.p));
		tok_ids_done(&got);
		tok_ids_done(&want);
		tok_scratch_free(small);
		tok_scratch_free(none);
		tok_merges_done(&t.merges);
		tok_table_done(&t.classes);
	}
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words_equal_the_definition),
		cmocka_unit_test(test_long_words_equal_the_definition),
		cmocka_unit_test(test_one_letter_is_about_linear),
		cmocka_unit_test(test_pair_listed_twice_counts_last),
		cmocka_unit_test(test_the_cache_holds_words_that_are_alike),
		cmocka_unit_test(test_a_small_cache_gives_the_same_ids),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
