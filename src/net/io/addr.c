/* Addresses, and names through getaddrinfo on the thread pool with a small cache. A name with both families gives its
 * IPv4 address: inference servers bind 0.0.0.0 by default, and "localhost" as ::1 would meet a closed port. */
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/must.h"
#include "io/addr.h"
#include "io/loop_priv.h"

#define NAME_FRESH_US ((int64_t)5 * 1000000)
#define NAME_FAILED_US ((int64_t)1 * 1000000)
#define NAMES_MAX 4096

_Static_assert(sizeof(struct sockaddr_in6) <= sizeof(((struct io_addr *)0)->raw), "an address fits");

typedef void resolved_fn(void *arg, enum err e, struct io_addr a);

struct waiter {
	resolved_fn *fn;
	void *arg;
	uint16_t port;
};

/* A name that was asked for. Looking up: running. Waiters are served from `soon` or from the lookup's end. */
struct name {
	struct io_loop *loop;
	struct io_soon soon;
	uv_getaddrinfo_t req;
	char *host;
	VEC(struct waiter) waiters;
	struct io_addr addr;
	enum err err;
	struct mono until;    /* the answer holds so long */
	bool running;
};

static struct sockaddr *sa_of(struct io_addr *a) { return (struct sockaddr *)(void *)a->raw; }
static const struct sockaddr_in *in_of(const struct io_addr *a) { return (const struct sockaddr_in *)(const void *)a->raw; }
static const struct sockaddr_in6 *in6_of(const struct io_addr *a) { return (const struct sockaddr_in6 *)(const void *)a->raw; }
static bool is_v6(const struct io_addr *a) { return in_of(a)->sin_family == AF_INET6; }

enum err io_addr_of_host(struct str host, uint16_t port, struct io_addr *ret_addr)
{
	char text[INET6_ADDRSTRLEN + 1];
	struct io_addr a = { 0 };
	if (host.n == 0 || host.n >= sizeof(text) || memchr(host.p, 0, host.n))
		return ERR_SYNTAX;
	memcpy(text, host.p, host.n);
	text[host.n] = 0;
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	if (inet_pton(AF_INET, text, &v4.sin_addr) == 1) {
		memcpy(a.raw, &v4, sizeof(v4));
		a.len = sizeof(v4);
	} else if (inet_pton(AF_INET6, text, &v6.sin6_addr) == 1) {
		memcpy(a.raw, &v6, sizeof(v6));
		a.len = sizeof(v6);
	} else {
		return ERR_SYNTAX;
	}
	*ret_addr = a;
	return ERR_OK;
}

enum err io_addr_parse(struct str s, struct io_addr *ret_addr)
{
	struct str host, rest;
	uint64_t port;
	if (s.n > 0 && s.p[0] == '[') {
		if (!str_cut(str_skip(s, 1), ']', &host, &rest) || rest.n == 0 || rest.p[0] != ':' ||
		    str_find(host, STR(":")) == SIZE_MAX)
			return ERR_SYNTAX;
		rest = str_skip(rest, 1);
	} else if (!str_cut(s, ':', &host, &rest)) {
		return ERR_SYNTAX;
	}
	if (!str_to_u64(rest, &port) || port > UINT16_MAX)
		return ERR_SYNTAX;
	return io_addr_of_host(host, (uint16_t)port, ret_addr);
}

uint16_t io_addr_port(const struct io_addr *a)
{
	if (a->len == 0)
		return 0;
	return ntohs(is_v6(a) ? in6_of(a)->sin6_port : in_of(a)->sin_port);
}

static void set_port(struct io_addr *a, uint16_t port)
{
	if (is_v6(a))
		((struct sockaddr_in6 *)(void *)a->raw)->sin6_port = htons(port);
	else
		((struct sockaddr_in *)(void *)a->raw)->sin_port = htons(port);
}

struct str io_addr_print(const struct io_addr *a, char out[64])
{
	char host[INET6_ADDRSTRLEN] = "";
	int n;
	if (a->len == 0)
		return STR("-");
	if (is_v6(a)) {
		inet_ntop(AF_INET6, &in6_of(a)->sin6_addr, host, sizeof(host));
		n = snprintf(out, 64, "[%s]:%u", host, io_addr_port(a));
	} else {
		inet_ntop(AF_INET, &in_of(a)->sin_addr, host, sizeof(host));
		n = snprintf(out, 64, "%s:%u", host, io_addr_port(a));
	}
	return (struct str){ out, (size_t)n };
}

bool io_addr_is_loopback(const struct io_addr *a)
{
	if (a->len == 0)
		return false;
	if (!is_v6(a))
		return (ntohl(in_of(a)->sin_addr.s_addr) >> 24) == 127;
	const struct in6_addr *v6 = &in6_of(a)->sin6_addr;
	return IN6_IS_ADDR_LOOPBACK(v6) || (IN6_IS_ADDR_V4MAPPED(v6) && v6->s6_addr[12] == 127);
}

/* ---- names ------------------------------------------------------------------------------------------------- */

static void serve_waiters(void *arg)
{
	struct name *n = arg;
	while (n->waiters.n > 0) {
		struct waiter w = n->waiters.p[0];
		memmove(n->waiters.p, n->waiters.p + 1, --n->waiters.n * sizeof(w));
		struct io_addr a = n->addr;
		if (n->err == ERR_OK)
			set_port(&a, w.port);
		w.fn(w.arg, n->err, a);
	}
}

static bool pick_addr(const struct addrinfo *list, struct io_addr *ret_addr)
{
	const struct addrinfo *best = NULL;
	for (const struct addrinfo *ai = list; ai; ai = ai->ai_next) {
		if (ai->ai_family == AF_INET || (ai->ai_family == AF_INET6 && !best))
			best = ai;
		if (ai->ai_family == AF_INET)
			break;
	}
	if (!best || best->ai_addrlen > sizeof(ret_addr->raw))
		return false;
	*ret_addr = (struct io_addr){ .len = (uint8_t)best->ai_addrlen };
	memcpy(sa_of(ret_addr), best->ai_addr, best->ai_addrlen);
	return true;
}

static void on_lookup(uv_getaddrinfo_t *req, int status, struct addrinfo *list)
{
	struct name *n = req->data;
	io_loop_enter(n->loop);
	n->running = false;
	n->err = status == 0 && pick_addr(list, &n->addr) ? ERR_OK : ERR_CONNECT;
	n->until = mono_add_us(io_now(n->loop), n->err == ERR_OK ? NAME_FRESH_US : NAME_FAILED_US);
	uv_freeaddrinfo(list);
	serve_waiters(n);
	io_loop_leave(n->loop);
}

static void lookup(struct name *n)
{
	struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
	n->running = true;
	n->req.data = n;
	if (uv_getaddrinfo(&n->loop->uv, &n->req, on_lookup, n->host, NULL, &hints) != 0) {
		n->running = false;
		n->err = ERR_CONNECT;
		n->until = io_now(n->loop);
		io_soon(n->loop, &n->soon);
	}
}

static void name_free(struct name *n)
{
	io_soon_cancel(&n->soon);
	VEC_FREE(&n->waiters);
	free(n->host);
	free(n);
}

/* Drops names nobody waits for when there are too many: a hostile list must not grow the cache for ever. */
static void names_trim(struct io_loop *l)
{
	if (l->names.n < NAMES_MAX)
		return;
	VEC(uint64_t) dead = { 0 };
	for (size_t i = map_first(&l->names); i < l->names.cap; i = map_next(&l->names, i)) {
		struct name *n = (struct name *)(uintptr_t)l->names.slots[i].value;
		if (!n->running && n->waiters.n == 0)
			VEC_PUSH(&dead, l->names.slots[i].key);
	}
	for (size_t i = 0; i < dead.n; i++) {
		name_free(map_get_ptr(&l->names, dead.p[i]));
		map_del(&l->names, dead.p[i]);
	}
	VEC_FREE(&dead);
}

static struct name *name_of(struct io_loop *l, struct str host)
{
	uint64_t key = hash_str(host, 0);
	struct name *n = map_get_ptr(&l->names, key);
	while (n && !str_eq(str_of(n->host), host))    /* two names, one hash: probe the next key */
		n = map_get_ptr(&l->names, ++key);
	if (n)
		return n;
	names_trim(l);
	n = must_calloc(1, sizeof(*n));
	n->loop = l;
	n->host = str_dup(host);
	n->until = (struct mono){ INT64_MIN };
	io_soon_init(&n->soon, serve_waiters, n);
	map_put_ptr(&l->names, key, n);
	return n;
}

void io_resolve(struct io_loop *l, struct str host, uint16_t port, resolved_fn *fn, void *arg)
{
	struct name *n = name_of(l, host);
	bool literal = n->err == ERR_OK && n->addr.len == 0 && io_addr_of_host(host, port, &n->addr) == ERR_OK;
	if (literal)
		n->until = MONO_NEVER;
	VEC_PUSH(&n->waiters, (struct waiter){ fn, arg, port });
	if (n->running)
		return;
	if (host.n == 0 || host.n > NI_MAXHOST || memchr(host.p, 0, host.n)) {
		n->err = ERR_CONNECT;
		n->until = MONO_NEVER;
	}
	if (mono_before(io_now(l), n->until))
		io_soon(l, &n->soon);
	else
		lookup(n);
}

void io_names_free(struct io_loop *l)
{
	for (size_t i = map_first(&l->names); i < l->names.cap; i = map_next(&l->names, i))
		name_free((struct name *)(uintptr_t)l->names.slots[i].value);
	map_done(&l->names);
}
