/* The server against raw sockets: bytes cut anywhere, pipelining, timeouts, clients that leave or do not read. */
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "kit.h"

static struct http_server *server;
static struct io_addr addr;
static struct http_req *last;
static int requests, bodies_ended, gone, done, drains, refusals;
static enum err gone_why;
static struct buf body;

static void stream_some(struct http_req *r)
{
	http_reply_begin(r, 200, (struct http_headers){ 0 }, -1);
	http_reply_write(r, STR("first,"));
}

static void on_request(void *arg, struct http_req *r)
{
	(void)arg;
	requests++;
	last = r;
	if (str_eq(r->path, STR("/now")))
		http_reply(r, 200, (struct http_headers){ 0 }, STR("text/plain"), r->query.n ? r->query : STR("now"));
	else if (str_eq(r->path, STR("/unread")))
		http_reply(r, 401, (struct http_headers){ 0 }, STR("text/plain"), STR("no"));
	else if (str_eq(r->path, STR("/stream")))
		stream_some(r);
	else if (str_eq(r->path, STR("/slowly")))
		http_req_pause(r);
	else if (str_eq(r->path, STR("/abort")))
		http_reply_abort(r);
}

static void on_body(struct http_req *r, struct str piece)
{
	assert_ptr_equal(r, last);
	assert_int_equal(buf_add(&body, piece), ERR_OK);
	if (str_eq(r->path, STR("/abort-in-body")))
		http_reply_abort(r);
}

static void on_body_end(struct http_req *r)
{
	bodies_ended++;
	if (str_eq(r->path, STR("/echo")) || str_eq(r->path, STR("/slowly")))
		http_reply(r, 200, (struct http_headers){ 0 }, STR("text/plain"), buf_str(&body));
}

static void on_drain(struct http_req *r)
{
	assert_ptr_equal(r, last);
	drains++;
}

static void on_gone(struct http_req *r, enum err why)
{
	(void)r;
	gone++;
	gone_why = why;
}

static void on_done(struct http_req *r)
{
	(void)r;
	done++;
}

/* Whose head was whole is told here first, then as gone. */
static void on_refuse(void *arg, const struct http_refusal *x)
{
	char text[64];
	struct http_header h = { STR("x-refused"), str_of(err_label(x->why)) };
	(void)arg;
	refusals++;
	assert_true(mono_diff_us(io_now(kit_loop()), x->started) >= 0);
	if (x->req) {
		assert_ptr_equal(x->req, last);
		assert_int_equal(gone, 0);
	}
	snprintf(text, sizeof(text), "{\"error\":%d,\"known\":%d}", x->status, x->req != NULL);
	http_refuse(x, (struct http_headers){ &h, 1 }, str_of(text));
}

static const struct http_server_ops ops = { on_request, on_body, on_body_end, on_drain, on_gone, on_done, on_refuse };

static void start(const struct http_server_opts *o)
{
	struct io_addr any = kit_local(0);
	http_server_free(server);
	assert_int_equal(http_server_new(kit_loop(), &any, o, &ops, NULL, &server), ERR_OK);
	addr = http_server_addr(server);
}

static int setup(void **state)
{
	struct http_server_opts o = http_server_defaults();
	kit_setup(state);
	requests = bodies_ended = gone = done = drains = refusals = 0;
	last = NULL;
	buf_init(&body, (size_t)1 << 26);
	start(&o);
	return 0;
}

static int teardown(void **state)
{
	http_server_free(server);
	server = NULL;
	buf_done(&body);
	return kit_teardown(state);
}

static int count(const char *in, const char *what)
{
	int n = 0;
	for (const char *p = in; (p = strstr(p, what)); p += strlen(what))
		n++;
	return n;
}

static void send_text(int fd, const char *text) { kit_raw_send(fd, text, strlen(text)); }

/* Sends text, reads until `until` (NULL: until the peer closed), and wants the answer to contain `want`. */
static void talk(const char *text, const char *until, const char *want)
{
	int fd = kit_raw_connect(addr);
	send_text(fd, text);
	char *got = kit_raw_read(fd, until);
	if (!strstr(got, want))
		fail_msg("sent:\n%s\nwanted: %s\ngot:\n%s", text, want, got);
	free(got);
	close(fd);
}

#define H "Host: a\r\n"

static void test_cut_at_each_offset(void **state)
{
	static const char text[] = "POST /echo HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
	(void)state;
	for (size_t cut = 1; cut + 1 < sizeof(text); cut++) {
		int fd = kit_raw_connect(addr);
		buf_clear(&body);
		kit_raw_send(fd, text, cut);
		kit_run_us(300);
		kit_raw_send(fd, text + cut, sizeof(text) - 1 - cut);
		char *got = kit_raw_read(fd, "abcde");
		assert_non_null(strstr(got, "HTTP/1.1 200 OK\r\n"));
		assert_non_null(strstr(got, "Content-Length: 5\r\n"));
		free(got);
		close(fd);
	}
}

static void test_pipelined_are_answered_in_order(void **state)
{
	int fd = kit_raw_connect(addr);
	(void)state;
	send_text(fd, "GET /now?1 HTTP/1.1\r\n" H "\r\nPOST /echo HTTP/1.1\r\n" H "Content-Length: 3\r\n\r\ntwoGET /now?3 HTTP/1.1\r\n" H "\r\n");
	char *got = kit_raw_read(fd, "\r\n\r\n3");
	assert_int_equal(count(got, "HTTP/1.1 200"), 3);
	assert_true(strstr(got, "\r\n\r\n1HTTP") < strstr(got, "\r\n\r\ntwoHTTP"));
	free(got);
	close(fd);
	kit_until_n(&done, 3);
}

static void test_pipelined_waits_for_the_running_reply(void **state)
{
	int fd = kit_raw_connect(addr);
	(void)state;
	send_text(fd, "GET /wait HTTP/1.1\r\n" H "\r\nGET /now HTTP/1.1\r\n" H "\r\n");
	kit_until_n(&requests, 1);
	kit_run_us(5000);
	assert_int_equal(requests, 1);
	http_reply(last, 200, (struct http_headers){ 0 }, STR("text/plain"), STR("late"));
	char *got = kit_raw_read(fd, "\r\n\r\nnow");
	assert_non_null(strstr(got, "\r\n\r\nlateHTTP/1.1 200"));
	free(got);
	close(fd);
}

/* More than is ever held: the client is held back by its socket, and every request is answered, in order. */
static void test_pipelined_flood_is_held_back_and_served(void **state)
{
	enum { N = 100000 };
	static const char now[] = "GET /now HTTP/1.1\r\n" H "\r\n";
	size_t sent = 0, size = N * (sizeof(now) - 1);
	int fd = kit_raw_connect(addr), small = 64 * 1024;
	char *all = malloc(size), got[65536];
	(void)state;
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)), 0);
	for (size_t i = 0; i < N; i++)
		memcpy(all + i * (sizeof(now) - 1), now, sizeof(now) - 1);
	send_text(fd, "GET /wait HTTP/1.1\r\n" H "\r\n");
	kit_until_n(&requests, 1);
	for (int quiet = 0; quiet < 20;) {    /* until neither the server nor the kernel takes more */
		ssize_t n = send(fd, all + sent, size - sent, MSG_DONTWAIT);
		sent += n > 0 ? (size_t)n : 0;
		quiet = n > 0 ? 0 : quiet + 1;
		kit_run_us(1000);
	}
	assert_true(sent < size);
	assert_true(http_server_stats(server).bytes_in < 256 * 1024);
	assert_int_equal(requests, 1);
	http_reply(last, 200, (struct http_headers){ 0 }, STR("text/plain"), STR("late"));
	int want = 1 + (int)(sent / (sizeof(now) - 1));
	for (int i = 0; i < 20000 && done < want; i++) {
		kit_run_us(1000);
		while (recv(fd, got, sizeof(got), MSG_DONTWAIT) > 0) {}
	}
	assert_int_equal(done, want);
	assert_int_equal(requests, want);
	assert_int_equal(gone, 0);
	free(all);
	close(fd);
}

/* What follows a request that ends the connection is not served, and not read without end either. */
static void test_pipelined_behind_the_last_request_is_left(void **state)
{
	int fd = kit_raw_connect(addr);
	(void)state;
	send_text(fd, "GET /wait HTTP/1.1\r\n" H "Connection: close\r\n\r\n");
	kit_until_n(&requests, 1);
	send_text(fd, "GET /now HTTP/1.1\r\n" H "\r\n");
	kit_run_us(5000);
	http_reply(last, 200, (struct http_headers){ 0 }, STR("text/plain"), STR("late"));
	char *got = kit_raw_read(fd, NULL);
	assert_non_null(strstr(got, "Connection: close\r\n"));
	assert_int_equal(count(got, "HTTP/1.1"), 1);
	free(got);
	close(fd);
	kit_until_n(&done, 1);
}

static void test_errors_are_answered_and_closed(void **state)
{
	(void)state;
	talk("GET / HTTP/1.1\r\n\r\n", NULL, "HTTP/1.1 400 Bad Request\r\n");
	talk("GET / HTTP/1.1\r\n" H "Host: b\r\n\r\n", NULL, "x-refused: duplicate\r\n");
	talk("GET / HTTP/2.0\r\n" H "\r\n", NULL, "HTTP/1.1 505 ");
	talk("CONNECT a:1 HTTP/1.1\r\n" H "\r\n", NULL, "HTTP/1.1 501 ");
	talk("POST / HTTP/1.1\r\n" H "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", NULL, "HTTP/1.1 400 ");
	talk("nonsense\r\n\r\n", NULL, "Connection: close\r\n");
	char large[40000] = "GET / HTTP/1.1\r\nX: ";
	memset(large + strlen(large), 'a', 35000);
	talk(large, NULL, "HTTP/1.1 431 ");
	assert_int_equal(refusals, 7);
	assert_int_equal(requests, 0);
	assert_int_equal(gone, 0);
	assert_int_equal(http_server_stats(server).open_reqs, 0);
}

static void test_smuggled_second_request_is_never_seen(void **state)
{
	(void)state;
	talk("POST /echo HTTP/1.1\r\n" H "Content-Length: 43\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /now HTTP/1.1\r\n" H "\r\n", NULL, "400");
	talk("GET /now HTTP/1.1\r\n" H "Content-Length : 20\r\n\r\nGET /now HTTP/1.1\r\n\r\n", NULL, "400");
	assert_int_equal(requests, 0);
}

static void test_malformed_chunk_after_the_head(void **state)
{
	(void)state;
	talk("POST /echo HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n3\r\nabcX", NULL, "HTTP/1.1 400 ");
	assert_int_equal(gone, 1);
	assert_int_equal(gone_why, ERR_SYNTAX);
	assert_int_equal(bodies_ended, 0);
}

static void test_half_close_while_pending_is_gone(void **state)
{
	int fd = kit_raw_connect(addr);
	(void)state;
	send_text(fd, "GET /wait HTTP/1.1\r\n" H "\r\n");
	kit_until_n(&requests, 1);
	shutdown(fd, SHUT_WR);
	kit_until_n(&gone, 1);
	assert_int_equal(gone_why, ERR_CLIENT_GONE);
	close(fd);
	kit_run_us(2000);
	assert_int_equal(gone, 1);
}

static void test_gone_in_the_middle_of_a_stream(void **state)
{
	int fd = kit_raw_connect(addr);
	(void)state;
	send_text(fd, "GET /stream HTTP/1.1\r\n" H "\r\n");
	free(kit_raw_read(fd, "first"));
	close(fd);
	kit_until_n(&gone, 1);
	assert_int_equal(http_server_stats(server).open_conns, 0);
}

static void test_gone_while_its_body_is_paused(void **state)
{
	int fd = kit_raw_connect(addr);
	(void)state;
	send_text(fd, "POST /slowly HTTP/1.1\r\n" H "Content-Length: 100000\r\n\r\n0123456789");
	kit_until_n(&requests, 1);
	kit_run_us(2000);
	close(fd);
	kit_until_n(&gone, 1);
}

static void test_request_and_eof_at_once_with_an_immediate_answer(void **state)
{
	int fd = kit_raw_connect(addr);
	(void)state;
	send_text(fd, "GET /now HTTP/1.1\r\n" H "\r\n");
	shutdown(fd, SHUT_WR);
	char *got = kit_raw_read(fd, NULL);
	assert_non_null(strstr(got, "200 OK"));
	assert_int_equal(done + gone, 1);
	free(got);
	close(fd);
}

static void test_abort_from_inside_callbacks(void **state)
{
	(void)state;
	talk("GET /abort HTTP/1.1\r\n" H "\r\nGET /now HTTP/1.1\r\n" H "\r\n", NULL, "");
	talk("POST /abort-in-body HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n1\r\nb\r\n0\r\n\r\n", NULL, "");
	kit_run_us(2000);
	assert_int_equal(requests, 2);
	assert_int_equal(gone + done, 0);
	assert_int_equal(http_server_stats(server).open_conns, 0);
	assert_int_equal(http_server_stats(server).open_reqs, 0);
}

static void test_expect_continue(void **state)
{
	int fd = kit_raw_connect(addr);
	(void)state;
	send_text(fd, "POST /echo HTTP/1.1\r\n" H "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n");
	char *got = kit_raw_read(fd, "\r\n\r\n");
	assert_string_equal(got, "HTTP/1.1 100 Continue\r\n\r\n");
	free(got);
	send_text(fd, "ab");
	got = kit_raw_read(fd, "\r\n\r\nab");
	assert_int_equal(strncmp(got, "HTTP/1.1 200", 12), 0);
	free(got);
	close(fd);
}

static void test_expect_refused_closes(void **state)
{
	int fd = kit_raw_connect(addr);
	(void)state;
	send_text(fd, "POST /unread HTTP/1.1\r\n" H "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n");
	char *got = kit_raw_read(fd, NULL);
	assert_int_equal(strncmp(got, "HTTP/1.1 401", 12), 0);
	assert_non_null(strstr(got, "Connection: close\r\n"));
	free(got);
	close(fd);
}

static void test_unread_small_body_keeps_the_connection(void **state)
{
	int fd = kit_raw_connect(addr);
	(void)state;
	send_text(fd, "POST /unread HTTP/1.1\r\n" H "Content-Length: 10\r\n\r\n01234");
	free(kit_raw_read(fd, "\r\n\r\nno"));
	send_text(fd, "56789GET /now HTTP/1.1\r\n" H "\r\n");
	char *got = kit_raw_read(fd, "\r\n\r\nnow");
	assert_non_null(strstr(got, "200 OK"));
	assert_int_equal(body.n, 0);
	assert_int_equal(bodies_ended, 0);    /* both were answered before their end: it is nobody's news */
	free(got);
	close(fd);
}

static void test_unread_large_body_still_gets_the_answer(void **state)
{
	size_t n = (size_t)4 * 1024 * 1024;
	char *big = calloc(1, n);
	int fd = kit_raw_connect(addr);
	(void)state;
	send_text(fd, "POST /unread HTTP/1.1\r\n" H "Content-Length: 4194304\r\n\r\n");
	kit_raw_send(fd, big, n);    /* a close with unread bytes would reset it and lose the answer */
	char *got = kit_raw_read(fd, NULL);
	assert_non_null(strstr(got, "HTTP/1.1 401"));
	assert_non_null(strstr(got, "Connection: close\r\n"));
	free(got);
	free(big);
	close(fd);
}

static void test_head_and_http10(void **state)
{
	(void)state;
	talk("HEAD /now HTTP/1.1\r\n" H "\r\nGET /now?x HTTP/1.1\r\n" H "Connection: close\r\n\r\n", NULL, "Content-Length: 3\r\n\r\nHTTP/1.1 200 OK\r\n");
	talk("GET /now HTTP/1.0\r\n\r\n", NULL, "Connection: close\r\n");
	talk("GET /now HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "\r\n\r\nnow", "Connection: keep-alive\r\n");
	int fd = kit_raw_connect(addr);
	int before = done;
	send_text(fd, "GET /stream HTTP/1.0\r\n\r\n");
	free(kit_raw_read(fd, "\r\n\r\nfirst,"));
	http_reply_write(last, STR("second"));
	http_reply_end(last);
	char *got = kit_raw_read(fd, NULL);
	assert_string_equal(got, "second");    /* no chunk heads, the close is the end */
	free(got);
	close(fd);
	kit_until_n(&done, before + 1);
}

static void test_cut_ends_without_the_last_chunk(void **state)
{
	int fd = kit_raw_connect(addr);
	(void)state;
	send_text(fd, "GET /stream HTTP/1.1\r\n" H "\r\n");
	kit_until_n(&requests, 1);
	http_reply_write(last, STR("error"));
	http_reply_cut(last);
	char *got = kit_raw_read(fd, NULL);
	assert_non_null(strstr(got, "6\r\nfirst,\r\n5\r\nerror\r\n"));
	assert_null(strstr(got, "0\r\n\r\n"));
	free(got);
	close(fd);
	kit_until_n(&done, 1);
	assert_int_equal(gone, 0);
}

static void test_replies_cannot_inject(void **state)
{
	int fd = kit_raw_connect(addr);
	struct http_header h[] = { { STR("x-bad"), STR("a\r\nX-Evil: 1") }, { STR("bad name"), STR("x") }, { STR("Content-Length"), STR("999") },
		                   { STR("Transfer-Encoding"), STR("chunked") }, { STR("x-good"), STR("yes") } };
	(void)state;
	send_text(fd, "GET /wait HTTP/1.1\r\n" H "\r\n");
	kit_until_n(&requests, 1);
	http_reply(last, 200, (struct http_headers){ h, 5 }, STR("text/plain"), STR("body"));
	char *got = kit_raw_read(fd, "\r\n\r\nbody");
	assert_null(strstr(got, "Evil"));
	assert_null(strstr(got, "bad name"));
	assert_int_equal(count(got, "Content-Length"), 1);
	assert_null(strstr(got, "chunked"));
	assert_non_null(strstr(got, "x-good: yes\r\n"));
	assert_non_null(strstr(got, "\r\nDate: "));
	free(got);
	close(fd);
}

static void test_more_than_declared_is_not_sent(void **state)
{
	int fd = kit_raw_connect(addr);
	(void)state;
	send_text(fd, "GET /wait HTTP/1.1\r\n" H "\r\n");
	kit_until_n(&requests, 1);
	http_reply_begin(last, 200, (struct http_headers){ 0 }, 4);
	http_reply_write(last, STR("abcdHTTP/1.1 200 smuggled"));
	http_reply_end(last);
	free(kit_raw_read(fd, "\r\n\r\nabcd"));
	send_text(fd, "GET /wait HTTP/1.1\r\n" H "\r\n");
	kit_until_n(&requests, 2);
	http_reply_begin(last, 200, (struct http_headers){ 0 }, 10);
	http_reply_write(last, STR("short"));
	http_reply_end(last);
	char *got = kit_raw_read(fd, NULL);    /* less than declared: the close says so */
	assert_null(strstr(got, "smuggled"));
	free(got);
	close(fd);
}

/* ---- time ---- */

static struct http_server_opts hasty(void)
{
	struct http_server_opts o = http_server_defaults();
	o.header_timeout_us = o.body_timeout_us = o.idle_timeout_us = o.write_timeout_us = 200000;
	return o;
}

static void test_slow_loris_header(void **state)
{
	struct http_server_opts o = hasty();
	(void)state;
	start(&o);
	int fd = kit_raw_connect(addr);
	send_text(fd, "GET /now HTTP/1.1\r\n" H);
	for (int i = 0; i < 25; i++) {        /* a byte now and then does not help */
		send_text(fd, "X");
		kit_run_us(10000);
	}
	char *got = kit_raw_read(fd, NULL);
	assert_non_null(strstr(got, "HTTP/1.1 408 "));
	assert_non_null(strstr(got, "timeout_client"));
	assert_int_equal(requests, 0);
	free(got);
	close(fd);
}

static void test_slow_body(void **state)
{
	struct http_server_opts o = hasty();
	(void)state;
	start(&o);
	int fd = kit_raw_connect(addr);
	send_text(fd, "POST /echo HTTP/1.1\r\n" H "Content-Length: 30\r\n\r\n");
	for (int i = 0; i < 6; i++) {         /* each piece renews the patience */
		send_text(fd, "X");
		kit_run_us(50000);
	}
	assert_int_equal(gone, 0);
	kit_until_n(&gone, 1);
	assert_int_equal(gone_why, ERR_TIMEOUT_CLIENT);
	char *got = kit_raw_read(fd, NULL);
	assert_non_null(strstr(got, "HTTP/1.1 408 "));
	assert_non_null(strstr(got, "{\"error\":408,\"known\":1}"));
	free(got);
	close(fd);
}

static void test_idle_connection_is_closed_a_pending_one_is_not(void **state)
{
	struct http_server_opts o = hasty();
	(void)state;
	start(&o);
	int idle = kit_raw_connect(addr), pending = kit_raw_connect(addr);
	send_text(pending, "GET /wait HTTP/1.1\r\n" H "\r\n");
	assert_true(kit_raw_closed(idle, 500000));
	kit_run_us(250000);
	assert_int_equal(gone, 0);
	http_reply(last, 200, (struct http_headers){ 0 }, STR("text/plain"), STR("late"));
	free(kit_raw_read(pending, "late"));
	assert_true(kit_raw_closed(pending, 500000));
	close(idle);
	close(pending);
}

static void test_back_pressure_and_a_client_that_never_reads(void **state)
{
	struct http_server_opts o = hasty();
	char piece[16384];
	size_t queued = 0;
	(void)state;
	o.high_bytes = 256 * 1024;
	o.low_bytes = 64 * 1024;
	start(&o);
	memset(piece, 'x', sizeof(piece));
	int fd = kit_raw_connect(addr);
	send_text(fd, "GET /stream HTTP/1.1\r\n" H "\r\n");
	kit_until_n(&requests, 1);
	for (int i = 0; i < 4000 && queued <= o.high_bytes; i++)
		queued = http_reply_write(last, str_from(piece, sizeof(piece)));
	assert_true(queued > o.high_bytes);
	assert_int_equal(http_server_stats(server).queued_bytes, queued);
	size_t total = 0;
	char sink[65536];
	for (int i = 0; i < 4000 && drains == 0; i++) {
		ssize_t n;
		while ((n = recv(fd, sink, sizeof(sink), 0)) > 0)
			total += (size_t)n;
		kit_run_us(500);
	}
	assert_int_equal(drains, 1);
	assert_true(total > o.high_bytes - o.low_bytes);
	for (int i = 0; i < 4000 && !gone; i++) {    /* more than the kernel's buffers will ever take */
		if (http_server_stats(server).queued_bytes <= 4 * o.high_bytes)
			http_reply_write(last, str_from(piece, sizeof(piece)));
		else
			kit_run_us(1000);
	}
	kit_until_n(&gone, 1);               /* nobody reads now */
	assert_int_equal(gone_why, ERR_TIMEOUT_CLIENT);
	close(fd);
}

static void test_paused_body_stops_reading(void **state)
{
	int fd = kit_raw_connect(addr);
	char piece[65536];
	size_t sent = 0;
	(void)state;
	memset(piece, 'x', sizeof(piece));
	send_text(fd, "POST /slowly HTTP/1.1\r\n" H "Content-Length: 33554432\r\n\r\n");
	kit_until_n(&requests, 1);
	for (int i = 0; i < 100; i++) {
		ssize_t n = send(fd, piece, sizeof(piece), MSG_NOSIGNAL | MSG_DONTWAIT);
		sent += n > 0 ? (size_t)n : 0;
		kit_run_us(200);
	}
	assert_true(sent < 16u << 20);        /* the kernel's buffers are full */
	assert_true(body.n <= 4 * 65536);
	http_req_resume(last);
	while (sent < 33554432) {
		size_t want = MIN(sizeof(piece), 33554432 - sent);
		kit_raw_send(fd, piece, want);
		sent += want;
	}
	kit_until_n(&bodies_ended, 1);
	assert_int_equal(body.n, 33554432);
	close(fd);
	kit_until_n(&gone, 1);
}

/* ---- the server as a whole ---- */

static void test_stop_listening_drains(void **state)
{
	int idle = kit_raw_connect(addr), pending = kit_raw_connect(addr);
	(void)state;
	send_text(idle, "GET /now HTTP/1.1\r\n" H "\r\n");
	free(kit_raw_read(idle, "\r\n\r\nnow"));
	send_text(pending, "GET /wait HTTP/1.1\r\n" H "\r\n");
	kit_until_n(&requests, 2);
	http_server_stop_listening(server);
	assert_true(kit_raw_closed(idle, 100000));
	http_reply(last, 200, (struct http_headers){ 0 }, STR("text/plain"), STR("late"));
	char *got = kit_raw_read(pending, NULL);
	assert_non_null(strstr(got, "Connection: close\r\n"));
	assert_non_null(strstr(got, "late"));
	free(got);
	close(idle);
	close(pending);
	int refused = socket(AF_INET, SOCK_STREAM, 0);
	assert_true(connect(refused, (struct sockaddr *)(void *)addr.raw, addr.len) < 0);
	close(refused);
}

static void test_free_with_running_requests(void **state)
{
	int a = kit_raw_connect(addr), b = kit_raw_connect(addr);
	(void)state;
	send_text(a, "GET /wait HTTP/1.1\r\n" H "\r\n");
	send_text(b, "GET /stream HTTP/1.1\r\n" H "\r\n");
	kit_until_n(&requests, 2);
	http_server_free(server);
	server = NULL;
	assert_int_equal(gone, 2);
	assert_true(kit_raw_closed(a, 100000));
	close(a);
	close(b);
}

static void test_connection_limit(void **state)
{
	struct http_server_opts o = http_server_defaults();
	(void)state;
	o.max_conns = 2;
	start(&o);
	int a = kit_raw_connect(addr), b = kit_raw_connect(addr);
	kit_run_us(2000);
	int c = kit_raw_connect(addr);
	assert_true(kit_raw_closed(c, 200000));
	assert_int_equal(http_server_stats(server).refused, 1);
	assert_int_equal(http_server_stats(server).open_conns, 2);
	close(a);
	kit_run_us(5000);
	close(c);
	c = kit_raw_connect(addr);
	send_text(c, "GET /now HTTP/1.1\r\n" H "\r\n");
	free(kit_raw_read(c, "\r\n\r\nnow"));
	close(b);
	close(c);
}

static void test_address_in_use(void **state)
{
	struct http_server_opts o = http_server_defaults();
	struct http_server *other = NULL;
	(void)state;
	assert_int_equal(http_server_new(kit_loop(), &addr, &o, &ops, NULL, &other), ERR_IO);
	o.reuse_port = true;
	start(&o);
	assert_int_equal(http_server_new(kit_loop(), &addr, &o, &ops, NULL, &other), ERR_OK);    /* one listener a core */
	http_server_free(other);
}

#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_cut_at_each_offset), T(test_pipelined_are_answered_in_order), T(test_pipelined_waits_for_the_running_reply),
		T(test_pipelined_flood_is_held_back_and_served),
		T(test_pipelined_behind_the_last_request_is_left), T(test_errors_are_answered_and_closed),
		T(test_smuggled_second_request_is_never_seen), T(test_malformed_chunk_after_the_head),
		T(test_half_close_while_pending_is_gone), T(test_gone_in_the_middle_of_a_stream),
		T(test_gone_while_its_body_is_paused), T(test_request_and_eof_at_once_with_an_immediate_answer),
		T(test_abort_from_inside_callbacks), T(test_expect_continue), T(test_expect_refused_closes),
		T(test_unread_small_body_keeps_the_connection), T(test_unread_large_body_still_gets_the_answer),
		T(test_head_and_http10), T(test_cut_ends_without_the_last_chunk), T(test_replies_cannot_inject),
		T(test_more_than_declared_is_not_sent), T(test_slow_loris_header), T(test_slow_body),
		T(test_idle_connection_is_closed_a_pending_one_is_not), T(test_back_pressure_and_a_client_that_never_reads),
		T(test_paused_body_stops_reading), T(test_stop_listening_drains), T(test_free_with_running_requests),
		T(test_connection_limit), T(test_address_in_use),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
