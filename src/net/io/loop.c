/* The loop itself: turns, the mailbox, deferred calls, signals, the thread pool. Timers are in timer.c. */
#include "io/loop_priv.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

#include "base/must.h"
#include "io/tcp.h"

#define SOON_ROUNDS 64   /* calls that ask for calls; more of them wait for the next turn */

struct io_sig {
	struct list node;
	uv_signal_t uv;
	void (*fn)(void *arg, int signum);
	void *arg;
};

struct io_job {
	uv_work_t uv;
	void (*work)(void *arg), (*done)(void *arg);
	void *arg;
};

/* ---- clocks and chance ------------------------------------------------------------------------------------- */

struct mono io_clock_read(void)
{
	struct timespec ts;
	must(clock_gettime(CLOCK_MONOTONIC, &ts) == 0);
	return (struct mono){ (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000 };
}

struct mono io_clock(void) { return io_clock_read(); }

struct mono io_now(const struct io_loop *l)
{
	struct io_turn *t = l->turn;
	if (!t->open) {
		t->open = true;
		t->now = t->start = io_clock_read();
	}
	return t->now;
}

int64_t io_unix_us(void)
{
	struct timespec ts;
	must(clock_gettime(CLOCK_REALTIME, &ts) == 0);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

int64_t io_thread_cpu_ns(void)
{
	struct timespec ts;
	must(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts) == 0);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

void io_random(void *p, size_t n)
{
	char *at = p;
	while (n > 0) {
		ssize_t got = getrandom(at, n, 0);
		if (got < 0 && errno == EINTR)
			continue;
		must(got > 0);
		at += got;
		n -= (size_t)got;
	}
}

/* ---- deferred calls ---------------------------------------------------------------------------------------- */

void io_soon_init(struct io_soon *s, void (*fn)(void *arg), void *arg)
{
	list_init(&s->node);
	s->fn = fn;
	s->arg = arg;
}

void io_soon(struct io_loop *l, struct io_soon *s)
{
	if (list_empty(&s->node))
		list_add_tail(&l->soon, &s->node);
}

void io_soon_cancel(struct io_soon *s) { list_del(&s->node); }

void io_loop_run_soon(struct io_loop *l)
{
	for (int round = 0; round < SOON_ROUNDS && !list_empty(&l->soon); round++) {
		struct list batch;
		list_init(&batch);
		list_add_tail(&l->soon, &batch);    /* splice: batch takes the nodes, the loop's head becomes empty */
		list_del(&l->soon);
		while (!list_empty(&batch)) {
			struct io_soon *s = container_of(batch.next, struct io_soon, node);
			list_del(&s->node);
			s->fn(s->arg);
		}
	}
}

void io_later(struct io_loop *l, struct io_soon *s)
{
	if (list_empty(&s->node))
		list_add_tail(&l->later, &s->node);
}

static void run_later(struct io_loop *l)
{
	struct mono until = mono_add_us(io_clock_read(), IO_LATER_US);
	do {
		struct io_soon *s = container_of(l->later.next, struct io_soon, node);
		list_del(&s->node);
		s->fn(s->arg);
		io_loop_leave(l);
	} while (!list_empty(&l->later) && mono_before(io_clock_read(), until));
}

static void on_idle(uv_idle_t *h)
{
	struct io_loop *l = h->data;
	io_loop_enter(l);
	io_loop_run_soon(l);
	if (!list_empty(&l->later))
		run_later(l);
}

/* Deferred calls that outlived the rounds, and those put off to a later turn, must not wait for the next event. */
static void idle_set(struct io_loop *l, bool on)
{
	if (on == l->idling)
		return;
	l->idling = on;
	if (on)
		must(uv_idle_start(&l->idle, on_idle) == 0);
	else
		must(uv_idle_stop(&l->idle) == 0);
}

static void turn_end(struct io_turn *t)
{
	if (!t->open)
		return;
	uint64_t busy = (uint64_t)(io_clock_read().us - t->start.us);
	t->open = false;
	t->stall.turns++;
	t->stall.busy_us += busy;
	t->stall.over_1ms += busy > 1000;
	t->stall.worst_us = MAX(t->stall.worst_us, busy);
}

/* The last thing before the loop waits. */
static void on_prepare(uv_prepare_t *h)
{
	struct io_loop *l = h->data;
	if (!list_empty(&l->soon)) {
		io_loop_enter(l);
		io_loop_run_soon(l);
	}
	idle_set(l, !list_empty(&l->soon) || !list_empty(&l->later));
	turn_end(l->turn);
}

struct io_stall io_loop_stall(struct io_loop *l)
{
	struct io_stall s = l->turn->stall;
	l->turn->stall = (struct io_stall){ 0 };
	return s;
}

/* ---- mailbox ----------------------------------------------------------------------------------------------- */

/* Makes the calls that were posted so far; false when there were none. */
static bool take_mail(struct io_loop *l)
{
	must(pthread_mutex_lock(&l->mail_lock) == 0);
	struct io_call *p = l->mail.p;
	size_t n = l->mail.n, cap = l->mail.cap;
	l->mail.p = l->mail_out.p;
	l->mail.cap = l->mail_out.cap;
	l->mail.n = 0;
	l->mail_out.p = p;
	l->mail_out.cap = cap;
	must(pthread_mutex_unlock(&l->mail_lock) == 0);
	for (size_t i = 0; i < n; i++)
		p[i].fn(p[i].arg);
	return n > 0;
}

static void on_wake(uv_async_t *h)
{
	struct io_loop *l = h->data;
	io_loop_enter(l);
	take_mail(l);
	io_loop_leave(l);
}

void io_post(struct io_loop *l, void (*fn)(void *arg), void *arg)
{
	must(pthread_mutex_lock(&l->mail_lock) == 0);
	bool first = l->mail.n == 0;
	VEC_PUSH(&l->mail, (struct io_call){ fn, arg });
	/* Inside the lock: a loop that is being stopped by this very message may free the handle right after it. */
	if (first)
		must(uv_async_send(&l->wake) == 0);
	must(pthread_mutex_unlock(&l->mail_lock) == 0);
}

/* ---- thread pool ------------------------------------------------------------------------------------------- */

static void on_job(uv_work_t *w)
{
	struct io_job *j = w->data;
	j->work(j->arg);
}

static void on_job_done(uv_work_t *w, int status)
{
	struct io_job *j = w->data;
	struct io_loop *l = w->loop->data;
	(void)status;    /* never cancelled */
	io_loop_enter(l);
	j->done(j->arg);
	free(j);
	io_loop_leave(l);
}

void io_work(struct io_loop *l, void (*work)(void *arg), void (*done)(void *arg), void *arg)
{
	struct io_job *j = must_calloc(1, sizeof(*j));
	j->uv.data = j;
	j->work = work;
	j->done = done;
	j->arg = arg;
	must(uv_queue_work(&l->uv, &j->uv, on_job, on_job_done) == 0);
}

/* ---- signals ----------------------------------------------------------------------------------------------- */

static void on_signal(uv_signal_t *h, int signum)
{
	struct io_sig *s = h->data;
	struct io_loop *l = h->loop->data;
	io_loop_enter(l);
	s->fn(s->arg, signum);
	io_loop_leave(l);
}

void io_signal(struct io_loop *l, int signum, void (*fn)(void *arg, int signum), void *arg)
{
	struct io_sig *s = must_calloc(1, sizeof(*s));
	s->fn = fn;
	s->arg = arg;
	s->uv.data = s;
	must(uv_signal_init(&l->uv, &s->uv) == 0);
	must(uv_signal_start(&s->uv, on_signal, signum) == 0);
	uv_unref((uv_handle_t *)&s->uv);
	list_add_tail(&l->signals, &s->node);
}

static void on_signal_closed(uv_handle_t *h) { free(h->data); }

void io_signals_close(struct io_loop *l)
{
	LIST_FOR_SAFE(&l->signals, it) {
		struct io_sig *s = container_of(it, struct io_sig, node);
		list_del(it);
		uv_close((uv_handle_t *)&s->uv, on_signal_closed);
	}
}

/* ---- life -------------------------------------------------------------------------------------------------- */

struct io_loop *io_loop_new(void)
{
	struct io_loop *l = must_calloc(1, sizeof(*l));
	signal(SIGPIPE, SIG_IGN);    /* a client that left is an error code, not a death */
	must(uv_loop_init(&l->uv) == 0);
	l->uv.data = l->wake.data = l->prepare.data = l->idle.data = l;
	l->turn = must_calloc(1, sizeof(*l->turn));
	l->read_buf = must_malloc(IO_READ_BYTES);
	list_init(&l->soon);
	list_init(&l->later);
	list_init(&l->signals);
	map_init(&l->names);
	must(pthread_mutex_init(&l->mail_lock, NULL) == 0);
	must(uv_async_init(&l->uv, &l->wake, on_wake) == 0);
	must(uv_prepare_init(&l->uv, &l->prepare) == 0);
	must(uv_prepare_start(&l->prepare, on_prepare) == 0);
	must(uv_idle_init(&l->uv, &l->idle) == 0);
	io_timers_init(l);
	uv_unref((uv_handle_t *)&l->wake);
	uv_unref((uv_handle_t *)&l->prepare);
	return l;
}

void io_loop_run(struct io_loop *l)
{
	uv_ref((uv_handle_t *)&l->wake);    /* wait even when nothing else is open */
	while (!l->stop)
		uv_run(&l->uv, UV_RUN_DEFAULT);
	l->stop = false;
	turn_end(l->turn);                  /* what comes between two runs has its own time */
	uv_unref((uv_handle_t *)&l->wake);
}

void io_loop_stop(struct io_loop *l)
{
	l->stop = true;
	uv_stop(&l->uv);
}

static void stop_call(void *arg) { io_loop_stop(arg); }
void io_loop_stop_from_any(struct io_loop *l) { io_post(l, stop_call, l); }

bool io_loop_alive(struct io_loop *l)
{
	uv_run(&l->uv, UV_RUN_NOWAIT);
	return uv_loop_alive(&l->uv) != 0;
}

void io_loop_free(struct io_loop *l)
{
	if (!l)
		return;
	while (l->uv.active_reqs.count > 0)    /* lookups and jobs that still run */
		uv_run(&l->uv, UV_RUN_ONCE);
	while (take_mail(l) || !list_empty(&l->soon))    /* the last words of what was freed just now */
		io_loop_run_soon(l);
	io_signals_close(l);
	io_timers_close(l);
	idle_set(l, false);
	uv_close((uv_handle_t *)&l->wake, NULL);
	uv_close((uv_handle_t *)&l->prepare, NULL);
	uv_close((uv_handle_t *)&l->idle, NULL);
	for (int turn = 0; turn < 3; turn++)
		uv_run(&l->uv, UV_RUN_NOWAIT);    /* close callbacks */
	int busy = uv_loop_close(&l->uv);
#ifdef KVASIR_DEBUG
	must(busy == 0);
#endif
	if (busy != 0)
		return;                     /* somebody's handle points into it: a leak is better than a crash */
	io_names_free(l);
	io_chunks_free(l);
	VEC_FREE(&l->mail);
	VEC_FREE(&l->mail_out);
	pthread_mutex_destroy(&l->mail_lock);
	free(l->read_buf);
	free(l->turn);
	free(l);
}
