/* One question to an admin port, on a loop of its own. */
#include <stdio.h>

#include "ctl/ctl_priv.h"
#include "http/client.h"
#include "wire/url.h"

enum { TIMEOUT_US = 10000000, MAX_ANSWER = 64 << 20 };

struct asking {
	struct io_loop *loop;
	struct http_pool *pool;
	struct http_fetch_opts q;
	enum err e;
	int status;
	struct buf *body;
};

static void answered(void *arg, enum err e, int status, struct http_headers h, struct str body)
{
	struct asking *k = arg;
	(void)h;
	k->e = e;
	k->status = status;
	if (e == ERR_OK)
		k->e = buf_add(k->body, body);
	io_loop_stop(k->loop);
}

static void resolved(void *arg, enum err e, struct io_addr a)
{
	struct asking *k = arg;
	k->e = e;
	if (e != ERR_OK) {
		io_loop_stop(k->loop);
		return;
	}
	k->q.addr = a;
	http_fetch_start(k->pool, &k->q, answered, k);
}

static bool admin_url(struct str admin, struct url *ret_u, char host[512])
{
	char text[512];
	if (str_find(admin, STR("://")) == SIZE_MAX && admin.n < 400) {
		snprintf(text, sizeof(text), "http://%.*s", STR_ARG(admin));
		admin = str_of(text);
	}
	struct url u;
	if (url_parse(admin, &u) != ERR_OK || u.scheme != URL_HTTP || u.host.n > 255)
		return false;
	snprintf(host, 512, u.ipv6 ? "[%.*s]:%u" : "%.*s:%u", STR_ARG(u.host), (unsigned)u.port);
	*ret_u = u;
	ret_u->host = str_sub(str_of(host), u.ipv6 ? 1 : 0, u.host.n);
	return true;
}

bool ctl_fetch(struct str admin, struct str method, struct str target, struct str body, int *ret_status, struct buf *ret_body)
{
	struct url u;
	char host[512];
	if (!admin_url(admin, &u, host)) {
		fprintf(stderr, "kvasir: --admin %.*s: must be a URL like http://127.0.0.1:9090\n", STR_ARG(admin));
		return false;
	}
	struct http_header type = { STR("content-type"), STR("application/json") };
	struct io_loop *l = io_loop_new();
	struct http_pool_opts po = http_pool_defaults();
	struct asking k = { .loop = l, .pool = http_pool_new(l, &po), .body = ret_body };
	k.q = (struct http_fetch_opts){ .method = method, .target = target, .host = str_of(host), .body = body, .headers = { &type, body.n > 0 }, .max_bytes = MAX_ANSWER, .timeout_us = TIMEOUT_US };
	buf_init(ret_body, MAX_ANSWER);
	io_resolve(l, u.host, u.port, resolved, &k);
	io_loop_run(l);
	http_pool_free(k.pool);
	while (io_loop_alive(l))
		;
	io_loop_free(l);
	*ret_status = k.status;
	if (k.e == ERR_OK)
		return true;
	fprintf(stderr, "kvasir: no answer from the admin port at %s: %s\n", host,
		k.e == ERR_CONNECT ? "nobody listens there (is it kvasir serve's --admin?)" : err_text(k.e));
	buf_done(ret_body);
	return false;
}
