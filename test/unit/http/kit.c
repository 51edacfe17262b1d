#include "kit.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

static struct io_loop *loop;

struct io_loop *kit_loop(void) { return loop; }

int kit_setup(void **state)
{
	(void)state;
	loop = io_loop_new();
	return 0;
}

int kit_teardown(void **state)
{
	(void)state;
	io_loop_free(loop);
	return 0;
}

static void tick(void *arg) { io_loop_stop(arg); }

void kit_run_us(int64_t us)
{
	struct io_timer *t = io_timer_new(loop, tick, loop);
	io_timer_after(t, us);
	io_loop_run(loop);
	io_timer_free(t);
}

void kit_until_n(const int *counter, int n)
{
	for (int i = 0; i < 2000 && *counter < n; i++)
		kit_run_us(1000);
	if (*counter < n)
		fail_msg("after two seconds the counter is %d, not %d", *counter, n);
}

void kit_until(const bool *flag)
{
	for (int i = 0; i < 2000 && !*flag; i++)
		kit_run_us(1000);
	if (!*flag)
		fail_msg("it did not happen within two seconds");
}

struct io_addr kit_local(uint16_t port)
{
	struct io_addr a;
	assert_int_equal(io_addr_of_host(STR("127.0.0.1"), port, &a), ERR_OK);
	return a;
}

static void on_connected(void *arg, bool reused)
{
	struct kit_answer *a = arg;
	a->connected++;
	a->reused += reused;
}

static void on_sent(void *arg) { ((struct kit_answer *)arg)->sent++; }
static void on_retry(void *arg) { ((struct kit_answer *)arg)->retries++; }

static void on_head(void *arg, int status, struct http_headers h)
{
	struct kit_answer *a = arg;
	a->heads++;
	a->status = status;
	if (a->want_header) {
		struct str v = http_find(h, str_of(a->want_header));
		snprintf(a->header, sizeof(a->header), "%.*s", STR_ARG(v));
	}
}

static void on_body(void *arg, struct str piece)
{
	struct kit_answer *a = arg;
	if (a->body.max == 0)
		buf_init(&a->body, (size_t)1 << 30);
	assert_int_equal(buf_add(&a->body, piece), ERR_OK);
	a->pieces++;
	if (a->on_piece)
		a->on_piece(a);
}

static void over(struct kit_answer *a, enum err e)
{
	assert_false(a->over);
	a->over = true;
	a->err = e;
	if (a->then)
		a->then(a);
}

static void on_end(void *arg) { over(arg, ERR_OK); }
static void on_fail(void *arg, enum err why) { over(arg, why); }

const struct http_call_ops kit_call_ops = { on_connected, on_sent, on_head, on_body, on_end, on_fail, on_retry };

void kit_answer_done(struct kit_answer *a)
{
	buf_done(&a->body);
	*a = (struct kit_answer){ 0 };
}

struct http_call *kit_get(struct http_pool *p, struct io_addr to, const char *target, struct kit_answer *a)
{
	struct http_call_opts o = { .addr = to, .method = STR("GET"), .target = str_of(target), .host = STR("test") };
	return a->call = http_call_start(p, &o, &kit_call_ops, a);
}

static int no_delay(int fd)
{
	int on = 1;
	assert_int_equal(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)), 0);
	return fd;
}

int kit_raw_connect(struct io_addr to)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)(void *)to.raw, to.len), 0);
	fcntl(fd, F_SETFL, O_NONBLOCK);
	return no_delay(fd);
}

void kit_raw_send(int fd, const char *p, size_t n)
{
	while (n > 0) {
		ssize_t w = send(fd, p, n, MSG_NOSIGNAL);
		if (w < 0 && errno == EAGAIN) {
			kit_run_us(500);
			continue;
		}
		if (w < 0)
			return;     /* the peer has closed: the reader will see it */
		p += w;
		n -= (size_t)w;
	}
}

char *kit_raw_read(int fd, const char *until)
{
	size_t n = 0, cap = 1 << 16;
	char *p = calloc(1, cap);
	for (int i = 0; i < 4000; i++) {
		if (n + 65536 >= cap)
			p = realloc(p, cap *= 2);
		ssize_t r = recv(fd, p + n, 65536, 0);
		if (r > 0) {
			n += (size_t)r;
			p[n] = 0;
		}
		if (r == 0 || (r < 0 && errno != EAGAIN) || (until && strstr(p, until)))
			break;
		if (r < 0)
			kit_run_us(500);
	}
	p[n] = 0;
	return p;
}

bool kit_raw_closed(int fd, int64_t within_us)
{
	char c;
	for (int64_t us = 0; us <= within_us; us += 500) {
		ssize_t r = recv(fd, &c, 1, 0);
		if (r == 0 || (r < 0 && errno != EAGAIN))
			return true;
		kit_run_us(500);
	}
	return false;
}

int kit_raw_listen(struct io_addr *ret_addr)
{
	struct io_addr a = kit_local(0);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)(void *)a.raw, a.len), 0);
	assert_int_equal(listen(fd, 16), 0);
	socklen_t len = sizeof(a.raw);
	assert_int_equal(getsockname(fd, (struct sockaddr *)(void *)a.raw, &len), 0);
	fcntl(fd, F_SETFL, O_NONBLOCK);
	*ret_addr = a;
	return fd;
}

int kit_raw_accept(int fd)
{
	for (int i = 0; i < 4000; i++) {
		int c = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (c >= 0)
			return no_delay(c);
		kit_run_us(500);
	}
	fail_msg("nobody connected");
	return -1;
}
