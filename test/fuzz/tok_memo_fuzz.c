/* The memo against a full run: the first byte chooses a tokenizer of test/tokenizers/golden, the second how short a stretch may be
 * and what is said again. The rest is text, in which some bytes stand for the tokenizer's own added tokens and for what makes cuts;
 * 0xff ends a turn. At every turn the ids must be those of a run without the memo. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/must.h"
#include "base/utf8.h"
#include "tok/memo.h"
#include "tok/tok_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const NAMES[] = { "cl100k", "cl100k_ignore", "cl100k_old", "deepseek", "digits1", "digits_gpt2", "gemma", "gemma_ignore",
	"gpt2", "gpt2_nfd", "gpt2_nfkc", "gpt2_nfkd", "kimi_hf", "llama2", "llama2_zoo", "metaspace_always", "metaspace_first", "metaspace_never",
	"metaspace_split", "missing_bytes", "o200k", "qwen2", "qwen2_zoo", "qwen35", "spaces_drop", "spaces_unk", "tekken", "tekken_hf", "tiktoken" };
enum { N = ARRAY_LEN(NAMES), MAX_TEXT = 4096, TURN = 0xff };

static struct model {
	struct tok *t;
	struct tok_scratch *s;
} models[2 * N];

/* The second half has added tokens of every flag as well. */
#define TOKEN(id, content, flags) "\"" #id "\":{\"content\":\"" content "\"," flags "}"
static const char ODD_CONFIG[] = "{\"added_tokens_decoder\":{" TOKEN(90000, "<t>", "\"rstrip\":true,\"normalized\":false") ","
	TOKEN(90001, "<u>", "\"normalized\":false") "," TOKEN(90002, "<u> <v>", "\"normalized\":false") "," TOKEN(90003, "x<w>", "\"normalized\":false") ","
	TOKEN(90004, "<w>", "\"normalized\":false") "," TOKEN(90005, "[<w>]", "\"normalized\":false") "," TOKEN(90006, "<l>", "\"lstrip\":true,\"normalized\":false") ","
	TOKEN(90007, "<n>", "\"normalized\":true") "," TOKEN(90008, "<o> ", "\"normalized\":true,\"rstrip\":true") "}}";

static struct str read_file(const char *name, const char *file)
{
	char path[256];
	struct buf b;
	char *room;
	buf_init(&b, 1 << 24);
	snprintf(path, sizeof(path), "test/tokenizers/golden/%s/%s", name, file);
	FILE *f = fopen(path, "rb");
	for (size_t n = 1; f && n;) {
		must(buf_reserve(&b, 1 << 16, &room) == ERR_OK);
		n = fread(room, 1, 1 << 16, f);
		buf_commit(&b, n);
	}
	if (f)
		fclose(f);
	return buf_str(&b);
}

static struct model *model_of(size_t i)
{
	struct model *m = &models[i];
	char why[256];
	if (m->t)
		return m;
	bool odd = i >= N;
	i %= N;
	struct tok_files f = { .tokenizer_json = read_file(NAMES[i], "tokenizer.json"),
		.tekken = read_file(NAMES[i], "tekken.json"),
		.tiktoken = read_file(NAMES[i], "tiktoken.model"),
		.config = read_file(NAMES[i], "tokenizer_config.json") };
	if (odd && f.tokenizer_json.n) {
		if (f.config.n)
			free((void *)(uintptr_t)f.config.p);
		f.config = str_clone(str_of(ODD_CONFIG));
	}
	must(tok_load(&f, why, sizeof(why), &m->t) == ERR_OK);
	m->s = tok_scratch_new(m->t, 1 << 14);
	const struct str texts[] = { f.tokenizer_json, f.tekken, f.tiktoken, f.config };
	for (size_t k = 0; k < ARRAY_LEN(texts); k++)
		if (texts[k].n)
			free((void *)(uintptr_t)texts[k].p);
	return m;
}

static void add(struct buf *b, struct str s)
{
	if (b->n + s.n <= MAX_TEXT)
		must(buf_add(b, s) == ERR_OK);
}

/* One thing the input says: a token, a seam, or a character. Returns the bytes used. */
static size_t say(const struct tok *t, struct str in, struct buf *b)
{
	static const struct str SEAMS[] = { STR_INIT("\n"), STR_INIT("\na"), STR_INIT("b c"), STR_INIT(" \n1"), STR_INIT("\r\nA"), STR_INIT("  "),
		STR_INIT("\xe2\x96\x81"), STR_INIT("e\xcc\x81") };
	uint8_t c = (uint8_t)in.p[0];
	uint32_t cp;
	if (c >= 0x80 && c < 0xa0 && t->n_tokens) { /* never begins a character */
		add(b, t->tokens[(c - 0x80u) % t->n_tokens].content);
		return 1;
	}
	if (c >= 0xa0 && c < 0xa0 + ARRAY_LEN(SEAMS)) {
		add(b, SEAMS[c - 0xa0]);
		return 1;
	}
	size_t n = utf8_next(in, &cp);
	add(b, str_sub(in, 0, n));
	return n ? n : 1;
}

static void check(struct model *m, struct tok_memo *memo, struct str text)
{
	struct tok_ids whole = { 0 }, parts = { 0 };
	enum err e = tok_encode(m->t, m->s, &(struct tok_job){ .text = text }, &whole);
	must(tok_encode(m->t, m->s, &(struct tok_job){ .text = text, .memo = memo }, &parts) == e);
	must(parts.n == whole.n && (whole.n == 0 || memcmp(parts.p, whole.p, whole.n * sizeof(*whole.p)) == 0));
	tok_ids_done(&whole);
	tok_ids_done(&parts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf b;
	if (size < 2)
		return 0;
	struct model *m = model_of(data[0] % (2 * N));
	struct tok_memo *memo = tok_memo_new(&(struct tok_memo_opts){ .max_bytes = 1 << 20, .least_bytes = 1 + data[1] % 16, .seed = 1 });
	struct str in = { (const char *)data + 2, size - 2 };
	buf_init(&b, MAX_TEXT);
	while (in.n) {
		if ((uint8_t)in.p[0] == TURN) {
			check(m, memo, buf_str(&b));
			in = str_skip(in, 1);
		} else {
			in = str_skip(in, say(m->t, in, &b));
		}
	}
	check(m, memo, buf_str(&b));
	if (data[1] & 0x80) /* what a text of its own would be is known by now */
		check(m, memo, str_skip(buf_str(&b), b.n && (b.p[0] & 0x80) == 0 ? 1 : 0));
	tok_memo_unref(memo);
	buf_done(&b);
	return 0;
}
