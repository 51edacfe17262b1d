#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "kv/key.h"

static const uint32_t IDS[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14 };
enum { N = 14, B = 4 };

static void whole_blocks_only(void **state)
{
	(void)state;
	uint64_t keys[4] = { 0 };
	assert_int_equal(kv_prompt_keys(kv_seed(STR("")), IDS, N, B, NULL, keys), 3);
	assert_int_equal(keys[3], 0);
	assert_int_equal(kv_prompt_keys(kv_seed(STR("")), IDS, 3, B, NULL, keys), 0);
	assert_int_equal(kv_prompt_keys(kv_seed(STR("")), IDS, N, 0, NULL, keys), 0);
}

/* The chain of an event is the chain of the prompt. */
static void events_and_prompts_agree(void **state)
{
	(void)state;
	struct kv_mm_item mm[] = { { STR("hash-a"), 2, 3 }, { STR("hash-b"), 9, 2 } };
	struct kv_prompt_extras x = { STR("salt"), mm, 2 };
	uint64_t keys[3];
	kv_prompt_keys(kv_seed(STR("lora")), IDS, N, B, &x, keys);
	uint64_t key = kv_seed(STR("lora"));
	struct kv_extra first[] = { { KV_EXTRA_MM, STR("hash-a"), 2 }, { KV_EXTRA_SALT, STR("salt"), 0 } };
	key = kv_key_next(key, IDS, B, first, 2);
	assert_true(key == keys[0]);
	struct kv_extra second[] = { { KV_EXTRA_MM, STR("hash-a"), -2 } };
	key = kv_key_next(key, IDS + 4, B, second, 1);
	assert_true(key == keys[1]);
	struct kv_extra third[] = { { KV_EXTRA_MM, STR("hash-b"), 1 } };
	key = kv_key_next(key, IDS + 8, B, third, 1);
	assert_true(key == keys[2]);
}

static void everything_that_matters_changes_the_key(void **state)
{
	(void)state;
	struct kv_extra salt = { KV_EXTRA_SALT, STR("x"), 0 }, image = { KV_EXTRA_MM, STR("x"), 0 }, moved = { KV_EXTRA_MM, STR("x"), 1 },
		embeds = { KV_EXTRA_EMBEDS, STR("x"), 0 };
	struct kv_extra ab[] = { { KV_EXTRA_MM, STR("ab"), 0 }, { KV_EXTRA_MM, STR("c"), 0 } }, a_bc[] = { { KV_EXTRA_MM, STR("a"), 0 }, { KV_EXTRA_MM, STR("bc"), 0 } };
	uint64_t base = kv_seed(STR(""));
	const uint64_t keys[] = {
		kv_key_next(base, IDS, B, NULL, 0), kv_key_next(base, IDS + 1, B, NULL, 0), kv_key_next(base, IDS, B + 1, NULL, 0),
		kv_key_next(kv_seed(STR("x")), IDS, B, NULL, 0), kv_key_next(base, IDS, B, &salt, 1), kv_key_next(base, IDS, B, &image, 1),
		kv_key_next(base, IDS, B, &moved, 1), kv_key_next(base, IDS, B, &embeds, 1), kv_key_next(base, IDS, B, ab, 2),
		kv_key_next(base, IDS, B, a_bc, 2),
	};
	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		for (size_t j = 0; j < i; j++)
			assert_true(keys[i] != keys[j]);
}

static void a_salt_is_of_the_first_block_and_reaches_all(void **state)
{
	(void)state;
	struct kv_prompt_extras x = { .cache_salt = STR("s") };
	uint64_t with[3], without[3];
	kv_prompt_keys(kv_seed(STR("")), IDS, N, B, &x, with);
	kv_prompt_keys(kv_seed(STR("")), IDS, N, B, NULL, without);
	for (int i = 0; i < 3; i++)
		assert_true(with[i] != without[i]);
	assert_true(with[1] == kv_key_next(with[0], IDS + 4, B, NULL, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_blocks_only),
		cmocka_unit_test(events_and_prompts_agree),
		cmocka_unit_test(everything_that_matters_changes_the_key),
		cmocka_unit_test(a_salt_is_of_the_first_block_and_reaches_all),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
