/* wire/http1 on any bytes: the first byte chooses direction and cut; then the same bytes whole and in pieces must give
 * the same messages. Each piece lies in memory of exactly its size. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/must.h"
#include "wire/http1.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct run {
	struct http1 p;
	struct http1_head *head;
	uint64_t digest;      /* of everything announced, piece borders left out */
	uint64_t body;
	size_t messages, used;
	enum http1_step step;
};

static void mix(struct run *r, uint64_t v) { r->digest = hash_mix(r->digest * 31 + v); }

static bool on_head(void *arg)
{
	struct run *r = arg;
	const struct http1_head *h = r->head;
	mix(r, hash_str(h->target, (uint64_t)h->status) ^ hash_str(h->method, 1) ^ hash_str(h->path, 2) ^ hash_str(h->host, 3));
	mix(r, (uint64_t)h->content_length * 4 + h->keep_alive * 2u + h->expect_continue);
	for (size_t i = 0; i < h->n_fields; i++) {
		must(http1_is_token(h->fields[i].name));
		must(memchr(h->fields[i].value.p, '\n', h->fields[i].value.n) == NULL);
		mix(r, hash_str(h->fields[i].name, 4) ^ hash_str(h->fields[i].value, 5));
	}
	must(r->p.kind == HTTP1_RESPONSE || h->path.n > 0);
	return true;
}

static bool on_body(void *arg, struct str piece)
{
	struct run *r = arg;
	must(piece.n > 0);
	for (size_t i = 0; i < piece.n; i++)
		mix(r, (unsigned char)piece.p[i]);
	r->body += piece.n;
	return true;
}

static const struct http1_ops ops = { on_head, on_body };

static void feed(struct run *r, const uint8_t *p, size_t n, bool no_body)
{
	char *copy = malloc(n ? n : 1);
	struct str left = { copy, n };
	memcpy(copy, p, n);
	while (left.n > 0 && r->step == HTTP1_MORE) {
		size_t used = 0;
		r->step = http1_feed(&r->p, left, &used);
		must(used <= left.n);
		r->used += used;
		left = str_skip(left, used);
		if (r->step == HTTP1_DONE) {
			must(used > 0);
			r->messages++;
			mix(r, r->body);
			http1_begin(&r->p, r->head, no_body);
			r->step = HTTP1_MORE;
		}
	}
	free(copy);
}

static struct run run(uint8_t how, const uint8_t *p, size_t n, size_t piece)
{
	struct run r = { .head = http1_head_new(), .step = HTTP1_MORE };
	struct http1_limits limits = { 2048, 32 };
	bool no_body = (how & 2) != 0;
	http1_init(&r.p, how & 1 ? HTTP1_RESPONSE : HTTP1_REQUEST, limits, &ops, &r);
	http1_begin(&r.p, r.head, no_body);
	for (size_t at = 0; at < n && r.step == HTTP1_MORE; at += piece)
		feed(&r, p + at, n - at < piece ? n - at : piece, no_body);
	if (r.step == HTTP1_MORE && http1_finish(&r.p) == HTTP1_DONE)
		r.messages++;
	http1_head_free(r.head);
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1 || size > 1500)    /* below the limits of size, which count by what was fed at once */
		return 0;
	struct run whole = run(data[0], data + 1, size - 1, size);
	struct run cut = run(data[0], data + 1, size - 1, 1 + data[0] / 4);
	must(whole.messages == cut.messages);
	must(whole.step == cut.step);
	must(whole.digest == cut.digest || whole.step == HTTP1_BAD);
	return 0;
}
