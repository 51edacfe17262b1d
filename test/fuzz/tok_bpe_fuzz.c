/* Merging against its definition: the input says merges over a few letters (two bytes each), then after a zero byte words
 * of those letters, ended by any other byte. Every word is done by the fast code, whatever its length. */
#include <stdint.h>

#include "../unit/tok/slow.h"
#include "tok/tok_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LETTERS = 6, MAX_MERGES = 64, MAX_WORD = 512 };

static size_t read_merges(struct tok *t, const uint8_t *data, size_t size)
{
	size_t n = 0;
	while (n < MAX_MERGES && 2 * n + 1 < size && data[2 * n])
		n++;
	tok_merges_init(&t->merges, n, n);
	for (size_t i = 0; i < n; i++) {
		uint32_t have = (uint32_t)(LETTERS + i);
		tok_merges_put(&t->merges, data[2 * i] % have, data[2 * i + 1] % have, (uint32_t)i);
		t->merges.result[i] = have;
	}
	tok_merges_first(&t->merges, t->byte_id);
	return 2 * n;
}

static void check(const struct tok *t, struct tok_scratch *s, struct str word)
{
	struct tok_ids ids = { 0 };
	uint32_t want[MAX_WORD];
	size_t n = word.n;
	for (size_t i = 0; i < n; i++)
		want[i] = t->byte_id[(uint8_t)word.p[i]];
	n = slow_merge(&t->merges, want, n);
	tok_word(t, s, word, &ids);
	must(ids.n == n && memcmp(ids.p, want, n * sizeof(*want)) == 0);
	tok_ids_done(&ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tok t = { .kind = TOK_BYTES, .unk_id = TOK_NONE };
	char word[MAX_WORD];
	size_t n = 0;
	for (size_t i = 0; i < 256; i++)
		t.byte_id[i] = i >= 'a' && i < 'a' + LETTERS ? (uint32_t)(i - 'a') : TOK_NONE;
	struct tok_scratch *s = tok_scratch_new(&t, 0);
	for (size_t i = read_merges(&t, data, size); i <= size; i++) {
		bool letter = i < size && data[i] >= 'a' && data[i] < 'a' + LETTERS;
		if (letter)
			word[n++] = (char)data[i];
		if (n && (!letter || n == MAX_WORD)) {
			check(&t, s, (struct str){ word, n });
			n = 0;
		}
	}
	tok_scratch_free(s);
	tok_merges_done(&t.merges);
	return 0;
}
