/* Candidates of a made-up fleet for the policy tests. */
#ifndef SCHED_KIT_H
#define SCHED_KIT_H

#include "fleet/fleet.h"
#include "sched/pick.h"

enum { KIT_MAX = 64 };
struct kit {
	struct fleet *fleet;
	struct fleet_worker *worker[KIT_MAX];
	struct sched_candidate c[KIT_MAX];
	kv_rank_id scratch[KIT_MAX];
	struct rand rand;
	uint32_t turn;
	size_t n;
};
void kit_init(struct kit *k, size_t n, uint64_t seed);
void kit_done(struct kit *k);
struct sched_ask kit_ask(struct kit *k);
/* Picks, counts one request on the choice, returns it. */
size_t kit_send(struct kit *k, const struct sched_policy *p, struct sched_ask *a);

#endif
