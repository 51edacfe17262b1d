/* Long answers in pieces, see ops_priv.h. */
#include <stdlib.h>

#include "ops/ops_priv.h"

static void later(struct ops_page *p) { io_later(p->ops->loop, &p->turn); }

static void send(struct ops_page *p)
{
	size_t queued = http_reply_write(p->req, buf_str(&p->out));
	buf_clear(&p->out);
	if (p->e != ERR_OK || json_writer_done(&p->json) != ERR_OK) {
		http_reply_cut(p->req);
		return;
	}
	if (!*p->parts)
		http_reply_end(p->req);
	else if (queued > OPS_HIGH_BYTES)
		p->waits = true;
	else
		later(p);
}

static void piece(void *arg)
{
	struct ops_page *p = arg;
	if (!(*p->parts)(p)) {
		p->parts++;
		p->at = 0;
	}
	send(p);
}

struct ops_page *ops_page_start(struct ops *o, struct http_req *r, struct str type, ops_part *const *parts)
{
	struct http_header h = { STR("Content-Type"), type };
	http_reply_begin(r, 200, (struct http_headers){ &h, 1 }, -1);
	if (str_eq(r->method, STR("HEAD"))) {
		http_reply_end(r);
		return NULL;
	}
	struct ops_page *p = must_calloc(1, sizeof(*p));
	p->ops = o;
	p->req = r;
	p->parts = parts;
	io_soon_init(&p->turn, piece, p);
	buf_init(&p->out, OPS_MAX_REPLY);
	p->json = json_writer(&p->out);
	arena_init(&p->mem, 0);
	later(p);
	return p;
}

void ops_page_drain(struct ops_page *p)
{
	if (p->waits)
		later(p);
	p->waits = false;
}

void ops_page_free(struct ops_page *p)
{
	io_soon_cancel(&p->turn);
	buf_done(&p->out);
	arena_done(&p->mem);
	VEC_FREE(&p->seen);
	free(p);
}

/* A worker that comes or goes meanwhile is in it or not. */
bool ops_gather(struct ops_page *p)
{
	const struct brain *b = feed_brain(p->ops->feed);
	for (size_t i = 0; i < OPS_PIECE_WORKERS; i++, p->at++) {
		struct brain_worker_view *v = arena_new(&p->mem, struct brain_worker_view, 1);
		struct feed_worker_info *f = arena_new(&p->mem, struct feed_worker_info, 1);
		if (brain_worker_in(b, p->at, &p->mem, v))
			VEC_PUSH(&p->seen, (struct ops_seen){ v, feed_info(p->ops->feed, v->id, &p->mem, f) ? f : NULL });
	}
	return p->at < brain_worker_slots(b);
}

void ops_page_open(struct ops_page *p, const char *key)
{
	json_put_open(&p->json, '{');
	json_put_key(&p->json, str_of(key));
	json_put_open(&p->json, '[');
}

bool ops_page_close(struct ops_page *p)
{
	json_put_close(&p->json, ']');
	json_put_close(&p->json, '}');
	return false;
}
