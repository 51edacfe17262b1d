/* fleet/ledger.h: what is in flight where, counted at the moment of choice, released by what ends it.
 *
 * A charge is one request's entry; it lives in the request's ticket and names the worker object it was counted on.
 * begin -> (first token, or predicted to be decoding) -> grow -> end, in this order; end from any state. A charge that
 * has ended is empty (worker NULL) and ending it again does nothing. No counter ever goes below zero: that would be our bug. */
#ifndef FLEET_LEDGER_H
#define FLEET_LEDGER_H

#include "fleet/fleet.h"

struct fleet_charge {
	struct fleet_worker *worker;     /* NULL: nothing is charged */
	uint32_t rank;
	uint32_t new_tok;                /* uncached prompt tokens */
	uint32_t prompt_tok, grown_tok;
	bool decoding, answered;
};

void fleet_charge_begin(struct fleet_charge *c, struct fleet_worker *w, uint32_t rank, uint32_t prompt_tok, uint32_t new_tok);
void fleet_charge_decoding(struct fleet_charge *c);              /* its prefill share ends; again: nothing */
void fleet_charge_answered(struct fleet_charge *c);              /* a first token was really seen */
void fleet_charge_grow(struct fleet_charge *c, uint32_t tok);    /* new tokens were generated */
void fleet_charge_end(struct fleet *f, struct fleet_charge *c);
/* The load of a rank, with what still runs on the draining worker at the same URL. */
struct fleet_load fleet_load_of(const struct fleet_worker *w, uint32_t rank);
bool fleet_is_idle(const struct fleet *f);                       /* every counter of every worker is zero */

#endif
