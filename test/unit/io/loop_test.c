/* Timers, mailbox, deferred calls, signals, the thread pool. */
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "kit.h"

static int fired;
static void count(void *arg)
{
	(void)arg;
	fired++;
}

static void append(void *arg)
{
	static char order[64];
	if (!arg) {
		assert_string_equal(order, "abc");
		order[0] = 0;
		fired++;
		return;
	}
	strncat(order, arg, 1);
}

static void test_timers_fire_in_order_and_not_early(void **state)
{
	(void)state;
	static char name[3][2] = { "a", "b", "c" };
	struct io_timer *c = io_timer_new(kit_loop, append, name[2]), *a = io_timer_new(kit_loop, append, name[0]);
	struct io_timer *b = io_timer_new(kit_loop, append, name[1]), *end = io_timer_new(kit_loop, append, NULL);
	struct mono t0 = io_clock();
	fired = 0;
	io_timer_after(end, 9000);
	io_timer_after(c, 6000);
	io_timer_after(a, 2000);
	io_timer_after(b, 4000);
	kit_until_n(&fired, 1);
	assert_true(mono_diff_us(io_clock(), t0) >= 9000);
	io_timer_free(a);
	io_timer_free(b);
	io_timer_free(c);
	io_timer_free(end);
	io_timer_free(NULL);
}

static void test_timer_moved_later_earlier_and_stopped(void **state)
{
	(void)state;
	struct io_timer *t = io_timer_new(kit_loop, count, NULL);
	fired = 0;
	io_timer_after(t, 3000);
	io_timer_after(t, 30000000); /* later: the old time must not fire it */
	kit_run_us(10000);
	assert_int_equal(fired, 0);
	io_timer_after(t, 1000);     /* earlier */
	kit_run_us(10000);
	assert_int_equal(fired, 1);
	io_timer_after(t, 1000);
	io_timer_stop(t);
	kit_run_us(5000);
	assert_int_equal(fired, 1);
	io_timer_free(t);
}

static struct io_timer *self;
static void free_self(void *arg)
{
	(void)arg;
	io_timer_free(self);
	fired++;
}

static void test_timer_frees_itself(void **state)
{
	(void)state;
	fired = 0;
	self = io_timer_new(kit_loop, free_self, NULL);
	io_timer_after(self, 0);
	kit_until_n(&fired, 1);
	self = io_timer_new(kit_loop, free_self, NULL);
	io_timer_every(self, 1000);
	kit_until_n(&fired, 2);
}

static void rearm_now(void *arg)
{
	(void)arg;
	fired++;
	io_timer_after(self, 0);
}

static void test_timer_rearmed_for_now_does_not_starve_the_loop(void **state)
{
	(void)state;
	fired = 0;
	self = io_timer_new(kit_loop, rearm_now, NULL);
	io_timer_after(self, 0);
	kit_run_us(3000);    /* would never return */
	assert_true(fired > 1);
	io_timer_free(self);
}

static void test_every_does_not_drift(void **state)
{
	(void)state;
	int64_t us = INT64_MAX;
	for (int tries = 0; tries < 10 && us >= 400000; tries++) {    /* the machine may take itself away, hardly ten times */
		struct io_timer *t = io_timer_new(kit_loop, count, NULL);
		fired = 0;
		io_timer_every(t, 2000);
		struct mono t0 = io_clock();
		kit_until_n(&fired, 50);
		us = mono_diff_us(io_clock(), t0);
		assert_true(us >= 99000);
		io_timer_free(t);
	}
	assert_true(us < 400000);    /* some may be skipped, never add up */
}

static void test_many_timers(void **state)
{
	(void)state;
	enum { N = 2000 };
	static struct io_timer *t[N];
	fired = 0;
	for (int i = 0; i < N; i++) {
		t[i] = io_timer_new(kit_loop, count, NULL);
		io_timer_after(t[i], (i * 7919) % 20000);
	}
	for (int i = 0; i < N; i += 2)
		io_timer_free(t[i]);
	kit_until_n(&fired, N / 2);
	kit_run_us(1000);
	assert_int_equal(fired, N / 2);
	for (int i = 1; i < N; i += 2)
		io_timer_free(t[i]);
}

static struct io_soon soon;
static void test_soon_runs_once_and_can_be_cancelled(void **state)
{
	(void)state;
	fired = 0;
	io_soon_init(&soon, count, NULL);
	io_soon(kit_loop, &soon);
	io_soon(kit_loop, &soon);
	kit_run_us(1000);
	assert_int_equal(fired, 1);
	io_soon(kit_loop, &soon);
	io_soon_cancel(&soon);
	kit_run_us(1000);
	assert_int_equal(fired, 1);
}

static char story[64];
static void tell(void *arg) { strncat(story, arg, 1); }

static void work_long(void *arg)
{
	static char small[] = "-";
	tell(arg);
	usleep(2 * IO_LATER_US);
	io_post(kit_loop, tell, small);    /* somebody's small request, ready by now */
}

static void test_later_work_lets_others_in(void **state)
{
	static char name[4][2] = { "a", "b", "c", "d" };
	struct io_soon a, b, c, d;
	(void)state;
	story[0] = 0;
	io_soon_init(&a, work_long, name[0]);
	io_soon_init(&b, work_long, name[1]);
	io_soon_init(&c, work_long, name[2]);
	io_soon_init(&d, work_long, name[3]);
	io_later(kit_loop, &a);
	io_later(kit_loop, &b);
	io_later(kit_loop, &c);
	io_later(kit_loop, &d);
	io_later(kit_loop, &a);
	io_soon_cancel(&c);
	assert_string_equal(story, "");
	kit_run_us(50000);
	assert_string_equal(story, "a-b-d-");
}

static void again(void *arg)
{
	(void)arg;
	fired++;
	io_soon(kit_loop, &soon);
}

static void test_soon_that_asks_again_does_not_starve_the_loop(void **state)
{
	(void)state;
	fired = 0;
	io_soon_init(&soon, again, NULL);
	io_soon(kit_loop, &soon);
	kit_run_us(3000);
	assert_true(fired > 64);
	io_soon_cancel(&soon);
}

/* ---- mailbox ---- */

enum { SENDERS = 4, MESSAGES = 20000 };
static int next_of[SENDERS], received;
static bool order_kept;

static void take(void *arg)
{
	int v = (int)(intptr_t)arg, sender = v % SENDERS;
	order_kept &= v / SENDERS == next_of[sender]++;
	received++;
}

static void *sender_main(void *arg)
{
	for (int i = 0; i < MESSAGES; i++)
		io_post(kit_loop, take, (void *)(intptr_t)(i * SENDERS + (int)(intptr_t)arg));
	return NULL;
}

static void test_mailbox_keeps_each_senders_order(void **state)
{
	pthread_t t[SENDERS];
	(void)state;
	order_kept = true;
	received = 0;
	memset(next_of, 0, sizeof(next_of));
	for (int i = 0; i < SENDERS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, sender_main, (void *)(intptr_t)i), 0);
	kit_until_n(&received, SENDERS * MESSAGES);
	for (int i = 0; i < SENDERS; i++)
		pthread_join(t[i], NULL);
	assert_true(order_kept);
}

static void *stopper_main(void *arg)
{
	io_loop_stop_from_any(arg);
	return NULL;
}

static void test_stop_from_another_thread(void **state)
{
	pthread_t t;
	(void)state;
	assert_int_equal(pthread_create(&t, NULL, stopper_main, kit_loop), 0);
	io_loop_run(kit_loop);
	pthread_join(t, NULL);
}

/* ---- the rest ---- */

static int worked;
static void work(void *arg) { *(int *)arg = 7; }
static void work_done(void *arg)
{
	assert_int_equal(*(int *)arg, 7);
	worked++;
}

static void test_work(void **state)
{
	int v = 0;
	(void)state;
	worked = 0;
	io_work(kit_loop, work, work_done, &v);
	kit_until_n(&worked, 1);
}

static int last_signal, signals;
static void on_signal(void *arg, int signum)
{
	(void)arg;
	last_signal = signum;
	signals++;
}

static void test_signals(void **state)
{
	(void)state;
	io_signal(kit_loop, SIGUSR1, on_signal, NULL);
	io_signal(kit_loop, SIGHUP, on_signal, NULL);
	kill(getpid(), SIGUSR1);
	kit_until_n(&signals, 1);
	assert_int_equal(last_signal, SIGUSR1);
	kill(getpid(), SIGHUP);
	kit_until_n(&signals, 2);
	assert_int_equal(last_signal, SIGHUP);
	io_signals_close(kit_loop);
	assert_false(io_loop_alive(kit_loop));
}

static void test_cpu_time_passes_with_work_and_not_with_sleep(void **state)
{
	(void)state;
	int64_t start = io_thread_cpu_ns();
	usleep(20000);
	int64_t slept = io_thread_cpu_ns() - start;
	assert_in_range(slept, 0, 19000000);
	while (io_thread_cpu_ns() - start - slept < 20000000)
		;
}

static void busy(void *arg)
{
	struct mono t0 = io_clock();
	while (mono_diff_us(io_clock(), t0) < 5000)
		;
	count(arg);
}

static void test_stall_probe_sees_a_long_turn(void **state)
{
	struct io_timer *t = io_timer_new(kit_loop, busy, NULL);
	(void)state;
	fired = 0;
	io_loop_stall(kit_loop);
	io_timer_after(t, 0);
	kit_until_n(&fired, 1);
	kit_run_us(1000);
	struct io_stall s = io_loop_stall(kit_loop);
	assert_true(s.worst_us >= 5000);
	assert_true(s.over_1ms >= 1);
	assert_true(s.busy_us >= 5000);
	assert_int_equal(io_loop_stall(kit_loop).turns, 0);
	io_timer_free(t);
}

static void test_now_moves_between_runs(void **state)
{
	(void)state;
	kit_run_us(1000);
	struct mono a = io_now(kit_loop);
	assert_int_equal(io_now(kit_loop).us, a.us);    /* read once a turn */
	kit_run_us(1000);
	usleep(2000);
	assert_true(mono_diff_us(io_now(kit_loop), a) >= 3000);
}

static void test_random_is_not_constant(void **state)
{
	uint64_t a = 0, b = 0;
	(void)state;
	io_random(&a, sizeof(a));
	io_random(&b, sizeof(b));
	assert_true(a != b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_timers_fire_in_order_and_not_early),
		TEST(test_timer_moved_later_earlier_and_stopped),
		TEST(test_timer_frees_itself),
		TEST(test_timer_rearmed_for_now_does_not_starve_the_loop),
		TEST(test_every_does_not_drift),
		TEST(test_many_timers),
		TEST(test_cpu_time_passes_with_work_and_not_with_sleep),
		TEST(test_soon_runs_once_and_can_be_cancelled),
		TEST(test_later_work_lets_others_in),
		TEST(test_soon_that_asks_again_does_not_starve_the_loop),
		TEST(test_mailbox_keeps_each_senders_order),
		TEST(test_stop_from_another_thread),
		TEST(test_work),
		TEST(test_signals),
		TEST(test_stall_probe_sees_a_long_turn),
		TEST(test_now_moves_between_runs),
		TEST(test_random_is_not_constant),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
