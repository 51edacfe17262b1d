/* Normal forms as the library has them: old tables, stable order of marks, Hangul, and no time lost on hostile marks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "tok/tok_priv.h"

static void check(enum tok_form form, struct str text, struct str want)
{
	struct tok_normal n;
	struct tok_cps tmp = { 0 };
	struct buf b;
	tok_normal_init(&n, form);
	buf_init(&b, 1 << 20);
	if (tok_normal_quick(&n, text))
		assert_true(str_eq(text, want));
	assert_int_equal(tok_normal_put(&n, text, &tmp, &b), ERR_OK);
	assert_true(str_eq(buf_str(&b), want));
	buf_done(&b);
	VEC_FREE(&tmp);
	tok_normal_done(&n);
}

static void test_nfc(void **state)
{
	(void)state;
	check(TOK_FORM_NFC, STR("plain"), STR("plain"));
	check(TOK_FORM_NFC, STR("e\xcc\x81"), STR("\xc3\xa9"));
	check(TOK_FORM_NFC, STR("xe\xcc\xa7\xcc\x81y"), STR("x\xc8\xa9\xcc\x81y"));
	check(TOK_FORM_NFC, STR("e\xcc\x81\xcc\xa7"), STR("\xc8\xa9\xcc\x81"));
	check(TOK_FORM_NFC, STR("\xe2\x84\xaa"), STR("K")); /* the Kelvin sign */
	check(TOK_FORM_NFC, STR("\xe1\x84\x80\xe1\x85\xa1\xe1\x86\xa8"), STR("\xea\xb0\x81")); /* L V T */
	check(TOK_FORM_NFC, STR("\xea\xb0\x80\xe1\x86\xa8"), STR("\xea\xb0\x81")); /* LV T */
	check(TOK_FORM_NFC, STR("\xcc\x81\xcc\xa7 a"), STR("\xcc\xa7\xcc\x81 a")); /* marks without a base */
	check(TOK_FORM_NFC, STR("\xe0\xa5\x98"), STR("\xe0\xa4\x95\xe0\xa4\xbc")); /* excluded from composition */
}

static void test_other_forms(void **state)
{
	(void)state;
	check(TOK_FORM_NFD, STR("\xc3\xa9\xea\xb0\x81"), STR("e\xcc\x81\xe1\x84\x80\xe1\x85\xa1\xe1\x86\xa8"));
	check(TOK_FORM_NFKC, STR("\xef\xac\x81\xc2\xb2\xe2\x85\xa7"), STR("fi2VIII"));
	check(TOK_FORM_NFKD, STR("\xef\xac\x81\xc3\xa9"), STR("fie\xcc\x81"));
	check(TOK_FORM_NONE, STR("e\xcc\x81"), STR("e\xcc\x81"));
}

/* gigatoken issue 35: U+0897 has no class in the library, so U+0327 behind it stays where it is. */
static void test_case_gigatoken_35_old_tables(void **state)
{
	(void)state;
	check(TOK_FORM_NFC, STR("e\xcc\xa7\xcc\x81 \xe0\xa2\x97\xcc\xa7"), STR("\xc8\xa9\xcc\x81 \xe0\xa2\x97\xcc\xa7"));
	check(TOK_FORM_NFKC, STR("\xe3\x8b\xbf"), STR("\xe3\x8b\xbf")); /* U+32FF came later */
}

/* A run of marks is ordered by counting: stable, and linear however long it is. */
static void test_long_runs_of_marks(void **state)
{
	(void)state;
	struct tok_normal n;
	struct tok_cps tmp = { 0 };
	struct buf in, out;
	enum { PAIRS = 20000 };
	tok_normal_init(&n, TOK_FORM_NFC);
	buf_init(&in, 1 << 20);
	buf_init(&out, 1 << 20);
	assert_int_equal(buf_add(&in, STR("q")), ERR_OK);
	for (int i = 0; i < PAIRS; i++)
		assert_int_equal(buf_add(&in, i % 2 ? STR("\xcc\xa7") : STR("\xcc\x81")), ERR_OK);
	assert_int_equal(tok_normal_put(&n, buf_str(&in), &tmp, &out), ERR_OK);
	struct str s = buf_str(&out);
	assert_int_equal(s.n, 1 + 2 * PAIRS);
	for (size_t i = 0; i < PAIRS; i++)
		assert_memory_equal(s.p + 1 + 2 * i, i < PAIRS / 2 ? "\xcc\xa7" : "\xcc\x81", 2);
	buf_done(&in);
	buf_done(&out);
	VEC_FREE(&tmp);
	tok_normal_done(&n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nfc),
		cmocka_unit_test(test_other_forms),
		cmocka_unit_test(test_case_gigatoken_35_old_tables),
		cmocka_unit_test(test_long_runs_of_marks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
