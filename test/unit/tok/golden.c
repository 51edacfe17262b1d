#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "golden.h"
#include "wire/json.h"

const char *const GOLDEN[] = {
	"cl100k",
	"cl100k_ignore",
	"cl100k_old",
	"deepseek",
	"digits1",
	"digits_gpt2",
	"gemma",
	"gemma_ignore",
	"gpt2",
	"gpt2_nfd",
	"gpt2_nfkc",
	"gpt2_nfkd",
	"kimi_hf",
	"llama2",
	"llama2_zoo",
	"metaspace_always",
	"metaspace_first",
	"metaspace_never",
	"metaspace_split",
	"missing_bytes",
	"o200k",
	"qwen2",
	"qwen2_zoo",
	"qwen35",
	"spaces_drop",
	"spaces_unk",
	"tekken",
	"tekken_hf",
	"tiktoken",
	NULL,
};

static struct str read_file(const char *name, const char *file)
{
	char path[256], part[4096];
	struct buf b;
	buf_init(&b, 1 << 24);
	snprintf(path, sizeof(path), "test/tokenizers/golden/%s/%s", name, file);
	FILE *f = fopen(path, "rb");
	for (size_t n; f && (n = fread(part, 1, sizeof(part), f)) > 0;)
		assert_int_equal(buf_add(&b, (struct str){ part, n }), ERR_OK);
	if (f)
		fclose(f);
	struct str s = b.n ? str_clone(buf_str(&b)) : (struct str){ NULL, 0 };
	buf_done(&b);
	return s;
}

static void free_str(struct str s) { free((void *)(uintptr_t)s.p); }

static void read_case(struct golden *g, struct str line)
{
	struct json_doc *doc;
	struct str text;
	uint64_t id;
	struct tok_ids ids = { 0 };
	assert_int_equal(json_parse(line, 1 << 20, &doc), ERR_OK);
	assert_true(json_str(json_get(json_root(doc), STR("text")), &text));
	for (struct json_iter it = json_each(json_get(json_root(doc), STR("ids"))); json_next(&it);) {
		assert_true(json_u64(it.val, &id));
		VEC_PUSH(&ids, (uint32_t)id);
	}
	g->texts = must_realloc(g->texts, (g->n + 1) * sizeof(*g->texts));
	g->ids = must_realloc(g->ids, (g->n + 1) * sizeof(*g->ids));
	g->texts[g->n] = str_clone(text);
	g->ids[g->n++] = ids;
	json_free(doc);
}

/* One that swallows what follows, one that is the beginning of another, one that stands in the middle of one, a late one, ... */
#define ODD_TOKEN(id, content, flags) "\"" #id "\":{\"content\":\"" content "\"," flags "}"
static const struct str ODD_CONFIG = STR_INIT("{\"added_tokens_decoder\":{" ODD_TOKEN(90000, "<t>", "\"rstrip\":true,\"normalized\":false") ","
	ODD_TOKEN(90001, "<u>", "\"normalized\":false") "," ODD_TOKEN(90002, "<u> <v>", "\"normalized\":false") ","
	ODD_TOKEN(90003, "x<w>", "\"normalized\":false") "," ODD_TOKEN(90004, "<w>", "\"normalized\":false") ","
	ODD_TOKEN(90005, "[<w>]", "\"normalized\":false") "," ODD_TOKEN(90006, "<l>", "\"lstrip\":true,\"normalized\":false") ","
	ODD_TOKEN(90007, "<n>", "\"normalized\":true") "," ODD_TOKEN(90008, "<o> ", "\"normalized\":true,\"rstrip\":true") "}}");

static void open_with(struct golden *g, const char *name, struct str config)
{
	char why[512] = "";
	struct tok_files f = { .tokenizer_json = read_file(name, "tokenizer.json"),
		.tekken = read_file(name, "tekken.json"),
		.tiktoken = read_file(name, "tiktoken.model"),
		.config = config.n ? str_clone(config) : read_file(name, "tokenizer_config.json") };
	struct str cases = read_file(name, "cases.jsonl"), left = cases, line;
	*g = (struct golden){ 0 };
	if (tok_load(&f, why, sizeof(why), &g->t) != ERR_OK)
		fail_msg("%s: %s", name, why);
	g->s = tok_scratch_new(g->t, 1 << 16);
	while (left.n) {
		(void)str_cut(left, '\n', &line, &left);
		read_case(g, line);
	}
	assert_true(g->n > 300);
	free_str(cases);
	free_str(f.tokenizer_json);
	free_str(f.tekken);
	free_str(f.tiktoken);
	free_str(f.config);
}

void golden_open(struct golden *g, const char *name) { open_with(g, name, (struct str){ 0 }); }

bool golden_open_odd(struct golden *g, const char *name)
{
	if (strcmp(name, "tekken") == 0 || strcmp(name, "tiktoken") == 0)
		return false;
	open_with(g, name, ODD_CONFIG);
	return true;
}

void golden_close(struct golden *g)
{
	for (size_t i = 0; i < g->n; i++) {
		free_str(g->texts[i]);
		tok_ids_done(&g->ids[i]);
	}
	free(g->texts);
	free(g->ids);
	tok_scratch_free(g->s);
	tok_free(g->t);
}
