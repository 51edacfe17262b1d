/* test/unit/http/kit.h: a loop, a scripted server handler and small helpers for the tests of net/http. */
#ifndef KIT_H
#define KIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/buf.h"
#include "http/client.h"
#include "http/server.h"

struct io_loop *kit_loop(void);                       /* the one of the running test */
int kit_setup(void **state);
int kit_teardown(void **state);
/* Runs the loop until *flag is true; fails the test after two seconds. */
void kit_until(const bool *flag);
void kit_until_n(const int *counter, int n);
void kit_run_us(int64_t us);
struct io_addr kit_local(uint16_t port);

/* What a client call saw. */
struct kit_answer {
	int status, heads, connected, reused, sent, retries;
	struct buf body;
	char header[256];      /* value of the header named by want_header */
	const char *want_header;
	bool over;
	enum err err;
	int pieces;
	struct http_call *call;
	void (*then)(struct kit_answer *a);    /* in on_end or on_fail */
	void (*on_piece)(struct kit_answer *a);
};
extern const struct http_call_ops kit_call_ops;
void kit_answer_done(struct kit_answer *a);
struct http_call *kit_get(struct http_pool *p, struct io_addr to, const char *target, struct kit_answer *a);

/* A raw TCP peer on a thread-free, blocking socket: the loop is run while it waits. */
int kit_raw_connect(struct io_addr to);
void kit_raw_send(int fd, const char *p, size_t n);
/* Reads until the peer closed, or `until` was seen, or 2 s; returns a heap string. */
char *kit_raw_read(int fd, const char *until);
bool kit_raw_closed(int fd, int64_t within_us);       /* did the peer close (FIN or RST)? */
int kit_raw_listen(struct io_addr *ret_addr);
int kit_raw_accept(int fd);

#endif
