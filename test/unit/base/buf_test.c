/* Buffers: the limit holds, a refused append changes nothing, consuming from the front keeps the order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/buf.h"

static void test_limit_is_exact(void **state)
{
	(void)state;
	struct buf b;
	buf_init(&b, 8);
	assert_int_equal(buf_add(&b, STR("12345678")), ERR_OK);
	assert_int_equal(buf_add_byte(&b, '9'), ERR_LIMIT);
	assert_true(str_eq(buf_str(&b), STR("12345678")));
	buf_consume(&b, 3);
	assert_int_equal(buf_add(&b, STR("abc")), ERR_OK);
	assert_true(str_eq(buf_str(&b), STR("45678abc")));
	assert_int_equal(buf_printf(&b, "%d", 1), ERR_LIMIT);
	buf_done(&b);
}

static void test_long_formats(void **state)
{
	(void)state;
	struct buf b;
	buf_init(&b, 4096);
	assert_int_equal(buf_printf(&b, "%0*d", 1000, 7), ERR_OK);
	assert_int_equal(b.n, 1000);
	assert_int_equal(buf_printf(&b, "%0*d", 3097, 7), ERR_LIMIT);
	assert_int_equal(b.n, 1000);
	buf_done(&b);
}

static void test_front_and_back_over_many_rounds(void **state)
{
	(void)state;
	struct buf b;
	unsigned put = 0, got = 0;
	buf_init(&b, 1 << 16);
	for (unsigned i = 0; i < 20000; i++) {
		assert_int_equal(buf_add_byte(&b, (char)(put++ % 251)), ERR_OK);
		if (i % 3 != 0 || b.n == 0)
			continue;
		assert_int_equal((unsigned char)buf_str(&b).p[0], got++ % 251);
		buf_consume(&b, 1);
	}
	while (b.n) {
		assert_int_equal((unsigned char)buf_str(&b).p[0], got++ % 251);
		buf_consume(&b, 1);
	}
	assert_int_equal(put, got);
	buf_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_limit_is_exact),
		cmocka_unit_test(test_long_formats),
		cmocka_unit_test(test_front_and_back_over_many_rounds),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
