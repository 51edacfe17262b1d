/* The client against scripted raw servers: every way an answer can come, stop coming, or never come. */
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/server.h"
#include "kit.h"

static struct http_pool *pool;
static struct io_addr addr;
static int listener;

static void start(const struct http_pool_opts *o)
{
	http_pool_free(pool);
	pool = http_pool_new(kit_loop(), o);
}

static int setup(void **state)
{
	struct http_pool_opts o = http_pool_defaults();
	kit_setup(state);
	listener = kit_raw_listen(&addr);
	start(&o);
	return 0;
}

static int teardown(void **state)
{
	http_pool_free(pool);
	pool = NULL;
	close(listener);
	return kit_teardown(state);
}

static void send_text(int fd, const char *text) { kit_raw_send(fd, text, strlen(text)); }

/* Accepts a connection (unless fd >= 0), reads one request head, answers. */
static int serve(int fd, const char *answer)
{
	if (fd < 0)
		fd = kit_raw_accept(listener);
	char *got = kit_raw_read(fd, "\r\n\r\n");
	assert_non_null(strstr(got, "\r\n\r\n"));
	free(got);
	send_text(fd, answer);
	return fd;
}

static void reset(int fd)
{
	struct linger hard = { 1, 0 };
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
	close(fd);
}

#define OK5 "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"

static void want(struct kit_answer *a, enum err e, int status, const char *body)
{
	kit_until(&a->over);
	assert_int_equal(a->err, e);
	assert_int_equal(a->status, status);
	assert_true(str_eq(buf_str(&a->body), str_of(body)));
	kit_answer_done(a);
}

static void test_answers_cut_at_each_offset(void **state)
{
	static const char *const texts[] = {
		OK5, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x\r\nllo\r\n0\r\nT: t\r\n\r\n",
		"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
	};
	(void)state;
	int fd = -1;
	for (size_t t = 0; t < ARRAY_LEN(texts); t++)
		for (size_t cut = 1; cut < strlen(texts[t]); cut++) {
			struct kit_answer a = { 0 };
			kit_get(pool, addr, "/", &a);
			fd = serve(fd, "");
			kit_raw_send(fd, texts[t], cut);
			kit_run_us(200);
			send_text(fd, texts[t] + cut);
			want(&a, ERR_OK, 200, "hello");
		}
	assert_int_equal(http_pool_stats(pool).connects, 1);
	close(fd);
}

static void test_the_request_as_sent(void **state)
{
	struct http_header h[] = { { STR("X-A"), STR("1") }, { STR("Connection"), STR("close") }, { STR("content-length"), STR("99") },
		                   { STR("Expect"), STR("100-continue") } };
	struct str body[] = { STR("ab"), STR(""), STR("cde") };
	struct http_call_opts o = { .addr = addr, .method = STR("POST"), .target = STR("/v1?x=y"), .host = STR("worker:8000"),
		                    .headers = { h, 4 }, .body = body, .n_body = 3 };
	struct kit_answer a = { 0 };
	(void)state;
	http_call_start(pool, &o, &kit_call_ops, &a);
	int fd = kit_raw_accept(listener);
	char *got = kit_raw_read(fd, "abcde");
	assert_string_equal(got, "POST /v1?x=y HTTP/1.1\r\nHost: worker:8000\r\nX-A: 1\r\nContent-Length: 5\r\n\r\nabcde");
	free(got);
	send_text(fd, OK5);
	want(&a, ERR_OK, 200, "hello");
	close(fd);
}

static void test_a_request_that_would_inject_fails(void **state)
{
	struct http_header h = { STR("X-A"), STR("1\r\nX-B: 2") };
	struct http_call_opts rows[] = {
		{ .method = STR("GET"), .target = STR("/a b"), .host = STR("h") },
		{ .method = STR("GET"), .target = STR("/\r\nX: y"), .host = STR("h") },
		{ .method = STR("GE T"), .target = STR("/"), .host = STR("h") },
		{ .method = STR("GET"), .target = STR("/"), .host = STR("h\r\nX: y") },
		{ .method = STR("GET"), .target = STR("/"), .host = STR("h"), .headers = { &h, 1 } },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct kit_answer a = { 0 };
		rows[i].addr = addr;
		http_call_start(pool, &rows[i], &kit_call_ops, &a);
		assert_false(a.over);
		want(&a, ERR_SYNTAX, 0, "");
	}
	assert_int_equal(http_pool_stats(pool).connects, 0);
}

static void test_until_eof_and_head_and_no_content(void **state)
{
	struct kit_answer a = { 0 };
	(void)state;
	kit_get(pool, addr, "/", &a);
	close(serve(-1, "HTTP/1.0 200 OK\r\n\r\nto the end"));
	want(&a, ERR_OK, 200, "to the end");
	struct http_call_opts o = { .addr = addr, .method = STR("HEAD"), .target = STR("/"), .host = STR("h") };
	http_call_start(pool, &o, &kit_call_ops, &a);
	int fd = serve(-1, "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n");
	want(&a, ERR_OK, 200, "");
	kit_get(pool, addr, "/", &a);
	serve(fd, "HTTP/1.1 204 No Content\r\n\r\n");
	want(&a, ERR_OK, 204, "");
	close(fd);
}

static void test_ways_to_fail(void **state)
{
	static const struct { const char *answer; bool hard; enum err err; int status; const char *body; } rows[] = {
		{ "", false, ERR_UPSTREAM_EARLY_CLOSE, 0, "" },
		{ "", true, ERR_UPSTREAM_EARLY_CLOSE, 0, "" },
		{ "HTTP/1.1 2", false, ERR_UPSTREAM_EARLY_CLOSE, 0, "" },
		{ "HTTP/1.1 100 Continue\r\n\r\n", false, ERR_UPSTREAM_EARLY_CLOSE, 0, "" },
		{ "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", false, ERR_UPSTREAM_MIDSTREAM, 200, "hel" },
		{ "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n", false, ERR_UPSTREAM_MIDSTREAM, 200, "hel" },
		{ "HTTP/1.1 200 OK\r\n\r\nhel", true, ERR_UPSTREAM_MIDSTREAM, 200, "hel" },
		{ "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhelX", false, ERR_UPSTREAM_PROTOCOL, 200, "hel" },
		{ "SSH-2.0-x\r\n\r\n", false, ERR_UPSTREAM_PROTOCOL, 0, "" },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct kit_answer a = { 0 };
		kit_get(pool, addr, "/", &a);
		int fd = serve(-1, rows[i].answer);
		kit_run_us(3000);
		if (rows[i].hard)
			reset(fd);
		else
			close(fd);
		kit_until(&a.over);
		if (a.err != rows[i].err)
			fail_msg("row %zu: %s", i, err_label(a.err));
		want(&a, rows[i].err, rows[i].status, rows[i].body);
		assert_int_equal(a.retries, 0);
	}
	assert_int_equal(http_pool_stats(pool).open, 0);
}

static void test_extra_bytes_close_the_socket(void **state)
{
	struct kit_answer a = { 0 };
	(void)state;
	kit_get(pool, addr, "/", &a);
	int fd = serve(-1, OK5 "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison");
	want(&a, ERR_OK, 200, "hello");
	assert_true(kit_raw_closed(fd, 100000));
	close(fd);
	assert_int_equal(http_pool_stats(pool).idle, 0);
	kit_get(pool, addr, "/", &a);
	fd = serve(-1, OK5);
	want(&a, ERR_OK, 200, "hello");
	send_text(fd, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison");    /* while idle */
	assert_true(kit_raw_closed(fd, 100000));
	close(fd);
}

static void test_connection_close_is_kept(void **state)
{
	struct kit_answer a = { 0 };
	(void)state;
	kit_get(pool, addr, "/", &a);
	int fd = serve(-1, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello");
	want(&a, ERR_OK, 200, "hello");
	assert_true(kit_raw_closed(fd, 100000));
	close(fd);
}

/* ---- reuse and the one retry ------------------------------------------------------------------------------- */

/* llm-d/llm-d#1564, litellm#19091: uvicorn closes after 5 s idle, a pool that keeps sockets longer turns that into 502s.
 * Here with times a hundred times shorter: a server that closes idle sockets never costs a request. */
static void case_llm_d_1564_server_that_closes_idle_sockets(void **state)
{
	static const int waits_us[] = { 0, 14000, 15500, 49000, 50000, 51000, 60000 };
	struct http_pool_opts o = http_pool_defaults();
	(void)state;
	o.idle_max_us = 15000;
	start(&o);
	int fd = -1;
	for (size_t i = 0; i < ARRAY_LEN(waits_us); i++) {
		struct kit_answer a = { 0 };
		kit_run_us(waits_us[i]);
		if (fd >= 0 && waits_us[i] >= 50000) {
			close(fd);
			fd = -1;
		}
		uint64_t connects = http_pool_stats(pool).connects;
		kit_get(pool, addr, "/", &a);
		bool fresh = http_pool_stats(pool).connects > connects;    /* a slow machine may wait longer than asked */
		assert_true(fresh || waits_us[i] < 15000);
		if (fresh && fd >= 0)
			close(fd);
		fd = serve(fresh ? -1 : fd, OK5);
		kit_until(&a.over);
		assert_int_equal(a.reused, !fresh);
		want(&a, ERR_OK, 200, "hello");
	}
	close(fd);
	assert_int_equal(http_pool_stats(pool).retries, 0);
}

static int warm_socket(void)
{
	struct kit_answer a = { 0 };
	kit_get(pool, addr, "/warm", &a);
	int fd = serve(-1, OK5);
	want(&a, ERR_OK, 200, "hello");
	return fd;
}

static void test_closed_idle_socket_is_noticed_before_use(void **state)
{
	struct kit_answer a = { 0 };
	(void)state;
	int fd = warm_socket();
	usleep(3000);
	close(fd);                        /* no turn of the loop between the close and the next call */
	kit_get(pool, addr, "/", &a);
	close(serve(-1, OK5));
	want(&a, ERR_OK, 200, "hello");
	assert_int_equal(http_pool_stats(pool).retries, 0);
}

static void test_dead_reused_socket_is_retried_exactly_once(void **state)
{
	struct kit_answer a = { 0 };
	(void)state;
	int fd = warm_socket();
	kit_get(pool, addr, "/again", &a);
	char *got = kit_raw_read(fd, "\r\n\r\n");
	free(got);
	reset(fd);                        /* within 50 ms of the write, no byte: it was not begun */
	fd = kit_raw_accept(listener);
	got = kit_raw_read(fd, "\r\n\r\n");
	assert_non_null(strstr(got, "GET /again HTTP/1.1\r\n"));
	free(got);
	close(fd);                        /* the second time there is no third */
	kit_until(&a.over);
	assert_int_equal(a.err, ERR_UPSTREAM_EARLY_CLOSE);
	assert_int_equal(a.retries, 1);
	assert_int_equal(a.connected, 2);
	assert_int_equal(http_pool_stats(pool).retries, 1);
	kit_answer_done(&a);
}

static void test_retry_sends_the_whole_body_again(void **state)
{
	static char big[300000];
	struct str body[] = { STR("start,"), { big, sizeof(big) }, STR(",end") };
	struct http_call_opts o = { .addr = addr, .method = STR("POST"), .target = STR("/"), .host = STR("h"), .body = body, .n_body = 3 };
	struct kit_answer a = { 0 };
	(void)state;
	memset(big, 'x', sizeof(big));
	int fd = warm_socket();
	http_call_start(pool, &o, &kit_call_ops, &a);
	reset(fd);
	fd = kit_raw_accept(listener);
	char *got = kit_raw_read(fd, ",end");
	char *at = strstr(got, "\r\n\r\n");
	assert_non_null(at);
	assert_int_equal(strlen(at + 4), 6 + sizeof(big) + 4);
	free(got);
	send_text(fd, OK5);
	kit_until(&a.over);
	assert_int_equal(a.retries, 1);
	want(&a, ERR_OK, 200, "hello");
	close(fd);
}

static void test_after_the_window_or_after_a_byte_there_is_no_retry(void **state)
{
	struct kit_answer a = { 0 };
	(void)state;
	int fd = warm_socket();
	kit_get(pool, addr, "/", &a);
	serve(fd, "");
	kit_run_us(60000);
	close(fd);
	kit_until(&a.over);
	assert_int_equal(a.err, ERR_UPSTREAM_EARLY_CLOSE);    /* the worker may have begun it */
	kit_answer_done(&a);
	fd = warm_socket();
	kit_get(pool, addr, "/", &a);
	serve(fd, "H");
	kit_run_us(2000);
	close(fd);
	kit_until(&a.over);
	assert_int_equal(a.err, ERR_UPSTREAM_EARLY_CLOSE);
	kit_answer_done(&a);
	assert_int_equal(http_pool_stats(pool).retries, 0);
}

/* miles#1334: retry on any exception ran the prompt twice. */
static void case_miles_1334_fresh_socket_is_never_retried(void **state)
{
	struct kit_answer a = { 0 };
	(void)state;
	kit_get(pool, addr, "/", &a);
	reset(serve(-1, ""));
	kit_until(&a.over);
	assert_int_equal(a.err, ERR_UPSTREAM_EARLY_CLOSE);
	kit_answer_done(&a);
	kit_run_us(20000);
	assert_int_equal(http_pool_stats(pool).connects, 1);
}

static void test_fresh_forget_and_the_idle_limit(void **state)
{
	struct http_pool_opts o = http_pool_defaults();
	struct kit_answer a[3] = { { 0 } };
	int fd[3];
	(void)state;
	o.max_idle_per_addr = 2;
	start(&o);
	for (int i = 0; i < 3; i++) {
		kit_get(pool, addr, "/", &a[i]);
		fd[i] = serve(-1, "");
	}
	for (int i = 0; i < 3; i++) {
		send_text(fd[i], OK5);
		want(&a[i], ERR_OK, 200, "hello");
	}
	assert_int_equal(http_pool_stats(pool).idle, 2);
	assert_true(kit_raw_closed(fd[0], 100000));    /* the oldest made room */
	kit_get(pool, addr, "/", &a[0]);
	serve(fd[2], OK5);                              /* the newest is used first */
	want(&a[0], ERR_OK, 200, "hello");
	struct http_call_opts call = { .addr = addr, .method = STR("GET"), .target = STR("/"), .host = STR("h"), .fresh = true };
	http_call_start(pool, &call, &kit_call_ops, &a[0]);
	close(serve(-1, OK5));
	want(&a[0], ERR_OK, 200, "hello");
	http_pool_forget(pool, &addr);
	assert_int_equal(http_pool_stats(pool).idle, 0);
	assert_true(kit_raw_closed(fd[1], 100000));
	http_pool_forget(pool, &addr);
	for (int i = 0; i < 3; i++)
		close(fd[i]);
}

/* ---- calls from inside callbacks --------------------------------------------------------------------------- */

static struct kit_answer second;
static void start_second(struct kit_answer *a)
{
	(void)a;
	kit_get(pool, addr, "/second", &second);
}

static void test_next_call_from_on_end_finds_the_socket(void **state)
{
	struct kit_answer a = { .then = start_second };
	(void)state;
	kit_get(pool, addr, "/", &a);
	int fd = serve(-1, OK5);
	kit_until(&a.over);
	serve(fd, OK5);
	kit_until(&second.over);
	assert_int_equal(second.reused, 1);
	kit_answer_done(&a);
	kit_answer_done(&second);
	close(fd);
}

static void abort_it(struct kit_answer *a) { http_call_abort(a->call); }
static void free_pool(struct kit_answer *a)
{
	(void)a;
	http_pool_free(pool);
	pool = NULL;
}

static void test_abort_or_free_from_on_body(void **state)
{
	struct kit_answer a = { .on_piece = abort_it };
	(void)state;
	kit_get(pool, addr, "/", &a);
	int fd = serve(-1, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n1\r\nb\r\n0\r\n\r\n");
	assert_true(kit_raw_closed(fd, 100000));
	assert_int_equal(a.pieces, 1);
	assert_false(a.over);
	kit_answer_done(&a);
	close(fd);
	a.on_piece = free_pool;
	kit_get(pool, addr, "/", &a);
	fd = serve(-1, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n1\r\nb\r\n0\r\n\r\n");
	kit_until(&a.over);
	assert_int_equal(a.err, ERR_CLIENT_GONE);
	assert_int_equal(a.pieces, 1);
	kit_answer_done(&a);
	close(fd);
}

static void test_free_from_on_end_and_with_running_calls(void **state)
{
	struct kit_answer a = { .then = free_pool }, b = { 0 };
	(void)state;
	kit_get(pool, addr, "/a", &a);
	int fd = serve(-1, "");
	kit_get(pool, addr, "/b", &b);
	int fd2 = serve(-1, "");
	send_text(fd, OK5);
	kit_until(&a.over);
	assert_int_equal(a.err, ERR_OK);
	assert_true(b.over);
	assert_int_equal(b.err, ERR_CLIENT_GONE);
	kit_answer_done(&a);
	kit_answer_done(&b);
	close(fd);
	close(fd2);
}

static void test_abort_before_anything_happened(void **state)
{
	struct kit_answer a = { 0 };
	(void)state;
	int fd = warm_socket();
	http_call_abort(kit_get(pool, addr, "/", &a));    /* on a reused socket: the request left, the close follows */
	http_call_abort(kit_get(pool, addr, "/", &a));    /* while it connects */
	kit_run_us(3000);
	assert_int_equal(a.connected + a.sent + a.over, 0);
	assert_int_equal(http_pool_stats(pool).open, 0);
	close(fd);
}

/* ---- time and pressure ------------------------------------------------------------------------------------- */

static struct http_call *timed(struct kit_answer *a, int64_t first_us, int64_t stall_us)
{
	struct http_call_opts o = { .addr = addr, .method = STR("GET"), .target = STR("/"), .host = STR("h"),
		                    .first_byte_timeout_us = first_us, .stall_timeout_us = stall_us };
	return a->call = http_call_start(pool, &o, &kit_call_ops, a);
}

static void test_timeouts(void **state)
{
	struct kit_answer a = { 0 };
	(void)state;
	timed(&a, 30000, 0);
	int fd = serve(-1, "");
	want(&a, ERR_TIMEOUT_FIRST_BYTE, 0, "");
	close(fd);
	timed(&a, 50000, 250000);
	fd = serve(-1, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
	for (int i = 0; i < 5; i++) {        /* all in all slower than the stall time, but not silent */
		kit_run_us(60000);
		send_text(fd, "1\r\nx\r\n");
	}
	assert_false(a.over);
	want(&a, ERR_TIMEOUT_STALL, 200, "xxxxx");
	assert_true(kit_raw_closed(fd, 100000));
	close(fd);
}

/* What comes before the head is whole is no answer: it neither ends the patience nor makes it longer. */
static void test_a_head_that_never_ends_times_out(void **state)
{
	static const char *const begun[] = { "H", "\r\n", "HTTP/1.1 200 OK\r\ncontent-le", "HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 200 OK\r\n" };
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(begun); i++) {
		struct kit_answer a = { 0 };
		timed(&a, 200000, 0);
		int fd = serve(-1, begun[i]);
		bool drips = i + 1 == ARRAY_LEN(begun);
		for (int k = 0; k < 40 && drips && !a.over; k++) {   /* two seconds of it, ten times the limit */
			kit_run_us(50000);
			send_text(fd, "x-a: b\r\n");
		}
		assert_true(!drips || a.over);
		want(&a, ERR_TIMEOUT_FIRST_BYTE, 0, "");
		close(fd);
	}
}

static void test_connect_timeout(void **state)
{
	struct http_pool_opts o = http_pool_defaults();
	struct kit_answer a = { 0 };
	struct io_addr full;
	int held[8];
	(void)state;
	o.connect_timeout_us = 50000;
	start(&o);
	/* A listener with a full backlog takes no SYN: the nearest thing to a host that is not there. */
	int lazy = kit_raw_listen(&full);
	assert_int_equal(listen(lazy, 0), 0);
	for (size_t i = 0; i < ARRAY_LEN(held); i++) {
		held[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		(void)!connect(held[i], (struct sockaddr *)(void *)full.raw, full.len);
	}
	kit_get(pool, full, "/", &a);
	want(&a, ERR_CONNECT, 0, "");
	assert_int_equal(a.sent, 0);
	for (size_t i = 0; i < ARRAY_LEN(held); i++)
		close(held[i]);
	close(lazy);
}

static void test_paused_answer_is_not_read_nor_stalled(void **state)
{
	static char piece[65536];
	struct kit_answer a = { 0 };
	size_t sent = 0, total = (size_t)24 << 20;
	(void)state;
	memset(piece, 'x', sizeof(piece));
	struct http_call *c = timed(&a, 0, 100000);
	int fd = serve(-1, "HTTP/1.1 200 OK\r\nContent-Length: 25165824\r\n\r\n");
	kit_until_n(&a.heads, 1);
	http_call_pause(c);
	for (int i = 0; i < 300; i++) {
		ssize_t n = send(fd, piece, MIN(sizeof(piece), total - sent), MSG_NOSIGNAL | MSG_DONTWAIT);
		sent += n > 0 ? (size_t)n : 0;
		kit_run_us(500);
	}
	assert_true(sent < total);
	assert_false(a.over);
	assert_true(a.body.n <= 4 * 65536);
	http_call_resume(c);
	while (sent < total) {
		size_t n = MIN(sizeof(piece), total - sent);
		kit_raw_send(fd, piece, n);
		sent += n;
	}
	kit_until(&a.over);
	assert_int_equal(a.err, ERR_OK);
	assert_int_equal(a.body.n, total);
	kit_answer_done(&a);
	close(fd);
}

static void test_early_answer_stops_the_upload(void **state)
{
	size_t n = (size_t)16 << 20;
	char *big = calloc(1, n);
	struct str body = { big, n };
	struct http_call_opts o = { .addr = addr, .method = STR("POST"), .target = STR("/"), .host = STR("h"), .body = &body, .n_body = 1 };
	struct kit_answer a = { 0 };
	(void)state;
	http_call_start(pool, &o, &kit_call_ops, &a);
	int fd = kit_raw_accept(listener);
	kit_run_us(5000);
	send_text(fd, "HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\n");
	kit_until_n(&a.heads, 1);
	free(big);                           /* after on_head the memory is the owner's again */
	for (int i = 0; i < 100; i++) {      /* makes room in the socket: nothing more may come from freed memory */
		static char sink[1 << 20];
		while (recv(fd, sink, sizeof(sink), 0) > 0)
			;
		kit_run_us(500);
	}
	send_text(fd, "no");
	want(&a, ERR_OK, 413, "no");
	assert_int_equal(a.sent, 0);
	assert_int_equal(http_pool_stats(pool).open, 0);
	close(fd);
}

/* ---- fetch ------------------------------------------------------------------------------------------------- */

struct fetched { bool over; enum err err; int status; char body[64], header[32]; };
static void on_fetched(void *arg, enum err e, int status, struct http_headers h, struct str body)
{
	struct fetched *f = arg;
	assert_false(f->over);
	f->over = true;
	f->err = e;
	f->status = status;
	snprintf(f->body, sizeof(f->body), "%.*s", STR_ARG(body));
	snprintf(f->header, sizeof(f->header), "%.*s", STR_ARG(http_find(h, STR("x-h"))));
}

static struct http_fetch *fetch(struct fetched *f, size_t max_bytes)
{
	char body[] = "{}";
	struct http_fetch_opts o = { .addr = addr, .method = STR("POST"), .target = STR("/t"), .host = STR("h"), .body = str_of(body),
		                     .max_bytes = max_bytes, .timeout_us = 50000 };
	*f = (struct fetched){ 0 };
	struct http_fetch *r = http_fetch_start(pool, &o, on_fetched, f);
	memset(body, 'X', sizeof(body));    /* it was copied */
	return r;
}

static void test_fetch(void **state)
{
	struct fetched f;
	(void)state;
	fetch(&f, 5);
	int fd = kit_raw_accept(listener);
	char *got = kit_raw_read(fd, "{}");
	assert_non_null(strstr(got, "Content-Length: 2\r\n\r\n{}"));
	free(got);
	send_text(fd, "HTTP/1.1 404 Not Found\r\nX-H: v\r\nContent-Length: 5\r\n\r\nhello");
	kit_until(&f.over);
	assert_int_equal(f.err, ERR_OK);
	assert_int_equal(f.status, 404);
	assert_string_equal(f.body, "hello");
	assert_string_equal(f.header, "v");
	fetch(&f, 4);
	serve(fd, OK5);
	kit_until(&f.over);
	assert_int_equal(f.err, ERR_LIMIT);
	close(fd);
	fetch(&f, 4);
	fd = serve(-1, "");
	kit_until(&f.over);
	assert_int_equal(f.err, ERR_TIMEOUT_FIRST_BYTE);
	close(fd);
	fetch(&f, 4);
	fd = serve(-1, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nh");
	kit_until(&f.over);
	assert_int_equal(f.err, ERR_TIMEOUT_STALL);
	close(fd);
	http_fetch_abort(fetch(&f, 4));
	kit_run_us(60000);
	assert_false(f.over);
}

#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_answers_cut_at_each_offset), T(test_the_request_as_sent), T(test_a_request_that_would_inject_fails),
		T(test_until_eof_and_head_and_no_content), T(test_ways_to_fail), T(test_extra_bytes_close_the_socket),
		T(test_connection_close_is_kept), T(case_llm_d_1564_server_that_closes_idle_sockets),
		T(test_closed_idle_socket_is_noticed_before_use), T(test_dead_reused_socket_is_retried_exactly_once),
		T(test_retry_sends_the_whole_body_again), T(test_after_the_window_or_after_a_byte_there_is_no_retry),
		T(case_miles_1334_fresh_socket_is_never_retried), T(test_fresh_forget_and_the_idle_limit),
		T(test_next_call_from_on_end_finds_the_socket), T(test_abort_or_free_from_on_body),
		T(test_free_from_on_end_and_with_running_calls), T(test_abort_before_anything_happened), T(test_timeouts), T(test_a_head_that_never_ends_times_out),
		T(test_connect_timeout), T(test_paused_answer_is_not_read_nor_stalled), T(test_early_answer_stops_the_upload),
		T(test_fetch),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
