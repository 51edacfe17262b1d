/* sched/pick.h: the choice among candidates. One policy = one small file ending in its ops struct.
 *
 * The brain fills the candidates (usable workers' ranks with load, overlap and predicted TTFT) and asks a policy for one.
 * A policy reads only what it is handed, so the same inputs and seed give the same choice. Policies other than kv are the
 * field's baselines and behave as their names say. Pure; nothing is allocated. */
#ifndef SCHED_PICK_H
#define SCHED_PICK_H

#include "base/mono.h"
#include "base/rand.h"
#include "fleet/fleet.h"
#include "kv/index.h"
#include "sched/profile.h"

struct sched_candidate {
	struct fleet_worker *worker;
	const struct sched_profile *profile;
	uint32_t rank;
	kv_rank_id kv_id;
	struct fleet_load load;
	double weight;          /* share of load it should get, (0, 1]: degraded, slow start */
	double slow;            /* its slow factor */
	double contexts;        /* requests there, others' included, over the weight */
	double base_us;         /* predicted TTFT before slow factor and weight: what is learnt against */
	double ttft_us;         /* predicted TTFT */
	uint32_t hit_tok;
	struct kv_load lower;   /* of it: what must be loaded first */
	double kv_usage;        /* of fresh gauges, else 0 */
	bool pressed;           /* its cache is nearly full and requests wait */
	bool apart;             /* set by kv: over the bounded load, or pressed: does not take part */
};

struct sched_ask {
	uint32_t prompt_tok;
	bool keyed;                          /* prompt keys are known: overlaps mean something */
	const struct kv_index *index;        /* with prompt, for owner memory */
	const struct kv_prompt *prompt;
	uint64_t affinity_key;               /* consistent-hash */
	uint32_t *turn;                      /* round-robin: the model's counter */
	struct rand *rand;
	struct mono now;
	kv_rank_id *scratch;                 /* room for as many ranks as candidates */
	uint32_t max_hit_tok;                /* out: the largest hit the prompt could have had */
};

struct sched_policy {
	const char *name;
	/* n >= 1; returns the index of the choice and a static word for why. */
	size_t (*pick)(struct sched_ask *a, struct sched_candidate *c, size_t n, const char **ret_reason);
};
extern const struct sched_policy sched_kv, sched_least_request, sched_round_robin, sched_random, sched_p2c_ewma, sched_consistent_hash;

/* The least predicted TTFT among the candidates `ok` lets through (NULL: all); near ties (5 % + 1 ms) go to the fewest
 * contexts, then to chance. SIZE_MAX: none. */
double sched_tie_us(double least_us);      /* up to here a predicted TTFT counts as equal to least_us */
typedef bool (*sched_filter)(const void *arg, const struct sched_candidate *c);
size_t sched_least_ttft(const struct sched_ask *a, const struct sched_candidate *c, size_t n, sched_filter ok, const void *arg);
/* The choice, then the next best by predicted TTFT, each of another worker; returns how many (<= max). */
size_t sched_order(const struct sched_candidate *c, size_t n, size_t chosen, size_t *ret_order, size_t max);

#endif
