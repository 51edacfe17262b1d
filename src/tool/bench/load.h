/* bench/load.h: plays a workload against a server over HTTP and measures it.
 *
 * Open loop by default: a request is sent at its intended time whatever the server does, and its TTFT counts from the
 * intended time. With `concurrency` a closed loop: so many sessions at a time, the next starts when one ends (use it for
 * throughput, not for latency claims). One loop, one thread. time_scale X: the server runs X times faster than real; the
 * schedule is compressed by X and every duration reported is multiplied by X. */
#ifndef BENCH_LOAD_H
#define BENCH_LOAD_H

#include "base/vec.h"
#include "bench/report.h"
#include "bench/workload.h"
#include "io/loop.h"

struct bench_load_opts {
	struct str target;             /* http://host:port[/prefix] */
	struct str model;              /* "" = no model member */
	struct str api_key;            /* sent as bearer when given */
	uint64_t seed;
	double time_scale;             /* 1 */
	double duration_s;             /* simulated; no turn of a session is begun after it */
	double drain_s;                /* simulated: how long the last requests may take */
	uint32_t concurrency;          /* 0 = open loop */
	bool stream, completions;      /* completions: POST /v1/completions with a string prompt */
	bool progress;                 /* a line on stderr every 2 s */
};
typedef VEC(struct bench_sample) bench_samples;

/* BAD_REQUEST: the target does not parse; CONNECT: its name does not resolve. Samples are in order of the intended time of sending. */
must_use enum err bench_load_run(const struct bench_load_opts *o, const struct bench_workload *w, bench_samples *ret_samples);

#endif
