/* limits_test.c: what a template may cost, what is refused by name, the clock, names, the two content rules. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/must.h"
#include "jinja/from_json.h"
#include "jinja/jinja.h"

static struct jinja_fault fault;

static struct jinja_template *compiled(const char *source)
{
	struct jinja_template *t = NULL;
	assert_int_equal(jinja_compile(str_of(source), &t, &fault), ERR_OK);
	return t;
}

static enum err render_with(const char *source, struct jinja_render_opts o, struct buf *out)
{
	struct jinja_template *t = compiled(source);
	struct arena a;
	arena_init(&a, 16 << 20);
	enum err e = jinja_render(t, &o, &a, out, &fault);
	arena_done(&a);
	jinja_free(t);
	return e;
}

static enum err cost(const char *source, size_t max_output_bytes)
{
	struct buf out;
	buf_init(&out, 1 << 20);
	enum err e = render_with(source, (struct jinja_render_opts){ .max_output_bytes = max_output_bytes }, &out);
	buf_done(&out);
	return e;
}

static void work_is_bounded(void **state)
{
	(void)state;
	assert_int_equal(cost("{% for i in range(90000) %}{% for k in range(90000) %}{{ i }}{% endfor %}{% endfor %}", 0), ERR_LIMIT);
	assert_int_equal(cost("{% set s = 'xxxxxxxx' %}{% for i in range(9000) %}{% set s = s ~ s %}{{ s }}{% endfor %}", 100), ERR_LIMIT);
	assert_int_equal(cost("{% set ns = namespace(s='xxxxxxxx') %}{% for i in range(60) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}", 0), ERR_LIMIT);
	assert_int_equal(cost("{{ 'x' * 999999999 }}", 0), ERR_LIMIT);
	assert_int_equal(cost("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", 0), ERR_LIMIT);
	assert_int_equal(cost("{{ 'abcdef' }}", 5), ERR_LIMIT);
	assert_int_equal(cost("{{ 'abcdef' }}", 6), ERR_OK);
}

/* Each of these would take hours, gigabytes or the whole stack, some of them in a single operation. */
#define LONG_KEYS \
	"{% set s = 'x' * 900000 %}{% set k = s + 'no' %}{% set d = {s + '01': 1, s + '02': 2, s + '03': 3, s + '04': 4, s + '05': 5, s + '06': 6} %}" \
	"{% for i in range(90000) %}"

static void no_template_costs_more_than_its_steps(void **state)
{
	static const char *const HOSTILE[] = {
		"{% set ns = namespace(a=[1], b=[1]) %}{% for i in range(60) %}{% set ns.a = [ns.a, ns.a] %}{% set ns.b = [ns.b, ns.b] %}{% endfor %}{{ ns.a == ns.b }}",
		"{% set ns = namespace(a=[1], b=[1]) %}{% for i in range(60) %}{% set ns.a = {1: ns.a, 2: ns.a} %}{% set ns.b = {1: ns.b, 2: ns.b} %}{% endfor %}{{ ns.a != ns.b }}",
		"{% set ns = namespace(a=[1], b=[1]) %}{% for i in range(60) %}{% set ns.a = [ns.a, ns.a] %}{% set ns.b = [ns.b, ns.b] %}{% endfor %}{{ ns.a in [ns.b] }}",
		"{% set ns = namespace(a=[1], b=[2]) %}{% for i in range(20000) %}{% set ns.a = [ns.a] %}{% set ns.b = [ns.b] %}{% endfor %}{{ ns.a == ns.b }}",
		"{% set ns = namespace(a=[1], b=[2]) %}{% for i in range(20000) %}{% set ns.a = [ns.a] %}{% set ns.b = [ns.b] %}{% endfor %}{{ ns.a < ns.b }}",
		"{% set ns = namespace(a=[1]) %}{% for i in range(60) %}{% set ns.a = ns.a + ns.a %}{% endfor %}",
		"{% set ns = namespace(a=[1]) %}{% for i in range(60) %}{% set ns.a = [ns.a, ns.a] %}{% endfor %}{{ ns.a | tojson | length }}",
		"{% set s = 'x' * 900000 %}{% for i in range(90000) %}{% if 'y' in s %}{% endif %}{% endfor %}",
		"{% set s = 'x' * 900000 %}{% for i in range(90000) %}{% if s == 'y' or s[-1] == 'y' or s | length == 1 %}{% endif %}{% endfor %}",
		"{% set s = 'x' * 900000 %}{% for i in range(90000) %}{% if s.count('y') or s.find('y') > 0 or s.startswith(s) %}{% endif %}{% endfor %}",
		"{{ ('ab' * 400000).strip('b' * 400000 + 'a') }}",
		"{{ ('ab' * 400000) | trim('b' * 400000 + 'a') }}",
		"{% set ns = namespace(s='a,' * 400000) %}{% for i in range(3) %}{% set ns.s = ns.s + ns.s %}{% endfor %}{{ ns.s.split(',') | length }}",
		"{% set s = 'x' * 900000 %}{% for i in range(90000) %}{% for c in s %}{% endfor %}{% endfor %}",
		"{% set l = [0.1, 0.2, 0.3, 1e300, 1e-300] %}{% for i in range(90000) %}{% for k in range(90000) %}{% set s = l | tojson %}{% endfor %}{% endfor %}",
		LONG_KEYS "{% if k in d %}{% endif %}{% endfor %}",
		LONG_KEYS "{% set y = d[k] %}{% endfor %}",
		LONG_KEYS "{% set y = d.get(k) %}{% endfor %}",
		LONG_KEYS "{% set y = {k: 1, s + '01': 2} %}{% endfor %}",
		LONG_KEYS "{% if d == d %}{% endif %}{% endfor %}",
		LONG_KEYS "{% set y = namespace(d) %}{% endfor %}",
		LONG_KEYS "{% set y = [d] | map(attribute=k) | list %}{% endfor %}",
	};
	struct jinja_render_opts o = { .max_steps = 300000, .max_output_bytes = 1 << 20 };
	struct buf out;
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(HOSTILE); i++) {
		buf_init(&out, 1 << 20);
		if (render_with(HOSTILE[i], o, &out) != ERR_LIMIT)
			fail_msg("%s", HOSTILE[i]);
		buf_done(&out);
	}
}

static void renders(const char *source, const char *want)
{
	struct buf out;
	buf_init(&out, 1 << 20);
	assert_int_equal(render_with(source, (struct jinja_render_opts){ 0 }, &out), ERR_OK);
	assert_true(str_eq(buf_str(&out), str_of(want)));
	buf_done(&out);
}

/* + goes on behind its last result; who shares that text must not see it. */
static void joined_texts_keep_their_own(void **state)
{
	(void)state;
	renders("{% set a = 'x' + 'y' %}{% set b = a + '1' %}{% set c = a + '22' %}{% set d = b + '3' + b %}{{ a }} {{ b }} {{ c }} {{ d }}", "xy xy1 xy22 xy13xy1");
	renders("{% set a = 'abc' + 'def' %}{% set t = a[3:] %}{% set m = a[:3] %}{{ t + '1' }} {{ m + '2' }} {{ a + '3' }} {{ t + '' + '4' }} {{ '' + a }}", "def1 abc2 abcdef3 def4 abcdef");
	renders("{% set ns = namespace(s='') %}{% for i in range(5) %}{% set ns.s = ns.s + 'abcdefghijklmnopqrst' + ns.s[:i] %}{% endfor %}{{ ns.s }}",
		"abcdefghijklmnopqrstabcdefghijklmnopqrstaabcdefghijklmnopqrstababcdefghijklmnopqrstabcabcdefghijklmnopqrstabcd");
}

/* What is printed as a sum comes out in parts; it must be what the sum is. */
static void sums_are_printed(void **state)
{
	(void)state;
	renders("{{ 1 + 2 + 3 }} {{ 'a' + 'b' }} {{ 'a' + 'b' + 'c' + 'd' + 'e' + 'f' + 'g' + 'h' + 'i' + 'j' + 'k' }} {{ 'a' + ('b' + 'c') }}", "6 ab abcdefghijk abc");
	renders("{{ [1] + [2] + [3] }} {{ '<b>' + '<'|safe + '>' }} {{ '' + '' }}", "[1, 2, 3] &lt;b&gt;<&gt; ");
	assert_int_equal(cost("{{ 'a' + 'b' + 1 + raise_exception('never reached') }}", 0), ERR_BAD_REQUEST);
	assert_non_null(strstr(fault.text, "operand"));
	assert_int_equal(cost("{{ 'abc' + 'def' }}", 5), ERR_LIMIT);
	assert_int_equal(cost("{{ 'abc' + 'def' }}", 6), ERR_OK);
}

static void source_is_bounded(void **state)
{
	struct jinja_template *t;
	struct buf b;
	(void)state;
	buf_init(&b, 4 << 20);
	must(buf_add(&b, STR("{{ 1")) == ERR_OK);
	for (int i = 0; i < 100000; i++)
		must(buf_add(&b, STR("+1")) == ERR_OK);
	must(buf_add(&b, STR(" }}")) == ERR_OK);
	assert_int_equal(jinja_compile(buf_str(&b), &t, &fault), ERR_LIMIT);
	buf_clear(&b);
	must(buf_add(&b, STR("{{ ")) == ERR_OK);
	for (int i = 0; i < 100000; i++)
		must(buf_add_byte(&b, '(') == ERR_OK);
	must(buf_add(&b, STR(" -}}")) == ERR_OK);
	assert_int_equal(jinja_compile(buf_str(&b), &t, &fault), ERR_LIMIT);
	buf_clear(&b);
	must(buf_add(&b, STR("{% for m in v0 %}{% endfor %}")) == ERR_OK);
	for (int i = 0; i < 2000; i++)   /* each found a round later than the next */
		must(buf_printf(&b, "{%% set v%d = v%d %%}", i, i + 1) == ERR_OK);
	must(buf_add(&b, STR("{% set v2000 = messages %}")) == ERR_OK);
	assert_int_equal(jinja_compile(buf_str(&b), &t, &fault), ERR_LIMIT);
	buf_done(&b);
}

static void refusals_have_names(void **state)
{
	struct jinja_template *t;
	(void)state;
	assert_int_equal(jinja_compile(STR("a\n{{ x|sum }}"), &t, &fault), ERR_UNSUPPORTED);
	assert_string_equal(fault.text, "the filter sum");
	assert_int_equal(fault.line, 2);
	assert_int_equal(jinja_compile(STR("{% include 'x' %}"), &t, &fault), ERR_UNSUPPORTED);
	assert_string_equal(fault.text, "the tag include");
	assert_int_equal(cost("\n\n{{ raise_exception('no ' ~ 1) }}", 0), ERR_BAD_REQUEST);
	assert_string_equal(fault.text, "no 1");
	assert_int_equal(fault.line, 3);
}

static void the_clock(void **state)
{
	struct jinja_render_opts o = { .now = { 2026, 12, 31, 23, 59, 58, 4, 365 }, .day_only = true };
	struct buf out;
	(void)state;
	buf_init(&out, 100);
	assert_int_equal(render_with("{{ strftime_now('%Y-%m-%d %a %j') }}", o, &out), ERR_OK);
	assert_true(str_eq(buf_str(&out), STR("2026-12-31 Thu 365")));
	assert_int_equal(render_with("{{ strftime_now('%H') }}", o, &out), ERR_UNSUPPORTED);
	assert_string_equal(fault.text, "the time of day");
	buf_done(&out);
	struct jinja_template *t = compiled("{% if false %}{{ strftime_now('%Y') }}{% endif %}{{ 'other' }}");
	assert_true(jinja_uses_clock(t));
	assert_true(jinja_mentions(t, STR("strftime_now")));
	assert_false(jinja_mentions(t, STR("other")));
	jinja_free(t);
}

static void content_rules(void **state)
{
	(void)state;
	struct jinja_template *both = compiled("{% for m in messages %}{% for c in m.content %}{{ c }}{% endfor %}{% endfor %}");
	struct jinja_template *new_only = compiled("{% for m in messages %}{% set content = m.content %}{% for c in content %}{{ c }}{% endfor %}{% endfor %}");
	assert_true(jinja_iterates_content(both) && !jinja_content_disputed(both));
	assert_true(jinja_iterates_content(new_only) && jinja_content_disputed(new_only));
	jinja_free(both);
	jinja_free(new_only);
}

/* An object of n members whose names are 15,000 bytes, their number at the end or in front; the first comes again. Processor time. */
static double read_s(int n, bool alike, struct arena *a, struct jinja_val *ret_v)
{
	static char k[15001];
	struct json_doc *doc;
	struct buf text;
	buf_init(&text, 64 << 20);
	memset(k, 'k', sizeof(k) - 1);
	for (int i = 0; i <= n; i++)
		must(buf_printf(&text, "%s\"%04d%s%04d\":%d", i ? "," : "[{", alike ? 0 : i % n, k, i % n, i) == ERR_OK);
	must(buf_add(&text, STR("}]")) == ERR_OK && json_parse(buf_str(&text), text.n, &doc) == ERR_OK);
	clock_t before = clock();
	*ret_v = jinja_from_json(a, json_root(doc)).list->p[0];
	double took_s = (double)(clock() - before) / CLOCKS_PER_SEC;
	json_free(doc);
	buf_done(&text);
	return took_s;
}

static void long_members_that_begin_alike_cost_no_more(void **state)
{
	struct arena a;
	struct jinja_val v;
	(void)state;
	arena_init(&a, 256 << 20);
	double others_s = read_s(1500, false, &a, &v), alike_s = read_s(1500, true, &a, &v);
	assert_true(alike_s < 5 * others_s + 0.1);
	assert_int_equal(v.dict->n, 1500);
	assert_int_equal(v.dict->p[0].val.i, 1500);      /* its first place, its last value */
	assert_int_equal(v.dict->p[1].val.i, 1);
	arena_done(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(work_is_bounded), cmocka_unit_test(no_template_costs_more_than_its_steps), cmocka_unit_test(joined_texts_keep_their_own), cmocka_unit_test(sums_are_printed),
		 cmocka_unit_test(source_is_bounded), cmocka_unit_test(refusals_have_names),
		cmocka_unit_test(the_clock), cmocka_unit_test(content_rules), cmocka_unit_test(long_members_that_begin_alike_cost_no_more) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
