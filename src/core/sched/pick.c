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

/* Where i belongs among order[1..n), which is sorted; SIZE_MAX: nowhere, a better rank of its worker is there already. */
static size_t place_of(const struct sched_candidate *c, size_t i, size_t *order, size_t *n)
{
	size_t at = 1;
	while (at < *n && c[order[at]].ttft_us <= c[i].ttft_us) {
		if (c[order[at]].worker == c[i].worker)
			return SIZE_MAX;
		at++;
	}
	for (size_t k = at; k < *n; k++)
		if (c[order[k]].worker == c[i].worker) {
			(*n)--;
			for (; k < *n; k++)
				order[k] = order[k + 1];
		}
	return at;
}

size_t sched_order(const struct sched_candidate *c, size_t n, size_t chosen, size_t *ret_order, size_t max)
{
	size_t n_order = 1;
	ret_order[0] = chosen;
	for (size_t i = 0; max > 1 && i < n; i++) {
		if (c[i].worker == c[chosen].worker || (n_order == max && c[i].ttft_us >= c[ret_order[max - 1]].ttft_us))
			continue;
		size_t at = place_of(c, i, ret_order, &n_order);
		if (at == SIZE_MAX)
			continue;
		n_order = MIN(n_order + 1, max);
		for (size_t k = n_order - 1; k > at; k--)
			ret_order[k] = ret_order[k - 1];
		ret_order[at] = i;
	}
	return n_order;
}
