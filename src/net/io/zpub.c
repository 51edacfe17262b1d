/* Publishers, for the simulator: PUB for live batches, ROUTER that answers replays from a ring, framed as vLLM does
 * before and since 0.26. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/must.h"
#include "io/fds.h"
#include "io/zmq_priv.h"

static const unsigned char end_seq[8] = { 255, 255, 255, 255, 255, 255, 255, 255 };

static void put_seq(uint64_t v, unsigned char out[8])
{
	for (int i = 0; i < 8; i++)
		out[i] = (unsigned char)(v >> (56 - 8 * i));
}

/* ---- the hub's thread -------------------------------------------------------------------------------------- */

static void ring_drop_oldest(struct io_zpub *p)
{
	free(p->ring[p->ring_at].payload);
	p->ring_at = (p->ring_at + 1) % p->ring_cap;
	p->ring_n--;
}

void io_zpub_forget(struct io_zpub *p)
{
	while (p->ring_n > 0)
		ring_drop_oldest(p);
}

static void ring_keep(struct io_zpub *p, uint64_t seq, const char *payload, size_t n)
{
	if (p->ring_cap == 0)
		return;
	if (p->ring_n == p->ring_cap)
		ring_drop_oldest(p);
	struct io_zbatch *b = &p->ring[(p->ring_at + p->ring_n++) % p->ring_cap];
	*b = (struct io_zbatch){ seq, n, must_malloc(MAX(n, (size_t)1)) };
	memcpy(b->payload, payload, n);
}

void io_zpub_publish(struct io_zpub *p, const struct io_zcmd *c)
{
	unsigned char seq[8];
	put_seq(c->seq, seq);
	if (!c->flag) {     /* PUB never blocks: what a slow subscriber has no room for is lost, as with a real worker */
		(void)zmq_send(p->pub, p->topic, strlen(p->topic), ZMQ_SNDMORE);
		(void)zmq_send(p->pub, seq, sizeof(seq), ZMQ_SNDMORE);
		(void)zmq_send(p->pub, c->payload, c->n, 0);
	}
	ring_keep(p, c->seq, c->payload, c->n);
}

static void send_reply(struct io_zpub *p, zmq_msg_t *id, const char *topic, const unsigned char seq[8], struct str payload)
{
	(void)zmq_send(p->router, zmq_msg_data(id), zmq_msg_size(id), ZMQ_SNDMORE);
	(void)zmq_send(p->router, "", 0, ZMQ_SNDMORE);
	if (p->replay_has_topic)
		(void)zmq_send(p->router, topic, strlen(topic), ZMQ_SNDMORE);
	(void)zmq_send(p->router, seq, 8, ZMQ_SNDMORE);
	(void)zmq_send(p->router, payload.p, payload.n, 0);
}

static void replay_from(struct io_zpub *p, zmq_msg_t *id, uint64_t start)
{
	for (size_t i = 0; i < p->ring_n; i++) {
		const struct io_zbatch *b = &p->ring[(p->ring_at + i) % p->ring_cap];
		unsigned char seq[8];
		if (b->seq < start)
			continue;
		put_seq(b->seq, seq);
		send_reply(p, id, p->topic, seq, (struct str){ b->payload, b->n });
	}
	send_reply(p, id, "", end_seq, STR(""));
}

/* A request is exactly [identity, "", start]; anything else gets no answer. */
static void answer_one(struct io_zpub *p, zmq_msg_t *frames, size_t n)
{
	if (p->mute || n != 3 || zmq_msg_size(&frames[1]) != 0 || zmq_msg_size(&frames[2]) != 8)
		return;
	const unsigned char *at = zmq_msg_data(&frames[2]);
	uint64_t start = 0;
	for (int i = 0; i < 8; i++)
		start = start << 8 | at[i];
	replay_from(p, &frames[0], start);
}

void io_zpub_answer(struct io_zpub *p)
{
	for (;;) {
		zmq_msg_t frames[IO_ZFRAMES_MAX];
		size_t n = 0, seen = 0;
		bool more = true;
		while (more) {
			zmq_msg_t m;
			must(zmq_msg_init(&m) == 0);
			if (zmq_msg_recv(&m, p->router, ZMQ_DONTWAIT) < 0) {
				must(errno == EAGAIN || errno == EINTR);
				zmq_msg_close(&m);
				return;     /* multipart messages are whole or absent, so nothing was read yet */
			}
			more = zmq_msg_more(&m) != 0;
			seen++;
			if (n < IO_ZFRAMES_MAX)
				frames[n++] = m;
			else
				zmq_msg_close(&m);
		}
		answer_one(p, frames, seen);
		for (size_t i = 0; i < n; i++)
			zmq_msg_close(&frames[i]);
	}
}

void io_zpub_destroy(struct io_zpub *p)
{
	list_del(&p->node);
	zmq_close(p->pub);
	if (p->router)
		zmq_close(p->router);
	io_zpub_forget(p);
	free(p->ring);
	free(p->topic);
	free(p);
}

/* ---- the loop's thread ------------------------------------------------------------------------------------- */

static bool bind_to(void *socket, const char *endpoint, char *out, size_t cap, const char **ret_unbound)
{
	bool bound = zmq_bind(socket, endpoint) == 0 && zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, out, &cap) == 0;
	if (!bound && ret_unbound)
		*ret_unbound = endpoint;
	return bound;
}

static bool bind_sockets(struct io_zpub *p, const struct io_zpub_opts *o)
{
	int unlimited = 0;
	p->pub = io_zsocket(p->hub, ZMQ_PUB);
	if (!bind_to(p->pub, o->pub_endpoint, p->endpoint, sizeof(p->endpoint), o->ret_unbound))
		return false;
	if (!o->replay_endpoint)
		return true;
	p->router = io_zsocket(p->hub, ZMQ_ROUTER);
	if (p->router)
		must(zmq_setsockopt(p->router, ZMQ_SNDHWM, &unlimited, sizeof(unlimited)) == 0);    /* the ring bounds a replay */
	return bind_to(p->router, o->replay_endpoint, p->replay_endpoint, sizeof(p->replay_endpoint), o->ret_unbound);
}

/* Two sockets and their listeners, what a look at the interfaces opens (zmq_bind aborts where it cannot), and some for other threads. */
enum { OPEN_FDS = 16 };

enum err io_zpub_open(struct io_zhub *h, const struct io_zpub_opts *o, struct io_zpub **ret_pub)
{
	if (!io_fds_spare(OPEN_FDS))
		return ERR_IO;
	struct io_zpub *p = must_calloc(1, sizeof(*p));
	p->hub = h;
	list_init(&p->node);
	p->topic = str_dup(str_of(o->topic ? o->topic : ""));
	p->replay_has_topic = o->replay_has_topic;
	p->ring_cap = o->buffer_steps;
	p->ring = must_calloc(MAX(p->ring_cap, (size_t)1), sizeof(*p->ring));
	if (!bind_sockets(p, o)) {
		io_zpub_destroy(p);
		return ERR_IO;
	}
	io_zhub_command(h, io_zcmd_new(IO_ZCMD_ADD_PUB, NULL, p, (struct str){ 0 }));
	*ret_pub = p;
	return ERR_OK;
}

const char *io_zpub_endpoint(const struct io_zpub *p, bool replay) { return replay ? p->replay_endpoint : p->endpoint; }

static void command(struct io_zpub *p, enum io_zcmd_kind kind, bool flag)
{
	struct io_zcmd *c = io_zcmd_new(kind, NULL, p, (struct str){ 0 });
	c->flag = flag;
	io_zhub_command(p->hub, c);
}

void io_zpub_send(struct io_zpub *p, uint64_t seq, struct str payload, bool skip_live)
{
	struct io_zcmd *c = io_zcmd_new(IO_ZCMD_SEND, NULL, p, payload);
	c->seq = seq;
	c->flag = skip_live;
	io_zhub_command(p->hub, c);
}

void io_zpub_reset(struct io_zpub *p) { command(p, IO_ZCMD_RESET, false); }
void io_zpub_mute_replay(struct io_zpub *p, bool mute) { command(p, IO_ZCMD_MUTE, mute); }

void io_zpub_close(struct io_zpub *p)
{
	if (p)
		command(p, IO_ZCMD_CLOSE_PUB, false);
}
