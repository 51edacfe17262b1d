/* answer_test.c: ids out of every shape of answer, and shapes that are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "text/ask.h"

/* "1,2;3" for two prompts; items as "|hash@offset+length". */
static void expect(enum text_form form, enum text_call call, struct str answer, struct str want)
{
	struct text_ids *t = NULL;
	struct buf b;
	enum err e = text_read_answer(form, call, answer, 100, &t);
	if (e != ERR_OK)
		fail_msg("%s: %.*s", err_text(e), STR_ARG(answer));
	assert_int_equal(t->refs, 1);
	buf_init(&b, 4096);
	for (size_t i = 0; i < t->n; i++) {
		const struct text_prompt *p = &t->prompts[i];
		for (size_t k = 0; k < p->n; k++)
			assert_int_equal(buf_printf(&b, "%s%u", k ? "," : i ? ";" : "", p->ids[k]), ERR_OK);
		for (size_t k = 0; k < p->n_mm; k++)
			assert_int_equal(
				buf_printf(&b, "|%.*s@%u+%u", STR_ARG(p->mm[k].hash), p->mm[k].offset_tok, p->mm[k].len_tok), ERR_OK);
	}
	if (!str_eq(buf_str(&b), want))
		fail_msg("%.*s", STR_ARG(buf_str(&b)));
	assert_true(t->bytes > 4 * want.n / 2);
	buf_done(&b);
	text_ids_unref(t);
}

static void refused(enum text_form form, enum text_call call, struct str answer, enum err want)
{
	struct text_ids *t = NULL;
	assert_int_equal(text_read_answer(form, call, answer, 4, &t), want);
	assert_null(t);
}

static void tokenize(void **state)
{
	(void)state;
	expect(TEXT_CHAT, TEXT_TOKENIZE, STR("{\"count\":3,\"max_model_len\":1024,\"tokens\":[151644,872,0],\"token_strs\":null}"),
		STR("151644,872,0"));
	expect(TEXT_COMPLETIONS, TEXT_TOKENIZE, STR("{\"tokens\":[]}"), STR(""));
	refused(TEXT_CHAT, TEXT_TOKENIZE, STR("{\"count\":3}"), ERR_UPSTREAM_PROTOCOL);
	refused(TEXT_CHAT, TEXT_TOKENIZE, STR("[{\"tokens\":[1]}]"), ERR_UPSTREAM_PROTOCOL);
	refused(TEXT_CHAT, TEXT_TOKENIZE, STR("{\"tokens\":[-1]}"), ERR_UPSTREAM_PROTOCOL);
	refused(TEXT_CHAT, TEXT_TOKENIZE, STR("{\"tokens\":[4294967296]}"), ERR_UPSTREAM_PROTOCOL);
	refused(TEXT_CHAT, TEXT_TOKENIZE, STR("{\"tokens\":[1,2,3,4,5]}"), ERR_LIMIT);
	refused(TEXT_CHAT, TEXT_TOKENIZE, STR("<html>"), ERR_UPSTREAM_PROTOCOL);
	refused(TEXT_CHAT, TEXT_TOKENIZE, STR(""), ERR_UPSTREAM_PROTOCOL);
}

/* The list is read as it stands where it can be, by the tree where not: both must say the same. */
static void lists_quick_and_slow(void **state)
{
	(void)state;
	expect(TEXT_CHAT, TEXT_TOKENIZE, STR("{\"tokens\":[0,1, 2,4294967295]}"), STR("0,1,2,4294967295"));
	expect(TEXT_CHAT, TEXT_TOKENIZE, STR("{\"tokens\":[ 0 ,\n1,2 ]}"), STR("0,1,2"));
	expect(TEXT_CHAT, TEXT_TOKENIZE, STR("{\"tokens\":[1.0,2e1]}"), STR("1,20"));
	expect(TEXT_CHAT, TEXT_TOKENIZE, STR("{\"t\\u006fkens\":[7]}"), STR("7"));
	refused(TEXT_CHAT, TEXT_TOKENIZE, STR("{\"tokens\":[01]}"), ERR_UPSTREAM_PROTOCOL);
	refused(TEXT_CHAT, TEXT_TOKENIZE, STR("{\"tokens\":[1,]}"), ERR_UPSTREAM_PROTOCOL);
	refused(TEXT_CHAT, TEXT_TOKENIZE, STR("{\"tokens\":[1,,2]}"), ERR_UPSTREAM_PROTOCOL);
	refused(TEXT_CHAT, TEXT_TOKENIZE, STR("{\"tokens\":[1"), ERR_UPSTREAM_PROTOCOL);
	refused(TEXT_CHAT, TEXT_TOKENIZE, STR("{\"tokens\":[1],\"tokens\":[2]}"), ERR_UPSTREAM_PROTOCOL);
	refused(TEXT_CHAT, TEXT_TOKENIZE, STR("{\"tokens\":[[1]]}"), ERR_UPSTREAM_PROTOCOL);
}

static void render(void **state)
{
	(void)state;
	expect(TEXT_CHAT, TEXT_RENDER, STR("{\"request_id\":\"chatcmpl-1\",\"token_ids\":[5,6],\"features\":null,\"cache_salt\":\"q\"}"),
		STR("5,6"));
	expect(TEXT_COMPLETIONS, TEXT_RENDER, STR("[{\"token_ids\":[603,1378],\"features\":null},{\"token_ids\":[27856]}]"),
		STR("603,1378;27856"));
	refused(TEXT_CHAT, TEXT_RENDER, STR("[]"), ERR_UPSTREAM_PROTOCOL);
	refused(TEXT_COMPLETIONS, TEXT_RENDER, STR("[]"), ERR_UPSTREAM_PROTOCOL);
	refused(TEXT_COMPLETIONS, TEXT_RENDER, STR("[7]"), ERR_UPSTREAM_PROTOCOL);
	refused(TEXT_COMPLETIONS, TEXT_RENDER, STR("[{\"token_ids\":[1,2]},{\"token_ids\":[1,2,3]}]"), ERR_LIMIT);
}

/* 0.15 to 0.17. */
static void former_render(void **state)
{
	(void)state;
	expect(TEXT_CHAT, TEXT_RENDER,
		STR("[[{\"role\":\"user\",\"content\":\"x\"}],[{\"type\":\"token\",\"prompt_token_ids\":[1,2],\"prompt\":\"x\",\"arrival_"
		    "time\":1.5}]]"),
		STR("1,2"));
	expect(TEXT_COMPLETIONS, TEXT_RENDER, STR("[{\"prompt_token_ids\":[1,2],\"prompt\":\"x\"}]"), STR("1,2"));
	refused(TEXT_CHAT, TEXT_RENDER, STR("[[],[{\"type\":\"multimodal\",\"prompt_token_ids\":[1,2]}]]"), ERR_UPSTREAM_PROTOCOL);
	refused(TEXT_CHAT, TEXT_RENDER, STR("[[],[]]"), ERR_UPSTREAM_PROTOCOL);
}

static void images(void **state)
{
	(void)state;
	expect(TEXT_CHAT, TEXT_RENDER,
		STR("{\"token_ids\":[1,2,3,4,5,6,7,8],\"features\":{\"mm_hashes\":{\"image\":[\"bb\",\"aa\"],\"audio\":[\"cc\"]},"
		    "\"mm_placeholders\":{\"audio\":[{\"offset\":7,\"length\":1}],\"image\":[{\"offset\":4,\"length\":2},{\"offset\":1,"
		    "\"length\":2}]},\"kwargs_data\":null}}"),
		STR("1,2,3,4,5,6,7,8|aa@1+2|bb@4+2|cc@7+1"));
	refused(TEXT_CHAT, TEXT_RENDER, STR("{\"token_ids\":[1],\"features\":{\"mm_hashes\":{\"image\":[\"a\"]}}}"), ERR_UPSTREAM_PROTOCOL);
	refused(TEXT_CHAT, TEXT_RENDER,
		STR("{\"token_ids\":[1],\"features\":{\"mm_hashes\":{\"image\":[\"a\"]},\"mm_placeholders\":{\"image\":[{\"offset\":1,"
		    "\"length\":1}]}}}"),
		ERR_UPSTREAM_PROTOCOL);
	refused(TEXT_CHAT, TEXT_RENDER,
		STR("{\"token_ids\":[1],\"features\":{\"mm_hashes\":{\"image\":[null]},\"mm_placeholders\":{\"image\":[{\"offset\":0,"
		    "\"length\":1}]}}}"),
		ERR_UPSTREAM_PROTOCOL);
	refused(TEXT_CHAT, TEXT_RENDER,
		STR("{\"token_ids\":[1],\"features\":{\"mm_hashes\":{\"image\":[\"a\"]},\"mm_placeholders\":{\"video\":[{\"offset\":0,"
		    "\"length\":1}]}}}"),
		ERR_UPSTREAM_PROTOCOL);
	refused(TEXT_CHAT, TEXT_RENDER,
		STR("{\"token_ids\":[1],\"features\":{\"mm_hashes\":{\"a\":[\"x\"],\"a\":[\"x\"]},\"mm_placeholders\":{\"a\":[{\"offset\":"
		    "0,\"length\":1},{}]}}}"),
		ERR_UPSTREAM_PROTOCOL);
}

static void given_ids_are_copied(void **state)
{
	(void)state;
	uint32_t a[] = { 1, 2 }, b[] = { 3 };
	struct text_span lists[] = { { a, 2, 0 }, { b, 1, 7 }, { NULL, 0, 0 } };
	struct text_ids *t = text_ids_from(lists, 3);
	a[0] = 9;
	assert_true(t->n == 3 && t->prompts[0].ids[0] == 1 && t->prompts[1].n == 1 && t->prompts[2].n == 0);
	text_ids_ref(t);
	text_ids_unref(t);
	assert_int_equal(t->refs, 1);
	text_ids_unref(t);
	text_ids_unref(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tokenize),
		cmocka_unit_test(lists_quick_and_slow),
		cmocka_unit_test(render),
		cmocka_unit_test(former_render),
		cmocka_unit_test(images),
		cmocka_unit_test(given_ids_are_copied),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
