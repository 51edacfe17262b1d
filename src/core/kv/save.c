/* save.c: a rank's view as bytes. What a gateway that starts again cannot learn from a replay is what its workers stored before the
 * oldest batch they keep (10,000 steps in vLLM: minutes): the hottest prefixes, which nobody has to store again. Numbers lie as
 * in memory, little-endian; whoever keeps the bytes checks that they are whole. */
#include <string.h>

#include "kv/rank_priv.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are saved as they lie in memory");

#define MAGIC "kvrank 1"

struct saved_head {
	char magic[8];
	uint64_t next_seq, n_copies;
	double last_ts_s;
	uint32_t capacity, unit, n_groups, n[KV_TIERS];
};

static struct saved_head head_of(const struct kv_rank *r)
{
	struct saved_head h;
	memset(&h, 0, sizeof(h));
	memcpy(h.magic, MAGIC, sizeof(h.magic));
	h.next_seq = r->s.next_seq;
	h.n_copies = r->copies.n;
	h.last_ts_s = r->s.last_ts_s;
	h.capacity = r->capacity;
	h.unit = r->unit;
	h.n_groups = (uint32_t)r->n_groups;
	for (size_t t = 0; t < KV_TIERS; t++)
		h.n[t] = r->tables[t].n;
	return h;
}

/* 0: more than a size can say. */
static size_t bytes_of(const struct saved_head *h)
{
	if (h->n_groups > KV_MAX_GROUPS || h->n_copies > UINT32_MAX)
		return 0;
	size_t n = sizeof(*h) + h->n_groups * sizeof(struct kv_group) + h->n_copies * sizeof(struct map_slot);
	for (size_t t = 0; t < KV_TIERS; t++)
		n += (size_t)h->n[t] * sizeof(struct kv_slot);
	return n;
}

size_t kv_rank_save_bytes(const struct kv_rank *r)
{
	struct saved_head h = head_of(r);
	return bytes_of(&h);
}

static char *put(char *p, const void *from, size_t n)
{
	memcpy(p, from, n);
	return p + n;
}

static char *put_table(char *p, const struct kv_table *t)
{
	for (uint32_t i = 0; i < t->n_lines; i++)
		for (size_t k = 0; k < KV_LINE_SLOTS; k++)
			if (t->lines[i].slots[k].groups)
				p = put(p, &t->lines[i].slots[k], sizeof(struct kv_slot));
	return p;
}

enum err kv_rank_save(const struct kv_rank *r, struct buf *buf)
{
	struct saved_head h = head_of(r);
	size_t n = bytes_of(&h);
	char *p;
	if (!r->s.seen_any || r->s.uncertain || r->replaying || r->wrong || !n)
		return ERR_NOT_FOUND;
	enum err e = buf_reserve(buf, n, &p);
	if (e != ERR_OK)
		return e;
	p = put(p, &h, sizeof(h));
	p = put(p, r->groups, r->n_groups * sizeof(*r->groups));
	for (size_t t = 0; t < KV_TIERS; t++)
		p = put_table(p, &r->tables[t]);
	for (size_t i = map_first(&r->copies); i < r->copies.cap; i = map_next(&r->copies, i))
		p = put(p, &r->copies.slots[i], sizeof(struct map_slot));
	buf_commit(buf, n);
	return ERR_OK;
}

static void take(const char **p, void *to, size_t n)
{
	memcpy(to, *p, n);
	*p += n;
}

static bool load_groups(struct kv_rank *r, const struct saved_head *h, const char **p)
{
	take(p, r->groups, h->n_groups * sizeof(*r->groups));
	for (size_t g = 0; g < h->n_groups; g++)
		if ((unsigned)r->groups[g].kind > KV_GROUP_CHUNKED || (r->groups[g].block_size && r->groups[g].block_size < h->unit))
			return false;
	r->n_groups = h->n_groups;
	r->unit = h->unit;
	r->sink.groups(r->arg, r->groups, r->n_groups);
	return true;
}

static bool load_table(struct kv_rank *r, enum kv_tier tier, uint32_t n, const char **p)
{
	struct kv_slot s;
	if (n > kv_rank_limit(r, tier))
		return false;
	for (uint32_t i = 0; i < n; i++) {
		take(p, &s, sizeof(s));
		if (!s.groups || s.flags & ~(KV_SLOT_COPIES | KV_SLOT_SHARED) || kv_table_find(&r->tables[tier], s.hash))
			return false;
		kv_rank_put(r, tier, &s);
	}
	return true;
}

static bool load(struct kv_rank *r, const struct saved_head *h, const char *p)
{
	struct map_slot m;
	kv_rank_capacity(r, h->capacity);
	if (!load_groups(r, h, &p))
		return false;
	for (enum kv_tier t = 0; t < KV_TIERS; t++)
		if (!load_table(r, t, h->n[t], &p))
			return false;
	for (uint64_t i = 0; i < h->n_copies; i++) {
		take(&p, &m, sizeof(m));
		map_put(&r->copies, m.key, m.value);
	}
	return true;
}

enum err kv_rank_load(struct kv_rank *r, struct str saved)
{
	struct saved_head h;
	if (saved.n < sizeof(h))
		return ERR_SYNTAX;
	memcpy(&h, saved.p, sizeof(h));
	if (memcmp(h.magic, MAGIC, sizeof(h.magic)) != 0 || bytes_of(&h) != saved.n)
		return ERR_SYNTAX;
	if (!load(r, &h, saved.p + sizeof(h))) {
		kv_rank_drop(r);
		kv_rank_capacity(r, 0);
		return ERR_SYNTAX;
	}
	kv_rank_flush(r);
	r->s.next_seq = h.next_seq;
	r->s.last_ts_s = h.last_ts_s;
	r->s.seen_any = r->s.uncertain = r->unproven = true;
	return ERR_OK;
}
