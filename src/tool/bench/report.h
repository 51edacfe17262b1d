/* bench/report.h: what one run measured, as a table for people, JSON for programs, CSV a request for plots.
 *
 * TTFT counts from the INTENDED send time to the first non-empty content; so a late sender counts against the run. All
 * durations are simulated time (real time x time scale). Hit rate = cached tokens / prompt tokens as the workers report. */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include "base/buf.h"
#include "base/err.h"

struct bench_sample {
	double intended_s, ttft_s, e2e_s, lag_s;    /* lag: actual send - intended send */
	uint32_t prompt_tok, cached_tok, output_tok, chunks;
	int status;                                 /* HTTP status; 0: no answer */
	bool ok;                                    /* status 200, whole stream, no error event */
	uint32_t worker;                            /* index by order of appearance; UINT32_MAX: not said */
	uint32_t turn;
};
struct bench_slo { double ttft_s, tpot_s; };
struct bench_summary {
	size_t n, ok, errors, good;
	double span_s, offered_rps, achieved_rps, goodput_rpm, output_tok_s;
	double ttft_mean_s, ttft_p50_s, ttft_p90_s, ttft_p95_s, ttft_p99_s;
	double e2e_mean_s, e2e_p50_s, e2e_p95_s, tpot_p50_s, tpot_p95_s, hit_rate, lag_p99_s;
	double imbalance;                           /* requests of the busiest worker / mean */
};

/* Samples with intended_s < warmup_s are left out. Sorts nothing in place. */
struct bench_summary bench_summarize(const struct bench_sample *s, size_t n, double warmup_s, struct bench_slo slo);
must_use enum err bench_report_text(struct buf *b, const struct bench_summary *s, struct bench_slo slo);
must_use enum err bench_report_json(struct buf *b, const struct bench_summary *s, struct bench_slo slo);
must_use enum err bench_report_csv(struct buf *b, const struct bench_sample *s, size_t n);
/* The q-quantile (0..1) of x[0..n), nearest rank; 0 when n is 0. Sorts x. */
double bench_quantile(double *x, size_t n, double q);

#endif
