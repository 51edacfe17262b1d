/* bench/talk.h: one session of a workload while it runs. Owner: bench/load.c's loop. Private to the bench. */
#ifndef BENCH_TALK_H
#define BENCH_TALK_H

#include "base/list.h"
#include "base/map.h"
#include "bench/load.h"
#include "http/client.h"

struct bench_talk_shared {
	const struct bench_load_opts *o;
	struct io_loop *loop;
	struct http_pool *pool;
	struct io_addr addr;
	struct str host, prefix;
	struct mono began;
	bench_samples *samples;
	struct map workers;                                  /* hash of x-kvasir-worker -> index */
	void (*on_turn)(void *arg, bool sent, bool ok);      /* a request was sent (true), or answered (false) */
	void (*on_end)(void *arg);                           /* the session is over; called once per talk */
	void *arg;
};

/* Starts at intended time at_s (simulated seconds since began); links itself into `talks`. */
void bench_talk_start(struct bench_talk_shared *sh, const struct bench_session *s, double at_s, struct list *talks);
void bench_talk_abort(struct list *node);                   /* its request fails now; on_end follows inside the call */

#endif
