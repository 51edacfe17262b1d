/* prom_test.c: samples, labels, odd numbers, and lines that are passed over. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "wire/prom.h"

static void note(void *arg, const struct prom_sample *s)
{
	struct buf *b = arg;
	assert_int_equal(buf_printf(b, "%.*s", STR_ARG(s->name)), ERR_OK);
	for (size_t i = 0; i < s->n_labels; i++)
		assert_int_equal(buf_printf(b, " %.*s<%.*s>", STR_ARG(s->labels[i].name), STR_ARG(s->labels[i].value)), ERR_OK);
	assert_int_equal(buf_printf(b, " = %g\n", s->value), ERR_OK);
}

static void expect(struct str text, struct str want, size_t skipped)
{
	struct buf b;
	buf_init(&b, 1 << 16);
	struct prom_count c = prom_parse(text, note, &b);
	if (!str_eq(buf_str(&b), want))
		fail_msg("got:\n%.*swanted:\n%.*s", STR_ARG(buf_str(&b)), STR_ARG(want));
	assert_int_equal(c.skipped, skipped);
	buf_done(&b);
}

static void worker_text(void **state)
{
	(void)state;
	expect(STR("# HELP vllm:num_requests_running Number\n# TYPE vllm:num_requests_running gauge\n"
		   "vllm:num_requests_running{engine=\"0\",model_name=\"qwen3-tiny\"} 2.0\n"
		   "vllm:cache_config_info{block_size=\"32\",enable_prefix_caching=\"True\",num_gpu_blocks=\"600\",x=\"\"} 1.0\r\n"
		   "vllm:prefix_cache_hits_total{engine=\"1\"} 1.2345e+06\n"),
		STR("vllm:num_requests_running engine<0> model_name<qwen3-tiny> = 2\n"
		    "vllm:cache_config_info block_size<32> enable_prefix_caching<True> num_gpu_blocks<600> x<> = 1\n"
		    "vllm:prefix_cache_hits_total engine<1> = 1.2345e+06\n"),
		0);
}

static void forms(void **state)
{
	(void)state;
	expect(STR("a 1\nb{} 2 1700000000000\n  c { x = \"1\" , y=\"a\\\"b\\\\c\\nd,}\" , } +Inf\nd NaN\ne -Inf\nf\t3\ng 4 # {id=\"x\"} "
		   "1\n# EOF"),
		STR("a = 1\nb = 2\nc x<1> y<a\"b\\c\nd,}> = inf\nd = nan\ne = -inf\nf = 3\ng = 4\n"), 0);
}

static void bad_lines_are_skipped(void **state)
{
	(void)state;
	expect(STR("{x=\"1\"} 1\na{x=\"1\" 2\na{x=\"1} 2\na{x=1} 2\na{=\"1\"} 2\na\na x\na{x=\"1\"y=\"2\"} 1\na 0x10\n\xff\xfe 1\nok 1"),
		STR("ok = 1\n"), 10);
}

static void limits(void **state)
{
	(void)state;
	static char t[3 * PROM_MAX_LINE];
	size_t n = (size_t)snprintf(t, sizeof(t), "a{x=\"");
	memset(t + n, 'v', PROM_MAX_LINE);
	n += PROM_MAX_LINE;
	n += (size_t)snprintf(t + n, sizeof(t) - n, "\"} 1\nb{");
	for (int i = 0; i <= PROM_MAX_LABELS; i++)
		n += (size_t)snprintf(t + n, sizeof(t) - n, "l%d=\"%d\",", i, i);
	n += (size_t)snprintf(t + n, sizeof(t) - n, "} 1\nok 1\n");
	expect(str_from(t, n), STR("ok = 1\n"), 2);
}

static void label_by_name(void *arg, const struct prom_sample *s)
{
	(void)arg;
	assert_true(str_eq(prom_label(s, STR("y")), STR("2")));
	assert_null(prom_label(s, STR("z")).p);
}

static void labels(void **state)
{
	(void)state;
	assert_int_equal(prom_parse(STR("a{x=\"1\",y=\"2\"} 0"), label_by_name, NULL).samples, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(worker_text),
		cmocka_unit_test(forms),
		cmocka_unit_test(bad_lines_are_skipped),
		cmocka_unit_test(limits),
		cmocka_unit_test(labels),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
