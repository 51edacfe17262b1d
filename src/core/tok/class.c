/* class.c: the class of every code point, unpacked at load from runs that the reference library was asked for. */
#include <stdlib.h>
#include <string.h>

#include "tok/tok_priv.h"

static const uint32_t RUNS_16[] = {
#include "tok/classes16.def"
};
static const uint32_t RUNS_14[] = {
#include "tok/classes14.def"
};
static const uint32_t WORDS[] = {
#include "tok/words.def"
};

/* near: the block before this one was there, and most are like their neighbour. */
static size_t find_block(const struct tok_table *t, const uint8_t block[256], size_t near)
{
	if (near < t->n_blocks && memcmp(t->blocks + near * 256, block, 256) == 0)
		return near;
	for (size_t i = t->n_blocks; i-- > 0;)
		if (memcmp(t->blocks + i * 256, block, 256) == 0)
			return i;
	return t->n_blocks;
}

void tok_table_init(struct tok_table *t, tok_fill_fn fill, void *ctx)
{
	size_t cap = 0, at = 0;
	uint8_t block[256];
	*t = (struct tok_table){ 0 };
	for (uint32_t b = 0; b < TOK_BLOCKS; b++) {
		fill(ctx, b, block);
		at = find_block(t, block, at);
		if (at == t->n_blocks) {
			must(t->n_blocks < 256);
			if (t->n_blocks == cap)
				t->blocks = must_realloc(t->blocks, (cap += 64) * 256);
			memcpy(t->blocks + t->n_blocks++ * 256, block, 256);
		}
		t->index[b] = (uint8_t)at;
	}
}

void tok_table_done(struct tok_table *t)
{
	free(t->blocks);
	*t = (struct tok_table){ 0 };
}

struct runs {
	const uint32_t *at, *end;
};

/* Blocks come in order, so the place in the runs only moves forward. */
static void fill_from_runs(void *ctx, uint32_t block, uint8_t out[256])
{
	struct runs *r = ctx;
	if (r->at[0] >> 8 <= block << 8 && (r->at + 1 == r->end || r->at[1] >> 8 >= (block + 1) << 8)) {
		memset(out, (int)(*r->at & 255), 256); /* most blocks lie within one run */
		return;
	}
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t cp = block << 8 | i;
		while (r->at + 1 < r->end && r->at[1] >> 8 <= cp)
			r->at++;
		out[i] = (uint8_t)(*r->at & 255);
	}
}

void tok_classes_init(struct tok_table *t, enum tok_unicode version)
{
	struct runs r = { RUNS_16, RUNS_16 + ARRAY_LEN(RUNS_16) };
	if (version == TOK_UNICODE_14)
		r = (struct runs){ RUNS_14, RUNS_14 + ARRAY_LEN(RUNS_14) };
	tok_table_init(t, fill_from_runs, &r);
}

struct both {
	struct runs old, new;
};

static void fill_disputed(void *ctx, uint32_t block, uint8_t out[256])
{
	struct both *x = ctx;
	uint8_t old[256];
	fill_from_runs(&x->old, block, old);
	fill_from_runs(&x->new, block, out);
	for (size_t i = 0; i < 256; i++)
		out[i] = out[i] != old[i];
}

void tok_disputed_init(struct tok_table *t)
{
	struct both x = { { RUNS_14, RUNS_14 + ARRAY_LEN(RUNS_14) }, { RUNS_16, RUNS_16 + ARRAY_LEN(RUNS_16) } };
	tok_table_init(t, fill_disputed, &x);
}

bool tok_is_word(uint32_t cp)
{
	size_t low = 0, high = ARRAY_LEN(WORDS);
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		if (WORDS[mid] <= cp)
			low = mid + 1;
		else
			high = mid;
	}
	return low % 2 == 1;
}
