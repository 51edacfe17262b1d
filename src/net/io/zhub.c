/* The hub: one thread that owns every ZeroMQ socket, because ZMQ_FD on an event loop loses wake-ups (it is
 * edge-triggered, and shared by both directions) and because decoding must not hold up requests. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/must.h"
#include "io/fds.h"
#include "io/zmq_priv.h"

#define WAITING_MAX_N 8192
#define WAITING_MAX_BYTES ((size_t)128 * 1024 * 1024)
#define DELIVER_US 500          /* then other callbacks of the loop have a turn */
#define DELIVER_CHECK 16
#define SOCKETS_MAX 16384
#define REPLAY_TICK_MS 50
#define GATHER_US 1000          /* what workers send within it costs one round of the hub and one turn of the loop */

/* ---- between the threads ----------------------------------------------------------------------------------- */

static void wake(struct io_zhub *h)
{
	uint64_t one = 1;
	ssize_t n = write(h->wake_fd, &one, sizeof(one));
	must(n == (ssize_t)sizeof(one) || errno == EAGAIN);
}

struct io_zcmd *io_zcmd_new(enum io_zcmd_kind kind, struct io_zsub *s, struct io_zpub *p, struct str payload)
{
	struct io_zcmd *c = must_malloc(sizeof(*c) + payload.n);
	*c = (struct io_zcmd){ .kind = kind, .sub = s, .pub = p, .n = payload.n };
	if (payload.n > 0)
		memcpy(c->payload, payload.p, payload.n);
	return c;
}

void io_zhub_command(struct io_zhub *h, struct io_zcmd *c)
{
	must(pthread_mutex_lock(&h->lock) == 0);
	bool first = list_empty(&h->cmds);
	list_add_tail(&h->cmds, &c->node);
	must(pthread_mutex_unlock(&h->lock) == 0);
	if (first)
		wake(h);
}

struct io_zevent *io_zevent_new(enum io_zevent_kind kind, size_t n_frames)
{
	struct io_zevent *e = must_malloc(sizeof(*e) + n_frames * sizeof(e->frames[0]));
	*e = (struct io_zevent){ .kind = kind };
	return e;
}

static void event_free(struct io_zevent *e)
{
	for (size_t i = 0; i < e->n; i++)
		zmq_msg_close(&e->frames[i]);
	free(e);
}

static void deliver(void *hub);

void io_zhub_event(struct io_zsub *s, struct io_zevent *e)
{
	struct io_zhub *h = s->hub;
	e->sub = s;
	must(pthread_mutex_lock(&h->lock) == 0);
	list_add_tail(&h->events, &e->node);
	h->waiting_n++;
	h->waiting_bytes += e->bytes;
	bool post = !h->posted;
	h->posted = true;
	must(pthread_mutex_unlock(&h->lock) == 0);
	if (post)
		io_post(h->loop, deliver, h);
}

bool io_zhub_is_full(struct io_zhub *h)
{
	must(pthread_mutex_lock(&h->lock) == 0);
	bool full = h->waiting_n >= WAITING_MAX_N || h->waiting_bytes >= WAITING_MAX_BYTES;
	h->throttled |= full;
	must(pthread_mutex_unlock(&h->lock) == 0);
	return full;
}

/* ---- the loop's side --------------------------------------------------------------------------------------- */

static struct io_zevent *event_take(struct io_zhub *h)
{
	struct io_zevent *e = NULL;
	must(pthread_mutex_lock(&h->lock) == 0);
	if (list_empty(&h->events)) {
		h->posted = false;
	} else {
		e = container_of(h->events.next, struct io_zevent, node);
		list_del(&e->node);
		h->waiting_n--;
		h->waiting_bytes -= e->bytes;
	}
	bool room = h->throttled && h->waiting_n < WAITING_MAX_N / 2 && h->waiting_bytes < WAITING_MAX_BYTES / 2;
	if (room)
		h->throttled = false;
	must(pthread_mutex_unlock(&h->lock) == 0);
	if (room)
		wake(h);
	return e;
}

static void hub_free(struct io_zhub *h)
{
	struct io_zevent *e;
	while ((e = event_take(h))) {
		if (e->kind == IO_ZEV_FREED)
			io_zsub_free(e->sub);
		event_free(e);
	}
	must(zmq_ctx_term(h->ctx) == 0);
	pthread_mutex_destroy(&h->lock);
	VEC_FREE(&h->items);
	close(h->wake_fd);
	free(h);
}

static void deliver(void *arg)
{
	struct io_zhub *h = arg;
	struct mono start = io_clock();
	struct io_zevent *e = NULL;
	for (unsigned i = 0; !h->free_me; i++) {
		if (i % DELIVER_CHECK == DELIVER_CHECK - 1 && mono_diff_us(io_clock(), start) > DELIVER_US) {
			io_post(h->loop, deliver, h);    /* `posted` stays true: this is the one call on its way */
			break;
		}
		if (!(e = event_take(h)))
			break;
		io_zsub_deliver(e->sub, e);
		event_free(e);
	}
}

/* ---- the hub's thread -------------------------------------------------------------------------------------- */

static void run_command(struct io_zhub *h, struct io_zcmd *c)
{
	switch (c->kind) {
	case IO_ZCMD_ADD_SUB:
		list_add_tail(&h->subs, &c->sub->node);
		break;
	case IO_ZCMD_REPLAY:
		io_zsub_ask(c->sub, c->seq);
		break;
	case IO_ZCMD_CLOSE_SUB:
		io_zsub_close_sockets(c->sub);
		io_zhub_event(c->sub, io_zevent_new(IO_ZEV_FREED, 0));
		break;
	case IO_ZCMD_ADD_PUB:
		list_add_tail(&h->pubs, &c->pub->node);
		break;
	case IO_ZCMD_SEND:
		io_zpub_publish(c->pub, c);
		break;
	case IO_ZCMD_RESET:
		io_zpub_forget(c->pub);
		break;
	case IO_ZCMD_MUTE:
		c->pub->mute = c->flag;
		break;
	case IO_ZCMD_CLOSE_PUB:
		io_zpub_destroy(c->pub);
		break;
	case IO_ZCMD_QUIT:
		h->quit = true;
		break;
	}
}

static void run_commands(struct io_zhub *h)
{
	uint64_t count;
	struct list batch;
	if (read(h->wake_fd, &count, sizeof(count)) < 0)
		must(errno == EAGAIN || errno == EINTR);
	must(pthread_mutex_lock(&h->lock) == 0);
	list_init(&batch);
	if (!list_empty(&h->cmds)) {
		list_add_tail(&h->cmds, &batch);
		list_del(&h->cmds);
	}
	must(pthread_mutex_unlock(&h->lock) == 0);
	LIST_FOR_SAFE(&batch, it) {
		struct io_zcmd *c = container_of(it, struct io_zcmd, node);
		run_command(h, c);
		free(c);
	}
}

/* The poll set is made anew each time: a few sockets a worker, and most rounds carry many messages. */
static long gather_items(struct io_zhub *h)
{
	long wait_ms = -1;
	bool full = io_zhub_is_full(h);
	h->items.n = 0;
	VEC_PUSH(&h->items, (zmq_pollitem_t){ .fd = h->wake_fd, .events = ZMQ_POLLIN });
	LIST_FOR(&h->subs, it) {
		struct io_zsub *s = container_of(it, struct io_zsub, node);
		zmq_pollitem_t three[3];
		s->item = h->items.n;
		size_t n = io_zsub_items(s, three, full);
		for (size_t i = 0; i < n; i++)
			VEC_PUSH(&h->items, three[i]);
		if (s->asked)
			wait_ms = REPLAY_TICK_MS;
	}
	LIST_FOR(&h->pubs, it) {
		struct io_zpub *p = container_of(it, struct io_zpub, node);
		p->item = h->items.n;
		if (p->router)
			VEC_PUSH(&h->items, (zmq_pollitem_t){ .socket = p->router, .events = ZMQ_POLLIN });
	}
	return wait_ms;
}

/* True when a worker had sent something. */
static bool serve_items(struct io_zhub *h)
{
	struct mono now = io_clock();
	bool received = false;
	LIST_FOR(&h->subs, it) {
		struct io_zsub *s = container_of(it, struct io_zsub, node);
		received |= io_zsub_ready(s, h->items.p + s->item);
		io_zsub_tick(s, now);
	}
	LIST_FOR(&h->pubs, it) {
		struct io_zpub *p = container_of(it, struct io_zpub, node);
		if (p->router && (h->items.p[p->item].revents & ZMQ_POLLIN))
			io_zpub_answer(p);
	}
	return received;
}

static void hub_main(void *arg)
{
	struct io_zhub *h = arg;
	while (!h->quit) {
		long wait_ms = gather_items(h);
		bool received = false;
		if (zmq_poll(h->items.p, (int)h->items.n, wait_ms) < 0)
			must(errno == EINTR);
		else
			received = serve_items(h);
		run_commands(h);    /* last: it changes the lists */
		if (received)
			(void)usleep(GATHER_US);
	}
	while (!list_empty(&h->subs)) {
		struct io_zsub *s = container_of(h->subs.next, struct io_zsub, node);
		io_zsub_close_sockets(s);
		io_zsub_free(s);
	}
	while (!list_empty(&h->pubs))
		io_zpub_destroy(container_of(h->pubs.next, struct io_zpub, node));
}

/* ---- life -------------------------------------------------------------------------------------------------- */

/* libzmq starts its threads with its first socket and aborts when there are no descriptors for them: now, not when clients hold all. */
static void start_library(void *ctx)
{
	void *first = zmq_socket(ctx, ZMQ_PAIR);
	must(first != NULL);
	zmq_close(first);
}

struct io_zhub *io_zhub_new(struct io_loop *l)
{
	struct io_zhub *h = must_calloc(1, sizeof(*h));
	(void)io_fds_raise();
	h->loop = l;
	h->ctx = zmq_ctx_new();
	must(h->ctx != NULL);
	must(zmq_ctx_set(h->ctx, ZMQ_MAX_SOCKETS, SOCKETS_MAX) == 0);
	start_library(h->ctx);
	h->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	must(h->wake_fd >= 0);
	must(pthread_mutex_init(&h->lock, NULL) == 0);
	list_init(&h->cmds);
	list_init(&h->events);
	list_init(&h->subs);
	list_init(&h->pubs);
	h->thread = io_thread_start(hub_main, h);
	return h;
}

static void free_posted(void *arg) { hub_free(arg); }

void io_zhub_free(struct io_zhub *h)
{
	if (!h)
		return;
	io_zhub_command(h, io_zcmd_new(IO_ZCMD_QUIT, NULL, NULL, (struct str){ 0 }));
	io_thread_join(h->thread);
	h->free_me = true;
	/* A deliver() may be on its way in the loop's mailbox, or on the stack: the mailbox keeps order, so free behind it. */
	io_post(h->loop, free_posted, h);
}

void *io_zsocket(struct io_zhub *h, int type)
{
	static const struct { int option, value; } ints[] = {
		{ ZMQ_LINGER, 0 }, { ZMQ_IPV6, 1 }, { ZMQ_RCVHWM, IO_ZHWM }, { ZMQ_SNDHWM, IO_ZHWM },
		{ ZMQ_RECONNECT_IVL, 100 }, { ZMQ_RECONNECT_IVL_MAX, 2000 },
		{ ZMQ_HEARTBEAT_IVL, 5000 }, { ZMQ_HEARTBEAT_TIMEOUT, 15000 }, { ZMQ_HANDSHAKE_IVL, 5000 },
	};
	int64_t max = IO_ZMSG_MAX;
	void *s = zmq_socket(h->ctx, type);
	if (!s)
		return NULL;
	for (size_t i = 0; i < ARRAY_LEN(ints); i++)
		must(zmq_setsockopt(s, ints[i].option, &ints[i].value, sizeof(int)) == 0);
	must(zmq_setsockopt(s, ZMQ_MAXMSGSIZE, &max, sizeof(max)) == 0);
	return s;
}
