/* Small requests with the whole answer in memory: probes, scrapes, token calls. */
#include <stdlib.h>

#include "base/buf.h"
#include "base/must.h"
#include "http/client.h"
#include "io/loop.h"

struct http_fetch {
	struct http_call *call;
	struct io_timer *timer;
	http_fetch_fn *fn;
	void *arg;
	struct str sent;              /* our copy of the request's body */
	struct buf body;
	int status;
	struct http_headers headers;
	bool head;
};

static void fetch_free(struct http_fetch *f)
{
	io_timer_free(f->timer);
	free((void *)(uintptr_t)f->sent.p);
	buf_done(&f->body);
	free(f);
}

/* The call is still alive where its headers are shown: it ends after fn. */
static void finish(struct http_fetch *f, enum err e)
{
	f->fn(f->arg, e, f->status, f->headers, buf_str(&f->body));
	fetch_free(f);
}

static void on_head(void *arg, int status, struct http_headers h)
{
	struct http_fetch *f = arg;
	f->head = true;
	f->status = status;
	f->headers = h;
}

static void on_body(void *arg, struct str piece)
{
	struct http_fetch *f = arg;
	if (buf_add(&f->body, piece) == ERR_OK)
		return;
	http_call_abort(f->call);
	f->headers = (struct http_headers){ 0 };
	finish(f, ERR_LIMIT);
}

static void on_end(void *arg)
{
	struct http_fetch *f = arg;
	finish(f, ERR_OK);
}

static void on_fail(void *arg, enum err why)
{
	struct http_fetch *f = arg;
	f->headers = (struct http_headers){ 0 };
	finish(f, why);
}

static void on_timer(void *arg)
{
	struct http_fetch *f = arg;
	http_call_abort(f->call);
	f->headers = (struct http_headers){ 0 };
	finish(f, f->head ? ERR_TIMEOUT_STALL : ERR_TIMEOUT_FIRST_BYTE);
}

struct http_fetch *http_fetch_start(struct http_pool *p, const struct http_fetch_opts *o, http_fetch_fn *fn, void *arg)
{
	static const struct http_call_ops ops = { .on_head = on_head, .on_body = on_body, .on_end = on_end, .on_fail = on_fail };
	struct http_fetch *f = must_calloc(1, sizeof(*f));
	f->fn = fn;
	f->arg = arg;
	f->sent = str_clone(o->body);
	buf_init(&f->body, o->max_bytes);
	f->timer = io_timer_new(http_pool_loop(p), on_timer, f);
	if (o->timeout_us > 0)
		io_timer_after(f->timer, o->timeout_us);
	struct http_call_opts call = {
		.addr = o->addr, .method = o->method, .target = o->target, .host = o->host, .headers = o->headers,
		.body = &f->sent, .n_body = o->body.n > 0,
	};
	f->call = http_call_start(p, &call, &ops, f);
	return f;
}

void http_fetch_abort(struct http_fetch *f)
{
	http_call_abort(f->call);
	fetch_free(f);
}
