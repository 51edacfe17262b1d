#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "sim/spec.h"

static struct sim_serving serving;
static struct json_doc *doc;
static struct sim_fail fail;

static int setup(void **state)
{
	(void)state;
	struct sim_lora a = { .name = "a", .path = "/p", .id = 4 };
	serving = (struct sim_serving){ .model = STR("m"), .max_model_tok = 1000, .default_new_tok = 128, .vocab = sim_vocab_new() };
	VEC_PUSH(&serving.loras, a);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	sim_vocab_free(serving.vocab);
	VEC_FREE(&serving.loras);
	return 0;
}

static bool read(enum sim_api api, const char *body, struct sim_spec_call *c)
{
	assert_int_equal(json_parse(str_of(body), strlen(body), &doc), ERR_OK);
	bool ok = sim_spec_read(&serving, api, json_root(doc), c, &fail);
	if (!ok)
		json_free(doc);
	return ok;
}

static void done(struct sim_spec_call *c)
{
	sim_spec_done(c);
	json_free(doc);
}

#define CHAT "\"messages\":[{\"role\":\"user\",\"content\":\"hello\"}]"

static void members_are_read(void **state)
{
	(void)state;
	struct sim_spec_call c;
	assert_true(read(SIM_CHAT,
		"{" CHAT ",\"model\":\"a\",\"stream\":true,\"stream_options\":{\"include_usage\":true},\"max_completion_tokens\":9,\"n\":2,"
		"\"cache_salt\":\"s\","
		"\"prompt_logprobs\":0,\"vllm_xargs\":{\"kv_cache_report_mode\":\"full\"},\"session_id\":\"x\",\"unknown\":1}",
		&c));
	assert_true(str_eq(c.model, STR("a")) && str_eq(c.lora.lora_path, STR("/p")) && c.lora.lora_id == 4);
	assert_true(c.stream && c.include_usage && !c.continuous_usage && c.no_lookup && c.report_full && !c.natural_end);
	assert_int_equal(c.max_new, 9);
	assert_int_equal(c.n, 2);
	assert_true(str_eq(c.salt, STR("s")) && str_eq(c.session, STR("x")));
	done(&c);
	assert_true(read(SIM_CHAT, "{" CHAT "}", &c));
	assert_true(str_eq(c.model, STR("m")) && c.natural_end);
	assert_int_equal(c.max_new, 128);
	done(&c);
	assert_true(read(SIM_CHAT, "{" CHAT ",\"ignore_eos\":true}", &c));
	assert_int_equal(c.max_new, 1000);
	done(&c);
}

static void prompts_come_in_four_forms(void **state)
{
	(void)state;
	static const struct {
		const char *body;
		size_t prompts, first;
	} forms[] = {
		{ "{\"prompt\":\"one two\"}", 1, 2 },
		{ "{\"prompt\":[5,6,7]}", 1, 3 },
		{ "{\"prompt\":[\"one\",\"two six\"]}", 2, 1 },
		{ "{\"prompt\":[[5,6],[7]]}", 2, 2 },
	};
	for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
		struct sim_spec_call c;
		assert_true(read(SIM_COMPLETION, forms[i].body, &c));
		assert_int_equal(c.prompts.n, forms[i].prompts);
		assert_int_equal(c.prompts.p[0].tok.n, forms[i].first);
		done(&c);
	}
}

static sim_ids ids_of(const char *body)
{
	struct sim_spec_call c;
	sim_ids out = { 0 };
	assert_true(read(SIM_CHAT, body, &c));
	for (size_t i = 0; i < c.prompts.p[0].tok.n; i++)
		VEC_PUSH(&out, c.prompts.p[0].tok.p[i]);
	done(&c);
	return out;
}

static bool same_ids(const char *a, const char *b)
{
	sim_ids x = ids_of(a), y = ids_of(b);
	bool same = x.n == y.n && memcmp(x.p, y.p, x.n * sizeof(*x.p)) == 0;
	VEC_FREE(&x);
	VEC_FREE(&y);
	return same;
}

static void what_changes_the_prompt_changes_the_ids(void **state)
{
	(void)state;
	static const char *const changes[] = { "\"tools\":[{\"type\":\"function\"}]",
		"\"chat_template_kwargs\":{\"enable_thinking\":false}", "\"documents\":[1]", "\"reasoning_effort\":\"high\"",
		"\"add_generation_prompt\":false", "\"continue_final_message\":true", "\"chat_template\":\"x\"" };
	for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
		char body[256];
		snprintf(body, sizeof(body), "{" CHAT ",%s}", changes[i]);
		assert_false(same_ids("{" CHAT "}", body));
	}
	assert_true(same_ids("{" CHAT "}", "{" CHAT ",\"temperature\":0,\"tools\":[],\"user\":\"x\"}"));
	/* inside the kwargs or beside them, and however it is spaced */
	assert_true(same_ids("{" CHAT ",\"documents\":[{\"a\":1}],\"reasoning_effort\":\"low\"}",
		"{" CHAT ",\"chat_template_kwargs\":{ \"reasoning_effort\" : \"low\", \"documents\" : [ { \"a\" : 1 } ] } }"));
}

static void images_sit_where_their_pads_are(void **state)
{
	(void)state;
	struct sim_spec_call c;
	assert_true(read(SIM_CHAT,
		"{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"look\"},{\"type\":\"image_url\",\"image_"
		"url\":{\"url\":\"data:x\"}},"
		"{\"type\":\"image_url\",\"image_url\":{\"url\":\"data:y\"}}]}]}",
		&c));
	struct sim_prompt *p = &c.prompts.p[0];
	assert_int_equal(p->mm.n, 2);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(p->tok.p[p->mm.p[i].at_tok - 1], SIM_TOK_IMAGE_START);
		assert_int_equal(p->tok.p[p->mm.p[i].at_tok], SIM_TOK_IMAGE_PAD);
		assert_int_equal(p->tok.p[p->mm.p[i].at_tok + p->mm.p[i].n_tok], SIM_TOK_IMAGE_END);
		assert_int_equal(p->mm.p[i].hash.n, 64);
	}
	assert_false(str_eq(p->mm.p[0].hash, p->mm.p[1].hash));
	done(&c);
}

static void faults_say_where_and_what(void **state)
{
	(void)state;
	static const struct {
		enum sim_api api;
		const char *body;
		int status;
		const char *type, *param;
	} bad[] = {
		{ SIM_CHAT, "{}", 400, "Bad Request", "body.messages" },
		{ SIM_CHAT, "{\"messages\":[]}", 400, "BadRequestError", "" },
		{ SIM_CHAT, "{\"messages\":[1]}", 400, "Bad Request", "body.messages.0" },
		{ SIM_CHAT, "{" CHAT ",\"model\":\"x\"}", 404, "NotFoundError", "model" },
		{ SIM_CHAT, "{" CHAT ",\"model\":3}", 400, "Bad Request", "body.model" },
		{ SIM_CHAT, "{" CHAT ",\"max_tokens\":0}", 400, "BadRequestError", "max_tokens" },
		{ SIM_CHAT, "{" CHAT ",\"max_tokens\":1001}", 400, "BadRequestError", "max_tokens" },
		{ SIM_CHAT, "{" CHAT ",\"max_tokens\":\"x\"}", 400, "Bad Request", "body.max_tokens" },
		{ SIM_CHAT, "{" CHAT ",\"n\":2,\"temperature\":0}", 400, "BadRequestError", "" },
		{ SIM_CHAT, "{" CHAT ",\"cache_salt\":7}", 400, "Bad Request", "body.cache_salt" },
		{ SIM_COMPLETION, "{\"prompt\":[]}", 400, "BadRequestError", "" },
		{ SIM_COMPLETION, "{\"prompt\":[[]]}", 400, "BadRequestError", "prompt" },
		{ SIM_COMPLETION, "{\"prompt\":[150016]}", 400, "BadRequestError", "" },
		{ SIM_COMPLETION, "{\"prompt\":{}}", 400, "BadRequestError", "prompt" },
		{ SIM_RESPONSES, "{}", 400, "Bad Request", "body.input" },
		{ SIM_MESSAGES, "{" CHAT "}", 400, "Bad Request", "body.max_tokens" },
		{ SIM_GENERATE, "{}", 400, "Bad Request", "body.token_ids" },
		{ SIM_EMBEDDING, "{\"input\":[]}", 400, "BadRequestError", "" },
		{ SIM_SCORE, "{\"text_1\":\"a\"}", 400, "Bad Request", "body.text_2" },
		{ SIM_SCORE, "{\"queries\":[\"a\",\"b\"],\"documents\":[\"c\",\"d\",\"e\"]}", 400, "BadRequestError", "" },
		{ SIM_RERANK, "{\"text_1\":\"a\",\"text_2\":\"b\"}", 400, "Bad Request", "body.query" },
	};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct sim_spec_call c;
		assert_false(read(bad[i].api, bad[i].body, &c));
		assert_int_equal(fail.status, bad[i].status);
		assert_string_equal(fail.type, bad[i].type);
		assert_string_equal(fail.param, bad[i].param);
		assert_true(fail.message[0]);
	}
}

static void a_prompt_as_long_as_the_model_is_refused(void **state)
{
	(void)state;
	struct buf b;
	struct sim_spec_call c;
	buf_init(&b, 64 << 10);
	assert_int_equal(buf_printf(&b, "{\"prompt\":[1"), ERR_OK);
	for (int i = 1; i < 1000; i++)
		assert_int_equal(buf_printf(&b, ",1"), ERR_OK);
	assert_int_equal(buf_printf(&b, "]}"), ERR_OK);
	assert_int_equal(buf_add_byte(&b, 0), ERR_OK);
	assert_false(read(SIM_COMPLETION, buf_str(&b).p, &c));
	assert_string_equal(fail.param, "input_tokens");
	buf_done(&b);
}

static void transfers_are_read(void **state)
{
	(void)state;
	struct sim_spec_call c;
	assert_true(read(SIM_CHAT, "{" CHAT ",\"kv_transfer_params\":{\"do_remote_decode\":true,\"remote_block_ids\":null}}", &c));
	assert_true(c.remote_decode && !c.remote_prefill);
	done(&c);
	assert_true(read(SIM_CHAT,
		"{" CHAT ",\"kv_transfer_params\":{\"do_remote_prefill\":true,\"do_remote_decode\":false,\"remote_block_ids\":[[1]],"
		"\"remote_engine_id\":\"e\",\"remote_request_id\":\"r\",\"remote_host\":\"h\",\"remote_port\":5600}}",
		&c));
	assert_true(!c.remote_decode && c.remote_prefill);
	done(&c);
	assert_true(read(SIM_CHAT, "{" CHAT ",\"kv_transfer_params\":{\"do_remote_prefill\":true,\"remote_engine_id\":\"e\"}}", &c));
	assert_false(c.remote_prefill); /* nowhere to fetch from: computed here */
	done(&c);
	assert_true(read(SIM_CHAT, "{" CHAT ",\"kv_transfer_params\":null}", &c));
	assert_false(c.remote_prefill || c.remote_decode);
	done(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(members_are_read, setup, teardown),
		cmocka_unit_test_setup_teardown(prompts_come_in_four_forms, setup, teardown),
		cmocka_unit_test_setup_teardown(what_changes_the_prompt_changes_the_ids, setup, teardown),
		cmocka_unit_test_setup_teardown(images_sit_where_their_pads_are, setup, teardown),
		cmocka_unit_test_setup_teardown(faults_say_where_and_what, setup, teardown),
		cmocka_unit_test_setup_teardown(a_prompt_as_long_as_the_model_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(transfers_are_read, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
