/* sse_fuzz.c: the first bytes choose the cuts; the events must be those of the whole stream, and no byte may be lost. */
#include <stdint.h>
#include <stdlib.h>

#include "base/must.h"
#include "wire/sse.h"

enum { MAX_EVENT = 1 << 20 };

static void note(struct buf *out, struct buf *raw, const struct sse_event *ev)
{
	const size_t numbers[] = { ev->raw.n, ev->data.n, ev->event.n, ev->id.n, 2 * (size_t)ev->has_data + ev->whole };
	must(buf_add(out, str_from(numbers, sizeof(numbers))) == ERR_OK);
	must(buf_add(out, ev->data) == ERR_OK && buf_add(raw, ev->raw) == ERR_OK);
}

static void split(struct str text, const uint8_t *cuts, size_t n_cuts, struct buf *out)
{
	struct sse s;
	struct sse_event ev;
	struct buf raw;
	struct str rest = text;
	sse_init(&s, MAX_EVENT);
	buf_init(&raw, MAX_EVENT);
	for (size_t i = 0; rest.n; i++) {
		size_t n = n_cuts ? (size_t)1 + cuts[i % n_cuts] % 40 : rest.n;
		struct str piece = str_clone(str_sub(rest, 0, n));
		sse_feed(&s, piece);
		while (sse_next(&s, &ev) == ERR_OK)
			note(out, &raw, &ev);
		free((void *)(uintptr_t)piece.p);
		rest = str_skip(rest, n);
	}
	if (sse_end(&s, &ev))
		note(out, &raw, &ev);
	must(str_eq(buf_str(&raw), text));
	sse_done(&s);
	buf_done(&raw);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t n_cuts = size < 4 ? 0 : 4;
	struct str text = str_from(data + n_cuts, size - n_cuts);
	struct buf whole, cut;
	if (text.n > 65536)
		return 0;
	buf_init(&whole, 1 << 24);
	buf_init(&cut, 1 << 24);
	split(text, NULL, 0, &whole);
	split(text, data, n_cuts, &cut);
	must(str_eq(buf_str(&whole), buf_str(&cut)));
	buf_done(&whole);
	buf_done(&cut);
	return 0;
}
