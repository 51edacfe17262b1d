/* patch_test.c: include_usage put into bodies of every shape, and the rest of the bytes left alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/patch.h"

#define M "\"messages\":[{\"role\":\"user\",\"content\":\"h\\u00e9 \\\"}\"}]"

static struct api_facts facts_of(struct str body, struct arena *a)
{
	struct api_facts f;
	struct api_fault fault = { 0 };
	if (api_facts_read(api_path_find(STR("POST"), STR("/v1/chat/completions"), NULL), body, &(struct json_body_opts){ .max_bytes = 1 << 20 }, a, &f, &fault) != ERR_OK)
		fail_msg("%s", fault.message);
	return f;
}

static void expect(struct str body, struct str want)
{
	struct arena a;
	struct api_patch p = { 0 };
	struct str pieces[API_PATCH_PIECES];
	struct buf joined;
	size_t bytes;
	arena_init(&a, 0);
	buf_init(&joined, 10000);
	struct api_facts f = facts_of(body, &a);
	assert_int_equal(api_patch_usage(&p, &f, body), want.p != NULL);
	size_t n = api_patch_pieces(&p, body, pieces, &bytes);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(buf_add(&joined, pieces[i]), ERR_OK);
	assert_int_equal(bytes, joined.n);
	if (!str_eq(buf_str(&joined), want.p ? want : body))
		fail_msg("%.*s", STR_ARG(buf_str(&joined)));
	if (want.p)
		assert_true(facts_of(buf_str(&joined), &a).usage_asked);
	buf_done(&joined);
	arena_done(&a);
}

static void usage_is_asked_for(void **state)
{
	(void)state;
	expect(STR("{" M ",\"stream\":true}"), STR("{\"stream_options\":{\"include_usage\":true}," M ",\"stream\":true}"));
	expect(STR(" { " M ",\"stream\":true}"), STR(" {\"stream_options\":{\"include_usage\":true}, " M ",\"stream\":true}"));
	expect(STR("{" M ",\"stream\":true,\"stream_options\":null}"),
		STR("{" M ",\"stream\":true,\"stream_options\":{\"include_usage\":true}}"));
	expect(STR("{" M ",\"stream\":true,\"stream_options\": { } }"),
		STR("{" M ",\"stream\":true,\"stream_options\": { \"include_usage\":true} }"));
	expect(STR("{\"stream_options\":{\"include_usage\":false,\"x\":{\"include_usage\":1}}," M ",\"stream\":true}"),
		STR("{\"stream_options\":{\"include_usage\":false,\"x\":{\"include_usage\":1},\"include_usage\":true}," M
		    ",\"stream\":true}"));
	expect(STR("{\"stream_\\u006fptions\":{\"include_usage\":false}," M ",\"stream\":true}"),
		STR("{\"stream_\\u006fptions\":{\"include_usage\":false,\"include_usage\":true}," M ",\"stream\":true}"));
}

/* Without include_usage a worker ignores continuous_usage_stats: it must not wake up by our asking. */
static void usage_in_each_chunk_stays_off(void **state)
{
	(void)state;
	expect(STR("{" M ",\"stream\":true,\"stream_options\":{\"continuous_usage_stats\":true}}"),
		STR("{" M ",\"stream\":true,\"stream_options\":{\"continuous_usage_stats\":true,\"include_usage\":true,\"continuous_usage_"
			  "stats\":false}}"));
}

static void nothing_to_do(void **state)
{
	(void)state;
	expect(STR("{" M "}"), (struct str){ 0 });
	expect(STR("{" M ",\"stream\":false,\"stream_options\":{}}"), (struct str){ 0 });
	expect(STR("{" M ",\"stream\":true,\"stream_options\":{\"include_usage\":true}}"), (struct str){ 0 });
	expect(STR("{" M ",\"stream\":true,\"stream_options\":[]}"), (struct str){ 0 });
}

static void edits_in_order(void **state)
{
	(void)state;
	struct str body = STR("0123456789"), pieces[API_PATCH_PIECES];
	struct api_patch p = { 0 };
	assert_int_equal(api_patch_add(&p, body, (struct api_edit){ 8, 2, STR("X") }), ERR_OK);
	assert_int_equal(api_patch_add(&p, body, (struct api_edit){ 0, 0, STR("A") }), ERR_OK);
	assert_int_equal(api_patch_add(&p, body, (struct api_edit){ 3, 2, STR("") }), ERR_OK);
	assert_int_equal(api_patch_add(&p, body, (struct api_edit){ 4, 1, STR("") }), ERR_RANGE);
	assert_int_equal(api_patch_add(&p, body, (struct api_edit){ 2, 2, STR("") }), ERR_RANGE);
	assert_int_equal(api_patch_add(&p, body, (struct api_edit){ 9, 2, STR("") }), ERR_RANGE);
	assert_int_equal(api_patch_add(&p, body, (struct api_edit){ 11, 0, STR("") }), ERR_RANGE);
	assert_int_equal(api_patch_add(&p, body, (struct api_edit){ 10, 0, STR("E") }), ERR_OK);
	assert_int_equal(api_patch_add(&p, body, (struct api_edit){ 6, 0, STR("E") }), ERR_LIMIT);
	struct buf b;
	buf_init(&b, 100);
	size_t n = api_patch_pieces(&p, body, pieces, NULL);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(buf_add(&b, pieces[i]), ERR_OK);
	assert_true(str_eq(buf_str(&b), STR("A012567XE")));
	buf_done(&b);
}

static enum err report(struct str body, struct buf *out)
{
	struct str pieces[API_PATCH_PIECES];
	struct api_patch p = { 0 };
	struct api_fault fault = { 0 };
	struct api_facts f;
	struct arena a;
	arena_init(&a, 0);
	const struct api_path *path = api_path_find(STR("POST"), STR("/v1/chat/completions"), NULL);
	assert_int_equal(api_facts_read(path, body, &(struct json_body_opts){ .max_bytes = 1 << 20 }, &a, &f, &fault), ERR_OK);
	enum err e = api_patch_report(&p, &f, body, &fault);
	assert_int_equal(e != ERR_OK, fault.param != NULL);
	size_t n = api_patch_pieces(&p, body, pieces, NULL);
	buf_clear(out);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(buf_add(out, pieces[i]), ERR_OK);
	arena_done(&a);
	return e;
}

/* A worker told "full" announces blocks again that it holds: the index would count copies that are none. */
static void report_mode_full_is_replaced(void **state)
{
#define Q "\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]"
	struct buf b;
	(void)state;
	buf_init(&b, 4096);
	assert_int_equal(report(STR("{\"vllm_xargs\": { \"a\":\"full\",\"kv_cache_report_mode\" : \"full\" }," Q "}"), &b), ERR_OK);
	assert_true(str_eq(buf_str(&b), STR("{\"vllm_xargs\": { \"a\":\"full\",\"kv_cache_report_mode\" : \"incremental\" }," Q "}")));
	assert_int_equal(report(STR("{\"vllm_xargs\":{\"kv_cache_report_mode\":\"incremental\"}," Q "}"), &b), ERR_OK);
	assert_int_equal(report(STR("{\"vllm_xargs\":{\"kv_cache_report_mode\":\"a\",\"\\u006bv_cache_report_mode\":\"full\"}," Q "}"), &b), ERR_BAD_REQUEST);
	assert_int_equal(report(STR("{\"vllm_x\\u0061rgs\":{\"kv_cache_report_mode\":\"full\"}," Q "}"), &b), ERR_BAD_REQUEST);
	buf_done(&b);
#undef Q
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(usage_is_asked_for),
		cmocka_unit_test(usage_in_each_chunk_stays_off),
		cmocka_unit_test(nothing_to_do),
		cmocka_unit_test(edits_in_order),
		cmocka_unit_test(report_mode_full_is_replaced),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
