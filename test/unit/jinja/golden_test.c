/* golden_test.c: every template and snippet of test/tokenizers/golden/jinja.jsonl renders as the reference library renders it, or
 * fails where it fails. Made by test/tokenizers/make_jinja_golden.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "jinja/from_json.h"
#include "jinja/jinja.h"

enum { FILE_MAX_BYTES = 8 << 20, OUT_MAX_BYTES = 1 << 20 };

struct golden {
	char *text;
	size_t n;
	struct json_doc *vars_doc;
	size_t rendered, refused, raised, formats, wrong;
};

static char *read_file(const char *path, size_t *ret_n)
{
	FILE *f = fopen(path, "rb");
	assert_non_null(f);
	char *p = malloc(FILE_MAX_BYTES);
	assert_non_null(p);
	*ret_n = fread(p, 1, FILE_MAX_BYTES, f);
	assert_true(*ret_n < FILE_MAX_BYTES);
	fclose(f);
	return p;
}

static const struct json_val *nth(const struct json_val *list, size_t n)
{
	struct json_iter it = json_each(list);
	for (bool more = json_next(&it); more; more = json_next(&it))
		if (n-- == 0)
			return it.val;
	return NULL;
}

/* Compiles and renders; UNSUPPORTED and failures of both steps are the result. */
static enum err render(struct str source, const struct json_val *vars, struct buf *out, struct jinja_fault *fault)
{
	struct jinja_template *t;
	struct arena a;
	TRY(jinja_compile(source, &t, fault));
	arena_init(&a, 0);
	struct jinja_val v = jinja_from_json(&a, vars);
	struct jinja_render_opts o = { .vars = &v, .now = { 2026, 3, 1, 12, 34, 56, 0, 60 } };
	enum err e = jinja_render(t, &o, &a, out, fault);
	arena_done(&a);
	jinja_free(t);
	return e;
}

static void wrong(struct golden *g, struct str source, struct str want, struct str got)
{
	g->wrong++;
	print_message("template: %.*s\n    want: %.*s\n     got: %.*s\n", STR_ARG(str_sub(source, 0, 400)), STR_ARG(want), STR_ARG(got));
}

static void check_run(struct golden *g, struct str source, const struct json_val *run, bool may_refuse)
{
	uint64_t index = 0;
	struct str want = STR("(an error)");
	struct jinja_fault fault;
	struct buf out;
	assert_true(json_u64(nth(run, 0), &index));
	bool raises = !json_str(nth(run, 1), &want);
	buf_init(&out, OUT_MAX_BYTES);
	const struct json_val *vars = nth(json_get(json_root(g->vars_doc), STR("vars")), index);
	enum err e = render(source, vars, &out, &fault);
	if (e == ERR_UNSUPPORTED)
		g->refused++;
	else if (raises)
		g->raised += e != ERR_OK;
	else
		g->rendered += e == ERR_OK;
	bool good = e == ERR_UNSUPPORTED ? may_refuse || raises : raises ? e != ERR_OK : e == ERR_OK && str_eq(buf_str(&out), want);
	if (!good)
		wrong(g, source, want, e == ERR_OK ? buf_str(&out) : str_of(fault.text));
	buf_done(&out);
}

static void check_format(struct golden *g, struct str source, bool openai)
{
	struct jinja_template *t;
	struct jinja_fault fault;
	assert_int_equal(jinja_compile(source, &t, &fault), ERR_OK);
	g->formats++;
	if (jinja_iterates_content(t) != openai)
		wrong(g, source, openai ? STR("openai") : STR("string"), openai ? STR("string") : STR("openai"));
	jinja_free(t);
}

static void check_line(struct golden *g, struct str line)
{
	struct json_doc *d;
	struct str source;
	bool openai;
	assert_int_equal(json_parse(line, FILE_MAX_BYTES, &d), ERR_OK);
	assert_true(json_str(json_get(json_root(d), STR("source")), &source));
	bool may_refuse = json_true(json_get(json_root(d), STR("refused")));
	for (struct json_iter it = json_each(json_get(json_root(d), STR("runs"))); json_next(&it);)
		check_run(g, source, it.val, may_refuse);
	if (json_bool(json_get(json_root(d), STR("openai")), &openai))
		check_format(g, source, openai);
	json_free(d);
}

static void golden_file(void **state)
{
	struct golden g = { 0 };
	(void)state;
	g.text = read_file("test/tokenizers/golden/jinja.jsonl", &g.n);
	struct str rest = str_from(g.text, g.n), line;
	str_cut(rest, '\n', &line, &rest);
	assert_int_equal(json_parse(line, FILE_MAX_BYTES, &g.vars_doc), ERR_OK);
	while (str_cut(rest, '\n', &line, &rest))
		check_line(&g, line);
	print_message("%zu rendered, %zu raised, %zu refused, %zu formats, %zu wrong\n", g.rendered, g.raised, g.refused, g.formats, g.wrong);
	assert_int_equal(g.wrong, 0);
	assert_true(g.rendered > 290 && g.formats > 20);
	json_free(g.vars_doc);
	free(g.text);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(golden_file) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
