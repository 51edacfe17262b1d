/* pick_hash.c: consistent-hash with bounded load: every key ranks all workers by a hash of (key, worker) and takes the
 * first whose load stays within 1.25 times the mean. A worker that joins or leaves moves only its own keys. */
#include <math.h>

#include "base/hash.h"
#include "sched/pick.h"

#define BOUND 1.25

static uint64_t score(const struct sched_ask *a, const struct sched_candidate *c)
{
	return hash_mix(a->affinity_key ^ hash_mix(c->worker->url_hash + c->rank));
}

static size_t pick(struct sched_ask *a, struct sched_candidate *c, size_t n, const char **ret_reason)
{
	double total = 1;
	for (size_t i = 0; i < n; i++)
		total += c[i].load.requests;
	double limit = ceil(BOUND * total / (double)n);
	size_t best = SIZE_MAX;
	for (size_t i = 0; i < n; i++)
		if (c[i].load.requests + 1 <= limit && (best == SIZE_MAX || score(a, &c[i]) > score(a, &c[best])))
			best = i;
	*ret_reason = "consistent-hash";
	return best == SIZE_MAX ? 0 : best;      /* somebody is always at or below the mean */
}

const struct sched_policy sched_consistent_hash = { .name = "consistent-hash", .pick = pick };
