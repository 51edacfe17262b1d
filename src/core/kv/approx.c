/* approx.c: the index of a rank that sends no events, fed by our own dispatches. What was sent is held, the least recently
 * used goes first within the rank's capacity; of one prompt the tail goes before the head, as the engines free it.
 *
 * A rank's events may come late, or be lost for a while and come back where they stopped. So what events told stays when
 * the approximation begins, and only what the approximation itself put down is taken back when it ends. */
#include "kv/index_priv.h"

enum { DEFAULT_BLOCKS = 16384 };

struct node {
	uint64_t key;
	uint32_t older, newer;
	bool added;
}; /* added: held by us alone, no event said so */

struct kv_approx {
	struct map at; /* key -> node */
	VEC(struct node) v; /* node 0 ends the list on both sides: its `newer` is the oldest, its `older` the newest */
	uint32_t free;
};

struct kv_approx *kv_approx_new(void)
{
	struct kv_approx *a = must_calloc(1, sizeof(*a));
	map_init(&a->at);
	VEC_PUSH(&a->v, (struct node){ 0 });
	return a;
}

void kv_approx_free(struct kv_approx *a)
{
	if (!a)
		return;
	map_done(&a->at);
	VEC_FREE(&a->v);
	free(a);
}

size_t kv_approx_bytes(const struct kv_approx *a)
{
	return a ? sizeof(*a) + a->v.cap * sizeof(*a->v.p) + a->at.cap * (sizeof(struct map_slot) + 1) : 0;
}

static void cut(struct kv_approx *a, uint32_t i)
{
	struct node *v = a->v.p;
	v[v[i].older].newer = v[i].newer;
	v[v[i].newer].older = v[i].older;
}

static void put_newest(struct kv_approx *a, uint32_t i)
{
	struct node *v = a->v.p;
	v[i].older = v[0].older;
	v[i].newer = 0;
	v[v[0].older].newer = i;
	v[0].older = i;
}

/* In every group; false if an event had said so of all before. */
static bool hold_all(struct kv_index *x, kv_rank_id id, uint64_t key, bool yes)
{
	const struct kv_plan *p = x->ranks[id].plan;
	uint32_t before = x->ranks[id].blocks;
	for (uint32_t i = 0; i < p->n_specs; i++)
		for (uint32_t j = 0; j < p->specs[i].n_groups; j++)
			kv_index_hold(x, id, key + p->specs[i].salts[j], yes);
	return x->ranks[id].blocks != before;
}

static void touch(struct kv_index *x, kv_rank_id id, uint64_t key)
{
	struct kv_approx *a = x->ranks[id].approx;
	uint64_t i;
	if (map_get(&a->at, key, &i)) {
		cut(a, (uint32_t)i);
	} else if (a->free) {
		i = a->free;
		a->free = a->v.p[i].newer;
		a->v.p[i] = (struct node){ .key = key };
	} else {
		i = a->v.n;
		VEC_PUSH(&a->v, (struct node){ .key = key });
	}
	put_newest(a, (uint32_t)i);
	map_put(&a->at, key, i);
	a->v.p[i].added |= hold_all(x, id, key, true);
}

static void evict(struct kv_index *x, kv_rank_id id)
{
	struct kv_approx *a = x->ranks[id].approx;
	uint32_t i = a->v.p[0].newer;
	if (a->v.p[i].added)
		hold_all(x, id, a->v.p[i].key, false);
	map_del(&a->at, a->v.p[i].key);
	cut(a, i);
	a->v.p[i].newer = a->free;
	a->free = i;
}

void kv_approx_confirm(struct kv_approx *a, uint64_t key)
{
	uint64_t i;
	if (map_get(&a->at, key, &i))
		a->v.p[i].added = false;
}

void kv_approx_withdraw(struct kv_index *x, kv_rank_id id)
{
	while (x->ranks[id].approx->at.n)
		evict(x, id);
}

void kv_index_approx_note(struct kv_index *x, kv_rank_id id, const struct kv_prompt *p, struct mono now)
{
	(void)now; /* the order of the calls is the order of use */
	const struct kv_rank_entry *r = kv_rank_at(x, id);
	const struct kv_keyset *set = r && r->approx && r->plan ? kv_prompt_set(p, r->plan->unit) : NULL;
	if (!set)
		return;
	uint32_t capacity = r->capacity ? r->capacity : DEFAULT_BLOCKS;
	for (uint32_t i = MIN(set->n, capacity); i-- > 0;)
		touch(x, id, set->keys[i]);
	while (r->approx->at.n > capacity)
		evict(x, id);
}
