#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "fleet/health.h"

static int panic_now, changes;
static void on_health(void *arg, struct fleet_worker *w, enum fleet_health from, const char *why) { (void)arg, (void)w, (void)from, (void)why, changes++; }
static void on_panic(void *arg, struct fleet_pool *p, bool on) { (void)arg, (void)p, panic_now = on; }
static void on_rank(void *arg, struct fleet_worker *w, uint32_t rank, bool added) { (void)arg, (void)w, (void)rank, (void)added; }
static const struct fleet_ops ops = { on_health, on_panic, on_rank };
static struct mono at_ms(int64_t ms) { return (struct mono){ ms * 1000 }; }
static struct fleet *f;

static struct fleet_worker *add(const char *url)
{
	struct fleet_worker *w = NULL;
	assert_int_equal(fleet_add(f, STR(""), str_of(url), STR(""), at_ms(0), &w), ERR_OK);
	return w;
}

static int setup(void **state)
{
	(void)state;
	panic_now = changes = 0;
	f = fleet_new(&ops, NULL);
	return 0;
}
static int teardown(void **state)
{
	(void)state;
	fleet_free(f);
	return 0;
}

static void a_failed_connection_is_down_at_once_and_a_probe_brings_back_slowly(void **state)
{
	(void)state;
	struct fleet_worker *w = add("a");
	assert_int_equal(w->health, FLEET_UNKNOWN);
	fleet_probed(f, w, FLEET_PROBE_OK, at_ms(10));
	assert_int_equal(w->health, FLEET_HEALTHY);
	assert_true(fleet_weight(w, at_ms(10)) == 1);                 /* a start is no recovery */
	fleet_outcome(f, w, FLEET_CONNECT_FAILED, at_ms(15), at_ms(20));
	assert_int_equal(w->health, FLEET_DOWN);
	fleet_probed(f, w, FLEET_PROBE_OK, at_ms(1000));
	assert_int_equal(w->health, FLEET_HEALTHY);
	assert_true(fleet_weight(w, at_ms(1000)) == 0.1);
	assert_true(fleet_weight(w, at_ms(16000)) == 0.5);
	assert_true(fleet_weight(w, at_ms(31000)) == 1);
}

static void an_answer_begun_before_the_failure_does_not_bring_back(void **state)
{
	(void)state;
	struct fleet_worker *w = add("a");
	fleet_probed(f, w, FLEET_PROBE_OK, at_ms(0));
	fleet_outcome(f, w, FLEET_CONNECT_FAILED, at_ms(90), at_ms(100));
	fleet_outcome(f, w, FLEET_ANSWERED, at_ms(50), at_ms(200));   /* an old stream of a server that closed its door */
	assert_int_equal(w->health, FLEET_DOWN);
	fleet_outcome(f, w, FLEET_ANSWERED, at_ms(150), at_ms(300));  /* tried in panic, and it works */
	assert_int_equal(w->health, FLEET_HEALTHY);
}

static void failing_answers_degrade_then_put_down_for_longer_each_time(void **state)
{
	(void)state;
	struct fleet_worker *w = add("a");
	fleet_probed(f, w, FLEET_PROBE_OK, at_ms(0));
	fleet_outcome(f, w, FLEET_FAILED, at_ms(0), at_ms(1));
	assert_int_equal(w->health, FLEET_HEALTHY);                   /* one failure is no verdict */
	fleet_outcome(f, w, FLEET_FAILED, at_ms(0), at_ms(2));
	fleet_outcome(f, w, FLEET_FAILED, at_ms(0), at_ms(3));
	assert_int_equal(w->health, FLEET_DEGRADED);
	assert_true(fleet_weight(w, at_ms(3)) == 0.25);
	for (int i = 0; i < 3; i++)
		fleet_outcome(f, w, FLEET_FAILED, at_ms(0), at_ms(4 + i));
	assert_int_equal(w->health, FLEET_DOWN);
	fleet_probed(f, w, FLEET_PROBE_OK, at_ms(1000));              /* its health page is fine, its answers are not */
	assert_int_equal(w->health, FLEET_DOWN);
	fleet_probed(f, w, FLEET_PROBE_OK, at_ms(5100));
	assert_int_equal(w->health, FLEET_HEALTHY);
	for (int i = 0; i < 5; i++)
		fleet_outcome(f, w, FLEET_FAILED, at_ms(5200), at_ms(5200 + i));
	fleet_probed(f, w, FLEET_PROBE_OK, at_ms(5100 + 9000));
	assert_int_equal(w->health, FLEET_DOWN);
	fleet_probed(f, w, FLEET_PROBE_OK, at_ms(5300 + 10000));
	assert_int_equal(w->health, FLEET_HEALTHY);
}

static void a_degraded_worker_that_answers_is_healthy_again(void **state)
{
	(void)state;
	struct fleet_worker *w = add("a");
	fleet_probed(f, w, FLEET_PROBE_OK, at_ms(0));
	for (int i = 0; i < 3; i++)
		fleet_outcome(f, w, FLEET_FAILED, at_ms(0), at_ms(i));
	fleet_probed(f, w, FLEET_PROBE_OK, at_ms(100));
	assert_int_equal(w->health, FLEET_DEGRADED);
	for (int i = 0; i < 4; i++)
		fleet_outcome(f, w, FLEET_ANSWERED, at_ms(200), at_ms(300 + i));
	assert_int_equal(w->health, FLEET_HEALTHY);
}

static void probes_need_two_failures_and_busy_is_not_dead(void **state)
{
	(void)state;
	struct fleet_worker *w = add("a");
	fleet_probed(f, w, FLEET_PROBE_OK, at_ms(0));
	fleet_probed(f, w, FLEET_PROBE_TIMEOUT, at_ms(10000));
	assert_int_equal(w->health, FLEET_DEGRADED);
	fleet_outcome(f, w, FLEET_ANSWERED, at_ms(10001), at_ms(11000));
	fleet_probed(f, w, FLEET_PROBE_TIMEOUT, at_ms(12000));
	assert_int_equal(w->health, FLEET_DEGRADED);                  /* it answered a second ago */
	fleet_probed(f, w, FLEET_PROBE_TIMEOUT, at_ms(20000));
	assert_int_equal(w->health, FLEET_DOWN);
	struct fleet_worker *u = add("b");
	fleet_probed(f, u, FLEET_PROBE_OK, at_ms(0));
	fleet_probed(f, u, FLEET_PROBE_UNAUTHORIZED, at_ms(1));
	assert_int_equal(u->health, FLEET_DEGRADED);
	assert_non_null(strstr(u->why, "key"));
	fleet_probed(f, u, FLEET_PROBE_OK, at_ms(2));
	assert_int_equal(u->health, FLEET_HEALTHY);
}

static void case_sglang_25811_client_errors_never_count(void **state)
{
	(void)state;
	struct fleet_worker *w = add("a");
	fleet_probed(f, w, FLEET_PROBE_OK, at_ms(0));
	static const int statuses[] = { 400, 401, 403, 404, 413, 415, 422, 451 };
	for (int i = 0; i < 100; i++)
		fleet_outcome(f, w, fleet_outcome_of_status(statuses[i % 8]), at_ms(i), at_ms(i));
	assert_int_equal(w->health, FLEET_HEALTHY);
	assert_int_equal(w->n_failures, 0);
	for (int i = 0; i < 100; i++)
		fleet_outcome(f, w, fleet_outcome_of_status(429), at_ms(i), at_ms(100));
	assert_int_equal(w->health, FLEET_DEGRADED);                  /* busy: asked less, never put down */
}

static void a_pool_without_a_usable_worker_is_in_panic(void **state)
{
	(void)state;
	struct fleet_worker *a = add("a"), *b = add("b");
	fleet_probed(f, a, FLEET_PROBE_OK, at_ms(0));
	fleet_probed(f, b, FLEET_PROBE_OK, at_ms(0));
	fleet_probed(f, a, FLEET_PROBE_CONNECT_FAILED, at_ms(1));
	assert_false(panic_now);
	fleet_probed(f, b, FLEET_PROBE_CONNECT_FAILED, at_ms(1));
	assert_true(panic_now);
	fleet_probed(f, b, FLEET_PROBE_OK, at_ms(2));
	assert_false(panic_now);
}

static void draining_is_final(void **state)
{
	(void)state;
	struct fleet_worker *a = add("a");
	uint32_t id = a->id;
	fleet_hold(a);
	fleet_drain(f, a, at_ms(1));
	fleet_probed(f, a, FLEET_PROBE_OK, at_ms(2));
	fleet_outcome(f, a, FLEET_ANSWERED, at_ms(2), at_ms(3));
	assert_int_equal(a->health, FLEET_DRAINING);
	fleet_release(f, a);
	assert_null(fleet_worker_of(f, id));
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(a_failed_connection_is_down_at_once_and_a_probe_brings_back_slowly), T(an_answer_begun_before_the_failure_does_not_bring_back),
		T(failing_answers_degrade_then_put_down_for_longer_each_time), T(a_degraded_worker_that_answers_is_healthy_again),
		T(probes_need_two_failures_and_busy_is_not_dead), T(case_sglang_25811_client_errors_never_count),
		T(a_pool_without_a_usable_worker_is_in_panic), T(draining_is_final),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
