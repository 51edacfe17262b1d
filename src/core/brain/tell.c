/* tell.c: tickets and their settlement. Every way a request can end comes through end(); nothing else releases. */
#include <stdlib.h>
#include <string.h>

#include "base/must.h"
#include "brain/brain_priv.h"

enum { SLOT_BITS = 24 };

/* ---- tickets ---- */

struct brain_ticket *brain_ticket_new(struct brain *b)
{
	uint32_t slot;
	if (b->free_tickets.n) {
		slot = b->free_tickets.p[--b->free_tickets.n];
	} else {
		slot = (uint32_t)b->tickets.n;
		must(slot < (1u << SLOT_BITS) - 1);
		VEC_PUSH(&b->tickets, must_calloc(1, sizeof(struct brain_ticket)));
	}
	struct brain_ticket *t = b->tickets.p[slot];
	*t = (struct brain_ticket){ .id = ++b->ticket_age << SLOT_BITS | (slot + 1) };
	list_init(&t->waiting);
	return t;
}

struct brain_ticket *brain_ticket_of(const struct brain *b, uint64_t id)
{
	uint64_t slot = id & ((1u << SLOT_BITS) - 1);
	struct brain_ticket *t = slot && slot <= b->tickets.n ? b->tickets.p[slot - 1] : NULL;
	return t && t->id == id ? t : NULL;
}

static struct brain_keys take_buffer(struct brain *b, size_t n)
{
	struct brain_keys k = b->n_spare ? b->spare[--b->n_spare] : (struct brain_keys){ NULL, 0 };
	if (k.cap < n) {
		free(k.p);
		k = (struct brain_keys){ must_malloc(n * sizeof(uint64_t)), n };
	}
	return k;
}

void brain_ticket_copy_keys(struct brain *b, struct brain_ticket *t, const struct kv_prompt *p)
{
	size_t total = 0, at = 0;
	for (uint32_t i = 0; i < p->n_sets; i++)
		total += p->sets[i].n;
	t->prompt = *p;
	t->keys = take_buffer(b, total);
	for (uint32_t i = 0; i < p->n_sets; i++) {
		if (p->sets[i].n)
			memcpy(t->keys.p + at, p->sets[i].keys, p->sets[i].n * sizeof(uint64_t));
		t->prompt.sets[i].keys = t->keys.p + at;
		at += p->sets[i].n;
	}
}

void brain_ticket_drop_keys(struct brain *b, struct brain_ticket *t)
{
	t->prompt.n_sets = 0;
	if (t->keys.p && b->n_spare < BRAIN_SPARE_BUFFERS)
		b->spare[b->n_spare++] = t->keys;
	else
		free(t->keys.p);
	t->keys = (struct brain_keys){ NULL, 0 };
}

void brain_ticket_free(struct brain *b, struct brain_ticket *t)
{
	list_del(&t->waiting);
	brain_ticket_drop_keys(b, t);
	VEC_PUSH(&b->free_tickets, (uint32_t)(t->id & ((1u << SLOT_BITS) - 1)) - 1);
	t->id = 0;
}

/* ---- what a plan leaves for later ---- */

void brain_post(struct brain *b)
{
	struct brain_ticket *t = b->unposted;
	if (!t)
		return;
	b->unposted = NULL;
	const struct brain_leg_state *l = &t->legs[t->leg];
	if (!t->charge.worker || !t->prompt.n_sets || l->kv_id == b->no_rank)
		return;
	t->flight = kv_index_flight_begin(b->index, l->kv_id, &t->prompt);
	kv_index_own(b->index, l->kv_id, &t->prompt, b->unposted_at);
	if (l->events)
		return;
	kv_index_approx_note(b->index, l->kv_id, &t->prompt, b->unposted_at);
	if (b->ops.on_work && kv_index_approx_work(b->index, 0))
		b->ops.on_work(b->arg);
	else
		kv_index_approx_work(b->index, UINT32_MAX);
}

bool brain_work(struct brain *b) { return kv_index_approx_work(b->index, KV_NOTE_AT_ONCE); }

/* ---- prompts that are over and whose events are still on their way ---- */

static void let_oldest_go(struct brain *b)
{
	const struct brain_settling *s = &b->settling[b->settling_at];
	kv_index_flight_end(b->index, s->flight);
	b->settling_tok -= s->tok;
	b->settling_at = (b->settling_at + 1) % BRAIN_SETTLING_MAX;
	b->n_settling--;
}

/* The key of its last whole block must have come by the events, if our keys are the worker's. */
static void count_told(struct brain *b, const struct brain_settling *s, enum kv_told told, struct mono now)
{
	struct fleet_worker *w = fleet_worker_of(b->fleet, s->worker);
	bool known = w && w->prefix_caching && s->rank < w->n_ranks && w->ranks[s->rank].events_seen && !w->ranks[s->rank].uncertain;
	if (known && (told == KV_TOLD || told == KV_NOT_TOLD))
		brain_truth_told(b, w, told == KV_TOLD, now);
}

/* The oldest is over when its events came or its time is up. In order, a few at a time: one whose events are late keeps those behind
 * it a little longer. */
static void let_settled_go(struct brain *b, uint32_t most, struct mono now)
{
	while (most-- && b->n_settling) {
		const struct brain_settling *s = &b->settling[b->settling_at];
		enum kv_told told = kv_index_flight_told(b->index, s->flight);
		if (told != KV_TOLD && mono_before(now, s->due))
			return;
		count_told(b, s, told, now);
		let_oldest_go(b);
	}
}

/* The ticket's flight is no longer its own. */
static void settle(struct brain *b, struct brain_ticket *t, struct mono now)
{
	if (!t->flight)
		return;
	while (b->n_settling == BRAIN_SETTLING_MAX || (b->n_settling && b->settling_tok + t->prompt_tok > BRAIN_SETTLING_MAX_TOK))
		let_oldest_go(b);
	uint32_t at = (b->settling_at + b->n_settling++) % BRAIN_SETTLING_MAX;
	const struct brain_leg_state *l = &t->legs[t->leg];
	b->settling[at] = (struct brain_settling){ t->flight, l->kv_id, t->prompt_tok, l->worker, l->rank, mono_add_us(now, BRAIN_SETTLE_US) };
	b->settling_tok += t->prompt_tok;
	t->flight = 0;
}

void brain_settle_clear(struct brain *b, kv_rank_id id)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < b->n_settling; i++) {
		struct brain_settling s = b->settling[(b->settling_at + i) % BRAIN_SETTLING_MAX];
		if (s.kv_id != id) {
			b->settling[(b->settling_at + kept++) % BRAIN_SETTLING_MAX] = s;
			continue;
		}
		kv_index_flight_end(b->index, s.flight);
		b->settling_tok -= s.tok;
	}
	b->n_settling = kept;
}

/* ---- settlement ---- */

static enum fleet_outcome outcome_of(enum brain_outcome o, int status)
{
	switch (o) {
	case BRAIN_DONE: return status ? fleet_outcome_of_status(status) : FLEET_ANSWERED;
	case BRAIN_CLIENT_LEFT:
	case BRAIN_NOT_SENT: return FLEET_NEUTRAL;
	case BRAIN_WORKER_ERROR: return status ? fleet_outcome_of_status(status) : FLEET_FAILED;
	case BRAIN_WORKER_DIED:
	case BRAIN_TIMED_OUT: return FLEET_FAILED;
	case BRAIN_CONNECT_FAILED: return FLEET_CONNECT_FAILED;
	}
	return FLEET_NEUTRAL;
}

static const char *outcome_word(enum brain_outcome o)
{
	static const char *const words[] = { "done", "client-left", "worker-error", "worker-died", "connect-failed", "timed-out", "not-sent" };
	must((size_t)o < ARRAY_LEN(words));
	return words[o];
}

/* The leg is over, for whatever reason: flight, charge and the worker's health. */
static void leave_leg(struct brain *b, struct brain_ticket *t, enum brain_outcome o, int status, struct mono now)
{
	kv_index_flight_end(b->index, t->flight);
	t->flight = 0;
	struct fleet_worker *w = t->charge.worker;
	if (!w)
		return;
	fleet_hold(w);               /* the charge may be the last that keeps it */
	fleet_charge_end(b->fleet, &t->charge);
	fleet_outcome(b->fleet, w, outcome_of(o, status), t->leg_started, now);
	fleet_release(b->fleet, w);
}

static void tell_switch(struct brain *b, struct brain_ticket *t, const struct brain_tell *x, struct mono now)
{
	if (x->leg >= t->n_legs || x->leg == t->leg) {
		b->strange_tells++;
		return;
	}
	leave_leg(b, t, x->outcome, x->status, now);
	list_del(&t->waiting);
	t->leg = x->leg;
	t->leg_started = now;
	const struct brain_leg_state *l = &t->legs[t->leg];
	struct fleet_worker *w = fleet_worker_of(b->fleet, l->worker);
	if (!w || l->rank >= w->n_ranks)
		return;                  /* gone meanwhile: the hand will find out, nothing is counted */
	fleet_charge_begin(&t->charge, w, l->rank, t->prompt_tok, l->new_tok);
	if (!t->stream) {
		t->due = mono_add_us(now, (int64_t)(l->base_us * sched_slow(w)));
		list_add_tail(&b->waiting, &t->waiting);
	}
	if (t->prompt.n_sets) {
		b->unposted = t;
		b->unposted_at = now;
		brain_post(b);
	}
}

static void tell_first(struct brain *b, struct brain_ticket *t, struct mono now)
{
	if (t->answered)
		return;
	t->answered = true;
	t->first_at = now;
	fleet_charge_answered(&t->charge);
	list_del(&t->waiting);
	brain_ticket_drop_keys(b, t);
	struct fleet_worker *w = t->charge.worker;
	double ttft_us = (double)mono_diff_us(now, t->leg_started);
	struct brain_receipt_entry *r = brain_receipt_entry(b, t->receipt);
	if (r && t->stream)
		r->ttft_measured_us = (int64_t)ttft_us;
	if (!w || !t->stream)
		return;
	sched_learn_ttft(w, t->legs[t->leg].base_us, ttft_us);
	sched_learn_peak(w, ttft_us, now);
}

static void tell_usage(struct brain *b, struct brain_ticket *t, const struct brain_tell *x, struct mono now)
{
	struct brain_receipt_entry *r = brain_receipt_entry(b, t->receipt);
	t->output_tok = MAX(t->output_tok, x->output_tok);
	if (r) {
		r->cached_reported = x->cached_tok;
		r->output_tok = t->output_tok;
	}
	if (t->usage_told || !t->charge.worker || !t->keyed || x->cached_tok == UINT32_MAX)
		return;
	t->usage_told = true;
	brain_truth_tell(b, t->charge.worker, t, x, now);
}

static void learn_end(struct brain *b, struct brain_ticket *t, struct mono now)
{
	struct fleet_worker *w = t->charge.worker;
	(void)b;
	if (!w)
		return;
	if (!t->stream)
		sched_learn_peak(w, (double)mono_diff_us(now, t->leg_started), now);
	if (t->stream && t->answered)
		sched_learn_request(w, t->charge.new_tok, (double)mono_diff_us(now, t->first_at));
}

static void end(struct brain *b, struct brain_ticket *t, const struct brain_tell *x, struct mono now)
{
	struct brain_receipt_entry *r = brain_receipt_entry(b, t->receipt);
	let_settled_go(b, 2, now);
	if (x->outcome == BRAIN_DONE && x->status < 400) { /* a refusal is quick, and says nothing of the worker's speed */
		learn_end(b, t, now);
		if (t->legs[t->leg].events)
			settle(b, t, now);
	}
	leave_leg(b, t, x->outcome, x->status, now);
	if (r) {
		r->outcome = outcome_word(x->outcome);
		r->output_tok = t->output_tok;
	}
	brain_ticket_free(b, t);
}

void brain_tell(struct brain *b, const struct brain_tell *x, struct mono now)
{
	brain_post(b);
	struct brain_ticket *t = brain_ticket_of(b, x->ticket);
	if (!t) {
		b->strange_tells++;
		return;
	}
	switch (x->kind) {
	case BRAIN_TELL_SENT: break;
	case BRAIN_TELL_SWITCH: tell_switch(b, t, x, now); break;
	case BRAIN_TELL_FIRST_TOKEN: tell_first(b, t, now); break;
	case BRAIN_TELL_TOKENS:
		t->output_tok += x->output_tok;
		fleet_charge_grow(&t->charge, x->output_tok);
		break;
	case BRAIN_TELL_USAGE: tell_usage(b, t, x, now); break;
	case BRAIN_TELL_END: end(b, t, x, now); break;
	}
}

/* A request without a stream shows no first token: it decodes from when its predicted one is due. It stays counted. */
void brain_tick(struct brain *b, struct mono now)
{
	brain_post(b);
	let_settled_go(b, BRAIN_SETTLE_A_TICK, now);
	LIST_FOR_SAFE(&b->waiting, it) {
		struct brain_ticket *t = container_of(it, struct brain_ticket, waiting);
		if (mono_before(now, t->due))
			continue;
		fleet_charge_decoding(&t->charge);
		list_del(&t->waiting);
	}
}
