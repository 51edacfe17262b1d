/* kv/rank_priv.h: the insides of the feed half, shared by its files: the table of engine hashes (table.c), what a batch
 * does to it (apply.c), and the sequence rules around it (rank.c, kept.c). */
#ifndef KV_RANK_PRIV_H
#define KV_RANK_PRIV_H

#include "base/map.h"
#include "base/vec.h"
#include "kv/rank.h"

/* ---- table.c: engine hash -> our key and the groups that hold it. Open addressing, no tombstones, no memory per block. */
enum { KV_SLOT_COPIES = 1, KV_SLOT_SHARED = 2 };

struct kv_slot {
	uint64_t hash, key;
	uint16_t groups;         /* bit g: held in group g; 0 = the slot is empty */
	uint16_t flags;          /* KV_SLOT_COPIES: some group holds more than one; KV_SLOT_SHARED: its key is counted in `shared` */
} __attribute__((packed, aligned(4)));

enum { KV_LINE_SLOTS = 3 };
struct kv_line { struct kv_slot slots[KV_LINE_SLOTS]; uint32_t unused; };      /* a line of the cache: a search begins with one */

struct kv_table {
	struct kv_line *lines;
	void *raw;               /* what to free */
	uint32_t n_lines, n;
};

void kv_table_done(struct kv_table *t);
struct kv_slot *kv_table_find(const struct kv_table *t, uint64_t hash);
void kv_table_prefetch(const struct kv_table *t, uint64_t hash);
/* A new slot for a hash that is not there; it becomes real when the caller sets its groups. capacity: blocks of a full cache,
 * 0 when unknown; limit: most slots ever in use. */
struct kv_slot *kv_table_add(struct kv_table *t, uint64_t hash, uint32_t capacity, uint32_t limit);
void kv_table_del(struct kv_table *t, struct kv_slot *s);
static inline size_t kv_table_bytes(const struct kv_table *t) { return (size_t)t->n_lines * sizeof(struct kv_line); }

/* ---- kept.c: live batches that came while a replay was running, in order. */
struct kv_kept { uint64_t seq; struct kv_batch *batch; size_t bytes; };

struct kv_kept_list {
	VEC(struct kv_kept) v;
	size_t bytes;
	bool lost;               /* some did not fit */
};
enum { KV_KEPT_MAX = 1024 };
#define KV_KEPT_MAX_BYTES ((size_t)16 << 20)

void kv_kept_add(struct kv_kept_list *l, uint64_t seq, const struct kv_batch *b);   /* copies */
void kv_kept_clear(struct kv_kept_list *l);

/* ---- the rank */
enum { KV_SLICE = 2000, KV_DEFAULT_LIMIT = 1 << 20, KV_LIMIT_SLACK = 64, KV_LOWER_LIMIT = 1 << 22 };

struct kv_rank {
	struct kv_rank_sink sink;
	void *arg;

	/* the view */
	struct kv_table tables[KV_TIERS];      /* a tier that was never named costs nothing */
	struct map copies;       /* (hash, tier and group) -> copies beyond the first */
	struct map shared;       /* (key, tier and group) -> engine hashes that hold it, where several may have one key (apply.c) */
	struct map learnt;       /* within a batch: engine hash -> key */
	bool stores_below;       /* within a batch: it stores on a tier below the GPU */
	struct kv_group groups[KV_MAX_GROUPS];
	size_t n_groups;
	uint32_t unit;           /* the smallest block size of its groups: keys are chained in it */
	uint32_t limit;          /* distinct engine hashes on the GPU */
	uint32_t capacity;       /* as told; 0 = not known */
	bool wrong;              /* a block did not fit, or the unit changed: the view is not the worker's */
	VEC(struct kv_delta) out;

	/* the sequence */
	bool has_replay, replaying;
	bool unproven;           /* uncertain only because it was loaded */
	bool cut;                /* uncertain only because the oldest history is gone */
	uint64_t want_seq;       /* of the replay asked for */
	uint64_t live_seq;       /* newest by the live socket */
	bool live_any;
	uint32_t stale_run;      /* old batches in a row on the live socket */
	bool rep_any, rep_differs;
	uint64_t rep_oldest, rep_newest;
	uint32_t full_replays;   /* replays spent on a wrong view; one until a clear or a better capacity */
	uint32_t fruitless;      /* replays in a row that brought nothing new */
	uint64_t asked_at;       /* next_seq when the replay was asked for */
	struct kv_kept_list kept;
	struct kv_rank_stats s;
};

/* Most slots of a tier. One below the GPU has no capacity that we know of: a bound, and what is beyond it is only not found. */
static inline uint32_t kv_rank_limit(const struct kv_rank *r, enum kv_tier tier) { return tier == KV_TIER_GPU ? r->limit : (uint32_t)KV_LOWER_LIMIT; }
/* What a batch does to the view; sends the deltas. */
void kv_rank_apply(struct kv_rank *r, const struct kv_batch *b);
/* A slot of an earlier life, which must not be there yet: it is held as it was, and the sink told by kv_rank_flush() at the latest. */
void kv_rank_put(struct kv_rank *r, enum kv_tier tier, const struct kv_slot *was);
void kv_rank_flush(struct kv_rank *r);
/* Forgets the view (not the sequence) and tells the sink. */
void kv_rank_forget(struct kv_rank *r);

#endif
