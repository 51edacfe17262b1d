/* sim/exch.h: one HTTP exchange of a worker: the request's body gathered, the answer sent through the fault that was
 * picked for it, if any. Inside the room. Born in on_request, dies with on_done or on_gone. */
#ifndef SIM_EXCH_H
#define SIM_EXCH_H

#include "sim/worker.h"

struct sim_call;
struct sim_route;

struct sim_exch {
	struct sim_worker *w;
	struct http_req *r;
	const struct sim_route *route;
	struct buf body, out;
	struct sim_call *call; /* an inference call under way */
	struct io_timer *wait_timer;
	struct sim_fault fault; /* only with faulty */
	uint64_t sent_bytes;
	bool faulty, silent; /* silent: nothing more goes out */
};

struct sim_exch *sim_exch_new(struct sim_worker *w, struct http_req *r, const struct sim_route *route);
void sim_exch_free(struct sim_exch *x); /* aborts its call */

/* Whole answers. */
void sim_exch_json(struct sim_exch *x, int status, struct str body);
void sim_exch_text(struct sim_exch *x, int status, struct str content_type, struct str body);
void sim_exch_fail(struct sim_exch *x, const struct sim_fail *f);
/* Streams: begin, then events (each ending in a blank line; each becomes one HTTP chunk), then end. */
void sim_exch_stream(struct sim_exch *x);
void sim_exch_events(struct sim_exch *x, struct str events);
void sim_exch_end(struct sim_exch *x);

#endif
