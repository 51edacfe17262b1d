/* What net costs by itself: CPU time a request on one thread, for client and server together, and with a relay between
 * them that passes head and body on. The difference is what a gateway's plumbing adds. http_bench [seconds] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/must.h"
#include "http/client.h"
#include "http/server.h"

enum { LANES = 16 };

static struct io_loop *loop;
static struct http_pool *front, *back;
static struct io_addr origin_addr, target;
static uint64_t answers;
static char prompt[1024];

/* ---- origin: answers at once ---- */

static void origin_request(void *arg, struct http_req *r)
{
	(void)arg;
	(void)r;
}
static void origin_body(struct http_req *r, struct str piece)
{
	(void)r;
	(void)piece;
}
static void origin_end(struct http_req *r) { http_reply(r, 200, (struct http_headers){ 0 }, STR("application/json"), STR("{\"choices\":[]}")); }
static void nothing(struct http_req *r) { (void)r; }
static void gone(struct http_req *r, enum err why)
{
	(void)r;
	(void)why;
}
static const struct http_server_ops origin_ops = { .on_request = origin_request, .on_body = origin_body, .on_body_end = origin_end, .on_gone = gone, .on_done = nothing };

/* ---- relay: one call a request ---- */

struct relay { struct http_req *req; struct http_call *call; size_t n; char body[2048]; struct str piece; };

static void up_head(void *arg, int status, struct http_headers h)
{
	struct relay *x = arg;
	uint64_t n = 0;
	must(str_to_u64(http_find(h, STR("content-length")), &n));
	http_reply_begin(x->req, status, h, (int64_t)n);
}
static void up_body(void *arg, struct str piece) { http_reply_write(((struct relay *)arg)->req, piece); }
static void up_end(void *arg) { http_reply_end(((struct relay *)arg)->req); }
static void up_fail(void *arg, enum err why)
{
	(void)why;
	http_reply_abort(((struct relay *)arg)->req);
}
static const struct http_call_ops up_ops = { .on_head = up_head, .on_body = up_body, .on_end = up_end, .on_fail = up_fail };

static void relay_request(void *arg, struct http_req *r)
{
	(void)arg;
	struct relay *x = must_malloc(sizeof(*x));
	x->n = 0;
	x->req = r;
	r->user = x;
}
static void relay_body(struct http_req *r, struct str piece)
{
	struct relay *x = r->user;
	must(x->n + piece.n <= sizeof(x->body));
	memcpy(x->body + x->n, piece.p, piece.n);
	x->n += piece.n;
}
static void relay_end(struct http_req *r)
{
	struct relay *x = r->user;
	x->piece = (struct str){ x->body, x->n };
	struct http_call_opts o = { .addr = origin_addr, .method = r->method, .target = r->target, .host = r->host, .headers = r->headers,
		                    .body = &x->piece, .n_body = 1, .first_byte_timeout_us = 60000000, .stall_timeout_us = 60000000 };
	x->call = http_call_start(back, &o, &up_ops, x);
}
static void relay_done(struct http_req *r) { free(r->user); }
static const struct http_server_ops relay_ops = { .on_request = relay_request, .on_body = relay_body, .on_body_end = relay_end, .on_gone = gone, .on_done = relay_done };

/* ---- lanes: each asks again when it has its answer ---- */

static void ask(void *arg);
static void lane_head(void *arg, int status, struct http_headers h)
{
	(void)arg;
	(void)h;
	must(status == 200);
}
static void lane_body(void *arg, struct str piece)
{
	(void)arg;
	(void)piece;
}
static void lane_end(void *arg)
{
	answers++;
	ask(arg);
}
static void lane_fail(void *arg, enum err why)
{
	(void)arg;
	must(why == ERR_CLIENT_GONE);
}
static const struct http_call_ops lane_ops = { .on_head = lane_head, .on_body = lane_body, .on_end = lane_end, .on_fail = lane_fail };
static bool stopping;

static void ask(void *arg)
{
	static const struct http_header h[] = { { STR_INIT("Content-Type"), STR_INIT("application/json") }, { STR_INIT("Accept"), STR_INIT("*/*") },
		                                { STR_INIT("User-Agent"), STR_INIT("http_bench") }, { STR_INIT("Authorization"), STR_INIT("Bearer x") } };
	static struct str body;
	body = str_from(prompt, sizeof(prompt));
	struct http_call_opts o = { .addr = target, .method = STR("POST"), .target = STR("/v1/chat/completions"), .host = STR("bench"),
		                    .headers = { h, ARRAY_LEN(h) }, .body = &body, .n_body = 1 };
	if (!stopping)
		http_call_start(front, &o, &lane_ops, arg);
}

static void stop(void *arg) { io_loop_stop(arg); }

static double cpu_us(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static double run(const char *what, struct io_addr to, int64_t us)
{
	struct io_timer *t = io_timer_new(loop, stop, loop);
	target = to;
	answers = 0;
	stopping = false;
	for (int i = 0; i < LANES; i++)
		ask(NULL);
	io_timer_after(t, us);
	double c0 = cpu_us();
	io_loop_run(loop);
	double each = (cpu_us() - c0) / (double)answers;
	stopping = true;
	io_timer_after(t, 100000);    /* running calls end */
	io_loop_run(loop);
	io_timer_free(t);
	printf("%-24s %8.0f requests, %6.2f us of CPU each\n", what, (double)answers, each);
	return each;
}

int main(int argc, char **argv)
{
	int64_t us = (argc > 1 ? strtol(argv[1], NULL, 10) : 1) * (int64_t)1000000;
	struct http_server_opts so = http_server_defaults();
	struct http_pool_opts po = http_pool_defaults();
	struct http_server *origin, *relay;
	struct io_addr any;
	loop = io_loop_new();
	memset(prompt, 'x', sizeof(prompt));
	must(io_addr_parse(STR("127.0.0.1:0"), &any) == ERR_OK);
	must(http_server_new(loop, &any, &so, &origin_ops, NULL, &origin) == ERR_OK);
	must(http_server_new(loop, &any, &so, &relay_ops, NULL, &relay) == ERR_OK);
	origin_addr = http_server_addr(origin);
	front = http_pool_new(loop, &po);
	back = http_pool_new(loop, &po);
	double direct = run("client and server", origin_addr, us);
	double relayed = run("with a relay between", http_server_addr(relay), us);
	printf("the relay adds %.2f us of CPU a request\n", relayed - direct);
	http_pool_free(front);
	http_pool_free(back);
	http_server_free(relay);
	http_server_free(origin);
	io_loop_free(loop);
	return 0;
}
