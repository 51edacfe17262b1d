/* models_test.c: a worker's list read, the merged list written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "api/models.h"

static void reads_and_writes(void **state)
{
	(void)state;
	struct arena a;
	const struct api_model *m;
	size_t n;
	struct buf b;
	arena_init(&a, 0);
	buf_init(&b, 4096);
	assert_int_equal(api_models_read(STR("{\"object\":\"list\",\"data\":[{\"id\":\"base\",\"object\":\"model\",\"root\":\"/"
					     "m\",\"parent\":null,\"max_model_len\":32768,\"permission\":[{}]},"
					     "{\"id\":\"lora\",\"root\":\"/"
					     "l\",\"parent\":\"base\",\"max_model_len\":null},{\"object\":\"model\"},{\"id\":\"\"},7]}"),
				 &a, &m, &n),
		ERR_OK);
	assert_int_equal(n, 2);
	assert_true(str_eq(m[0].id, STR("base")) && m[0].parent.n == 0 && m[0].max_model_len == 32768);
	assert_true(str_eq(m[1].parent, STR("base")) && m[1].max_model_len == 0 && str_eq(m[1].root, STR("/l")));
	assert_int_equal(api_models_put(&b, m, n, 5), ERR_OK);
	assert_true(str_eq(buf_str(&b), STR("{\"object\":\"list\",\"data\":[{\"id\":\"base\",\"object\":\"model\",\"created\":5,\"owned_"
					    "by\":\"kvasir\",\"root\":\"/m\",\"parent\":null,\"max_model_len\":32768},"
					    "{\"id\":\"lora\",\"object\":\"model\",\"created\":5,\"owned_by\":\"kvasir\",\"root\":\"/"
					    "l\",\"parent\":\"base\",\"max_model_len\":null}]}")));
	buf_clear(&b);
	assert_int_equal(api_models_put(&b, NULL, 0, 5), ERR_OK);
	assert_true(str_eq(buf_str(&b), STR("{\"object\":\"list\",\"data\":[]}")));
	buf_done(&b);
	arena_done(&a);
}

static void refusals(void **state)
{
	(void)state;
	struct arena a;
	const struct api_model *m;
	size_t n;
	arena_init(&a, 0);
	assert_int_equal(api_models_read(STR("{}"), &a, &m, &n), ERR_SYNTAX);
	assert_int_equal(api_models_read(STR("[]"), &a, &m, &n), ERR_SYNTAX);
	assert_int_equal(api_models_read(STR("<html>"), &a, &m, &n), ERR_SYNTAX);
	struct buf b;
	buf_init(&b, 1 << 20);
	assert_int_equal(buf_add(&b, STR("{\"data\":[0")), ERR_OK);
	for (int i = 0; i < API_MAX_MODELS; i++)
		assert_int_equal(buf_add(&b, STR(",0")), ERR_OK);
	assert_int_equal(buf_add(&b, STR("]}")), ERR_OK);
	assert_int_equal(api_models_read(buf_str(&b), &a, &m, &n), ERR_LIMIT);
	buf_done(&b);
	arena_done(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(reads_and_writes), cmocka_unit_test(refusals) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
