/* cost.c: the formula of routing.md section 4, and the one slow factor per worker. */
#include "sched/cost.h"

#include <math.h>

#define SLOW_LOG_MAX 4.2          /* a factor of about 64 either way */
#define SAMPLE_LOG_MAX 0.7        /* one sample counts as at most twice or half */
#define LEARN_RATE 0.05
#define LEARN_RATE_POOL 0.02
#define OWN_SAMPLES 8.0           /* so many samples weigh as much as the pool's opinion */
#define FRESH_SAMPLES 20.0        /* a worker that missed so many rounds of its pool counts half as much itself */
#define PEAK_DECAY_US 10e6
#define PEAK_START_US 30e3
#define EWMA 0.1

/* How fast a tier gives its blocks back. The host: what the shared facts (workloads.md section 3) give a simulated CPU tier, near
 * what one PCIe 4 x16 link does. Storage: no measured figure there; a local NVMe drive or a shared file system, roughly. */
#define HOST_BYTES_US 20e3
#define STORAGE_BYTES_US 2e3

/* Without a measurement: an answer of this many tokens. */
#define GUESSED_OUTPUT_TOK 200
#define GUESSED_NEW_TOK 1000

double sched_prefill_us(const struct sched_profile *p, double s, double u) { return p->b_us_tok * u + p->q_us_tok2 * u * (2 * s + u); }

double sched_load_us(const struct sched_profile *p, struct kv_load l)
{
	return p->kv_bytes_tok * (l.cpu_tok / HOST_BYTES_US + l.storage_tok / STORAGE_BYTES_US);
}

static double weights_us(const struct sched_profile *p, double tokens)
{
	return p->w_us + (p->w1_us > 0 ? p->w1_us * (1 - pow(p->idle_share, tokens)) : 0);
}

/* What decodes adds this to every step. */
static double decode_share_us(const struct sched_cost_in *in)
{
	const struct fleet_load *l = &in->load;
	double mean_tok = l->contexts ? (double)l->context_tok / l->contexts : GUESSED_NEW_TOK;
	double contexts = l->contexts + in->foreign;
	return in->profile->k_us_tok * mean_tok * contexts + in->profile->r_us * contexts;
}

/* Requests that must end before we can begin: over the engine's slots, or over its cache. */
static double over_limit(const struct sched_cost_in *in)
{
	const struct fleet_worker *w = in->worker;
	const struct sched_profile *p = in->profile;
	double over = in->load.requests + in->foreign + 1 - p->max_seqs;
	double cache_tok = w->blocks && w->block_size ? (double)fleet_rank_capacity(w) * w->block_size : (double)p->kv_tok;
	double each = MAX(w->measured.new_tok_ewma, 1.0);
	double over_cache = ((double)in->load.new_tok + in->new_tok + in->foreign * each - cache_tok) / each;
	return MAX(MAX(over, over_cache), 0.0);
}

static double slot_wait_us(const struct sched_cost_in *in, double step_us)
{
	double over = over_limit(in);
	if (over <= 0)
		return 0;
	double lasts = in->worker->measured.duration_ewma_us;
	if (lasts <= 0)
		lasts = GUESSED_OUTPUT_TOK * step_us;
	return MIN(over, 1e4) * lasts / MAX(in->load.contexts + in->foreign, 1.0);
}

double sched_ttft_us(const struct sched_cost_in *in)
{
	const struct sched_profile *p = in->profile;
	const struct fleet_load *l = &in->load;
	double ahead = (double)l->prefill_tok, u = MAX(in->new_tok, 1u);
	uint32_t waiting = l->requests > l->contexts ? l->requests - l->contexts : 0;
	double each = waiting ? ahead / waiting : 0;
	double share_us = p->c0_us + decode_share_us(in);
	double running_us = l->contexts + in->foreign > 0 ? weights_us(p, l->contexts + in->foreign) + share_us : 0;
	double steps = 1 + floor((ahead + u) / p->budget_tok);
	double wait_us = sched_prefill_us(p, 0, each) * waiting + running_us + slot_wait_us(in, running_us + p->w_us);
	double own_us = MAX(sched_prefill_us(p, in->hit_tok, u), weights_us(p, u));
	return p->a_us + wait_us + sched_load_us(p, in->lower) + own_us + steps * share_us;
}

/* A worker with few samples is taken to be like its pool: else one that was never measured looks faster than all others. So is
 * one that was measured long ago, while the others went on: else one that had a bad time, and is avoided for it, stays so for ever. */
static double slow_log(const struct fleet_worker *w)
{
	const struct fleet_measured *m = &w->measured;
	double since = (double)(w->pool->samples - MIN(m->pool_samples, w->pool->samples)) / MAX(w->pool->n_workers, 1u);
	double own = (double)m->samples / ((double)m->samples + OWN_SAMPLES) * FRESH_SAMPLES / (FRESH_SAMPLES + since);
	return own * w->measured.slow_log + (1 - own) * w->pool->slow_log;
}

double sched_slow(const struct fleet_worker *w) { return exp(slow_log(w)); }

static void ewma(double *v, double x, double rate, bool first) { *v = first ? x : *v + rate * (x - *v); }
static double clamp(double x, double lo, double hi) { return x < lo ? lo : x > hi ? hi : x; }

/* Quick at first (a wrong profile), slow later (noise). */
static void learn_log(double *v, uint64_t *samples, double ratio, double rate)
{
	++*samples;
	rate = MAX(rate, 1.0 / (1 + (double)*samples));
	*v = clamp(*v + rate * clamp(ratio - *v, -SAMPLE_LOG_MAX, SAMPLE_LOG_MAX), -SLOW_LOG_MAX, SLOW_LOG_MAX);
}

void sched_learn_ttft(struct fleet_worker *w, double predicted_us, double measured_us)
{
	struct fleet_measured *m = &w->measured;
	if (!(predicted_us > 0) || !(measured_us > 0))
		return;
	double predicted_now = predicted_us * sched_slow(w);
	ewma(&m->ttft_ewma_us, measured_us, EWMA, !m->samples);
	ewma(&m->ttft_error_ewma, fmin(fabs(predicted_now - measured_us) / measured_us, 10), EWMA, !m->samples);
	double ratio = log(measured_us / predicted_us);
	learn_log(&m->slow_log, &m->samples, ratio, LEARN_RATE);
	learn_log(&w->pool->slow_log, &w->pool->samples, ratio, LEARN_RATE_POOL);
	m->pool_samples = w->pool->samples;
}

void sched_learn_request(struct fleet_worker *w, double new_tok, double decode_us)
{
	struct fleet_measured *m = &w->measured;
	ewma(&m->duration_ewma_us, decode_us, EWMA, m->duration_ewma_us <= 0);
	ewma(&m->new_tok_ewma, new_tok, EWMA, m->new_tok_ewma <= 0);
}

/* Peak EWMA: a worse answer counts at once, better ones and silence win it back over PEAK_DECAY_US. */
void sched_learn_peak(struct fleet_worker *w, double latency_us, struct mono now)
{
	struct fleet_measured *m = &w->measured;
	double keep = exp(-(double)mono_diff_us(now, m->peak_ewma_at) / PEAK_DECAY_US);
	m->peak_ewma_us = latency_us > m->peak_ewma_us ? latency_us : m->peak_ewma_us * keep + latency_us * (1 - keep);
	m->peak_ewma_at = now;
}

double sched_peak(const struct fleet_worker *w, struct mono now)
{
	const struct fleet_measured *m = &w->measured;
	if (m->peak_ewma_us <= 0)
		return PEAK_START_US;
	return m->peak_ewma_us * exp(-(double)mono_diff_us(now, m->peak_ewma_at) / PEAK_DECAY_US);
}
