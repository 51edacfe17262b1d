/* io/tcp.h: TCP streams and listeners for net/http.
 *
 * A stream reads into the loop's one buffer (the reader consumes at once) and writes at once; what the kernel does not
 * take waits in a chain of chunks, which the caller watches by io_tcp_queued(). A peer that leaves is seen even while
 * reading is off, if io_tcp_watch_hup() says so (never call it where unread bytes before the FIN matter).
 * Thread: the loop's. No callback after io_tcp_close(); the struct itself is freed later by the loop. */
#ifndef IO_TCP_H
#define IO_TCP_H

#include "io/addr.h"

#define IO_READ_BYTES ((size_t)64 * 1024)   /* the loop's buffer: on_read never brings more at once */

struct io_tcp;
struct io_tcp_ops {
	void (*on_connect)(void *arg, enum err e);      /* outgoing streams, once: OK or CONNECT; may be NULL for accepted ones */
	void (*on_read)(void *arg, struct str data);
	void (*on_end)(void *arg, enum err why);        /* once: EOF (half-close included) or IO (reset, failed write) */
	void (*on_writable)(void *arg);                 /* the kernel took bytes of the queue, or what io_tcp_want() asked for */
};

/* on_connect follows, never from inside. */
struct io_tcp *io_tcp_connect(struct io_loop *l, const struct io_addr *a, const struct io_tcp_ops *ops, void *arg);
void io_tcp_set_ops(struct io_tcp *t, const struct io_tcp_ops *ops, void *arg);
void io_tcp_read(struct io_tcp *t, bool on);            /* off at first */
void io_tcp_watch_hup(struct io_tcp *t, bool on);       /* report the peer's FIN or RST while reading is off */
/* Nothing to read, not even an end? Asks the kernel: for idle sockets about to be used again. */
bool io_tcp_is_quiet(struct io_tcp *t);

void io_tcp_put(struct io_tcp *t, struct str bytes);    /* into the queue (copied); large ones try the kernel first */
void io_tcp_flush(struct io_tcp *t);                    /* hands the queue to the kernel as far as it takes it */
size_t io_tcp_queued(const struct io_tcp *t);
bool io_tcp_broken(const struct io_tcp *t);             /* a write failed; on_end follows */
/* Without copy: writes what the kernel takes of the pieces and returns how much that was (0 also when broken: on_end
 * follows). Not to be mixed with a queue that holds bytes. */
size_t io_tcp_try(struct io_tcp *t, const struct str *pieces, size_t n);
void io_tcp_want(struct io_tcp *t);                     /* on_writable once when the kernel takes bytes again */
void io_tcp_shutdown(struct io_tcp *t);                 /* FIN to the peer; call with an empty queue */
uint64_t io_tcp_bytes_out(const struct io_tcp *t);

/* Closes now and drops the queue. `freed(arg)` runs later, when nothing on the stack can know the stream any more. */
void io_tcp_close(struct io_tcp *t, void (*freed)(void *arg), void *arg);
void io_tcp_reset(struct io_tcp *t, void (*freed)(void *arg), void *arg);   /* the same with RST */

struct io_listener;
/* on_accept gets a stream without ops: io_tcp_set_ops() and io_tcp_read() at once, or close it. */
must_use enum err io_listen(struct io_loop *l, const struct io_addr *bind, bool reuse_port,
                            void (*on_accept)(void *arg, struct io_tcp *t, const struct io_addr *peer), void *arg,
                            struct io_listener **ret_listener);
/* The kernel ends accepted streams whose peer acknowledges, or has room for, nothing so long (bytes it already took). */
void io_listener_user_timeout(struct io_listener *s, int64_t us);
struct io_addr io_listener_addr(const struct io_listener *s);
void io_listener_close(struct io_listener *s);          /* NULL is fine */

#endif
