/* io/loop_priv.h: the insides of a loop, for the files of this room.
 *
 * Every callback that libuv makes runs between io_loop_enter() and io_loop_leave(): the first reads the clock when the
 * turn has none yet, the second makes the io_soon() calls, so that output gathered by one callback leaves in one write. */
#ifndef IO_LOOP_PRIV_H
#define IO_LOOP_PRIV_H

#include <pthread.h>

#include "base/map.h"
#include "base/vec.h"
#include "io/loop.h"

#include <uv.h>    /* behind base.h: its headers define MIN and MAX too */


struct io_turn {
	bool open;                  /* has this turn read the clock? */
	struct mono now, start;
	struct io_stall stall;
};

struct io_heap_item {
	int64_t key_us;             /* <= the timer's own time: moving a timer later only writes the timer */
	struct io_timer *timer;
};

struct io_call {
	void (*fn)(void *arg);
	void *arg;
};

struct io_chunk;
struct io_sig;

struct io_loop {
	uv_loop_t uv;
	uv_async_t wake;            /* mailbox */
	uv_prepare_t prepare;       /* end of a turn */
	uv_idle_t idle;             /* runs only while io_soon() calls are left over, or io_later() ones wait */
	uv_poll_t tick;             /* timerfd of the earliest timer: exact below a millisecond, which uv_timer is not */
	int tick_fd;
	int64_t tick_us;            /* armed for; INT64_MAX = not */
	struct io_turn *turn;
	VEC(struct io_heap_item) heap;
	int64_t dispatch_us;        /* timers fire up to here now; -1 outside */
	struct list soon, later;
	bool stop, idling;
	pthread_mutex_t mail_lock;
	VEC(struct io_call) mail;   /* under mail_lock */
	VEC(struct io_call) mail_out;
	struct list signals;
	struct map names;           /* resolver cache, see addr.c */
	struct io_chunk *chunks;    /* spare output chunks, see tcp.c */
	unsigned n_chunks;
	char *read_buf;
};

struct mono io_clock_read(void);
void io_loop_run_soon(struct io_loop *l);
void io_timers_init(struct io_loop *l);
void io_timers_close(struct io_loop *l);
void io_names_free(struct io_loop *l);     /* addr.c */
void io_chunks_free(struct io_loop *l);    /* tcp.c */

static inline void io_loop_enter(struct io_loop *l)
{
	struct io_turn *t = l->turn;
	if (!t->open) {
		t->open = true;
		t->now = t->start = io_clock_read();
	}
}

static inline void io_loop_leave(struct io_loop *l)
{
	if (!list_empty(&l->soon))
		io_loop_run_soon(l);
}

#endif
