/* http/server_priv.h: the insides of the server, shared by server.c (listeners, timeouts), conn.c (requests in) and
 * reply.c (replies out). */
#ifndef HTTP_SERVER_PRIV_H
#define HTTP_SERVER_PRIV_H

#include "base/buf.h"
#include "base/list.h"
#include "http/server.h"
#include "io/tcp.h"
#include "wire/http1.h"

/* A request and the head its slices point into; taken for a request, given back after it. */
struct http_slot {
	struct http_req req;
	struct http1_head *head;
	struct http_slot *next;
};

enum http_in {
	HTTP_IN_HEAD,      /* between requests, or reading a head */
	HTTP_IN_BODY,
	HTTP_IN_ENDED,     /* the request is whole; what comes now is held for later */
	HTTP_IN_LINGER,    /* we are done with this client: read and drop until it closes */
};
enum http_out {
	HTTP_OUT_NONE,
	HTTP_OUT_OPEN,
	HTTP_OUT_ENDED,    /* the handler is done; flushing */
};

struct http_conn {
	struct list node;
	struct http_server *server;
	struct io_tcp *tcp;
	struct io_timer *timer;
	struct io_soon pump;
	struct http1 parser;
	struct http_slot *slot;        /* NULL between requests */
	struct buf held;               /* pipelined bytes, at most 128 KiB */
	struct io_addr peer;
	struct mono since;             /* start of what the timer waits for now, see http_conn_arm() */
	struct mono progress;          /* the client took bytes last */
	int64_t reply_left;            /* of a declared length; HTTP1_CHUNKED, HTTP1_UNTIL_EOF */
	uint64_t linger_bytes;
	enum http_in in;
	enum http_out out;
	bool announced;                /* the handler knows the request in `slot` */
	bool bodyless;                 /* the reply has no body on the wire: HEAD, 204, 304 */
	bool stuffed;                  /* enough is held: the socket is left unread */
	bool close_after, cut, paused, continued, above_high, refused, dead;
};

struct http_server {
	struct io_loop *loop;
	struct io_listener *listener;
	struct io_addr addr;
	struct http_server_opts opts;
	struct http_server_ops ops;
	void *arg;
	struct list conns;
	struct http_slot *slots;
	unsigned n_slots;
	struct http_server_stats stats;
	bool stopping;
	struct mono date_until;
	char date[48];
};

/* server.c */
struct http_slot *http_slot_take(struct http_server *s);
void http_slot_give(struct http_server *s, struct http_slot *slot);
void http_slot_free(struct http_slot *slot);
struct str http_server_date(struct http_server *s);

/* conn.c */
void http_conn_new(struct http_server *s, struct io_tcp *t, const struct io_addr *peer);
void http_conn_gone(struct http_conn *c, enum err why);    /* on_gone when there is a request; closes */
void http_conn_close(struct http_conn *c, bool reset);     /* no callback */
void http_conn_arm(struct http_conn *c);
void http_conn_next(struct http_conn *c);                  /* after a reply: the next request, or the end */
void http_conn_refuse(struct http_conn *c, int status, enum err why);   /* answers an error itself, then closes */

/* reply.c */
void http_reply_put(struct http_conn *c, struct str bytes);
void http_reply_pump(void *conn);
void http_reply_head(struct http_conn *c, int status, struct str type, struct http_headers h, int64_t content_length);

#endif
