/* Replies: heads, framing, flushing. Everything a callback writes leaves together when it returns (see io_soon). */
#include <string.h>

#include "http/server_priv.h"

#define SKIP_BYTES ((int64_t)256 * 1024)   /* an unread body up to this is read and dropped, the connection kept */

void http_reply_put(struct http_conn *c, struct str s)
{
	if (io_tcp_queued(c->tcp) == 0)
		c->progress = io_now(c->server->loop);    /* from here on the client has something to take */
	io_tcp_put(c->tcp, s);
}

static void put(struct http_conn *c, struct str s) { io_tcp_put(c->tcp, s); }

static void put_u64(struct http_conn *c, uint64_t v)
{
	char room[STR_U64_MAX];
	put(c, str_of_u64(v, room));
}

/* Fields that the connection itself speaks for. */
static bool is_ours(struct str name)
{
	static const struct str ours[] = { STR_INIT("date"), STR_INIT("connection"), STR_INIT("keep-alive"),
		                           STR_INIT("content-length"), STR_INIT("transfer-encoding") };
	for (size_t i = 0; i < ARRAY_LEN(ours); i++)
		if (str_ieq(name, ours[i]))
			return true;
	return false;
}

static void put_fields(struct http_conn *c, struct http_headers h)
{
	for (size_t i = 0; i < h.n; i++) {
		const struct http_header *f = &h.p[i];
		if (is_ours(f->name) || !http1_is_token(f->name) || !http1_is_value(f->value))
			continue;
		put(c, f->name);
		put(c, STR(": "));
		put(c, f->value);
		put(c, STR("\r\n"));
	}
}

void http_reply_head(struct http_conn *c, int status, struct str type, struct http_headers h, int64_t content_length)
{
	bool old = c->slot && c->slot->head->minor == 0;
	struct http_header content_type = { STR("Content-Type"), type };
	char line[] = "HTTP/1.1 000 ";
	line[9] = (char)('0' + status / 100 % 10);
	line[10] = (char)('0' + status / 10 % 10);
	line[11] = (char)('0' + status % 10);
	http_reply_put(c, (struct str){ line, sizeof(line) - 1 });
	put(c, str_of(http_status_text(status)));
	put(c, STR("\r\n"));
	put(c, http_server_date(c->server));
	put_fields(c, (struct http_headers){ &content_type, type.n > 0 });
	put_fields(c, h);
	if (content_length >= 0 && status != 204 && status != 304) {
		put(c, STR("Content-Length: "));
		put_u64(c, (uint64_t)content_length);
		put(c, STR("\r\n"));
	} else if (content_length == HTTP1_CHUNKED) {
		put(c, STR("Transfer-Encoding: chunked\r\n"));
	}
	if (c->close_after)
		put(c, STR("Connection: close\r\n"));
	else if (old)
		put(c, STR("Connection: keep-alive\r\n"));
	put(c, STR("\r\n"));
}

/* ---- flushing ---------------------------------------------------------------------------------------------- */

static void check_drain(struct http_conn *c)
{
	if (!c->above_high || io_tcp_queued(c->tcp) > c->server->opts.low_bytes)
		return;
	c->above_high = false;
	if (c->announced && c->out == HTTP_OUT_OPEN && c->server->ops.on_drain)
		c->server->ops.on_drain(&c->slot->req);
}

/* The reply is with the kernel: tell, and go on to the next request. */
static void finish(struct http_conn *c)
{
	struct http_server *s = c->server;
	if (c->announced) {
		c->announced = false;
		s->stats.open_reqs--;
		s->ops.on_done(&c->slot->req);
	}
	if (!c->dead)
		http_conn_next(c);
}

void http_reply_pump(void *arg)
{
	struct http_conn *c = arg;
	if (c->dead)
		return;
	size_t before = io_tcp_queued(c->tcp);
	io_tcp_flush(c->tcp);
	if (io_tcp_queued(c->tcp) < before)
		c->progress = io_now(c->server->loop);
	check_drain(c);
	if (c->dead)
		return;
	if (c->out == HTTP_OUT_ENDED && io_tcp_queued(c->tcp) == 0 && !io_tcp_broken(c->tcp))
		finish(c);
	else
		http_conn_arm(c);
}

/* ---- the handler's verbs ----------------------------------------------------------------------------------- */

/* NULL when the client is gone already or the reply was ended: late words of a handler are dropped. */
static struct http_conn *open_conn(struct http_req *r, enum http_out wanted)
{
	struct http_conn *c = r->conn;
	return c->dead || !c->announced || c->out != wanted ? NULL : c;
}

static void decide_close(struct http_conn *c, int64_t content_length)
{
	const struct http1_head *h = c->slot->head;
	bool body_open = c->in == HTTP_IN_BODY && h->content_length != 0;
	if (content_length == HTTP1_UNTIL_EOF || c->server->stopping)
		c->close_after = true;
	if (body_open && (h->content_length == HTTP1_CHUNKED || h->content_length > SKIP_BYTES ||
	                  (h->expect_continue && !c->continued)))
		c->close_after = true;
}

static void begin(struct http_req *r, int status, struct str type, struct http_headers h, int64_t content_length)
{
	struct http_conn *c = open_conn(r, HTTP_OUT_NONE);
	if (!c)
		return;
	int minor = c->slot->head->minor;
	c->out = HTTP_OUT_OPEN;
	c->bodyless = status == 204 || status == 304 || str_eq(r->method, STR("HEAD"));
	if (content_length < 0)
		content_length = minor == 0 && !c->bodyless ? HTTP1_UNTIL_EOF : HTTP1_CHUNKED;
	if (content_length < 0 && (minor == 0 || status == 204 || status == 304))
		content_length = HTTP1_UNTIL_EOF;
	c->reply_left = content_length;
	decide_close(c, c->bodyless ? 0 : content_length);
	http_reply_head(c, status, type, h, content_length);
	io_soon(c->server->loop, &c->pump);
}

void http_reply_begin(struct http_req *r, int status, struct http_headers h, int64_t content_length)
{
	begin(r, status, (struct str){ 0 }, h, content_length);
}

static void put_chunk(struct http_conn *c, struct str piece)
{
	char head[20];
	size_t n = http1_chunk_head(head, piece.n);
	http_reply_put(c, (struct str){ head, n });
	put(c, piece);
	put(c, STR("\r\n"));
}

size_t http_reply_write(struct http_req *r, struct str piece)
{
	struct http_conn *c = open_conn(r, HTTP_OUT_OPEN);
	if (!c)
		return 0;
	if (c->reply_left >= 0) {       /* more than was declared would be read as the next reply */
		piece = str_sub(piece, 0, (size_t)c->reply_left);
		c->reply_left -= (int64_t)piece.n;
	}
	if (piece.n > 0 && !c->bodyless) {
		if (c->reply_left == HTTP1_CHUNKED)
			put_chunk(c, piece);
		else
			http_reply_put(c, piece);
		io_soon(c->server->loop, &c->pump);
	}
	size_t queued = io_tcp_queued(c->tcp);
	c->above_high |= queued > c->server->opts.high_bytes;
	return queued;
}

void http_reply_end(struct http_req *r)
{
	struct http_conn *c = open_conn(r, HTTP_OUT_OPEN);
	if (!c)
		return;
	c->out = HTTP_OUT_ENDED;
	if (!c->bodyless && c->reply_left == HTTP1_CHUNKED)
		http_reply_put(c, STR(HTTP1_LAST_CHUNK));
	if (!c->bodyless && c->reply_left > 0)    /* less than declared: only a close says that it is short */
		c->close_after = true;
	io_soon(c->server->loop, &c->pump);
}

void http_reply_cut(struct http_req *r)
{
	struct http_conn *c = r->conn;
	if (c->dead || !c->announced || c->out == HTTP_OUT_ENDED)
		return;
	c->out = HTTP_OUT_ENDED;
	c->close_after = true;
	io_soon(c->server->loop, &c->pump);
}

void http_reply_abort(struct http_req *r)
{
	struct http_conn *c = r->conn;
	if (!c->dead && c->announced)
		http_conn_close(c, true);
}

void http_reply(struct http_req *r, int status, struct http_headers extra, struct str content_type, struct str body)
{
	begin(r, status, content_type, extra, (int64_t)body.n);
	http_reply_write(r, body);
	http_reply_end(r);
}

void http_refuse(const struct http_refusal *x, struct http_headers extra, struct str body)
{
	struct str type = body.n > 0 ? STR("application/json") : (struct str){ 0 };
	x->conn->refused = true;
	http_reply_head(x->conn, x->status, type, extra, (int64_t)body.n);
	http_reply_put(x->conn, body);
}

void http_reply_close(struct http_req *r)
{
	struct http_conn *c = open_conn(r, HTTP_OUT_NONE);
	if (c)
		c->close_after = true;
}

bool http_reply_begun(const struct http_req *r) { return r->conn->out != HTTP_OUT_NONE; }
