/* ledger.c: the counters of requests in flight. The only file that changes a struct fleet_load. */
#include "fleet/ledger.h"

#include <string.h>

#include "base/must.h"

static struct fleet_rank *rank_of(const struct fleet_charge *c) { return &c->worker->ranks[c->rank]; }

static void take_u32(uint32_t *counter, uint32_t n)
{
	must(*counter >= n);
	*counter -= n;
}
static void take_u64(uint64_t *counter, uint64_t n)
{
	must(*counter >= n);
	*counter -= n;
}

void fleet_charge_begin(struct fleet_charge *c, struct fleet_worker *w, uint32_t rank, uint32_t prompt_tok, uint32_t new_tok)
{
	must(!c->worker && rank < w->n_ranks);
	*c = (struct fleet_charge){ .worker = w, .rank = rank, .prompt_tok = prompt_tok, .new_tok = new_tok };
	fleet_hold(w);
	struct fleet_rank *r = rank_of(c);
	r->load.requests++;
	r->load.unanswered++;
	r->load.prefill_tok += new_tok;
	r->load.new_tok += new_tok;
	r->peak_requests = MAX(r->peak_requests, r->load.requests);
	w->n_requests++;
}

void fleet_charge_decoding(struct fleet_charge *c)
{
	if (!c->worker || c->decoding)
		return;
	struct fleet_load *l = &rank_of(c)->load;
	c->decoding = true;
	take_u64(&l->prefill_tok, c->new_tok);
	l->contexts++;
	l->context_tok += (uint64_t)c->prompt_tok + c->grown_tok;
}

void fleet_charge_answered(struct fleet_charge *c)
{
	if (!c->worker || c->answered)
		return;
	c->answered = true;
	take_u32(&rank_of(c)->load.unanswered, 1);
	fleet_charge_decoding(c);
}

void fleet_charge_grow(struct fleet_charge *c, uint32_t tok)
{
	if (!c->worker || tok > UINT32_MAX - c->grown_tok)
		return;
	struct fleet_load *l = &rank_of(c)->load;
	c->grown_tok += tok;
	l->new_tok += tok;
	if (c->decoding)
		l->context_tok += tok;
}

void fleet_charge_end(struct fleet *f, struct fleet_charge *c)
{
	if (!c->worker)
		return;
	struct fleet_worker *w = c->worker;
	struct fleet_load *l = &rank_of(c)->load;
	take_u32(&l->requests, 1);
	take_u32(&l->unanswered, !c->answered);
	take_u64(&l->new_tok, (uint64_t)c->new_tok + c->grown_tok);
	if (c->decoding) {
		take_u32(&l->contexts, 1);
		take_u64(&l->context_tok, (uint64_t)c->prompt_tok + c->grown_tok);
	} else {
		take_u64(&l->prefill_tok, c->new_tok);
	}
	*c = (struct fleet_charge){ 0 };
	fleet_release(f, w);
}

struct fleet_load fleet_load_of(const struct fleet_worker *w, uint32_t rank)
{
	struct fleet_load sum = w->ranks[rank].load;
	for (const struct fleet_worker *e = w->elder; e; e = e->elder) {
		if (rank >= e->n_ranks)
			continue;
		const struct fleet_load *l = &e->ranks[rank].load;
		sum.requests += l->requests;
		sum.unanswered += l->unanswered;
		sum.contexts += l->contexts;
		sum.prefill_tok += l->prefill_tok;
		sum.context_tok += l->context_tok;
		sum.new_tok += l->new_tok;
	}
	return sum;
}

bool fleet_is_idle(const struct fleet *f)
{
	static const struct fleet_load none;
	for (size_t i = 0; i < fleet_slots(f); i++) {
		const struct fleet_worker *w = fleet_slot(f, i);
		for (uint32_t r = 0; w && r < w->n_ranks; r++)
			if (memcmp(&w->ranks[r].load, &none, sizeof(none)) != 0)
				return false;
		if (w && w->refs)
			return false;
	}
	return true;
}
