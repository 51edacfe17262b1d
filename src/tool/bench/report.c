/* report.c: sums, quantiles and their three faces. */
#include "bench/report.h"

#include <math.h>
#include <stdlib.h>

#include "base/vec.h"
#include "wire/json.h"

typedef VEC(double) vec_f64;

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

double bench_quantile(double *x, size_t n, double q)
{
	if (n == 0)
		return 0;
	qsort(x, n, sizeof(*x), by_value);
	size_t i = (size_t)ceil(q * (double)n);
	return x[i ? MIN(i, n) - 1 : 0];
}

static double mean_of(const double *x, size_t n)
{
	double sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += x[i];
	return n ? sum / (double)n : 0;
}

static double tpot_of(const struct bench_sample *s)
{
	return s->output_tok > 1 ? (s->e2e_s - s->ttft_s) / (s->output_tok - 1) : 0;
}

static double imbalance_of(const struct bench_sample *s, size_t n, double warmup_s)
{
	VEC(size_t) count = { 0 };
	size_t sum = 0, max = 0;
	for (size_t i = 0; i < n; i++) {
		if (s[i].intended_s < warmup_s || s[i].worker == UINT32_MAX)
			continue;
		while (count.n <= s[i].worker)
			VEC_PUSH(&count, 0);
		size_t here = ++count.p[s[i].worker];
		max = MAX(max, here);
		sum++;
	}
	double r = sum ? (double)max * (double)count.n / (double)sum : 0;
	VEC_FREE(&count);
	return r;
}

/* Sums of the samples that count, and their durations in vectors. */
struct tally { vec_f64 ttft, e2e, tpot, lag; uint64_t prompt, cached, output; double first_s, last_s; };

static void tally_one(struct tally *t, struct bench_summary *r, const struct bench_sample *s, struct bench_slo slo)
{
	t->first_s = r->n ? MIN(t->first_s, s->intended_s) : s->intended_s;
	t->last_s = MAX(t->last_s, s->intended_s + s->e2e_s);
	r->n++;
	VEC_PUSH(&t->lag, s->lag_s);
	if (!s->ok) {
		r->errors++;
		return;
	}
	r->ok++;
	r->good += s->ttft_s <= slo.ttft_s && tpot_of(s) <= slo.tpot_s;
	VEC_PUSH(&t->ttft, s->ttft_s);
	VEC_PUSH(&t->e2e, s->e2e_s);
	if (s->output_tok > 1)
		VEC_PUSH(&t->tpot, tpot_of(s));
	t->prompt += s->prompt_tok;
	t->cached += s->cached_tok;
	t->output += s->output_tok;
}

static void quantiles(struct bench_summary *r, struct tally *t)
{
	r->ttft_mean_s = mean_of(t->ttft.p, t->ttft.n);
	r->ttft_p50_s = bench_quantile(t->ttft.p, t->ttft.n, 0.5);
	r->ttft_p90_s = bench_quantile(t->ttft.p, t->ttft.n, 0.9);
	r->ttft_p95_s = bench_quantile(t->ttft.p, t->ttft.n, 0.95);
	r->ttft_p99_s = bench_quantile(t->ttft.p, t->ttft.n, 0.99);
	r->e2e_mean_s = mean_of(t->e2e.p, t->e2e.n);
	r->e2e_p50_s = bench_quantile(t->e2e.p, t->e2e.n, 0.5);
	r->e2e_p95_s = bench_quantile(t->e2e.p, t->e2e.n, 0.95);
	r->tpot_p50_s = bench_quantile(t->tpot.p, t->tpot.n, 0.5);
	r->tpot_p95_s = bench_quantile(t->tpot.p, t->tpot.n, 0.95);
	r->lag_p99_s = bench_quantile(t->lag.p, t->lag.n, 0.99);
}

struct bench_summary bench_summarize(const struct bench_sample *s, size_t n, double warmup_s, struct bench_slo slo)
{
	struct bench_summary r = { 0 };
	struct tally t = { 0 };
	double last_intended = 0;
	for (size_t i = 0; i < n; i++)
		if (s[i].intended_s >= warmup_s) {
			tally_one(&t, &r, &s[i], slo);
			last_intended = MAX(last_intended, s[i].intended_s);
		}
	quantiles(&r, &t);
	r.span_s = t.last_s - t.first_s;
	double arrivals_s = last_intended - t.first_s;
	r.offered_rps = arrivals_s > 0 ? (double)r.n / arrivals_s : 0;
	r.achieved_rps = r.span_s > 0 ? (double)r.ok / r.span_s : 0;
	r.goodput_rpm = r.span_s > 0 ? (double)r.good / r.span_s * 60 : 0;
	r.output_tok_s = r.span_s > 0 ? (double)t.output / r.span_s : 0;
	r.hit_rate = t.prompt ? (double)t.cached / (double)t.prompt : 0;
	r.imbalance = imbalance_of(s, n, warmup_s);
	VEC_FREE(&t.ttft);
	VEC_FREE(&t.e2e);
	VEC_FREE(&t.tpot);
	VEC_FREE(&t.lag);
	return r;
}

enum err bench_report_text(struct buf *b, const struct bench_summary *s, struct bench_slo slo)
{
	TRY(buf_printf(b, "requests %zu  ok %zu  errors %zu  offered %.2f/s  answered %.2f/s  send lag p99 %.1f ms\n", s->n, s->ok, s->errors,
	               s->offered_rps, s->achieved_rps, s->lag_p99_s * 1e3));
	TRY(buf_printf(b, "TTFT ms  mean %.1f  p50 %.1f  p90 %.1f  p95 %.1f  p99 %.1f\n", s->ttft_mean_s * 1e3, s->ttft_p50_s * 1e3, s->ttft_p90_s * 1e3,
	               s->ttft_p95_s * 1e3, s->ttft_p99_s * 1e3));
	TRY(buf_printf(b, "end to end ms  mean %.1f  p50 %.1f  p95 %.1f   per output token ms  p50 %.2f  p95 %.2f\n", s->e2e_mean_s * 1e3, s->e2e_p50_s * 1e3,
	               s->e2e_p95_s * 1e3, s->tpot_p50_s * 1e3, s->tpot_p95_s * 1e3));
	return buf_printf(b, "hit rate %.1f %%  output %.0f tok/s  busiest worker %.2f x mean  goodput %.0f requests/min (TTFT <= %.2f s, %.0f ms a token)\n",
	                  s->hit_rate * 100, s->output_tok_s, s->imbalance, s->goodput_rpm, slo.ttft_s, slo.tpot_s * 1e3);
}

enum err bench_report_json(struct buf *b, const struct bench_summary *s, struct bench_slo slo)
{
	const struct { const char *key; double v; } f[] = {
		{ "requests", (double)s->n }, { "ok", (double)s->ok }, { "errors", (double)s->errors }, { "good", (double)s->good },
		{ "span_s", s->span_s }, { "offered_rps", s->offered_rps }, { "achieved_rps", s->achieved_rps },
		{ "goodput_rpm", s->goodput_rpm }, { "slo_ttft_s", slo.ttft_s }, { "slo_tpot_s", slo.tpot_s }, { "output_tok_s", s->output_tok_s },
		{ "ttft_mean_s", s->ttft_mean_s }, { "ttft_p50_s", s->ttft_p50_s }, { "ttft_p90_s", s->ttft_p90_s },
		{ "ttft_p95_s", s->ttft_p95_s }, { "ttft_p99_s", s->ttft_p99_s }, { "e2e_mean_s", s->e2e_mean_s },
		{ "e2e_p50_s", s->e2e_p50_s }, { "e2e_p95_s", s->e2e_p95_s }, { "tpot_p50_s", s->tpot_p50_s },
		{ "tpot_p95_s", s->tpot_p95_s }, { "hit_rate", s->hit_rate }, { "lag_p99_s", s->lag_p99_s }, { "imbalance", s->imbalance },
	};
	struct json_writer w = json_writer(b);
	json_put_open(&w, '{');
	for (size_t i = 0; i < ARRAY_LEN(f); i++) {
		json_put_key(&w, str_of(f[i].key));
		json_put_f64(&w, f[i].v);
	}
	json_put_close(&w, '}');
	TRY(json_writer_done(&w));
	return buf_add(b, STR("\n"));
}

enum err bench_report_csv(struct buf *b, const struct bench_sample *s, size_t n)
{
	TRY(buf_add(b, STR("intended_s,ttft_s,e2e_s,lag_s,prompt_tok,cached_tok,output_tok,chunks,status,ok,worker,turn\n")));
	for (size_t i = 0; i < n; i++)
		TRY(buf_printf(b, "%.6f,%.6f,%.6f,%.6f,%u,%u,%u,%u,%d,%d,%d,%u\n", s[i].intended_s, s[i].ttft_s, s[i].e2e_s, s[i].lag_s, s[i].prompt_tok,
		               s[i].cached_tok, s[i].output_tok, s[i].chunks, s[i].status, s[i].ok, (int)s[i].worker, s[i].turn));
	return ERR_OK;
}
