/* yaml_test.c: types by our table, places of keys and values, and faults with their places. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "wire/yaml.h"

static struct yaml_file *read_clean(struct str t)
{
	struct yaml_file *f = yaml_file_read(t);
	size_t n;
	const struct yaml_fault *x = yaml_faults(f, &n);
	if (n)
		fail_msg("%u:%u: %s", x[0].pos.line, x[0].pos.col, x[0].what);
	return f;
}

static enum yaml_kind kind_of(const char *scalar)
{
	char t[100];
	snprintf(t, sizeof(t), "a: %s\n", scalar);
	struct yaml_file *f = read_clean(str_of(t));
	enum yaml_kind k = yaml_get(yaml_doc(f, 0), STR("a"))->kind;
	yaml_file_free(f);
	return k;
}

static void types(void **state)
{
	(void)state;
	static const struct {
		const char *s;
		enum yaml_kind k;
	} ROWS[] = {
		{ "null", YAML_NULL },
		{ "~", YAML_NULL },
		{ "", YAML_NULL },
		{ "true", YAML_BOOL },
		{ "FALSE", YAML_BOOL },
		{ "yes", YAML_STRING },
		{ "on", YAML_STRING },
		{ "No", YAML_STRING },
		{ "tRue", YAML_STRING },
		{ "0777", YAML_STRING },
		{ "007", YAML_STRING },
		{ "0", YAML_INT },
		{ "-12", YAML_INT },
		{ "+3", YAML_INT },
		{ "0x1F", YAML_INT },
		{ "0o17", YAML_INT },
		{ "0xZ", YAML_STRING },
		{ "0o8", YAML_STRING },
		{ "1_000", YAML_STRING },
		{ "1.5", YAML_FLOAT },
		{ ".5", YAML_FLOAT },
		{ "1e3", YAML_FLOAT },
		{ "1e", YAML_STRING },
		{ "-.inf", YAML_FLOAT },
		{ ".nan", YAML_FLOAT },
		{ "1.2.3", YAML_STRING },
		{ "2026-11-30", YAML_STRING },
		{ "99999999999999999999", YAML_FLOAT },
		{ "\"12\"", YAML_STRING },
		{ "'true'", YAML_STRING },
		{ "[]", YAML_SEQ },
		{ "{}", YAML_MAP },
		{ "-", YAML_SEQ },
		{ "1h", YAML_STRING },
		{ "!!str 12", YAML_STRING },
		{ "! 12", YAML_STRING },
		{ ".", YAML_STRING },
		{ "+", YAML_STRING },
		{ "0x", YAML_STRING },
		{ "0xffffffffffffffffff", YAML_STRING },
		{ "12e999", YAML_STRING },
	};
	for (size_t i = 0; i < ARRAY_LEN(ROWS); i++)
		if (strcmp(ROWS[i].s, "-") != 0 && kind_of(ROWS[i].s) != ROWS[i].k)
			fail_msg("%s is %s", ROWS[i].s, yaml_kind_name(kind_of(ROWS[i].s)));
	struct yaml_file *f = read_clean(STR("[0x10, -7, 1.5, TRUE, +9223372036854775807]"));
	const struct yaml_node *l = yaml_doc(f, 0);
	assert_true(l->items[0]->i == 16 && l->items[1]->i == -7 && l->items[2]->f == 1.5 && l->items[3]->b && l->items[4]->i == INT64_MAX);
	yaml_file_free(f);
}

static void places_and_documents(void **state)
{
	(void)state;
	struct yaml_file *f =
		read_clean(STR("# note\nkind: Gateway\nspec:\n  workers:\n    - url: http://a\n    -   url: \"b\"\n---\nkind: Two\n"));
	assert_int_equal(yaml_docs(f), 2);
	const struct yaml_pair *p = yaml_find(yaml_doc(f, 0), STR("spec"));
	assert_int_equal(p->pos.line, 3);
	const struct yaml_node *w = yaml_get(p->val, STR("workers"));
	assert_int_equal(w->kind, YAML_SEQ);
	assert_int_equal(w->n, 2);
	const struct yaml_pair *u = yaml_find(w->items[1], STR("url"));
	assert_int_equal(u->pos.line, 6);
	assert_int_equal(u->pos.col, 9);
	assert_int_equal(u->val->pos.col, 14);
	assert_true(u->val->quoted && str_eq(u->val->text, STR("b")));
	assert_null(yaml_get(w, STR("url")));
	assert_null(yaml_get(NULL, STR("url")));
	assert_true(str_eq(yaml_get(yaml_doc(f, 1), STR("kind"))->text, STR("Two")));
	yaml_file_free(f);
	f = read_clean(STR("# only a comment\n"));
	assert_int_equal(yaml_docs(f), 0);
	yaml_file_free(f);
	f = read_clean(STR(""));
	assert_int_equal(yaml_docs(f), 0);
	yaml_file_free(f);
}

static void expect_fault(struct str t, size_t n_faults, unsigned line, unsigned col, const char *part)
{
	size_t n;
	struct yaml_file *f = yaml_file_read(t);
	const struct yaml_fault *x = yaml_faults(f, &n);
	if (n != n_faults)
		fail_msg("%zu faults in %.*s", n, (int)MIN(t.n, (size_t)80), t.p);
	if (x[0].pos.line != line || x[0].pos.col != col || !strstr(x[0].what, part))
		fail_msg("%u:%u: %s", x[0].pos.line, x[0].pos.col, x[0].what);
	yaml_file_free(f);
}

static void faults_have_places(void **state)
{
	(void)state;
	expect_fault(STR("a: 1\nb: 2\na: 3\nb: 4\n"), 2, 3, 1, "\"a\" is already there in line 1");
	expect_fault(STR("a: &x 1\nb: *x\n"), 1, 2, 4, "alias");
	expect_fault(STR("a: [1\nb: 2\n"), 1, 2, 2, "expected");
	expect_fault(STR("a: b: c\n"), 1, 1, 5, "mapping values");
	expect_fault(STR("ok: 1\n\tx: 2\n"), 1, 2, 1, "tab");
	expect_fault(STR("a: !!int 5\n"), 1, 1, 4, "tag");
	expect_fault(STR("? [a]\n: 1\n"), 1, 1, 3, "plain word");
	expect_fault(STR("a: \"x\xff\"\n"), 1, 1, 6, "UTF-8");
	expect_fault(STR("a: \"x\x01\"\n"), 1, 1, 6, "control");
	expect_fault(STR("a: 'x\n"), 1, 2, 1, "quoted");
}

/* The classic bomb: nine lists of nine aliases each. */
static void alias_bomb(void **state)
{
	(void)state;
	expect_fault(STR("a: &a [x,x]\nb: &b [*a,*a]\nc: &c [*b,*b]\n"), 4, 2, 8, "alias");
}

static void limits(void **state)
{
	(void)state;
	char t[200];
	memset(t, '[', 64);
	memset(t + 64, ']', 64);
	yaml_file_free(read_clean(str_from(t, 128)));
	memset(t, '[', 65);
	memset(t + 65, ']', 65);
	expect_fault(str_from(t, 130), 1, 1, 65, "64 levels");
	char *big = malloc(YAML_MAX_BYTES + 1);
	memset(big, '[', YAML_MAX_BYTES + 1);
	expect_fault(str_from(big, YAML_MAX_BYTES), 1, 1, 65, "64 levels");
	expect_fault(str_from(big, YAML_MAX_BYTES + 1), 1, 1, 1, "1 MB");
	for (size_t i = 0; i + 5 <= YAML_MAX_BYTES; i += 5)
		memcpy(big + i, "a: 1\n", 5);
	size_t n;
	struct yaml_file *f = yaml_file_read(str_from(big, YAML_MAX_BYTES / 5 * 5));
	yaml_faults(f, &n);
	assert_int_equal(n, YAML_MAX_FAULTS);
	yaml_file_free(f);
	free(big);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(types),
		cmocka_unit_test(places_and_documents),
		cmocka_unit_test(faults_have_places),
		cmocka_unit_test(alias_bomb),
		cmocka_unit_test(limits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
