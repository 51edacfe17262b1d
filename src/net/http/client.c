/* Calls: a request out, its answer in, and the one retry that is safe. */
#include <stdlib.h>
#include <string.h>

#include "base/must.h"
#include "http/client_priv.h"

#define SPARE_CALLS 512
#define TEXT_MAX ((size_t)256 * 1024)
#define TEXT_KEPT ((size_t)8 * 1024)    /* larger heads give their memory back */

/* ---- call objects ------------------------------------------------------------------------------------------ */

static void on_soon(void *call);

static struct http_call *call_take(struct http_pool *p)
{
	struct http_call *c = p->spare;
	if (c) {
		p->spare = c->next;
		p->n_spare--;
	} else {
		c = must_calloc(1, sizeof(*c));
		c->head = http1_head_new();
		buf_init(&c->text, TEXT_MAX);
	}
	struct http_call fresh = { .pool = p, .text = c->text, .head = c->head };
	fresh.out.p = c->out.p;
	fresh.out.cap = c->out.cap;
	*c = fresh;
	buf_clear(&c->text);
	http1_head_clear(c->head);
	io_soon_init(&c->soon, on_soon, c);
	list_add_tail(&p->calls, &c->node);
	return c;
}

void http_call_free(struct http_call *c)
{
	buf_done(&c->text);
	VEC_FREE(&c->out);
	http1_head_free(c->head);
	free(c);
}

static void call_give(struct http_call *c)
{
	struct http_pool *p = c->pool;
	list_del(&c->node);
	io_soon_cancel(&c->soon);
	if (p->n_spare >= SPARE_CALLS || c->text.cap > TEXT_KEPT || http1_head_bytes(c->head) > TEXT_KEPT) {
		http_call_free(c);
		return;
	}
	c->next = p->spare;
	p->spare = c;
	p->n_spare++;
}

/* ---- the request's text ------------------------------------------------------------------------------------ */

/* Fields that this client writes itself, or that make no sense when the body follows at once. */
static bool is_ours(struct str name)
{
	static const struct str ours[] = { STR_INIT("host"), STR_INIT("content-length"), STR_INIT("transfer-encoding"),
		                           STR_INIT("connection"), STR_INIT("expect") };
	for (size_t i = 0; i < ARRAY_LEN(ours); i++)
		if (str_ieq(name, ours[i]))
			return true;
	return false;
}

static enum err add_all(struct buf *b, const struct str *parts, size_t n)
{
	size_t total = 0;
	char *at;
	for (size_t i = 0; i < n; i++)
		total += parts[i].n;
	TRY(buf_reserve(b, total, &at));
	for (size_t i = 0; i < n; i++) {
		if (parts[i].n > 0)
			memcpy(at, parts[i].p, parts[i].n);
		at += parts[i].n;
	}
	buf_commit(b, total);
	return ERR_OK;
}

static enum err add_field(struct buf *b, struct str name, struct str value)
{
	if (!http1_is_token(name) || !http1_is_value(value))
		return ERR_SYNTAX;
	const struct str parts[] = { name, STR(": "), value, STR("\r\n") };
	return add_all(b, parts, ARRAY_LEN(parts));
}

static bool is_target(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if ((unsigned char)s.p[i] <= ' ' || s.p[i] == 127)
			return false;
	return s.n > 0;
}

static enum err write_text(struct buf *b, const struct http_call_opts *o, size_t body_bytes)
{
	if (!http1_is_token(o->method) || !is_target(o->target))
		return ERR_SYNTAX;
	const struct str line[] = { o->method, STR(" "), o->target, STR(" HTTP/1.1\r\n") };
	TRY(add_all(b, line, ARRAY_LEN(line)));
	TRY(add_field(b, STR("Host"), o->host));
	for (size_t i = 0; i < o->headers.n; i++)
		if (!is_ours(o->headers.p[i].name))
			TRY(add_field(b, o->headers.p[i].name, o->headers.p[i].value));
	if (body_bytes > 0 || o->method.p[0] == 'P') {    /* POST, PUT, PATCH say 0 as well */
		TRY(buf_add(b, STR("Content-Length: ")));
		TRY(buf_add_u64(b, body_bytes));
		TRY(buf_add(b, STR("\r\n")));
	}
	return buf_add(b, STR("\r\n"));
}

static void prepare(struct http_call *c, const struct http_call_opts *o)
{
	size_t body_bytes = 0;
	for (size_t i = 0; i < o->n_body; i++)
		body_bytes += o->body[i].n;
	c->doomed = write_text(&c->text, o, body_bytes);
	VEC_PUSH(&c->out, buf_str(&c->text));
	for (size_t i = 0; i < o->n_body; i++)
		VEC_PUSH(&c->out, o->body[i]);
	c->addr = o->addr;
	c->first_byte_timeout_us = o->first_byte_timeout_us;
	c->stall_timeout_us = o->stall_timeout_us;
	c->is_head = str_eq(o->method, STR("HEAD"));
}

/* ---- ends -------------------------------------------------------------------------------------------------- */

static void drop_sock(struct http_call *c)
{
	struct http_sock *s = c->sock;
	c->sock = NULL;
	if (!s)
		return;
	s->call = NULL;
	http_sock_close(s);
}

/* on_end or on_fail; until it returned, the head's slices hold. It may start calls, even free the pool. */
static void last_word(struct http_call *c, enum err why)
{
	c->ended = true;
	io_soon_cancel(&c->soon);
	if (why == ERR_OK)
		c->ops->on_end(c->arg);
	else
		c->ops->on_fail(c->arg, why);
	if (c->pool)
		call_give(c);
	else
		http_call_free(c);
}

static void fail(struct http_call *c, enum err why)
{
	drop_sock(c);
	last_word(c, why);
}

/* The socket is given back first: on_end may start the next call and find it. `clean`: nothing odd about the socket. */
static void complete(struct http_call *c, bool clean)
{
	if (clean && c->sent && c->head->keep_alive && c->head->content_length != HTTP1_UNTIL_EOF) {
		http_sock_release(c->sock);
		c->sock = NULL;
	}
	drop_sock(c);
	last_word(c, ERR_OK);
}

void http_call_abort(struct http_call *c)
{
	if (c->ended)
		return;
	drop_sock(c);
	call_give(c);
}

/* ---- sending ----------------------------------------------------------------------------------------------- */

static void advance(struct http_call *c, size_t n)
{
	c->out_bytes += n;
	while (c->out_at < c->out.n) {
		size_t left = c->out.p[c->out_at].n - c->out_off;
		if (n < left) {
			c->out_off += n;
			return;
		}
		n -= left;
		c->out_at++;
		c->out_off = 0;
	}
}

static void send_some(struct http_call *c)
{
	struct str v[16];
	struct io_tcp *tcp = c->sock->tcp;
	if (c->out_bytes == 0)
		c->wrote = io_now(c->pool->loop);
	for (;;) {
		size_t n = 0, asked = 0;
		for (size_t i = c->out_at; i < c->out.n && n < ARRAY_LEN(v); i++, n++) {
			v[n] = i == c->out_at ? str_skip(c->out.p[i], c->out_off) : c->out.p[i];
			asked += v[n].n;
		}
		size_t wrote = io_tcp_try(tcp, v, n);
		if (wrote > 0)
			c->progress = io_now(c->pool->loop);
		advance(c, wrote);
		if (wrote < asked) {
			io_tcp_want(tcp);
			return;
		}
		if (c->out_at == c->out.n)
			break;
	}
	c->sent = c->tell_sent = true;
}

static void use_sock(struct http_call *c, struct http_sock *s)
{
	c->sock = s;
	s->call = c;
	http1_begin(&s->parser, c->head, c->is_head);
}

static void send_now(struct http_call *c)
{
	c->progress = io_now(c->pool->loop);
	c->tell_connected = true;
	send_some(c);
	http_sock_arm(c->sock);
}

/* What could not be told from inside http_call_start(). */
static void on_soon(void *arg)
{
	struct http_call *c = arg;
	struct http_sock *s = c->sock;
	if (c->doomed != ERR_OK) {
		fail(c, c->doomed);
		return;
	}
	if (c->tell_connected) {
		c->tell_connected = false;
		if (c->ops->on_connected)
			c->ops->on_connected(c->arg, s->reused);
		if (s->dead)
			return;
	}
	if (c->tell_sent) {
		c->tell_sent = false;
		if (c->ops->on_sent)
			c->ops->on_sent(c->arg);
	}
}

struct http_call *http_call_start(struct http_pool *p, const struct http_call_opts *o, const struct http_call_ops *ops, void *arg)
{
	struct http_call *c = call_take(p);
	c->ops = ops;
	c->arg = arg;
	prepare(c, o);
	if (c->doomed != ERR_OK) {
		io_soon(p->loop, &c->soon);
		return c;
	}
	struct http_sock *s = o->fresh ? NULL : http_sock_idle(p, &o->addr);
	if (s) {
		use_sock(c, s);
		send_now(c);
		io_soon(p->loop, &c->soon);
	} else {
		use_sock(c, http_sock_connect(p, &o->addr));
	}
	return c;
}

void http_call_connected(struct http_call *c, enum err e)
{
	if (e != ERR_OK) {
		fail(c, ERR_CONNECT);
		return;
	}
	send_now(c);
	on_soon(c);
}

void http_call_writable(struct http_call *c)
{
	if (c->sent || c->head_told)
		return;
	send_some(c);
	http_sock_arm(c->sock);
	if (c->tell_sent)
		on_soon(c);
}

/* ---- receiving --------------------------------------------------------------------------------------------- */

static bool on_head(void *arg)
{
	struct http_sock *s = arg;
	struct http_call *c = s->call;
	const struct http1_head *h = c->head;
	_Static_assert(sizeof(struct http_header) == sizeof(struct http1_field), "one layout, two rooms");
	/* An answer before the whole request was sent: the body's memory goes back to its owner, nothing more is sent. */
	c->head_told = true;
	c->progress = io_now(c->pool->loop);
	c->ops->on_head(c->arg, h->status, (struct http_headers){ (const struct http_header *)(const void *)h->fields, h->n_fields });
	return !s->dead;
}

static bool on_body(void *arg, struct str piece)
{
	struct http_sock *s = arg;
	s->call->ops->on_body(s->call->arg, piece);
	return !s->dead;
}

const struct http1_ops http_call_parser_ops = { on_head, on_body };

void http_call_read(struct http_call *c, struct str data)
{
	struct http_sock *s = c->sock;
	size_t used = 0;
	c->got_byte = true;
	if (c->head_told)
		c->progress = io_now(c->pool->loop);
	switch (http1_feed(&s->parser, data, &used)) {
	case HTTP1_MORE:
		http_sock_arm(s);
		return;
	case HTTP1_DONE:
		complete(c, used == data.n);
		return;
	case HTTP1_BAD:
		fail(c, ERR_UPSTREAM_PROTOCOL);
		return;
	case HTTP1_STOPPED:    /* aborted by its owner */
		return;
	}
}

static void retry(struct http_call *c)
{
	c->retried = true;
	c->pool->stats.retries++;
	drop_sock(c);
	c->out_at = c->out_off = 0;
	c->out_bytes = 0;
	c->sent = c->tell_connected = c->tell_sent = false;
	use_sock(c, http_sock_connect(c->pool, &c->addr));
	if (c->ops->on_retry)
		c->ops->on_retry(c->arg);
}

void http_call_peer_closed(struct http_call *c, enum err why)
{
	int64_t age_us = mono_diff_us(io_now(c->pool->loop), c->wrote);
	if (!c->got_byte) {
		if (c->sock->reused && !c->retried && age_us <= c->pool->opts.retry_window_us)
			retry(c);
		else
			fail(c, c->out_bytes > 0 ? ERR_UPSTREAM_EARLY_CLOSE : ERR_CONNECT);
	} else if (why == ERR_EOF && http1_finish(&c->sock->parser) == HTTP1_DONE) {
		complete(c, false);
	} else {
		fail(c, c->head_told ? ERR_UPSTREAM_MIDSTREAM : ERR_UPSTREAM_EARLY_CLOSE);
	}
}

/* ---- time -------------------------------------------------------------------------------------------------- */

/* Patience: with a request that the worker does not take, or does not answer with a whole head, the first-byte time, which a
 * part of a head or a 1xx does not lengthen; after the head the stall time. None while we do not read ourselves. */
struct mono http_call_deadline(const struct http_call *c)
{
	int64_t us = c->head_told ? c->stall_timeout_us : c->first_byte_timeout_us;
	return c->paused || us <= 0 ? MONO_NEVER : mono_add_us(c->progress, us);
}

void http_call_timed_out(struct http_call *c)
{
	if (c->sent && !io_tcp_is_quiet(c->sock->tcp)) {    /* it was us who were late: the answer lies in the socket */
		c->progress = io_now(c->pool->loop);
		http_sock_arm(c->sock);
		return;
	}
	fail(c, c->head_told ? ERR_TIMEOUT_STALL : ERR_TIMEOUT_FIRST_BYTE);
}

void http_call_pause(struct http_call *c)
{
	c->paused = true;
	if (!c->sock)
		return;
	io_tcp_read(c->sock->tcp, false);
	http_sock_arm(c->sock);
}

void http_call_resume(struct http_call *c)
{
	if (!c->paused)
		return;
	c->paused = false;
	c->progress = io_now(c->pool->loop);
	if (!c->sock)
		return;
	io_tcp_read(c->sock->tcp, c->sock->connected);
	http_sock_arm(c->sock);
}
