/* sim/worker.h: workers with sockets around their engines, and the fleet of them. Inside the room, and for cmd.
 *
 * A worker is HTTP server + one engine and one event publisher per data-parallel rank + the faults that act on it.
 * Everything runs on one loop. A dead worker has none of its sockets; its counters stay. Time: a worker's virtual
 * clock runs time_scale times as fast as the loop's. */
#ifndef SIM_WORKER_H
#define SIM_WORKER_H

#include "base/list.h"
#include "base/map.h"
#include "http/server.h"
#include "io/zmq.h"
#include "sim/engine.h"
#include "sim/options.h"

struct sim_worker;
struct sim_fleet;

struct sim_late {
	struct buf payload;
	uint64_t seq;
	int64_t due_us;
	bool live;
};

struct sim_rank {
	struct sim_worker *w;
	uint32_t n;
	struct sim_engine *engine;
	struct io_zpub *pub;
	uint64_t seq; /* of the next batch */
	struct buf out;
	VEC(struct sim_late) late; /* delayed, or held to trade places; in order of sending */
	struct io_timer *late_timer;
};

/* Faults that last until taken back. Chances are 0 when off. */
struct sim_standing {
	double slow, lose, drop, twice, swap, noise, delay_us, idle_s;
	uint32_t lie_block_tok;
	bool mute_replay, unhealthy;
};

/* received: inference calls whose body is here, whatever became of them; repeated: those with an X-Request-Id that some
 * worker of the fleet had received before. */
struct sim_counts {
	uint64_t calls, received, repeated, inference, tokenize, render, bad, gone;
};

struct sim_worker {
	struct sim_fleet *fleet;
	uint32_t n;
	bool alive;
	struct http_server *server;
	struct sim_rank *ranks;
	struct io_timer *step_timer, *life_timer;
	struct mono born;
	int64_t born_unix_s;
	struct rand rand;
	struct sim_serving serving;
	struct sim_faults faults;
	struct sim_standing standing;
	struct sim_counts counts;
	uint64_t response_ids[256]; /* a ring of digests: responses this worker holds */
	uint64_t responses;
	double back_after_s; /* a death is due: < 0 stays dead */
	bool dying, pumping;
	uint32_t open_calls;
	char unbound[128]; /* the address that it could not bind when it came alive */
};

struct sim_fleet {
	struct io_loop *loop;
	struct io_zhub *hub;
	const struct sim_options *o;
	struct sim_vocab *vocab;
	struct map seen_ids; /* digests of X-Request-Id; forgotten when there are too many */
	struct sim_worker *workers;
};

/* IO: a port is taken (*ret_why says which). */
must_use enum err sim_fleet_start(struct io_loop *loop, const struct sim_options *o, struct sim_fleet **ret_fleet, char ret_why[256]);
void sim_fleet_free(struct sim_fleet *f);
/* Applies it to the workers it names, or to `self` when it names none. */
void sim_fleet_fault(struct sim_fleet *f, const struct sim_fault *x, struct sim_worker *self);

int64_t sim_worker_now_us(const struct sim_worker *w); /* virtual */
void sim_worker_pump(struct sim_worker *w); /* moves the engines to now and arms the timer for what is next */
void sim_worker_die_soon(struct sim_worker *w, double back_after_s); /* at the end of this turn; < 0: stays dead */
struct sim_rank *sim_worker_least_loaded(struct sim_worker *w);
uint64_t sim_worker_random(struct sim_worker *w);
void sim_worker_note_received(struct sim_worker *w, struct str request_id);
void sim_worker_hold_response(struct sim_worker *w, struct str id);
bool sim_worker_holds_response(const struct sim_worker *w, struct str id);

/* call.c: the engines' callbacks and the inference calls. */
extern const struct sim_engine_ops sim_call_engine_ops;
/* publish.c */
void sim_rank_publish_start(struct sim_rank *r);
void sim_rank_publish(struct sim_rank *r, const struct sim_batch *b);
void sim_rank_publish_done(struct sim_rank *r); /* forgets what is late */
/* metrics.c */
must_use enum err sim_metrics_write(const struct sim_worker *w, struct buf *out);
must_use enum err sim_stats_write(const struct sim_worker *w, struct buf *out);
/* route.c: arg is the worker. */
extern const struct http_server_ops sim_route_ops;

#endif
