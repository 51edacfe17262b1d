/* Tables and YAML of the operator commands. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdlib.h>

#include "ctl/ctl_priv.h"

static void expect_table(const char *json, const char *want)
{
	static const char *const heads[] = { "NAME", "N", "NOTE" };
	struct json_doc *d;
	struct ctl_table t;
	struct buf b;
	assert_int_equal(json_parse(str_of(json), 1 << 20, &d), ERR_OK);
	ctl_table_init(&t, heads, 3);
	for (struct json_iter it = json_each(json_root(d)); json_next(&it);)
		ctl_table_add_json(&t, it.val);
	buf_init(&b, 1 << 20);
	assert_int_equal(ctl_table_print(&b, &t), ERR_OK);
	assert_string_equal(arena_str(&t.arena, buf_str(&b)).p, want);
	buf_done(&b);
	ctl_table_done(&t);
	json_free(d);
}

static void test_columns_are_as_wide_as_their_widest_cell(void **state)
{
	(void)state;
	expect_table("[\"a\", 7, \"\", \"gpu-longer\", 12345, \"x\"]", "NAME            N  NOTE\na               7  -\ngpu-longer  12345  x\n");
	expect_table("[\"\xc3\xa4\xc3\xb6\xc3\xbc\xc3\x9f\", null, true, \"b\", 0.12345, 123.456]", "NAME      N  NOTE\n\xc3\xa4\xc3\xb6\xc3\xbc\xc3\x9f      -  yes\nb     0.123  123\n");
	expect_table("[]", "NAME  N  NOTE\n");
}

static void test_yaml(void **state)
{
	(void)state;
	struct json_doc *d;
	struct buf b;
	struct str text = STR("{\"a\":[{\"x\":1,\"y\":\"q: \\\"1\\\"\"},[],{}],\"b\":null,\"c\":{\"d\":[true,2.5]}}");
	assert_int_equal(json_parse(text, 1 << 20, &d), ERR_OK);
	buf_init(&b, 1 << 20);
	assert_int_equal(ctl_yaml(&b, json_root(d), 0), ERR_OK);
	assert_true(str_eq(buf_str(&b), STR("\"a\":\n  -\n    \"x\": 1\n    \"y\": \"q: \\\"1\\\"\"\n  - []\n  - {}\n\"b\": null\n\"c\":\n  \"d\":\n    - true\n    - 2.5\n")));
	buf_done(&b);
	json_free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_columns_are_as_wide_as_their_widest_cell), cmocka_unit_test(test_yaml) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
