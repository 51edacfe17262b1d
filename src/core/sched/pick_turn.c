/* pick_turn.c: round-robin: everybody in turn; each model of each pool has its own counter. */
#include "sched/pick.h"

static size_t pick(struct sched_ask *a, struct sched_candidate *c, size_t n, const char **ret_reason)
{
	(void)c;
	*ret_reason = "round-robin";
	return (*a->turn)++ % n;
}

const struct sched_policy sched_round_robin = { .name = "round-robin", .pick = pick };
