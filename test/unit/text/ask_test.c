/* ask_test.c: the bodies of both calls. What a real worker made of them was compared with the ids it generated from
 * (0.32, with and without its render calls, a template that prints every argument); the bodies are pinned here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "text/ask.h"
#include "wire/json.h"

static void expect(enum text_form form, enum text_call call, struct str body, struct str want)
{
	struct buf b;
	struct json_doc *d;
	buf_init(&b, 4096);
	enum err e = text_put_ask(&b, form, call, body);
	if (e != ERR_OK || !str_eq(buf_str(&b), want))
		fail_msg("%s: %.*s", err_text(e), STR_ARG(buf_str(&b)));
	if (call == TEXT_TOKENIZE) {
		assert_int_equal(json_parse(buf_str(&b), 4096, &d), ERR_OK);
		json_free(d);
	}
	buf_done(&b);
}

static void refused(enum text_form form, struct str body)
{
	struct buf b;
	buf_init(&b, 4096);
	assert_int_equal(text_put_ask(&b, form, TEXT_TOKENIZE, body), ERR_UNSUPPORTED);
	buf_done(&b);
}

#define M "\"messages\":[{\"role\":\"user\",\"content\":\"h\\u00e9\"}]"

static void paths(void **state)
{
	(void)state;
	assert_true(str_eq(text_call_path(TEXT_CHAT, TEXT_RENDER), STR("/v1/chat/completions/render")));
	assert_true(str_eq(text_call_path(TEXT_COMPLETIONS, TEXT_RENDER), STR("/v1/completions/render")));
	assert_true(str_eq(text_call_path(TEXT_COMPLETIONS, TEXT_TOKENIZE), STR("/tokenize")));
}

static void render_is_the_body_itself(void **state)
{
	(void)state;
	expect(TEXT_CHAT, TEXT_RENDER, STR("{" M ",\"return_mm_kwargs\":true}"),
		STR("{" M ",\"return_mm_kwargs\":true,\"return_mm_kwargs\":false}"));
	expect(TEXT_COMPLETIONS, TEXT_RENDER, STR(" {\"prompt\":[\"a\",\"b\"]}\n"),
		STR("{\"prompt\":[\"a\",\"b\"],\"return_mm_kwargs\":false}"));
	expect(TEXT_CHAT, TEXT_RENDER, STR("{ }"), STR("{ \"return_mm_kwargs\":false}"));
}

/* Router case 29 (production-stack#1045) and ray#64224: the chat as a whole goes along, tools and template arguments too. */
static void case_production_stack_1045_tokenize_chat(void **state)
{
	(void)state;
	expect(TEXT_CHAT, TEXT_TOKENIZE,
		STR("{\"temperature\":1,\"model\":\"m\"," M
		    ",\"tools\":[{\"type\":\"function\"}],\"stream\":true,\"add_generation_prompt\":false,"
		    "\"continue_final_message\":true,\"add_special_tokens\":true,\"chat_template\":\"{{x}}\",\"mm_processor_kwargs\":{"
		    "\"a\":1},\"user\":\"u\"}"),
		STR("{" M
		    ",\"model\":\"m\",\"tools\":[{\"type\":\"function\"}],\"chat_template\":\"{{x}}\",\"add_generation_prompt\":false,"
		    "\"continue_final_message\":true,\"add_special_tokens\":true,\"mm_processor_kwargs\":{\"a\":1}}"));
	expect(TEXT_CHAT, TEXT_TOKENIZE,
		STR("{" M ",\"tools\":null,\"chat_template_kwargs\":null,\"documents\":null,\"reasoning_effort\":null}"), STR("{" M "}"));
	expect(TEXT_CHAT, TEXT_TOKENIZE, STR("{\"mess\\u0061ges\":[{\"role\":\"user\",\"content\":\"h\\u00e9\"}]}"), STR("{" M "}"));
}

/* documents and reasoning_effort are arguments of the template; /tokenize has no such members. */
static void template_arguments(void **state)
{
	(void)state;
	expect(TEXT_CHAT, TEXT_TOKENIZE, STR("{" M ",\"documents\":[{\"title\":\"t\",\"text\":\"x\"}]}"),
		STR("{" M ",\"chat_template_kwargs\":{\"documents\":[{\"title\":\"t\",\"text\":\"x\"}]}}"));
	expect(TEXT_CHAT, TEXT_TOKENIZE, STR("{" M ",\"reasoning_effort\":\"low\"}"),
		STR("{" M ",\"chat_template_kwargs\":{\"reasoning_effort\":\"low\",\"enable_thinking\":true}}"));
	expect(TEXT_CHAT, TEXT_TOKENIZE, STR("{" M ",\"reasoning_effort\":\"none\",\"chat_template_kwargs\":{\"f\\u006fo\":[1, 2]}}"),
		STR("{" M ",\"chat_template_kwargs\":{\"f\\u006fo\":[1, 2],\"reasoning_effort\":\"none\",\"enable_thinking\":false}}"));
	expect(TEXT_CHAT, TEXT_TOKENIZE,
		STR("{" M ",\"reasoning_effort\":\"high\",\"chat_template_kwargs\":{\"enable_thinking\":false,\"documents\":[]},"
			  "\"documents\":[{}]}"),
		STR("{" M ",\"chat_template_kwargs\":{\"enable_thinking\":false,\"documents\":[],\"documents\":[{}],\"reasoning_effort\":"
			  "\"high\"}}"));
}

/* A chat's reasoning_content is its reasoning; the worker's /tokenize knows the new name only. */
static void old_name_of_reasoning(void **state)
{
	(void)state;
	expect(TEXT_CHAT, TEXT_TOKENIZE,
		STR("{\"messages\":[{\"role\":\"assistant\",\"reasoning\":null,\"reasoning_content\":\"r\",\"tool_calls\":[1.50]}, \"x\",{ \"role\":\"user\"}]}"),
		STR("{\"messages\":[{\"role\":\"assistant\",\"reasoning\":null,\"reasoning_content\":\"r\",\"tool_calls\":[1.50],\"reasoning\":\"r\"},\"x\","
		    "{\"role\":\"user\"}]}"));
	for (size_t i = 0; i < 2; i++) { /* nothing to add */
		static const struct str BODIES[] = { STR_INIT("{\"messages\":[ {\"reasoning\":\"a\",\"reasoning_content\":\"b\"}]}"),
			STR_INIT("{\"messages\":[ {\"reasoning_content\":null}]}") };
		expect(TEXT_CHAT, TEXT_TOKENIZE, BODIES[i], BODIES[i]);
	}
}

static void prompts(void **state)
{
	(void)state;
	expect(TEXT_COMPLETIONS, TEXT_TOKENIZE, STR("{\"model\":\"m\",\"prompt\":\"a\\n\",\"max_tokens\":1,\"add_special_tokens\":false}"),
		STR("{\"model\":\"m\",\"add_special_tokens\":false,\"prompt\":\"a\\n\"}"));
	expect(TEXT_COMPLETIONS, TEXT_TOKENIZE, STR("{\"prompt\":[ \"a\\\"]\" ]}"), STR("{\"prompt\":\"a\\\"]\"}"));
}

/* A chat's default is to begin an answer, an embedded chat's is not. There is no render call. */
static void embeddings(void **state)
{
	(void)state;
	expect(TEXT_EMBEDDINGS, TEXT_TOKENIZE, STR("{\"model\":\"m\",\"input\":\"a\",\"dimensions\":4,\"add_special_tokens\":false}"),
		STR("{\"model\":\"m\",\"add_special_tokens\":false,\"prompt\":\"a\"}"));
	expect(TEXT_EMBEDDINGS, TEXT_TOKENIZE, STR("{\"input\":[\"a\"],\"prompt\":\"b\"}"), STR("{\"prompt\":\"a\"}"));
	expect(TEXT_EMBEDDINGS, TEXT_TOKENIZE, STR("{" M ",\"reasoning_effort\":\"low\",\"tools\":[],\"chat_template_kwargs\":{\"x\":1}}"),
		STR("{" M ",\"add_generation_prompt\":false,\"chat_template_kwargs\":{\"x\":1}}"));
	expect(TEXT_EMBEDDINGS, TEXT_TOKENIZE, STR("{" M ",\"add_generation_prompt\":true}"), STR("{" M ",\"add_generation_prompt\":true}"));
	refused(TEXT_EMBEDDINGS, STR("{\"input\":[\"a\",\"b\"]}"));
	refused(TEXT_EMBEDDINGS, STR("{\"input\":\"a\"," M "}"));
	refused(TEXT_EMBEDDINGS, STR("{\"input\":\"a\",\"truncate_prompt_tokens\":4}"));
	refused(TEXT_EMBEDDINGS, STR("{\"input\":\"a\",\"padding\":\"max_length\"}"));
	refused(TEXT_EMBEDDINGS, STR("{\"prompt\":\"a\"}"));
	refused(TEXT_SCORE, STR("{\"text_1\":\"a\",\"text_2\":\"b\",\"prompt\":\"c\"}"));
	struct buf b;
	buf_init(&b, 100);
	assert_int_equal(text_put_ask(&b, TEXT_SCORE, TEXT_RENDER, STR("{\"text_1\":\"a\",\"text_2\":\"b\"}")), ERR_UNSUPPORTED);
	assert_int_equal(text_put_ask(&b, TEXT_EMBEDDINGS, TEXT_RENDER, STR("{\"input\":\"a\"}")), ERR_UNSUPPORTED);
	assert_false(text_has_render(TEXT_EMBEDDINGS));
	buf_done(&b);
}

static void what_tokenize_cannot_express(void **state)
{
	(void)state;
	refused(TEXT_COMPLETIONS, STR("{\"prompt\":[\"a\",\"b\"]}"));
	refused(TEXT_COMPLETIONS, STR("{\"prompt\":[1,2]}"));
	refused(TEXT_COMPLETIONS, STR("{\"prompt\":[]}"));
	refused(TEXT_COMPLETIONS, STR("{\"prompt\":\"a\",\"truncate_prompt_tokens\":4}"));
	refused(TEXT_COMPLETIONS, STR("{\"prompt\":\"a\",\"prompt_embeds\":\"QQ\"}"));
	refused(TEXT_COMPLETIONS, STR("{}"));
	refused(TEXT_CHAT, STR("{}"));
	refused(TEXT_CHAT,
		STR("{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"image_url\",\"image_url\":{\"url\":\"x\"}}]}]}"));
	refused(TEXT_CHAT, STR("{\"messages\":[{\"role\":\"user\",\"content\":[{\"image_url\":\"x\"}]}]}"));
	expect(TEXT_CHAT, TEXT_TOKENIZE, STR("{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"x\"},\"y\"]}]}"),
		STR("{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"x\"},\"y\"]}]}"));
	struct buf b;
	buf_init(&b, 10);
	assert_int_equal(text_put_ask(&b, TEXT_CHAT, TEXT_TOKENIZE, STR("{" M "}")), ERR_LIMIT);
	assert_int_equal(text_put_ask(&b, TEXT_CHAT, TEXT_RENDER, STR("{" M "}")), ERR_LIMIT);
	buf_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths),
		cmocka_unit_test(render_is_the_body_itself),
		cmocka_unit_test(case_production_stack_1045_tokenize_chat),
		cmocka_unit_test(template_arguments),
		cmocka_unit_test(old_name_of_reasoning),
		cmocka_unit_test(prompts),
		cmocka_unit_test(embeddings),
		cmocka_unit_test(what_tokenize_cannot_express),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
