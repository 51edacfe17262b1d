/* A client's connection: bytes to requests, timeouts, and the end of both sides. */
#include <stdlib.h>

#include "base/must.h"
#include "http/server_priv.h"

#define HELD_HIGH ((size_t)64 * 1024)        /* with so many bytes of later requests held, the socket is left unread */
#define HELD_LOW ((size_t)16 * 1024)         /* and read again from here on */
#define LINGER_US ((int64_t)2 * 1000000)     /* let the client read our last words before a reset could eat them */
#define LINGER_BYTES ((uint64_t)64 * 1024 * 1024)

static struct http_req *req_of(struct http_conn *c) { return &c->slot->req; }

/* ---- timeouts ---------------------------------------------------------------------------------------------- */

/* When does patience with the client end, and why does it wait? MONO_NEVER: it does not, we do. */
static struct mono deadline(const struct http_conn *c)
{
	const struct http_server_opts *o = &c->server->opts;
	if (c->in == HTTP_IN_LINGER)
		return mono_add_us(c->since, LINGER_US);
	if (io_tcp_queued(c->tcp) > 0)
		return mono_add_us(c->progress, o->write_timeout_us);
	if (c->in == HTTP_IN_HEAD)
		return mono_add_us(c->since, c->slot ? o->header_timeout_us : o->idle_timeout_us);
	if (c->in == HTTP_IN_BODY && !c->paused)
		return mono_add_us(c->since, o->body_timeout_us);
	return MONO_NEVER;
}

void http_conn_arm(struct http_conn *c)
{
	if (c->dead)
		return;
	struct mono when = deadline(c);
	if (when.us == INT64_MAX)
		io_timer_stop(c->timer);
	else
		io_timer_at(c->timer, when);
}

static void on_timer(void *arg)
{
	struct http_conn *c = arg;
	if (mono_before(io_now(c->server->loop), deadline(c))) {
		http_conn_arm(c);
		return;
	}
	bool stuck = io_tcp_queued(c->tcp) > 0;
	if (c->in == HTTP_IN_BODY && !stuck && !io_tcp_is_quiet(c->tcp)) {    /* it was us who were late */
		c->since = io_now(c->server->loop);
		http_conn_arm(c);
		return;
	}
	if (c->in == HTTP_IN_LINGER || (c->in == HTTP_IN_HEAD && !c->slot && !stuck))
		http_conn_close(c, false);
	else if (stuck)
		http_conn_gone(c, ERR_TIMEOUT_CLIENT);
	else
		http_conn_refuse(c, 408, ERR_TIMEOUT_CLIENT);
}

static void touch(struct http_conn *c) { c->since = io_now(c->server->loop); }

/* ---- the end ----------------------------------------------------------------------------------------------- */

static void conn_freed(void *arg)
{
	struct http_conn *c = arg;
	buf_done(&c->held);
	free(c);
}

/* The request leaves the connection; its handler is told by whoever calls. */
static void drop_slot(struct http_conn *c)
{
	struct http_server *s = c->server;
	if (!c->slot)
		return;
	if (c->announced)
		s->stats.open_reqs--;
	c->announced = false;
	http_slot_give(s, c->slot);
	c->slot = NULL;
}

void http_conn_close(struct http_conn *c, bool reset)
{
	struct http_server *s = c->server;
	c->dead = true;
	list_del(&c->node);
	s->stats.open_conns--;
	s->stats.bytes_out += io_tcp_bytes_out(c->tcp);
	drop_slot(c);
	io_soon_cancel(&c->pump);
	io_timer_free(c->timer);
	c->timer = NULL;
	(reset ? io_tcp_reset : io_tcp_close)(c->tcp, conn_freed, c);
}

/* Takes the request out of the connection, to be told as gone. */
static struct http_slot *take_announced(struct http_conn *c)
{
	struct http_slot *slot = c->slot;
	if (!c->announced)
		return NULL;
	c->announced = false;
	c->slot = NULL;
	c->server->stats.open_reqs--;
	return slot;
}

static void tell_gone(struct http_server *s, struct http_slot *slot, enum err why)
{
	if (!slot)
		return;
	s->ops.on_gone(&slot->req, why);
	http_slot_free(slot);    /* not given back: the handler may have freed the server */
}

void http_conn_gone(struct http_conn *c, enum err why)
{
	struct http_server *s = c->server;
	struct http_slot *slot = take_announced(c);
	http_conn_close(c, false);
	tell_gone(s, slot, why);
}

static void linger(struct http_conn *c)
{
	drop_slot(c);
	c->in = HTTP_IN_LINGER;
	touch(c);
	buf_done(&c->held);
	io_tcp_shutdown(c->tcp);
	io_tcp_watch_hup(c->tcp, false);
	io_tcp_read(c->tcp, true);
	http_conn_arm(c);
}

static void answer_refusal(struct http_conn *c, int status, enum err why)
{
	const struct http_server *s = c->server;
	struct http_refusal x = { status, why, c->announced ? req_of(c) : NULL, c->peer, c->since, c };
	c->refused = false;
	if (s->ops.on_refuse)
		s->ops.on_refuse(s->arg, &x);
	if (!c->refused)
		http_refuse(&x, (struct http_headers){ 0 }, (struct str){ 0 });
}

void http_conn_refuse(struct http_conn *c, int status, enum err why)
{
	struct http_server *s = c->server;
	bool silent = c->out != HTTP_OUT_NONE;    /* a reply has begun: it can only be cut */
	c->out = HTTP_OUT_ENDED;                  /* a late http_reply_*() of the handler is ignored */
	c->close_after = c->cut = true;
	if (!silent)
		answer_refusal(c, status, why);
	tell_gone(s, take_announced(c), why);
	if (c->dead)
		return;
	drop_slot(c);
	io_soon(s->loop, &c->pump);
	c->in = HTTP_IN_ENDED;
}

/* ---- requests ---------------------------------------------------------------------------------------------- */

static void fill_req(struct http_conn *c)
{
	struct http_slot *slot = c->slot;
	const struct http1_head *h = slot->head;
	struct mono started = c->since;
	_Static_assert(sizeof(struct http_header) == sizeof(struct http1_field), "one layout, two rooms");
	slot->req = (struct http_req){
		.method = h->method, .target = h->target, .path = h->path, .query = h->query, .host = h->host,
		.headers = { (const struct http_header *)(const void *)h->fields, h->n_fields },
		.content_length = h->content_length, .keep_alive = h->keep_alive,
		.peer = c->peer, .started = started, .conn = c,
	};
}

static bool on_head(void *arg)
{
	struct http_conn *c = arg;
	struct http_server *s = c->server;
	fill_req(c);
	c->in = HTTP_IN_BODY;
	c->out = HTTP_OUT_NONE;
	c->announced = true;
	c->close_after = !c->slot->head->keep_alive || s->stopping;
	c->bodyless = c->cut = c->paused = c->continued = c->above_high = false;
	touch(c);
	s->stats.requests++;
	s->stats.open_reqs++;
	s->ops.on_request(s->arg, req_of(c));
	if (c->dead)
		return false;
	if (c->announced && c->out == HTTP_OUT_NONE && c->slot->head->expect_continue)
		http_req_continue(req_of(c));
	return true;
}

static bool on_body(void *arg, struct str piece)
{
	struct http_conn *c = arg;
	touch(c);
	if (c->announced && c->out != HTTP_OUT_ENDED && c->server->ops.on_body)
		c->server->ops.on_body(req_of(c), piece);
	return !c->dead;
}

static const struct http1_ops parser_ops = { on_head, on_body };

/* The request is whole. When its reply is over already, this was the rest of a body that nobody read. */
static void request_ended(struct http_conn *c)
{
	if (!c->announced) {
		drop_slot(c);
		c->in = HTTP_IN_HEAD;
		touch(c);
		return;
	}
	c->in = HTTP_IN_ENDED;
	if (c->out != HTTP_OUT_ENDED && c->server->ops.on_body_end)
		c->server->ops.on_body_end(req_of(c));
}

/* Makes requests of data; returns what belongs to later ones (the one under way is whole, its reply is not over). */
static struct str feed(struct http_conn *c, struct str data)
{
	while (data.n > 0 && !c->dead && c->in != HTTP_IN_ENDED) {
		size_t used = 0;
		if (!c->slot) {
			c->slot = http_slot_take(c->server);
			http1_begin(&c->parser, c->slot->head, false);
			touch(c);
		}
		switch (http1_feed(&c->parser, data, &used)) {
		case HTTP1_MORE:
		case HTTP1_STOPPED:
			return (struct str){ 0 };
		case HTTP1_DONE:
			request_ended(c);
			break;
		case HTTP1_BAD:
			http_conn_refuse(c, http1_error_status(&c->parser), http1_error(&c->parser));
			return (struct str){ 0 };
		}
		data = str_skip(data, used);
	}
	return data;
}

/* What is held is bounded by leaving the rest with the kernel, whose window then holds the client back. */
static void mind_held(struct http_conn *c)
{
	bool stuffed = c->held.n > (c->stuffed ? HELD_LOW : HELD_HIGH);
	if (stuffed != c->stuffed)
		io_tcp_read(c->tcp, !stuffed && !c->paused);
	c->stuffed = stuffed;
}

static void hold(struct http_conn *c, struct str data)
{
	if (data.n == 0)
		return;
	if (c->close_after) {    /* the reply under way is the last: these are never served */
		io_tcp_read(c->tcp, false);
		return;
	}
	must(buf_add(&c->held, data) == ERR_OK);
	mind_held(c);
}

static void feed_held(struct http_conn *c)
{
	struct str rest = feed(c, buf_str(&c->held));
	if (c->dead)
		return;
	if (rest.n > 0)
		buf_consume(&c->held, c->held.n - rest.n);
	else
		buf_done(&c->held);    /* an idle connection keeps no memory */
	mind_held(c);
}

void http_conn_next(struct http_conn *c)
{
	bool whole = c->in == HTTP_IN_ENDED;
	c->out = HTTP_OUT_NONE;
	if (c->close_after || c->server->stopping) {
		linger(c);
		return;
	}
	if (!whole) {           /* the rest of the body is still to come: request_ended() goes on */
		c->paused = false;
		io_tcp_read(c->tcp, true);
		http_conn_arm(c);
		return;
	}
	drop_slot(c);
	c->in = HTTP_IN_HEAD;
	touch(c);
	feed_held(c);
	if (!c->dead)
		http_conn_arm(c);
}

/* ---- what the socket says ---------------------------------------------------------------------------------- */

static void on_read(void *arg, struct str data)
{
	struct http_conn *c = arg;
	c->server->stats.bytes_in += data.n;
	if (c->in == HTTP_IN_LINGER) {
		c->linger_bytes += data.n;
		if (c->linger_bytes > LINGER_BYTES)
			http_conn_close(c, true);
		return;
	}
	data = feed(c, data);
	if (c->dead)
		return;
	hold(c, data);
	http_conn_arm(c);
}

static void on_end(void *arg, enum err why)
{
	struct http_conn *c = arg;
	(void)why;
	/* A reply that was made in this very callback may still leave at once: then the client had its answer. */
	if (c->out == HTTP_OUT_ENDED)
		http_reply_pump(c);
	if (!c->dead)
		http_conn_gone(c, ERR_CLIENT_GONE);
}

static void on_writable(void *arg)
{
	struct http_conn *c = arg;
	c->progress = io_now(c->server->loop);
	http_reply_pump(c);
}

static const struct io_tcp_ops tcp_ops = { .on_read = on_read, .on_end = on_end, .on_writable = on_writable };

void http_conn_new(struct http_server *s, struct io_tcp *t, const struct io_addr *peer)
{
	struct http_conn *c = must_calloc(1, sizeof(*c));
	struct http1_limits limits = { (uint32_t)s->opts.max_header_bytes, (uint32_t)s->opts.max_headers };
	c->server = s;
	c->tcp = t;
	c->peer = *peer;
	c->timer = io_timer_new(s->loop, on_timer, c);
	io_soon_init(&c->pump, http_reply_pump, c);
	buf_init(&c->held, HELD_HIGH + IO_READ_BYTES);
	http1_init(&c->parser, HTTP1_REQUEST, limits, &parser_ops, c);
	list_add_tail(&s->conns, &c->node);
	touch(c);
	io_tcp_set_ops(t, &tcp_ops, c);
	io_tcp_watch_hup(t, true);
	io_tcp_read(t, true);
	http_conn_arm(c);
}

/* ---- the body's back-pressure ------------------------------------------------------------------------------ */

void http_req_pause(struct http_req *r)
{
	struct http_conn *c = r->conn;
	if (c->dead || c->in != HTTP_IN_BODY)
		return;
	c->paused = true;
	io_tcp_read(c->tcp, false);
	http_conn_arm(c);
}

void http_req_resume(struct http_req *r)
{
	struct http_conn *c = r->conn;
	if (c->dead || !c->paused)
		return;
	c->paused = false;
	touch(c);
	if (!c->stuffed)
		io_tcp_read(c->tcp, true);
	http_conn_arm(c);
}

void http_req_continue(struct http_req *r)
{
	struct http_conn *c = r->conn;
	if (c->dead || c->continued || c->out != HTTP_OUT_NONE || !c->slot->head->expect_continue)
		return;
	c->continued = true;
	http_reply_put(c, STR("HTTP/1.1 100 Continue\r\n\r\n"));
	io_soon(c->server->loop, &c->pump);
}
