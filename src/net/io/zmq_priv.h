/* io/zmq_priv.h: the hub's insides.
 *
 * Sockets are made on the loop's thread (so that a bad endpoint is an error of the caller) and handed to the hub's
 * thread by a command; from then on only that thread touches them. Two queues under one lock connect the threads:
 * commands (loop to hub, woken by an eventfd) and events (hub to loop, woken by io_post). What the loop has not taken
 * yet is bounded: beyond it the hub stops receiving and ZeroMQ's own queues, then its drops, take over. */
#ifndef IO_ZMQ_PRIV_H
#define IO_ZMQ_PRIV_H

#include <pthread.h>

#include "base/list.h"
#include "base/vec.h"
#include "io/thread.h"
#include "io/zmq.h"

#include <zmq.h>    /* the library's; ours is named above with its room */

#define IO_ZFRAMES_MAX 8
#define IO_ZHWM 100000
#define IO_ZMSG_MAX ((int64_t)64 * 1024 * 1024)

enum io_zevent_kind { IO_ZEV_FRAMES, IO_ZEV_REPLAYED, IO_ZEV_REPLAY_END, IO_ZEV_CONNECTED, IO_ZEV_LOST, IO_ZEV_FREED };
struct io_zevent {
	struct list node;
	enum io_zevent_kind kind;
	struct io_zsub *sub;
	enum err err;              /* REPLAY_END */
	size_t n, bytes;
	zmq_msg_t frames[];
};

enum io_zcmd_kind { IO_ZCMD_ADD_SUB, IO_ZCMD_REPLAY, IO_ZCMD_CLOSE_SUB, IO_ZCMD_ADD_PUB, IO_ZCMD_SEND, IO_ZCMD_RESET, IO_ZCMD_MUTE, IO_ZCMD_CLOSE_PUB, IO_ZCMD_QUIT };
struct io_zcmd {
	struct list node;
	enum io_zcmd_kind kind;
	struct io_zsub *sub;
	struct io_zpub *pub;
	uint64_t seq;
	bool flag;                 /* SEND: not live; MUTE: on */
	size_t n;
	char payload[];            /* SEND */
};

struct io_zhub {
	struct io_loop *loop;
	struct io_thread *thread;
	void *ctx;
	int wake_fd;
	/* under the lock */
	pthread_mutex_t lock;
	struct list cmds, events;
	size_t waiting_n, waiting_bytes;   /* events the loop has not finished */
	bool throttled, posted;
	/* the hub's thread only */
	struct list subs, pubs;
	VEC(zmq_pollitem_t) items;
	bool quit;
	/* the loop's thread only */
	bool free_me;
	uint64_t n_monitors;
};

struct io_zsub {
	struct io_zhub *hub;
	struct io_zsub_ops ops;
	void *arg;
	/* the loop's thread */
	bool closed, replaying, connected, was_connected;
	/* the hub's thread */
	struct list node;
	void *sub, *dealer, *monitor;
	char *replay_endpoint;
	bool asked;                        /* a replay runs */
	struct mono deadline;
	size_t item;                       /* place of its first poll item */
};

struct io_zpub {
	struct io_zhub *hub;
	char endpoint[128], replay_endpoint[128];
	/* the hub's thread */
	struct list node;
	void *pub, *router;
	char *topic;
	bool replay_has_topic, mute;
	struct io_zbatch { uint64_t seq; size_t n; char *payload; } *ring;
	size_t ring_cap, ring_n, ring_at;  /* ring_at: the oldest */
	size_t item;
};

/* zhub.c; called by both sides as their names say */
void *io_zsocket(struct io_zhub *h, int type);
void io_zhub_command(struct io_zhub *h, struct io_zcmd *c);
struct io_zcmd *io_zcmd_new(enum io_zcmd_kind kind, struct io_zsub *s, struct io_zpub *p, struct str payload);
void io_zhub_event(struct io_zsub *s, struct io_zevent *e);
struct io_zevent *io_zevent_new(enum io_zevent_kind kind, size_t n_frames);
bool io_zhub_is_full(struct io_zhub *h);

/* zsub.c, on the hub's thread */
size_t io_zsub_items(struct io_zsub *s, zmq_pollitem_t out[3], bool full);
bool io_zsub_ready(struct io_zsub *s, const zmq_pollitem_t *items);   /* true when live messages had come */
void io_zsub_tick(struct io_zsub *s, struct mono now);
void io_zsub_ask(struct io_zsub *s, uint64_t start_seq);
void io_zsub_close_sockets(struct io_zsub *s);
/* zsub.c, on the loop's thread */
void io_zsub_deliver(struct io_zsub *s, struct io_zevent *e);
void io_zsub_free(struct io_zsub *s);

/* zpub.c, on the hub's thread */
void io_zpub_publish(struct io_zpub *p, const struct io_zcmd *c);
void io_zpub_forget(struct io_zpub *p);
void io_zpub_answer(struct io_zpub *p);
void io_zpub_destroy(struct io_zpub *p);

#endif
