#include "kit.h"

struct io_loop *kit_loop;

int kit_setup(void **state)
{
	(void)state;
	kit_loop = io_loop_new();
	return 0;
}

int kit_teardown(void **state)
{
	(void)state;
	io_loop_free(kit_loop);
	return 0;
}

static void tick(void *arg) { io_loop_stop(arg); }

void kit_run_us(int64_t us)
{
	struct io_timer *t = io_timer_new(kit_loop, tick, kit_loop);
	io_timer_after(t, us);
	io_loop_run(kit_loop);
	io_timer_free(t);
}

void kit_until_n(const int *counter, int n)
{
	for (int i = 0; i < 4000 && *counter < n; i++)
		kit_run_us(1000);
	if (*counter < n)
		fail_msg("after four seconds the counter is %d, not %d", *counter, n);
}
