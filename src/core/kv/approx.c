/* approx.c: the index of a rank that sends no events, fed by our own dispatches. What was sent is held, the least recently
 * used goes first within the rank's capacity; of one prompt the tail goes before the head, as the engines free it.
 *
 * A rank's events may come late, or be lost for a while and come back where they stopped. So what events told stays when
 * the approximation begins, and only what the approximation itself put down is taken back when it ends. */
#include <string.h>

#include "kv/index_priv.h"

enum { DEFAULT_BLOCKS = 16384, RESERVE_BLOCKS = 1 << 20 };

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

static uint32_t capacity_of(const struct kv_rank_entry *r) { return r->capacity ? r->capacity : DEFAULT_BLOCKS; }

/* The last of a prompt's first n keys, so many: the head is the newest in the end. */
static void put_down(struct kv_index *x, kv_rank_id id, const uint64_t *keys, uint32_t n, uint32_t count)
{
	const struct kv_rank_entry *r = kv_rank_at(x, id);
	if (!r->approx->at.cap) /* a table of many thousands that grows takes milliseconds */
		map_reserve(&r->approx->at, MIN(capacity_of(r), (uint32_t)RESERVE_BLOCKS) + (size_t)1);
	while (count--) {
		touch(x, id, keys[--n]);
		if (r->approx->at.n > capacity_of(r))
			evict(x, id);
	}
}

/* ---- those that wait */

static void note_drop(struct kv_notes *q)
{
	struct kv_note *n = q->first;
	q->first = n->next;
	q->blocks -= n->left;
	free(n);
}

void kv_notes_done(struct kv_notes *q)
{
	while (q->first)
		note_drop(q);
}

static void note_wait(struct kv_notes *q, const struct kv_note *head, const uint64_t *keys)
{
	struct kv_note *n = must_malloc(sizeof(*n) + head->left * sizeof(*keys));
	*n = *head;
	memcpy(n->keys, keys, head->left * sizeof(*keys));
	if (q->first)
		q->last->next = n;
	else
		q->first = n;
	q->last = n;
	q->blocks += n->left;
}

bool kv_index_approx_work(struct kv_index *x, uint32_t max_blocks)
{
	struct kv_notes *q = &x->notes;
	while (q->first && max_blocks) {
		struct kv_note *n = q->first;
		const struct kv_rank_entry *r = kv_rank_at(x, n->rank);
		bool meant = r && r->gen == n->gen && r->approx && r->plan;
		uint32_t count = MIN(n->left, max_blocks);
		if (meant) {
			put_down(x, n->rank, n->keys, n->left, count);
			n->left -= count;
			q->blocks -= count;
			max_blocks -= count;
		}
		if (!meant || !n->left)
			note_drop(q);
	}
	return q->first;
}

void kv_index_approx_note(struct kv_index *x, kv_rank_id id, const struct kv_prompt *p, struct mono now)
{
	(void)now; /* the order of the calls is the order of use */
	const struct kv_rank_entry *r = kv_rank_at(x, id);
	const struct kv_keyset *set = r && r->approx && r->plan ? kv_prompt_set(p, r->plan->unit) : NULL;
	if (!set)
		return;
	uint32_t n = MIN(set->n, capacity_of(r));
	if (!x->notes.first && n <= KV_NOTE_AT_ONCE)
		put_down(x, id, set->keys, n, n);
	else if (n && x->notes.blocks + n <= KV_NOTES_MAX_BLOCKS)
		note_wait(&x->notes, &(struct kv_note){ .rank = id, .gen = r->gen, .left = n }, set->keys);
}
