/* hits.c: one walk over a prompt's keys gives every candidate's hit.
 *
 * Full attention: a bit per candidate is alive until its first missing block; the walk stops when none is left. Keys are
 * taken in small lots so that memory is asked for well ahead: first the slot, then, when many hold the key, its row of
 * bits. A candidate about to drop out is kept alive by a prompt in flight that will hold the block.
 * Other groups only shorten what full attention found, candidate by candidate (the rule: vllm-observed.md I.3). */
#include <string.h>

#include "kv/index_priv.h"

enum { LOT = 16, RING = 4 };

struct walk {
	const struct kv_index *x;
	const struct kv_spec *spec;
	const uint64_t *keys;
	uint32_t n_items; /* blocks * groups of the spec: group by group within a block */
	uint32_t words;
	uint64_t *alive;
	uint32_t *run; /* by seat: whole leading blocks */
	bool flights;  /* a prompt in flight vouched for somebody: more such blocks follow */
};

/* What a lot of items needs on its way: asked of memory, then read, then used. */
struct lot {
	const struct kv_entry *home[LOT];
	uint64_t key[LOT], value[LOT];
};

#define inlined static inline __attribute__((always_inline))

/* The key of an item: group by group within a block. */
static uint64_t key_at(const struct walk *w, uint32_t item)
{
	uint32_t n = w->spec->n_groups;
	return kv_spec_key(w->spec, w->keys, item / n, item % n);
}

/* Loops keep what they read again and again in locals: the compiler must assume that a store changes it. */
inlined void ask_slots(const struct walk *w, uint32_t from, bool plain, struct lot *l)
{
	uint32_t n = from < w->n_items ? MIN((uint32_t)LOT, w->n_items - from) : 0;
	const struct kv_shard *shards = w->x->held.shards;
	const uint64_t *keys = w->keys;
	uint64_t salt = w->spec->salts[0];
	for (uint32_t i = 0; i < n; i++) {
		uint64_t key = plain ? keys[from + i] + salt : key_at(w, from + i);
		const struct kv_shard *s = shards + (key >> 54);
		const struct kv_entry *home = s->slots + kv_home(s, key);
		__builtin_prefetch(home);
		l->key[i] = key;
		l->home[i] = home;
	}
	for (uint32_t i = 0; w->flights && i < n; i++)
		kv_prefetch(&w->x->flights.held, l->key[i]);
}

/* An empty slot has no key and no value, so a match needs no second look. */
inlined uint64_t read_slot(const struct kv_holders *h, const struct kv_entry *e, uint64_t key)
{
	if (e[0].key == key)
		return e[0].value;
	if (e[1].key == key)
		return e[1].value;
	if (e[2].key == key)
		return e[2].value;
	return e[3].key == key ? e[3].value : kv_value(h, key);
}

inlined void ask_rows(const struct walk *w, uint32_t from, uint32_t words, struct lot *l)
{
	uint32_t n = from < w->n_items ? MIN((uint32_t)LOT, w->n_items - from) : 0;
	const struct kv_holders *h = &w->x->held;
	const uint64_t *rows = h->rows;
	for (uint32_t i = 0; i < n; i++) {
		uint64_t v = read_slot(h, l->home[i], l->key[i]);
		l->value[i] = v;
		if (kv_is_row(v))
			__builtin_prefetch(rows + (v >> 32) * words);
	}
}

bool kv_index_holds(const struct kv_index *x, const struct kv_rank_entry *r, uint64_t key)
{
	return kv_holders_has(&x->held, key, r->seat) || (r->n_flights && kv_holders_has(&x->flights.held, key, r->seat));
}

/* The row of a value; one that lies in the slot is spread out in `bits`. */
inlined const uint64_t *row_of(const uint64_t *rows, uint64_t v, uint64_t *bits, uint32_t words)
{
	if (kv_is_row(v))
		return rows + (v >> 32) * words;
	for (uint32_t i = 0; i < words; i++)
		bits[i] = 0;
	uint64_t ids = v >> 4;
	for (uint32_t n = v & 15; n; n--, ids >>= 12)
		bits[(ids & 0xfff) / 64] |= 1ull << (ids % 64);
	return bits;
}

inlined uint64_t lacking_in(const uint64_t *alive, const uint64_t *row, uint32_t words)
{
	uint64_t lacking = (alive[0] & ~row[0]) | (alive[1] & ~row[1]);
	for (uint32_t k = 2; k < words; k++)
		lacking |= alive[k] & ~row[k];
	return lacking;
}

static void note_run(const struct walk *w, uint32_t word, uint64_t gone, uint32_t item)
{
	for (; gone; gone &= gone - 1)
		w->run[word * 64 + (uint32_t)__builtin_ctzll(gone)] = item / w->spec->n_groups;
}

/* Some lack this item. Those that a prompt in flight vouches for stay; is anybody left? */
static bool drop_lacking(struct walk *w, uint32_t item, const uint64_t *row)
{
	const struct kv_holders *flights = &w->x->flights.held;
	uint64_t v = flights->entries ? kv_value(flights, key_at(w, item)) : 0, left = 0;
	const uint64_t *vouched = row_of(flights->rows, v, w->x->scratch->vouched, w->words);
	w->flights |= v != 0;
	for (uint32_t k = 0; k < w->words; k++) {
		uint64_t gone = w->alive[k] & ~row[k] & ~vouched[k];
		note_run(w, k, gone, item);
		w->alive[k] &= ~gone;
		left |= w->alive[k];
	}
	return left != 0;
}

/* One lot; is anybody left behind it? */
inlined bool use_lot(struct walk *w, uint32_t from, uint32_t words, const struct lot *l)
{
	uint32_t n = MIN((uint32_t)LOT, w->n_items - from);
	const uint64_t *rows = w->x->held.rows, *alive = w->alive;
	uint64_t *bits = w->x->scratch->bits;
	for (uint32_t i = 0; i < n; i++) {
		const uint64_t *row = row_of(rows, l->value[i], bits, words);
		if (__builtin_expect(lacking_in(alive, row, words) != 0, 0) && !drop_lacking(w, from + i, row))
			return false;
	}
	return true;
}

/* `words` and `plain` are constants where this is inlined for the usual case: one group of the plan's own block size. */
inlined void walk_lots(struct walk *w, uint32_t words, bool plain)
{
	struct lot lots[RING];
	for (uint32_t i = 0; i < RING - 1; i++)
		ask_slots(w, i * LOT, plain, &lots[i]);
	ask_rows(w, 0, words, &lots[0]);
	for (uint32_t from = 0, turn = 0; from < w->n_items; from += LOT, turn++) {
		ask_slots(w, from + (RING - 1) * LOT, plain, &lots[(turn + RING - 1) % RING]);
		ask_rows(w, from + LOT, words, &lots[(turn + 1) % RING]);
		if (!use_lot(w, from, words, &lots[turn % RING]))
			return;
	}
}

/* Fills w->run for every seat alive at the start. */
static void walk(struct walk *w)
{
	uint32_t whole = w->n_items / w->spec->n_groups;
	bool plain = w->spec->n_groups == 1 && w->spec->step == 1;
	if (w->words == 2 && plain)
		walk_lots(w, 2, true);
	else
		walk_lots(w, w->words, false);
	for (uint32_t i = 0; i < w->words; i++)
		for (uint64_t b = w->alive[i]; b; b &= b - 1)
			w->run[i * 64 + (uint32_t)__builtin_ctzll(b)] = whole;
}

/* ---- the other groups ---- */

/* One candidate under its plan. */
struct fit {
	const struct kv_index *x;
	const struct kv_rank_entry *r;
	const uint64_t *keys;
	uint32_t full_tok; /* the run of spec 0 when it is full attention */
};

static bool holds_all(const struct fit *f, const struct kv_spec *s, uint32_t i)
{
	for (uint32_t j = 0; j < s->n_groups; j++)
		if (!kv_index_holds(f->x, f->r, kv_spec_key(s, f->keys, i, j)))
			return false;
	return true;
}

static uint32_t aligned(uint32_t blocks, uint32_t block_size, uint32_t align) { return blocks - blocks * block_size % align / block_size; }

static uint32_t fit_run(const struct fit *f, const struct kv_spec *s, uint32_t from, uint32_t m)
{
	while (from < m && holds_all(f, s, from))
		from++;
	return from;
}

static uint32_t fit_mamba(const struct fit *f, const struct kv_spec *s, uint32_t m, uint32_t align)
{
	for (uint32_t n = m; n > 0; n--)
		if (n * s->block_size % align == 0 && holds_all(f, s, n - 1))
			return n;
	return 0;
}

/* A full window of blocks that ends at the hit, from the right; or a shorter run that begins with the prompt. */
static uint32_t fit_window(const struct fit *f, const struct kv_spec *s, uint32_t m, uint32_t align)
{
	uint32_t need = (uint32_t)div_ceil_u64(s->window_tok - 1, s->block_size), run = 0;
	for (uint32_t i = m; i-- > 0;) {
		if (run == 0 && (i + 1) * s->block_size % align)
			continue;
		if (!holds_all(f, s, i))
			run = 0;
		else if (++run >= need)
			return i + run;
	}
	return aligned(run, s->block_size, align);
}

/* Blocks before the chunk that holds the end are not looked at. */
static uint32_t fit_chunked(const struct fit *f, const struct kv_spec *s, uint32_t m, uint32_t align)
{
	uint32_t chunk = m * s->block_size / s->window_tok * s->window_tok;
	return aligned(fit_run(f, s, chunk / s->block_size, m), s->block_size, align);
}

static uint32_t fit_spec(const struct fit *f, const struct kv_plan *p, uint32_t at, uint32_t cur_tok)
{
	const struct kv_spec *s = &p->specs[at];
	uint32_t m = cur_tok / s->block_size, n = 0;
	switch (s->kind) {
	case KV_GROUP_WINDOW: n = s->window_tok > 1 ? fit_window(f, s, m, p->align) : m; break;
	case KV_GROUP_MAMBA: n = fit_mamba(f, s, m, p->align); break;
	case KV_GROUP_CHUNKED: n = fit_chunked(f, s, m, p->align); break;
	case KV_GROUP_FULL:
	case KV_GROUP_UNKNOWN:
		n = at == 0 ? MIN(m, f->full_tok / s->block_size) : fit_run(f, s, 0, m);
		n = aligned(n, s->block_size, p->align);
		break;
	}
	return n * s->block_size;
}

/* Each spec may only shorten the hit; until none does. One full-attention spec and one other need one pass: the first is
 * closed downwards. */
static uint32_t fit(const struct fit *f, const struct kv_plan *p, uint32_t hit)
{
	for (;;) {
		uint32_t cur = hit;
		for (uint32_t i = 0; i < p->n_specs && cur; i++)
			cur = fit_spec(f, p, i, cur);
		if (cur == hit || cur == 0 || (p->n_specs == 2 && p->specs[0].kind == KV_GROUP_FULL && p->specs[1].kind != KV_GROUP_FULL))
			return cur;
		hit = cur;
	}
}

/* The longest hit that limit, alignment and the keys given allow. */
static uint32_t most(const struct kv_plan *plan, const struct kv_keyset *set, uint32_t n_tok)
{
	uint32_t max = kv_plan_max_hit(plan, n_tok);
	uint64_t keyed = (uint64_t)set->n * plan->unit;
	return max <= keyed ? max : (uint32_t)(keyed - keyed % plan->align);
}

/* ---- candidates of one plan ---- */

struct asked {
	const struct kv_index *x;
	const struct kv_prompt *p;
	const kv_rank_id *ranks;
	size_t n;
	uint32_t *ret_hit_tok;
};

static void walk_full(const struct asked *a, const struct kv_plan *plan, const struct kv_keyset *set)
{
	const struct kv_index *x = a->x;
	uint64_t limit = MIN(a->p->n_tok ? a->p->n_tok - 1 : 0, (uint64_t)set->n * plan->unit);
	struct walk w = {
		.x = x,
		.spec = &plan->specs[0],
		.keys = set->keys,
		.n_items = (uint32_t)(limit / plan->specs[0].block_size) * plan->specs[0].n_groups,
		.words = x->held.words,
		.alive = x->scratch->alive,
		.run = x->scratch->run,
	};
	memset(w.alive, 0, w.words * sizeof(*w.alive));
	for (size_t i = 0; i < a->n; i++) {
		const struct kv_rank_entry *r = kv_rank_at(x, a->ranks[i]);
		if (r && r->plan == plan)
			w.alive[r->seat / 64] |= 1ull << (r->seat % 64);
	}
	walk(&w);
}

static void hits_of_plan(const struct asked *a, const struct kv_plan *plan)
{
	const struct kv_keyset *set = kv_prompt_set(a->p, plan->unit);
	bool full = plan->n_specs && plan->specs[0].kind == KV_GROUP_FULL;
	if (!set || plan->odd)
		return;
	uint32_t max = most(plan, set, a->p->n_tok);
	if (full)
		walk_full(a, plan, set);
	for (size_t i = 0; i < a->n; i++) {
		const struct kv_rank_entry *r = kv_rank_at(a->x, a->ranks[i]);
		if (!r || r->plan != plan)
			continue;
		uint32_t run_tok = full ? a->x->scratch->run[r->seat] * plan->specs[0].block_size : 0;
		struct fit f = { a->x, r, set->keys, run_tok };
		a->ret_hit_tok[i] = plan->simple ? MIN(run_tok, max) : fit(&f, plan, max);
	}
}

void kv_index_hits(const struct kv_index *x, const struct kv_prompt *p, const kv_rank_id *ranks, size_t n, uint32_t *ret_hit_tok)
{
	struct asked a = { x, p, ranks, n, ret_hit_tok };
	memset(ret_hit_tok, 0, n * sizeof(*ret_hit_tok));
	for (size_t i = 0; i < x->plans.n; i++)
		for (size_t j = 0; j < n; j++) {
			const struct kv_rank_entry *r = kv_rank_at(x, ranks[j]);
			if (r && r->plan == x->plans.p[i]) {
				hits_of_plan(&a, r->plan);
				break;
			}
		}
}

uint32_t kv_index_full_match(const struct kv_index *x, const struct kv_prompt *p, kv_rank_id id)
{
	const struct kv_rank_entry *r = kv_rank_at(x, id);
	const struct kv_plan *plan = r ? r->plan : NULL;
	const struct kv_keyset *set = plan ? kv_prompt_set(p, plan->unit) : NULL;
	if (!set || plan->odd || plan->specs[0].kind != KV_GROUP_FULL)
		return 0;
	struct asked a = { x, p, &id, 1, NULL };
	walk_full(&a, plan, set);
	return x->scratch->run[r->seat] * plan->specs[0].block_size;
}
