/* Thousands of calls in which both sides do everything at every moment: abort, cut, pause, stream, leave. Whatever they do,
 * each request and each call is settled exactly once, and in the end nothing is open. The seed is printed. */
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/rand.h"
#include "kit.h"

enum { LANES = 40, CALLS = 3000 };

static struct rand rnd;
static struct http_server *server;
static struct http_pool *pool;
static struct io_addr addr;
static struct io_timer *tick;
static int started, calls_settled, requests, requests_settled, aborted_by_server;
static int lanes_done;

static bool chance(unsigned percent) { return rand_below(&rnd, 100) < percent; }

/* ---- server: a list of running requests that a timer pushes on ---- */

struct work { struct http_req *r; int chunks_left; bool begun; };
static struct work works[LANES * 2];

static struct work *work_of(struct http_req *r) { return r->user; }

static void forget(struct http_req *r)
{
	work_of(r)->r = NULL;
	requests_settled++;
}

static void abort_request(struct http_req *r)
{
	aborted_by_server++;
	forget(r);
	http_reply_abort(r);
}

static void on_request(void *arg, struct http_req *r)
{
	struct work *w = works;
	(void)arg;
	requests++;
	while (w->r)
		assert_true(++w < works + ARRAY_LEN(works));
	*w = (struct work){ .r = r, .chunks_left = (int)rand_below(&rnd, 6) };
	r->user = w;
	if (chance(5))
		abort_request(r);
	else if (chance(20))
		http_reply(r, 200, (struct http_headers){ 0 }, STR("t"), STR("at once"));
	else if (chance(10))
		http_req_pause(r);
}

static void on_body(struct http_req *r, struct str piece)
{
	(void)piece;
	if (chance(2))
		abort_request(r);
}

static void on_gone(struct http_req *r, enum err why)
{
	assert_true(why == ERR_CLIENT_GONE || why == ERR_TIMEOUT_CLIENT);
	forget(r);
}

static const struct http_server_ops ops = { .on_request = on_request, .on_body = on_body, .on_gone = on_gone, .on_done = forget };

static void push_on(struct work *w)
{
	static char piece[30000];
	struct http_req *r = w->r;
	if (!w->begun && chance(70)) {
		w->begun = true;
		http_req_resume(r);
		http_reply_begin(r, 200, (struct http_headers){ 0 }, -1);
	} else if (w->begun && w->chunks_left-- > 0) {
		http_reply_write(r, str_from(piece, 1 + rand_below(&rnd, chance(10) ? sizeof(piece) : 200)));
	} else if (chance(10)) {
		abort_request(r);
	} else if (w->begun) {
		if (chance(10))
			http_reply_cut(r);
		else
			http_reply_end(r);
	}
}

/* ---- client lanes ---- */

struct lane { struct http_call *call; bool paused; struct str body[2]; };
static struct lane lanes[LANES];

static void next(struct lane *l);

static void settled(struct lane *l)
{
	l->call = NULL;
	l->paused = false;
	calls_settled++;
}

static void abort_call(struct lane *l)
{
	http_call_abort(l->call);
	settled(l);
	next(l);
}

static void on_connected(void *arg, bool reused)
{
	(void)reused;
	if (chance(3))
		abort_call(arg);
}

static void on_sent(void *arg)
{
	if (chance(3))
		abort_call(arg);
}

static void on_head(void *arg, int status, struct http_headers h)
{
	(void)status;
	(void)h;
	if (chance(5))
		abort_call(arg);
}

static void on_piece(void *arg, struct str piece)
{
	struct lane *l = arg;
	(void)piece;
	if (chance(5)) {
		abort_call(l);
	} else if (chance(10)) {
		http_call_pause(l->call);
		l->paused = true;
	}
}

static void on_end(void *arg)
{
	settled(arg);
	next(arg);
}

static void on_fail(void *arg, enum err why)
{
	(void)why;
	settled(arg);
	next(arg);
}

static const struct http_call_ops call_ops = { on_connected, on_sent, on_head, on_piece, on_end, on_fail, NULL };

static void next(struct lane *l)
{
	static char big[200000];
	if (started >= CALLS) {
		lanes_done++;
		return;
	}
	started++;
	size_t n = chance(10) ? sizeof(big) : 50;
	l->body[0] = str_from(big, 20);
	l->body[1] = str_from(big, n);
	struct http_call_opts o = { .addr = addr, .method = STR("POST"), .target = STR("/x"), .host = STR("h"), .body = l->body, .n_body = 2,
		                    .fresh = chance(5), .stall_timeout_us = 500000, .first_byte_timeout_us = 500000 };
	l->call = http_call_start(pool, &o, &call_ops, l);
	if (chance(2))
		abort_call(l);
}

static void on_tick(void *arg)
{
	(void)arg;
	for (size_t i = 0; i < ARRAY_LEN(works); i++)
		if (works[i].r && chance(50))
			push_on(&works[i]);
	for (size_t i = 0; i < LANES; i++) {
		if (lanes[i].paused && chance(30)) {
			lanes[i].paused = false;
			http_call_resume(lanes[i].call);
		} else if (lanes[i].call && chance(1)) {
			abort_call(&lanes[i]);
		}
	}
}

static void setup_all(uint64_t seed)
{
	struct http_server_opts so = http_server_defaults();
	struct http_pool_opts po = http_pool_defaults();
	struct io_addr any = kit_local(0);
	kit_setup(NULL);
	rnd.s = seed;
	assert_int_equal(http_server_new(kit_loop(), &any, &so, &ops, NULL, &server), ERR_OK);
	addr = http_server_addr(server);
	pool = http_pool_new(kit_loop(), &po);
	tick = io_timer_new(kit_loop(), on_tick, NULL);
}

/* bifrost#6143 (cancel while a chunk is written, a thousand times) and its family. */
static void case_bifrost_6143_everything_settles_once(void **state)
{
	uint64_t seed;
	(void)state;
	io_random(&seed, sizeof(seed));
	printf("seed %llu\n", (unsigned long long)seed);
	setup_all(seed);
	io_timer_every(tick, 500);
	for (int i = 0; i < LANES; i++)
		next(&lanes[i]);
	for (int i = 0; i < 60 && lanes_done < LANES; i++)
		kit_run_us(500000);
	assert_int_equal(lanes_done, LANES);
	io_timer_stop(tick);
	kit_run_us(20000);
	assert_int_equal(calls_settled, started);
	struct http_pool_stats ps = http_pool_stats(pool);
	assert_int_equal(ps.open, ps.idle);
	http_pool_free(pool);             /* the last requests see their clients leave */
	kit_run_us(50000);
	assert_int_equal(requests_settled, requests);
	struct http_server_stats ss = http_server_stats(server);
	assert_int_equal(ss.open_reqs, 0);
	assert_int_equal(ss.open_conns, 0);
	assert_int_equal(ss.queued_bytes, 0);
	assert_true(ss.requests >= CALLS / 2);
	http_server_free(server);
	io_timer_free(tick);
	kit_teardown(NULL);
}

static void until_open(uint64_t n)
{
	for (int i = 0; i < 4000 && http_server_stats(server).open_conns != n; i++)
		kit_run_us(1000);
	assert_int_equal(http_server_stats(server).open_conns, n);
}

static void test_idle_connections_are_small(void **state)
{
	enum { N = 400 };
	int fds[N];
	(void)state;
	setup_all(1);
	fds[0] = kit_raw_connect(addr);
	kit_run_us(5000);
	struct mallinfo2 before = mallinfo2();
	for (int i = 1; i < N; i++)
		fds[i] = kit_raw_connect(addr);
	until_open(N);
	size_t each = (mallinfo2().uordblks - before.uordblks) / (N - 1);
	printf("an idle connection: %zu bytes\n", each);
	assert_true(each < 1024);    /* the sanitizers' allocators do not count: 0 there */
	for (int i = 0; i < N; i++)
		close(fds[i]);
	http_pool_free(pool);
	http_server_free(server);
	io_timer_free(tick);
	kit_teardown(NULL);
}

static void test_no_descriptor_left(void **state)
{
	struct rlimit was, tight;
	struct kit_answer a = { 0 };
	(void)state;
	setup_all(1);
	int fd = kit_raw_connect(addr);
	kit_run_us(2000);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	tight = was;
	tight.rlim_cur = (rlim_t)dup(0);
	assert_int_equal(close((int)tight.rlim_cur), 0);
	int extra = kit_raw_connect(addr);       /* waits in the backlog */
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
	kit_get(pool, addr, "/", &a);
	assert_false(a.over);
	kit_until(&a.over);
	kit_run_us(30000);
	assert_int_equal(a.err, ERR_CONNECT);
	assert_int_equal(http_server_stats(server).open_conns, 1);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	until_open(2);                           /* it is accepted when there is room again */
	close(fd);
	close(extra);
	kit_answer_done(&a);
	http_pool_free(pool);
	http_server_free(server);
	io_timer_free(tick);
	kit_teardown(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(case_bifrost_6143_everything_settles_once),
		cmocka_unit_test(test_idle_connections_are_small),
		cmocka_unit_test(test_no_descriptor_left),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
