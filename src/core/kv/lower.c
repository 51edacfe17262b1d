/* lower.c: where a hit ends on the GPU, its going on below. An engine asks its connector for the blocks behind its own hit, one
 * by one from there: they are loaded, and reported as cached. What lies on the GPU behind the first gap is no part of it, and
 * the last token may be loaded too (vLLM's OffloadingConnector, 0.32). A block on both tiers comes from the nearer one.
 *
 * One walk for all ranks of a plan, each joining where its own hit ends. */
#include <string.h>

#include "kv/index_priv.h"

enum { AHEAD = 16 };

struct lower {
	const struct kv_index *x;
	const struct kv_plan *plan;
	const struct kv_lower_ask *a;
	const uint64_t *keys;
	uint32_t whole;        /* blocks of the prompt */
	uint64_t *alive;       /* seats, as the walk goes */
};

static const struct kv_rank_entry *under(const struct lower *l, size_t i)
{
	const struct kv_rank_entry *r = kv_rank_at(l->x, l->a->ranks[i]);
	return r && r->plan == l->plan && r->lower ? r : NULL;
}

static uint32_t end_of_gpu(const struct lower *l, size_t i) { return l->a->hit_tok[i] / l->plan->unit; }

static void prefetch(const struct lower *l, uint32_t block)
{
	const struct kv_spec *s = &l->plan->specs[0];
	for (uint32_t j = 0; block < l->whole && j < s->n_groups; j++) {
		kv_prefetch(&l->x->held, kv_spec_key(s, l->keys, block, j) + kv_tier_salt(KV_TIER_CPU));
		kv_prefetch(&l->x->held, kv_spec_key(s, l->keys, block, j) + kv_tier_salt(KV_TIER_STORAGE));
	}
}

/* Sets the bits of those who hold the key. */
static void add_holders(const struct kv_holders *h, uint64_t key, uint64_t *bits)
{
	uint64_t v = kv_value(h, key);
	if (kv_is_row(v)) {
		for (uint32_t k = 0; k < h->words; k++)
			bits[k] |= kv_row(h, v)[k];
		return;
	}
	kv_spread(v, bits);
}

/* Who is alive and has the block in every group goes on; for whom a group's comes from storage, it is counted. */
static bool step(const struct lower *l, uint32_t block)
{
	const struct kv_spec *s = &l->plan->specs[0];
	const struct kv_holders *h = &l->x->held;
	struct kv_scratch *k = l->x->scratch;
	uint64_t left = 0;
	memset(k->storage, 0, h->words * sizeof(*k->storage));
	for (uint32_t j = 0; j < s->n_groups; j++) {
		uint64_t cpu[KV_MAX_WORDS] = { 0 };
		uint64_t key = kv_spec_key(s, l->keys, block, j);
		memset(k->bits, 0, h->words * sizeof(*k->bits));
		add_holders(h, key + kv_tier_salt(KV_TIER_CPU), cpu);
		add_holders(h, key + kv_tier_salt(KV_TIER_STORAGE), k->bits);
		for (uint32_t w = 0; w < h->words; w++) {
			l->alive[w] &= cpu[w] | k->bits[w];
			k->storage[w] |= ~cpu[w];
		}
	}
	for (uint32_t w = 0; w < h->words; w++) {
		left |= l->alive[w];
		for (uint64_t b = l->alive[w]; b; b &= b - 1)
			k->run[w * 64 + (uint32_t)__builtin_ctzll(b)] = block + 1;
		for (uint64_t b = l->alive[w] & k->storage[w]; b; b &= b - 1)
			k->stored[w * 64 + (uint32_t)__builtin_ctzll(b)]++;
	}
	return left != 0;
}

/* Those whose hit ends here join. The next block where somebody does. */
static uint32_t join(const struct lower *l, uint32_t block)
{
	uint32_t next = l->whole;
	for (size_t i = 0; i < l->a->n; i++) {
		const struct kv_rank_entry *r = under(l, i);
		uint32_t end = r ? end_of_gpu(l, i) : 0;
		if (r && end == block) {
			l->alive[r->seat / 64] |= 1ull << (r->seat % 64);
			l->x->scratch->run[r->seat] = block;
			l->x->scratch->stored[r->seat] = 0;
		} else if (r && end > block) {
			next = MIN(next, end);
		}
	}
	return next;
}

static void walk(const struct lower *l)
{
	for (uint32_t at = 0, next; at < l->whole; at = next) {
		next = join(l, at);
		for (uint32_t i = 0; i < AHEAD; i++)
			prefetch(l, at + i);
		for (; at < next && step(l, at); at++)
			prefetch(l, at + AHEAD);
	}
}

static void take(const struct lower *l, size_t i)
{
	const struct kv_rank_entry *r = under(l, i);
	uint32_t from = r ? end_of_gpu(l, i) : l->whole;
	if (from >= l->whole)
		return;
	uint32_t unit = l->plan->unit, n = l->x->scratch->run[r->seat] - from, stored = l->x->scratch->stored[r->seat];
	l->a->hit_tok[i] += n * unit;
	if (l->a->loads)
		l->a->loads[i] = (struct kv_load){ (n - stored) * unit, stored * unit };
}

void kv_index_lower(const struct kv_index *x, const struct kv_plan *plan, const struct kv_lower_ask *a)
{
	const struct kv_keyset *set = kv_prompt_set(a->p, plan->unit);
	struct lower l = { x, plan, a, set->keys, MIN(set->n, a->p->n_tok / plan->unit), x->scratch->alive };
	memset(l.alive, 0, x->held.words * sizeof(*l.alive));
	walk(&l);
	for (size_t i = 0; i < a->n; i++)
		take(&l, i);
}
