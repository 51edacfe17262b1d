/* hits.c: one walk over a prompt's keys gives every candidate's hit.
 *
 * Full attention: a bit per candidate is alive until its first missing block; the walk stops when none is left. Keys are
 * taken in small lots so that memory is asked for well ahead: first the slot, then, when many hold the key, its row of
 * bits. What a candidate has in flight of the prompt is known at once (tree.c): it joins the walk only behind that.
 * Tiers below the GPU lengthen it (lower.c). Other groups only shorten what full attention found, candidate by candidate (the rule: vllm-observed.md I.3). */
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

/* The row of a value; one that lies in the slot is spread out in `bits`. */
inlined const uint64_t *row_of(const uint64_t *rows, uint64_t v, uint64_t *bits, uint32_t words)
{
	if (kv_is_row(v))
		return rows + (v >> 32) * words;
	for (uint32_t i = 0; i < words; i++)
		bits[i] = 0;
	kv_spread(v, bits);
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

/* Some lack this item. Is anybody left? */
static bool drop_lacking(struct walk *w, uint32_t item, const uint64_t *row)
{
	uint64_t left = 0;
	for (uint32_t k = 0; k < w->words; k++) {
		note_run(w, k, w->alive[k] & ~row[k], item);
		w->alive[k] &= row[k];
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
inlined void walk_lots(struct walk *w, uint32_t from, uint32_t words, bool plain)
{
	struct lot lots[RING];
	for (uint32_t i = 0; i < RING - 1; i++)
		ask_slots(w, from + i * LOT, plain, &lots[i]);
	ask_rows(w, from, words, &lots[0]);
	for (uint32_t turn = 0; from < w->n_items; from += LOT, turn++) {
		ask_slots(w, from + (RING - 1) * LOT, plain, &lots[(turn + RING - 1) % RING]);
		ask_rows(w, from + LOT, words, &lots[(turn + 1) % RING]);
		if (!use_lot(w, from, words, &lots[turn % RING]))
			return;
	}
}

/* Over the items from..n_items: fills w->run for those that drop out. */
static void walk(struct walk *w, uint32_t from)
{
	bool plain = w->spec->n_groups == 1 && w->spec->step == 1;
	if (w->words == 2 && plain)
		walk_lots(w, from, 2, true);
	else
		walk_lots(w, from, w->words, false);
}

/* ---- the other groups ---- */

/* One candidate under its plan. */
struct fit {
	const struct kv_index *x;
	const struct kv_rank_entry *r;
	const uint64_t *keys;
	uint32_t full_tok; /* the run of spec 0 when it is full attention */
	uint32_t reach; /* blocks of the plan's unit in flight from the first on */
};

static bool holds(const struct fit *f, uint64_t key)
{
	const struct kv_rank_entry *r = f->r;
	return kv_holders_has(&f->x->held, key, r->seat) || (r->n_flights && kv_holders_has(&f->x->flights.held, key, r->seat));
}

static bool holds_all(const struct fit *f, const struct kv_spec *s, uint32_t i)
{
	if (s->kind == KV_GROUP_FULL && (i + 1) * s->step <= f->reach)
		return true;
	for (uint32_t j = 0; j < s->n_groups; j++)
		if (!holds(f, kv_spec_key(s, f->keys, i, j)))
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
	struct kv_load *ret_loads;
};

static const struct kv_rank_entry *under(const struct asked *a, size_t i, const struct kv_plan *plan)
{
	const struct kv_rank_entry *r = kv_rank_at(a->x, a->ranks[i]);
	return r && r->plan == plan ? r : NULL;
}

/* Those whose flights end with this block join in. The next block where somebody does, or `whole`. */
static uint32_t join(const struct asked *a, const struct kv_plan *plan, uint32_t block, uint32_t whole)
{
	uint32_t next = whole;
	for (size_t i = 0; i < a->n; i++) {
		const struct kv_rank_entry *r = under(a, i, plan);
		uint32_t reach = r ? MIN(a->x->scratch->reach[a->ranks[i]] / plan->specs[0].step, whole) : 0;
		if (r && reach == block)
			a->x->scratch->alive[r->seat / 64] |= 1ull << (r->seat % 64);
		else if (reach > block)
			next = MIN(next, reach);
	}
	return next;
}

static bool anybody(const struct walk *w)
{
	uint64_t left = 0;
	for (uint32_t k = 0; k < w->words; k++)
		left |= w->alive[k];
	return left != 0;
}

/* Fills scratch->run, by seat: whole leading blocks of spec 0. */
static void walk_full(const struct asked *a, const struct kv_plan *plan, const struct kv_keyset *set)
{
	const struct kv_index *x = a->x;
	const struct kv_spec *spec = &plan->specs[0];
	uint64_t limit = MIN(a->p->n_tok ? a->p->n_tok - 1 : 0, (uint64_t)set->n * plan->unit);
	uint32_t whole = (uint32_t)(limit / spec->block_size);
	struct walk w = { .x = x, .spec = spec, .keys = set->keys, .words = x->held.words, .alive = x->scratch->alive, .run = x->scratch->run };
	memset(w.alive, 0, w.words * sizeof(*w.alive));
	for (size_t i = 0; i < a->n; i++)
		if (under(a, i, plan))
			x->scratch->reach[a->ranks[i]] = 0;
	kv_tree_reach(&x->flights.tree, set, whole * spec->step, x->scratch->reach);
	for (uint32_t at = 0, next; at < whole; at = next) {
		next = join(a, plan, at, whole);
		w.n_items = next * spec->n_groups;
		if (anybody(&w))
			walk(&w, at * spec->n_groups);
	}
	join(a, plan, whole, whole);
	for (uint32_t i = 0; i < w.words; i++)
		note_run(&w, i, w.alive[i], whole * spec->n_groups);
}

static void hits_of_plan(const struct asked *a, const struct kv_plan *plan)
{
	const struct kv_keyset *set = kv_prompt_set(a->p, plan->unit);
	bool full = plan->n_specs && plan->specs[0].kind == KV_GROUP_FULL;
	if (!set || plan->odd)
		return;
	uint32_t max = most(plan, set, a->p->n_tok);
	bool lower = false;
	if (full)
		walk_full(a, plan, set);
	for (size_t i = 0; i < a->n; i++) {
		const struct kv_rank_entry *r = under(a, i, plan);
		if (!r)
			continue;
		uint32_t run_tok = full ? a->x->scratch->run[r->seat] * plan->specs[0].block_size : 0;
		struct fit f = { a->x, r, set->keys, run_tok, full ? a->x->scratch->reach[a->ranks[i]] : 0 };
		a->ret_hit_tok[i] = plan->simple ? MIN(run_tok, max) : fit(&f, plan, max);
		lower |= r->lower != 0;
	}
	if (lower && plan->simple)
		kv_index_lower(a->x, plan, &(struct kv_lower_ask){ a->p, a->ranks, a->n, a->ret_hit_tok, a->ret_loads });
}

void kv_index_hits(const struct kv_index *x, const struct kv_prompt *p, const kv_rank_id *ranks, size_t n, uint32_t *ret_hit_tok, struct kv_load *ret_loads)
{
	struct asked a = { x, p, ranks, n, ret_hit_tok, ret_loads };
	memset(ret_hit_tok, 0, n * sizeof(*ret_hit_tok));
	if (ret_loads)
		memset(ret_loads, 0, n * sizeof(*ret_loads));
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
	struct asked a = { x, p, &id, 1, NULL, NULL };
	walk_full(&a, plan, set);
	return x->scratch->run[r->seat] * plan->specs[0].block_size;
}
