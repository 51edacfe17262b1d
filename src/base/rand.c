/* rand.c: distributions. */
#include "base/rand.h"

#include <math.h>

double rand_exp(struct rand *r, double mean) { return -mean * log(1.0 - rand_unit(r)); }

double rand_normal(struct rand *r, double mean, double sd)
{
	double u = 1.0 - rand_unit(r), v = rand_unit(r);
	return mean + sd * sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v);
}

double rand_lognormal_mean(struct rand *r, double mean, double sigma)
{
	return exp(rand_normal(r, log(mean) - sigma * sigma / 2, sigma));
}
