/* Server and client on one loop: what one writes the other reads. */
#include "kit.h"

static struct http_server *server;
static struct http_pool *pool;
static struct io_addr addr;
static struct http_req *pending;    /* of /wait */
static int gone, done, requests;
static enum err gone_why;
static struct buf echo;

static void on_request(void *arg, struct http_req *r)
{
	(void)arg;
	requests++;
	if (str_eq(r->path, STR("/wait"))) {
		pending = r;
	} else if (str_eq(r->path, STR("/chunks"))) {
		http_reply_begin(r, 200, (struct http_headers){ 0 }, -1);
		http_reply_write(r, STR("one,"));
		http_reply_write(r, STR("two,"));
		http_reply_write(r, STR("three"));
		http_reply_end(r);
	} else if (!str_eq(r->path, STR("/echo"))) {
		struct http_header h = { STR("x-path"), r->path };
		http_reply(r, 200, (struct http_headers){ &h, 1 }, STR("text/plain"), STR("hello"));
	}
}

static void on_body(struct http_req *r, struct str piece)
{
	if (str_eq(r->path, STR("/echo")))
		assert_int_equal(buf_add(&echo, piece), ERR_OK);
}

static void on_body_end(struct http_req *r)
{
	if (!str_eq(r->path, STR("/echo")))
		return;
	http_reply(r, 200, (struct http_headers){ 0 }, STR("text/plain"), buf_str(&echo));
	buf_clear(&echo);
}

static void on_gone(struct http_req *r, enum err why)
{
	if (pending == r)
		pending = NULL;
	gone++;
	gone_why = why;
}

static void on_done(struct http_req *r)
{
	(void)r;
	done++;
}

static const struct http_server_ops ops = {
	.on_request = on_request, .on_body = on_body, .on_body_end = on_body_end, .on_gone = on_gone, .on_done = on_done,
};

static int setup(void **state)
{
	struct http_server_opts so = http_server_defaults();
	struct http_pool_opts po = http_pool_defaults();
	struct io_addr any = kit_local(0);
	kit_setup(state);
	gone = done = requests = 0;
	pending = NULL;
	buf_init(&echo, (size_t)1 << 26);
	assert_int_equal(http_server_new(kit_loop(), &any, &so, &ops, NULL, &server), ERR_OK);
	addr = http_server_addr(server);
	pool = http_pool_new(kit_loop(), &po);
	return 0;
}

static int teardown(void **state)
{
	http_pool_free(pool);
	http_server_free(server);
	buf_done(&echo);
	return kit_teardown(state);
}

static void test_get(void **state)
{
	struct kit_answer a = { .want_header = "X-Path" };
	(void)state;
	kit_get(pool, addr, "/a%20b?q=1", &a);
	assert_int_equal(a.connected, 0);    /* nothing is called from inside start */
	kit_until(&a.over);
	assert_int_equal(a.err, ERR_OK);
	assert_int_equal(a.status, 200);
	assert_string_equal(a.header, "/a%20b");
	assert_true(str_eq(buf_str(&a.body), STR("hello")));
	assert_int_equal(a.connected, 1);
	assert_int_equal(a.sent, 1);
	assert_int_equal(done, 1);
	kit_answer_done(&a);
}

static void test_chunks(void **state)
{
	struct kit_answer a = { .want_header = "Transfer-Encoding" };
	(void)state;
	kit_get(pool, addr, "/chunks", &a);
	kit_until(&a.over);
	assert_string_equal(a.header, "chunked");
	assert_true(str_eq(buf_str(&a.body), STR("one,two,three")));
	kit_answer_done(&a);
}

static void test_keep_alive_is_used_again(void **state)
{
	struct kit_answer a = { 0 };
	(void)state;
	for (int i = 0; i < 3; i++) {
		kit_get(pool, addr, "/", &a);
		kit_until(&a.over);
		assert_int_equal(a.reused, i > 0);
		kit_answer_done(&a);
	}
	struct http_pool_stats st = http_pool_stats(pool);
	assert_int_equal(st.connects, 1);
	assert_int_equal(st.reuses, 2);
	assert_int_equal(http_server_stats(server).accepted, 1);
}

static void test_large_body_both_ways(void **state)
{
	size_t n = (size_t)9 * 1024 * 1024;
	char *p = malloc(n);
	struct kit_answer a = { 0 };
	(void)state;
	for (size_t i = 0; i < n; i++)
		p[i] = (char)(i * 31 + i / 4096);
	struct str pieces[3] = { { p, 1000 }, { p + 1000, 0 }, { p + 1000, n - 1000 } };
	struct http_call_opts o = { .addr = addr, .method = STR("POST"), .target = STR("/echo"), .host = STR("t"), .body = pieces, .n_body = 3 };
	http_call_start(pool, &o, &kit_call_ops, &a);
	kit_until(&a.over);
	assert_int_equal(a.err, ERR_OK);
	assert_int_equal(a.body.n, n);
	assert_memory_equal(buf_str(&a.body).p, p, n);
	kit_answer_done(&a);
	free(p);
}

static void test_abort_is_seen_by_the_server(void **state)
{
	struct kit_answer a = { 0 };
	(void)state;
	kit_get(pool, addr, "/wait", &a);
	kit_until_n(&requests, 1);
	http_call_abort(a.call);
	kit_until_n(&gone, 1);
	assert_int_equal(gone_why, ERR_CLIENT_GONE);
	kit_run_us(2000);
	assert_int_equal(gone, 1);
	assert_int_equal(done, 0);
	assert_false(a.over);
	assert_int_equal(http_server_stats(server).open_reqs, 0);
	assert_int_equal(http_server_stats(server).open_conns, 0);
}

static void test_server_abort_before_and_after_the_head(void **state)
{
	struct kit_answer a = { 0 };
	(void)state;
	kit_get(pool, addr, "/wait", &a);
	kit_until_n(&requests, 1);
	http_reply_abort(pending);
	kit_until(&a.over);
	assert_int_equal(a.err, ERR_UPSTREAM_EARLY_CLOSE);
	kit_answer_done(&a);

	kit_get(pool, addr, "/wait", &a);
	kit_until_n(&requests, 2);
	http_reply_begin(pending, 200, (struct http_headers){ 0 }, -1);
	http_reply_write(pending, STR("some"));
	http_reply_cut(pending);
	kit_until(&a.over);
	assert_int_equal(a.err, ERR_UPSTREAM_MIDSTREAM);
	assert_true(str_eq(buf_str(&a.body), STR("some")));
	assert_int_equal(done, 1);
	assert_int_equal(gone, 0);
	kit_answer_done(&a);
}

static void test_nobody_listens(void **state)
{
	struct kit_answer a = { 0 };
	(void)state;
	http_server_stop_listening(server);
	kit_get(pool, addr, "/", &a);
	kit_until(&a.over);
	assert_int_equal(a.err, ERR_CONNECT);
	assert_int_equal(a.sent, 0);
	kit_answer_done(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_get, setup, teardown),
		cmocka_unit_test_setup_teardown(test_chunks, setup, teardown),
		cmocka_unit_test_setup_teardown(test_keep_alive_is_used_again, setup, teardown),
		cmocka_unit_test_setup_teardown(test_large_body_both_ways, setup, teardown),
		cmocka_unit_test_setup_teardown(test_abort_is_seen_by_the_server, setup, teardown),
		cmocka_unit_test_setup_teardown(test_server_abort_before_and_after_the_head, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nobody_listens, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
