/* answer_test.c: usage, first content, the extra usage chunk, ends and errors, in the shapes of real workers 0.12 to 0.32. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/answer.h"
#include "wire/sse.h"

static struct api_chunk chunk(enum api_dialect d, const char *data)
{
	struct api_chunk c;
	api_chunk_read(d, str_of(data), &c);
	return c;
}

static void expect_usage(const struct api_usage *u, uint32_t prompt, uint32_t cached, uint32_t output)
{
	assert_int_equal(u->prompt_tok, prompt);
	assert_int_equal(u->cached_tok, cached);
	assert_int_equal(u->output_tok, output);
}

#define UNKNOWN API_TOK_UNKNOWN
#define HEAD "{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"choices\":"

static void chat_chunks(void **state)
{
	(void)state;
	struct api_chunk c =
		chunk(API_OPENAI, HEAD "[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}]}");
	assert_int_equal(c.kind, API_CHUNK_OTHER);
	assert_string_equal(c.id, "chatcmpl-1");
	assert_false(c.finish || c.has_usage);
	assert_int_equal(chunk(API_OPENAI, HEAD "[{\"delta\":{\"content\":\"a\"}}]}").kind, API_CHUNK_CONTENT);
	assert_int_equal(chunk(API_OPENAI, HEAD "[{\"delta\":{\"content\":null,\"reasoning\":\"a\"}}]}").kind, API_CHUNK_CONTENT);
	assert_int_equal(chunk(API_OPENAI, HEAD "[{\"delta\":{\"reasoning_content\":\"a\"}}]}").kind, API_CHUNK_CONTENT);
	assert_int_equal(chunk(API_OPENAI, HEAD "[{\"delta\":{\"tool_calls\":[{\"index\":0}]}}]}").kind, API_CHUNK_CONTENT);
	assert_int_equal(chunk(API_OPENAI, HEAD "[{\"delta\":{\"content\":\"\",\"tool_calls\":[]}}]}").kind, API_CHUNK_OTHER);
	assert_int_equal(chunk(API_OPENAI, HEAD "[{\"delta\":{\"content\":\"\"},\"token_ids\":[5]}]}").kind, API_CHUNK_CONTENT);
	assert_int_equal(chunk(API_OPENAI, HEAD "[{\"text\":\"a\"}]}").kind, API_CHUNK_CONTENT);
	c = chunk(API_OPENAI, HEAD "[{\"delta\":{\"content\":\"b\"},\"finish_reason\":\"length\"}]}");
	assert_true(c.kind == API_CHUNK_CONTENT && c.finish);
	assert_int_equal(chunk(API_OPENAI, "[DONE]").kind, API_CHUNK_DONE);
	assert_int_equal(chunk(API_OPENAI, " [DONE] ").kind, API_CHUNK_DONE);
	assert_int_equal(chunk(API_OPENAI, "{\"error\":{\"message\":\"x\",\"code\":500}}").kind, API_CHUNK_ERROR);
	assert_int_equal(chunk(API_OPENAI, "{\"object\":\"error\",\"message\":\"x\"}").kind, API_CHUNK_ERROR);
	assert_int_equal(chunk(API_OPENAI, "{\"choices\":").kind, API_CHUNK_OTHER);
	assert_int_equal(chunk(API_OPENAI, "").kind, API_CHUNK_OTHER);
	assert_int_equal(chunk(API_OPENAI, "[]").kind, API_CHUNK_OTHER);
}

/* Vectors J.3 and J.4: a surrogate pair cut in two, tool calls in every form. */
static void cut_pairs_and_tools(void **state)
{
	(void)state;
	assert_int_equal(chunk(API_OPENAI, HEAD "[{\"delta\":{\"content\":\"\\ud83d\"}}]}").kind, API_CHUNK_CONTENT);
	assert_int_equal(chunk(API_OPENAI, HEAD "[{\"delta\":{\"content\":\"\\ude00\"}}]}").kind, API_CHUNK_CONTENT);
	assert_int_equal(chunk(API_OPENAI, HEAD "[{\"delta\":{\"content\":\"\\ud83d\\ude00\"}}]}").kind, API_CHUNK_CONTENT);
	static const char *const CALLS[] = {
		"{\"index\":0,\"id\":\"c\",\"type\":\"function\",\"function\":{\"name\":\"f\"}}",
		"{\"index\":1,\"function\":{\"arguments\":\"\"}}",
		"{\"index\":0,\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"id\\\":9007199254740993}\"}}",
		"{\"index\":0,\"function\":{\"arguments\":\"{\\\"a\\\":[[[[{}]]]]}\"}},{\"index\":1,\"function\":{\"arguments\":\"x\"}}",
	};
	for (size_t i = 0; i < ARRAY_LEN(CALLS); i++) {
		char data[512];
		snprintf(data, sizeof(data), HEAD "[{\"delta\":{\"tool_calls\":[%s]}}]}", CALLS[i]);
		assert_int_equal(chunk(API_OPENAI, data).kind, API_CHUNK_CONTENT);
	}
}

/* Case 13 (litellm#42484): `choices: []` may stand anywhere; only with usage is it the extra chunk. */
static void case_litellm_42484_empty_choices(void **state)
{
	(void)state;
	assert_int_equal(chunk(API_OPENAI, HEAD "[],\"prompt_filter_results\":[]}").kind, API_CHUNK_OTHER);
	assert_int_equal(chunk(API_OPENAI, HEAD "[],\"usage\":null}").kind, API_CHUNK_OTHER);
	struct api_chunk c = chunk(API_OPENAI, HEAD "[],\"usage\":{\"prompt_tokens\":198,\"completion_tokens\":8,\"prompt_tokens_details\":"
						    "{\"cached_tokens\":160,\"created_cache_tokens\":32}}}");
	assert_int_equal(c.kind, API_CHUNK_USAGE_ONLY);
	expect_usage(&c.usage, 198, 160, 8);
}

/* Vector J.5. */
static void usage_forms(void **state)
{
	(void)state;
	static const struct {
		const char *usage;
		uint32_t prompt, cached, output;
		bool null;
	} ROWS[] = {
		{ "{\"prompt_tokens\":5,\"completion_tokens\":1,\"prompt_tokens_details\":null}", 5, UNKNOWN, 1, true },
		{ "{\"prompt_tokens\":5,\"completion_tokens\":1}", 5, UNKNOWN, 1, false },
		{ "{\"prompt_tokens\":5,\"completion_tokens\":1,\"prompt_tokens_details\":{\"cached_tokens\":0,\"multimodal_tokens\":null}"
		  "}",
			5, 0, 1, false },
		{ "{\"prompt_tokens\":5,\"completion_tokens\":1,\"prompt_tokens_details\":{\"cached_tokens\":null}}", 5, UNKNOWN, 1,
			false },
		{ "{\"prompt_tokens\":5,\"completion_tokens\":1,\"prompt_tokens_details\":{\"cached_tokens\":6}}", 5, UNKNOWN, 1, false },
		{ "{\"prompt_tokens\":-5,\"completion_tokens\":1.5,\"prompt_tokens_details\":{\"cached_tokens\":-1}}", UNKNOWN, UNKNOWN,
			UNKNOWN, false },
		{ "{\"prompt_tokens\":99999999999}", UNKNOWN, UNKNOWN, UNKNOWN, false },
	};
	for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
		struct buf b;
		buf_init(&b, 1000);
		assert_int_equal(
			buf_printf(&b, HEAD "[{\"delta\":{\"content\":\"x\"},\"finish_reason\":\"stop\"}],\"usage\":%s}", ROWS[i].usage),
			ERR_OK);
		struct api_chunk c;
		api_chunk_read(API_OPENAI, buf_str(&b), &c);
		assert_true(c.has_usage && c.kind == API_CHUNK_CONTENT && c.finish);
		expect_usage(&c.usage, ROWS[i].prompt, ROWS[i].cached, ROWS[i].output);
		assert_int_equal(c.usage.details_null, ROWS[i].null);
		buf_done(&b);
	}
	assert_false(chunk(API_OPENAI, HEAD "[],\"usage\":7}").has_usage);
}

static void anthropic_chunks(void **state)
{
	(void)state;
	struct api_usage sum = api_usage_none();
	struct api_chunk c = chunk(API_ANTHROPIC,
		"{\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"usage\":{\"input_tokens\":193,\"output_tokens\":0}}}");
	assert_int_equal(c.kind, API_CHUNK_OTHER);
	assert_string_equal(c.id, "msg_1");
	api_usage_merge(&sum, &c.usage);
	assert_int_equal(chunk(API_ANTHROPIC, "{\"type\":\"ping\"}").kind, API_CHUNK_OTHER);
	assert_int_equal(
		chunk(API_ANTHROPIC, "{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}")
			.kind,
		API_CHUNK_OTHER);
	assert_int_equal(chunk(API_ANTHROPIC, "{\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"a\"}}").kind,
		API_CHUNK_CONTENT);
	assert_int_equal(
		chunk(API_ANTHROPIC, "{\"type\":\"content_block_delta\",\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\"}}")
			.kind,
		API_CHUNK_CONTENT);
	assert_int_equal(
		chunk(API_ANTHROPIC, "{\"type\":\"content_block_delta\",\"delta\":{\"type\":\"thinking_delta\",\"thinking\":\"h\"}}").kind,
		API_CHUNK_CONTENT);
	c = chunk(API_ANTHROPIC, "{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"input_tokens\":1,"
				 "\"output_tokens\":4,\"cache_creation_input_tokens\":32,\"cache_read_input_tokens\":160}}");
	assert_true(c.finish && c.has_usage);
	api_usage_merge(&sum, &c.usage);
	expect_usage(&sum, 193, 160, 4);
	c = chunk(API_ANTHROPIC, "{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":null},\"usage\":{\"output_tokens\":5}}");
	assert_false(c.finish);
	api_usage_merge(&sum, &c.usage);
	expect_usage(&sum, 193, 160, 5);
	assert_int_equal(chunk(API_ANTHROPIC, "{\"type\":\"message_stop\"}").kind, API_CHUNK_DONE);
	/* case 51 (Portkey gateway#722) */
	assert_int_equal(chunk(API_ANTHROPIC, "{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"x\"}}").kind,
		API_CHUNK_ERROR);
}

static void responses_chunks(void **state)
{
	(void)state;
	struct api_chunk c = chunk(
		API_RESPONSES, "{\"type\":\"response.created\",\"sequence_number\":0,\"response\":{\"id\":\"resp_1\",\"usage\":null}}");
	assert_string_equal(c.id, "resp_1");
	assert_true(c.kind == API_CHUNK_OTHER && c.has_sequence && c.sequence == 0 && !c.has_usage);
	c = chunk(API_RESPONSES, "{\"type\":\"response.output_text.delta\",\"sequence_number\":4,\"delta\":\"x\"}");
	assert_true(c.kind == API_CHUNK_CONTENT && c.sequence == 4);
	c = chunk(API_RESPONSES, "{\"type\":\"response.completed\",\"sequence_number\":9,\"response\":{\"id\":\"resp_1\",\"usage\":{"
				 "\"input_tokens\":243,\"input_tokens_details\":{\"cached_tokens\":224},\"output_tokens\":4}}}");
	assert_true(c.kind == API_CHUNK_DONE && c.finish);
	expect_usage(&c.usage, 243, 224, 4);
	assert_int_equal(chunk(API_RESPONSES, "{\"type\":\"response.failed\",\"response\":{}}").kind, API_CHUNK_ERROR);
	assert_int_equal(chunk(API_RESPONSES, "{\"type\":\"error\",\"code\":\"x\",\"sequence_number\":3}").kind, API_CHUNK_ERROR);
}

/* Case 36 (gpustack#6155): the extra chunk goes as a whole event; every other byte stays. Cut at every place. */
static void case_gpustack_6155_extra_chunk_dropped_whole(void **state)
{
	(void)state;
	struct str kept_1 = STR("data: " HEAD "[{\"delta\":{\"content\":\"a\"}}]}\r\n\r\n: ping\n\n");
	struct str extra = STR("data:" HEAD "[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":1}}\n\n");
	struct str kept_2 = STR("data: [DONE]\n\n");
	struct buf all, out, want;
	buf_init(&all, 10000);
	buf_init(&out, 10000);
	buf_init(&want, 10000);
	assert_true(!buf_add(&all, kept_1) && !buf_add(&all, extra) && !buf_add(&all, kept_2) && !buf_add(&want, kept_1) &&
		    !buf_add(&want, kept_2));
	for (size_t cut = 0; cut <= all.n; cut++) {
		struct sse s;
		struct sse_event ev;
		uint32_t prompt = 0;
		sse_init(&s, 4096);
		buf_clear(&out);
		struct str pieces[2] = { str_sub(buf_str(&all), 0, cut), str_skip(buf_str(&all), cut) };
		for (int i = 0; i < 2; i++) {
			sse_feed(&s, pieces[i]);
			while (sse_next(&s, &ev) == ERR_OK) {
				struct api_chunk c = { .kind = API_CHUNK_OTHER };
				if (ev.has_data)
					api_chunk_read(API_OPENAI, ev.data, &c);
				if (c.kind == API_CHUNK_USAGE_ONLY)
					prompt = c.usage.prompt_tok;
				else
					assert_int_equal(buf_add(&out, ev.raw), ERR_OK);
			}
		}
		assert_false(sse_end(&s, &ev));
		assert_int_equal(prompt, 3);
		assert_true(str_eq(buf_str(&out), buf_str(&want)));
		sse_done(&s);
	}
	buf_done(&all);
	buf_done(&out);
	buf_done(&want);
}

/* What a client of a 0.32 worker would have seen had we not asked for usage. */
static void the_fingerprint_goes_back(void **state)
{
	(void)state;
	struct sse s;
	struct sse_event ev;
	struct api_chunk c;
	struct buf out;
	size_t at;
	buf_init(&out, 1000);
	sse_init(&s, 1000);
	c = chunk(API_OPENAI, HEAD "[],\"usage\":{\"prompt_tokens\":3},\"system_fingerprint\":\"vllm-0.32.0-4db284d7\"}");
	assert_string_equal(c.fingerprint, "vllm-0.32.0-4db284d7");
	sse_feed(&s, STR("data: " HEAD "[{\"finish_reason\":null}]}\n\ndata: " HEAD "[{\"finish_reason\":\"stop\"}]}\n\n"
			 "data: " HEAD "[{\"finish_reason\":\"stop\"}],\"system_fingerprint\":\"x\"}\n\n"));
	assert_int_equal(sse_next(&s, &ev), ERR_OK);
	api_chunk_read(API_OPENAI, ev.data, &c);
	assert_false(api_fingerprint_at(&c, ev.raw, ev.data, &at));
	assert_int_equal(sse_next(&s, &ev), ERR_OK);
	api_chunk_read(API_OPENAI, ev.data, &c);
	assert_true(api_fingerprint_at(&c, ev.raw, ev.data, &at));
	assert_int_equal(buf_add(&out, str_sub(ev.raw, 0, at)), ERR_OK);
	assert_int_equal(api_fingerprint_put(&out, "vllm-0.32.0-4db284d7"), ERR_OK);
	assert_int_equal(buf_add(&out, str_skip(ev.raw, at)), ERR_OK);
	assert_true(str_eq(
		buf_str(&out), STR("data: " HEAD "[{\"finish_reason\":\"stop\"}],\"system_fingerprint\":\"vllm-0.32.0-4db284d7\"}\n\n")));
	assert_int_equal(sse_next(&s, &ev), ERR_OK);
	api_chunk_read(API_OPENAI, ev.data, &c);
	assert_false(api_fingerprint_at(&c, ev.raw, ev.data, &at));
	sse_done(&s);
	buf_done(&out);
}

static struct api_result read_whole(enum api_dialect d, struct str body, size_t piece)
{
	struct api_whole w;
	struct api_result r;
	api_whole_init(&w);
	for (size_t at = 0; at < body.n; at += piece)
		api_whole_feed(&w, str_sub(body, at, piece));
	api_whole_read(&w, d, &r);
	assert_true(w.copy.n <= API_WHOLE_MAX);
	api_whole_done(&w);
	return r;
}

static int status_in(enum api_dialect d, const char *data)
{
	struct api_chunk c = chunk(d, data);
	assert_int_equal(c.kind, API_CHUNK_ERROR);
	struct api_result r = read_whole(d, str_of(data), 9);
	if (d != API_RESPONSES)
		assert_int_equal(r.error_status, c.error_status);
	return c.error_status;
}

/* Whose fault an error in a 200 is. */
static void the_status_that_an_error_tells(void **state)
{
	(void)state;
	static const struct {
		enum api_dialect d;
		const char *data;
		int status;
	} rows[] = {
		{ API_OPENAI, "{\"error\":{\"message\":\"x\",\"type\":\"BadRequestError\",\"param\":null,\"code\":400}}", 400 },
		{ API_OPENAI, "{\"error\":{\"message\":\"x\",\"type\":\"InternalServerError\",\"code\":500}}", 500 },
		{ API_OPENAI, "{\"object\":\"error\",\"message\":\"x\",\"type\":\"BadRequestError\",\"code\":400}", 400 },
		{ API_OPENAI, "{\"error\":{\"code\":\"503\"}}", 503 },
		{ API_OPENAI, "{\"error\":{\"code\":7,\"type\":\"BadRequestError\"}}", 400 },
		{ API_OPENAI, "{\"error\":{\"code\":99999999999999999999,\"type\":\"rate_limit_error\"}}", 429 },
		{ API_OPENAI, "{\"error\":{\"code\":\"context_length_exceeded\"}}", 400 },
		{ API_OPENAI, "{\"error\":{\"code\":\"upstream_midstream\",\"type\":\"server_error\"}}", 500 },
		{ API_OPENAI, "{\"error\":{}}", 500 },
		{ API_ANTHROPIC, "{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"x\"}}", 400 },
		{ API_ANTHROPIC, "{\"type\":\"error\",\"error\":{\"type\":\"internal_error\",\"message\":\"x\"}}", 500 },
		{ API_RESPONSES, "{\"type\":\"error\",\"code\":\"invalid_prompt\",\"sequence_number\":3}", 400 },
		{ API_RESPONSES, "{\"type\":\"error\",\"code\":\"x\",\"sequence_number\":3}", 500 },
		{ API_RESPONSES, "{\"type\":\"response.failed\",\"response\":{\"error\":{\"code\":\"rate_limit_exceeded\"}}}", 429 },
		{ API_RESPONSES, "{\"type\":\"response.failed\",\"response\":{\"error\":{\"code\":\"server_error\"}}}", 500 },
		{ API_RESPONSES, "{\"type\":\"response.failed\"}", 500 },
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_int_equal(status_in(rows[i].d, rows[i].data), rows[i].status);
}

/* Case 39 (higress#4146, #4248, #4616): usage cut inside a number, JSON in pieces of any size. */
static void case_higress_4146_split_usage(void **state)
{
	(void)state;
	struct str body = STR("{\"id\":\"chatcmpl-9\",\"choices\":[{\"message\":{\"content\":\"\\\"usage\\\":{\\\"prompt_tokens\\\":1}\"}}]"
			      ",\"usage\":{\"prompt_tokens\":1234,\"completion_tokens\":56,"
			      "\"prompt_tokens_details\":{\"cached_tokens\":1024}}}");
	for (size_t piece = 1; piece <= body.n; piece++) {
		struct api_result r = read_whole(API_OPENAI, body, piece);
		assert_true(r.has_usage && !r.error_status);
		expect_usage(&r.usage, 1234, 1024, 56);
		assert_string_equal(r.id, "chatcmpl-9");
	}
	assert_false(read_whole(API_OPENAI, str_sub(body, 0, body.n - 1), 7).has_usage);
	assert_true(read_whole(API_OPENAI, STR("{\"error\":{\"message\":\"x\",\"code\":404}}"), 5).error_status == 404);
	struct api_result r = read_whole(
		API_ANTHROPIC, STR("{\"id\":\"m\",\"type\":\"message\",\"usage\":{\"input_tokens\":193,\"output_tokens\":4}}"), 5);
	expect_usage(&r.usage, 193, UNKNOWN, 4);
	r = read_whole(API_RESPONSES,
		STR("{\"id\":\"resp_1\",\"usage\":{\"input_tokens\":7,\"output_tokens\":4,\"input_tokens_details\":{\"cached_tokens\":0}}"
		    "}"),
		5);
	expect_usage(&r.usage, 7, 0, 4);
	assert_string_equal(r.id, "resp_1");
}

/* Only members of the outermost object count, wherever they stand; what is not JSON says nothing. */
static void members_of_the_answer_itself(void **state)
{
	(void)state;
	struct api_result r = read_whole(API_OPENAI, STR(" {\"x\":{\"usage\":{\"prompt_tokens\":1},\"id\":\"no\",\"error\":{}},\n\"usage\" : "
							 "{\"prompt_tokens\":9,\"completion_tokens\":2} , \"id\" : \"yes\"}\n"), 3);
	assert_true(r.has_usage && !r.error_status);
	expect_usage(&r.usage, 9, UNKNOWN, 2);
	assert_string_equal(r.id, "yes");
	assert_true(read_whole(API_OPENAI, STR("{\"object\":\"error\",\"message\":\"x\"}"), 50).error_status);
	assert_true(read_whole(API_ANTHROPIC, STR("{\"type\":\"error\",\"error\":{}}"), 50).error_status);
	assert_false(read_whole(API_OPENAI, STR("{\"error\":null,\"usage\":null,\"id\":7}"), 50).error_status);
	static const char *const nothing[] = { "", "{", "}", "[]", "\"usage\"", "[{\"usage\":{\"prompt_tokens\":1}}]", "{\"usage\":}", "{\"usage\":{]}",
					       "{:{}}", "{\"id\":\"}", "{\"usage\":\"}" };
	for (size_t i = 0; i < ARRAY_LEN(nothing); i++) {
		r = read_whole(API_OPENAI, str_of(nothing[i]), 1);
		assert_true(!r.has_usage && !r.error_status && !r.id[0]);
	}
	r = read_whole(API_OPENAI, STR("{\"id\":\"a\\u0062\"}"), 50);
	assert_string_equal(r.id, "");
}

/* Case 68 (envoy ai-gateway#1662): an answer over the limit streams through; its usage is found in the tail. */
static void case_ai_gateway_1662_long_answer(void **state)
{
	(void)state;
	size_t n = 3 << 20;
	char *b = malloc(n);
	struct str head = STR("{\"id\":\"chatcmpl-long\",\"choices\":[{\"message\":{\"content\":\"");
	struct str tail = STR("\\\"usage\\\":{\\\"prompt_tokens\\\":1}\"}}],\"usage\":{\"prompt_tokens\":77,\"completion_tokens\":5,"
			      "\"prompt_tokens_details\":{\"cached_tokens\":64}},\"x\":null}");
	memset(b, 'x', n);
	memcpy(b, head.p, head.n);
	memcpy(b + n - tail.n, tail.p, tail.n);
	static const size_t PIECES[] = { 1000, 65536, 70001, 2 << 20, 3 << 20 };
	for (size_t i = 0; i < ARRAY_LEN(PIECES); i++) {
		struct api_result r = read_whole(API_OPENAI, str_from(b, n), PIECES[i]);
		assert_true(r.has_usage);
		expect_usage(&r.usage, 77, 64, 5);
		assert_string_equal(r.id, "chatcmpl-long");
	}
	free(b);
}

static bool fits(const char *first, const char *next)
{
	struct api_shape s = { 0 };
	struct api_chunk c = chunk(API_OPENAI, first);
	api_shape_learn(&s, &c, str_of(first));
	bool fit = api_shape_fits(&s, str_of(next));
	if (fit) {      /* the full reading must agree */
		c = chunk(API_OPENAI, next);
		assert_true(c.kind == API_CHUNK_CONTENT && !c.finish && !c.has_usage);
	}
	return fit;
}

static void chunks_of_one_shape_need_no_reading(void **state)
{
	(void)state;
#define TAIL "\"logprobs\":null,\"finish_reason\":null,\"token_ids\":null}]}"
#define CHAT(text) HEAD "[{\"index\":0,\"delta\":{\"content\":\"" text "\"}," TAIL
#define TEXT(text) HEAD "[{\"index\":0,\"text\":\"" text "\"," TAIL
	assert_true(fits(CHAT("a"), CHAT("hello")));
	assert_true(fits(TEXT("\\\"x\\\\"), TEXT("b")));
	assert_true(fits(CHAT("a"), CHAT("say \\\"usage\\\" \\u00e9 \\\\")));
	assert_false(fits(CHAT("a"), CHAT("")));
	assert_false(fits(CHAT(""), CHAT("a")));                       /* learnt from no output: nothing */
	assert_false(fits(CHAT("a"), TEXT("a")));
	assert_false(fits(CHAT("a"), CHAT("x\"},\"usage\":{\"a\":\"")));      /* the string ends before the rest begins */
	assert_false(fits(CHAT("a"), HEAD "[{\"index\":1,\"delta\":{\"content\":\"x\"}," TAIL));
	assert_false(fits(CHAT("a"), HEAD "[{\"index\":0,\"delta\":{\"content\":\"x\"},\"finish_reason\":\"stop\"}]}"));
	assert_false(fits(HEAD "[{\"index\":0,\"delta\":{\"content\":\"x\"},\"finish_reason\":\"stop\"}]}",
			  HEAD "[{\"index\":0,\"delta\":{\"content\":\"yy\"},\"finish_reason\":\"stop\"}]}"));
	assert_false(fits(CHAT("a"), "[DONE]"));
	assert_false(fits(CHAT("a"), ""));
	assert_false(fits("{\"error\":{\"message\":\"x\"}}", "{\"error\":{\"message\":\"xy\"}}"));
#undef CHAT
#undef TEXT
#undef TAIL
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chat_chunks),
		cmocka_unit_test(cut_pairs_and_tools),
		cmocka_unit_test(case_litellm_42484_empty_choices),
		cmocka_unit_test(usage_forms),
		cmocka_unit_test(anthropic_chunks),
		cmocka_unit_test(responses_chunks),
		cmocka_unit_test(case_gpustack_6155_extra_chunk_dropped_whole),
		cmocka_unit_test(the_fingerprint_goes_back),
		cmocka_unit_test(chunks_of_one_shape_need_no_reading),
		cmocka_unit_test(the_status_that_an_error_tells),
		cmocka_unit_test(case_higress_4146_split_usage),
		cmocka_unit_test(members_of_the_answer_itself),
		cmocka_unit_test(case_ai_gateway_1662_long_answer),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
