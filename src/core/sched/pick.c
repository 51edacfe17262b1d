/* pick.c: what the policies share. */
#include "sched/pick.h"

#define TIE_SHARE 1.05        /* at 1.01 the spread of learnt factors decides, and b2b at 35/s takes 4.5 s instead of 0.24 s */
#define TIE_US 1000.0

double sched_tie_us(double us) { return us * TIE_SHARE + TIE_US; }

static double least_us(const struct sched_candidate *c, size_t n, sched_filter ok, const void *arg)
{
	double least = -1;
	for (size_t i = 0; i < n; i++)
		if ((least < 0 || c[i].ttft_us < least) && (!ok || ok(arg, &c[i])))
			least = c[i].ttft_us;
	return least;
}

size_t sched_least_ttft(const struct sched_ask *a, const struct sched_candidate *c, size_t n, sched_filter ok, const void *arg)
{
	double least = least_us(c, n, ok, arg), limit = sched_tie_us(least);
	size_t best = SIZE_MAX;
	uint64_t ties = 0;
	for (size_t i = 0; least >= 0 && i < n; i++) {
		if (c[i].ttft_us > limit || (ok && !ok(arg, &c[i])))
			continue;
		if (best == SIZE_MAX || c[i].contexts < c[best].contexts) {
			best = i;
			ties = 1;
		} else if (c[i].contexts <= c[best].contexts && rand_below(a->rand, ++ties) == 0) {
			best = i;
		}
	}
	return best;
}

static bool is_listed(const struct sched_candidate *c, const size_t *order, size_t n, const struct fleet_worker *w)
{
	for (size_t i = 0; i < n; i++)
		if (c[order[i]].worker == w)
			return true;
	return false;
}

size_t sched_order(const struct sched_candidate *c, size_t n, size_t chosen, size_t *ret_order, size_t max)
{
	size_t n_order = 0;
	ret_order[n_order++] = chosen;
	while (n_order < max) {
		size_t best = SIZE_MAX;
		for (size_t i = 0; i < n; i++)
			if ((best == SIZE_MAX || c[i].ttft_us < c[best].ttft_us) && !is_listed(c, ret_order, n_order, c[i].worker))
				best = i;
		if (best == SIZE_MAX)
			break;
		ret_order[n_order++] = best;
	}
	return n_order;
}
