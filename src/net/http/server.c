/* Listener, request slots and figures of a server. Connections are in conn.c, replies in reply.c. */
#include <stdlib.h>
#include <time.h>

#include "base/must.h"
#include "http/server_priv.h"

#define SLOTS_SPARE 512
#define SLOT_BYTES_KEPT 8192    /* larger heads give their memory back */

struct http_server_opts http_server_defaults(void)
{
	return (struct http_server_opts){
		.max_header_bytes = (size_t)32 * 1024,
		.max_headers = 128,
		.header_timeout_us = (int64_t)10 * 1000000,
		.body_timeout_us = (int64_t)30 * 1000000,
		.idle_timeout_us = (int64_t)75 * 1000000,
		.write_timeout_us = (int64_t)60 * 1000000,
		.high_bytes = (size_t)128 * 1024,
		.low_bytes = (size_t)32 * 1024,
	};
}

struct http_slot *http_slot_take(struct http_server *s)
{
	struct http_slot *slot = s->slots;
	if (slot) {
		s->slots = slot->next;
		s->n_slots--;
	} else {
		slot = must_calloc(1, sizeof(*slot));
		slot->head = http1_head_new();
	}
	slot->req = (struct http_req){ 0 };
	return slot;
}

void http_slot_free(struct http_slot *slot)
{
	http1_head_free(slot->head);
	free(slot);
}

void http_slot_give(struct http_server *s, struct http_slot *slot)
{
	if (s->n_slots >= SLOTS_SPARE || http1_head_bytes(slot->head) > SLOT_BYTES_KEPT) {
		http_slot_free(slot);
		return;
	}
	slot->next = s->slots;
	s->slots = slot;
	s->n_slots++;
}

/* "Date: …\r\n", written anew once a second. */
struct str http_server_date(struct http_server *s)
{
	struct mono now = io_now(s->loop);
	if (!mono_before(now, s->date_until)) {
		int64_t unix_us = io_unix_us();
		time_t t = (time_t)(unix_us / 1000000);
		struct tm tm;
		gmtime_r(&t, &tm);
		strftime(s->date, sizeof(s->date), "Date: %a, %d %b %Y %H:%M:%S GMT\r\n", &tm);
		s->date_until = mono_add_us(now, 1000000 - unix_us % 1000000);
	}
	return str_of(s->date);
}

static void on_accept(void *arg, struct io_tcp *t, const struct io_addr *peer)
{
	struct http_server *s = arg;
	if (s->opts.max_conns > 0 && s->stats.open_conns >= s->opts.max_conns) {
		s->stats.refused++;
		io_tcp_close(t, NULL, NULL);
		return;
	}
	s->stats.accepted++;
	s->stats.open_conns++;
	http_conn_new(s, t, peer);
}

enum err http_server_new(struct io_loop *l, const struct io_addr *bind, const struct http_server_opts *o,
                         const struct http_server_ops *ops, void *arg, struct http_server **ret_server)
{
	struct http_server *s = must_calloc(1, sizeof(*s));
	s->loop = l;
	s->opts = *o;
	s->ops = *ops;
	s->arg = arg;
	list_init(&s->conns);
	enum err e = io_listen(l, bind, o->reuse_port, on_accept, s, &s->listener);
	if (e != ERR_OK) {
		free(s);
		return e;
	}
	io_listener_user_timeout(s->listener, o->write_timeout_us);
	s->addr = io_listener_addr(s->listener);
	*ret_server = s;
	return ERR_OK;
}

struct io_addr http_server_addr(const struct http_server *s) { return s->addr; }

void http_server_stop_listening(struct http_server *s)
{
	io_listener_close(s->listener);
	s->listener = NULL;
	s->stopping = true;
	LIST_FOR_SAFE(&s->conns, it) {
		struct http_conn *c = container_of(it, struct http_conn, node);
		if (!c->slot && c->in == HTTP_IN_HEAD)
			http_conn_close(c, false);
	}
}

void http_server_free(struct http_server *s)
{
	if (!s)
		return;
	io_listener_close(s->listener);
	while (!list_empty(&s->conns))
		http_conn_gone(container_of(s->conns.next, struct http_conn, node), ERR_CLIENT_GONE);
	while (s->slots) {
		struct http_slot *slot = s->slots;
		s->slots = slot->next;
		http_slot_free(slot);
	}
	free(s);
}

struct http_server_stats http_server_stats(const struct http_server *s)
{
	struct http_server_stats st = s->stats;
	LIST_FOR(&s->conns, it) {
		const struct http_conn *c = container_of(it, struct http_conn, node);
		st.bytes_out += io_tcp_bytes_out(c->tcp);
		st.queued_bytes += io_tcp_queued(c->tcp);
	}
	return st;
}
