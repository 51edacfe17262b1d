/* The loader over hostile files. The first byte says which file the rest is; what loads must encode a text, with the same
 * ids from the cache, and decode them. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/must.h"
#include "tok/tok.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char BASE[] = "{\"version\":\"1.0\",\"added_tokens\":[{\"content\":\"<x>\",\"special\":true}],\"pre_tokenizer\":{\"type\":"
			   "\"ByteLevel\",\"add_prefix_space\":false},"
			   "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2,\"\\u0120\":3},\"merges\":[\"a b\"]}}";

static void use(const struct tok *t)
{
	static const struct str TEXT = STR_INIT("ab a<x> b\xc3\xa9 12 \xe2\x96\x81 e\xcc\x81\xcc\xa7 <s></s>\n\n\xe4\xb8\xad");
	struct tok_scratch *s = tok_scratch_new(t, 4096);
	struct tok_ids once = { 0 }, twice = { 0 };
	struct tok_cuts cuts = { 0 };
	struct buf b;
	struct tok_job job = { .text = TEXT, .add_bos = true, .add_eos = true, .cuts = &cuts };
	buf_init(&b, 1 << 20);
	enum err e = tok_encode(t, s, &job, &once);
	must(tok_encode(t, s, &job, &twice) == e && once.n == twice.n &&
		(once.n == 0 || !memcmp(once.p, twice.p, once.n * sizeof(*once.p))));
	for (size_t i = 0; i < once.n; i++)
		must(once.p[i] < TOK_MAX_VOCAB);
	(void)!tok_decode(t, &(struct tok_decode_job){ once.p, once.n, false }, &b);
	(void)tok_plain_cut(t, TEXT, 0, TEXT.n);
	buf_done(&b);
	tok_ids_done(&once);
	tok_ids_done(&twice);
	tok_cuts_done(&cuts);
	tok_scratch_free(s);
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
		use(t);
		tok_free(t);
	}
	return 0;
}
