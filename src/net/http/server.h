/* http/server.h: HTTP/1.1 server side: listener -> connections -> one request at a time per connection.
 *
 * Life of a request: on_request (header whole and checked) -> on_body* -> on_body_end -> the handler replies
 * (begin, write*, end; may start before the body ended) -> on_done. If the client leaves (EOF, half-close included, reset)
 * before the reply was flushed: on_gone, at any time after on_request, exactly once, instead of on_done. After on_done
 * or on_gone the pointer is dead. Reading stays on while a reply is pending so that a leaving client is seen at once;
 * pipelined requests are served in order, however many: with 64 KiB of the next ones held the socket is left unread
 * until they are served.
 *
 * Strictness: llhttp without lenient flags; missing or duplicate Host, HTTP/2.0 lines, both Content-Length and
 * Transfer-Encoding, header count/size over the limit: answered 400/431 (see on_refuse) and closed, never reach the handler.
 * Expect: 100-continue: sent by http_req_continue() or implicitly when the handler first returns from on_request without
 * having replied. HEAD: the reply's body bytes are counted but not sent. HTTP/1.0: close-delimited replies.
 *
 * Owner: the loop's thread. Slices of http_req live until on_done/on_gone; pieces only during the call. */
#ifndef HTTP_SERVER_H
#define HTTP_SERVER_H

#include "base/err.h"
#include "http/header.h"
#include "io/addr.h"

struct http_server;
struct http_conn;

struct http_req {
	struct str method, target, path, query;   /* path: before '?', as sent (not decoded) */
	struct http_headers headers;
	struct str host;
	int64_t content_length;                   /* -1: chunked; 0: no body */
	bool keep_alive;
	struct io_addr peer;
	struct mono started;                      /* first byte of the request line seen */
	void *user;                               /* the handler's own */
	struct http_conn *conn;                   /* private to net/http */
};

/* An error that the server answers by itself. */
struct http_refusal {
	int status;                               /* 400, 408, 431, 501, 505 */
	enum err why;
	struct http_req *req;                     /* NULL: its head never was whole; else on_gone follows */
	struct io_addr peer;
	struct mono started;                      /* first byte seen */
	struct http_conn *conn;                   /* private to net/http */
};

struct http_server_ops {
	void (*on_request)(void *arg, struct http_req *r);
	void (*on_body)(struct http_req *r, struct str piece);
	void (*on_body_end)(struct http_req *r);
	void (*on_drain)(struct http_req *r);             /* the reply's write queue fell below low_bytes after having been above high_bytes */
	void (*on_gone)(struct http_req *r, enum err why); /* CLIENT_GONE, TIMEOUT_CLIENT, SYNTAX (malformed body), BODY_TOO_LARGE never comes from here */
	void (*on_done)(struct http_req *r);
	/* May give the answer its fields and its JSON body by http_refuse(); must not free the server. May be NULL. */
	void (*on_refuse)(void *arg, const struct http_refusal *x);
};

struct http_server_opts {
	size_t max_header_bytes;      /* 32 KiB */
	size_t max_headers;           /* 128 */
	int64_t header_timeout_us;    /* first byte to end of header, 10 s (slow loris) */
	int64_t body_timeout_us;      /* between two body pieces, 30 s */
	int64_t idle_timeout_us;      /* keep-alive idle, 75 s */
	int64_t write_timeout_us;     /* a client that takes no byte for so long is gone, 60 s */
	size_t high_bytes, low_bytes; /* write queue marks: 128 KiB, 32 KiB */
	size_t max_conns;             /* 0 = none */
	bool reuse_port;
};
struct http_server_opts http_server_defaults(void);

/* Port 0 binds a free port; http_server_addr() tells. ERR_IO when the address cannot be bound. */
must_use enum err http_server_new(struct io_loop *l, const struct io_addr *bind, const struct http_server_opts *o,
                                  const struct http_server_ops *ops, void *arg, struct http_server **ret_server);
struct io_addr http_server_addr(const struct http_server *s);
void http_server_stop_listening(struct http_server *s);   /* running requests go on; keep-alive ends with each reply; idle connections are closed */
void http_server_free(struct http_server *s);             /* closes every connection now; running requests get on_gone */
struct http_server_stats { uint64_t accepted, refused, requests, open_conns, open_reqs, bytes_in, bytes_out, queued_bytes; } http_server_stats(const struct http_server *s);

/* Reply. content_length -1 = chunked. Date and Connection are added here; other headers as given. */
void http_reply_begin(struct http_req *r, int status, struct http_headers h, int64_t content_length);
size_t http_reply_write(struct http_req *r, struct str piece);   /* copies what the socket does not take; returns the queued bytes */
void http_reply_end(struct http_req *r);                         /* on_done follows when flushed (never inside this call) */
void http_reply_abort(struct http_req *r);                       /* closes without the last chunk; on_gone does not follow; r is dead */
/* Flushes what is queued, then closes without the last chunk (an error event has been written); on_done follows. */
void http_reply_cut(struct http_req *r);
void http_reply(struct http_req *r, int status, struct http_headers extra, struct str content_type, struct str body);   /* begin + write + end */
void http_refuse(const struct http_refusal *x, struct http_headers extra, struct str body);   /* only inside on_refuse, at most once */
void http_reply_close(struct http_req *r);                       /* adds Connection: close to this reply; call before begin */
bool http_reply_begun(const struct http_req *r);
/* Back-pressure on the request's body. */
void http_req_pause(struct http_req *r);
void http_req_resume(struct http_req *r);
void http_req_continue(struct http_req *r);
const char *http_status_text(int status);

#endif
