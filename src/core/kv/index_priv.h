/* kv/index_priv.h: the insides of the brain half, shared by its files: sets of holders by key (holders.c), what a rank's
 * groups ask of a hit (plan.c), the walk over a prompt's keys (hits.c) and below the GPU (lower.c), prompts in flight (flight.c, tree.c), the approximate
 * index (approx.c), owner memory (owner.c), and the ranks that tie them together (index.c). */
#ifndef KV_INDEX_PRIV_H
#define KV_INDEX_PRIV_H

#include "base/map.h"
#include "base/vec.h"
#include "kv/index.h"

/* ---- holders.c: key -> set of small numbers. 16 bytes a key while at most five hold it; beyond that a row of bits. The
 * table is cut into shards, so that growing never moves more than a small part of it at once. */
enum { KV_SHARDS = 1024, KV_MAX_WORDS = KV_MAX_RANKS / 64 };

struct kv_entry { uint64_t key, value; };      /* value: 0 = empty, see holders.c */
struct kv_shard { struct kv_entry *slots; uint32_t lines, n; };      /* slots: a cache line of four is where a key's search begins */
struct kv_holders {
	struct kv_shard *shards;
	void **raw;                /* what to free for each shard's slots */
	uint64_t *rows;
	uint32_t words;            /* of a row: 64 numbers each */
	uint32_t n_rows, cap_rows, free_row;
	uint64_t entries, holdings;
	size_t slot_bytes;
};

void kv_holders_init(struct kv_holders *h);
void kv_holders_done(struct kv_holders *h);
bool kv_holders_add(struct kv_holders *h, uint64_t key, uint32_t who);     /* false: was there */
bool kv_holders_del(struct kv_holders *h, uint64_t key, uint32_t who);     /* false: was not there */
bool kv_holders_has(const struct kv_holders *h, uint64_t key, uint32_t who);
/* Rows are made wide enough for this number; before the first add of it. */
void kv_holders_widen(struct kv_holders *h, uint32_t who);
/* Takes every number of the mask (h->words long) out of one shard. */
void kv_holders_scrub(struct kv_holders *h, uint32_t shard, const uint64_t *mask);
size_t kv_holders_bytes(const struct kv_holders *h);

static inline const struct kv_shard *kv_shard_of(const struct kv_holders *h, uint64_t key) { return &h->shards[key >> 54]; }

enum { KV_LINE = 4 };

static inline uint32_t kv_home(const struct kv_shard *s, uint64_t key) { return (uint32_t)((((key << 10) >> 32) * s->lines) >> 32) * KV_LINE; }

static inline void kv_prefetch(const struct kv_holders *h, uint64_t key)
{
	const struct kv_shard *s = kv_shard_of(h, key);
	const struct kv_entry *home = &s->slots[kv_home(s, key)];
	__builtin_prefetch(home);
	__builtin_prefetch(home + KV_LINE);
}

/* Sets the bits of those that lie in the slot itself (a value that is no row). */
static inline void kv_spread(uint64_t v, uint64_t *bits)
{
	uint64_t ids = v >> 4;
	for (uint32_t n = v & 15; n; n--, ids >>= 12)
		bits[(ids & 0xfff) / 64] |= 1ull << (ids % 64);
}

/* The value at a key, 0 if none holds it. */
static inline uint64_t kv_value(const struct kv_holders *h, uint64_t key)
{
	const struct kv_shard *s = kv_shard_of(h, key);
	if (s->lines == 0)
		return 0;
	for (uint32_t i = kv_home(s, key);; i = i + 1 == s->lines * KV_LINE ? 0 : i + 1) {
		uint64_t v = s->slots[i].value;
		if (v == 0 || s->slots[i].key == key)
			return v;
	}
}

/* Value: low 4 bits = how many numbers of 12 bits follow, or 15: a row, its index in the upper half, their count between. */
enum { KV_INLINE_MAX = 5, KV_IS_ROW = 15 };

static inline bool kv_is_row(uint64_t v) { return (v & 15) == KV_IS_ROW; }
static inline const uint64_t *kv_row(const struct kv_holders *h, uint64_t v) { return h->rows + (v >> 32) * h->words; }

/* ---- plan.c: what the groups of a rank ask of a hit; ranks with equal groups share one. */
struct kv_spec {
	enum kv_group_kind kind;
	uint32_t window_tok, block_size;
	uint32_t step;             /* blocks of the plan's unit in one of this spec */
	uint32_t n_groups;
	uint64_t salts[KV_MAX_GROUPS];       /* one per group of this spec: they are looked up together */
};
struct kv_plan {
	struct kv_group groups[KV_MAX_GROUPS];
	size_t n_groups;
	uint32_t refs;
	uint32_t unit;             /* smallest block size; a larger group uses every step-th key */
	uint32_t align;            /* least common multiple */
	uint32_t n_specs;          /* full attention first */
	bool simple;               /* one spec, full attention */
	bool odd;                  /* sizes that no unit divides: nothing is predicted */
	struct kv_spec specs[KV_MAX_GROUPS];
};

struct kv_plan *kv_plan_new(const struct kv_group *g, size_t n);
bool kv_plan_is(const struct kv_plan *p, const struct kv_group *g, size_t n);
uint32_t kv_plan_max_hit(const struct kv_plan *p, uint32_t n_tok);
/* One number per group; group 0's leaves keys as they are. A tier is so many groups more: its holders are apart, and a fleet
 * without it pays nothing. */
static inline uint64_t kv_group_salt(uint32_t group) { return group * 0x9e3779b97f4a7c15u; }
static inline uint64_t kv_tier_salt(enum kv_tier tier) { return kv_group_salt((uint32_t)tier * KV_MAX_GROUPS); }
const struct kv_keyset *kv_prompt_set(const struct kv_prompt *p, uint32_t block_size);   /* NULL: no such set */
/* The key of block i of a spec in group j of it. */
static inline uint64_t kv_spec_key(const struct kv_spec *s, const uint64_t *keys, uint64_t i, uint32_t j)
{
	return keys[(i + 1) * s->step - 1] + s->salts[j];
}

/* ---- tree.c: prompts in flight by what they begin with */
struct kv_chain { uint32_t refs, n, unit; uint64_t keys[]; };      /* a prompt's keys, counted */
struct kv_rider { kv_rank_id rank; uint32_t n; };                  /* a rank and how many of its prompts pass */
struct kv_run {
	struct kv_chain *chain;    /* of a prompt that passes or has passed; NULL: not in use */
	uint32_t from, to;         /* its blocks that are this run */
	uint32_t parent;           /* the run before it, 0 = none */
	uint32_t n_children, children;     /* runs behind it, their numbers xor'ed: if it is one, it is this */
	uint32_t n_ends;           /* prompts that end with it */
	VEC(struct kv_rider) riders;
};
struct kv_tree {
	VEC(struct kv_run) v;      /* 0 is not used */
	uint32_t free, n;
	struct map at;             /* first key and unit -> run */
	size_t chain_bytes;
};
void kv_tree_init(struct kv_tree *t);
void kv_tree_done(struct kv_tree *t);
size_t kv_tree_bytes(const struct kv_tree *t);
struct kv_chain *kv_chain_new(struct kv_tree *t, const struct kv_keyset *set);      /* copies; counted once */
void kv_chain_release(struct kv_tree *t, struct kv_chain *c);                       /* NULL is ignored */
/* The first n blocks of a prompt of this rank. The last run of its path, for kv_tree_del; 0: none. */
uint32_t kv_tree_add(struct kv_tree *t, struct kv_chain *c, uint32_t n, kv_rank_id rank);
void kv_tree_del(struct kv_tree *t, uint32_t last, kv_rank_id rank);
/* How many of the first n blocks each rank has in flight as the beginning of a prompt, for ranks with any; by rank. */
void kv_tree_reach(const struct kv_tree *t, const struct kv_keyset *set, uint32_t n, uint32_t *ret_reach);

/* ---- flight.c */
struct kv_flight_entry {
	uint32_t gen;              /* upper half of the handle */
	bool used;
	kv_rank_id rank;
	bool dead;                 /* its rank went */
	uint32_t match_tok;        /* its own full-attention match at dispatch */
	uint32_t next, prev;       /* of the same rank; 0 = none */
	uint32_t run;              /* where its path in the tree ends, 0 = not there */
	struct kv_plan *plan;      /* under which its match was found, or NULL */
	struct kv_prompt p;        /* keys lie in the chains */
	struct kv_chain *chains[KV_MAX_SIZES];
};
struct kv_flights {
	VEC(struct kv_flight_entry) v;     /* 0 is not used */
	uint32_t free;
	uint64_t n;
	struct kv_tree tree;       /* blocks of full attention */
	struct kv_holders held;    /* blocks of other groups, by seat */
	struct map more;           /* (key, rank) of `held` -> flights beyond the first */
};
void kv_flights_init(struct kv_flights *f);
void kv_flights_done(struct kv_index *x);
size_t kv_flights_bytes(const struct kv_flights *f);
/* The rank's plan or seat changes between the two: its flights are put down anew. */
void kv_flights_lift(struct kv_index *x, kv_rank_id id);
void kv_flights_land(struct kv_index *x, kv_rank_id id);
void kv_flights_abandon(struct kv_index *x, kv_rank_id id);

/* ---- approx.c: what a rank without events probably holds, least recently used first out */
struct kv_approx;
struct kv_approx *kv_approx_new(void);
void kv_approx_free(struct kv_approx *a);
size_t kv_approx_bytes(const struct kv_approx *a);
/* An event said something of this key: it is the event's from now on. */
void kv_approx_confirm(struct kv_approx *a, uint64_t key);
/* Takes back everything it put down, under the plan of now. */
void kv_approx_withdraw(struct kv_index *x, kv_rank_id id);
/* A prompt that is to be put down; its first `left` blocks still are. */
struct kv_note { struct kv_note *next; kv_rank_id rank; uint16_t gen; uint32_t left; uint64_t keys[]; };
struct kv_notes { struct kv_note *first, *last; uint64_t blocks; };
void kv_notes_done(struct kv_notes *q);

/* ---- owner.c */
struct kv_owner_entry { uint64_t key; uint32_t stamp; kv_rank_id rank; uint16_t gen; };
struct kv_owners { struct kv_owner_entry *v; uint32_t n_buckets; uint64_t n; };
void kv_owners_resize(struct kv_owners *o, uint64_t capacity_blocks);
void kv_owners_done(struct kv_owners *o);
size_t kv_owners_bytes(const struct kv_owners *o);

/* ---- index.c */
struct kv_rank_entry {
	bool used;
	uint16_t gen;              /* tells a rank from the one that had its id before */
	uint16_t seat;             /* its number in `held`; a clear gives it a new one */
	uint32_t capacity, blocks;
	uint32_t lower;            /* of `blocks`: on tiers below the GPU */
	struct kv_plan *plan;      /* NULL: groups not known */
	struct kv_approx *approx;  /* NULL: events */
	uint32_t flights;          /* head of its list */
	uint32_t n_flights;
};
enum kv_seat { KV_SEAT_FREE, KV_SEAT_USED, KV_SEAT_DIRTY };

struct kv_scratch {
	uint64_t alive[KV_MAX_WORDS], bits[KV_MAX_WORDS], storage[KV_MAX_WORDS];
	uint32_t run[KV_MAX_RANKS], reach[KV_MAX_RANKS], stored[KV_MAX_RANKS];
};

struct kv_index {
	struct kv_rank_entry *ranks;       /* KV_MAX_RANKS */
	uint32_t n_ranks;                  /* ids ever in use */
	struct kv_holders held;            /* by seat */
	uint8_t *seats;                    /* enum kv_seat */
	uint64_t scrubbing[KV_MAX_WORDS];  /* dirty seats this round takes out */
	uint32_t scrub_at;                 /* the next shard; KV_SHARDS = no round under way */
	bool scrub_more;                   /* seats became dirty since the round began */
	VEC(struct kv_plan *) plans;
	struct kv_flights flights;
	struct kv_notes notes;
	struct kv_owners owners;
	struct kv_scratch *scratch;
};

const struct kv_rank_entry *kv_rank_at(const struct kv_index *x, kv_rank_id id);      /* NULL: not in use */
void kv_index_hold(struct kv_index *x, kv_rank_id id, uint64_t key, bool yes);        /* key with its group's salt */
/* lower.c: what the tiers below the GPU add to the hits of one plan's ranks: hit_tok grows, loads say by what. */
struct kv_lower_ask { const struct kv_prompt *p; const kv_rank_id *ranks; size_t n; uint32_t *hit_tok; struct kv_load *loads; };
void kv_index_lower(const struct kv_index *x, const struct kv_plan *plan, const struct kv_lower_ask *a);
/* The run of leading blocks of spec 0 (full attention) that the rank holds or will hold, in tokens. */
uint32_t kv_index_full_match(const struct kv_index *x, const struct kv_prompt *p, kv_rank_id id);

#endif
