/* sched/cost.h: predicted time to first token of a prompt at a rank, and what is learnt from the measured ones.
 *
 *   T = slow * (a + wait + load + b*u + q*((s+u)^2 - s^2) + steps*(c0 + k*context + r*contexts))
 *
 * load: what of s lies on a tier below the GPU and comes from there first.
 * s tokens found, u = n - s to compute (at least one). wait: prompt tokens in flight ahead of us, a step of what decodes,
 * and the wait for a slot or cache space when the rank is full. slow is one factor per worker, learnt from measured TTFTs:
 * bounded, each sample moves it by a limited step, so no single stall and no wrong profile tips the fleet. Units: microseconds. */
#ifndef SCHED_COST_H
#define SCHED_COST_H

#include "fleet/fleet.h"
#include "kv/index.h"
#include "sched/profile.h"

struct sched_cost_in {
	const struct sched_profile *profile;
	const struct fleet_worker *worker;
	struct fleet_load load;
	double foreign;              /* requests the gauges see beyond ours */
	uint32_t hit_tok, new_tok;   /* s and u */
	struct kv_load lower;        /* part of s */
};
double sched_ttft_us(const struct sched_cost_in *in);                       /* before the slow factor */
double sched_prefill_us(const struct sched_profile *p, double s, double u); /* compute alone */
double sched_load_us(const struct sched_profile *p, struct kv_load l);      /* from the tiers below the GPU */
double sched_slow(const struct fleet_worker *w);

/* A stream's first token came: predicted_us is sched_ttft_us at its choice (before the slow factor). */
void sched_learn_ttft(struct fleet_worker *w, double predicted_us, double measured_us);
void sched_learn_request(struct fleet_worker *w, double new_tok, double decode_us);   /* at its end */
void sched_learn_peak(struct fleet_worker *w, double latency_us, struct mono now);    /* p2c-ewma: first byte, or the whole answer */
double sched_peak(const struct fleet_worker *w, struct mono now);

#endif
