/* pick_p2c.c: p2c-ewma as Linkerd has it: of two drawn by chance, the one with the lower (peak moving average of latency)
 * x (requests without a first byte + 1). */
#include "sched/cost.h"
#include "sched/pick.h"

static double cost(const struct sched_ask *a, const struct sched_candidate *c)
{
	return sched_peak(c->worker, a->now) * (c->load.unanswered + 1.0) / c->weight;
}

static size_t pick(struct sched_ask *a, struct sched_candidate *c, size_t n, const char **ret_reason)
{
	*ret_reason = "p2c-ewma";
	if (n == 1)
		return 0;
	size_t one = (size_t)rand_below(a->rand, n), two = (size_t)rand_below(a->rand, n - 1);
	two += two >= one;
	return cost(a, &c[two]) < cost(a, &c[one]) ? two : one;
}

const struct sched_policy sched_p2c_ewma = { .name = "p2c-ewma", .pick = pick };
