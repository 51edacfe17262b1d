/* http/get.h: one GET over http or https, blocking, whole answer in memory: for downloads beside the traffic, on the thread pool
 * or in a program without a loop. TLS certificates are checked against the system's; proxies are those of the environment.
 * A redirect is an answer like any other: the caller decides whether it is followed, and what may go along. */
#ifndef HTTP_GET_H
#define HTTP_GET_H

#include <stdatomic.h>

#include "base/arena.h"
#include "base/buf.h"
#include "http/header.h"

struct http_get_opts {
	const char *url;                 /* http://… or https://… */
	struct str bearer;               /* for the Authorization header; "" = none. Visible ASCII, else SYNTAX */
	size_t max_bytes;                /* of the body; more: LIMIT */
	int64_t timeout_us, stall_us;    /* all in all; with less than about 1 KB/s. TIMEOUT_STALL */
	const atomic_bool *stop;         /* true ends it within about a second: CLIENT_GONE. NULL = none */
	void (*progress)(void *arg, size_t got_bytes, size_t all_bytes);   /* often; all 0 = not known. NULL = none */
	void *arg;
};
struct http_got {
	int status;
	struct http_headers headers;     /* in the arena */
	struct str location;             /* of a redirect: absolute, in the arena; "" = none */
	const char *why;                 /* on failure: in words, in the arena */
};
/* body: born by the caller, cleared here. CONNECT: nobody there. UPSTREAM_MIDSTREAM: it ended early. UPSTREAM_PROTOCOL: TLS, or not
 * HTTP. Any status is OK. *ret is set in each case. */
must_use enum err http_get(const struct http_get_opts *o, struct arena *a, struct buf *body, struct http_got *ret);

#endif
