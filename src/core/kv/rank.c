/* rank.c: the sequence rules. A batch is applied once and in order, whichever way it comes; what cannot be known is said.
 *
 * A worker that restarts begins again at 0 and says nothing of it. It shows in three ways: a number that falls back while
 * the worker's clock went on; a replay from the last number seen (inclusive) that lacks that batch or has another one in
 * its place; a replay whose newest number is older than ours. Then the view goes and everything is replayed from 0. */
#include "kv/rank_priv.h"

#include <string.h>

/* A burst of late batches ends; a worker whose clock fell back goes on. */
enum { STALE_RUN_MAX = 16, FRUITLESS_MAX = 3 };

struct kv_rank *kv_rank_new(const struct kv_rank_sink *sink, void *arg)
{
	struct kv_rank *r = must_calloc(1, sizeof(*r));
	r->sink = *sink;
	r->arg = arg;
	r->limit = KV_DEFAULT_LIMIT;
	map_init(&r->copies);
	map_init(&r->shared);
	map_init(&r->learnt);
	return r;
}

void kv_rank_free(struct kv_rank *r)
{
	if (!r)
		return;
	for (size_t t = 0; t < KV_TIERS; t++)
		kv_table_done(&r->tables[t]);
	kv_kept_clear(&r->kept);
	map_done(&r->copies);
	map_done(&r->shared);
	map_done(&r->learnt);
	VEC_FREE(&r->out);
	free(r);
}

void kv_rank_capacity(struct kv_rank *r, uint32_t blocks)
{
	uint64_t limit = blocks ? (uint64_t)blocks + blocks / 4 + KV_LIMIT_SLACK : KV_DEFAULT_LIMIT;
	uint32_t was = r->limit;
	r->capacity = blocks;
	r->limit = (uint32_t)MIN(limit, (uint64_t)INT32_MAX);
	if (r->limit > was)
		r->full_replays = 0;
}

void kv_rank_has_replay(struct kv_rank *r, bool yes) { r->has_replay = yes; }

uint64_t kv_rank_want_seq(const struct kv_rank *r) { return r->want_seq; }

static enum kv_act ask(struct kv_rank *r, uint64_t from)
{
	r->replaying = true;
	r->want_seq = from;
	r->asked_at = r->s.next_seq;
	r->rep_any = r->rep_differs = false;
	return KV_ACT_REPLAY;
}

static void forget_all(struct kv_rank *r)
{
	kv_rank_forget(r);
	r->s.seen_any = false;
	r->s.next_seq = 0;
	if (r->unproven)
		r->s.uncertain = r->unproven = false;
	r->stale_run = r->fruitless = 0;
}

static enum kv_act ask_all(struct kv_rank *r)
{
	forget_all(r);
	return ask(r, 0);
}

/* The last seen number, not the one behind it: only so a restart shows. */
static uint64_t last_seen(const struct kv_rank *r) { return r->s.seen_any ? r->s.next_seq - 1 : 0; }

static enum kv_act say_uncertain(struct kv_rank *r)
{
	r->s.uncertain = true;
	r->cut = false;
	return KV_ACT_UNCERTAIN;
}

static void advance(struct kv_rank *r, uint64_t seq, const struct kv_batch *b)
{
	if (seq == 0)
		r->s.uncertain = r->cut = false;
	r->s.seen_any = true;
	r->s.next_seq = seq + 1;
	r->stale_run = 0;
	kv_rank_apply(r, b);
	/* Only old history was missing, and what we know by now fills the cache: little of the old can be left. */
	if (r->cut && r->capacity && r->tables[KV_TIER_GPU].n >= r->capacity - r->capacity / 8)
		r->s.uncertain = r->cut = false;
}

/* A view that is wrong is rebuilt once; when that does not help, it is said. */
static enum kv_act look_at_view(struct kv_rank *r, bool may_ask)
{
	bool was = r->s.uncertain;
	if (!r->wrong)
		return KV_ACT_NONE;
	r->wrong = false;
	if (may_ask && r->has_replay && r->full_replays == 0) {
		r->full_replays = 1;
		return ask_all(r);
	}
	say_uncertain(r);
	return was ? KV_ACT_NONE : KV_ACT_UNCERTAIN;
}

static enum kv_act take(struct kv_rank *r, uint64_t seq, const struct kv_batch *b)
{
	advance(r, seq, b);
	return look_at_view(r, true);
}

/* Batches before this one are missing. */
static enum kv_act take_behind_gap(struct kv_rank *r, uint64_t seq, const struct kv_batch *b)
{
	if (r->has_replay && r->fruitless < FRUITLESS_MAX) {
		kv_kept_add(&r->kept, seq, b);
		return ask(r, last_seen(r));
	}
	advance(r, seq, b);
	return say_uncertain(r);
}

static enum kv_act take_first(struct kv_rank *r, uint64_t seq, const struct kv_batch *b)
{
	return seq == 0 ? take(r, seq, b) : take_behind_gap(r, seq, b);
}

static bool is_restart(struct kv_rank *r, uint64_t seq, const struct kv_batch *b)
{
	bool live_fell = r->live_any && seq <= r->live_seq;
	if (b->ts_s > r->s.last_ts_s)
		return true;
	if (b->ts_s == r->s.last_ts_s && seq + 1 < r->s.next_seq && live_fell)
		return true; /* a worker whose batches carry no time */
	return live_fell && ++r->stale_run >= STALE_RUN_MAX;
}

static enum kv_act take_live(struct kv_rank *r, uint64_t seq, const struct kv_batch *b)
{
	if (r->replaying) {
		kv_kept_add(&r->kept, seq, b);
		return KV_ACT_NONE;
	}
	bool old = r->s.seen_any && seq < r->s.next_seq;
	bool restart = old && is_restart(r, seq, b);
	if (old && !restart) {
		r->s.duplicates++;
		r->live_seq = r->live_any ? MAX(r->live_seq, seq) : seq;
		r->live_any = true;
		return KV_ACT_NONE;
	}
	r->live_seq = seq;
	r->live_any = true;
	if (restart) {
		r->s.restarts++;
		forget_all(r);
	}
	if (!r->s.seen_any)
		return take_first(r, seq, b);
	if (seq == r->s.next_seq)
		return take(r, seq, b);
	r->s.gaps++;
	return take_behind_gap(r, seq, b);
}

static void take_replayed(struct kv_rank *r, uint64_t seq, const struct kv_batch *b)
{
	bool first = !r->rep_any;
	r->rep_oldest = first ? seq : MIN(r->rep_oldest, seq);
	r->rep_newest = first ? seq : MAX(r->rep_newest, seq);
	r->rep_any = true;
	if (r->s.seen_any && seq < r->s.next_seq) {
		r->s.duplicates++;
		r->rep_differs |= seq + 1 == r->s.next_seq && b->ts_s != r->s.last_ts_s;
		return;
	}
	r->rep_differs |= first && r->s.seen_any; /* begins behind what we have seen: that batch is gone */
	if (r->rep_differs)
		return;
	bool gap = seq > r->s.next_seq, cut = gap && !r->s.seen_any;
	r->s.gaps += gap;
	advance(r, seq, b);
	if (gap)
		say_uncertain(r);
	r->cut = cut || (r->cut && !gap);
}

enum kv_act kv_rank_batch(struct kv_rank *r, uint64_t seq, const struct kv_batch *b, bool from_replay)
{
	if (!from_replay)
		return take_live(r, seq, b);
	take_replayed(r, seq, b);
	return KV_ACT_NONE;
}

/* What came live during the replay, in order. A gap in it asks again, and the rest is kept again. */
static enum kv_act take_kept(struct kv_rank *r)
{
	enum kv_act act = KV_ACT_NONE;
	struct kv_kept_list l = r->kept;
	r->kept = (struct kv_kept_list){ 0 };
	for (size_t i = 0; i < l.v.n; i++) {
		enum kv_act a = take_live(r, l.v.p[i].seq, l.v.p[i].batch);
		act = a == KV_ACT_NONE ? act : a;
	}
	r->kept.lost |= l.lost;
	kv_kept_clear(&l);
	return act;
}

static bool replay_shows_restart(const struct kv_rank *r, bool asked)
{
	if (!r->s.seen_any)
		return false;
	if (r->rep_any)
		return r->rep_differs || r->rep_newest + 1 < r->s.next_seq;
	return asked && r->want_seq < r->s.next_seq;
}

enum kv_act kv_rank_replay_end(struct kv_rank *r, bool all)
{
	bool asked = r->replaying;
	bool restart = replay_shows_restart(r, asked);
	r->s.replays++;
	r->replaying = false;
	r->rep_any = r->rep_differs = false;
	if (all && restart) {
		r->s.restarts++;
		return ask_all(r);
	}
	if (all && (!r->s.seen_any || r->unproven))
		r->s.uncertain = r->unproven = false; /* the worker has sent nothing yet, or is the one we knew */
	bool still_behind = r->kept.v.n && r->kept.v.p[0].seq > r->s.next_seq && r->s.next_seq == r->asked_at;
	r->fruitless = !all ? FRUITLESS_MAX : still_behind ? r->fruitless + 1 : 0;
	enum kv_act view = look_at_view(r, all);
	enum kv_act act = take_kept(r);
	if (!all)
		r->fruitless = 0;
	if (act != KV_ACT_NONE)
		return act;
	return all ? view : say_uncertain(r);
}

enum kv_act kv_rank_reconnected(struct kv_rank *r)
{
	if (r->has_replay)
		return ask(r, last_seen(r));
	if (r->s.seen_any)
		forget_all(r);
	return say_uncertain(r);
}

void kv_rank_drop(struct kv_rank *r)
{
	forget_all(r);
	kv_kept_clear(&r->kept);
	r->replaying = r->rep_any = r->rep_differs = r->live_any = false;
	r->full_replays = 0;
	r->s.uncertain = false;
}

static size_t map_bytes(const struct map *m) { return m->cap * (sizeof(struct map_slot) + 1); }

struct kv_rank_stats kv_rank_stats(const struct kv_rank *r)
{
	struct kv_rank_stats s = r->s;
	s.blocks = r->tables[KV_TIER_GPU].n;
	s.bytes = sizeof(*r) + map_bytes(&r->copies) + map_bytes(&r->shared) + r->out.cap * sizeof(*r->out.p) +
		  r->kept.bytes;
	for (size_t t = 0; t < KV_TIERS; t++)
		s.bytes += kv_table_bytes(&r->tables[t]);
	for (size_t t = KV_TIER_CPU; t < KV_TIERS; t++)
		s.lower_blocks += r->tables[t].n;
	return s;
}
