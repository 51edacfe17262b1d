/* The loader over hostile files. The first byte says which file the rest is; what loads must encode a text, with the same
 * ids from the cache, and decode them. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/must.h"
#include "base/utf8.h"
#include "tok/tok_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char BASE[] = "{\"version\":\"1.0\",\"added_tokens\":[{\"content\":\"<x>\",\"special\":true}],\"pre_tokenizer\":{\"type\":"
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char why[128];
	struct tok *t;
	struct tok_files f = { 0 };
	if (size == 0)
		return 0;
	struct str text = { (const char *)data + 1, size - 1 };
	switch (data[0] % 4) {
	case 0: f.tokenizer_json = text; break;
	case 1: f.tokenizer_json = (struct str){ BASE, sizeof(BASE) - 1 }, f.config = text; break;
	case 2: f.tekken = text; break;
	default: f.tiktoken = text, f.config = STR("{\"tokenizer_class\":\"TikTokenTokenizer\"}"); break;
	}
	enum err e = tok_load(&f, why, sizeof(why), &t);
	if (e == ERR_OK) {
		char room[256];
		use(t, make_text(data, size, room));
		tok_free(t);
	}
	return 0;
}
