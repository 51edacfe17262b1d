/* owner.c: who last owned a prefix; longer-lived than the caches, so that the partition of prefixes over workers outlives
 * evictions. A prompt leaves a mark at its longest possible hit and at a few lengths below it, the same lengths for every
 * prompt (numbers of four significant bits), down to a quarter: whoever shares most of it finds one of them.
 * A fixed table of buckets, the oldest mark of a bucket goes; half a mark per block of the fleet's capacity. */
#include <string.h>

#include "kv/index_priv.h"

enum { WAYS = 4, BLOCKS_PER_MARK = 2, MIN_BUCKETS = 256, MAX_BUCKETS = 1 << 20, SIGNIFICANT_BITS = 4 };

void kv_owners_done(struct kv_owners *o)
{
	free(o->v);
	*o = (struct kv_owners){ 0 };
}

size_t kv_owners_bytes(const struct kv_owners *o) { return (size_t)o->n_buckets * WAYS * sizeof(*o->v); }

static struct kv_owner_entry *bucket(const struct kv_owners *o, uint64_t key)
{
	return o->v + (((key & UINT32_MAX) * o->n_buckets) >> 32) * WAYS;
}

static bool newer(uint32_t a, uint32_t b) { return (int32_t)(a - b) > 0; }

/* The place of this key, or an empty one, or the oldest. */
static struct kv_owner_entry *place(const struct kv_owners *o, uint64_t key)
{
	struct kv_owner_entry *b = bucket(o, key), *best = b;
	for (uint32_t i = 0; i < WAYS; i++) {
		if (b[i].gen && b[i].key == key)
			return &b[i];
		if (best->gen && (!b[i].gen || newer(best->stamp, b[i].stamp)))
			best = &b[i];
	}
	return best;
}

static void mark(struct kv_owners *o, struct kv_owner_entry e)
{
	struct kv_owner_entry *at = place(o, e.key);
	o->n += at->gen == 0;
	*at = e;
}

void kv_owners_resize(struct kv_owners *o, uint64_t capacity_blocks)
{
	uint64_t want = MIN(MAX(capacity_blocks / (WAYS * BLOCKS_PER_MARK), (uint64_t)MIN_BUCKETS), (uint64_t)MAX_BUCKETS);
	uint32_t n = MIN_BUCKETS;
	while (n < want)
		n *= 2;
	if (n <= o->n_buckets && n > o->n_buckets / 4)
		return; /* shrinks late, so that a rank that comes and goes does not move the table each time */
	struct kv_owners to = { must_calloc((size_t)n * WAYS, sizeof(*to.v)), n, 0 };
	for (size_t i = 0; i < (size_t)o->n_buckets * WAYS; i++)
		if (o->v[i].gen)
			mark(&to, o->v[i]);
	free(o->v);
	*o = to;
}

/* The largest number of four significant bits below n; 0 below 1. */
static uint32_t step_down(uint32_t n)
{
	if (n <= 1)
		return 0;
	n--;
	int spare = 32 - __builtin_clz(n) - SIGNIFICANT_BITS;
	return spare > 0 ? n >> spare << spare : n;
}

static uint32_t longest(const struct kv_prompt *p, const struct kv_keyset *set)
{
	uint32_t limit = p->n_tok ? (p->n_tok - 1) / set->block_size : 0;
	return MIN(limit, set->n);
}

static const struct kv_keyset *set_of(const struct kv_rank_entry *r, const struct kv_prompt *p)
{
	const struct kv_keyset *set = r->plan ? kv_prompt_set(p, r->plan->unit) : NULL;
	return set ? set : p->n_sets ? &p->sets[0] : NULL;
}

void kv_index_own(struct kv_index *x, kv_rank_id id, const struct kv_prompt *p, struct mono now)
{
	const struct kv_rank_entry *r = kv_rank_at(x, id);
	const struct kv_keyset *set = r ? set_of(r, p) : NULL;
	if (!set || set->block_size == 0)
		return;
	uint32_t stamp = (uint32_t)(now.us >> 10), top = longest(p, set);
	for (uint32_t n = top; n && n >= top / 4; n = step_down(n))
		mark(&x->owners, (struct kv_owner_entry){ set->keys[n - 1], stamp, id, r->gen });
}

static bool is_asked(const struct kv_index *x, const struct kv_owner_entry *e, const kv_rank_id *ranks, size_t n)
{
	const struct kv_rank_entry *r = kv_rank_at(x, e->rank);
	for (size_t i = 0; r && r->gen == e->gen && i < n; i++)
		if (ranks[i] == e->rank)
			return true;
	return false;
}

bool kv_index_owner(const struct kv_index *x, const struct kv_prompt *p, const kv_rank_id *ranks, size_t n, uint32_t min_tok,
	kv_rank_id *ret_id, uint32_t *ret_tok)
{
	uint32_t best_tok = 0;
	kv_rank_id best = 0;
	for (uint32_t s = 0; x->owners.n_buckets && s < p->n_sets; s++) {
		const struct kv_keyset *set = &p->sets[s];
		for (uint32_t b = set->block_size ? longest(p, set) : 0; b && b * set->block_size >= MAX(min_tok, best_tok + 1);
			b = step_down(b)) {
			const struct kv_owner_entry *e = place(&x->owners, set->keys[b - 1]);
			if (!e->gen || e->key != set->keys[b - 1] || !is_asked(x, e, ranks, n))
				continue;
			best = e->rank;
			best_tok = b * set->block_size;
			break;
		}
	}
	if (best_tok == 0)
		return false;
	*ret_id = best;
	*ret_tok = best_tok;
	return true;
}
