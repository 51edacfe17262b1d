/* TCP streams over uv_poll. Not uv_tcp, because a proxy needs what that hides: the peer's FIN while reading is paused,
 * writes that keep nothing when the kernel takes all, and request bodies written from memory that is not ours. */
#include "io/tcp.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/must.h"
#include "io/loop_priv.h"

#define CHUNK_BYTES 4096
#define CHUNKS_SPARE 256       /* kept per loop: 1 MiB */
#define DIRECT_BYTES 8192      /* pieces from here on try the kernel before they are copied */
#define CORK_BYTES 16384       /* a queue that long is flushed without waiting for the callback's end */
#define WRITE_VECS 16
#define READS_PER_EVENT 4      /* 256 KiB, then others have a turn */
#define ACCEPTS_PER_EVENT 64
#define ACCEPT_REST_US 20000   /* out of file descriptors: try again so much later */
#define BACKLOG 4096

struct io_chunk {
	struct io_chunk *next;
	uint32_t at, end, cap;
	char bytes[];
};

struct io_tcp {
	uv_poll_t poll;
	struct io_loop *loop;
	const struct io_tcp_ops *ops;
	void *arg;
	struct io_soon broken_soon;
	struct io_chunk *head, *tail;
	size_t queued;
	uint64_t bytes_out;
	void (*freed)(void *arg);
	void *freed_arg;
	int fd;
	int mask;                /* what uv_poll watches now */
	bool blocked;            /* the kernel refused the queue; it says when to go on */
	bool connecting, reading, hup, want, ended, broken, closed;
};

struct io_listener {
	uv_poll_t poll;
	struct io_loop *loop;
	struct io_timer *rest;
	void (*on_accept)(void *arg, struct io_tcp *t, const struct io_addr *peer);
	void *arg;
	struct io_addr addr;
	int fd;
	bool closed;
};

static void on_poll(uv_poll_t *h, int status, int events);

static void watch(struct io_tcp *t)
{
	int mask = 0;
	if (t->closed || t->fd < 0)
		return;
	if (t->reading && !t->ended)
		mask |= UV_READABLE;
	if (t->hup && !t->ended)
		mask |= UV_DISCONNECT;
	if ((t->blocked || t->want || t->connecting) && !t->broken)
		mask |= UV_WRITABLE;
	if (mask == t->mask)
		return;
	t->mask = mask;
	must(uv_poll_start(&t->poll, mask, on_poll) == 0);    /* mask 0 stops */
}

/* ---- output chunks ----------------------------------------------------------------------------------------- */

static struct io_chunk *chunk_take(struct io_loop *l, size_t n)
{
	struct io_chunk *c = l->chunks;
	size_t cap = MAX(n, CHUNK_BYTES - sizeof(*c));
	if (c && cap <= CHUNK_BYTES - sizeof(*c)) {
		l->chunks = c->next;
		l->n_chunks--;
	} else {
		must(cap <= UINT32_MAX);
		c = must_malloc(sizeof(*c) + cap);
		c->cap = (uint32_t)cap;
	}
	c->next = NULL;
	c->at = c->end = 0;
	return c;
}

static void chunk_give(struct io_loop *l, struct io_chunk *c)
{
	if (c->cap != CHUNK_BYTES - sizeof(*c) || l->n_chunks >= CHUNKS_SPARE) {
		free(c);
		return;
	}
	c->next = l->chunks;
	l->chunks = c;
	l->n_chunks++;
}

void io_chunks_free(struct io_loop *l)
{
	while (l->chunks) {
		struct io_chunk *c = l->chunks;
		l->chunks = c->next;
		free(c);
	}
}

static void queue_drop(struct io_tcp *t)
{
	while (t->head) {
		struct io_chunk *c = t->head;
		t->head = c->next;
		chunk_give(t->loop, c);
	}
	t->tail = NULL;
	t->queued = 0;
}

static void queue_consume(struct io_tcp *t, size_t n)
{
	t->queued -= n;
	while (n > 0) {
		struct io_chunk *c = t->head;
		size_t left = c->end - c->at;
		if (n < left) {
			c->at += (uint32_t)n;
			return;
		}
		n -= left;
		t->head = c->next;
		chunk_give(t->loop, c);
	}
	if (!t->head)
		t->tail = NULL;
}

static void queue_add(struct io_tcp *t, struct str s)
{
	t->queued += s.n;
	while (s.n > 0) {
		if (!t->tail || t->tail->end == t->tail->cap) {
			struct io_chunk *c = chunk_take(t->loop, s.n);
			if (t->tail)
				t->tail->next = c;
			else
				t->head = c;
			t->tail = c;
		}
		size_t n = MIN(s.n, (size_t)(t->tail->cap - t->tail->end));
		memcpy(t->tail->bytes + t->tail->end, s.p, n);
		t->tail->end += (uint32_t)n;
		s = str_skip(s, n);
	}
}

/* ---- writing ----------------------------------------------------------------------------------------------- */

static void tell_broken(void *arg)
{
	struct io_tcp *t = arg;
	if (t->closed || t->ended)
		return;
	t->ended = true;
	watch(t);
	t->ops->on_end(t->arg, ERR_IO);
}

static void break_writes(struct io_tcp *t)
{
	t->broken = true;
	t->want = false;
	queue_drop(t);
	io_soon(t->loop, &t->broken_soon);
}

static size_t write_vecs(struct io_tcp *t, const struct iovec *v, size_t n)
{
	struct msghdr m = { .msg_iov = (struct iovec *)(uintptr_t)v, .msg_iovlen = n };
	ssize_t wrote;
	if (n == 0 || t->broken || t->closed)
		return 0;
	do
		wrote = sendmsg(t->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (wrote < 0 && errno == EINTR);
	if (wrote < 0) {
		if (errno != EAGAIN && errno != ENOBUFS)
			break_writes(t);
		return 0;
	}
	t->bytes_out += (size_t)wrote;
	return (size_t)wrote;
}

/* The queue and, behind it, one piece that was not copied; returns how much of the piece the kernel took. */
static size_t flush_with(struct io_tcp *t, struct str piece)
{
	for (;;) {
		struct iovec v[WRITE_VECS];
		size_t n = 0, asked = 0;
		struct io_chunk *c = t->head;
		for (; c && n < WRITE_VECS - 1; c = c->next, n++) {
			v[n] = (struct iovec){ c->bytes + c->at, c->end - c->at };
			asked += v[n].iov_len;
		}
		if (!c && piece.n > 0) {
			v[n++] = (struct iovec){ (void *)(uintptr_t)piece.p, piece.n };
			asked += piece.n;
		}
		size_t queued = t->queued, wrote = write_vecs(t, v, n);
		if (t->broken)
			return 0;
		queue_consume(t, MIN(wrote, queued));
		t->blocked = wrote < asked;
		if (wrote > queued || !c || wrote < asked)
			return wrote > queued ? wrote - queued : 0;
	}
}

void io_tcp_flush(struct io_tcp *t)
{
	if (t->head && !t->blocked && !t->connecting)
		flush_with(t, (struct str){ 0 });
	watch(t);
}

void io_tcp_put(struct io_tcp *t, struct str s)
{
	if (t->broken || t->closed || s.n == 0)
		return;
	if (s.n >= DIRECT_BYTES && !t->blocked && !t->connecting) {
		s = str_skip(s, flush_with(t, s));
		watch(t);
	}
	if (t->broken)
		return;
	queue_add(t, s);
	if (t->queued >= CORK_BYTES)
		io_tcp_flush(t);
}

size_t io_tcp_queued(const struct io_tcp *t) { return t->queued; }
bool io_tcp_broken(const struct io_tcp *t) { return t->broken; }
uint64_t io_tcp_bytes_out(const struct io_tcp *t) { return t->bytes_out; }

size_t io_tcp_try(struct io_tcp *t, const struct str *pieces, size_t n)
{
	size_t total = 0, i = 0;
	must(!t->head);
	while (i < n) {
		struct iovec v[WRITE_VECS];
		size_t nv = 0, asked = 0;
		for (; i < n && nv < WRITE_VECS; i++) {
			if (pieces[i].n == 0)
				continue;
			v[nv++] = (struct iovec){ (void *)(uintptr_t)pieces[i].p, pieces[i].n };
			asked += pieces[i].n;
		}
		size_t wrote = write_vecs(t, v, nv);
		total += wrote;
		if (wrote < asked)
			break;
	}
	return total;
}

void io_tcp_want(struct io_tcp *t)
{
	t->want = !t->broken;
	watch(t);
}

void io_tcp_shutdown(struct io_tcp *t)
{
	if (!t->closed)
		shutdown(t->fd, SHUT_WR);
}

/* ---- events ------------------------------------------------------------------------------------------------ */

static void end_reading(struct io_tcp *t, enum err why)
{
	if (t->ended)
		return;
	t->ended = true;
	watch(t);
	t->ops->on_end(t->arg, why);
}

/* `all`: the end is known to lie behind what can be read now, go there. */
static void read_some(struct io_tcp *t, bool all)
{
	for (int i = 0; (i < READS_PER_EVENT || all) && t->reading && !t->ended && !t->closed; i++) {
		ssize_t n = recv(t->fd, t->loop->read_buf, IO_READ_BYTES, 0);
		if (n > 0) {
			t->ops->on_read(t->arg, (struct str){ t->loop->read_buf, (size_t)n });
			if ((size_t)n < IO_READ_BYTES && !all)
				return;
		} else if (n == 0) {
			end_reading(t, ERR_EOF);
		} else if (errno == EAGAIN) {
			return;
		} else if (errno != EINTR) {
			end_reading(t, ERR_IO);
		}
	}
}

static void connected(struct io_tcp *t)
{
	int e = 0;
	socklen_t n = sizeof(e);
	if (getsockopt(t->fd, SOL_SOCKET, SO_ERROR, &e, &n) < 0)
		e = errno;
	t->connecting = false;
	t->broken = e != 0;
	watch(t);
	t->ops->on_connect(t->arg, e == 0 ? ERR_OK : ERR_CONNECT);
}

static void writable(struct io_tcp *t)
{
	t->want = t->blocked = false;
	io_tcp_flush(t);
	if (!t->broken && !t->closed)
		t->ops->on_writable(t->arg);
}

static void on_poll(uv_poll_t *h, int status, int events)
{
	struct io_tcp *t = container_of(h, struct io_tcp, poll);
	struct io_loop *l = t->loop;
	io_loop_enter(l);
	if (status < 0) {       /* POLLERR: uv has stopped watching */
		t->mask = 0;
		events = UV_READABLE | UV_DISCONNECT;
	}
	if (t->connecting) {
		connected(t);
	} else {
		if (events & UV_READABLE)
			read_some(t, (events & UV_DISCONNECT) != 0);
		if ((events & UV_DISCONNECT) && !t->closed && t->hup && !t->reading)
			end_reading(t, status < 0 ? ERR_IO : ERR_EOF);
		if ((events & UV_WRITABLE) && !t->closed)
			writable(t);
		if (status < 0)
			watch(t);
	}
	io_loop_leave(l);
}

/* Small writes leave at once, and a peer whose machine vanished is noticed within a minute. Accepted sockets inherit
 * this from their listener. */
static void set_options(int fd)
{
	static const struct { int level, name, value; } options[] = {
		{ IPPROTO_TCP, TCP_NODELAY, 1 }, { SOL_SOCKET, SO_KEEPALIVE, 1 }, { IPPROTO_TCP, TCP_KEEPIDLE, 30 },
		{ IPPROTO_TCP, TCP_KEEPINTVL, 10 }, { IPPROTO_TCP, TCP_KEEPCNT, 3 },
	};
	for (size_t i = 0; i < ARRAY_LEN(options); i++)
		(void)setsockopt(fd, options[i].level, options[i].name, &options[i].value, sizeof(options[i].value));
}

/* ---- life -------------------------------------------------------------------------------------------------- */

/* fd -1: there was none left; the stream lives only to say so. */
static struct io_tcp *tcp_new(struct io_loop *l, int fd)
{
	struct io_tcp *t = must_calloc(1, sizeof(*t));
	t->loop = l;
	t->fd = fd;
	io_soon_init(&t->broken_soon, tell_broken, t);
	if (fd < 0)
		return t;
	must(uv_poll_init(&l->uv, &t->poll, fd) == 0);
	return t;
}

static void connect_failed(void *arg)
{
	struct io_tcp *t = arg;
	io_soon_init(&t->broken_soon, tell_broken, t);
	t->connecting = false;
	t->broken = true;
	t->ops->on_connect(t->arg, ERR_CONNECT);
}

struct io_tcp *io_tcp_connect(struct io_loop *l, const struct io_addr *a, const struct io_tcp_ops *ops, void *arg)
{
	const struct sockaddr *sa = (const struct sockaddr *)(const void *)a->raw;
	int fd = socket(a->len ? sa->sa_family : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	bool failed = fd < 0 || a->len == 0;
	struct io_tcp *t = tcp_new(l, fd);
	io_tcp_set_ops(t, ops, arg);
	t->connecting = true;
	if (fd >= 0)
		set_options(fd);
	if (!failed && connect(fd, sa, a->len) < 0 && errno != EINPROGRESS)
		failed = true;
	if (failed) {
		io_soon_init(&t->broken_soon, connect_failed, t);
		io_soon(l, &t->broken_soon);
	} else {
		watch(t);
	}
	return t;
}

void io_tcp_set_ops(struct io_tcp *t, const struct io_tcp_ops *ops, void *arg)
{
	t->ops = ops;
	t->arg = arg;
}

void io_tcp_read(struct io_tcp *t, bool on)
{
	t->reading = on;
	watch(t);
}

void io_tcp_watch_hup(struct io_tcp *t, bool on)
{
	t->hup = on;
	watch(t);
}

bool io_tcp_is_quiet(struct io_tcp *t)
{
	char c;
	return !t->ended && !t->broken && recv(t->fd, &c, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

static void tcp_free(void *arg)
{
	struct io_tcp *t = arg;
	if (t->freed)
		t->freed(t->freed_arg);
	free(t);
}

static void on_closed(uv_handle_t *h) { tcp_free(container_of(h, struct io_tcp, poll)); }

void io_tcp_close(struct io_tcp *t, void (*freed)(void *arg), void *arg)
{
	must(!t->closed);
	t->closed = true;
	t->freed = freed;
	t->freed_arg = arg;
	io_soon_cancel(&t->broken_soon);
	queue_drop(t);
	if (t->fd < 0) {
		io_soon_init(&t->broken_soon, tcp_free, t);
		io_soon(t->loop, &t->broken_soon);
		return;
	}
	uv_close((uv_handle_t *)&t->poll, on_closed);
	close(t->fd);
}

void io_tcp_reset(struct io_tcp *t, void (*freed)(void *arg), void *arg)
{
	struct linger hard = { .l_onoff = 1, .l_linger = 0 };
	setsockopt(t->fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
	io_tcp_close(t, freed, arg);
}

/* ---- listeners --------------------------------------------------------------------------------------------- */

static void on_acceptable(uv_poll_t *h, int status, int events);

static void listener_wake(void *arg)
{
	struct io_listener *s = arg;
	must(uv_poll_start(&s->poll, UV_READABLE, on_acceptable) == 0);
}

/* False when there is no more to accept now. */
static bool accept_one(struct io_listener *s)
{
	struct io_addr peer = { 0 };
	socklen_t len = sizeof(peer.raw);
	int fd = accept4(s->fd, (struct sockaddr *)(void *)peer.raw, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd < 0) {
		if (errno == EINTR || errno == ECONNABORTED)
			return true;
		if (errno != EAGAIN) {
			uv_poll_stop(&s->poll);
			io_timer_after(s->rest, ACCEPT_REST_US);
		}
		return false;
	}
	peer.len = (uint8_t)len;
	s->on_accept(s->arg, tcp_new(s->loop, fd), &peer);
	return true;
}

static void on_acceptable(uv_poll_t *h, int status, int events)
{
	struct io_listener *s = container_of(h, struct io_listener, poll);
	(void)status;
	(void)events;
	io_loop_enter(s->loop);
	struct io_loop *l = s->loop;
	for (int i = 0; i < ACCEPTS_PER_EVENT && !s->closed && accept_one(s); i++)
		;
	io_loop_leave(l);
}

static int bind_socket(const struct io_addr *a, bool reuse_port)
{
	const struct sockaddr *sa = (const struct sockaddr *)(const void *)a->raw;
	int on = 1, off = 0;
	if (a->len == 0)
		return -1;
	int fd = socket(sa->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (reuse_port)
		setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));
	set_options(fd);
	if (sa->sa_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	if (bind(fd, sa, a->len) < 0 || listen(fd, BACKLOG) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

enum err io_listen(struct io_loop *l, const struct io_addr *addr, bool reuse_port,
                   void (*on_accept)(void *arg, struct io_tcp *t, const struct io_addr *peer), void *arg,
                   struct io_listener **ret_listener)
{
	int fd = bind_socket(addr, reuse_port);
	if (fd < 0)
		return ERR_IO;
	struct io_listener *s = must_calloc(1, sizeof(*s));
	socklen_t len = sizeof(s->addr.raw);
	must(getsockname(fd, (struct sockaddr *)(void *)s->addr.raw, &len) == 0);
	s->addr.len = (uint8_t)len;
	s->loop = l;
	s->fd = fd;
	s->on_accept = on_accept;
	s->arg = arg;
	s->rest = io_timer_new(l, listener_wake, s);
	must(uv_poll_init(&l->uv, &s->poll, fd) == 0);
	listener_wake(s);
	*ret_listener = s;
	return ERR_OK;
}

void io_listener_user_timeout(struct io_listener *s, int64_t us)
{
	unsigned ms = (unsigned)MIN(us / 1000, (int64_t)INT32_MAX);
	(void)setsockopt(s->fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof(ms));
}

struct io_addr io_listener_addr(const struct io_listener *s) { return s->addr; }

static void on_listener_closed(uv_handle_t *h) { free(container_of(h, struct io_listener, poll)); }

void io_listener_close(struct io_listener *s)
{
	if (!s)
		return;
	s->closed = true;
	io_timer_free(s->rest);
	uv_close((uv_handle_t *)&s->poll, on_listener_closed);
	close(s->fd);
}
