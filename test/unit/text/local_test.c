/* local_test.c: bodies -> prompts and ids, held against vLLM's own by a golden file (test/tokenizers/make_chat_golden.py), and what
 * has to be refused for a worker that is not known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/must.h"
#include "text/day.h"
#include "text/local.h"

enum { FILE_MAX_BYTES = 8 << 20, NOON_S = 1772366096 };   /* 2026-03-01 11:54:56 */
#define FOLDER "test/tokenizers/golden/chat/"

static struct str read_file(const char *path)
{
	FILE *f = fopen(path, "rb");
	assert_non_null(f);
	char *p = must_malloc(FILE_MAX_BYTES);
	size_t n = fread(p, 1, FILE_MAX_BYTES, f);
	assert_true(n < FILE_MAX_BYTES);
	fclose(f);
	return str_from(p, n);
}

static void drop(struct str s) { free((void *)(uintptr_t)s.p); }

struct model {
	struct text_local *l;
	struct text_local_scratch *s;
	char why[256];
};

static enum err load_with(struct model *m, struct text_local_files f, struct str template)
{
	struct str tok = read_file(FOLDER "tokenizer.json"), config = read_file(FOLDER "tokenizer_config.json");
	if (!f.text[TEXT_FILE_TOKENIZER].n)
		f.text[TEXT_FILE_TOKENIZER] = tok;
	if (!f.text[TEXT_FILE_CONFIG].n)
		f.text[TEXT_FILE_CONFIG] = config;
	f.text[TEXT_FILE_TEMPLATE] = template;
	enum err e = text_local_load(&f, m->why, sizeof(m->why), &m->l);
	drop(tok);
	drop(config);
	m->s = e == ERR_OK ? text_local_scratch_new(m->l, 1 << 16) : NULL;
	return e;
}

static void done(struct model *m)
{
	text_local_scratch_free(m->s);
	text_local_unref(m->l);
	*m = (struct model){ 0 };
}

static struct text_local_job chat(struct str body) { return (struct text_local_job){ .form = TEXT_CHAT, .body = body, .now_s = NOON_S, .max_tok = 1 << 20 }; }

/* ---- the golden file */

struct counts {
	size_t equal, left, refused, wrong;
	struct tok_memo *memo;       /* every body is done without it and with it */
};

static bool same_list(const struct json_val *want, const struct text_prompt *p)
{
	size_t i = 0;
	uint64_t id;
	for (struct json_iter it = json_each(want); json_next(&it); i++)
		if (i >= p->n || !json_u64(it.val, &id) || id != p->ids[i])
			return false;
	return i == p->n;
}

static bool same_ids(const struct json_val *want, const struct text_ids *ids, bool lists)
{
	size_t i = 0;
	if (!lists)
		return ids->n == 1 && same_list(want, &ids->prompts[0]);
	for (struct json_iter it = json_each(want); json_next(&it); i++)
		if (i >= ids->n || !same_list(it.val, &ids->prompts[i]))
			return false;
	return i == ids->n;
}

static bool same_prompt(struct model *m, const struct text_local_job *job, struct str want)
{
	struct buf out;
	const char *why;
	buf_init(&out, FILE_MAX_BYTES);
	bool same = text_local_prompt(m->s, job, &out, &why) == ERR_OK && str_eq(buf_str(&out), want);
	if (!same)
		print_message("want: %.*s\n got: %.*s\n", STR_ARG(want), STR_ARG(buf_str(&out)));
	buf_done(&out);
	return same;
}

static enum text_form form_of(struct str kind)
{
	static const struct str NAMES[] = { [TEXT_CHAT] = STR_INIT("chat"), [TEXT_COMPLETIONS] = STR_INIT("completions"), [TEXT_RESPONSES] = STR_INIT("responses"),
		[TEXT_MESSAGES] = STR_INIT("messages"), [TEXT_EMBEDDINGS] = STR_INIT("embeddings") };
	for (size_t i = 0; i < ARRAY_LEN(NAMES); i++)
		if (str_eq(kind, NAMES[i]))
			return (enum text_form)i;
	fail_msg("what kind is this: %.*s", STR_ARG(kind));
	return TEXT_CHAT;
}

static const struct json_val *first_of(const struct json_val *list)
{
	struct json_iter it = json_each(list);
	return json_next(&it) ? it.val : NULL;
}

static void check_body(struct model *m, const struct json_val *line, struct counts *c)
{
	struct str kind, body = { 0 }, prompt;
	struct text_ids *ids;
	uint64_t length;
	const char *why = NULL;
	assert_true(json_str(json_get(line, STR("kind")), &kind) && json_str(json_get(line, STR("body")), &body));
	struct text_local_job job = chat(body);
	job.form = form_of(kind);
	job.model_tok = json_u64(json_get(line, STR("length")), &length) ? length : 1 << 24;
	bool one = !json_is(first_of(json_get(line, STR("ids"))), JSON_ARRAY);
	bool refused = json_true(json_get(line, STR("refused")));
	if (text_local_ids(m->s, &job, &ids, &why) != ERR_OK) {
		assert_non_null(why);
		c->left += !refused;
		c->refused += refused;
		return;
	}
	bool same = refused || same_ids(json_get(line, STR("ids")), ids, !one);
	text_ids_unref(ids);
	job.memo = c->memo;
	assert_int_equal(text_local_ids(m->s, &job, &ids, &why), ERR_OK);
	same = same && (refused || same_ids(json_get(line, STR("ids")), ids, !one));
	if (same && !refused && json_str(json_get(line, STR("prompt")), &prompt))
		same = same_prompt(m, &job, prompt);
	c->equal += same;
	c->wrong += !same;
	if (!same)
		print_message("body: %.*s\n", STR_ARG(str_sub(body, 0, 600)));
	text_ids_unref(ids);
}

#define HARMONY "test/tokenizers/golden/harmony/"
static void load_harmony(struct model *m, bool known_version)
{
	struct text_local_files f = { .known_version = known_version };
	struct str tok = read_file(HARMONY "tokenizer.json"), config = read_file(HARMONY "config.json");
	f.text[TEXT_FILE_TOKENIZER] = tok;
	f.text[TEXT_FILE_MODEL] = config;
	assert_int_equal(load_with(m, f, STR("")), ERR_OK);
	drop(tok);
	drop(config);
}

static struct counts check_file(const char *path, bool harmony)
{
	struct str text = read_file(path), rest = text, line, source;
	struct counts c = { .memo = tok_memo_new(&(struct tok_memo_opts){ .max_bytes = 4 << 20, .least_bytes = 16 }) };
	struct model m = { 0 };
	if (harmony)
		load_harmony(&m, true);
	while (str_cut(rest, '\n', &line, &rest)) {
		struct json_doc *d;
		assert_int_equal(json_parse(line, line.n, &d), ERR_OK);
		if (json_str(json_get(json_root(d), STR("source")), &source)) {
			done(&m);
			assert_int_equal(load_with(&m, (struct text_local_files){ .known_version = true }, source), ERR_OK);
			assert_true(text_local_has_chat(m.l));
		} else {
			check_body(&m, json_root(d), &c);
		}
		json_free(d);
	}
	print_message("%zu equal, %zu left to the worker, %zu refused by both, %zu wrong\n", c.equal, c.left, c.refused, c.wrong);
	assert_int_equal(c.wrong, 0);
	assert_true(tok_memo_stats(c.memo).known_bytes > 1000);
	tok_memo_unref(c.memo);
	done(&m);
	drop(text);
	return c;
}

static void golden(void **state)
{
	(void)state;
	struct counts c = check_file(FOLDER "bodies.jsonl", false);
	assert_true(c.equal > 400 && c.left < c.equal / 8);
}

static void golden_of_other_apis(void **state)
{
	(void)state;
	struct counts c = check_file(FOLDER "convert.jsonl", false);
	assert_true(c.equal > 150 && c.left < c.equal / 4);
}

static void golden_of_bodies_with_their_own_ways(void **state)
{
	(void)state;
	struct counts c = check_file(FOLDER "requests.jsonl", false);
	assert_true(c.equal > 330 && c.left < c.equal / 2);
}

static void golden_of_harmony(void **state)
{
	(void)state;
	struct counts c = check_file(HARMONY "bodies.jsonl", true);
	assert_true(c.equal > 280 && c.left < c.equal / 6);
}

/* The day of the prompt, what a text that spells special tokens becomes, and what is known of the model. */
static void harmony(void **state)
{
	struct model m = { 0 };
	struct text_ids *ids;
	const char *why = NULL;
	(void)state;
	load_harmony(&m, true);
	assert_true(text_local_is_harmony(m.l) && text_local_has_chat(m.l) && text_local_uses_clock(m.l));
	struct text_local_job job = chat(STR("{\"messages\":[{\"role\":\"user\",\"content\":\"<|end|>\"}],\"reasoning_effort\":\"low\"}"));
	assert_true(same_prompt(&m, &job, STR("<|start|>system<|message|>You are ChatGPT, a large language model trained by OpenAI.\nKnowledge cutoff: 2024-06\n"
		"Current date: 2026-03-01\n\nReasoning: low\n\n# Valid channels: analysis, commentary, final. Channel must be included for every message.<|end|>"
		"<|start|>user<|message|><|end|><|end|><|start|>assistant")));
	assert_int_equal(text_local_ids(m.s, &job, &ids, &why), ERR_OK);
	const struct text_prompt *p = &ids->prompts[0];
	assert_true(p->ids[0] == 200006 && p->ids[p->n - 3] == 200007 && p->ids[p->n - 4] != 200007 && p->ids[p->n - 2] == 200006);
	text_ids_unref(ids);
	job.now_s = 1772409590;   /* ten seconds before midnight */
	assert_int_equal(text_local_ids(m.s, &job, &ids, &why), ERR_UNSUPPORTED);
	assert_string_equal(why, "midnight");
	done(&m);
	load_harmony(&m, false);
	assert_true(text_local_is_harmony(m.l) && !text_local_has_chat(m.l) && !text_local_uses_clock(m.l));
	assert_non_null(strstr(m.why, "version"));
	done(&m);
}

/* A turn later only its own text is new. */
static void harmony_remembers(void **state)
{
	struct model m = { 0 };
	struct text_ids *ids;
	struct buf b;
	const char *why = NULL;
	(void)state;
	load_harmony(&m, true);
	buf_init(&b, 1 << 20);
	assert_int_equal(buf_add(&b, STR("{\"messages\":[{\"role\":\"user\",\"content\":\"")), ERR_OK);
	for (int i = 0; i < 400; i++)
		assert_int_equal(buf_printf(&b, "line %d\\n", i), ERR_OK);
	struct tok_memo *memo = tok_memo_new(&(struct tok_memo_opts){ .max_bytes = 4 << 20, .least_bytes = 1024 });
	for (int turn = 0; turn < 2; turn++) {
		size_t had = b.n;
		assert_int_equal(buf_add(&b, turn ? STR("\"},{\"role\":\"user\",\"content\":\"more\"}]}") : STR("\"}]}")), ERR_OK);
		struct text_local_job job = chat(buf_str(&b));
		job.memo = memo;
		job.max_new_bytes = turn ? 300 : 0;
		assert_int_equal(text_local_ids(m.s, &job, &ids, &why), ERR_OK);
		text_ids_unref(ids);
		job.memo = NULL;
		if (turn)
			assert_int_equal(text_local_ids(m.s, &job, &ids, &why), ERR_AGAIN);
		b.n = had;
	}
	tok_memo_unref(memo);
	buf_done(&b);
	done(&m);
}

/* Where a system message between others goes: merged into the first when the template raises, or would not compile in the worker's trial. */
static void inline_system(void **state)
{
#define PLAIN "{% for m in messages %}{{ m.role }}={{ m.content }};{% endfor %}"
	static const struct { const char *template, *prompt, *why; } CASES[] = {
		{ PLAIN, "system=a;user=b;system=c;", NULL },
		{ "{% for m in messages %}{% if m.role == 'system' and not loop.first %}{{ raise_exception('x') }}{% endif %}{{ m.role }}={{ m.content }};{% endfor %}", "system=ac;user=b;", NULL },
		{ "{%- generation %}{% endgeneration %}" PLAIN, "system=ac;user=b;", NULL },
		{ "{# x #}{% generation %}{% endgeneration %}" PLAIN, NULL, "inline_system" },
		{ "{{ strftime_now('%Y') }}" PLAIN, NULL, "inline_system" },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
		struct model m = { 0 };
		struct buf out;
		const char *why = NULL;
		struct text_local_job job = chat(STR("{\"system\":\"a\",\"messages\":[{\"role\":\"user\",\"content\":\"b\"},{\"role\":\"system\",\"content\":\"c\"}]}"));
		job.form = TEXT_MESSAGES;
		buf_init(&out, 1000);
		assert_int_equal(load_with(&m, (struct text_local_files){ .known_version = true }, str_of(CASES[i].template)), ERR_OK);
		assert_int_equal(text_local_prompt(m.s, &job, &out, &why), CASES[i].prompt ? ERR_OK : ERR_UNSUPPORTED);
		if (CASES[i].prompt)
			assert_true(str_eq(buf_str(&out), str_of(CASES[i].prompt)));
		else
			assert_string_equal(why, CASES[i].why);
		buf_done(&out);
		done(&m);
	}
}

/* Cases 21, 23, 24 and 26 of gateways.md: what an agent's session is to the template, as the worker makes it. */
static void expect_messages(const char *body, const char *want)
{
	static const char TEMPLATE[] = "{% for m in messages %}{{ m.role }}={{ m.content }}{% if m.reasoning %}<{{ m.reasoning }}>{% endif %}"
				       "{% for t in m.tool_calls %}!{{ t.id }}:{{ t.function.arguments | tojson }}{% endfor %}"
				       "{% if m.tool_call_id %}@{{ m.tool_call_id }}{% endif %};{% endfor %}";
	struct model m = { 0 };
	struct text_local_job job = chat(str_of(body));
	job.form = TEXT_MESSAGES;
	assert_int_equal(load_with(&m, (struct text_local_files){ .known_version = true }, str_of(TEMPLATE)), ERR_OK);
	assert_true(same_prompt(&m, &job, str_of(want)));
	done(&m);
}

static void case_vllm_38738_results_of_tools_come_before_the_text(void **state)
{
	(void)state;
	expect_messages("{\"messages\":[{\"role\":\"user\",\"content\":\"q\"},"
			"{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"ok\"},{\"type\":\"tool_use\",\"id\":\"t1\",\"name\":\"f\",\"input\":{}},"
			"{\"type\":\"tool_use\",\"id\":\"t2\",\"name\":\"f\",\"input\":{}}]},"
			"{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"and?\"},{\"type\":\"tool_result\",\"tool_use_id\":\"t1\",\"content\":\"r1\"},"
			"{\"type\":\"tool_result\",\"tool_use_id\":\"t2\",\"content\":[{\"type\":\"text\",\"text\":\"r2\"}]}]}]}",
		"user=q;assistant=ok!t1:{}!t2:{};tool=r1@t1;tool=r2@t2;user=and?;");
}

static void case_litellm_22997_thinking_is_no_visible_text(void **state)
{
	(void)state;
	expect_messages("{\"messages\":[{\"role\":\"user\",\"content\":\"q\"},{\"role\":\"assistant\",\"content\":["
			"{\"type\":\"thinking\",\"thinking\":\"hidden\",\"signature\":\"sealed\"},{\"type\":\"redacted_thinking\",\"data\":\"sealed\"},"
			"{\"type\":\"text\",\"text\":\"seen\"}]},{\"role\":\"user\",\"content\":\"more\"}]}",
		"user=q;assistant=seen<hidden>;user=more;");
}

static void case_litellm_30043_what_is_unknown_changes_no_prompt(void **state)
{
	(void)state;
	expect_messages("{\"betas\":[\"x-2026\"],\"context_management\":{\"edits\":[]},\"metadata\":{\"user_id\":\"u\"},\"service_tier\":\"auto\","
			"\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"q\",\"cache_control\":{\"type\":\"ephemeral\"}}]},"
			"{\"role\":\"system\",\"content\":\"in its place\"},{\"role\":\"user\",\"content\":\"more\"}]}",
		"user=q;system=in its place;user=more;");
}

static void case_mcp_go_913_integers_keep_their_digits(void **state)
{
	(void)state;
	expect_messages("{\"messages\":[{\"role\":\"user\",\"content\":\"q\"},{\"role\":\"assistant\",\"content\":["
			"{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"f\",\"input\":{\"id\":9007199254740993,\"n\":18446744073709551617}}]}]}",
		"user=q;assistant=!t:{\"id\": 9007199254740993, \"n\": 18446744073709551617};");
}

/* Which effort stands for no thinking: found by trying the template. */
static void thinking_disabled(void **state)
{
	static const struct { const char *template, *prompt; } CASES[] = {
		{ "{{ enable_thinking }} {{ reasoning_effort }}", "False none" },
		{ "{{ enable_thinking }}", "False" },
		{ "{{ reasoning_effort if reasoning_effort in ['low', 'medium', 'high'] else 'max' }}", "low" },   /* none is max there */
		{ "{% if reasoning_effort == 'none' %}{{ raise_exception('x') }}{% endif %}{{ reasoning_effort }}", "low" },
		{ "x", "x" },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
		struct model m = { 0 };
		struct buf out;
		const char *why = NULL;
		struct text_local_job job = chat(STR("{\"thinking\":{\"type\":\"disabled\"},\"messages\":[{\"role\":\"user\",\"content\":\"b\"}]}"));
		job.form = TEXT_MESSAGES;
		buf_init(&out, 1000);
		assert_int_equal(load_with(&m, (struct text_local_files){ .known_version = true }, str_of(CASES[i].template)), ERR_OK);
		assert_int_equal(text_local_prompt(m.s, &job, &out, &why), ERR_OK);
		assert_true(str_eq(buf_str(&out), str_of(CASES[i].prompt)));
		buf_done(&out);
		done(&m);
	}
}

static void other_apis_only_for_a_known_version(void **state)
{
	struct model m = { 0 };
	struct text_ids *ids;
	const char *why = NULL;
	(void)state;
	assert_int_equal(load_with(&m, (struct text_local_files){ 0 }, STR("{% for m in messages %}{{ m.content }}{% endfor %}")), ERR_OK);
	struct text_local_job job = chat(STR("{\"input\":\"hi\"}"));
	job.form = TEXT_RESPONSES;
	assert_int_equal(text_local_ids(m.s, &job, &ids, &why), ERR_UNSUPPORTED);
	assert_string_equal(why, "version");
	done(&m);
}

/* ---- long work is refused at once where it would hold up others */

static void more_new_text_than_allowed(void **state)
{
	struct model m = { 0 };
	struct text_ids *ids;
	const char *why = NULL;
	(void)state;
	assert_int_equal(load_with(&m, (struct text_local_files){ .known_version = true }, STR("{% for m in messages %}{{ m.content }}{% endfor %}")), ERR_OK);
	struct text_local_job job = chat(STR("{\"messages\":[{\"role\":\"user\",\"content\":\"0123456789\"}]}"));
	job.max_new_bytes = 9;
	assert_int_equal(text_local_ids(m.s, &job, &ids, &why), ERR_AGAIN);
	job.max_new_bytes = 10;
	assert_int_equal(text_local_ids(m.s, &job, &ids, &why), ERR_OK);
	text_ids_unref(ids);
	job.form = TEXT_COMPLETIONS; /* prompts share what is allowed */
	job.body = STR("{\"prompt\":[\"01234\",\"0123456\"]}");
	assert_int_equal(text_local_ids(m.s, &job, &ids, &why), ERR_AGAIN);
	done(&m);
}

/* ---- an unknown version */

static const char *reason(struct model *m, const char *body)
{
	struct text_local_job job = chat(str_of(body));
	struct text_ids *ids;
	const char *why = "none";
	if (text_local_ids(m->s, &job, &ids, &why) == ERR_OK)
		text_ids_unref(ids);
	return why;
}

static void what_differs_between_versions_is_left(void **state)
{
	struct model m = { 0 };
	(void)state;
	static const struct { const char *body, *why; } rows[] = {
		{ "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}", "none" },
		{ "{\"messages\":[{\"role\":\"user\",\"content\":\"\\ud83e\\udee8\"}]}", "tokenizer_unsupported" },   /* a symbol since Unicode 15 */
		{ "{\"messages\":[{\"role\":\"developer\",\"content\":\"a\"}]}", "version" },
		{ "{\"messages\":[{\"role\":\"assistant\",\"content\":\"a\",\"reasoning\":\"r\"}]}", "version" },
		{ "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"x\":1}}]}", "tool_extra_member" },
		{ "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"reasoning_effort\":\"low\"}", "version" },
		{ "{\"messages\":[{\"role\":\"assistant\",\"content\":\"a\",\"tool_calls\":[]}]}", "version" },
		{ "{\"messages\":[{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"1\",\"type\":\"function\",\"index\":0,\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]}]}", "version" },
		{ "{\"messages\":[{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"1\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]}]}", "none" },
		{ "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"chat_template_kwargs\":{\"x\":null}}", "version" },
		{ "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"chat_template_kwargs\":{\"x\":1}}", "none" },
		{ "{\"messages\":[{\"role\":\"assistant\",\"content\":\"a\"}],\"continue_final_message\":true,\"add_generation_prompt\":false}", "version" },
		{ "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\"}}]}", "none" },
	};
	assert_int_equal(load_with(&m, (struct text_local_files){ 0 }, STR("{% for m in messages %}{{ m.content }}{% endfor %}{{ tools }}{{ enable_thinking }}")), ERR_OK);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_string_equal(reason(&m, rows[i].body), rows[i].why);
	done(&m);
	struct str disputed = STR("{% for m in messages %}{% set content = m.content %}{% for c in content %}{{ c }}{% endfor %}{% endfor %}");
	assert_int_equal(load_with(&m, (struct text_local_files){ 0 }, disputed), ERR_OK);
	assert_string_equal(reason(&m, rows[0].body), "content_format");
	done(&m);
}

/* ---- embeddings: the ids of the completion or chat that they are */

static struct text_ids *ids_as(struct model *m, enum text_form form, const char *body)
{
	struct text_local_job job = chat(str_of(body));
	struct text_ids *ids = NULL;
	const char *why = NULL;
	job.form = form;
	if (text_local_ids(m->s, &job, &ids, &why) != ERR_OK)
		fail_msg("%s: %s", body, why);
	return ids;
}

static void expect_same_ids_as(struct model *m, enum text_form a_form, const char *body, enum text_form form, const char *other)
{
	struct text_ids *a = ids_as(m, a_form, body), *b = ids_as(m, form, other);
	assert_int_equal(a->n, b->n);
	for (size_t i = 0; i < a->n; i++) {
		assert_int_equal(a->prompts[i].n, b->prompts[i].n);
		assert_memory_equal(a->prompts[i].ids, b->prompts[i].ids, a->prompts[i].n * sizeof(uint32_t));
	}
	text_ids_unref(a);
	text_ids_unref(b);
}

static void expect_same_ids(struct model *m, const char *body, enum text_form form, const char *other) { expect_same_ids_as(m, TEXT_EMBEDDINGS, body, form, other); }

static void expect_left(struct model *m, enum text_form form, const char *body, const char *want)
{
	struct text_local_job job = chat(str_of(body));
	struct text_ids *ids;
	const char *why = NULL;
	job.form = form;
	assert_int_equal(text_local_ids(m->s, &job, &ids, &why), ERR_UNSUPPORTED);
	assert_string_equal(why, want);
}

#define ONE "\"messages\":[{\"role\":\"user\",\"content\":\"a b\"}]"
#define GENERATES "{% for m in messages %}{{ m.content }};{% endfor %}{{ tools }}{{ enable_thinking }}{% if add_generation_prompt %}answer{% endif %}"

static void embeddings(void **state)
{
	static const struct { const char *body, *why; } LEFT[] = {
		{ "{\"input\":\"a\"," ONE "}", "prompt_form" },
		{ "{\"input\":[{\"role\":\"user\",\"content\":\"a\"}]}", "prompt_form" },
		{ "{}", "prompt_form" },
		{ "{\"input\":\"a\",\"truncate_prompt_tokens\":-1}", "truncation" },
		{ "{\"input\":\"a\",\"padding\":\"max_length\"}", "prompt_form" },
		{ "{" ONE ",\"truncate_prompt_tokens\":0}", "truncation" },
		{ "{" ONE ",\"padding\":\"max_length\"}", "prompt_form" },
		{ "{\"messages\":[{\"role\":\"assistant\",\"content\":\"a\",\"tool_calls\":[]}]}", "message_form" },
		{ "{\"messages\":[[{\"role\":\"user\",\"content\":\"a\"}]]}", "message_form" },
	};
	struct model m = { 0 };
	(void)state;
	assert_int_equal(load_with(&m, (struct text_local_files){ .known_version = true }, STR(GENERATES)), ERR_OK);
	expect_same_ids(&m, "{\"input\":\"some text\",\"dimensions\":4}", TEXT_COMPLETIONS, "{\"prompt\":\"some text\"}");
	expect_same_ids(&m, "{\"input\":[\"a\",\"b c\"],\"add_special_tokens\":false}", TEXT_COMPLETIONS, "{\"prompt\":[\"a\",\"b c\"],\"add_special_tokens\":false}");
	expect_same_ids(&m, "{\"input\":[5,6]}", TEXT_COMPLETIONS, "{\"prompt\":[5,6]}");
	expect_same_ids(&m, "{\"input\":\"a\",\"messages\":null}", TEXT_COMPLETIONS, "{\"prompt\":\"a\"}");
	expect_same_ids(&m, "{" ONE ",\"tools\":[1],\"reasoning_effort\":\"low\"}", TEXT_CHAT, "{" ONE ",\"add_generation_prompt\":false}");
	expect_same_ids(&m, "{" ONE ",\"add_generation_prompt\":true,\"add_special_tokens\":true}", TEXT_CHAT, "{" ONE ",\"add_special_tokens\":true}");
	for (size_t i = 0; i < ARRAY_LEN(LEFT); i++)
		expect_left(&m, TEXT_EMBEDDINGS, LEFT[i].body, LEFT[i].why);
	done(&m);
}

/* ---- scores and rankings: each text a prompt, the queries first */

#define SIDES "\"text_1\":\"q\",\"text_2\":\"d\""

static void scores(void **state)
{
	static const char *const SAME[] = {
		"{\"queries\":\"a q\",\"documents\":[\"b\",\"c d\"],\"top_n\":1,\"add_special_tokens\":false}",
		"{\"queries\":[\"a q\"],\"items\":[\"b\",\"c d\"],\"instruction\":\"x\"}",
		"{\"data_1\":\"a q\",\"data_2\":[\"b\",\"c d\"],\"max_tokens_per_doc\":0}",
		"{\"text_1\":\"a q\",\"text_2\":[\"b\",\"c d\"],\"truncate_prompt_tokens\":null,\"documents\":[\"e\"]}",
		"{\"query\":\"a q\",\"documents\":[\"b\",\"c d\"]}",
	};
	static const struct { const char *body, *why; } LEFT[] = {
		{ "{" SIDES ",\"truncate_prompt_tokens\":-1}", "truncation" },
		{ "{" SIDES ",\"max_tokens_per_query\":3}", "truncation" },
		{ "{" SIDES ",\"max_tokens_per_doc\":-1}", "truncation" },
		{ "{" SIDES ",\"padding\":\"max_length\"}", "prompt_form" },
		{ "{" SIDES ",\"query\":\"a\",\"documents\":\"b\"}", "prompt_form" },
		{ "{\"queries\":\"a\",\"text_2\":\"b\"}", "prompt_form" },
		{ "{\"query\":null,\"documents\":\"b\"}", "prompt_form" },
		{ "{\"query\":\"a\",\"documents\":[]}", "prompt_form" },
		{ "{\"query\":\"a\",\"documents\":[1,2]}", "prompt_form" },
		{ "{\"query\":\"a\",\"documents\":[\"b\",{\"content\":[]}]}", "prompt_form" },
		{ "{\"query\":{\"content\":[]},\"documents\":\"b\"}", "prompt_form" },
		{ "{\"queries\":[\"a\",\"b\"],\"documents\":[\"c\",\"d\",\"e\"]}", "prompt_form" },
	};
	struct model m = { 0 };
	(void)state;
	assert_int_equal(load_with(&m, (struct text_local_files){ 0 }, STR("")), ERR_OK);
	for (size_t i = 0; i < ARRAY_LEN(SAME); i++)
		expect_same_ids_as(&m, TEXT_SCORE, SAME[i], TEXT_COMPLETIONS, "{\"prompt\":[\"a q\",\"b\",\"c d\"]}");
	expect_same_ids_as(&m, TEXT_SCORE, "{\"text_1\":[\"a\",\"b\"],\"text_2\":[\"c\",\"d\"]}", TEXT_COMPLETIONS, "{\"prompt\":[\"a\",\"b\",\"c\",\"d\"]}");
	for (size_t i = 0; i < ARRAY_LEN(LEFT); i++)
		expect_left(&m, TEXT_SCORE, LEFT[i].body, LEFT[i].why);
	done(&m);
}

/* ---- truncation: <s> stands before a prompt, each letter and each space is an id */

struct cut {
	enum text_form form;
	const char *body, *whole;        /* the body whose ids are cut */
	size_t from, n;                  /* these of them stay, behind <s> if `bos` */
	bool bos;
};

#define CHAT_OF(more) "{\"messages\":[{\"role\":\"user\",\"content\":\"q w e r z\"}]" more "}"
#define TEXT_OF(more) "{\"prompt\":\"q w e r z\"" more "}"
static const struct cut CUTS[] = {
	{ TEXT_COMPLETIONS, TEXT_OF(",\"truncate_prompt_tokens\":5"), TEXT_OF(""), 6, 4, true },
	{ TEXT_COMPLETIONS, TEXT_OF(",\"truncate_prompt_tokens\":5,\"truncation_side\":\"left\""), TEXT_OF(""), 5, 5, false },
	{ TEXT_COMPLETIONS, TEXT_OF(",\"truncate_prompt_tokens\":5,\"truncation_side\":\"right\""), TEXT_OF(""), 0, 5, false },
	{ TEXT_COMPLETIONS, TEXT_OF(",\"truncate_prompt_tokens\":3,\"add_special_tokens\":false"), TEXT_OF(""), 7, 3, false },
	{ TEXT_COMPLETIONS, TEXT_OF(",\"truncate_prompt_tokens\":500"), TEXT_OF(""), 0, 10, false },
	{ TEXT_COMPLETIONS, TEXT_OF(",\"truncate_prompt_tokens\":-1"), TEXT_OF(""), 4, 6, true },
	{ TEXT_COMPLETIONS, TEXT_OF(",\"truncate_prompt_tokens\":-1,\"max_tokens\":0"), TEXT_OF(""), 3, 7, true },
	{ TEXT_COMPLETIONS, "{\"prompt\":[1,2,3,4],\"truncate_prompt_tokens\":3}", "{\"prompt\":[1,2,3,4]}", 1, 3, false },
	{ TEXT_COMPLETIONS, "{\"prompt\":[1,2,3,4],\"truncate_prompt_tokens\":3,\"truncation_side\":\"right\"}", "{\"prompt\":[1,2,3,4]}", 0, 3, false },
	{ TEXT_CHAT, CHAT_OF(",\"truncate_prompt_tokens\":4"), CHAT_OF(""), 6, 4, false },
	{ TEXT_CHAT, CHAT_OF(",\"truncate_prompt_tokens\":4,\"add_special_tokens\":true"), CHAT_OF(""), 7, 3, true },
	{ TEXT_CHAT, CHAT_OF(",\"truncate_prompt_tokens\":-1"), CHAT_OF(""), 2, 8, false },
	{ TEXT_CHAT, CHAT_OF(",\"truncate_prompt_tokens\":-1,\"max_tokens\":3"), CHAT_OF(""), 3, 7, false },
	{ TEXT_CHAT, CHAT_OF(",\"truncate_prompt_tokens\":-1,\"max_tokens\":3,\"max_completion_tokens\":0"), CHAT_OF(""), 2, 8, false },
	{ TEXT_EMBEDDINGS, "{\"input\":\"q w e r z\",\"truncate_prompt_tokens\":5}", TEXT_OF(""), 0, 5, false },
	{ TEXT_EMBEDDINGS, "{\"input\":[1,2,3,4],\"truncate_prompt_tokens\":3,\"truncation_side\":\"left\"}", "{\"prompt\":[1,2,3,4]}", 1, 3, false },
	{ TEXT_EMBEDDINGS, CHAT_OF(",\"truncate_prompt_tokens\":4"), CHAT_OF(""), 0, 4, false },
	{ TEXT_SCORE, "{\"text_1\":\"q w e r z\",\"text_2\":\"q\",\"truncate_prompt_tokens\":5}", TEXT_OF(""), 0, 5, false },
	{ TEXT_SCORE, "{\"query\":\"q w e r z\",\"documents\":[\"q\"],\"truncate_prompt_tokens\":5,\"truncation_side\":\"left\"}", TEXT_OF(""), 5, 5, false },
	{ TEXT_RESPONSES, "{\"input\":\"q w e r z\",\"truncation\":\"auto\"}", CHAT_OF(",\"add_special_tokens\":true"), 4, 7, true },
	{ TEXT_RESPONSES, "{\"input\":\"q w e r z\",\"truncation\":\"auto\",\"max_output_tokens\":9}", CHAT_OF(",\"add_special_tokens\":true"), 5, 6, true },
};

static struct text_ids *all_ids(struct model *m, const struct cut *c)
{
	return ids_as(m, c->whole[2] == 'm' ? TEXT_CHAT : TEXT_COMPLETIONS, c->whole);
}

static void check_cut(struct model *m, const struct cut *c)
{
	struct text_local_job job = chat(str_of(c->body));
	struct text_ids *all = all_ids(m, c), *ids = NULL;
	const char *why = "";
	job.form = c->form;
	job.model_tok = 8;
	if (text_local_ids(m->s, &job, &ids, &why) != ERR_OK)
		fail_msg("%s: %s", c->body, why);
	const struct text_prompt *got = &ids->prompts[0], *whole = &all->prompts[0];
	bool same = got->n == c->n + c->bos && whole->n >= c->from + c->n && memcmp(got->ids + c->bos, whole->ids + c->from, c->n * sizeof(uint32_t)) == 0;
	if (!same || (c->bos && got->ids[0] != whole->ids[0] && c->form == TEXT_COMPLETIONS))
		fail_msg("%s: %zu of %zu ids", c->body, got->n, whole->n);
	text_ids_unref(all);
	text_ids_unref(ids);
}

static void prompts_are_cut_as_by_the_worker(void **state)
{
	struct model m = { 0 };
	(void)state;
	assert_int_equal(load_with(&m, (struct text_local_files){ .known_version = true }, STR("{% for m in messages %}{{ m.content }}{% endfor %};")), ERR_OK);
	for (size_t i = 0; i < ARRAY_LEN(CUTS); i++)
		check_cut(&m, &CUTS[i]);
	done(&m);
}

static const char *reason_for(struct model *m, enum text_form form, const char *body, size_t model_tok)
{
	struct text_local_job job = chat(str_of(body));
	struct text_ids *ids = NULL;
	const char *why = "none";
	job.form = form;
	job.model_tok = model_tok;
	if (text_local_ids(m->s, &job, &ids, &why) == ERR_OK)
		text_ids_unref(ids);
	return why;
}

static void what_is_not_sure_about_a_cut_is_left(void **state)
{
	static const char *const BODIES[] = { TEXT_OF(",\"truncate_prompt_tokens\":0"), TEXT_OF(",\"truncate_prompt_tokens\":-2"), TEXT_OF(",\"truncate_prompt_tokens\":\"5\""),
		TEXT_OF(",\"truncate_prompt_tokens\":true"), TEXT_OF(",\"truncate_prompt_tokens\":1"), TEXT_OF(",\"truncate_prompt_tokens\":5,\"truncation_side\":\"middle\""),
		TEXT_OF(",\"truncate_prompt_tokens\":5,\"truncation_side\":1"), TEXT_OF(",\"truncate_prompt_tokens\":-1,\"max_tokens\":\"3\""), "{\"prompt\":\""
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\",\"truncate_prompt_tokens\":3,\"truncation_side\":\"left\"}" };
	struct model m = { 0 };
	(void)state;
	assert_int_equal(load_with(&m, (struct text_local_files){ .known_version = true }, STR("x")), ERR_OK);
	for (size_t i = 0; i < ARRAY_LEN(BODIES); i++)
		assert_string_equal(reason_for(&m, TEXT_COMPLETIONS, BODIES[i], 8), "truncation");
	assert_string_equal(reason_for(&m, TEXT_COMPLETIONS, BODIES[8], 100), "none");   /* the worker takes so long a text as it is */
	assert_string_equal(reason_for(&m, TEXT_COMPLETIONS, TEXT_OF(",\"truncate_prompt_tokens\":-1"), 0), "truncation");
	assert_string_equal(reason_for(&m, TEXT_RESPONSES, "{\"input\":\"a\",\"truncation\":null}", 8), "truncation");
	assert_string_equal(reason_for(&m, TEXT_COMPLETIONS, TEXT_OF(",\"truncate_prompt_tokens\":null,\"truncation_side\":\"left\""), 0), "none");
	done(&m);
	assert_int_equal(load_with(&m, (struct text_local_files){ .known_version = false }, STR("x")), ERR_OK);
	assert_string_equal(reason_for(&m, TEXT_COMPLETIONS, TEXT_OF(",\"truncate_prompt_tokens\":500"), 0), "truncation");
	done(&m);
}

/* ---- a request's own template */

#define OWN(template, more) "{\"messages\":[{\"role\":\"user\",\"content\":\"q\"}],\"chat_template\":" template more "}"

/* Without a limit of new text, as on the thread pool. */
static void renders_own(struct model *m, const char *body, const char *want)
{
	struct text_local_job job = chat(str_of(body));
	assert_true(same_prompt(m, &job, str_of(want)));
}

static void a_request_brings_its_template(void **state)
{
	static const struct { const char *body, *why; } LEFT[] = {
		{ OWN("\"{% for\"", ""), "request_template" }, { OWN("5", ""), "request_template" }, { OWN("[\"x\"]", ""), "request_template" },
		{ OWN("\"{{ x | sum }}\"", ""), "request_template" }, { OWN("\"{{ raise_exception('no') }}\"", ""), "template_raised" },
		{ OWN("\"{{ image_token }}\"", ""), "special_tokens" }, { OWN("\"x\"", ",\"chat_template_kwargs\":{\"chat_template\":\"y\"}"), "reserved_kwarg" },
	};
	struct model m = { 0 };
	struct text_local_files f = { .known_version = true };
	(void)state;
	f.text[TEXT_FILE_CONFIG] = STR("{\"tokenizer_class\":\"PreTrainedTokenizerFast\",\"bos_token\":\"<s>\",\"image_token\":\"<i>\"}");
	assert_int_equal(load_with(&m, f, STR("model's {{ messages[0].content }}")), ERR_OK);
	renders_own(&m, OWN("\"{{ bos_token }}mine {{ messages[0].content }}{{ n }}\"", ",\"chat_template_kwargs\":{\"n\":7}"), "<s>mine q7");
	renders_own(&m, OWN("\"{% for m in messages %}{% for p in m.content %}{{ p.text }}!{% endfor %}{% endfor %}\"", ""), "q!");
	renders_own(&m, OWN("\"{{ tools | length }}\"", ",\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\"}}]"), "1");
	renders_own(&m, OWN("\"\"", ""), "model's q");
	renders_own(&m, OWN("null", ""), "model's q");
	for (size_t i = 0; i < ARRAY_LEN(LEFT); i++)
		assert_string_equal(reason(&m, LEFT[i].body), LEFT[i].why);
	done(&m);
	f.known_version = false;
	assert_int_equal(load_with(&m, f, STR("x")), ERR_OK);
	assert_string_equal(reason(&m, OWN("\"y\"", "")), "version");
	done(&m);
}

static void a_template_may_be_asked_for_by_name(void **state)
{
	struct model m = { 0 };
	struct text_local_files f = { .known_version = true };
	(void)state;
	f.text[TEXT_FILE_CONFIG] = STR("{\"tokenizer_class\":\"PreTrainedTokenizerFast\",\"chat_template\":[{\"name\":\"default\",\"template\":\"D\"},{\"name\":\"rag\",\"template\":\"R\"}]}");
	assert_int_equal(load_with(&m, f, STR("")), ERR_OK);
	assert_string_equal(reason(&m, OWN("\"rag\"", "")), "request_template");
	renders_own(&m, OWN("\"rag{# #}\"", ""), "rag");
	done(&m);
}

/* It never runs on the loop, and nothing of it is unbounded. */
static void a_hostile_template_ends(void **state)
{
	static const char *const HOSTILE[] = { "{% for i in range(90000) %}{% for k in range(90000) %}{% endfor %}{% endfor %}",
		"{% for i in range(90000) %}{% for k in range(90000) %}0123456789{% endfor %}{% endfor %}",
		"{% set ns = namespace(l=[]) %}{% for i in range(90000) %}{% set ns.l = ns.l + [i] %}{% endfor %}" };
	struct model m = { 0 };
	struct buf b;
	struct text_ids *ids;
	const char *why = NULL;
	(void)state;
	assert_int_equal(load_with(&m, (struct text_local_files){ .known_version = true }, STR("x")), ERR_OK);
	buf_init(&b, 1 << 20);
	for (size_t i = 0; i < ARRAY_LEN(HOSTILE); i++) {
		buf_clear(&b);
		must(buf_printf(&b, OWN("\"%s\"", ""), HOSTILE[i]) == ERR_OK);
		struct text_local_job job = chat(buf_str(&b));
		assert_int_equal(text_local_ids(m.s, &job, &ids, &why), ERR_LIMIT);
		assert_string_equal(why, "template_limit");
		job.max_new_bytes = 1 << 20;
		assert_int_equal(text_local_ids(m.s, &job, &ids, &why), ERR_AGAIN);
	}
	buf_clear(&b);
	must(buf_printf(&b, OWN("\"%*s\"", ""), 1 << 17, "") == ERR_OK);
	struct text_local_job job = chat(buf_str(&b));
	assert_int_equal(text_local_ids(m.s, &job, &ids, &why), ERR_UNSUPPORTED);
	assert_string_equal(why, "request_template");
	buf_done(&b);
	done(&m);
}

/* What is remembered changes no id. */
static void expect_same_ids_with(struct model *m, struct tok_memo *memo, struct str body)
{
	struct text_ids *with = NULL, *without = NULL;
	struct text_local_job job = chat(body);
	const char *why = NULL;
	assert_int_equal(text_local_ids(m->s, &job, &without, &why), ERR_OK);
	job.memo = memo;
	assert_int_equal(text_local_ids(m->s, &job, &with, &why), ERR_OK);
	assert_int_equal(with->prompts[0].n, without->prompts[0].n);
	assert_memory_equal(with->prompts[0].ids, without->prompts[0].ids, without->prompts[0].n * sizeof(uint32_t));
	text_ids_unref(with);
	text_ids_unref(without);
}

/* Turn by turn, the elements of the body remembered from the turns before: the ids of a body that nobody knows. */
static void a_growing_chat_gives_the_ids_of_a_full_run(void **state)
{
	static const char *const TURNS[][2] = {
		{ "{\"role\":\"user\",\"content\":\"", " \\u00e9\\n<s>\"}" },
		{ "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"", "\"},{\"type\":\"text\",\"text\":\"b\"}]}" },
		{ "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"1\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"x\\\": 1", "}\"}}]}" },
		{ "{\"role\":\"tool\",\"tool_call_id\":\"1\",\"content\":\"", "\"}" },
	};
	struct tok_memo *memo = tok_memo_new(&(struct tok_memo_opts){ .max_bytes = 4 << 20, .least_bytes = 64 });
	struct model m = { 0 };
	struct buf b;
	size_t large = 0;
	(void)state;
	assert_int_equal(load_with(&m, (struct text_local_files){ .known_version = true },
				 STR("{% for m in messages %}<s>{{ m.role }}: {{ m.content }}{{ m.tool_calls | tojson if m.tool_calls }}\n{% endfor %}{{ tools | tojson if tools }}")), ERR_OK);
	buf_init(&b, 1 << 20);
	for (size_t n = 1; n < 25; n++) {
		buf_clear(&b);
		must(buf_printf(&b, "{\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"description\":\"%0600d\"}}],\"messages\":[", 1) == ERR_OK);
		for (size_t i = 0; i < n; i++) {
			must(buf_add(&b, i ? STR(",") : STR("")) == ERR_OK);
			must(buf_printf(&b, "%s%0*zu%s", TURNS[i % 4][0], i % 5 ? 600 : 1, i, TURNS[i % 4][1]) == ERR_OK);
		}
		must(buf_add(&b, STR("]}")) == ERR_OK);
		expect_same_ids_with(&m, memo, buf_str(&b));
		large += n == 24 ? memo_stats(tok_memo_table(memo)).items : 0;
	}
	assert_true(large > 20); /* 19 messages and the tool; the others are stretches */
	tok_memo_unref(memo);
	buf_done(&b);
	done(&m);
}

/* The same chat, the same beginning, one memory of stretches: what comes out is each template's own. */
static void templates_share_no_ids(void **state)
{
	static const char *const TEMPLATES[] = { "a<s>{{ messages[0].content }}<s>b", "a<s>{{ messages[0].content }} <s>b", "{{ messages[0].content }}", "" };
	struct tok_memo *memo = tok_memo_new(&(struct tok_memo_opts){ .max_bytes = 4 << 20, .least_bytes = 16 });
	struct model m = { 0 };
	struct buf b;
	(void)state;
	assert_int_equal(load_with(&m, (struct text_local_files){ .known_version = true }, STR("a<s>{{ messages[0].content }}<s>c")), ERR_OK);
	buf_init(&b, 1 << 20);
	for (size_t i = 0; i < 3 * ARRAY_LEN(TEMPLATES); i++) {
		buf_clear(&b);
		must(buf_printf(&b, "{\"messages\":[{\"role\":\"user\",\"content\":\"%0200d\"}],\"chat_template\":\"%s\"}", 1, TEMPLATES[i % ARRAY_LEN(TEMPLATES)]) == ERR_OK);
		expect_same_ids_with(&m, memo, buf_str(&b));
	}
	assert_true(tok_memo_stats(memo).known_bytes > 0);
	tok_memo_unref(memo);
	buf_done(&b);
	done(&m);
}

/* ---- templates and special tokens */

static void templates_by_name(void **state)
{
	struct model m = { 0 };
	struct text_local_files f = { .known_version = true };
	(void)state;
	f.text[TEXT_FILE_CONFIG] = STR("{\"tokenizer_class\":\"PreTrainedTokenizerFast\",\"bos_token\":\"<s>\",\"chat_template\":["
	                               "{\"name\":\"default\",\"template\":\"D{{ bos_token }}\"},{\"name\":\"tool_use\",\"template\":\"T\"}]}");
	assert_int_equal(load_with(&m, f, STR("")), ERR_OK);
	struct text_local_job plain = chat(STR("{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}"));
	struct text_local_job tools = chat(STR("{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\"}}]}"));
	assert_true(same_prompt(&m, &plain, STR("D<s>")) && same_prompt(&m, &tools, STR("T")));
	done(&m);
	f.text[TEXT_FILE_PROCESSOR_TEMPLATE] = STR("{\"chat_template\":\"another\"}");
	assert_int_equal(load_with(&m, f, STR("")), ERR_OK);
	assert_false(text_local_has_chat(m.l));
	assert_non_null(strstr(m.why, "processor"));
	done(&m);
}

static void a_token_of_the_class_is_not_guessed(void **state)
{
	struct model m = { 0 };
	struct text_local_files f = { .known_version = true };
	static const char *const body = "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}";
	(void)state;
	f.text[TEXT_FILE_CONFIG] = STR("{\"tokenizer_class\":\"PreTrainedTokenizerFast\"}");
	assert_int_equal(load_with(&m, f, STR("{{ pad_token }}x")), ERR_OK);
	assert_string_equal(reason(&m, body), "none");
	done(&m);
	f.text[TEXT_FILE_CONFIG] = STR("{\"tokenizer_class\":\"PreTrainedTokenizerFast\",\"image_token\":\"<i>\"}");
	assert_int_equal(load_with(&m, f, STR("{{ image_token }}x")), ERR_OK);
	assert_string_equal(reason(&m, body), "special_tokens");
	done(&m);
}

static void models_rendered_by_code(void **state)
{
	struct model m = { 0 };
	struct text_local_files f = { .known_version = true };
	(void)state;
	f.text[TEXT_FILE_MODEL] = STR("{\"model_type\":\"gpt_oss\"}");
	assert_int_equal(load_with(&m, f, STR("{{ messages }}")), ERR_OK);
	assert_false(text_local_has_chat(m.l));   /* not with this vocabulary */
	assert_non_null(strstr(m.why, "o200k_harmony"));
	done(&m);
	f.text[TEXT_FILE_MODEL] = STR("{\"architectures\":[\"DeepseekV32ForCausalLM\"]}");
	assert_int_equal(load_with(&m, f, STR("{{ messages }}")), ERR_OK);
	assert_false(text_local_has_chat(m.l));
	done(&m);
}

static void the_day(void **state)
{
	struct model m = { 0 };
	(void)state;
	assert_int_equal(load_with(&m, (struct text_local_files){ .known_version = true }, STR("{{ strftime_now('%d %B %Y, %A') }}")), ERR_OK);
	assert_true(text_local_uses_clock(m.l));
	struct text_local_job job = chat(STR("{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}"));
	assert_true(same_prompt(&m, &job, STR("01 March 2026, Sunday")));
	struct text_ids *ids;
	const char *why = NULL;
	job.now_s = 1772409590;   /* ten seconds before midnight */
	assert_int_equal(text_local_ids(m.s, &job, &ids, &why), ERR_UNSUPPORTED);
	assert_string_equal(why, "midnight");
	done(&m);
}

static void civil_days(void **state)
{
	(void)state;
	static const struct { int64_t s; int year, month, day, weekday, yearday; } rows[] = {
		{ 0, 1970, 1, 1, 4, 1 }, { 951782400, 2000, 2, 29, 2, 60 }, { 1709251200, 2024, 3, 1, 5, 61 }, { 1735603200, 2024, 12, 31, 2, 366 },
		{ 1772366096, 2026, 3, 1, 0, 60 }, { 4102444800, 2100, 1, 1, 5, 1 }, { -86400, 1969, 12, 31, 3, 365 },
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct jinja_time t = text_day_of(rows[i].s);
		assert_true(t.year == rows[i].year && t.month == rows[i].month && t.day == rows[i].day && t.weekday == rows[i].weekday && t.yearday == rows[i].yearday);
	}
}

/* ---- images: what comes before them */

#define IMAGE "{\"type\":\"image_url\",\"image_url\":{\"url\":\"data:,\"}}"
#define SYSTEM "{\"role\":\"system\",\"content\":\"be brief\"},"
#define USER(parts) "{\"role\":\"user\",\"content\":[" parts "]}"
#define TEXT_PART(text) "{\"type\":\"text\",\"text\":\"" text "\"}"

/* The text of the ids, or why there are none. */
static void before_media(struct model *m, const char *messages, const char *want, size_t n_media)
{
	struct buf body, text;
	struct text_ids *ids;
	const char *why = NULL;
	buf_init(&body, 1 << 16);
	buf_init(&text, 1 << 16);
	assert_int_equal(buf_printf(&body, "{\"messages\":[%s]}", messages), ERR_OK);
	struct text_local_job job = chat(buf_str(&body));
	assert_int_equal(text_local_ids(m->s, &job, &ids, &why), ERR_UNSUPPORTED);   /* it is no whole prompt */
	job.prefix_will_do = true;
	enum err e = text_local_ids(m->s, &job, &ids, &why);
	if (e != ERR_OK) {
		assert_string_equal(why, want);
	} else {
		const struct text_prompt *p = &ids->prompts[0];
		assert_true(text_ids_is_prefix(ids));
		assert_int_equal(tok_decode(text_local_tok(m->l), &(struct tok_decode_job){ .ids = p->ids, .n = p->n }, &text), ERR_OK);
		assert_int_equal(buf_add_byte(&text, 0), ERR_OK);
		assert_string_equal(text.p, want);
		assert_in_range(p->rest_tok, n_media * TEXT_MEDIA_TOK, n_media * TEXT_MEDIA_TOK + 64);
		text_ids_unref(ids);
	}
	buf_done(&body);
	buf_done(&text);
}

static void images_in_text(void **state)
{
	struct model m = { 0 };
	(void)state;
	assert_int_equal(load_with(&m, (struct text_local_files){ 0 },
		STR("{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}")), ERR_OK);
	/* they stand before their message's text */
	before_media(&m, SYSTEM USER(TEXT_PART("what?") "," IMAGE), "<|im_start|>system\nbe brief<|im_end|>\n<|im_start|>", 1);
	before_media(&m, SYSTEM USER(IMAGE "," TEXT_PART("what?")) "," USER(IMAGE), "<|im_start|>system\nbe brief<|im_end|>\n<|im_start|>", 2);
	before_media(&m, USER(IMAGE), "<|im_start|>", 1);
	before_media(&m, "{\"role\":\"system\",\"content\":[" IMAGE "]}," USER(TEXT_PART("a")), "media_in_system", 0);
	before_media(&m, USER("{\"type\":\"image_url\",\"image_url\":{\"url\":\"x\"},\"size\":3}"), "part_kind", 0);
	done(&m);
}

static void images_in_lists(void **state)
{
	struct model m = { 0 };
	(void)state;
	assert_int_equal(load_with(&m, (struct text_local_files){ 0 },
		STR("{% for m in messages %}<|im_start|>{{ m.role }}\n{% for c in m.content %}{% if c.type == 'image' %}<s>IMG</s>{% else %}{{ c.text }}{% endif %}{% endfor %}<|im_end|>\n{% endfor %}")),
		ERR_OK);
	before_media(&m, SYSTEM USER(TEXT_PART("line\\nwhat is this?") "," IMAGE), "<|im_start|>system\nbe brief<|im_end|>\n<|im_start|>", 1);
	before_media(&m, SYSTEM USER(TEXT_PART("</think>x") "," IMAGE "," IMAGE), "<|im_start|>system\nbe brief<|im_end|>\n<|im_start|>user\n</think>", 2);
	before_media(&m, USER(IMAGE), "<|im_start|>", 1);
	/* half of a special token may go on in what follows: no cut behind its beginning */
	before_media(&m, USER(TEXT_PART("\\n<|im_sta") "," IMAGE), "<|im_start|>", 1);
	done(&m);
	assert_int_equal(load_with(&m, (struct text_local_files){ 0 }, STR("{% for m in messages %}{% for c in m.content %}{{ c.type }}{% endfor %}{% endfor %}")), ERR_OK);
	before_media(&m, USER(IMAGE), "media_too_early", 0);
	done(&m);
	/* a system text that goes when there are images: what the worker renders counts */
	assert_int_equal(load_with(&m, (struct text_local_files){ 0 },
		STR("{% for m in messages %}{% for c in m.content %}{% endfor %}{% endfor %}<s>go {% if messages[1].content[0].type == 'image' %}look</s>{% else %}{{ messages[0].content[0].text }}</s>{% endif %}x")), ERR_OK);
	before_media(&m, SYSTEM USER(IMAGE), "<s>", 1);
	done(&m);
}

static void images_first(void **state)
{
	struct model m = { 0 };
	struct text_local_files f = { .known_version = true };
	(void)state;
	f.text[TEXT_FILE_MODEL] = STR("{\"model_type\":\"paligemma\"}");
	assert_int_equal(load_with(&m, f, STR("<s>{{ messages[0].content }}")), ERR_OK);
	before_media(&m, USER(IMAGE), "media_first", 0);
	done(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(golden), cmocka_unit_test(golden_of_other_apis), cmocka_unit_test(golden_of_bodies_with_their_own_ways), cmocka_unit_test(golden_of_harmony), cmocka_unit_test(harmony), cmocka_unit_test(harmony_remembers), cmocka_unit_test(inline_system),
		cmocka_unit_test(case_vllm_38738_results_of_tools_come_before_the_text), cmocka_unit_test(case_litellm_22997_thinking_is_no_visible_text),
		cmocka_unit_test(case_litellm_30043_what_is_unknown_changes_no_prompt), cmocka_unit_test(case_mcp_go_913_integers_keep_their_digits), cmocka_unit_test(thinking_disabled), cmocka_unit_test(other_apis_only_for_a_known_version), cmocka_unit_test(more_new_text_than_allowed), cmocka_unit_test(what_differs_between_versions_is_left), cmocka_unit_test(prompts_are_cut_as_by_the_worker), cmocka_unit_test(what_is_not_sure_about_a_cut_is_left),
		cmocka_unit_test(embeddings), cmocka_unit_test(scores), cmocka_unit_test(a_request_brings_its_template), cmocka_unit_test(a_template_may_be_asked_for_by_name), cmocka_unit_test(a_hostile_template_ends), cmocka_unit_test(a_growing_chat_gives_the_ids_of_a_full_run), cmocka_unit_test(templates_share_no_ids), cmocka_unit_test(templates_by_name),
		cmocka_unit_test(a_token_of_the_class_is_not_guessed), cmocka_unit_test(models_rendered_by_code), cmocka_unit_test(the_day), cmocka_unit_test(images_in_text), cmocka_unit_test(images_in_lists), cmocka_unit_test(images_first), cmocka_unit_test(civil_days) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
