/* What workers' answers say: shapes as real workers send them, and shapes nobody should send. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#include "feed/learn.h"

static struct arena arena;
static int setup(void **state)
{
	(void)state;
	arena_init(&arena, 0);
	return 0;
}
static int teardown(void **state)
{
	(void)state;
	arena_done(&arena);
	return 0;
}

static void test_models(void **state)
{
	(void)state;
	struct feed_models m;
	assert_int_equal(feed_learn_models(STR("{\"object\":\"list\",\"data\":[{\"id\":\"q\",\"object\":\"model\",\"created\":1,\"root\":\"models/q\",\"parent\":null,\"max_model_len\":2048,"
	                                       "\"permission\":[{}]},{\"id\":\"q2\",\"root\":\"models/q\",\"parent\":null,\"max_model_len\":1024},"
	                                       "{\"id\":\"a\",\"root\":\"/lora/a\",\"parent\":\"q\",\"max_model_len\":null}]}"), &arena, &m), ERR_OK);
	assert_int_equal(m.n, 3);
	assert_int_equal(m.max_model_len, 1024);
	assert_true(str_eq(m.p[0].id, STR("q")) && m.p[0].parent.n == 0 && str_eq(m.p[0].root, STR("models/q")));
	assert_true(str_eq(m.p[2].parent, STR("q")) && m.p[2].max_model_len == 0);
}

static void test_models_that_are_none(void **state)
{
	(void)state;
	struct feed_models m = { .n = 77 };
	static const char *const bad[] = { "", "[]", "{}", "{\"data\":{}}", "{\"data\":[", "null" };
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_not_equal(feed_learn_models(str_of(bad[i]), &arena, &m), ERR_OK);
	assert_int_equal(m.n, 77);
	assert_int_equal(feed_learn_models(STR("{\"data\":[7,{},{\"id\":5},{\"id\":\"\"},{\"id\":\"x\",\"max_model_len\":-1},{\"id\":\"y\",\"max_model_len\":1e30}]}"), &arena, &m), ERR_OK);
	assert_true(m.n == 2 && m.max_model_len == 0);
}

static void test_metrics(void **state)
{
	(void)state;
	struct feed_metrics m;
	feed_learn_metrics(engine_of(STR("")), STR(
		"# HELP vllm:num_requests_running x\n# TYPE vllm:num_requests_running gauge\n"
		"vllm:num_requests_running{engine=\"0\",model_name=\"q\"} 3.0\n"
		"vllm:num_requests_running{engine=\"1\",model_name=\"q\"} 4.0\n"
		"vllm:num_requests_waiting{engine=\"0\",model_name=\"q\"} 5.0\n"
		"vllm:num_requests_waiting_by_reason{engine=\"0\",model_name=\"q\",reason=\"capacity\"} 900.0\n"
		"vllm:kv_cache_usage_perc{engine=\"1\",model_name=\"q\"} 0.25\n"
		"vllm:cache_config_info{block_size=\"32\",enable_prefix_caching=\"False\",engine=\"0\",num_gpu_blocks=\"600\"} 1.0\n"
		"vllm:engine_sleep_state{engine=\"0\",sleep_state=\"awake\"} 1.0\nvllm:engine_sleep_state{engine=\"0\",sleep_state=\"discard_all\"} 0.0\n"
		"vllm:prefix_cache_hits_total{engine=\"0\",model_name=\"q\"} 128.0\n"
		"process_start_time_seconds 1.7e+09\n"), &m);
	assert_int_equal(m.n_ranks, 2);
	assert_true(m.ranks[0].running == 3 && m.ranks[1].running == 4 && m.ranks[0].waiting == 5);      /* never ..._by_reason */
	assert_true(fabs(m.ranks[1].kv_usage - 0.25) < 1e-9 && m.block_size == 32 && m.blocks == 600 && !m.prefix_caching && !m.asleep);
	assert_true(m.prefix_hits == 128 && m.started_s > 1e9);
}

static void test_metrics_asleep(void **state)
{
	(void)state;
	struct feed_metrics m;
	feed_learn_metrics(engine_of(STR("")), STR("vllm:engine_sleep_state{engine=\"0\",sleep_state=\"awake\"} 0.0\nvllm:engine_sleep_state{engine=\"0\",sleep_state=\"weights_offloaded\"} 1.0\n"), &m);
	assert_true(m.asleep);
}

static void test_hostile_metrics(void **state)
{
	(void)state;
	struct feed_metrics m;
	feed_learn_metrics(engine_of(STR("")), STR(
		"vllm:num_requests_running{engine=\"99\"} 7\nvllm:num_requests_running{engine=\"-1\"} 7\nvllm:num_requests_running{engine=\"x\"} 7\n"
		"vllm:num_requests_waiting{engine=\"0\"} NaN\nvllm:num_requests_running{engine=\"0\"} -5\nvllm:num_requests_waiting{engine=\"1\"} 1e300\n"
		"vllm:kv_cache_usage_perc{engine=\"0\"} +Inf\n"
		"vllm:cache_config_info{block_size=\"0\",num_gpu_blocks=\"None\"} 1\nvllm:cache_config_info{block_size=\"99999999999\",num_gpu_blocks=\"-3\"} 1\n"
		"vllm:cache_config_info{block_size=\n"), &m);
	assert_true(m.n_ranks == 2 && m.ranks[0].running == 0 && m.ranks[0].waiting == 0 && m.ranks[1].waiting == 0 && m.ranks[0].kv_usage <= 1.0);
	assert_true(m.block_size == 0 && m.blocks == 0 && m.skipped_lines >= 1);
}

#define SOURCE(rank, endpoint, replay) "\"" rank "\":{\"enable_kv_cache_events\":true,\"publisher\":\"zmq\",\"endpoint\":\"" endpoint "\",\"replay_endpoint\":" replay ",\"topic\":\"kv@x\"}"

static struct feed_sources sources(const char *json, const char *host, bool ipv6)
{
	struct conf_worker w = { .host = str_of(host), .ipv6 = ipv6 };
	struct feed_sources s;
	assert_int_equal(feed_learn_sources(str_of(json), &w, &arena, &s), ERR_OK);
	return s;
}

static void test_sources_of_two_ranks(void **state)
{
	(void)state;
	struct feed_sources s = sources("{" SOURCE("0", "tcp://*:5601", "\"tcp://*:5701\"") "," SOURCE("1", "tcp://*:5602", "\"tcp://*:5702\"") "}", "gpu1", false);
	assert_null(s.why);
	assert_int_equal(s.n, 2);
	assert_string_equal(s.ranks[0].events.p, "tcp://gpu1:5601");
	assert_string_equal(s.ranks[1].replay.p, "tcp://gpu1:5702");
}

static void test_hosts_that_mean_the_worker_itself(void **state)
{
	(void)state;
	static const char *const hosts[] = { "tcp://*:5601", "tcp://0.0.0.0:5601", "tcp://[::]:5601", "tcp://:::5601", "tcp://127.0.0.1:5601", "tcp://localhost:5601", "tcp://10.0.0.9:5601", "tcp://169.254.1.1:5601" };
	for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
		struct feed_sources s = sources(arena_printf(&arena, "{\"0\":{\"endpoint\":\"%s\",\"replay_endpoint\":null}}", hosts[i]), "10.0.0.9", false);
		assert_null(s.why);
		assert_string_equal(s.ranks[0].events.p, "tcp://10.0.0.9:5601");
		assert_int_equal(s.ranks[0].replay.n, 0);
	}
	struct feed_sources v6 = sources("{" SOURCE("0", "tcp://*:5601", "null") "}", "2001:db8::1", true);
	assert_string_equal(v6.ranks[0].events.p, "tcp://[2001:db8::1]:5601");
}

/* An endpoint that names another machine is where the publisher connects to, not where it can be reached. */
static void test_connecting_out_is_refused(void **state)
{
	(void)state;
	struct feed_sources s = sources("{" SOURCE("0", "tcp://router:5557", "null") "}", "10.0.0.9", false);
	assert_true(s.n == 0 && str_find(str_of(s.why), STR("connecting out")) != SIZE_MAX);
	s = sources("{" SOURCE("0", "tcp://172.17.0.2:41234", "null") "}", "127.0.0.1", false);       /* this machine's other name */
	assert_true(s.why == NULL && str_eq(s.ranks[0].events, STR("tcp://172.17.0.2:41234")));
	s = sources("{" SOURCE("0", "ipc:///tmp/kv", "null") "}", "10.0.0.9", false);
	assert_non_null(s.why);
}

static void test_sources_that_are_none(void **state)
{
	(void)state;
	struct conf_worker w = { .host = STR("a") };
	struct feed_sources s;
	assert_non_null(sources("{}", "a", false).why);
	assert_non_null(sources("{\"0\":{}}", "a", false).why);
	assert_non_null(sources("{\"99\":{\"endpoint\":\"tcp://*:1\"}}", "a", false).why);
	/* The endpoint is written into log lines: one with a quote or a space could say anything there. */
	assert_non_null(sources("{\"0\":{\"endpoint\":\"tcp://h level=fatal x=\\\"y:5\"}}", "127.0.0.1", false).why);
	assert_non_null(sources("{\"0\":{\"endpoint\":\"tcp://h\\u001b:5\"}}", "127.0.0.1", false).why);
	assert_int_not_equal(feed_learn_sources(STR("[1"), &w, &arena, &s), ERR_OK);
	assert_int_not_equal(feed_learn_sources(STR("[]"), &w, &arena, &s), ERR_OK);
	struct feed_sources list = sources("{\"sources\":[{\"endpoint\":\"tcp://*:5557\"},{\"endpoint\":\"tcp://*:5558\"}]}", "a", false);
	assert_true(list.n == 2 && str_eq(list.ranks[1].events, STR("tcp://a:5558")));
}

static void test_default_ports(void **state)
{
	(void)state;
	struct conf_worker w = { .host = STR("::1"), .ipv6 = true };
	struct feed_sources s;
	feed_default_sources(&w, 5557, 5558, 2, &arena, &s);
	assert_string_equal(s.ranks[1].events.p, "tcp://[::1]:5558");
	assert_string_equal(s.ranks[1].replay.p, "tcp://[::1]:5559");
	w = (struct conf_worker){ .host = STR("a"), .events = STR("tcp://a:6000") };
	feed_default_sources(&w, 5557, 5558, 2, &arena, &s);
	assert_string_equal(s.ranks[1].events.p, "tcp://a:6001");
	assert_int_equal(s.ranks[0].replay.n, 0);                 /* a configured endpoint says nothing of a replay socket */
	w.events = STR("tcp://a:65535");
	feed_default_sources(&w, 5557, 5558, 2, &arena, &s);
	assert_non_null(s.why);                                   /* llm-d-router#1242 */
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_models), T(test_models_that_are_none), T(test_metrics), T(test_metrics_asleep), T(test_hostile_metrics), T(test_sources_of_two_ranks),
		T(test_hosts_that_mean_the_worker_itself), T(test_connecting_out_is_refused), T(test_sources_that_are_none), T(test_default_ports),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
