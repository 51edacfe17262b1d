#include "sim/worker.h"

enum { MAX_BATCH = 256 << 20 };

static void send_one(struct sim_rank *r, uint64_t seq, struct str payload, bool live)
{
	const struct sim_standing *s = &r->w->standing;
	if (!r->pub)
		return;
	io_zpub_send(r->pub, seq, payload, !live);
	if (s->twice > 0 && rand_unit(&r->w->rand) < s->twice)
		io_zpub_send(r->pub, seq, payload, false);
	if (s->noise > 0 && rand_unit(&r->w->rand) < s->noise)
		io_zpub_send(r->pub, r->seq++, STR("\x93\xcb\xdd\xff\xff\xff\xff\xc1"), false);
}

static void send_due(void *arg)
{
	struct sim_rank *r = arg;
	int64_t now = sim_worker_now_us(r->w);
	size_t n = 0;
	while (n < r->late.n && r->late.p[n].due_us <= now) {
		struct sim_late *l = &r->late.p[n++];
		send_one(r, l->seq, buf_str(&l->payload), l->live);
		buf_done(&l->payload);
	}
	for (size_t i = n; i < r->late.n; i++)
		r->late.p[i - n] = r->late.p[i];
	r->late.n -= n;
	if (r->late.n)
		io_timer_after(r->late_timer, MAX(1, (int64_t)((double)(r->late.p[0].due_us - now) / r->w->fleet->o->time_scale)));
}

/* The batch that was held back follows the one after it. */
static bool swap_late(struct sim_rank *r, uint64_t seq, bool live)
{
	if (!r->late.n || r->late.p[0].due_us != SIM_NEVER)
		return false;
	struct sim_late held = r->late.p[0];
	r->late.n = 0;
	send_one(r, seq, buf_str(&r->out), live);
	send_one(r, held.seq, buf_str(&held.payload), held.live);
	buf_done(&held.payload);
	return true;
}

static void keep_late(struct sim_rank *r, uint64_t seq, int64_t due_us, bool live)
{
	struct sim_late l = { .seq = seq, .due_us = due_us, .live = live };
	buf_init(&l.payload, MAX_BATCH);
	must(buf_add(&l.payload, buf_str(&r->out)) == ERR_OK);
	VEC_PUSH(&r->late, l);
	if (due_us != SIM_NEVER && r->late.n == 1)
		io_timer_after(r->late_timer, MAX(1, (int64_t)(r->w->standing.delay_us / r->w->fleet->o->time_scale)));
}

void sim_rank_publish(struct sim_rank *r, const struct sim_batch *b)
{
	const struct sim_standing *s = &r->w->standing;
	const struct sim_options *o = r->w->fleet->o;
	uint64_t seq = r->seq++;
	if (!r->pub || (s->drop > 0 && rand_unit(&r->w->rand) < s->drop))
		return;
	struct sim_encoding e = { .array = o->array_events, .wide_hashes = o->wide_hashes, .lie_block_tok = s->lie_block_tok };
	buf_clear(&r->out);
	if (sim_batch_encode(b, &e, (double)io_unix_us() * 1e-6, r->n, &r->out) != ERR_OK)
		return;
	bool live = !(s->lose > 0 && rand_unit(&r->w->rand) < s->lose);
	if (swap_late(r, seq, live))
		return;
	if (s->delay_us > 0)
		keep_late(r, seq, sim_worker_now_us(r->w) + (int64_t)s->delay_us, live);
	else if (s->swap > 0 && rand_unit(&r->w->rand) < s->swap)
		keep_late(r, seq, SIM_NEVER, live);
	else
		send_one(r, seq, buf_str(&r->out), live);
}

void sim_rank_publish_done(struct sim_rank *r)
{
	for (size_t i = 0; i < r->late.n; i++)
		buf_done(&r->late.p[i].payload);
	VEC_FREE(&r->late);
	buf_done(&r->out);
	io_timer_free(r->late_timer);
	r->late_timer = NULL;
}

void sim_rank_publish_start(struct sim_rank *r)
{
	buf_init(&r->out, MAX_BATCH);
	r->late_timer = io_timer_new(r->w->fleet->loop, send_due, r);
}
