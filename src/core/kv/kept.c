/* kept.c: deep copies of batches, each in one piece of memory, for as long as a replay runs. */
#include "kv/rank_priv.h"

#include <string.h>

/* Lays pieces one behind the other; with p NULL it only measures. */
struct packer {
	char *p;
	size_t n;
};

static void *pack(struct packer *k, const void *from, size_t n)
{
	char *at = k->p ? k->p + k->n : NULL;
	if (at && n)
		memcpy(at, from, n);
	k->n += (n + 15) & ~(size_t)15;
	return at;
}

static struct str pack_str(struct packer *k, struct str s) { return (struct str){ pack(k, s.p, s.n), s.n }; }

static const struct kv_block_extras *pack_extras(struct packer *k, const struct kv_event *e)
{
	struct kv_block_extras *blocks = pack(k, e->extras, e->n_hashes * sizeof(*blocks));
	for (size_t i = 0; i < e->n_hashes; i++) {
		const struct kv_block_extras *from = &e->extras[i];
		struct kv_extra *x = pack(k, from->p, from->n * sizeof(*x));
		for (size_t j = 0; j < from->n; j++) {
			struct str id = pack_str(k, from->p[j].id);
			if (x)
				x[j].id = id;
		}
		if (blocks)
			blocks[i].p = x;
	}
	return blocks;
}

static struct kv_batch *pack_batch(struct packer *k, const struct kv_batch *b)
{
	struct kv_batch *to = pack(k, b, sizeof(*b));
	struct kv_event *events = pack(k, b->events, b->n_events * sizeof(*events));
	for (size_t i = 0; i < b->n_events; i++) {
		const struct kv_event *e = &b->events[i];
		const uint64_t *hashes = pack(k, e->hashes, e->n_hashes * sizeof(*hashes));
		const uint32_t *ids = pack(k, e->ids, e->n_ids * sizeof(*ids));
		struct str adapter = pack_str(k, e->adapter);
		const struct kv_block_extras *extras = e->extras ? pack_extras(k, e) : NULL;
		if (events) {
			events[i].hashes = hashes;
			events[i].ids = ids;
			events[i].adapter = adapter;
			events[i].extras = extras;
		}
	}
	if (to)
		to->events = events;
	return to;
}

void kv_kept_add(struct kv_kept_list *l, uint64_t seq, const struct kv_batch *b)
{
	struct packer k = { 0 };
	pack_batch(&k, b);
	if (l->v.n && seq <= l->v.p[l->v.n - 1].seq) {
		if (b->ts_s <= l->v.p[l->v.n - 1].batch->ts_s)
			return;
		/* Falls back in number but not in time: the worker restarted, what is here is of its former life. */
		kv_kept_clear(l);
	}
	if (l->v.n >= KV_KEPT_MAX || k.n > KV_KEPT_MAX_BYTES - l->bytes) {
		l->lost = true;
		return;
	}
	struct kv_kept one = { .seq = seq, .bytes = k.n };
	k = (struct packer){ .p = must_malloc(k.n) };
	one.batch = pack_batch(&k, b);
	l->bytes += one.bytes;
	VEC_PUSH(&l->v, one);
}

void kv_kept_clear(struct kv_kept_list *l)
{
	for (size_t i = 0; i < l->v.n; i++)
		free(l->v.p[i].batch);
	VEC_FREE(&l->v);
	l->bytes = 0;
	l->lost = false;
}
