/* error_test.c: our errors in the three shapes, and every row of the error table in them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "api/answer.h"
#include "api/error.h"
#include "wire/json.h"
#include "wire/sse.h"

static void expect(enum api_dialect d, const struct api_error *e, struct str want)
{
	struct buf b;
	buf_init(&b, 4096);
	assert_int_equal(api_error_put(&b, d, e), ERR_OK);
	if (!str_eq(buf_str(&b), want))
		fail_msg("%.*s", STR_ARG(buf_str(&b)));
	buf_done(&b);
}

static void shapes(void **state)
{
	(void)state;
	struct api_error e = { .why = ERR_UNKNOWN_MODEL, .message = "no model \"x\"", .param = "model", .request_id = "r-1" };
	assert_int_equal(api_error_status(&e), 404);
	expect(API_OPENAI, &e,
		STR("{\"error\":{\"message\":\"no model \\\"x\\\"\",\"type\":\"invalid_request_error\",\"param\":\"model\","
		    "\"code\":\"model_not_found\",\"reason\":\"unknown_model\",\"request_id\":\"r-1\"}}"));
	expect(API_RESPONSES, &e,
		STR("{\"error\":{\"message\":\"no model \\\"x\\\"\",\"type\":\"invalid_request_error\",\"param\":\"model\","
		    "\"code\":\"model_not_found\",\"reason\":\"unknown_model\",\"request_id\":\"r-1\"}}"));
	expect(API_ANTHROPIC, &e,
		STR("{\"type\":\"error\",\"error\":{\"type\":\"not_found_error\",\"message\":\"no model "
		    "\\\"x\\\"\",\"reason\":\"unknown_model\"},\"request_id\":\"r-1\"}"));
	struct api_error no = { .why = ERR_NO_WORKER };
	assert_int_equal(api_error_status(&no), 503);
	expect(API_OPENAI, &no,
		STR("{\"error\":{\"message\":\"no worker can serve this "
		    "request\",\"type\":\"server_error\",\"param\":null,\"code\":\"no_worker\",\"reason\":\"no_worker\"}}"));
	expect(API_ANTHROPIC, &no,
		STR("{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"no worker can serve this "
		    "request\",\"reason\":\"no_worker\"}}"));
	struct api_error forced = { .why = ERR_BODY_TOO_LARGE, .status = 429, .type = "odd" };
	assert_int_equal(api_error_status(&forced), 429);
	expect(API_ANTHROPIC, &forced,
		STR("{\"type\":\"error\",\"error\":{\"type\":\"odd\",\"message\":\"the request body is too "
		    "large\",\"reason\":\"body_too_large\"}}"));
}

/* Router case 69 (semantic-router#3063, open-webui#29628): a broken stream ends with an error in the form of its API. */
static void case_semantic_router_3063_terminal_event(void **state)
{
	(void)state;
	static const enum api_dialect ALL[] = { API_OPENAI, API_ANTHROPIC, API_RESPONSES };
	for (size_t i = 0; i < ARRAY_LEN(ALL); i++) {
		struct buf b;
		struct sse s;
		struct sse_event ev;
		struct api_chunk c;
		buf_init(&b, 4096);
		sse_init(&s, 4096);
		struct api_error e = { .why = ERR_UPSTREAM_MIDSTREAM, .request_id = "r" };
		assert_int_equal(api_error_put_event(&b, ALL[i], &e, 41), ERR_OK);
		sse_feed(&s, buf_str(&b));
		assert_int_equal(sse_next(&s, &ev), ERR_OK);
		assert_true(ev.whole && str_eq(ev.event, ALL[i] == API_OPENAI ? STR("") : STR("error")));
		api_chunk_read(ALL[i], ev.data, &c);
		assert_int_equal(c.kind, API_CHUNK_ERROR);
		assert_int_equal(c.has_sequence, ALL[i] == API_RESPONSES);
		if (c.has_sequence)
			assert_int_equal(c.sequence, 41);
		assert_int_equal(str_find(ev.raw, STR("[DONE]")), SIZE_MAX);
		assert_int_equal(sse_next(&s, &ev), ERR_AGAIN);
		sse_done(&s);
		buf_done(&b);
	}
}

static void every_error_is_valid_json(void **state)
{
	(void)state;
	for (int why = 1; why < ERR_COUNT_; why++)
		for (int d = API_OPENAI; d <= API_RESPONSES; d++) {
			struct buf b;
			struct json_doc *doc;
			buf_init(&b, 4096);
			struct api_error e = { .why = (enum err)why };
			assert_true(api_error_status(&e) >= 400 && api_error_status(&e) < 600);
			assert_int_equal(api_error_put(&b, (enum api_dialect)d, &e), ERR_OK);
			assert_int_equal(json_parse(buf_str(&b), 4096, &doc), ERR_OK);
			assert_true(json_is(json_get(json_root(doc), STR("error")), JSON_OBJECT));
			json_free(doc);
			buf_done(&b);
		}
	struct buf small;
	buf_init(&small, 10);
	struct api_error e = { .why = ERR_INTERNAL };
	assert_int_equal(api_error_put(&small, API_OPENAI, &e), ERR_LIMIT);
	buf_done(&small);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shapes),
		cmocka_unit_test(case_semantic_router_3063_terminal_event),
		cmocka_unit_test(every_error_is_valid_json),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
