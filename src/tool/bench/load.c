/* load.c: one `talker` per running session: builds the next turn's body, sends it, reads the answer, thinks, goes on. */
#include "bench/load.h"

#include <stdio.h>
#include <string.h>

#include "base/map.h"
#include "bench/talk.h"
#include "http/client.h"
#include "io/addr.h"
#include "wire/url.h"

struct load {
	const struct bench_load_opts *o;
	const struct bench_workload *w;
	struct bench_talk_shared shared;
	struct io_loop *loop;
	struct io_timer *next_timer, *end_timer, *progress_timer;
	struct mono began;
	size_t next;              /* the next session to start */
	size_t live, sent, done, failed;
	struct list talks;
	bool ending;
	enum err resolve_err;
};

static double now_s(const struct load *l) { return (double)mono_diff_us(io_clock(), l->began) * l->o->time_scale / 1e6; }

static int64_t real_us(const struct load *l, double sim_s) { return (int64_t)(sim_s * 1e6 / l->o->time_scale); }

static void start_due(struct load *l);

/* A closed loop of a shape goes round: how many sessions fit its time is known to nobody before. */
static bool none_left(const struct load *l) { return l->w->n == 0 || (!l->w->goes_round && l->next >= l->w->n); }

static void maybe_stop(struct load *l)
{
	bool all_started = none_left(l) || (l->o->concurrency && now_s(l) >= l->o->duration_s) || l->ending;
	if (l->live == 0 && all_started)
		io_loop_stop(l->loop);
}

static void on_turn(void *arg, bool sent, bool ok)
{
	struct load *l = arg;
	l->sent += sent;
	l->done += !sent;
	l->failed += !sent && !ok;
}

static void on_talk_end(void *arg)
{
	struct load *l = arg;
	l->live--;
	if (l->o->concurrency && !l->ending)
		start_due(l);
	maybe_stop(l);
}

static void start_one(struct load *l)
{
	const struct bench_session *s = &l->w->sessions[l->next++ % l->w->n];
	double at = l->o->concurrency ? now_s(l) : s->start_s;
	l->live++;
	bench_talk_start(&l->shared, s, at, &l->talks);
}

static void start_due(struct load *l)
{
	if (l->o->concurrency) {
		while (l->live < l->o->concurrency && !none_left(l) && now_s(l) < l->o->duration_s)
			start_one(l);
		return;
	}
	while (l->next < l->w->n && l->w->sessions[l->next].start_s <= now_s(l))
		start_one(l);
	if (l->next < l->w->n)
		io_timer_at(l->next_timer, mono_add_us(l->began, real_us(l, l->w->sessions[l->next].start_s)));
}

static void on_next(void *arg) { start_due(arg); }

static void on_end(void *arg)
{
	struct load *l = arg;
	l->ending = true;
	LIST_FOR_SAFE(&l->talks, it)
		bench_talk_abort(it);
	maybe_stop(l);
}

static void on_progress(void *arg)
{
	struct load *l = arg;
	fprintf(stderr, "  %5.0f s of %.0f  sent %zu  answered %zu  failed %zu  running %zu\n", now_s(l), l->o->duration_s, l->sent, l->done, l->failed, l->sent - l->done);
}

static void begin(struct load *l)
{
	l->began = io_clock();
	l->shared.began = l->began;
	l->next_timer = io_timer_new(l->loop, on_next, l);
	l->end_timer = io_timer_new(l->loop, on_end, l);
	l->progress_timer = io_timer_new(l->loop, on_progress, l);
	io_timer_after(l->end_timer, real_us(l, l->o->duration_s + l->o->drain_s));
	if (l->o->progress)
		io_timer_every(l->progress_timer, 2000000);
	start_due(l);
	maybe_stop(l);
}

static void on_resolved(void *arg, enum err e, struct io_addr addr)
{
	struct load *l = arg;
	l->resolve_err = e;
	l->shared.addr = addr;
	if (e == ERR_OK)
		begin(l);
	else
		io_loop_stop(l->loop);
}

static void finish(struct load *l)
{
	io_timer_free(l->next_timer);
	io_timer_free(l->end_timer);
	io_timer_free(l->progress_timer);
	http_pool_free(l->shared.pool);
	io_loop_free(l->loop);
	map_done(&l->shared.workers);
}

enum err bench_load_run(const struct bench_load_opts *o, const struct bench_workload *w, bench_samples *ret_samples)
{
	struct url u;
	if (url_parse(o->target, &u) != ERR_OK || u.scheme != URL_HTTP)
		return ERR_BAD_REQUEST;
	struct load l = { .o = o, .w = w, .loop = io_loop_new() };
	struct http_pool_opts po = http_pool_defaults();
	po.max_idle_per_addr = 4096;
	struct buf host;
	buf_init(&host, 512);
	TRY(url_put_host_port(&host, u.host, u.ipv6, u.port));
	list_init(&l.talks);
	l.shared = (struct bench_talk_shared){ .o = o, .loop = l.loop, .pool = http_pool_new(l.loop, &po), .host = buf_str(&host), .prefix = u.path,
	                                       .samples = ret_samples, .on_turn = on_turn, .on_end = on_talk_end, .arg = &l };
	map_init(&l.shared.workers);
	io_resolve(l.loop, u.host, u.port, on_resolved, &l);
	io_loop_run(l.loop);
	enum err e = l.resolve_err;
	finish(&l);
	buf_done(&host);
	return e;
}
