/* Strict UTF-8, log values that cannot forge a line, the error table. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/rand.h"
#include "base/utf8.h"

static void test_utf8_table(void **state)
{
	(void)state;
	const struct { const char *s; size_t n; bool ok; } rows[] = {
		{ "abc", 3, true },           { "\xc3\xa9", 2, true },         { "\xe2\x82\xac", 3, true },     { "\xf0\x9f\x98\x80", 4, true },
		{ "\xc0\x80", 2, false },     { "\xc3", 1, false },            { "\xed\xa0\x80", 3, false },    { "\xe0\x80\x80", 3, false },
		{ "\xf4\x90\x80\x80", 4, false }, { "\xf0\x80\x80\x80", 4, false }, { "\xff", 1, false },      { "\x80", 1, false },
		{ "a\0b", 3, true },          { "\xed\x9f\xbf", 3, true },     { "\xf4\x8f\xbf\xbf", 4, true }, { "", 0, true },
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_int_equal(utf8_valid(str_from(rows[i].s, rows[i].n)), rows[i].ok);
}

/* The fast check says of any bytes what the decoder says of each sequence in turn. */
static void test_utf8_valid_agrees_with_next(void **state)
{
	(void)state;
	static const unsigned char EDGES[] = { 'a', 'b', 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc1, 0xc2, 0xdf, 0xe0, 0xe1, 0xed, 0xef, 0xf0, 0xf1, 0xf4, 0xf5 };
	struct rand r = { 9 };
	char text[80];
	size_t good = 0;
	for (int i = 0; i < 200000; i++) {
		size_t n = rand_below(&r, sizeof(text)), lead = rand_below(&r, n + 1), at = 0, len = 1;
		uint32_t cp;
		for (size_t k = 0; k < n; k++)
			text[k] = k < lead ? 'x' : (char)EDGES[rand_below(&r, sizeof(EDGES))];
		while (at < n && (len = utf8_next(str_from(text + at, n - at), &cp)) != 0)
			at += len;
		assert_int_equal(utf8_valid(str_from(text, n)), at == n);
		good += at == n;
	}
	assert_true(good > 1000);
}

static void test_utf8_ascii_end(void **state)
{
	(void)state;
	char text[100];
	for (size_t n = 0; n < sizeof(text); n++)
		for (size_t from = 0; from <= n; from++)
			for (size_t at = from; at <= n; at++) {
				memset(text, 0x7f, sizeof(text));
				text[at] = '\x80'; /* at n it lies behind the text */
				if (from)
					text[from - 1] = '\xff';
				assert_int_equal(utf8_ascii_end(str_from(text, n), from), at);
			}
}

static void test_utf8_put_is_the_inverse(void **state)
{
	(void)state;
	char out[4];
	uint32_t back;
	for (uint32_t cp = 0; cp <= 0x10ffff; cp += cp < 0x3000 ? 1 : 97) {
		if (cp >= 0xd800 && cp < 0xe000)
			continue;
		size_t n = utf8_put(cp, out);
		assert_int_equal(utf8_next(str_from(out, n), &back), n);
		assert_int_equal(back, cp);
	}
}

static void test_log_values_cannot_forge_lines(void **state)
{
	(void)state;
	char out[32];
	assert_string_equal(log_quote(STR("plain"), out, sizeof(out)), "plain");
	assert_string_equal(log_quote(STR("two words"), out, sizeof(out)), "\"two words\"");
	assert_string_equal(log_quote(STR("a\nlevel=error"), out, sizeof(out)), "\"a\\x0alevel=error\"");
	assert_string_equal(log_quote(STR(""), out, sizeof(out)), "\"\"");
	const char *cut = log_quote(STR("0123456789012345678901234567890123456789"), out, sizeof(out));
	assert_true(strlen(cut) < sizeof(out) && strstr(cut, "…"));
}

static void test_every_error_has_words(void **state)
{
	(void)state;
	for (int e = 0; e < ERR_COUNT_; e++) {
		assert_true(strlen(err_text((enum err)e)) > 1 && strlen(err_label((enum err)e)) > 1);
		int http = err_http((enum err)e);
		assert_true(http == 0 || http == 200 || (http >= 400 && http < 600));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_utf8_table),
		cmocka_unit_test(test_utf8_valid_agrees_with_next),
		cmocka_unit_test(test_utf8_ascii_end),
		cmocka_unit_test(test_utf8_put_is_the_inverse),
		cmocka_unit_test(test_log_values_cannot_forge_lines),
		cmocka_unit_test(test_every_error_has_words),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
