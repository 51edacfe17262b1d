/* tree.c: prompts in flight by what they begin with. A key stands for everything before it, so that a block lies in a prompt
 * whose key at its place is the same, and two prompts share all blocks up to the last equal key: a prompt is a path of
 * runs, and a run is compared by few of its keys. A run forks where prompts part and is joined again when only one goes on.
 *
 * Keys are hashes of what clients send: two prompts may be made to share a key by force. Then the later path ends early. */
#include <string.h>

#include "base/hash.h"
#include "kv/index_priv.h"

void kv_tree_init(struct kv_tree *t)
{
	*t = (struct kv_tree){ 0 };
	map_init(&t->at);
	VEC_PUSH(&t->v, (struct kv_run){ 0 });
}

void kv_tree_done(struct kv_tree *t)
{
	for (size_t i = 1; i < t->v.n; i++) {
		kv_chain_release(t, t->v.p[i].chain);
		VEC_FREE(&t->v.p[i].riders);
	}
	VEC_FREE(&t->v);
	map_done(&t->at);
}

size_t kv_tree_bytes(const struct kv_tree *t)
{
	size_t n = t->chain_bytes + t->v.cap * sizeof(*t->v.p) + t->at.cap * (sizeof(struct map_slot) + 1);
	for (size_t i = 1; i < t->v.n; i++)
		n += t->v.p[i].riders.cap * sizeof(*t->v.p[i].riders.p);
	return n;
}

/* ---- chains ---- */

static size_t chain_size(uint32_t n) { return sizeof(struct kv_chain) + n * sizeof(uint64_t); }

struct kv_chain *kv_chain_new(struct kv_tree *t, const struct kv_keyset *set)
{
	struct kv_chain *c = must_malloc(chain_size(set->n));
	*c = (struct kv_chain){ .refs = 1, .n = set->n, .unit = set->block_size };
	if (set->n)
		memcpy(c->keys, set->keys, set->n * sizeof(uint64_t));
	t->chain_bytes += chain_size(c->n);
	return c;
}

void kv_chain_release(struct kv_tree *t, struct kv_chain *c)
{
	if (!c || --c->refs)
		return;
	t->chain_bytes -= chain_size(c->n);
	free(c);
}

/* ---- runs ---- */

static uint64_t name(uint64_t key, uint32_t unit) { return hash_mix(key) + unit; }

static uint64_t name_of(const struct kv_run *r) { return name(r->chain->keys[r->from], r->chain->unit); }

/* The run that goes on behind `parent` with block `at` of these keys, or 0. */
static uint32_t find(const struct kv_tree *t, const struct kv_keyset *s, uint32_t at, uint32_t parent)
{
	uint64_t i;
	if (!map_get(&t->at, name(s->keys[at], s->block_size), &i))
		return 0;
	const struct kv_run *r = &t->v.p[i];
	return r->parent == parent && r->from == at && r->chain->unit == s->block_size ? (uint32_t)i : 0;
}

/* Behind which block of the run these keys (n of them) leave it. */
static uint32_t agree(const struct kv_run *r, const uint64_t *keys, uint32_t n)
{
	uint32_t same = r->from + 1, end = MIN(r->to, n);
	const uint64_t *own = r->chain->keys;
	if (own[end - 1] == keys[end - 1])
		return end;
	for (end--; same < end;) {
		uint32_t mid = same + (end - same + 1) / 2;
		if (own[mid - 1] == keys[mid - 1])
			same = mid;
		else
			end = mid - 1;
	}
	return same;
}

static uint32_t new_run(struct kv_tree *t, struct kv_run r)
{
	uint32_t at = t->free;
	if (at) {
		t->free = t->v.p[at].parent;
	} else {
		at = (uint32_t)t->v.n;
		VEC_PUSH(&t->v, (struct kv_run){ 0 });
	}
	r.chain->refs++;
	t->v.p[at] = r;
	t->n++;
	return at;
}

static void free_run(struct kv_tree *t, uint32_t at)
{
	struct kv_run *r = &t->v.p[at];
	kv_chain_release(t, r->chain);
	VEC_FREE(&r->riders);
	*r = (struct kv_run){ .parent = t->free };
	t->free = at;
	t->n--;
}

/* Among a parent's children one takes the place of another; 0 = none. */
static void replace_child(struct kv_tree *t, uint32_t parent, uint32_t was, uint32_t is)
{
	if (!parent)
		return;
	struct kv_run *p = &t->v.p[parent];
	p->n_children += (is != 0);
	p->n_children -= (was != 0);
	p->children ^= was ^ is;
}

static uint32_t grow(struct kv_tree *t, struct kv_chain *c, uint32_t from, uint32_t to, uint32_t parent)
{
	uint32_t at = new_run(t, (struct kv_run){ .chain = c, .from = from, .to = to, .parent = parent });
	replace_child(t, parent, 0, at);
	map_put(&t->at, name_of(&t->v.p[at]), at);
	return at;
}

/* Cuts a run in two; it stays the lower part, where prompts may end. The upper part. */
static uint32_t cut(struct kv_tree *t, uint32_t at, uint32_t end)
{
	struct kv_run r = t->v.p[at];
	uint32_t upper = new_run(t,
		(struct kv_run){ .chain = r.chain, .from = r.from, .to = end, .parent = r.parent, .n_children = 1, .children = at });
	for (size_t i = 0; i < r.riders.n; i++)
		VEC_PUSH(&t->v.p[upper].riders, r.riders.p[i]);
	t->v.p[at].from = end;
	t->v.p[at].parent = upper;
	replace_child(t, r.parent, at, upper);
	map_put(&t->at, name_of(&t->v.p[upper]), upper);
	map_put(&t->at, name_of(&t->v.p[at]), at);
	return upper;
}

/* A run that only one other goes on from becomes the beginning of that one, whose keys are those of a whole prompt. */
static void join(struct kv_tree *t, uint32_t at)
{
	struct kv_run *r = &t->v.p[at], *child = &t->v.p[r->children];
	map_del(&t->at, name_of(child));
	map_put(&t->at, name_of(r), r->children);
	child->from = r->from;
	child->parent = r->parent;
	replace_child(t, r->parent, at, r->children);
	free_run(t, at);
}

static void prune(struct kv_tree *t, uint32_t at)
{
	map_del(&t->at, name_of(&t->v.p[at]));
	replace_child(t, t->v.p[at].parent, at, 0);
	free_run(t, at);
}

static void ride(struct kv_run *r, kv_rank_id rank)
{
	for (size_t i = 0; i < r->riders.n; i++)
		if (r->riders.p[i].rank == rank) {
			r->riders.p[i].n++;
			return;
		}
	VEC_PUSH(&r->riders, (struct kv_rider){ rank, 1 });
}

static void get_off(struct kv_run *r, kv_rank_id rank)
{
	size_t i = 0;
	while (r->riders.p[i].rank != rank)
		i++;
	if (--r->riders.p[i].n == 0)
		r->riders.p[i] = r->riders.p[--r->riders.n];
}

uint32_t kv_tree_add(struct kv_tree *t, struct kv_chain *c, uint32_t n, kv_rank_id rank)
{
	struct kv_keyset set = { c->unit, n, c->keys };
	uint32_t parent = 0;
	for (uint32_t done = 0; done < n;) {
		uint64_t other;
		uint32_t at = find(t, &set, done, parent);
		if (!at && map_get(&t->at, name(set.keys[done], set.block_size), &other))
			break; /* another prefix has this key */
		if (!at)
			at = grow(t, c, done, n, parent);
		done = agree(&t->v.p[at], set.keys, n);
		if (done < t->v.p[at].to)
			at = cut(t, at, done);
		ride(&t->v.p[at], rank);
		parent = at;
	}
	if (parent)
		t->v.p[parent].n_ends++;
	return parent;
}

void kv_tree_del(struct kv_tree *t, uint32_t last, kv_rank_id rank)
{
	if (last)
		t->v.p[last].n_ends--;
	for (uint32_t at = last, parent; at; at = parent) {
		struct kv_run *r = &t->v.p[at];
		parent = r->parent;
		get_off(r, rank);
		if (r->riders.n == 0)
			prune(t, at);
		else if (r->n_children == 1 && r->n_ends == 0)
			join(t, at);
	}
}

void kv_tree_reach(const struct kv_tree *t, const struct kv_keyset *set, uint32_t n, uint32_t *ret_reach)
{
	uint32_t at = n ? find(t, set, 0, 0) : 0;
	while (at) {
		const struct kv_run *r = &t->v.p[at];
		uint32_t end = agree(r, set->keys, n);
		for (size_t i = 0; i < r->riders.n; i++)
			ret_reach[r->riders.p[i].rank] = end;
		at = end == r->to && end < n ? find(t, set, end, at) : 0;
	}
}
