#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "sim/token.h"

static struct sim_vocab *vocab;
static int setup(void **state)
{
	(void)state;
	vocab = sim_vocab_new();
	return 0;
}
static int teardown(void **state)
{
	(void)state;
	sim_vocab_free(vocab);
	return 0;
}

static void expect_joined(const char *a, const char *b)
{
	sim_ids whole = { 0 }, parts = { 0 };
	char text[512];
	snprintf(text, sizeof(text), "%s%s", a, b);
	sim_tokenize(vocab, str_of(text), &whole);
	sim_tokenize(vocab, str_of(a), &parts);
	sim_tokenize(vocab, str_of(b), &parts);
	assert_int_equal(whole.n, parts.n);
	assert_memory_equal(whole.p, parts.p, whole.n * sizeof(*whole.p));
	VEC_FREE(&whole);
	VEC_FREE(&parts);
}

static void messages_can_be_put_together(void **state)
{
	(void)state;
	expect_joined("<|im_start|>user\n", "hello world");
	expect_joined("<|im_start|>user\nhel", "<|im_end|>\n<|im_start|>");
	expect_joined("one two", " three four");
	expect_joined("a line\n", "another");
	expect_joined("\xe4\xbd\xa0\xe5\xa5\xbd", " \xe4\xbd\xa0");
}

static void text_comes_back(void **state)
{
	(void)state;
	static const char text[] = "<|im_start|>user\nGr\xc3\xbc\xc3\x9f"
				   "e, \xf0\x9f\x98\x80 extraordinary<|im_end|>\n";
	sim_ids ids = { 0 };
	sim_tokenize(vocab, str_of(text), &ids);
	char out[512], one[16];
	size_t n = 0;
	for (size_t i = 0; i < ids.n; i++) {
		struct str s = sim_token_text(vocab, ids.p[i], one);
		memcpy(out + n, s.p, s.n);
		n += s.n;
		assert_true(ids.p[i] < SIM_VOCAB);
	}
	assert_int_equal(n, sizeof(text) - 1);
	assert_memory_equal(out, text, n);
	assert_true(ids.n >= 10 && ids.n <= 16);
	VEC_FREE(&ids);
}

static void generated_text_has_the_generated_ids(void **state)
{
	(void)state;
	sim_ids ids = { 0 };
	char text[1024], one[16];
	size_t n = 0;
	uint32_t made[50];
	for (uint32_t i = 0; i < 50; i++) {
		made[i] = sim_token_make(vocab, 42, i, i == 0);
		struct str s = sim_token_text(vocab, made[i], one);
		memcpy(text + n, s.p, s.n);
		n += s.n;
	}
	sim_tokenize(vocab, str_from(text, n), &ids);
	assert_int_equal(ids.n, 50);
	assert_memory_equal(ids.p, made, sizeof(made));
	VEC_FREE(&ids);
}

static void broken_bytes_are_taken(void **state)
{
	(void)state;
	sim_ids ids = { 0 };
	sim_tokenize(vocab, STR("\xff\xfe\xc3"), &ids);
	assert_true(ids.n >= 1);
	VEC_FREE(&ids);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(messages_can_be_put_together, setup, teardown),
		cmocka_unit_test_setup_teardown(text_comes_back, setup, teardown),
		cmocka_unit_test_setup_teardown(generated_text_has_the_generated_ids, setup, teardown),
		cmocka_unit_test_setup_teardown(broken_bytes_are_taken, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
