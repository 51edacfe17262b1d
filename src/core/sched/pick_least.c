/* pick_least.c: least-request: the fewest requests in flight, ties by chance. */
#include "sched/pick.h"

static size_t pick(struct sched_ask *a, struct sched_candidate *c, size_t n, const char **ret_reason)
{
	size_t best = 0;
	uint64_t ties = 1;
	for (size_t i = 1; i < n; i++) {
		if (c[i].contexts < c[best].contexts) {
			best = i;
			ties = 1;
		} else if (c[i].contexts <= c[best].contexts && rand_below(a->rand, ++ties) == 0) {
			best = i;
		}
	}
	*ret_reason = "least-request";
	return best;
}

const struct sched_policy sched_least_request = { .name = "least-request", .pick = pick };
