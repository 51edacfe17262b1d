/* flight.c: what prompts in flight will hold. A worker shows a block to its other requests when the step that computes it
 * is scheduled and announces it after that step, so under load it is ahead of its events by what is in flight.
 *
 * All blocks a flight will hold are put down, also those that are held already: they may be evicted or cleared while the
 * request waits, and it brings them back. A clear changes nothing here. Full attention holds a prompt from its first block
 * on: that is its path in a tree. What the other groups will hold are single blocks, put down key by key. */
#include <string.h>

#include "base/hash.h"
#include "kv/index_priv.h"

void kv_flights_init(struct kv_flights *f)
{
	kv_holders_init(&f->held);
	map_init(&f->more);
	kv_tree_init(&f->tree);
	VEC_PUSH(&f->v, (struct kv_flight_entry){ 0 });
}

/* Mixed twice: keys carry their group as a multiple of the same number an id would be multiplied with. */
static uint64_t pair(uint64_t key, kv_rank_id id) { return hash_mix(hash_mix(key) + id); }

static void put(struct kv_index *x, kv_rank_id id, uint64_t key)
{
	struct kv_flights *f = &x->flights;
	uint64_t n = 0;
	if (kv_holders_add(&f->held, key, x->ranks[id].seat))
		return;
	map_get(&f->more, pair(key, id), &n);
	map_put(&f->more, pair(key, id), n + 1);
}

static void take(struct kv_index *x, kv_rank_id id, uint64_t key)
{
	struct kv_flights *f = &x->flights;
	uint64_t n;
	if (!map_get(&f->more, pair(key, id), &n))
		kv_holders_del(&f->held, key, x->ranks[id].seat);
	else if (n > 1)
		map_put(&f->more, pair(key, id), n - 1);
	else
		map_del(&f->more, pair(key, id));
}

typedef void (*block_fn)(struct kv_index *x, kv_rank_id id, uint64_t key);

struct placing {
	struct kv_index *x;
	const struct kv_flight_entry *f;
	const struct kv_spec *s;
	const uint64_t *keys;
	uint32_t n; /* whole blocks of the spec */
	block_fn fn;
};

static void blocks(const struct placing *p, uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < MIN(to, p->n); i++)
		for (uint32_t j = 0; j < p->s->n_groups; j++)
			p->fn(p->x, p->f->rank, kv_spec_key(p->s, p->keys, i, j));
}

/* Sparse storing: the window behind which a resend of this prompt goes on, and the one where its own match ended. */
static void window_blocks(const struct placing *p)
{
	uint32_t need = (uint32_t)div_ceil_u64(p->s->window_tok - 1, p->s->block_size);
	uint32_t end = (p->f->p.n_tok - 1) / p->s->block_size, match = p->f->match_tok / p->s->block_size;
	uint32_t from = end > need ? end - need : 0;
	blocks(p, match > need ? match - need : 0, MIN(match, from));
	blocks(p, from, end);
}

static void chunk_blocks(const struct placing *p)
{
	uint32_t end = (p->f->p.n_tok - 1) / p->s->block_size;
	blocks(p, (p->f->p.n_tok - 1) / p->s->window_tok * p->s->window_tok / p->s->block_size, end);
}

/* Full attention is in the tree. */
static void each_sparse_block(struct kv_index *x, const struct kv_flight_entry *f, block_fn fn)
{
	const struct kv_keyset *set = f->plan && !f->plan->odd ? kv_prompt_set(&f->p, f->plan->unit) : NULL;
	for (uint32_t i = 0; set && f->p.n_tok && i < f->plan->n_specs; i++) {
		const struct kv_spec *s = &f->plan->specs[i];
		struct placing p = { x, f, s, set->keys, MIN(set->n / s->step, f->p.n_tok / s->block_size), fn };
		if (s->kind == KV_GROUP_WINDOW)
			window_blocks(&p);
		else if (s->kind == KV_GROUP_CHUNKED)
			chunk_blocks(&p);
		/* Mamba states are where the engine's chunks happen to end: only its events tell. */
	}
}

static uint32_t put_path(struct kv_index *x, const struct kv_flight_entry *f)
{
	const struct kv_plan *plan = f->plan;
	if (!plan || plan->odd || plan->specs[0].kind != KV_GROUP_FULL)
		return 0;
	for (uint32_t i = 0; i < f->p.n_sets; i++)
		if (f->chains[i]->unit == plan->unit)
			return kv_tree_add(&x->flights.tree, f->chains[i], MIN(f->chains[i]->n, f->p.n_tok / plan->unit), f->rank);
	return 0;
}

static void place(struct kv_index *x, uint32_t at)
{
	struct kv_flight_entry *f = &x->flights.v.p[at];
	struct kv_plan *plan = x->ranks[f->rank].plan;
	if (f->plan != plan)
		f->match_tok = plan && !plan->simple ? kv_index_full_match(x, &f->p, f->rank) : 0;
	f->plan = plan;
	f->run = put_path(x, f);
	each_sparse_block(x, f, put);
}

static void unplace(struct kv_index *x, uint32_t at)
{
	struct kv_flight_entry *f = &x->flights.v.p[at];
	kv_tree_del(&x->flights.tree, f->run, f->rank);
	f->run = 0;
	each_sparse_block(x, f, take);
}

/* The plan they were placed under lives until this returns. */
void kv_flights_lift(struct kv_index *x, kv_rank_id id)
{
	for (uint32_t at = x->ranks[id].flights; at; at = x->flights.v.p[at].next)
		unplace(x, at);
}

void kv_flights_land(struct kv_index *x, kv_rank_id id)
{
	for (uint32_t at = x->ranks[id].flights; at; at = x->flights.v.p[at].next)
		place(x, at);
}

void kv_flights_abandon(struct kv_index *x, kv_rank_id id)
{
	for (uint32_t at = x->ranks[id].flights, next; at; at = next) {
		struct kv_flight_entry *f = &x->flights.v.p[at];
		next = f->next;
		unplace(x, at);
		f->dead = true;
		f->next = f->prev = 0;
	}
	x->ranks[id].flights = x->ranks[id].n_flights = 0;
}

static void copy_prompt(struct kv_tree *t, struct kv_flight_entry *f, const struct kv_prompt *p)
{
	f->p = *p;
	f->p.n_sets = MIN(p->n_sets, (uint32_t)KV_MAX_SIZES);
	for (uint32_t i = 0; i < f->p.n_sets; i++) {
		f->chains[i] = kv_chain_new(t, &p->sets[i]);
		f->p.sets[i].keys = f->chains[i]->keys;
	}
}

static void free_prompt(struct kv_tree *t, struct kv_flight_entry *f)
{
	for (uint32_t i = 0; i < f->p.n_sets; i++)
		kv_chain_release(t, f->chains[i]);
	f->p = (struct kv_prompt){ 0 };
}

static uint32_t new_entry(struct kv_flights *f)
{
	uint32_t at = f->free;
	if (at) {
		f->free = f->v.p[at].next;
	} else {
		VEC_PUSH(&f->v, (struct kv_flight_entry){ .gen = 1 });
		at = (uint32_t)(f->v.n - 1);
	}
	f->n++;
	return at;
}

kv_flight kv_index_flight_begin(struct kv_index *x, kv_rank_id id, const struct kv_prompt *p)
{
	if (!kv_rank_at(x, id))
		return 0;
	struct kv_rank_entry *r = &x->ranks[id];
	uint32_t at = new_entry(&x->flights);
	struct kv_flight_entry *f = &x->flights.v.p[at];
	*f = (struct kv_flight_entry){ .gen = f->gen, .used = true, .rank = id, .next = r->flights };
	copy_prompt(&x->flights.tree, f, p);
	if (r->flights)
		x->flights.v.p[r->flights].prev = at;
	r->flights = at;
	place(x, at);
	r->n_flights++;
	return (kv_flight)f->gen << 32 | at;
}

static void unlink_flight(struct kv_index *x, uint32_t at)
{
	struct kv_flight_entry *f = &x->flights.v.p[at];
	struct kv_rank_entry *r = &x->ranks[f->rank];
	if (f->prev)
		x->flights.v.p[f->prev].next = f->next;
	else
		r->flights = f->next;
	if (f->next)
		x->flights.v.p[f->next].prev = f->prev;
	r->n_flights--;
}

static struct kv_flight_entry *entry_of(const struct kv_flights *fl, kv_flight h)
{
	uint32_t at = (uint32_t)h;
	return at && at < fl->v.n && fl->v.p[at].used && fl->v.p[at].gen == h >> 32 ? &fl->v.p[at] : NULL;
}

enum kv_told kv_index_flight_told(const struct kv_index *x, kv_flight h)
{
	const struct kv_flight_entry *f = entry_of(&x->flights, h);
	if (!f || f->dead || !f->plan || f->plan->odd || f->plan->specs[0].kind != KV_GROUP_FULL)
		return KV_TOLD_UNKNOWN;
	const struct kv_spec *s = &f->plan->specs[0];
	const struct kv_keyset *set = kv_prompt_set(&f->p, f->plan->unit);
	uint32_t n = set ? MIN(set->n / s->step, f->p.n_tok / s->block_size) : 0;
	if (n == 0)
		return KV_TOLD_UNKNOWN;
	return kv_holders_has(&x->held, kv_spec_key(s, set->keys, n - 1, 0), x->ranks[f->rank].seat) ? KV_TOLD : KV_NOT_TOLD;
}

void kv_index_flight_end(struct kv_index *x, kv_flight h)
{
	uint32_t at = (uint32_t)h;
	struct kv_flights *fl = &x->flights;
	struct kv_flight_entry *f = entry_of(fl, h);
	if (!f)
		return;
	if (!f->dead) {
		unplace(x, at);
		unlink_flight(x, at);
	}
	free_prompt(&fl->tree, f);
	*f = (struct kv_flight_entry){ .gen = f->gen + 1, .next = fl->free };
	fl->free = at;
	fl->n--;
}

void kv_flights_done(struct kv_index *x)
{
	struct kv_flights *f = &x->flights;
	for (size_t i = 1; i < f->v.n; i++)
		free_prompt(&f->tree, &f->v.p[i]);
	VEC_FREE(&f->v);
	kv_tree_done(&f->tree);
	kv_holders_done(&f->held);
	map_done(&f->more);
}

size_t kv_flights_bytes(const struct kv_flights *f)
{
	return f->v.cap * sizeof(*f->v.p) + f->more.cap * (sizeof(struct map_slot) + 1) + kv_holders_bytes(&f->held) + kv_tree_bytes(&f->tree);
}
