/* http/client_priv.h: the insides of the client, shared by client.c (calls) and pool.c (sockets and their pool). */
#ifndef HTTP_CLIENT_PRIV_H
#define HTTP_CLIENT_PRIV_H

#include "base/buf.h"
#include "base/list.h"
#include "base/map.h"
#include "base/vec.h"
#include "http/client.h"
#include "io/tcp.h"
#include "wire/http1.h"

/* The sockets to one address. */
struct http_peer {
	struct list idle;          /* newest first */
	size_t n_idle, n_socks;
	uint64_t key;
	struct io_addr addr;
};

struct http_sock {
	struct list node;          /* in peer->idle, or alone */
	struct http_pool *pool;
	struct http_peer *peer;
	struct io_tcp *tcp;
	struct io_timer *timer;
	struct http1 parser;
	struct http_call *call;    /* NULL: idle */
	struct mono since;         /* connect begun, or idle since */
	bool connected, reused, dead;
};

struct http_call {
	struct list node;          /* in pool->calls */
	struct http_pool *pool;    /* NULL: freed while the call had its last word */
	struct http_sock *sock;
	const struct http_call_ops *ops;
	void *arg;
	struct io_addr addr;
	int64_t first_byte_timeout_us, stall_timeout_us;
	struct buf text;           /* start line and fields */
	VEC(struct str) out;       /* text, then the body's pieces */
	size_t out_at, out_off;    /* sent so far */
	uint64_t out_bytes;
	struct http1_head *head;
	struct io_soon soon;
	struct mono wrote;         /* first byte of this try handed to the kernel */
	struct mono progress;      /* last byte written or, from the head on, read */
	enum err doomed;           /* fails as soon as it may */
	bool is_head, sent, tell_connected, tell_sent, got_byte, head_told, retried, paused, ended;
	struct http_call *next;    /* spare list */
};

struct http_pool {
	struct io_loop *loop;
	struct http_pool_opts opts;
	struct map peers;          /* by hash of the address */
	struct list calls;
	struct http_call *spare;
	unsigned n_spare;
	struct http_pool_stats stats;
};

/* pool.c */
struct http_sock *http_sock_idle(struct http_pool *p, const struct io_addr *a);   /* a quiet one to use again, or NULL */
struct http_sock *http_sock_connect(struct http_pool *p, const struct io_addr *a);
void http_sock_release(struct http_sock *s);    /* back to the pool */
void http_sock_close(struct http_sock *s);
void http_sock_arm(struct http_sock *s);

void http_call_free(struct http_call *c);

/* client.c: what happened to the call of a socket */
struct mono http_call_deadline(const struct http_call *c);
void http_call_timed_out(struct http_call *c);
void http_call_connected(struct http_call *c, enum err e);
void http_call_writable(struct http_call *c);
void http_call_read(struct http_call *c, struct str data);
void http_call_peer_closed(struct http_call *c, enum err why);
extern const struct http1_ops http_call_parser_ops;   /* arg: the socket */

#endif
