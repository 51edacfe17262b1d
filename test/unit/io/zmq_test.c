/* Publisher and subscriber over real sockets: live batches, both replay framings, silence, restarts, floods. */
#include <sys/resource.h>
#include <unistd.h>

#include "io/zmq.h"
#include "kit.h"

/* libzmq is not built for the thread sanitizer: its own lock-free queues look like races. Ours do not pass through it. */
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void) { return "race:libzmq.so\n"; }

struct seen {
	int live, replayed, ends, connected, reconnected, lost;
	enum err end_err;
	uint64_t last_live, last_replayed;
	size_t n_frames;
	char payload[64], topic[16];
	bool gap;
};

static uint64_t seq_of(struct str s)
{
	uint64_t v = 0;
	assert_int_equal(s.n, 8);
	for (int i = 0; i < 8; i++)
		v = v << 8 | (unsigned char)s.p[i];
	return v;
}

static void on_frames(void *arg, const struct str *f, size_t n, bool from_replay)
{
	struct seen *s = arg;
	assert_true(n >= 3);
	uint64_t seq = seq_of(f[n - 2]);
	s->n_frames = n;
	snprintf(s->payload, sizeof(s->payload), "%.*s", (int)MIN(f[n - 1].n, sizeof(s->payload) - 1), f[n - 1].p);
	if (from_replay) {
		s->replayed++;
		s->last_replayed = seq;
		assert_int_equal(f[0].n, 0);
	} else {
		s->gap |= s->live > 0 && seq != s->last_live + 1;
		s->live++;
		s->last_live = seq;
		snprintf(s->topic, sizeof(s->topic), "%.*s", STR_ARG(f[0]));
	}
}

static void on_replay_end(void *arg, enum err e)
{
	struct seen *s = arg;
	s->ends++;
	s->end_err = e;
}

static void on_connected(void *arg, bool again)
{
	struct seen *s = arg;
	s->connected++;
	s->reconnected += again;
}

static void on_lost(void *arg) { ((struct seen *)arg)->lost++; }

static const struct io_zsub_ops sub_ops = { on_frames, on_replay_end, on_connected, on_lost };

static struct io_zhub *hub;
static struct io_zpub *pub;
static struct io_zsub *sub;
static struct seen seen;

/* The publisher learns of a subscription some time after the handshake: probe until one arrives, then start clean. */
static void until_subscribed(void)
{
	uint64_t seq = 1000000;
	seen.last_live = 0;
	for (int i = 0; i < 200 && seen.last_live != seq; i++) {
		io_zpub_send(pub, ++seq, STR("probe"), false);
		for (int j = 0; j < 20 && seen.last_live != seq; j++)
			kit_run_us(1000);
	}
	assert_int_equal(seen.last_live, seq);
	io_zpub_reset(pub);
	seen.live = 0;
	seen.gap = false;
}

static void open_pair(bool has_topic, const char *topic, unsigned steps)
{
	struct io_zpub_opts o = { "tcp://127.0.0.1:*", "tcp://127.0.0.1:*", topic, steps, has_topic, NULL };
	assert_int_equal(io_zpub_open(hub, &o, &pub), ERR_OK);
	assert_int_equal(io_zsub_open(hub, io_zpub_endpoint(pub, false), io_zpub_endpoint(pub, true), &sub_ops, &seen, &sub), ERR_OK);
	kit_until_n(&seen.connected, 1);
	until_subscribed();
}

static int setup(void **state)
{
	kit_setup(state);
	seen = (struct seen){ 0 };
	hub = io_zhub_new(kit_loop);
	return 0;
}

static int teardown(void **state)
{
	io_zhub_free(hub);
	return kit_teardown(state);
}

static void send_n(uint64_t from, int n)
{
	for (int i = 0; i < n; i++) {
		char text[32];
		snprintf(text, sizeof(text), "batch %d", (int)from + i);
		io_zpub_send(pub, from + (uint64_t)i, str_of(text), false);
	}
}

static void test_live(void **state)
{
	(void)state;
	open_pair(true, "kv", 100);
	send_n(0, 10);
	kit_until_n(&seen.live, 10);
	assert_int_equal(seen.n_frames, 3);
	assert_string_equal(seen.payload, "batch 9");
	assert_string_equal(seen.topic, "kv");
	assert_int_equal(seen.last_live, 9);
	assert_false(seen.gap);
	assert_int_equal(seen.reconnected, 0);
}

static void replay(bool has_topic, size_t want_frames)
{
	open_pair(has_topic, "", 100);
	send_n(0, 20);
	kit_until_n(&seen.live, 20);
	assert_int_equal(io_zsub_replay(sub, 15), ERR_OK);
	assert_int_equal(io_zsub_replay(sub, 0), ERR_DUPLICATE);
	kit_until_n(&seen.ends, 1);
	assert_int_equal(seen.end_err, ERR_OK);
	assert_int_equal(seen.replayed, 5);
	assert_int_equal(seen.n_frames, want_frames);
	assert_string_equal(seen.payload, "batch 19");
	assert_int_equal(io_zsub_replay(sub, 99), ERR_OK);    /* beyond the newest: the end marker alone */
	kit_until_n(&seen.ends, 2);
	assert_int_equal(seen.end_err, ERR_OK);
	assert_int_equal(seen.replayed, 5);
}

static void test_replay_framing_since_0_26(void **state)
{
	(void)state;
	replay(true, 4);
}

static void test_replay_framing_before_0_26(void **state)
{
	(void)state;
	replay(false, 3);
}

static void test_ring_forgets_the_oldest_and_all_on_reset(void **state)
{
	(void)state;
	open_pair(true, "", 8);
	send_n(0, 30);
	assert_int_equal(io_zsub_replay(sub, 0), ERR_OK);
	kit_until_n(&seen.ends, 1);
	assert_int_equal(seen.replayed, 8);
	assert_int_equal(seen.last_replayed, 29);
	io_zpub_reset(pub);
	assert_int_equal(io_zsub_replay(sub, 0), ERR_OK);
	kit_until_n(&seen.ends, 2);
	assert_int_equal(seen.replayed, 8);
}

static void test_lost_message_is_in_the_replay(void **state)
{
	(void)state;
	open_pair(true, "", 100);
	send_n(0, 2);
	io_zpub_send(pub, 2, STR("lost"), true);
	io_zpub_send(pub, 3, STR("after"), false);
	kit_until_n(&seen.live, 3);
	assert_true(seen.gap);
	assert_int_equal(io_zsub_replay(sub, 2), ERR_OK);
	kit_until_n(&seen.ends, 1);
	assert_int_equal(seen.replayed, 2);
}

static void test_silent_replay_times_out_and_a_later_one_works(void **state)
{
	(void)state;
	open_pair(true, "", 100);
	send_n(0, 3);
	io_zpub_mute_replay(pub, true);
	assert_int_equal(io_zsub_replay(sub, 0), ERR_OK);
	kit_run_us(1500000);
	assert_int_equal(seen.ends, 0);
	kit_until_n(&seen.ends, 1);
	assert_int_equal(seen.end_err, ERR_AGAIN);
	io_zpub_mute_replay(pub, false);
	assert_int_equal(io_zsub_replay(sub, 0), ERR_OK);
	kit_until_n(&seen.ends, 2);
	assert_int_equal(seen.end_err, ERR_OK);
	assert_int_equal(seen.replayed, 3);
}

static void test_publisher_restarts(void **state)
{
	char live[128], again[128];
	(void)state;
	open_pair(true, "", 100);
	send_n(0, 2);
	kit_until_n(&seen.live, 2);
	snprintf(live, sizeof(live), "%s", io_zpub_endpoint(pub, false));
	snprintf(again, sizeof(again), "%s", io_zpub_endpoint(pub, true));
	io_zpub_close(pub);
	kit_until_n(&seen.lost, 1);
	kit_run_us(50000);
	struct io_zpub_opts o = { live, again, "", 100, true, NULL };
	assert_int_equal(io_zpub_open(hub, &o, &pub), ERR_OK);
	kit_until_n(&seen.reconnected, 1);
	until_subscribed();
	send_n(0, 1);
	kit_until_n(&seen.live, 1);
	assert_int_equal(seen.last_live, 0);
}

static void test_nothing_is_called_after_close(void **state)
{
	(void)state;
	open_pair(true, "", 100);
	send_n(0, 1000);
	kit_until_n(&seen.live, 1);
	assert_int_equal(io_zsub_replay(sub, 0), ERR_OK);
	io_zsub_close(sub);
	int live = seen.live, ends = seen.ends;
	kit_run_us(50000);
	assert_int_equal(seen.live, live);
	assert_int_equal(seen.ends, ends);
}

static void test_flood_arrives_without_a_gap(void **state)
{
	(void)state;
	open_pair(true, "", 10);
	send_n(0, 20000);
	kit_until_n(&seen.live, 20000);
	assert_false(seen.gap);
}

static void test_bad_endpoints(void **state)
{
	const char *unbound = NULL;
	struct io_zpub_opts o = { "tcp://203.0.113.1:1", NULL, NULL, 1, true, &unbound };
	(void)state;
	assert_int_equal(io_zsub_open(hub, "nonsense", NULL, &sub_ops, &seen, &sub), ERR_SYNTAX);
	assert_int_equal(io_zsub_open(hub, "tcp://127.0.0.1:1", "tcp://", &sub_ops, &seen, &sub), ERR_SYNTAX);
	assert_int_equal(io_zpub_open(hub, &o, &pub), ERR_IO);
	assert_string_equal(unbound, o.pub_endpoint);
	o.pub_endpoint = "tcp://127.0.0.1:*";
	o.replay_endpoint = "tcp://203.0.113.1:2";
	assert_int_equal(io_zpub_open(hub, &o, &pub), ERR_IO);
	assert_string_equal(unbound, o.replay_endpoint);
	assert_int_equal(io_zsub_open(hub, "tcp://127.0.0.1:1", NULL, &sub_ops, &seen, &sub), ERR_OK);
	assert_int_equal(io_zsub_replay(sub, 0), ERR_UNSUPPORTED);
	kit_run_us(300000);
	assert_int_equal(seen.connected + seen.lost, 0);
}

/* No more than so many descriptors can be had until the limit that is returned is given back. */
static struct rlimit limit_tight(rlim_t left)
{
	struct rlimit was, tight;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	tight = was;
	tight.rlim_cur = (rlim_t)dup(0);
	assert_int_equal(close((int)tight.rlim_cur), 0);
	tight.rlim_cur += left;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
	return was;
}

static void test_without_descriptors_nothing_is_opened(void **state)
{
	struct io_zpub_opts o = { "tcp://127.0.0.1:*", "tcp://127.0.0.1:*", NULL, 1, true, NULL };
	(void)state;
	struct rlimit was = limit_tight(0);
	assert_int_equal(io_zsub_open(hub, "tcp://127.0.0.1:1", "tcp://127.0.0.1:2", &sub_ops, &seen, &sub), ERR_IO);
	assert_int_equal(io_zpub_open(hub, &o, &pub), ERR_IO);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	open_pair(true, "", 10);
}

/* libzmq gives up the process where a bind finds no descriptor for its look at the interfaces. */
static void test_however_few_descriptors_are_left_nothing_aborts(void **state)
{
	struct io_zpub_opts o = { "tcp://127.0.0.1:*", "tcp://127.0.0.1:*", NULL, 1, true, NULL };
	(void)state;
	for (rlim_t left = 0; left < 20; left++) {
		struct rlimit was = limit_tight(left);
		if (io_zsub_open(hub, "tcp://127.0.0.1:1", "tcp://127.0.0.1:2", &sub_ops, &seen, &sub) == ERR_OK)
			io_zsub_close(sub);
		if (io_zpub_open(hub, &o, &pub) == ERR_OK)
			io_zpub_close(pub);
		kit_run_us(5000);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	}
	open_pair(true, "", 10);
}

static void test_a_replay_without_a_descriptor_ends_and_a_later_one_works(void **state)
{
	(void)state;
	open_pair(true, "", 10);
	send_n(0, 3);
	kit_until_n(&seen.live, 3);
	io_zpub_mute_replay(pub, true);
	struct rlimit was = limit_tight(0);
	for (int i = 1; i <= 2; i++) {
		assert_int_equal(io_zsub_replay(sub, 0), ERR_OK);
		kit_until_n(&seen.ends, i);
		assert_int_equal(seen.end_err, ERR_AGAIN);
	}
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	io_zpub_mute_replay(pub, false);
	assert_int_equal(io_zsub_replay(sub, 0), ERR_OK);
	kit_until_n(&seen.ends, 3);
	assert_int_equal(seen.end_err, ERR_OK);
	assert_int_equal(seen.replayed, 3);
}

static void test_many_workers_come_and_go(void **state)
{
	static struct io_zsub *subs[200];
	(void)state;
	open_pair(true, "", 10);
	for (size_t i = 0; i < ARRAY_LEN(subs); i++)
		assert_int_equal(io_zsub_open(hub, io_zpub_endpoint(pub, false), io_zpub_endpoint(pub, true), &sub_ops, &seen, &subs[i]), ERR_OK);
	kit_until_n(&seen.connected, 201);
	for (size_t i = 0; i < ARRAY_LEN(subs); i++)
		io_zsub_close(subs[i]);
	kit_run_us(50000);
	send_n(0, 1);
	kit_until_n(&seen.live, 1);
	kit_run_us(50000);
	assert_int_equal(seen.live, 1);
}

#define ZTEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
int main(void)
{
	const struct CMUnitTest tests[] = {
		ZTEST(test_live), ZTEST(test_replay_framing_since_0_26), ZTEST(test_replay_framing_before_0_26),
		ZTEST(test_ring_forgets_the_oldest_and_all_on_reset), ZTEST(test_lost_message_is_in_the_replay),
		ZTEST(test_silent_replay_times_out_and_a_later_one_works), ZTEST(test_publisher_restarts),
		ZTEST(test_nothing_is_called_after_close), ZTEST(test_flood_arrives_without_a_gap), ZTEST(test_bad_endpoints),
		ZTEST(test_without_descriptors_nothing_is_opened),
		ZTEST(test_however_few_descriptors_are_left_nothing_aborts), ZTEST(test_a_replay_without_a_descriptor_ends_and_a_later_one_works),
		ZTEST(test_many_workers_come_and_go),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
