/* Timers: a binary heap over one timerfd. Most timers here guard sockets and are pushed later again and again without
 * ever firing, so moving one later, or stopping it, only writes the timer; the heap learns of it when the old time comes. */
#include "io/loop_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/must.h"

#define NOT_IN_HEAP SIZE_MAX

struct io_timer {
	struct io_loop *loop;
	void (*fn)(void *arg);
	void *arg;
	int64_t when_us;
	int64_t every_us;    /* 0 = once */
	size_t at;           /* place in the heap */
	bool armed;
};

static void heap_set(struct io_loop *l, size_t i, struct io_heap_item it)
{
	l->heap.p[i] = it;
	it.timer->at = i;
}

static void heap_up(struct io_loop *l, size_t i, struct io_heap_item it)
{
	while (i > 0 && l->heap.p[(i - 1) / 2].key_us > it.key_us) {
		heap_set(l, i, l->heap.p[(i - 1) / 2]);
		i = (i - 1) / 2;
	}
	heap_set(l, i, it);
}

static void heap_down(struct io_loop *l, size_t i, struct io_heap_item it)
{
	for (;;) {
		size_t child = 2 * i + 1;
		if (child >= l->heap.n)
			break;
		if (child + 1 < l->heap.n && l->heap.p[child + 1].key_us < l->heap.p[child].key_us)
			child++;
		if (l->heap.p[child].key_us >= it.key_us)
			break;
		heap_set(l, i, l->heap.p[child]);
		i = child;
	}
	heap_set(l, i, it);
}

static void heap_remove(struct io_loop *l, struct io_timer *t)
{
	size_t i = t->at;
	t->at = NOT_IN_HEAP;
	struct io_heap_item last = l->heap.p[--l->heap.n];
	if (last.timer == t)
		return;
	if (i > 0 && l->heap.p[(i - 1) / 2].key_us > last.key_us)
		heap_up(l, i, last);
	else
		heap_down(l, i, last);
}

/* The timerfd is set when the earliest time moved forward; a later one is found when it fires. */
static void tick_set(struct io_loop *l)
{
	int64_t want = l->heap.n > 0 ? l->heap.p[0].key_us : INT64_MAX;
	if (want >= l->tick_us || l->dispatch_us >= 0)
		return;
	want = MAX(want, 1);
	struct itimerspec its = { .it_value = { .tv_sec = (time_t)(want / 1000000), .tv_nsec = (long)(want % 1000000) * 1000 } };
	must(timerfd_settime(l->tick_fd, TFD_TIMER_ABSTIME, &its, NULL) == 0);
	l->tick_us = want;
}

/* One step at the heap's top; false when nothing there is due. */
static bool fire_one(struct io_loop *l, int64_t now_us)
{
	if (l->heap.n == 0 || l->heap.p[0].key_us > now_us)
		return false;
	struct io_timer *t = l->heap.p[0].timer;
	if (!t->armed) {
		heap_remove(l, t);
		return true;
	}
	bool due = t->when_us <= now_us;
	if (due && t->every_us > 0) {
		int64_t late = now_us - t->when_us;
		t->when_us += (late / t->every_us + 1) * t->every_us;
	}
	if (!due || t->every_us > 0) {
		heap_down(l, 0, (struct io_heap_item){ t->when_us, t });
	} else {
		heap_remove(l, t);
		t->armed = false;
	}
	if (due)
		t->fn(t->arg);
	return true;
}

static void on_tick(uv_poll_t *h, int status, int events)
{
	struct io_loop *l = h->data;
	uint64_t count;
	(void)status;
	(void)events;
	io_loop_enter(l);
	if (read(l->tick_fd, &count, sizeof(count)) < 0)
		must(errno == EAGAIN || errno == EINTR);
	l->turn->now = io_clock_read();
	l->tick_us = INT64_MAX;
	l->dispatch_us = l->turn->now.us;
	while (fire_one(l, l->dispatch_us))
		;
	l->dispatch_us = -1;
	io_loop_leave(l);
	tick_set(l);
}

void io_timers_init(struct io_loop *l)
{
	l->tick_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	must(l->tick_fd >= 0);
	l->tick_us = INT64_MAX;
	l->dispatch_us = -1;
	l->tick.data = l;
	must(uv_poll_init(&l->uv, &l->tick, l->tick_fd) == 0);
	must(uv_poll_start(&l->tick, UV_READABLE, on_tick) == 0);
	uv_unref((uv_handle_t *)&l->tick);
}

void io_timers_close(struct io_loop *l)
{
#ifdef KVASIR_DEBUG
	must(l->heap.n == 0);
#endif
	uv_close((uv_handle_t *)&l->tick, NULL);
	close(l->tick_fd);
	VEC_FREE(&l->heap);
}

struct io_timer *io_timer_new(struct io_loop *l, void (*fn)(void *arg), void *arg)
{
	struct io_timer *t = must_calloc(1, sizeof(*t));
	t->loop = l;
	t->fn = fn;
	t->arg = arg;
	t->at = NOT_IN_HEAP;
	return t;
}

void io_timer_at(struct io_timer *t, struct mono when)
{
	struct io_loop *l = t->loop;
	/* Armed by a timer's own callback for "now": next turn, or the dispatch would never end. */
	t->when_us = MAX(when.us, l->dispatch_us + 1);
	t->every_us = 0;
	t->armed = true;
	struct io_heap_item it = { t->when_us, t };
	if (t->at == NOT_IN_HEAP) {
		VEC_PUSH(&l->heap, it);
		heap_up(l, l->heap.n - 1, it);
	} else if (t->when_us < l->heap.p[t->at].key_us) {
		heap_up(l, t->at, it);
	}
	tick_set(l);
}

void io_timer_after(struct io_timer *t, int64_t us) { io_timer_at(t, mono_add_us(io_now(t->loop), us)); }

void io_timer_every(struct io_timer *t, int64_t us)
{
	must(us > 0);
	io_timer_after(t, us);
	t->every_us = us;
}

void io_timer_stop(struct io_timer *t) { t->armed = false; }

void io_timer_free(struct io_timer *t)
{
	if (!t)
		return;
	if (t->at != NOT_IN_HEAP)
		heap_remove(t->loop, t);
	free(t);
}
