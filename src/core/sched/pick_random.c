/* pick_random.c: random: what kube-proxy does. */
#include "sched/pick.h"

static size_t pick(struct sched_ask *a, struct sched_candidate *c, size_t n, const char **ret_reason)
{
	(void)c;
	*ret_reason = "random";
	return (size_t)rand_below(a->rand, n);
}

const struct sched_policy sched_random = { .name = "random", .pick = pick };
