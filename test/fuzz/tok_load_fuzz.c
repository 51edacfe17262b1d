/* The loader over hostile files. The first byte says which file the rest is, and of which class; what loads must encode a text, with the
 * same ids from the cache, and decode them; what loads with an unknown loader must load with either and give the same ids. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/must.h"
#include "base/utf8.h"
#include "tok/tok_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char BASE[] = "{\"version\":\"1.0\",\"added_tokens\":[{\"id\":4,\"content\":\"<x>\",\"special\":true}],\"pre_tokenizer\":{\"type\":"
			   "\"ByteLevel\",\"add_prefix_space\":false},"
			   "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2,\"\\u0120\":3},\"merges\":[\"a b\"]}}";

enum { TAIL = 96 };

/* A text of many kinds, and what there is of UTF-8 at the end of the input. */
static struct str make_text(const uint8_t *data, size_t size, char *out)
{
	static const struct str TEXT = STR_INIT("ab a<x> b\xc3\xa9 12 \xe2\x96\x81 e\xcc\x81\xcc\xa7 <s></s>\n\n\xe4\xb8\xad ");
	size_t n = TEXT.n;
	uint32_t cp;
	memcpy(out, TEXT.p, n);
	for (size_t i = size > TAIL ? size - TAIL : 0; i < size;) {
		size_t len = utf8_next((struct str){ (const char *)data + i, size - i }, &cp);
		memcpy(out + n, data + i, len);
		n += len;
		i += len ? len : 1;
	}
	return (struct str){ out, n };
}

/* Encodes twice, the second time from the cache, and gives the ids. */
static enum err encode(const struct tok *t, struct str text, struct tok_ids *ids)
{
	struct tok_scratch *s = tok_scratch_new(t, 4096);
	struct tok_ids again = { 0 };
	struct tok_job job = { .text = text, .add_bos = true, .add_eos = true };
	enum err e = tok_encode(t, s, &job, ids);
	must(tok_encode(t, s, &job, &again) == e && again.n == ids->n &&
		(ids->n == 0 || !memcmp(ids->p, again.p, ids->n * sizeof(*ids->p))));
	tok_ids_done(&again);
	tok_scratch_free(s);
	return e;
}

static void use(const struct tok *t, struct str text)
{
	struct tok_ids ids = { 0 }, uncut = { 0 };
	struct tok whole = *t;
	struct buf b;
	whole.cut_words = false; /* a spaced text as one word must give the same */
	buf_init(&b, 1 << 20);
	enum err e = encode(t, text, &ids);
	must(encode(&whole, text, &uncut) == e && uncut.n == ids.n && (ids.n == 0 || !memcmp(ids.p, uncut.p, ids.n * sizeof(*ids.p))));
	for (size_t i = 0; i < ids.n; i++)
		must(ids.p[i] < TOK_MAX_VOCAB);
	(void)!tok_decode(t, &(struct tok_decode_job){ ids.p, ids.n, false }, &b);
	buf_done(&b);
	tok_ids_done(&ids);
	tok_ids_done(&uncut);
}

static struct tok_ids plain_ids(const struct tok *t, struct str text)
{
	struct tok_scratch *s = tok_scratch_new(t, 0);
	struct tok_ids ids = { 0 };
	(void)!tok_encode(t, s, &(struct tok_job){ .text = text }, &ids);
	tok_scratch_free(s);
	return ids;
}

static void compare_loaders(struct tok_files f, const struct tok *unknown, struct str text)
{
	static const enum tok_loader LOADERS[] = { TOK_LOADER_FILES, TOK_LOADER_5 };
	struct tok_ids want = plain_ids(unknown, text);
	char why[128];
	struct tok *t;
	for (size_t i = 0; i < ARRAY_LEN(LOADERS); i++) {
		f.loader = LOADERS[i];
		must(tok_load(&f, why, sizeof(why), &t) == ERR_OK);
		struct tok_ids got = plain_ids(t, text);
		must(got.n == want.n && (want.n == 0 || !memcmp(got.p, want.p, want.n * sizeof(*want.p))));
		tok_ids_done(&got);
		tok_free(t);
	}
	tok_ids_done(&want);
}

static struct tok_files files_of(uint8_t kind, struct str text)
{
	static const struct str CLASSES[] = { STR_INIT(""), STR_INIT("{\"tokenizer_class\":\"GPT2Tokenizer\"}"),
		STR_INIT("{\"tokenizer_class\":\"LlamaTokenizer\",\"legacy\":true}"), STR_INIT("{\"tokenizer_class\":\"GemmaTokenizer\"}") };
	struct tok_files f = { .loader = (enum tok_loader)((kind >> 3 & 3) % 3), .unicode = kind >> 7 ? TOK_UNICODE_ANY : TOK_UNICODE_16 };
	switch (kind & 7) {
	case 1: f.tokenizer_json = (struct str){ BASE, sizeof(BASE) - 1 }, f.config = text; break;
	case 2: f.tekken = text; break;
	case 3: f.tiktoken = text, f.config = STR("{\"tokenizer_class\":\"TikTokenTokenizer\"}"); break;
	case 4: f.tokenizer_json = (struct str){ BASE, sizeof(BASE) - 1 }, f.added = text; break;
	default: f.tokenizer_json = text, f.config = CLASSES[kind >> 5 & 3]; break;
	}
	return f;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char why[128], room[256];
	struct tok *t;
	if (size == 0)
		return 0;
	struct tok_files f = files_of(data[0], (struct str){ (const char *)data + 1, size - 1 });
	if (tok_load(&f, why, sizeof(why), &t) == ERR_OK) {
		struct str text = make_text(data, size, room);
		use(t, text);
		if (f.loader == TOK_LOADER_ANY)
			compare_loaders(f, t, text);
		tok_free(t);
	}
	return 0;
}
