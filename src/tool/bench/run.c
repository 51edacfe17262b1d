/* run.c: `kvasir-bench run`: flags to options, one run, three reports. */
#include "bench/run.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bench/load.h"
#include "io/file.h"

enum { TRACE_MAX = 64 << 20, REPORT_MAX = 256 << 20 };

static const char usage[] =
	"usage: kvasir-bench run --target URL --workload NAME|FILE [options]\n"
	"\n"
	"Plays a workload against an OpenAI-compatible server and prints what its users would have seen.\n"
	"Workloads: %s (a Mooncake-format file, JSON lines).\n"
	"\n"
	"  --target URL        http://host:port of the gateway or of a worker\n"
	"  --workload W        a workload's name or a trace file\n"
	"  --model NAME        the model member of each request              (default: none is sent)\n"
	"  --rate R            requests a second of simulated time, > 0      (default 4; a trace: its own times)\n"
	"  --concurrency C     closed loop of C sessions instead, 1..4096\n"
	"  --duration S        simulated seconds in which requests begin, > 0 (default 60)\n"
	"  --warmup S          requests intended before S do not count       (default 0)\n"
	"  --drain S           how long the last answers may take            (default 60)\n"
	"  --time-scale X      the server runs X times faster than real      (default 1; as given to kvasir-sim)\n"
	"  --seed N            same seed, same requests at the same times    (default 1)\n"
	"  --groups N --prefix-tok N --question-tok N --output-tok N --turns N --think S   change the workload's shape\n"
	"  --slo-ttft S        goodput counts answers with TTFT <= S         (default 2)\n"
	"  --slo-tpot S        and time per output token <= S                (default 0.05)\n"
	"  --completions       POST /v1/completions instead of chat\n"
	"  --no-stream         whole answers instead of streams\n"
	"  --api-key KEY       sent as a bearer token\n"
	"  --out DIR           also writes summary.json and requests.csv there\n"
	"  --quiet             no progress lines\n";

struct args {
	struct bench_load_opts load;
	struct bench_workload_opts work;
	struct bench_slo slo;
	double warmup_s;
	const char *out;
};

static bool number(const char *name, const char *text, double min, double max, double *ret)
{
	double v;
	if (!str_to_f64(str_of(text), &v) || v < min || v > max) {
		fprintf(stderr, "kvasir-bench run: --%s: \"%s\" is not a number from %g to %g\n", name, text, min, max);
		return false;
	}
	*ret = v;
	return true;
}

static bool whole(const char *name, const char *text, double max, uint32_t *ret)
{
	double v;
	if (!number(name, text, 0, max, &v))
		return false;
	*ret = (uint32_t)v;
	return true;
}

enum { F_TARGET = 1, F_WORKLOAD, F_MODEL, F_RATE, F_CONC, F_DURATION, F_WARMUP, F_DRAIN, F_SCALE, F_SEED, F_GROUPS, F_PREFIX, F_QUESTION, F_OUTPUT,
       F_TURNS, F_THINK, F_SLO_TTFT, F_SLO_TPOT, F_COMPLETIONS, F_NO_STREAM, F_KEY, F_OUT, F_QUIET, F_HELP };

static const struct option flags[] = {
	{ "target", 1, 0, F_TARGET }, { "workload", 1, 0, F_WORKLOAD }, { "model", 1, 0, F_MODEL }, { "rate", 1, 0, F_RATE },
	{ "concurrency", 1, 0, F_CONC }, { "duration", 1, 0, F_DURATION }, { "warmup", 1, 0, F_WARMUP }, { "drain", 1, 0, F_DRAIN },
	{ "time-scale", 1, 0, F_SCALE }, { "seed", 1, 0, F_SEED }, { "groups", 1, 0, F_GROUPS }, { "prefix-tok", 1, 0, F_PREFIX },
	{ "question-tok", 1, 0, F_QUESTION }, { "output-tok", 1, 0, F_OUTPUT }, { "turns", 1, 0, F_TURNS }, { "think", 1, 0, F_THINK },
	{ "slo-ttft", 1, 0, F_SLO_TTFT }, { "slo-tpot", 1, 0, F_SLO_TPOT }, { "completions", 0, 0, F_COMPLETIONS },
	{ "no-stream", 0, 0, F_NO_STREAM }, { "api-key", 1, 0, F_KEY }, { "out", 1, 0, F_OUT }, { "quiet", 0, 0, F_QUIET }, { "help", 0, 0, F_HELP }, { 0 },
};

static bool take_flag(struct args *a, int f, const char *v)
{
	double seed;
	switch (f) {
	case F_TARGET: a->load.target = str_of(v); return true;
	case F_WORKLOAD: a->work.name = str_of(v); return true;
	case F_MODEL: a->load.model = str_of(v); return true;
	case F_RATE: return number("rate", v, 1e-3, 1e6, &a->work.rate);
	case F_CONC: return whole("concurrency", v, 4096, &a->load.concurrency);
	case F_DURATION: return number("duration", v, 0.1, 1e6, &a->load.duration_s);
	case F_WARMUP: return number("warmup", v, 0, 1e6, &a->warmup_s);
	case F_DRAIN: return number("drain", v, 0, 1e6, &a->load.drain_s);
	case F_SCALE: return number("time-scale", v, 1e-2, 1e4, &a->load.time_scale);
	case F_SEED:
		if (!number("seed", v, 0, 9e15, &seed))
			return false;
		a->load.seed = (uint64_t)seed;
		return true;
	case F_GROUPS: return whole("groups", v, 1e6, &a->work.groups);
	case F_PREFIX: return whole("prefix-tok", v, 1e6, &a->work.prefix_tok);
	case F_QUESTION: return whole("question-tok", v, 1e6, &a->work.question_tok);
	case F_OUTPUT: return whole("output-tok", v, 1e6, &a->work.output_tok);
	case F_TURNS: return whole("turns", v, 1000, &a->work.turns);
	case F_THINK: return number("think", v, 0, 1e6, &a->work.think_s);
	case F_SLO_TTFT: return number("slo-ttft", v, 0, 1e6, &a->slo.ttft_s);
	case F_SLO_TPOT: return number("slo-tpot", v, 0, 1e6, &a->slo.tpot_s);
	case F_COMPLETIONS: a->load.completions = true; return true;
	case F_NO_STREAM: a->load.stream = false; return true;
	case F_KEY: a->load.api_key = str_of(v); return true;
	case F_OUT: a->out = v; return true;
	case F_QUIET: a->load.progress = false; return true;
	case F_HELP: printf(usage, bench_workload_names()); exit(0);
	default: return false;
	}
}

static bool parse(int argc, char **argv, struct args *a)
{
	int f;
	*a = (struct args){ .load = { .time_scale = 1, .duration_s = 60, .drain_s = 60, .seed = 1, .stream = true, .progress = true },
	                    .work = { .think_s = -1 }, .slo = { 2, 0.05 } };
	optind = 1;
	while ((f = getopt_long(argc, argv, "", flags, NULL)) != -1)
		if (!take_flag(a, f, optarg))
			return false;
	if (a->load.target.n == 0 || a->work.name.n == 0 || optind < argc) {
		fprintf(stderr, usage, bench_workload_names());
		return false;
	}
	a->work.seed = a->load.seed;
	a->work.duration_s = a->load.duration_s;
	return true;
}

static enum err make_workload(struct args *a, struct arena *ar, struct bench_workload *ret_w)
{
	struct buf trace = { 0 };
	char *path = str_dup(a->work.name);
	enum err e = ERR_OK;
	if (io_path_kind(path) == IO_PATH_FILE)
		e = io_file_read(path, TRACE_MAX, &trace);
	free(path);
	if (e == ERR_OK) {
		a->work.trace = buf_str(&trace);
		if (a->load.concurrency)
			a->work.rate = 0;
		else if (a->work.rate == 0 && a->work.trace.n == 0)
			a->work.rate = 4;
		e = bench_workload_make(&a->work, ar, ret_w);
	}
	buf_done(&trace);
	return e;
}

static bool write_file(const char *dir, const char *name, struct str text)
{
	char path[4096];
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	FILE *f = fopen(path, "w");
	bool ok = f && fwrite(text.p, 1, text.n, f) == text.n;
	ok = (!f || fclose(f) == 0) && ok;
	if (!ok)
		fprintf(stderr, "kvasir-bench run: cannot write %s: %s\n", path, strerror(errno));
	return ok;
}

static int report(const struct args *a, const bench_samples *s)
{
	struct buf b;
	struct bench_summary sum = bench_summarize(s->p, s->n, a->warmup_s, a->slo);
	bool ok = true;
	buf_init(&b, REPORT_MAX);
	must(bench_report_text(&b, &sum, a->slo) == ERR_OK);
	fwrite(buf_str(&b).p, 1, b.n, stdout);
	if (a->out) {
		if (mkdir(a->out, 0777) && errno != EEXIST) {
			fprintf(stderr, "kvasir-bench run: cannot make the folder %s: %s\n", a->out, strerror(errno));
			ok = false;
		}
		buf_clear(&b);
		must(bench_report_json(&b, &sum, a->slo) == ERR_OK);
		ok = ok && write_file(a->out, "summary.json", buf_str(&b));
		buf_clear(&b);
		must(bench_report_csv(&b, s->p, s->n) == ERR_OK);
		ok = ok && write_file(a->out, "requests.csv", buf_str(&b));
	}
	buf_done(&b);
	return ok && sum.n ? 0 : 1;
}

/* A report on nothing but errors is no measurement. */
static bool none_well(const bench_samples *s)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->p[i].ok)
			return false;
	if (s->n > 0 && s->p[0].status == 0)
		fprintf(stderr, "kvasir-bench run: none of %zu requests was answered: is something listening at --target?\n", s->n);
	else if (s->n > 0)
		fprintf(stderr, "kvasir-bench run: none of %zu requests was answered well; the first got HTTP status %d (404: is --model served there?)\n", s->n, s->p[0].status);
	return s->n > 0;
}

int bench_run(int argc, char **argv)
{
	struct args a;
	struct bench_workload w;
	struct arena ar;
	bench_samples s = { 0 };
	if (!parse(argc, argv, &a))
		return 2;
	arena_init(&ar, 0);
	enum err e = make_workload(&a, &ar, &w);
	if (e == ERR_NOT_FOUND)
		fprintf(stderr, "kvasir-bench run: --workload: no such workload or file; there are %s\n", bench_workload_names());
	else if (e != ERR_OK)
		fprintf(stderr, "kvasir-bench run: --workload: %s\n", err_text(e));
	if (e == ERR_OK && (e = bench_load_run(&a.load, &w, &s)) != ERR_OK)
		fprintf(stderr, "kvasir-bench run: --target %.*s: %s\n", STR_ARG(a.load.target),
			e == ERR_BAD_REQUEST ? "a URL like http://127.0.0.1:8080 is needed" : err_text(e));
	int rc = e == ERR_OK ? report(&a, &s) : 2;
	if (rc == 0 && none_well(&s))
		rc = 1;
	VEC_FREE(&s);
	arena_done(&ar);
	return rc;
}
