/* io/loop.h: one event loop (libuv behind it), its clock, timers, signals and mailbox. The only room with system calls.
 *
 * Thread: everything here belongs to the thread that runs the loop, except io_post() and io_loop_stop_from_any().
 * The clock is read once per turn: io_now(). Callbacks run on the loop, never from inside the call that armed them. */
#ifndef IO_LOOP_H
#define IO_LOOP_H

#include "base/err.h"
#include "base/list.h"
#include "base/mono.h"
#include "base/str.h"

struct io_loop;
struct io_timer;

struct io_loop *io_loop_new(void);
void io_loop_free(struct io_loop *l);       /* every handle must have been closed; must() otherwise in debug */
void io_loop_run(struct io_loop *l);        /* until io_loop_stop() */
void io_loop_stop(struct io_loop *l);
void io_loop_stop_from_any(struct io_loop *l);   /* the same from another thread */
struct mono io_now(const struct io_loop *l);
struct mono io_clock(void);                 /* reads the clock now (benches, latency marks inside a turn) */
int64_t io_thread_cpu_ns(void);             /* CPU time of the calling thread (benches) */
int64_t io_unix_us(void);                   /* wall clock, for logs and "created" members */
void io_random(void *p, size_t n);          /* bytes from the kernel; aborts when there are none */
bool io_loop_alive(struct io_loop *l);      /* are there handles left? one turn is run without waiting */

/* Timers. A stopped timer costs nothing. io_timer_free() may be called inside its own callback. */
struct io_timer *io_timer_new(struct io_loop *l, void (*fn)(void *arg), void *arg);
void io_timer_at(struct io_timer *t, struct mono when);     /* (re)arms; fires once */
void io_timer_after(struct io_timer *t, int64_t us);
void io_timer_every(struct io_timer *t, int64_t us);        /* deadlines do not drift */
void io_timer_stop(struct io_timer *t);
void io_timer_free(struct io_timer *t);                     /* NULL is fine */

/* A call made when the callback that runs now has returned (before the loop waits again). The node is a member of the
 * caller's struct; asking twice before it ran is one call. io_soon_cancel() before the struct dies. */
struct io_soon {
	struct list node;
	void (*fn)(void *arg);
	void *arg;
};
void io_soon_init(struct io_soon *s, void (*fn)(void *arg), void *arg);
void io_soon(struct io_loop *l, struct io_soon *s);
void io_soon_cancel(struct io_soon *s);
/* The same for work so long that others should be served between two pieces of it: made in a later turn, after what is ready on the
 * sockets by then, in order, no more of it in one turn than fills IO_LATER_US. */
enum { IO_LATER_US = 1000 };
void io_later(struct io_loop *l, struct io_soon *s);

/* Mailbox: post a call to the loop from any thread. Order per sender is kept; wakes once per batch. */
void io_post(struct io_loop *l, void (*fn)(void *arg), void *arg);

/* Runs `work` on the thread pool, then `done` on the loop. */
void io_work(struct io_loop *l, void (*work)(void *arg), void (*done)(void *arg), void *arg);

/* Signals: fn on the loop. One handler per signal number. */
void io_signal(struct io_loop *l, int signum, void (*fn)(void *arg, int signum), void *arg);
void io_signals_close(struct io_loop *l);

/* Stall probe: how long turns kept the loop busy. Sum and worst since the last call (then reset), and count over 1 ms. */
struct io_stall { uint64_t turns, busy_us, over_1ms, worst_us; };
struct io_stall io_loop_stall(struct io_loop *l);

#endif
