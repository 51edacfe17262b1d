/* Splitters against the slow matcher of their own regex: the first byte chooses the pattern and the tables, the rest is
 * text (bytes that are no UTF-8 are left out). */
#include <stdint.h>

#include "../unit/tok/slow.h"
#include "tok/tok_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_TEXT = 2048 };

static size_t clean(const uint8_t *data, size_t size, uint8_t *out)
{
	size_t n = 0;
	uint32_t cp;
	for (size_t i = 0; i < size;) {
		size_t len = utf8_next((struct str){ (const char *)data + i, size - i }, &cp);
		if (len && n + len <= MAX_TEXT) {
			memcpy(out + n, data + i, len);
			n += len;
		}
		i += len ? len : 1;
	}
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct tok_table classes[2];
	static struct slow_regex slow[SLOW_N_PATTERNS];
	static bool ready;
	uint8_t text[MAX_TEXT + 4];
	for (size_t i = 0; !ready && i < SLOW_N_PATTERNS; i++)
		slow_compile(&slow[i], SLOW_PATTERNS[i]);
	if (!ready) {
		tok_classes_init(&classes[0], TOK_UNICODE_16);
		tok_classes_init(&classes[1], TOK_UNICODE_14);
	}
	ready = true;
	if (size == 0)
		return 0;
	size_t which = data[0] % SLOW_N_PATTERNS;
	const struct tok_splitter *s = tok_splitter_find(str_of(SLOW_PATTERNS[which]));
	const struct tok_table *k = &classes[data[0] >> 7];
	must(s);
	const uint8_t *p = text, *end = text + clean(data + 1, size - 1, text);
	struct tok_ends fast;
	while (p < end) {
		s->split(k, p, end, &fast);
		must(fast.n == TOK_ENDS || (fast.n && fast.p[fast.n - 1] == end));
		for (size_t i = 0; i < fast.n; p = fast.p[i++])
			must(fast.p[i] == slow_next(&slow[which], k, p, end));
	}
	return 0;
}
