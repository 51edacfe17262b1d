/* One rank's stream of KV events: socket -> queue -> decode -> kv_rank -> brain, at most FEED_TURN_BLOCKS changes a turn
 * of the loop, so that no flood holds up a decision. Large batches are decoded on the thread pool; a rank's messages keep
 * their order: while one is worked on, the next wait.
 *
 * Replays: kv_rank says when one is needed; here are the politeness rules: one at a time a rank, FEED_MAX_REPLAYS a process,
 * three tries without progress, then a rest. Each connection is followed by a second look: the publisher hears of our
 * subscription a moment after we have asked for the replay, and what it sent in between shows only with its next batch. */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "engine/engine.h"
#include "feed/feed_priv.h"

enum { INLINE_BYTES = 32 << 10, MIN_COST = 20, RETRY_US = 100000, REST_US = 30000000, LOST_GRACE_US = 5000000, UNREACHED_US = 5000000,
       MEND_US = 30000000, MEND_MAX_US = 960000000, SECOND_LOOK_US = 250000, REOPEN_US = 5000000 };
enum { DECODE_BYTES_PER_PAYLOAD_BYTE = 64, DECODE_MIN_BYTES = 1 << 20 };

enum msg_kind { MSG_BATCH, MSG_REPLAY_END, MSG_CONNECTED, MSG_CLEARED };
struct msg { enum msg_kind kind; bool from_replay, all; uint64_t seq; char *payload; size_t n; };

enum out_kind { OUT_DELTAS, OUT_CLEAR, OUT_GROUPS };
struct out { enum out_kind kind; size_t from, n; };

struct feed_rank {
	struct list pending;                 /* in feed->pending while there is work */
	struct feed_worker *w;
	const struct engine *engine;         /* own copy: the pool thread must not look at the worker */
	uint32_t rank;
	char *events, *replay;               /* endpoints; replay may be NULL */
	bool replay_guessed;
	struct io_zsub *sub;
	struct kv_rank *kv;
	VEC(struct msg) queue;
	size_t queue_at, queue_bytes;
	bool overflow;                       /* dropped something: a replay is needed when the queue is empty */
	/* results of the message worked on */
	VEC(struct out) outs;
	size_t out_at, out_done;             /* next out; deltas of it already delivered */
	VEC(struct kv_delta) deltas;
	VEC(struct kv_group) groups;
	struct msg work;                     /* on the thread pool */
	bool working, closed;
	enum kv_act act;
	enum err decode_error;
	double work_ts_s;                    /* the worker's clock when it made the batch */
	int64_t lag_us;                      /* of the last live batch */
	/* connection and replay */
	bool connected, ever_connected, connected_again, said_unreached;
	bool replaying, replay_wanted, replay_whole;   /* under way; still to be asked; the last one ended with its end marker */
	uint64_t replay_frames;
	unsigned tries;
	struct mono opened, lost_at, rest_until, mend_at, look_again_at;
	int64_t mend_wait_us;
	bool told, told_seen, told_uncertain;
	uint64_t told_seq;
	uint64_t dropped, undecoded, replay_asks, replay_timeouts;
	uint64_t restarts_said, gaps_said;
};

static void schedule(struct feed_rank *r)
{
	if (!list_empty(&r->pending))
		return;
	list_add_tail(&r->w->feed->pending, &r->pending);
	io_timer_after(r->w->feed->pump, 0);
}

static const char *url_of(const struct feed_rank *r) { return r->w->conf.url.p; }

/* ---- what the brain is told of the state */

static void tell_status(struct feed_rank *r)
{
	struct mono now = io_now(r->w->feed->loop);
	bool lost = !r->connected && mono_diff_us(now, r->lost_at) > LOST_GRACE_US;
	bool seen = r->ever_connected && !lost;
	bool uncertain = seen && (!r->connected || kv_rank_stats(r->kv).uncertain);
	if (r->told && seen == r->told_seen && uncertain == r->told_uncertain)
		return;
	r->told = true;
	r->told_seen = seen;
	r->told_uncertain = uncertain;
	brain_kv_status(r->w->feed->brain, r->w->id, r->rank, seen, uncertain, now);
}

static void tell_progress(struct feed_rank *r)
{
	struct kv_rank_stats s = kv_rank_stats(r->kv);
	if (!s.seen_any || s.next_seq == r->told_seq)
		return;
	r->told_seq = s.next_seq;
	brain_kv_progress(r->w->feed->brain, r->w->id, r->rank, s.next_seq - 1, r->lag_us);
}

static void say_changes(struct feed_rank *r)
{
	struct kv_rank_stats s = kv_rank_stats(r->kv);
	if (s.restarts > r->restarts_said)
		LOG_INFO("events_restarted", "worker=%s rank=%u what=\"its cache began anew\"", url_of(r), r->rank);
	if (s.gaps > r->gaps_said)
		LOG_WARN_EVERY(10, "events_gap", "worker=%s rank=%u gaps=%llu replay=%s", url_of(r), r->rank, (unsigned long long)s.gaps, r->replay ? "asked" : "none");
	r->restarts_said = s.restarts;
	r->gaps_said = s.gaps;
}

/* ---- the sink: results are kept until their turn */

static void sink_deltas(void *arg, const struct kv_delta *d, size_t n)
{
	struct feed_rank *r = arg;
	VEC_PUSH(&r->outs, (struct out){ OUT_DELTAS, r->deltas.n, n });
	for (size_t i = 0; i < n; i++)
		VEC_PUSH(&r->deltas, d[i]);
}

static void sink_clear(void *arg)
{
	struct feed_rank *r = arg;
	VEC_PUSH(&r->outs, (struct out){ OUT_CLEAR, 0, 0 });
}

static void sink_groups(void *arg, const struct kv_group *g, size_t n)
{
	struct feed_rank *r = arg;
	VEC_PUSH(&r->outs, (struct out){ OUT_GROUPS, r->groups.n, n });
	for (size_t i = 0; i < n; i++)
		VEC_PUSH(&r->groups, g[i]);
}

static const struct kv_rank_sink sink = { sink_deltas, sink_clear, sink_groups };

/* Delivers results up to the budget; true when all are out. */
static bool deliver(struct feed_rank *r, size_t *budget)
{
	struct brain *b = r->w->feed->brain;
	while (r->out_at < r->outs.n) {
		const struct out *o = &r->outs.p[r->out_at];
		size_t n = o->kind == OUT_DELTAS ? MIN(o->n - r->out_done, *budget) : 0;
		if (o->kind == OUT_CLEAR)
			brain_kv_clear(b, r->w->id, r->rank);
		else if (o->kind == OUT_GROUPS)
			brain_kv_groups(b, r->w->id, r->rank, r->groups.p + o->from, o->n);
		else if (n > 0)
			brain_kv_deltas(b, r->w->id, r->rank, r->deltas.p + o->from + r->out_done, n);
		r->out_done += n;
		*budget -= n;
		feed_count(r->w->feed, FEED_M_BLOCKS, n);
		if (o->kind == OUT_DELTAS && r->out_done < o->n)
			return false;
		r->out_at++;
		r->out_done = 0;
	}
	r->outs.n = r->deltas.n = r->groups.n = r->out_at = 0;
	if (r->deltas.cap > (1 << 16))
		VEC_FREE(&r->deltas);
	return true;
}

/* ---- replay */

static bool resting(const struct feed_rank *r) { return mono_before(io_now(r->w->feed->loop), r->rest_until); }

static void try_replay(struct feed_rank *r)
{
	struct feed *f = r->w->feed;
	if (!r->replay_wanted || r->replaying || f->replays >= FEED_MAX_REPLAYS || io_zsub_replay(r->sub, kv_rank_want_seq(r->kv)) != ERR_OK)
		return;
	r->replay_wanted = false;
	r->replaying = true;
	r->replay_frames = 0;
	r->replay_asks++;
	f->replays++;
}

/* While a replay is wanted kv_rank keeps the live batches back, so a replay that will not be asked is ended at once. */
static void take_act(struct feed_rank *r, enum kv_act act)
{
	if (act == KV_ACT_REPLAY && (r->replay == NULL || resting(r)))
		act = kv_rank_replay_end(r->kv, false);
	if (act == KV_ACT_REPLAY)
		r->replay_wanted = true;
	else if (act == KV_ACT_UNCERTAIN && r->mend_at.us == MONO_NEVER.us)
		r->mend_at = mono_add_us(io_now(r->w->feed->loop), r->mend_wait_us);
	try_replay(r);
}

/* A view that stays uncertain is asked for again, ever more rarely; once the replay socket is known to answer, from nothing. */
static void mend(struct feed_rank *r)
{
	struct mono now = io_now(r->w->feed->loop);
	if (mono_before(now, r->mend_at) || !r->connected || r->replay == NULL || r->replaying || r->replay_wanted)
		return;
	r->mend_at = MONO_NEVER;
	if (!kv_rank_stats(r->kv).uncertain) {
		r->mend_wait_us = MEND_US;
		return;
	}
	if (r->replay_whole)
		kv_rank_drop(r->kv);
	r->mend_wait_us = MIN(r->mend_wait_us * 2, (int64_t)MEND_MAX_US);
	take_act(r, kv_rank_reconnected(r->kv));
	schedule(r);
}

/* A guessed replay port that never answered is no replay port. */
static void give_up_guess(struct feed_rank *r)
{
	LOG_INFO("events_without_replay", "worker=%s rank=%u endpoint=%s why=\"it does not answer: gaps cannot be mended\"", url_of(r), r->rank, r->replay);
	free(r->replay);
	r->replay = NULL;
	r->replay_wanted = false;
	kv_rank_has_replay(r->kv, false);
}

static void replay_failed(struct feed_rank *r)
{
	struct mono now = io_now(r->w->feed->loop);
	bool guess = r->replay_guessed && r->replay_timeouts == r->replay_asks && r->replay_frames == 0;
	r->tries++;
	if (guess) {
		give_up_guess(r);
	} else if (r->tries < FEED_REPLAY_TRIES) {
		r->mend_at = mono_add_us(now, RETRY_US);
	} else {
		LOG_WARN_EVERY(30, "events_replay_silent", "worker=%s rank=%u tries=%u next_in_s=%d", url_of(r), r->rank, r->tries, REST_US / 1000000);
		r->tries = 0;
		r->rest_until = r->mend_at = mono_add_us(now, REST_US);
	}
}

static void after_replay(struct feed_rank *r, bool all)
{
	feed_count1(r->w->feed, FEED_M_REPLAYS, all ? "whole" : "timeout");
	r->replaying = false;
	r->w->feed->replays--;
	enum kv_act act = kv_rank_replay_end(r->kv, all);
	r->replay_whole = all;
	r->replay_timeouts += !all;
	if (all)
		r->tries = 0;
	else
		replay_failed(r);
	take_act(r, act);
	if (r->connected_again && !r->replay_wanted && !r->replaying) {
		r->connected_again = false;
		take_act(r, kv_rank_reconnected(r->kv));
	}
}

/* A reconnection during a replay waits for its end: kv_rank has one replay at a time. */
static void after_connect(struct feed_rank *r)
{
	if (r->replaying || r->replay_wanted)
		r->connected_again = true;
	else
		take_act(r, kv_rank_reconnected(r->kv));
}

static void look_again(struct feed_rank *r)
{
	if (mono_before(io_now(r->w->feed->loop), r->look_again_at) || r->replaying || r->replay_wanted)
		return;
	r->look_again_at = MONO_NEVER;
	if (r->connected && r->replay != NULL)
		take_act(r, kv_rank_reconnected(r->kv));
}

/* ---- one message */

static void count_batch(struct feed_rank *r, const struct msg *m) { feed_count1(r->w->feed, FEED_M_BATCHES, m->from_replay ? "replay" : "live"); }

/* Decode and apply; touches only this rank's kv, outs and act: also run on the thread pool. */
static void work(void *arg)
{
	struct feed_rank *r = arg;
	struct kv_batch b;
	struct arena a;
	arena_init(&a, r->work.n * DECODE_BYTES_PER_PAYLOAD_BYTE + DECODE_MIN_BYTES);
	r->act = KV_ACT_NONE;
	r->decode_error = r->engine->events(str_from(r->work.payload, r->work.n), &a, &b);
	/* An unreadable batch is a step whose changes are lost: it counts as a gap, not as nothing. */
	r->work_ts_s = r->decode_error == ERR_OK ? b.ts_s : 0;
	if (r->decode_error == ERR_OK)
		r->act = kv_rank_batch(r->kv, r->work.seq, &b, r->work.from_replay);
	arena_done(&a);
}

static void after_work(struct feed_rank *r)
{
	free(r->work.payload);
	r->work.payload = NULL;
	if (r->decode_error != ERR_OK) {
		r->undecoded++;
		feed_count1(r->w->feed, FEED_M_UNDECODED, err_label(r->decode_error));
		LOG_WARN_EVERY(10, "events_undecoded", "worker=%s rank=%u seq=%llu bytes=%zu why=\"%s\"", url_of(r), r->rank, (unsigned long long)r->work.seq, r->work.n, err_text(r->decode_error));
	} else if (!r->work.from_replay) {
		r->lag_us = MAX(io_unix_us() - (int64_t)(MIN(MAX(r->work_ts_s, 0.0), 1e11) * 1e6), 0);
	}
	say_changes(r);
	take_act(r, r->act);
}

static void rank_memory_free(struct feed_rank *r)
{
	for (size_t i = r->queue_at; i < r->queue.n; i++)
		free(r->queue.p[i].payload);
	VEC_FREE(&r->queue);
	VEC_FREE(&r->outs);
	VEC_FREE(&r->deltas);
	VEC_FREE(&r->groups);
	kv_rank_free(r->kv);
	free(r->events);
	free(r->replay);
	free(r);
}

static void work_done(void *arg)
{
	struct feed_rank *r = arg;
	r->working = false;
	if (r->closed) {
		free(r->work.payload);
		rank_memory_free(r);
		return;
	}
	after_work(r);
	schedule(r);
}

static void one_word(struct feed_rank *r, const struct msg *m)
{
	if (m->kind == MSG_CONNECTED)
		after_connect(r);
	else if (m->kind == MSG_REPLAY_END)
		after_replay(r, m->all);
	else
		kv_rank_cleared(r->kv);
	say_changes(r);
}

static void one_message(struct feed_rank *r, size_t *budget)
{
	struct msg m = r->queue.p[r->queue_at++];
	r->queue_bytes -= m.n;
	if (r->queue_at == r->queue.n)
		r->queue.n = r->queue_at = 0;
	*budget -= MIN(*budget, (size_t)MIN_COST);
	if (m.kind != MSG_BATCH) {
		one_word(r, &m);
		return;
	}
	count_batch(r, &m);
	r->work = m;
	if (m.n > INLINE_BYTES) {
		r->working = true;
		io_work(r->w->feed->loop, work, work_done, r);
		return;
	}
	work(r);
	after_work(r);
}

/* Everything that was dropped is asked for again once the queue is empty. */
static void mend_overflow(struct feed_rank *r)
{
	if (!r->overflow)
		return;
	r->overflow = false;
	if (r->replay != NULL)               /* without one the gap shows with the next batch */
		after_connect(r);
}

/* True when nothing is left to do for now. */
static bool turn(struct feed_rank *r, size_t *budget)
{
	while (!r->working) {
		if (!deliver(r, budget))
			return false;
		if (r->queue_at == r->queue.n) {
			mend_overflow(r);
			break;
		}
		if (*budget == 0)
			return false;
		one_message(r, budget);
	}
	if (!r->working) {                   /* else the pool thread has the rank's state */
		tell_status(r);
		tell_progress(r);
	}
	return true;
}

void feed_pump(void *feed)
{
	struct feed *f = feed;
	size_t budget = FEED_TURN_BLOCKS;
	size_t ranks = 0;
	LIST_FOR(&f->pending, it)
		ranks++;
	for (size_t i = 0; i < ranks && budget > 0 && !list_empty(&f->pending); i++) {
		struct feed_rank *r = container_of(f->pending.next, struct feed_rank, pending);
		/* its share, so that one rank's flood does not starve the others */
		size_t share = MAX(budget / (ranks - i), (size_t)1), left = share;
		list_del(&r->pending);
		if (!turn(r, &left))
			list_add_tail(&f->pending, &r->pending);
		budget -= share - left;
	}
	if (!list_empty(&f->pending))
		io_timer_after(f->pump, 0);
	feed_refresh(f);                     /* block sizes may have become known */
}

/* ---- callbacks of the socket */

static void push(struct feed_rank *r, struct msg m)
{
	/* the queue's used front is dropped when it is the larger half */
	if (r->queue_at > 64 && r->queue_at > r->queue.n / 2) {
		memmove(r->queue.p, r->queue.p + r->queue_at, (r->queue.n - r->queue_at) * sizeof(struct msg));
		r->queue.n -= r->queue_at;
		r->queue_at = 0;
	}
	VEC_PUSH(&r->queue, m);
	r->queue_bytes += m.n;
	schedule(r);
}

static uint64_t be64(struct str s)
{
	uint64_t v = 0;
	for (size_t i = 0; i < 8; i++)
		v = v << 8 | (unsigned char)s.p[i];
	return v;
}

/* Frames are read from the end: right for live messages and both forms of replays. */
static void on_frames(void *arg, const struct str *frames, size_t n, bool from_replay)
{
	struct feed_rank *r = arg;
	if (n < 2 || frames[n - 2].n != 8) {
		r->undecoded++;
		feed_count1(r->w->feed, FEED_M_UNDECODED, "frames");
		return;
	}
	r->replay_frames += from_replay;
	if (r->queue_bytes + frames[n - 1].n > (size_t)r->w->feed->conf->opts.feed.events_queue_bytes) {
		r->dropped++;
		r->overflow = true;
		feed_count(r->w->feed, FEED_M_DROPPED, 1);
		return;
	}
	struct msg m = { .kind = MSG_BATCH, .from_replay = from_replay, .seq = be64(frames[n - 2]), .payload = must_malloc(frames[n - 1].n + 1), .n = frames[n - 1].n };
	memcpy(m.payload, frames[n - 1].p, m.n);
	push(r, m);
}

static void on_replay_end(void *arg, enum err e)
{
	struct feed_rank *r = arg;
	push(r, (struct msg){ .kind = MSG_REPLAY_END, .all = e == ERR_OK });
}

static void on_connected(void *arg, bool again)
{
	struct feed_rank *r = arg;
	r->connected = r->ever_connected = true;
	LOG_INFO("events_connected", "worker=%s rank=%u endpoint=%s again=%d", url_of(r), r->rank, r->events, again);
	r->look_again_at = mono_add_us(io_now(r->w->feed->loop), SECOND_LOOK_US);
	push(r, (struct msg){ .kind = MSG_CONNECTED });
}

static void on_lost(void *arg)
{
	struct feed_rank *r = arg;
	if (!r->connected)
		return;
	r->connected = false;
	r->lost_at = io_now(r->w->feed->loop);
	LOG_WARN("events_lost", "worker=%s rank=%u endpoint=%s", url_of(r), r->rank, r->events);
	schedule(r);
}

static const struct io_zsub_ops sub_ops = { on_frames, on_replay_end, on_connected, on_lost };

/* ---- life */

static void say_not_opened(struct feed_rank *r, enum err e)
{
	if (e != ERR_IO) {
		LOG_ERROR("events_not_opened", "worker=%s rank=%u endpoint=%s why=\"%s\"", url_of(r), r->rank, r->events, err_text(e));
		return;
	}
	LOG_WARN_EVERY(10, "events_not_opened", "worker=%s rank=%u endpoint=%s why=\"no file descriptor is left\" next_in_s=%d", url_of(r), r->rank, r->events, REOPEN_US / 1000000);
	r->w->reopen_at = mono_add_us(io_now(r->w->feed->loop), REOPEN_US);
}

struct feed_rank *feed_rank_open(struct feed_worker *w, uint32_t rank, const struct feed_source *s)
{
	struct feed_rank *r = must_calloc(1, sizeof(*r));
	list_init(&r->pending);
	r->w = w;
	r->engine = w->engine;
	r->rank = rank;
	r->events = str_dup(s->events);
	r->replay = s->replay.n > 0 ? str_dup(s->replay) : NULL;
	r->replay_guessed = !w->sources_told && w->conf.replay.n == 0;
	r->opened = r->lost_at = io_now(w->feed->loop);
	r->mend_at = r->look_again_at = MONO_NEVER;
	r->mend_wait_us = MEND_US;
	r->kv = kv_rank_new(&sink, r);
	kv_rank_has_replay(r->kv, r->replay != NULL);
	enum err e = io_zsub_open(w->feed->zhub, r->events, r->replay, &sub_ops, r, &r->sub);
	if (e != ERR_OK) {
		say_not_opened(r, e);
		rank_memory_free(r);
		return NULL;
	}
	brain_kv_status(w->feed->brain, w->id, rank, false, false, io_now(w->feed->loop));
	feed_kept_give(w->feed->kept, w->conf.url, rank, r->kv);
	if (r->outs.n)
		schedule(r);
	return r;
}

void feed_rank_close(struct feed_rank *r)
{
	struct feed *f = r->w->feed;
	io_zsub_close(r->sub);
	f->replays -= r->replaying;
	list_del(&r->pending);
	brain_kv_clear(f->brain, r->w->id, r->rank);
	brain_kv_status(f->brain, r->w->id, r->rank, false, false, io_now(f->loop));
	r->closed = true;
	if (!r->working)
		rank_memory_free(r);
}

bool feed_rank_same(const struct feed_rank *r, const struct feed_source *s)
{
	return str_eq(str_of(r->events), s->events) && (r->replay != NULL ? str_eq(str_of(r->replay), s->replay) : s->replay.n == 0 || r->replay_guessed);
}

void feed_rank_capacity(struct feed_rank *r, uint64_t blocks)
{
	if (!r->working)
		kv_rank_capacity(r->kv, (uint32_t)MIN(blocks, (uint64_t)UINT32_MAX));
}

enum err feed_rank_save(const struct feed_rank *r, struct buf *buf) { return r->working ? ERR_NOT_FOUND : kv_rank_save(r->kv, buf); }
size_t feed_rank_save_bytes(const struct feed_rank *r) { return r->working ? 0 : kv_rank_save_bytes(r->kv); }
void feed_rank_cleared(struct feed_rank *r) { push(r, (struct msg){ .kind = MSG_CLEARED }); }

void feed_rank_reconnected(struct feed_rank *r)
{
	if (r->connected)
		push(r, (struct msg){ .kind = MSG_CONNECTED });
}

void feed_rank_tick(struct feed_rank *r)
{
	if (r->working)
		return;
	try_replay(r);
	mend(r);
	look_again(r);
	tell_status(r);
	if (!r->ever_connected && !r->said_unreached && mono_diff_us(io_now(r->w->feed->loop), r->opened) > UNREACHED_US) {
		r->said_unreached = true;
		LOG_WARN("events_unreached", "worker=%s rank=%u endpoint=%s why=\"no connection: its cache is guessed from our own requests; does it publish (--kv-events-config) and bind tcp://*:PORT ?\"",
		         url_of(r), r->rank, r->events);
	}
}

void feed_rank_info(const struct feed_rank *r, struct arena *a, struct feed_rank_info *ret_i)
{
	*ret_i = (struct feed_rank_info){
		.events = arena_str(a, str_of(r->events)), .replay = arena_str(a, str_of(r->replay)), .connected = r->connected, .replaying = r->replaying,
		.queue_bytes = r->queue_bytes, .dropped = r->dropped, .undecoded = r->undecoded, .replay_asks = r->replay_asks, .replay_timeouts = r->replay_timeouts,
		.uncertain = r->told_uncertain,
	};
	if (!r->working)
		ret_i->kv = kv_rank_stats(r->kv);
}
