/* lab.h: a brain in front of simulated engines, all in virtual time: what a routing policy does to time to first token.
 * One run = one workload, one routing, one seed; arrivals are Poisson and the same for every routing of a seed. */
#ifndef LAB_H
#define LAB_H

#include "brain/brain.h"

struct lab_load {
	const char *name;
	uint32_t families, prefix_tok, own_tok;    /* families 0: nothing is shared */
	bool same;                                 /* the own part is the same too: one prompt again and again */
	uint32_t turns;                            /* > 1: a session grows by own_tok + output a turn */
	uint32_t output_tok;
	double rate_per_s;
	double warm_rate_per_s;                    /* before warm_s; 0: the same */
	uint32_t variants;                         /* own parts of a family; 0: all different */
};
struct lab_opts {
	const struct lab_load *load;
	enum brain_routing routing;
	const char *profile;
	uint32_t workers;
	uint64_t cache_tok;                        /* of each; 0: the profile's */
	double run_s, warm_s;                      /* requests that arrive before warm_s are not measured */
	uint64_t seed;
	bool wrong_profile;                        /* the brain is told another accelerator */
	double slow[8];                            /* engine i takes so many times as long; 0 = 1 */
	int64_t event_delay_us;
	int64_t gauges_every_us;                   /* 0: the brain never sees a scrape */
};
struct lab_result {
	uint32_t measured;
	double ttft_mean_ms, ttft_p50_ms, ttft_p95_ms, hit_share, exact_share, busiest_share;
	bool ledger_zero;
};
struct lab_result lab_run(const struct lab_opts *o);
void lab_print(const struct lab_opts *o, const struct lab_result *r);

#endif
