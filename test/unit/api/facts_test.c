/* facts_test.c: what a body tells, what is refused, and which members make two prompts different. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/facts.h"

static struct arena mem;

static int setup(void **state)
{
	(void)state;
	arena_init(&mem, 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	arena_done(&mem);
	return 0;
}

static enum err read_as(const char *target, struct str body, struct api_facts *f, struct api_fault *fault)
{
	return api_facts_read(api_path_find(STR("POST"), str_of(target), NULL), body, &(struct json_body_opts){ .max_bytes = 64 << 20 }, &mem, f, fault);
}

static struct api_facts chat(struct str body)
{
	struct api_facts f;
	struct api_fault fault = { 0 };
	if (read_as("/v1/chat/completions", body, &f, &fault) != ERR_OK)
		fail_msg("%s: %.*s", fault.message, STR_ARG(str_sub(body, 0, 200)));
	return f;
}

static struct api_facts completions(struct str body)
{
	struct api_facts f;
	struct api_fault fault = { 0 };
	if (read_as("/v1/completions", body, &f, &fault) != ERR_OK)
		fail_msg("%s: %.*s", fault.message, STR_ARG(str_sub(body, 0, 200)));
	return f;
}

#define M "\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]"
#define assert_str(s, lit) assert_true(str_eq(s, STR(lit)))

static void chat_facts(void **state)
{
	(void)state;
	struct str body = STR(
		"{\"model\":\"a\\u0062\"," M ",\"stream\":true,\"stream_options\":{\"include_usage\":true,\"continuous_usage_stats\":true},"
		"\"max_tokens\":7,\"max_completion_tokens\":9,\"n\":2,\"user\":\"u\",\"prompt_cache_key\":\"k\",\"cache_salt\":\"s\","
		"\"priority\":-3,\"session_id\":\"se\",\"previous_response_id\":\"resp_1\",\"tools\":[{\"type\":\"function\"}],"
		"\"vllm_xargs\":{\"kv_cache_report_mode\":\"full\"}}");
	struct api_facts f = chat(body);
	assert_str(f.model, "ab");
	assert_true(f.stream && f.usage_asked && f.usage_each && f.has_max_tok && f.max_tok == 9 && f.n == 2);
	assert_str(f.user, "u");
	assert_str(f.prompt_cache_key, "k");
	assert_str(f.cache_salt, "s");
	assert_str(f.session_id, "se");
	assert_str(f.previous_response_id, "resp_1");
	assert_true(f.has_priority && f.priority == -3 && f.report_full);
	assert_true(!f.no_lookup && !f.has_media && !f.truncates);
	assert_int_equal(f.form, API_PROMPT_MESSAGES);
	assert_str(f.prompt, "[{\"role\":\"user\",\"content\":\"hi\"}]");
	assert_str(f.prompt_head, "[{\"role\":\"user\",\"content\":\"hi\"}]");
	assert_str(f.tools, "[{\"type\":\"function\"}]");
	assert_str(json_span_str(body, f.at_stream_options.key), "\"stream_options\"");
	f = chat(STR("{" M "}"));
	assert_true(f.model.n == 0 && !f.stream && !f.usage_asked && !f.has_max_tok && f.n == 1);
	assert_int_equal(f.at_stream_options.val.n, 0);
	f = chat(STR(
		"{" M ",\"model\":null,\"stream\":null,\"max_tokens\":null,\"tools\":null,\"stream_options\":null,\"cache_salt\":null}"));
	assert_true(f.model.n == 0 && !f.stream && !f.has_max_tok && f.tools.n == 0);
}

/* A worker takes these as bools; what it would stream must be known here too. */
static void lenient_types(void **state)
{
	(void)state;
	assert_true(chat(STR("{" M ",\"stream\":1}")).stream);
	assert_true(chat(STR("{" M ",\"stream\":\"Yes\"}")).stream);
	assert_false(chat(STR("{" M ",\"stream\":\"off\"}")).stream);
	assert_true(chat(STR("{" M ",\"max_tokens\":16.0}")).max_tok == 16);
	assert_true(chat(STR("{" M ",\"max_tokens\":\"16\"}")).max_tok == 16);
	assert_false(chat(STR("{" M ",\"max_tokens\":-1}")).has_max_tok);
	assert_true(chat(STR("{" M ",\"n\":0}")).n == 1);
}

/* Case 74 (litellm#34223): the value that the worker will honour counts, in either order. */
static void case_litellm_34223_max_tokens(void **state)
{
	(void)state;
	assert_true(chat(STR("{\"max_tokens\":1,\"max_completion_tokens\":738," M "}")).max_tok == 738);
	assert_true(chat(STR("{\"max_completion_tokens\":738,\"max_tokens\":1," M "}")).max_tok == 738);
}

/* Shared facts I.3 rule 11, and what a real worker does with echo in chat. */
static void requests_that_are_not_looked_up(void **state)
{
	(void)state;
	assert_true(chat(STR("{" M ",\"prompt_logprobs\":0}")).no_lookup);
	assert_false(chat(STR("{" M ",\"prompt_logprobs\":null}")).no_lookup);
	assert_false(chat(STR("{" M ",\"logprobs\":true,\"top_logprobs\":2}")).no_lookup);
	assert_true(chat(STR("{" M ",\"echo\":true}")).no_lookup);
	assert_false(completions(STR("{\"prompt\":\"a\",\"echo\":true}")).no_lookup);
	assert_false(completions(STR("{\"prompt\":\"a\",\"logprobs\":1}")).no_lookup);
	assert_true(completions(STR("{\"prompt\":\"a\",\"logprobs\":0,\"echo\":true}")).no_lookup);
	assert_true(completions(STR("{\"prompt\":\"a\",\"prompt_logprobs\":1}")).no_lookup);
}

static void prompt_forms(void **state)
{
	(void)state;
	assert_int_equal(completions(STR("{\"prompt\":\"a\"}")).form, API_PROMPT_TEXT);
	assert_int_equal(completions(STR("{\"prompt\":[\"a\"]}")).form, API_PROMPT_TEXT);
	assert_int_equal(completions(STR("{\"prompt\":[\"a\",\"b\"]}")).form, API_PROMPT_TEXTS);
	assert_int_equal(completions(STR("{\"prompt\":[\"1\",2]}")).form, API_PROMPT_TEXTS);
	assert_int_equal(completions(STR("{\"prompt\":[1,\"2\"]}")).form, API_PROMPT_TEXTS);
	assert_int_equal(completions(STR("{\"prompt\":[1.5]}")).form, API_PROMPT_TEXTS);
	assert_int_equal(completions(STR("{\"prompt\":[4294967296]}")).form, API_PROMPT_TEXTS);
	assert_int_equal(completions(STR("{\"prompt_embeds\":\"AAAA\"}")).form, API_PROMPT_EMBEDS);
	assert_true(completions(STR("{\"prompt\":\"a\",\"truncate_prompt_tokens\":5}")).truncates);
}

/* Router case 48 (smg#2160): ids that the client gives are used as they are. */
static void case_smg_2160_ids_given(void **state)
{
	(void)state;
	struct api_facts f = completions(STR("{\"prompt\":[1, 2,4294967295]}"));
	assert_int_equal(f.form, API_PROMPT_IDS);
	assert_int_equal(f.n_ids, 1);
	assert_int_equal(f.ids[0].n, 3);
	assert_true(f.ids[0].p[0] == 1 && f.ids[0].p[2] == UINT32_MAX);
	f = completions(STR("{\"prompt\":[[1,2],[3]]}"));
	assert_int_equal(f.n_ids, 2);
	assert_true(f.ids[0].n == 2 && f.ids[1].n == 1 && f.ids[1].p[0] == 3);
}

static void expect_refused(const char *target, struct str body, enum err want, const char *param)
{
	struct api_facts f = { .n = 77 };
	struct api_fault fault = { 0 };
	enum err e = read_as(target, body, &f, &fault);
	if (e != want)
		fail_msg("%s: %s", err_text(e), body.p);
	assert_non_null(fault.message);
	assert_true(param ? fault.param && strcmp(fault.param, param) == 0 : !fault.param);
	assert_int_equal(f.n, 77);
}

/* Router case 76 (production-stack#1017): malformed payloads are the client's fault, said so, and go nowhere. */
static void case_production_stack_1017_malformed(void **state)
{
	(void)state;
	const char *c = "/v1/chat/completions", *t = "/v1/completions";
	expect_refused(c, STR(""), ERR_SYNTAX, NULL);
	expect_refused(c, STR("{" M), ERR_SYNTAX, NULL);
	expect_refused(c, STR("not json"), ERR_SYNTAX, NULL);
	expect_refused(c, STR("{" M "}\0"), ERR_SYNTAX, NULL);
	expect_refused(c, STR("{\"messages\":[{\"role\":\"user\",\"content\":\"\0\"}]}"), ERR_SYNTAX, NULL);
	expect_refused(c, STR("{\"messages\":[{\"role\":\"user\",\"content\":\"\xff\"}]}"), ERR_SYNTAX, NULL);
	expect_refused(c, STR("{\"messages\":[{\"role\":\"user\",\"content\":\"\\ud83d\"}]}"), ERR_SYNTAX, NULL);
	expect_refused(c, STR("[]"), ERR_BAD_REQUEST, NULL);
	expect_refused(c, STR("{}"), ERR_BAD_REQUEST, "messages");
	expect_refused(c, STR("{\"messages\":[]}"), ERR_BAD_REQUEST, "messages");
	expect_refused(c, STR("{\"messages\":\"hi\"}"), ERR_BAD_REQUEST, "messages");
	expect_refused(c, STR("{" M ",\"model\":5}"), ERR_BAD_REQUEST, "model");
	expect_refused(c, STR("{" M ",\"stream\":\"maybe\"}"), ERR_BAD_REQUEST, "stream");
	expect_refused(c, STR("{\"model\":\"allowed\",\"model\":\"other\"," M "}"), ERR_DUPLICATE, NULL);
	expect_refused(t, STR("{}"), ERR_BAD_REQUEST, "prompt");
	expect_refused(t, STR("{\"prompt\":[]}"), ERR_BAD_REQUEST, "prompt");
	expect_refused(t, STR("{\"prompt\":5}"), ERR_BAD_REQUEST, "prompt");
	expect_refused("/v1/embeddings", STR("5"), ERR_BAD_REQUEST, NULL);
	char deep[1000] = "{\"messages\":";
	size_t n = strlen(deep);
	memset(deep + n, '[', 200);
	memset(deep + n + 200, ']', 200);
	deep[n + 400] = '}';
	expect_refused(c, str_from(deep, n + 401), ERR_BAD_REQUEST, NULL);
}

/* Vector J.11: sizes around limits, keys in unusual order. */
static void big_bodies(void **state)
{
	(void)state;
	static const size_t SIZES[] = { 32767, 32768, 32769, 1 << 20, 4 << 20, 32 << 20 };
	for (size_t i = 0; i < ARRAY_LEN(SIZES); i++) {
		size_t n = SIZES[i];
		char *b = malloc(n);
		struct str head = STR("{\"messages\":[{\"role\":\"user\",\"content\":\""),
			   tail = STR("\"}],\"stream\":true,\"model\":\"m\"}");
		memset(b, 'x', n);
		memcpy(b, head.p, head.n);
		memcpy(b + n - tail.n, tail.p, tail.n);
		struct api_facts f = chat(str_from(b, n));
		assert_str(f.model, "m");
		assert_true(f.stream && f.prompt_head.n == 1024);
		struct api_fault fault;
		assert_int_equal(api_facts_read(api_path_find(STR("POST"), STR("/v1/chat/completions"), NULL), str_from(b, n), &(struct json_body_opts){ .max_bytes = n - 1 }, &mem,
					 &f, &fault),
			ERR_LIMIT);
		free(b);
	}
}

static void media(void **state)
{
	(void)state;
	struct api_facts f = chat(STR("{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"ab\"},"
				      "{\"type\":\"image_url\",\"image_url\":{\"url\":\"data:image/"
				      "png;base64,AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\"}}]}]}"));
	assert_true(f.has_media);
	assert_true(f.prompt_text_bytes < 130);
	assert_false(
		chat(STR("{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"ab\"},\"c\",{\"text\":\"d\"}]}]}"))
			.has_media);
	assert_true(chat(STR("{\"messages\":[{\"role\":\"user\",\"content\":[{\"image_url\":\"http://x\"}]}]}")).has_media);
	assert_true(chat(
		STR("{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"input_audio\",\"input_audio\":{\"data\":\"QQ==\"}}]}]}"))
			    .has_media);
}

static bool same_prompt(struct str a, struct str b)
{
	struct hash128 x = chat(a).digest, y = chat(b).digest;
	return x.lo == y.lo && x.hi == y.hi;
}

/* Router case 49 (smg#1637): the key covers every option that changes the prompt; sampling members do not. */
static void case_smg_1637_digest_covers_all_options(void **state)
{
	(void)state;
	struct str plain = STR("{\"model\":\"m\"," M "}");
	static const struct str SAME[] = {
		STR_INIT("{\"model\":\"m\"," M
			 ",\"temperature\":0.5,\"max_tokens\":5,\"stream\":true,\"seed\":1,\"user\":\"x\",\"n\":2,\"top_p\":1}"),
		STR_INIT("{\"model\":\"m\"," M ",\"cache_salt\":\"s\",\"tools\":null,\"documents\":null}"),
		STR_INIT("{ \"model\" : \"m\" , \"messages\":[{\"role\":\"user\",\"content\":\"hi\"}] }"),
	};
	static const struct str OTHER[] = {
		STR_INIT("{\"model\":\"n\"," M "}"),
		STR_INIT("{\"model\":\"m\"," M ",\"tools\":[]}"),
		STR_INIT("{\"model\":\"m\"," M ",\"add_special_tokens\":true}"),
		STR_INIT("{\"model\":\"m\"," M ",\"add_generation_prompt\":false}"),
		STR_INIT("{\"model\":\"m\"," M ",\"continue_final_message\":true}"),
		STR_INIT("{\"model\":\"m\"," M ",\"reasoning_effort\":\"low\"}"),
		STR_INIT("{\"model\":\"m\"," M ",\"documents\":[]}"),
		STR_INIT("{\"model\":\"m\"," M ",\"chat_template\":\"x\"}"),
		STR_INIT("{\"model\":\"m\"," M ",\"chat_template\":\"y\"}"),
		STR_INIT("{\"model\":\"m\"," M ",\"chat_template_kwargs\":{\"enable_thinking\":false}}"),
		STR_INIT("{\"model\":\"m\"," M ",\"tool_choice\":\"none\"}"),
		STR_INIT("{\"model\":\"m\"," M ",\"response_format\":{\"type\":\"text\"}}"),
		STR_INIT("{\"model\":\"m\"," M ",\"truncate_prompt_tokens\":4}"),
		STR_INIT("{\"model\":\"m\"," M ",\"mm_processor_kwargs\":{\"a\":1}}"),
		STR_INIT("{\"model\":\"m\"," M ",\"a_member_of_tomorrow\":1}"),
		STR_INIT("{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"hi \"}]}"),
	};
	for (size_t i = 0; i < ARRAY_LEN(SAME); i++)
		assert_true(same_prompt(plain, SAME[i]));
	for (size_t i = 0; i < ARRAY_LEN(OTHER); i++)
		if (same_prompt(plain, OTHER[i]))
			fail_msg("%s", OTHER[i].p);
	for (size_t i = 1; i < ARRAY_LEN(OTHER); i++)
		assert_false(same_prompt(OTHER[i - 1], OTHER[i]));
	assert_true(chat(STR("{" M ",\"chat_template\":\"x\"}")).own_template && !chat(STR("{" M ",\"chat_template\":null}")).own_template);
	static const struct str CUT[] = { STR_INIT("{\"prompt\":\"x\",\"truncate_prompt_tokens\":-1}"), STR_INIT("{\"prompt\":\"x\",\"truncate_prompt_tokens\":-1,\"max_tokens\":0}"),
		STR_INIT("{\"prompt\":\"x\",\"truncate_prompt_tokens\":-1,\"max_tokens\":2}"), STR_INIT("{\"prompt\":\"x\",\"truncate_prompt_tokens\":-1,\"truncation_side\":\"left\"}") };
	for (size_t i = 0; i < ARRAY_LEN(CUT); i++)
		for (size_t k = 0; k < i; k++)
			assert_true(completions(CUT[i]).digest.lo != completions(CUT[k]).digest.lo);
	struct hash128 a = completions(STR("{\"prompt\":\"x\",\"add_special_tokens\":false}")).digest,
		       b = completions(STR("{\"prompt\":\"x\"}")).digest;
	assert_true(a.lo != b.lo && a.hi != b.hi);
}

/* Router case 29 (production-stack#1045): chat has a prompt too, and its history is in it. */
static void case_production_stack_1045_chat_prompt(void **state)
{
	(void)state;
	struct api_facts f = chat(STR("{\"model\":\"m\",\"messages\":[{\"role\":\"system\",\"content\":\"s\"},{\"role\":\"user\","
				      "\"content\":\"q\"}],\"prompt\":\"no\"}"));
	assert_int_equal(f.form, API_PROMPT_MESSAGES);
	assert_str(f.prompt, "[{\"role\":\"system\",\"content\":\"s\"},{\"role\":\"user\",\"content\":\"q\"}]");
}

static void other_paths(void **state)
{
	(void)state;
	struct api_facts f;
	struct api_fault fault;
	assert_int_equal(read_as("/v1/embeddings", STR("{\"model\":\"e\",\"input\":[\"a\",\"b\"]}"), &f, &fault), ERR_OK);
	assert_str(f.model, "e");
	assert_int_equal(f.form, API_PROMPT_TEXTS);
	assert_str(f.prompt_head, "[\"a\",\"b\"]");
	assert_int_equal(
		read_as("/v1/responses",
			STR("{\"model\":\"e\",\"input\":\"q\",\"max_output_tokens\":4,\"previous_response_id\":\"resp_9\"}"), &f, &fault),
		ERR_OK);
	assert_true(f.max_tok == 4 && str_eq(f.previous_response_id, STR("resp_9")) && !f.truncates);
	assert_int_equal(read_as("/v1/responses", STR("{\"model\":\"e\",\"input\":\"q\",\"truncation\":\"disabled\"}"), &f, &fault), ERR_OK);
	assert_false(f.truncates);
	assert_int_equal(read_as("/v1/responses", STR("{\"model\":\"e\",\"input\":\"q\",\"truncation\":\"auto\"}"), &f, &fault), ERR_OK);
	assert_true(f.truncates);
	assert_int_equal(read_as("/score", STR("{\"model\":\"e\",\"text_1\":\"q\",\"text_2\":\"r\"}"), &f, &fault), ERR_OK);
	assert_true(f.prompt_text_bytes > 20 && f.form == API_PROMPT_TEXTS);
	struct api_facts g;
	assert_int_equal(read_as("/score", STR("{\"model\":\"e\",\"text_1\":\"q\",\"text_2\":\"s\",\"stream\":true}"), &g, &fault), ERR_OK);
	assert_true(f.digest.lo != g.digest.lo && !g.stream);
	assert_int_equal(read_as("/v1/audio/transcriptions", STR("--x\r\nany"), &f, &fault), ERR_OK);
	assert_int_equal(f.model.n, 0);
}

/* What a worker may still make something of is never refused here; a prompt of no known form is none. */
static void inputs_of_embeddings(void **state)
{
	static const struct { const char *body; enum api_prompt_form form; size_t n_ids; } ROWS[] = {
		{ "{\"input\":\"a\"}", API_PROMPT_TEXT, 0 },
		{ "{\"input\":[\"a\"],\"stream\":true}", API_PROMPT_TEXT, 0 },
		{ "{\"input\":[1,2]}", API_PROMPT_IDS, 1 },
		{ "{\"input\":[[1,2],[3]]}", API_PROMPT_IDS, 2 },
		{ "{\"input\":[{\"role\":\"user\",\"content\":\"a\"}]}", API_PROMPT_TEXTS, 0 },
		{ "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}", API_PROMPT_MESSAGES, 0 },
		{ "{\"messages\":[{}],\"input\":\"a\"}", API_PROMPT_NONE, 0 },
		{ "{\"messages\":\"a\"}", API_PROMPT_NONE, 0 },
		{ "{\"input\":[]}", API_PROMPT_NONE, 0 },
		{ "{\"input\":{}}", API_PROMPT_NONE, 0 },
		{ "{\"prompt\":\"a\"}", API_PROMPT_NONE, 0 },
		{ "{}", API_PROMPT_NONE, 0 },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
		struct api_facts f;
		struct api_fault fault;
		assert_int_equal(read_as("/v1/embeddings", str_of(ROWS[i].body), &f, &fault), ERR_OK);
		assert_int_equal(f.form, ROWS[i].form);
		assert_int_equal(f.n_ids, ROWS[i].n_ids);
		assert_false(f.stream);
	}
	struct api_facts f, of_other_size;
	struct api_fault fault;
	assert_int_equal(read_as("/v1/embeddings", STR("{\"input\":\"a\"}"), &f, &fault), ERR_OK);
	assert_int_equal(read_as("/v1/embeddings", STR("{\"input\":\"a\",\"dimensions\":2,\"encoding_format\":\"base64\"}"), &of_other_size, &fault), ERR_OK);
	assert_true(f.digest.lo == of_other_size.digest.lo && f.digest.hi == of_other_size.digest.hi);
}

static void model_of_a_form(void **state)
{
	(void)state;
	struct str body =
		STR("--BB\r\nContent-Disposition: form-data; name=\"file\"; filename=\"model\"\r\n\r\n\x01\x02 name=\"model\" \r\n"
		    "--BB\r\ncontent-disposition: form-data; name=\"model\"\r\n\r\nwhisper-1\r\n--BB--\r\n");
	assert_str(api_form_model(STR("multipart/form-data; boundary=BB"), body), "whisper-1");
	assert_str(api_form_model(STR("Multipart/Form-Data; charset=x; Boundary=\"BB\""), body), "whisper-1");
	assert_str(api_form_model(STR("multipart/form-data; boundary=XX"), body), "");
	assert_str(api_form_model(STR("multipart/form-data"), body), "");
	assert_str(api_form_model(STR("application/json; boundary=BB"), body), "");
	assert_str(api_form_model(STR("multipart/form-data; boundary=BB"), str_sub(body, 0, body.n - 12)), "");
	assert_str(api_form_model(STR("multipart/form-data; boundary=BB"), STR("")), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(chat_facts, setup, teardown),
		cmocka_unit_test_setup_teardown(lenient_types, setup, teardown),
		cmocka_unit_test_setup_teardown(case_litellm_34223_max_tokens, setup, teardown),
		cmocka_unit_test_setup_teardown(requests_that_are_not_looked_up, setup, teardown),
		cmocka_unit_test_setup_teardown(prompt_forms, setup, teardown),
		cmocka_unit_test_setup_teardown(case_smg_2160_ids_given, setup, teardown),
		cmocka_unit_test_setup_teardown(case_production_stack_1017_malformed, setup, teardown),
		cmocka_unit_test_setup_teardown(big_bodies, setup, teardown),
		cmocka_unit_test_setup_teardown(media, setup, teardown),
		cmocka_unit_test_setup_teardown(case_smg_1637_digest_covers_all_options, setup, teardown),
		cmocka_unit_test_setup_teardown(case_production_stack_1045_chat_prompt, setup, teardown),
		cmocka_unit_test_setup_teardown(other_paths, setup, teardown),
		cmocka_unit_test(inputs_of_embeddings),
		cmocka_unit_test(model_of_a_form),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
