/* Splitters: each hand scanner against a slow matcher of its own regex, over texts made of what splitters care about. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>

#include "base/rand.h"
#include "slow.h"

static const char *const PARTS[] = {
	"a",
	"b",
	"Z",
	"AB",
	"ab",
	"internal",
	"internationalisation",
	"ABCDEFGHIJKLMNOPQRSTUVWXYZ",
	"abcdefghijklmnopqrstuvwxyz",
	"camelCaseWord",
	"abcdefg\xc3\xa9hijklmnop\xca\xb0qrs",
	"ABCDEFGH\xc3\x89",
	"`a@Z[z{",
	"\xc7\x85",
	"\xca\xb0",
	"\xe4\xb8\xad",
	"\xe3\x80\x87",
	"\xe2\xba\x80",
	"\xe3\x80\x85",
	"\xe3\x81\x82",
	"\xc3\xa9",
	"\xc3\x89",
	"\xcc\x81",
	"\xe0\xa4\x83",
	"1",
	"23",
	"4567",
	"\xe2\x85\xa7",
	"\xc2\xbd",
	"\xd9\xa3",
	" ",
	"  ",
	"\t",
	"\n",
	"\r",
	"\r\n",
	"\xc2\xa0",
	"\xe3\x80\x80",
	"\xe2\x80\xa8",
	"\xc2\x85",
	"\x0b",
	"\x1c",
	"\xe2\x80\x8b",
	"\xe1\xa0\x8e",
	"\xef\xbb\xbf",
	"'",
	"'s",
	"'S",
	"'\xc5\xbf",
	"'t",
	"'re",
	"'Re",
	"'VE",
	"'ll",
	"'lL",
	"'d",
	"'m",
	"!",
	"?",
	".",
	"/",
	"//",
	"-",
	"_",
	"$",
	"+",
	"<",
	"\\",
	"]",
	"\xe2\x82\xac",
	"\xe3\x80\x82",
	"\xf0\x9f\x98\x80",
	"\xe2\x80\x8d",
	"\xef\xb8\x8f",
	"\x01",
	"\x7f",
	"\xf3\xa0\x81\xa7",
	"\xf0\x90\xb5\x80",
	"\xf0\x96\xbf\xb0",
	"\xf0\x96\xbf\xa2",
	"\xe9\xbe\xa5",
	"\xe9\xbe\xa6",
	"\xe3\x83\xbf",
};

static size_t random_text(struct rand *r, char *out, size_t cap)
{
	size_t n = 0, parts = 1 + rand_below(r, 24);
	for (size_t i = 0; i < parts; i++) {
		char any[4];
		struct str s = str_of(PARTS[rand_below(r, ARRAY_LEN(PARTS))]);
		if (rand_below(r, 8) == 0) {
			uint32_t cp = (uint32_t)rand_below(r, rand_below(r, 2) ? 0x3000 : 0x20000);
			if (cp - 0xd800 < 0x800)
				continue;
			s = (struct str){ any, utf8_put(cp, any) };
		}
		if (n + s.n > cap)
			break;
		memcpy(out + n, s.p, s.n);
		n += s.n;
	}
	return n;
}

static void compare(const struct tok_splitter *s, const struct slow_regex *slow, const struct tok_table *k, struct str text)
{
	const uint8_t *p = (const uint8_t *)text.p, *end = p + text.n;
	struct tok_ends fast;
	while (p < end) {
		s->split(k, p, end, &fast);
		assert_in_range(fast.n, 1, TOK_ENDS);
		for (size_t i = 0; i < fast.n; p = fast.p[i++]) {
			const uint8_t *want = slow_next(slow, k, p, end);
			if (fast.p[i] != want)
				print_message("%s: at %zu of %zu: %zu instead of %zu\n", s->name, (size_t)(p - (const uint8_t *)text.p),
					text.n, (size_t)(fast.p[i] - p), (size_t)(want - p));
			assert_ptr_equal(fast.p[i], want);
		}
		assert_true(p == end || fast.n == TOK_ENDS);
	}
}

static void test_scanners_equal_their_regex(void **state)
{
	(void)state;
	struct rand r = { 11 };
	struct tok_table classes[2];
	static struct slow_regex slow;
	char text[1024];
	tok_classes_init(&classes[0], TOK_UNICODE_16);
	tok_classes_init(&classes[1], TOK_UNICODE_14);
	for (size_t i = 0; i < SLOW_N_PATTERNS; i++) {
		const struct tok_splitter *s = tok_splitter_find(str_of(SLOW_PATTERNS[i]));
		assert_non_null(s);
		slow_compile(&slow, SLOW_PATTERNS[i]);
		for (int n = 0; n < 6000; n++)
			compare(s, &slow, &classes[n % 2], (struct str){ text, random_text(&r, text, sizeof(text)) });
	}
	tok_table_done(&classes[0]);
	tok_table_done(&classes[1]);
}

static void test_unknown_pattern(void **state)
{
	(void)state;
	assert_null(tok_splitter_find(STR("\\w+")));
	assert_null(tok_splitter_find(STR("")));
}

/* gigatoken issue 37: the splitter of the worker's version decides (U+1FAE8 is unassigned in Unicode 14, a symbol in 16). */
static void test_case_gigatoken_37_unicode_version(void **state)
{
	(void)state;
	struct tok_table old, new;
	size_t n;
	const uint8_t *face = (const uint8_t *)"\xf0\x9f\xab\xa8";
	tok_classes_init(&old, TOK_UNICODE_14);
	tok_classes_init(&new, TOK_UNICODE_16);
	assert_int_equal(tok_class_at(&old, face, &n), TOK_OTHER);
	assert_int_equal(tok_class_at(&new, face, &n), TOK_S);
	tok_table_done(&old);
	tok_table_done(&new);
}

static void test_classes(void **state)
{
	(void)state;
	struct tok_table k;
	static const struct {
		uint32_t cp;
		enum tok_class want;
	} ALL[] = {
		{ 'A', TOK_LU },
		{ 'a', TOK_LL },
		{ '0', TOK_N },
		{ ' ', TOK_SPACE },
		{ '\n', TOK_NEWLINE },
		{ '\r', TOK_NEWLINE },
		{ 0x85, TOK_SPACE },
		{ 0x180e, TOK_OTHER },
		{ 0x3000, TOK_SPACE },
		{ 0x4e2d, TOK_LO_HAN },
		{ 0x3007, TOK_N_HAN },
		{ 0x3005, TOK_LM_HAN },
		{ 0x2e80, TOK_S_HAN },
		{ 0x301, TOK_M },
		{ 0x1c5, TOK_LT },
		{ 0x2b0, TOK_LM },
		{ 0xfeff, TOK_OTHER },
		{ 0x11de0, TOK_OTHER_DIGIT },
		{ 0x10ffff, TOK_OTHER },
	};
	tok_classes_init(&k, TOK_UNICODE_16);
	for (size_t i = 0; i < ARRAY_LEN(ALL); i++)
		assert_int_equal(tok_table_get(&k, ALL[i].cp), ALL[i].want);
	tok_table_done(&k);
	assert_true(tok_is_word('_') && tok_is_word('z') && tok_is_word(0x301) && tok_is_word(0x4e2d));
	assert_false(tok_is_word('-') || tok_is_word(' ') || tok_is_word(0x2581) || tok_is_word(0x10ffff));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_scanners_equal_their_regex),
		cmocka_unit_test(test_unknown_pattern),
		cmocka_unit_test(test_case_gigatoken_37_unicode_version),
		cmocka_unit_test(test_classes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
