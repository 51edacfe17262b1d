/* Subscribers: SUB for live batches with a monitor on its connection, DEALER for replays. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/must.h"
#include "io/zmq_priv.h"

#define MESSAGES_PER_ROUND 256
#define REPLAY_SILENCE_US ((int64_t)2 * 1000000)
#define MONITORED (ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_DISCONNECTED)

/* ---- the hub's thread: receiving --------------------------------------------------------------------------- */

static bool more_follows(zmq_msg_t *m) { return zmq_msg_more(m) != 0; }

/* One whole message; NULL when there is none. Frames beyond the limit are read and dropped. */
static struct io_zevent *receive(void *socket, enum io_zevent_kind kind)
{
	struct io_zevent *e = NULL;
	bool more = true;
	for (int flags = ZMQ_DONTWAIT; more; flags = 0) {
		zmq_msg_t m;
		must(zmq_msg_init(&m) == 0);
		if (zmq_msg_recv(&m, socket, flags) < 0) {
			must(errno == EAGAIN || errno == EINTR);
			zmq_msg_close(&m);
			if (!e)
				return NULL;
			continue;
		}
		if (!e)
			e = io_zevent_new(kind, IO_ZFRAMES_MAX);
		more = more_follows(&m);
		e->bytes += zmq_msg_size(&m);
		if (e->n < IO_ZFRAMES_MAX) {
			must(zmq_msg_init(&e->frames[e->n]) == 0);
			must(zmq_msg_move(&e->frames[e->n++], &m) == 0);
		}
		zmq_msg_close(&m);
	}
	return e;
}

static void receive_live(struct io_zsub *s)
{
	for (int i = 0; i < MESSAGES_PER_ROUND; i++) {
		struct io_zevent *e = receive(s->sub, IO_ZEV_FRAMES);
		if (!e)
			return;
		io_zhub_event(s, e);
	}
}

static void end_replay(struct io_zsub *s, enum err why)
{
	struct io_zevent *e = io_zevent_new(IO_ZEV_REPLAY_END, 0);
	e->err = why;
	s->asked = false;
	io_zhub_event(s, e);
}

static void open_dealer(struct io_zsub *s)
{
	s->dealer = io_zsocket(s->hub, ZMQ_DEALER);
	if (s->dealer)
		must(zmq_connect(s->dealer, s->replay_endpoint) == 0);    /* it was connected once before: the text is good */
}

static void receive_replayed(struct io_zsub *s)
{
	for (int i = 0; i < MESSAGES_PER_ROUND && s->asked; i++) {
		struct io_zevent *e = receive(s->dealer, IO_ZEV_REPLAYED);
		if (!e)
			return;
		s->deadline = mono_add_us(io_clock(), REPLAY_SILENCE_US);
		bool end = e->n < 3 || zmq_msg_size(&e->frames[e->n - 1]) == 0;
		if (!end) {
			io_zhub_event(s, e);
			continue;
		}
		enum err why = e->n < 3 ? ERR_AGAIN : ERR_OK;
		for (size_t f = 0; f < e->n; f++)
			zmq_msg_close(&e->frames[f]);
		free(e);
		end_replay(s, why);
	}
}

/* Monitor messages: [event 16 bits, value 32 bits], [address]. */
static void receive_monitor(struct io_zsub *s)
{
	for (;;) {
		struct io_zevent *e = receive(s->monitor, IO_ZEV_LOST);
		uint16_t event = 0;
		if (!e)
			return;
		if (zmq_msg_size(&e->frames[0]) >= sizeof(event))
			memcpy(&event, zmq_msg_data(&e->frames[0]), sizeof(event));
		if (event == ZMQ_EVENT_HANDSHAKE_SUCCEEDED)
			e->kind = IO_ZEV_CONNECTED;
		io_zhub_event(s, e);
	}
}

size_t io_zsub_items(struct io_zsub *s, zmq_pollitem_t out[3], bool full)
{
	short in = full ? 0 : ZMQ_POLLIN;
	size_t n = 0;
	out[n++] = (zmq_pollitem_t){ .socket = s->monitor, .events = ZMQ_POLLIN };
	out[n++] = (zmq_pollitem_t){ .socket = s->sub, .events = in };
	if (s->asked)
		out[n++] = (zmq_pollitem_t){ .socket = s->dealer, .events = in };
	return n;
}

bool io_zsub_ready(struct io_zsub *s, const zmq_pollitem_t *items)
{
	bool replaying = s->asked, live = items[1].revents & ZMQ_POLLIN;
	if (items[0].revents & ZMQ_POLLIN)
		receive_monitor(s);
	if (live)
		receive_live(s);
	if (replaying && (items[2].revents & ZMQ_POLLIN))
		receive_replayed(s);
	return live;
}

/* A silent replay ends; its socket goes too, or a late answer would look like the next one's. */
void io_zsub_tick(struct io_zsub *s, struct mono now)
{
	if (!s->asked || mono_before(now, s->deadline))
		return;
	if (io_zhub_is_full(s->hub)) {    /* it is us who do not read */
		s->deadline = mono_add_us(now, REPLAY_SILENCE_US);
		return;
	}
	zmq_close(s->dealer);
	open_dealer(s);
	end_replay(s, ERR_AGAIN);
}

void io_zsub_ask(struct io_zsub *s, uint64_t start_seq)
{
	unsigned char seq[8];
	for (int i = 0; i < 8; i++)
		seq[i] = (unsigned char)(start_seq >> (56 - 8 * i));
	s->asked = true;
	s->deadline = mono_add_us(io_clock(), REPLAY_SILENCE_US);
	if (!s->dealer)
		open_dealer(s);
	if (zmq_send(s->dealer, "", 0, ZMQ_SNDMORE | ZMQ_DONTWAIT) < 0 || zmq_send(s->dealer, seq, sizeof(seq), ZMQ_DONTWAIT) < 0)
		end_replay(s, ERR_AGAIN);
}

void io_zsub_close_sockets(struct io_zsub *s)
{
	list_del(&s->node);
	(void)zmq_socket_monitor(s->sub, NULL, 0);
	zmq_close(s->monitor);                 /* NULL, where there was no descriptor for it, is an error code */
	zmq_close(s->sub);
	zmq_close(s->dealer);
}

/* ---- the loop's thread ------------------------------------------------------------------------------------- */

static void deliver_frames(struct io_zsub *s, struct io_zevent *e, bool replay)
{
	struct str frames[IO_ZFRAMES_MAX];
	for (size_t i = 0; i < e->n; i++)
		frames[i] = str_from(zmq_msg_data(&e->frames[i]), zmq_msg_size(&e->frames[i]));
	s->ops.on_frames(s->arg, frames, e->n, replay);
}

static void deliver_connected(struct io_zsub *s)
{
	bool again = s->was_connected;
	s->connected = s->was_connected = true;
	s->ops.on_connected(s->arg, again);
}

void io_zsub_deliver(struct io_zsub *s, struct io_zevent *e)
{
	if (e->kind == IO_ZEV_FREED) {
		io_zsub_free(s);
		return;
	}
	if (s->closed)
		return;
	switch (e->kind) {
	case IO_ZEV_FRAMES:
	case IO_ZEV_REPLAYED:
		deliver_frames(s, e, e->kind == IO_ZEV_REPLAYED);
		break;
	case IO_ZEV_REPLAY_END:
		s->replaying = false;
		s->ops.on_replay_end(s->arg, e->err);
		break;
	case IO_ZEV_CONNECTED:
		deliver_connected(s);
		break;
	case IO_ZEV_LOST:
		if (s->connected) {    /* a handshake that failed is no loss */
			s->connected = false;
			s->ops.on_lost(s->arg);
		}
		break;
	case IO_ZEV_FREED:
		break;
	}
}

void io_zsub_free(struct io_zsub *s)
{
	free(s->replay_endpoint);
	free(s);
}

static enum err open_sockets(struct io_zsub *s, const char *endpoint)
{
	char name[48];
	/* A number, not the address: a closed socket keeps its name a while after its memory was given away. */
	snprintf(name, sizeof(name), "inproc://monitor-%llu", (unsigned long long)s->hub->n_monitors++);
	s->sub = io_zsocket(s->hub, ZMQ_SUB);
	s->monitor = io_zsocket(s->hub, ZMQ_PAIR);
	if (s->replay_endpoint)
		s->dealer = io_zsocket(s->hub, ZMQ_DEALER);
	if (!s->sub || !s->monitor || (s->replay_endpoint && !s->dealer) || zmq_socket_monitor(s->sub, name, MONITORED) < 0)
		return ERR_IO;
	must(zmq_setsockopt(s->sub, ZMQ_SUBSCRIBE, "", 0) == 0);
	must(zmq_connect(s->monitor, name) == 0);
	if (zmq_connect(s->sub, endpoint) < 0 || (s->dealer && zmq_connect(s->dealer, s->replay_endpoint) < 0))
		return ERR_SYNTAX;
	return ERR_OK;
}

enum err io_zsub_open(struct io_zhub *h, const char *endpoint, const char *replay, const struct io_zsub_ops *ops, void *arg,
                      struct io_zsub **ret_sub)
{
	struct io_zsub *s = must_calloc(1, sizeof(*s));
	s->hub = h;
	s->ops = *ops;
	s->arg = arg;
	s->replay_endpoint = replay ? str_dup(str_of(replay)) : NULL;
	list_init(&s->node);
	enum err e = open_sockets(s, endpoint);
	if (e != ERR_OK) {
		io_zsub_close_sockets(s);
		io_zsub_free(s);
		return e;
	}
	io_zhub_command(h, io_zcmd_new(IO_ZCMD_ADD_SUB, s, NULL, (struct str){ 0 }));
	*ret_sub = s;
	return ERR_OK;
}

enum err io_zsub_replay(struct io_zsub *s, uint64_t start_seq)
{
	if (!s->replay_endpoint)
		return ERR_UNSUPPORTED;
	if (s->replaying)
		return ERR_DUPLICATE;
	s->replaying = true;
	struct io_zcmd *c = io_zcmd_new(IO_ZCMD_REPLAY, s, NULL, (struct str){ 0 });
	c->seq = start_seq;
	io_zhub_command(s->hub, c);
	return ERR_OK;
}

void io_zsub_close(struct io_zsub *s)
{
	if (!s || s->closed)
		return;
	s->closed = true;
	io_zhub_command(s->hub, io_zcmd_new(IO_ZCMD_CLOSE_SUB, s, NULL, (struct str){ 0 }));
}
