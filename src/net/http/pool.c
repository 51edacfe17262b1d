/* Upstream sockets: connecting, waiting idle, being found again, timing out. What they carry is client.c's. */
#include <stdlib.h>

#include "base/hash.h"
#include "base/must.h"
#include "http/client_priv.h"

#define WARM_US 1000

struct http_pool_opts http_pool_defaults(void)
{
	return (struct http_pool_opts){
		.connect_timeout_us = (int64_t)5 * 1000000,
		.idle_max_us = 1500000,
		.retry_window_us = 50000,
		.max_idle_per_addr = 256,
		.max_header_bytes = (size_t)64 * 1024,
		.high_bytes = (size_t)1024 * 1024,
		.low_bytes = (size_t)256 * 1024,
	};
}

struct http_pool *http_pool_new(struct io_loop *l, const struct http_pool_opts *o)
{
	struct http_pool *p = must_calloc(1, sizeof(*p));
	p->loop = l;
	p->opts = *o;
	map_init(&p->peers);
	list_init(&p->calls);
	return p;
}

struct io_loop *http_pool_loop(const struct http_pool *p) { return p->loop; }

/* ---- peers ------------------------------------------------------------------------------------------------- */

static bool addr_eq(const struct io_addr *a, const struct io_addr *b)
{
	return str_eq(str_from(a->raw, a->len), str_from(b->raw, b->len));
}

static struct http_peer *peer_find(struct http_pool *p, const struct io_addr *a, uint64_t *ret_free_key)
{
	uint64_t key = hash_bytes(a->raw, a->len, 0);
	struct http_peer *peer = map_get_ptr(&p->peers, key);
	while (peer && !addr_eq(&peer->addr, a))    /* another address with this hash */
		peer = map_get_ptr(&p->peers, ++key);
	*ret_free_key = key;
	return peer;
}

static struct http_peer *peer_get(struct http_pool *p, const struct io_addr *a)
{
	uint64_t key;
	struct http_peer *peer = peer_find(p, a, &key);
	if (peer)
		return peer;
	peer = must_calloc(1, sizeof(*peer));
	peer->addr = *a;
	peer->key = key;
	list_init(&peer->idle);
	map_put_ptr(&p->peers, key, peer);
	return peer;
}

static void peer_drop(struct http_pool *p, struct http_peer *peer)
{
	if (peer->n_socks > 0)
		return;
	map_del(&p->peers, peer->key);
	free(peer);
}

/* ---- sockets ----------------------------------------------------------------------------------------------- */

static struct mono deadline(const struct http_sock *s)
{
	if (!s->connected)
		return mono_add_us(s->since, s->pool->opts.connect_timeout_us);
	if (!s->call)
		return mono_add_us(s->since, s->pool->opts.idle_max_us);
	return http_call_deadline(s->call);
}

void http_sock_arm(struct http_sock *s)
{
	struct mono when = deadline(s);
	if (when.us == INT64_MAX)
		io_timer_stop(s->timer);
	else
		io_timer_at(s->timer, when);
}

static void on_timer(void *arg)
{
	struct http_sock *s = arg;
	if (mono_before(io_now(s->pool->loop), deadline(s)))
		http_sock_arm(s);
	else if (!s->call)
		http_sock_close(s);
	else if (!s->connected)
		http_call_connected(s->call, ERR_CONNECT);
	else
		http_call_timed_out(s->call);
}

static void on_connect(void *arg, enum err e)
{
	struct http_sock *s = arg;
	s->connected = e == ERR_OK;
	if (s->connected)
		io_tcp_read(s->tcp, !s->call->paused);
	http_call_connected(s->call, e);
}

/* An idle socket that speaks is not ours to trust. */
static void on_read(void *arg, struct str data)
{
	struct http_sock *s = arg;
	if (s->call)
		http_call_read(s->call, data);
	else
		http_sock_close(s);
}

static void on_end(void *arg, enum err why)
{
	struct http_sock *s = arg;
	if (s->call)
		http_call_peer_closed(s->call, why);
	else
		http_sock_close(s);
}

static void on_writable(void *arg)
{
	struct http_sock *s = arg;
	if (s->call)
		http_call_writable(s->call);
}

static const struct io_tcp_ops tcp_ops = { on_connect, on_read, on_end, on_writable };

struct http_sock *http_sock_connect(struct http_pool *p, const struct io_addr *a)
{
	struct http_sock *s = must_calloc(1, sizeof(*s));
	struct http1_limits limits = { (uint32_t)p->opts.max_header_bytes, 1024 };
	list_init(&s->node);
	s->pool = p;
	s->peer = peer_get(p, a);
	s->peer->n_socks++;
	s->since = io_now(p->loop);
	s->timer = io_timer_new(p->loop, on_timer, s);
	http1_init(&s->parser, HTTP1_RESPONSE, limits, &http_call_parser_ops, s);
	p->stats.connects++;
	p->stats.open++;
	s->tcp = io_tcp_connect(p->loop, a, &tcp_ops, s);
	http_sock_arm(s);
	return s;
}

static void leave_idle(struct http_sock *s)
{
	list_del(&s->node);
	s->peer->n_idle--;
	s->pool->stats.idle--;
}

void http_sock_close(struct http_sock *s)
{
	struct http_pool *p = s->pool;
	must(!s->dead);
	s->dead = true;
	if (!list_empty(&s->node))
		leave_idle(s);
	p->stats.open--;
	s->peer->n_socks--;
	peer_drop(p, s->peer);
	io_timer_free(s->timer);
	io_tcp_close(s->tcp, free, s);
}

void http_sock_release(struct http_sock *s)
{
	struct http_peer *peer = s->peer;
	s->call = NULL;
	s->since = io_now(s->pool->loop);
	list_add_head(&peer->idle, &s->node);
	peer->n_idle++;
	s->pool->stats.idle++;
	io_tcp_read(s->tcp, true);
	http_sock_arm(s);
	if (peer->n_idle > s->pool->opts.max_idle_per_addr)
		http_sock_close(container_of(peer->idle.prev, struct http_sock, node));
}

/* Used a moment ago: whatever its server wants to say about that is not here yet, and the retry covers the rest. Under
 * load this saves one system call of seven. */
static bool is_usable(const struct http_sock *s, struct mono now)
{
	int64_t idle_us = mono_diff_us(now, s->since);
	return idle_us < s->pool->opts.idle_max_us && (idle_us < WARM_US || io_tcp_is_quiet(s->tcp));
}

struct http_sock *http_sock_idle(struct http_pool *p, const struct io_addr *a)
{
	uint64_t key;
	struct mono now = io_now(p->loop);
	struct http_peer *peer = peer_find(p, a, &key);
	size_t n = peer ? peer->n_idle : 0;
	while (n-- > 0) {    /* the last close may free the peer: count, do not look */
		struct http_sock *s = container_of(peer->idle.next, struct http_sock, node);
		if (is_usable(s, now)) {
			leave_idle(s);
			s->reused = true;
			p->stats.reuses++;
			return s;
		}
		http_sock_close(s);
	}
	return NULL;
}

/* ---- the pool ---------------------------------------------------------------------------------------------- */

void http_pool_forget(struct http_pool *p, const struct io_addr *a)
{
	uint64_t key;
	struct http_peer *peer = peer_find(p, a, &key);
	for (size_t n = peer ? peer->n_idle : 0; n > 0; n--)
		http_sock_close(container_of(peer->idle.next, struct http_sock, node));
}

struct http_pool_stats http_pool_stats(const struct http_pool *p) { return p->stats; }

static void close_idle(struct http_pool *p)
{
	while (p->peers.n > 0) {
		struct http_peer *peer = (struct http_peer *)(uintptr_t)p->peers.slots[map_first(&p->peers)].value;
		must(peer->n_idle > 0);    /* no call is left, so every socket is idle */
		http_pool_forget(p, &peer->addr);
	}
}

void http_pool_free(struct http_pool *p)
{
	if (!p)
		return;
	LIST_FOR_SAFE(&p->calls, it) {
		struct http_call *c = container_of(it, struct http_call, node);
		if (c->ended) {
			list_del(it);
			c->pool = NULL;
		}
	}
	while (!list_empty(&p->calls)) {
		struct http_call *c = container_of(p->calls.next, struct http_call, node);
		const struct http_call_ops *ops = c->ops;
		void *arg = c->arg;
		http_call_abort(c);
		ops->on_fail(arg, ERR_CLIENT_GONE);
	}
	close_idle(p);
	while (p->spare) {
		struct http_call *c = p->spare;
		p->spare = c->next;
		http_call_free(c);
	}
	map_done(&p->peers);
	free(p);
}
