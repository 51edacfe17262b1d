/* receipt.c: the ring of decisions: what was known, what was chosen, how it ended. Fixed entries, so its size is its number. */
#include <stdio.h>
#include <string.h>

#include "brain/brain_priv.h"

static void copy_name(char *to, struct str s)
{
	size_t n = MIN(s.n, (size_t)BRAIN_NAME_MAX - 1);
	if (n)
		memcpy(to, s.p, n);
	to[n] = 0;
}

struct brain_receipt_entry *brain_receipt_entry(const struct brain *b, uint64_t id)
{
	struct brain_receipt_entry *r = &b->receipts[id % b->opts.receipts];
	return id && r->id == id ? r : NULL;
}

static const char *note_of(const struct sched_candidate *c)
{
	const struct fleet_rank *r = &c->worker->ranks[c->rank];
	if (c->apart)
		return c->pressed ? "cache nearly full" : "over the bounded load";
	if (!r->events_seen)
		return "no events: approximate";
	return r->uncertain ? "events lost: uncertain" : "";
}

static void put_candidate(struct brain_receipt_entry *r, const struct sched_candidate *c)
{
	r->candidates[r->n_candidates++] = (struct brain_candidate){ .worker = c->worker->id,
		.rank = c->worker->n_ranks > 1 ? (int32_t)c->rank : -1, .hit_tok = c->hit_tok, .lower = c->lower, .in_flight = c->load.requests,
		.prefill_tok = c->load.prefill_tok, .ttft_us = (int64_t)(c->base_us * c->slow),
		.health = (enum brain_health)c->worker->health, .note = note_of(c) };
}

/* Small fleets are shown whole; of large ones the largest overlaps: the others differ by load alone. */
static void put_candidates(struct brain *b, struct brain_receipt_entry *r, const struct brain_leg *chosen)
{
	uint32_t least_tok = 0;
	for (size_t i = 0; b->candidates.n > BRAIN_RECEIPT_CANDIDATES && i < b->candidates.n; i++)
		least_tok = MAX(least_tok, b->candidates.p[i].hit_tok / 2 + 1);
	for (size_t i = 0; i < b->candidates.n; i++) {
		const struct sched_candidate *c = &b->candidates.p[i];
		bool is_chosen = c->worker->id == chosen->worker && (chosen->dp_rank < 0 || (uint32_t)chosen->dp_rank == c->rank);
		bool room = r->n_candidates < BRAIN_RECEIPT_CANDIDATES - 1u || (b->candidates.n <= BRAIN_RECEIPT_CANDIDATES && r->n_candidates < BRAIN_RECEIPT_CANDIDATES);
		if (is_chosen)
			r->chosen = r->n_candidates;
		if (is_chosen || (room && c->hit_tok >= least_tok))
			put_candidate(r, c);
	}
}

uint64_t brain_receipt_begin(struct brain *b, const struct brain_ask *a, const struct sched_ask *s, const struct brain_plan *p, struct mono now)
{
	uint64_t id = b->next_receipt++;
	struct brain_receipt_entry *r = &b->receipts[id % b->opts.receipts];
	*r = (struct brain_receipt_entry){ .id = id, .at = now, .reason = p->reason, .prompt_tok = s->prompt_tok, .max_hit_tok = s->max_hit_tok,
		.ttft_predicted_us = p->legs[0].ttft_us, .ttft_measured_us = -1, .cached_reported = UINT32_MAX };
	r->ids = a->prompt ? (a->no_lookup ? "keys, but the engine will not look" : a->prefix_only ? "prefix" : "keys") : a->no_ids_why ? a->no_ids_why : "no token ids";
	r->outcome = a->dry_run ? "asked only" : "in flight";
	copy_name(r->request_id, str_of(a->request_id));
	copy_name(r->client_id, a->client_id);
	copy_name(r->model, a->model);
	put_candidates(b, r, &p->legs[0]);
	return id;
}

/* ---- looking in ---- */

static struct brain_receipt copy_out(const struct brain_receipt_entry *r, struct arena *a)
{
	struct brain_candidate *list = arena_new(a, struct brain_candidate, r->n_candidates);
	memcpy(list, r->candidates, r->n_candidates * sizeof(*list));
	return (struct brain_receipt){ .id = r->id, .request_id = arena_str(a, str_of(r->request_id)),
		.client_id = arena_str(a, str_of(r->client_id)), .model = arena_str(a, str_of(r->model)),
		.at = r->at, .reason = r->reason, .ids = r->ids, .prompt_tok = r->prompt_tok, .max_hit_tok = r->max_hit_tok,
		.n_candidates = r->n_candidates, .candidates = list, .chosen = r->chosen, .ttft_predicted_us = r->ttft_predicted_us,
		.ttft_measured_us = r->ttft_measured_us, .cached_reported = r->cached_reported, .output_tok = r->output_tok, .outcome = r->outcome };
}

uint64_t brain_receipt_newest(const struct brain *b) { return b->next_receipt - 1; }

bool brain_receipt_find(const struct brain *b, struct str request_id, struct arena *a, struct brain_receipt *ret)
{
	struct str wanted = str_sub(request_id, 0, BRAIN_NAME_MAX - 1);
	const struct brain_receipt_entry *found = NULL;
	for (uint64_t id = b->next_receipt - 1; wanted.n && id && b->next_receipt - id <= b->opts.receipts; id--) {
		const struct brain_receipt_entry *r = &b->receipts[id % b->opts.receipts];
		bool ours = str_eq(str_of(r->request_id), wanted);
		if (ours || (!found && str_eq(str_of(r->client_id), wanted)))
			found = r;
		if (ours)
			break;
	}
	if (found)
		*ret = copy_out(found, a);
	return found != NULL;
}

bool brain_receipt_get(const struct brain *b, uint64_t id, struct arena *a, struct brain_receipt *ret)
{
	const struct brain_receipt_entry *r = brain_receipt_entry(b, id);
	if (r)
		*ret = copy_out(r, a);
	return r != NULL;
}
