/* apply.c: what one batch does to a rank's view.
 *
 * Two passes where a batch needs it: groups that store sparsely name fewer hashes than their tokens have blocks, and the
 * event that tells where such a hash belongs may come later in the same batch. The first pass learns hash -> key from the
 * events whose hashes and tokens line up.
 *
 * Each tier has a table of its own. An event of a tier below the GPU may name hashes alone: what they stand for is known from
 * whichever tier holds them, or gave them up earlier in the same batch (the GPU's events of a step come before the others').
 *
 * Copies are counted: an engine may hold the same block twice and announces each eviction. Two engine hashes can have one
 * key of ours when the wire does not say what sets them apart (an adapter loaded again over another path, builds that
 * leave extra keys out). Only such blocks pay for a second count, by key (`shared`). */
#include <string.h>

#include "base/hash.h"
#include "kv/rank_priv.h"

/* How far ahead of its turn a hash's slot is fetched: of an event the first ones when it is that many events away (most
 * removals have one), the others as its own go by. */
enum { AHEAD = 16 };

void kv_rank_flush(struct kv_rank *r)
{
	if (r->out.n)
		r->sink.deltas(r->arg, r->out.p, r->out.n);
	r->out.n = 0;
}

static void tell(struct kv_rank *r, struct kv_delta d)
{
	struct kv_delta *last = r->out.n ? &r->out.p[r->out.n - 1] : NULL;
	if (last && last->key == d.key && last->tier == d.tier && !((last->add_groups | last->del_groups) & (d.add_groups | d.del_groups))) {
		last->add_groups = (uint16_t)(last->add_groups | d.add_groups);
		last->del_groups = (uint16_t)(last->del_groups | d.del_groups);
		return;
	}
	if (r->out.n == KV_SLICE)
		kv_rank_flush(r);
	VEC_PUSH(&r->out, d);
}

static void empty_view(struct kv_rank *r)
{
	for (size_t t = 0; t < KV_TIERS; t++)
		kv_table_done(&r->tables[t]);
	map_done(&r->copies);
	map_done(&r->shared);
	r->wrong = false;
}

static void clear_view(struct kv_rank *r)
{
	kv_rank_flush(r);
	empty_view(r);
	r->sink.clear(r->arg);
}

void kv_rank_forget(struct kv_rank *r)
{
	memset(r->groups, 0, sizeof(r->groups));
	r->n_groups = 0;
	r->unit = 0;
	clear_view(r);
}

/* ---- groups ---- */

static uint32_t smallest_block(const struct kv_rank *r)
{
	uint32_t unit = 0;
	for (size_t g = 0; g < r->n_groups; g++)
		if (r->groups[g].block_size && (!unit || r->groups[g].block_size < unit))
			unit = r->groups[g].block_size;
	return unit;
}

/* A group's block size is the largest it ever said: a smaller one belongs to a partial tail. */
static bool learn_group(struct kv_rank *r, const struct kv_event *e)
{
	struct kv_group *g = &r->groups[e->group];
	if (e->type != KV_EVENT_STORED || e->tier != KV_TIER_GPU || e->group >= KV_MAX_GROUPS || e->block_size <= g->block_size)
		return false;
	*g = (struct kv_group){ e->kind, e->window_tok, e->block_size };
	r->n_groups = MAX(r->n_groups, (size_t)e->group + 1);
	return true;
}

static void learn_groups(struct kv_rank *r, const struct kv_batch *b)
{
	bool changed = false;
	r->stores_below = false;
	for (size_t i = 0; i < b->n_events; i++) {
		changed |= learn_group(r, &b->events[i]);
		r->stores_below |= b->events[i].type == KV_EVENT_STORED && b->events[i].tier != KV_TIER_GPU;
	}
	if (!changed)
		return;
	uint32_t unit = smallest_block(r);
	if (r->unit && unit != r->unit) {
		/* Keys chained in another unit are no use; what they were is on the wire again only in a replay. */
		clear_view(r);
		r->wrong = true;
	}
	r->unit = unit;
	r->sink.groups(r->arg, r->groups, r->n_groups);
}

/* ---- keys ---- */

static bool lines_up(const struct kv_event *e) { return e->block_size && e->n_ids == e->n_hashes * (uint64_t)e->block_size; }

static bool is_tail(const struct kv_rank *r, const struct kv_event *e) { return e->block_size < r->groups[e->group].block_size; }

/* From whichever tier holds it. */
static bool key_of(const struct kv_rank *r, uint64_t hash, uint64_t *ret_key)
{
	for (size_t t = 0; t < KV_TIERS; t++) {
		const struct kv_slot *s = kv_table_find(&r->tables[t], hash);
		if (s) {
			*ret_key = s->key;
			return true;
		}
	}
	return map_get(&r->learnt, hash, ret_key);
}

static bool parent_key(const struct kv_rank *r, const struct kv_event *e, uint64_t *ret_key)
{
	if (e->has_parent)
		return key_of(r, e->parent, ret_key);
	*ret_key = kv_seed(e->adapter);
	return true;
}

/* The key behind block i of an event whose hashes line up. Blocks of several units are chained unit by unit, which cannot
 * be done with an image in them: which of the units it touches is not said. */
static bool next_key(const struct kv_rank *r, const struct kv_event *e, size_t i, uint64_t *key)
{
	const struct kv_block_extras *x = e->extras ? &e->extras[i] : &(struct kv_block_extras){ 0 };
	const uint32_t *ids = e->ids + i * e->block_size;
	if (e->block_size == r->unit) {
		*key = kv_key_next(*key, ids, r->unit, x->p, x->n);
		return true;
	}
	for (size_t j = 0; j < x->n; j++)
		if (x->p[j].kind != KV_EXTRA_SALT)
			return false;
	for (uint32_t at = 0; at < e->block_size; at += r->unit)
		*key = kv_key_next(*key, ids + at, r->unit, x->p, at == 0 ? x->n : 0);
	return true;
}

/* First pass: hash -> key from one event. */
static void learn_keys(struct kv_rank *r, const struct kv_event *e)
{
	uint64_t key;
	if (e->type != KV_EVENT_STORED || e->tier != KV_TIER_GPU || e->block_size != r->unit || !lines_up(e) || is_tail(r, e) ||
		!parent_key(r, e, &key))
		return;
	for (size_t i = 0; i < e->n_hashes && next_key(r, e, i, &key); i++)
		map_put(&r->learnt, e->hashes[i], key);
}

static bool needs_two_passes(const struct kv_rank *r, const struct kv_batch *b)
{
	for (size_t i = 0; i < b->n_events; i++) {
		const struct kv_event *e = &b->events[i];
		if (e->type == KV_EVENT_STORED && e->n_hashes && (!lines_up(e) || e->block_size != r->unit))
			return true;
	}
	return false;
}

/* ---- holdings ---- */

static uint64_t pair(uint64_t x, uint32_t group) { return hash_mix(x + (group + 1) * 0x9e3779b97f4a7c15u); }

/* Adds by to the count at k; the count after. */
static uint64_t count(struct map *m, uint64_t k, int by)
{
	uint64_t n = 0;
	map_get(m, k, &n);
	n += (uint64_t)(int64_t)by;
	if (n)
		map_put(m, k, n);
	else
		map_del(m, k);
	return n;
}

/* A group of a tier, as one number. */
static uint32_t place_of(enum kv_tier tier, uint32_t group) { return (uint32_t)tier * KV_MAX_GROUPS + group; }

static void hold(struct kv_rank *r, struct kv_slot *s, enum kv_tier tier, uint32_t group)
{
	uint16_t bit = (uint16_t)(1u << group);
	if (s->groups & bit) {
		s->flags |= KV_SLOT_COPIES;
		count(&r->copies, pair(s->hash, place_of(tier, group)), 1);
		return;
	}
	s->groups |= bit;
	if (!(s->flags & KV_SLOT_SHARED) || count(&r->shared, pair(s->key, place_of(tier, group)), 1) == 1)
		tell(r, (struct kv_delta){ .key = s->key, .add_groups = bit, .tier = tier });
}

static struct kv_slot *add_slot(struct kv_rank *r, enum kv_tier tier, uint64_t hash, uint64_t key, uint16_t flags)
{
	struct kv_slot *s = kv_table_add(&r->tables[tier], hash, tier == KV_TIER_GPU ? r->capacity : 0, kv_rank_limit(r, tier));
	s->key = key;
	s->flags = flags;
	return s;
}

void kv_rank_put(struct kv_rank *r, enum kv_tier tier, const struct kv_slot *was)
{
	struct kv_slot *s = add_slot(r, tier, was->hash, was->key, was->flags);
	for (uint32_t groups = was->groups; groups; groups &= groups - 1)
		hold(r, s, tier, (uint32_t)__builtin_ctz(groups));
}

static void let_go(struct kv_rank *r, struct kv_slot *s, enum kv_tier tier, uint32_t group)
{
	uint16_t bit = (uint16_t)(1u << group);
	uint64_t more, copies = pair(s->hash, place_of(tier, group));
	if (s->flags & KV_SLOT_COPIES && map_get(&r->copies, copies, &more)) {
		count(&r->copies, copies, -1);
		return;
	}
	if (!(s->flags & KV_SLOT_SHARED) || count(&r->shared, pair(s->key, place_of(tier, group)), -1) == 0)
		tell(r, (struct kv_delta){ .key = s->key, .del_groups = bit, .tier = tier });
	s->groups &= (uint16_t)~bit;
	if (s->groups)
		return;
	if (r->stores_below)
		map_put(&r->learnt, s->hash, s->key);
	kv_table_del(&r->tables[tier], s);
}

static void store_block(struct kv_rank *r, const struct kv_event *e, uint64_t hash, struct kv_slot *s, uint64_t key)
{
	if (!s) {
		if (r->tables[e->tier].n >= kv_rank_limit(r, e->tier)) {
			r->wrong |= e->tier == KV_TIER_GPU;
			r->s.over_capacity++;
			return;
		}
		s = add_slot(r, e->tier, hash, key, e->tier != KV_TIER_GPU || e->adapter.n || !e->extras ? KV_SLOT_SHARED : 0);
	}
	r->s.stored_blocks++;
	hold(r, s, e->tier, e->group);
}

/* The key of an event's block i that its tier does not hold yet. Below the GPU what is known of a hash goes first: these
 * events leave extra keys out. */
static bool place(const struct kv_rank *r, const struct kv_event *e, size_t i, bool *chained, uint64_t *key)
{
	if (e->tier == KV_TIER_GPU ? map_get(&r->learnt, e->hashes[i], key) : key_of(r, e->hashes[i], key))
		return true;
	*chained = *chained && next_key(r, e, i, key);
	return *chained || key_of(r, e->hashes[i], key);
}

static void store(struct kv_rank *r, const struct kv_event *e)
{
	const struct kv_table *t = &r->tables[e->tier];
	uint64_t key = 0;
	bool chained = lines_up(e) && r->unit && !is_tail(r, e) && e->block_size % r->unit == 0 && parent_key(r, e, &key);
	for (size_t i = 0; i < e->n_hashes; i++) {
		if (i + AHEAD < e->n_hashes)
			kv_table_prefetch(t, e->hashes[i + AHEAD]);
		struct kv_slot *s = kv_table_find(t, e->hashes[i]);
		if (s)
			key = s->key;
		else if (!place(r, e, i, &chained, &key)) {
			r->s.unplaced++;
			continue;
		}
		store_block(r, e, e->hashes[i], s, key);
	}
}

static void remove_blocks(struct kv_rank *r, const struct kv_event *e)
{
	for (size_t i = 0; i < e->n_hashes; i++) {
		struct kv_slot *s = kv_table_find(&r->tables[e->tier], e->hashes[i]);
		uint32_t groups = s ? (e->group_known ? s->groups & (1u << e->group) : s->groups) : 0;
		r->s.removed_blocks += groups != 0;
		/* The slot goes only with its last group, and then the loop is over too. */
		for (; groups; groups &= groups - 1)
			let_go(r, s, e->tier, (uint32_t)__builtin_ctz(groups));
	}
}

void kv_rank_cleared(struct kv_rank *r)
{
	r->s.clears++;
	r->s.uncertain = false;
	r->full_replays = 0;
	clear_view(r);
}

static void apply_event(struct kv_rank *r, const struct kv_event *e)
{
	r->s.events++;
	if (e->type == KV_EVENT_CLEARED) {
		kv_rank_cleared(r);
	} else if (e->tier >= KV_TIERS || e->group >= KV_MAX_GROUPS) {
		r->s.skipped++;
	} else if (e->type == KV_EVENT_STORED) {
		store(r, e);
	} else {
		remove_blocks(r, e);
	}
}

static void prefetch(const struct kv_rank *r, const struct kv_event *e)
{
	for (size_t i = 0; e->tier < KV_TIERS && i < MIN(e->n_hashes, (size_t)AHEAD); i++)
		kv_table_prefetch(&r->tables[e->tier], e->hashes[i]);
}

void kv_rank_apply(struct kv_rank *r, const struct kv_batch *b)
{
	r->s.batches++;
	r->s.skipped += b->skipped;
	r->s.odd_parts += b->odd_parts;
	r->s.last_ts_s = b->ts_s;
	learn_groups(r, b);
	bool two = needs_two_passes(r, b);
	for (size_t i = 0; two && i < b->n_events; i++)
		learn_keys(r, &b->events[i]);
	for (size_t i = 0; i < MIN(b->n_events, (size_t)AHEAD); i++)
		prefetch(r, &b->events[i]);
	for (size_t i = 0; i < b->n_events; i++) {
		if (i + AHEAD < b->n_events)
			prefetch(r, &b->events[i + AHEAD]);
		apply_event(r, &b->events[i]);
	}
	if (two || r->stores_below)
		map_done(&r->learnt);
	kv_rank_flush(r);
}
