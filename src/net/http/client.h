/* http/client.h: our upstream HTTP/1.1 client: keep-alive pool per address, one call at a time per socket.
 *
 * Reuse: only sockets idle < idle_max_us (1.5 s: vLLM's server closes at 5 s) with nothing to read (asked after 1 ms); a reused socket that
 * fails within retry_window_us (50 ms) of the write with no response byte is retried once on a fresh one, inside here
 * (on_retry tells). Nothing else is retried here. Pool is LIFO.
 * Life: http_call_start -> (on_connected) -> (on_sent) -> on_head -> on_body* -> on_end | on_fail at any time, exactly once.
 * After on_retry, on_connected and on_sent come again. A request that cannot be written (a line end in the target) fails
 * with SYNTAX. The body's memory is needed until the call is dead or on_head.
 * 1xx heads are swallowed. After on_end/on_fail/abort the pointer is dead. No callback runs inside http_call_start.
 * Owner: the loop's thread. */
#ifndef HTTP_CLIENT_H
#define HTTP_CLIENT_H

#include "base/err.h"
#include "http/header.h"
#include "io/addr.h"

struct http_pool;
struct http_call;

struct http_pool_opts {
	int64_t connect_timeout_us;    /* 5 s */
	int64_t idle_max_us;           /* 1.5 s */
	int64_t retry_window_us;       /* 50 ms */
	size_t max_idle_per_addr;      /* 256 */
	size_t max_header_bytes;       /* 64 KiB */
	size_t high_bytes, low_bytes;  /* not used for reading; write marks for request bodies: 1 MiB, 256 KiB */
};
struct http_pool_opts http_pool_defaults(void);
struct http_pool *http_pool_new(struct io_loop *l, const struct http_pool_opts *o);
struct io_loop *http_pool_loop(const struct http_pool *p);
void http_pool_free(struct http_pool *p);                      /* running calls fail with ERR_CLIENT_GONE first */
void http_pool_forget(struct http_pool *p, const struct io_addr *a);   /* close idle sockets to a (the worker went down) */
struct http_pool_stats { uint64_t connects, reuses, retries, open, idle; } http_pool_stats(const struct http_pool *p);

struct http_call_ops {
	void (*on_connected)(void *arg, bool reused);             /* may be NULL */
	void (*on_sent)(void *arg);                               /* the whole request was handed to the kernel; may be NULL */
	void (*on_head)(void *arg, int status, struct http_headers h);   /* slices valid until the call ends */
	void (*on_body)(void *arg, struct str piece);             /* decoded from chunking; as it came, one call per read at most a few */
	void (*on_end)(void *arg);
	/* CONNECT (nothing was sent), UPSTREAM_EARLY_CLOSE (sent something, no response byte), UPSTREAM_MIDSTREAM (died after a
	 * response byte), UPSTREAM_PROTOCOL, TIMEOUT_FIRST_BYTE, TIMEOUT_STALL. */
	void (*on_fail)(void *arg, enum err why);
	void (*on_retry)(void *arg);                              /* the reused socket was dead: again on a fresh one; may be NULL */
};

struct http_call_opts {
	struct io_addr addr;
	struct str method, target, host;      /* host: value of the Host header */
	struct http_headers headers;          /* sent as given; Host and Content-Length are added here; copied during start */
	const struct str *body;               /* pieces, sent in order; NOT copied: must stay until the call is dead or on_head */
	size_t n_body;
	int64_t first_byte_timeout_us;        /* from request sent to the whole head of the answer; 0 = none */
	int64_t stall_timeout_us;             /* between two response reads after the head; 0 = none */
	bool fresh;                           /* never reuse a socket */
};
struct http_call *http_call_start(struct http_pool *p, const struct http_call_opts *o, const struct http_call_ops *ops, void *arg);
void http_call_abort(struct http_call *c);      /* closes the socket at once; no callback follows */
void http_call_pause(struct http_call *c);      /* stop reading the response (client is slow) */
void http_call_resume(struct http_call *c);

/* Small control requests: whole answer in memory, bounded. fn runs exactly once unless aborted, never inside the call.
 * e == OK: any status came back. Owned body slice is valid during fn. */
struct http_fetch;
struct http_fetch_opts {
	struct io_addr addr;
	struct str method, target, host;
	struct http_headers headers;
	struct str body;                      /* copied */
	size_t max_bytes;                     /* of the answer */
	int64_t timeout_us;                   /* all in all */
};
typedef void http_fetch_fn(void *arg, enum err e, int status, struct http_headers h, struct str body);
struct http_fetch *http_fetch_start(struct http_pool *p, const struct http_fetch_opts *o, http_fetch_fn *fn, void *arg);
void http_fetch_abort(struct http_fetch *f);

#endif
