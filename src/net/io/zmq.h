/* io/zmq.h: ZeroMQ sockets for KV events, all owned by one thread of their own (the hub); the loop sees only calls.
 * Subscriber side (the gateway): one SUB + one DEALER (replay) per worker rank. Publisher side (the simulator):
 * one PUB + one ROUTER that answers replays from its own ring buffer as vLLM does.
 * Wire facts: design data facts vllm-wire.md 1.2 and 1.6 and vllm-observed.md I.2, II.1. No interpretation here: frames in, frames out. */
#ifndef IO_ZMQ_H
#define IO_ZMQ_H

#include "io/loop.h"

struct io_zhub;
struct io_zhub *io_zhub_new(struct io_loop *l);
void io_zhub_free(struct io_zhub *h);      /* closes every socket, joins the thread */

/* frames[0..n): slices valid during the call, as they came: live [topic, seq, payload], replay ["", topic, seq, payload] or,
 * from older workers, ["", seq, payload]. Read them from the end. Frames beyond eight are dropped. */
struct io_zsub_ops {
	void (*on_frames)(void *arg, const struct str *frames, size_t n, bool from_replay);
	void (*on_replay_end)(void *arg, enum err e);   /* OK: end marker came; AGAIN: timed out (2 s without a frame); always once per io_zsub_replay */
	void (*on_connected)(void *arg, bool again);    /* the SUB socket (re)connected: again = not the first time */
	void (*on_lost)(void *arg);                     /* the SUB socket lost its peer */
};
struct io_zsub;
/* Endpoints: "tcp://host:port" (IPv6 in brackets); replay may be NULL. Limits: message 64 MiB, RCVHWM 100000. */
/* SYNTAX: an endpoint that ZeroMQ cannot read. IO: no descriptor is left for its sockets; may be tried again. */
must_use enum err io_zsub_open(struct io_zhub *h, const char *endpoint, const char *replay, const struct io_zsub_ops *ops, void *arg, struct io_zsub **ret_sub);
/* UNSUPPORTED without a replay endpoint. Asks for batches from start_seq on (["", start 8 bytes BE]); one at a time: a second call while one runs returns ERR_DUPLICATE. */
must_use enum err io_zsub_replay(struct io_zsub *s, uint64_t start_seq);
void io_zsub_close(struct io_zsub *s);    /* no callback after this returns */

struct io_zpub;
struct io_zpub_opts {
	const char *pub_endpoint, *replay_endpoint;   /* bound; replay may be NULL */
	const char *topic;                            /* "" by default */
	unsigned buffer_steps;                        /* batches kept for replay, 10000 */
	bool replay_has_topic;                        /* vLLM >= 0.26 framing (4 frames) or older (3) */
	const char **ret_unbound;                     /* on IO: which of the endpoints; may be NULL */
};
/* IO: an endpoint cannot be bound, or no descriptor is left. "tcp://127.0.0.1:*" takes a free port; io_zpub_endpoint() tells which ("" without replay). */
must_use enum err io_zpub_open(struct io_zhub *h, const struct io_zpub_opts *o, struct io_zpub **ret_pub);
const char *io_zpub_endpoint(const struct io_zpub *p, bool replay);
/* Publishes one batch: frames topic, seq (8 bytes BE), payload. `skip_live`: keep it for replay only (a lost message). */
void io_zpub_send(struct io_zpub *p, uint64_t seq, struct str payload, bool skip_live);
void io_zpub_reset(struct io_zpub *p);    /* forget the buffer (a restarted worker) */
void io_zpub_mute_replay(struct io_zpub *p, bool mute);   /* fault: replay requests are not answered */
void io_zpub_close(struct io_zpub *p);

#endif
