/* A discovery file: one worker a line, written by whoever starts the workers (Slurm, Ray, a shell). Scripts write it anew
 * while we read: an empty or unreadable file keeps the old list, a bad line costs only itself. */
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "conf/list.h"
#include "feed/feed_priv.h"
#include "io/file.h"

enum { MAX_SAID_LINES = 10 };

struct feed_disc {
	struct feed *feed;
	struct str pool, path;               /* owned */
	struct io_watch *watch;
	struct arena arena;                  /* of the current list */
	VEC(struct conf_worker) workers;
	size_t bad_lines;
	char fault[256];
};

struct reading { const struct feed_disc *d; unsigned said; };

static void say_line(void *arg, unsigned line, const char *what)
{
	struct reading *r = arg;
	char quoted[400];
	if (r->said++ < MAX_SAID_LINES)
		LOG_WARN("discovery_line", "file=%s line=%u what=%s", LOG_Q(r->d->path), line, log_quote(str_of(what), quoted, sizeof(quoted)));
}

static void set_fault(struct feed_disc *d, const char *why)
{
	snprintf(d->fault, sizeof(d->fault), "%s: the old list of %zu workers stays", why, d->workers.n);
	LOG_WARN("discovery_kept", "file=%s why=\"%s\" workers=%zu", LOG_Q(d->path), why, d->workers.n);
	feed_count1(d->feed, FEED_M_DISCOVERY, "kept");
}

static void take(struct feed_disc *d, const struct conf_list *l, struct arena *a)
{
	if (l->over > 0)
		LOG_ERROR("discovery_too_many", "file=%s workers_left_out=%zu max=%d", LOG_Q(d->path), l->over, BRAIN_MAX_WORKERS);
	feed_count1(d->feed, FEED_M_DISCOVERY, "read");
	LOG_INFO("discovery_read", "file=%s workers=%zu bad_lines=%zu", LOG_Q(d->path), l->workers.n, l->bad);
	VEC_FREE(&d->workers);
	arena_done(&d->arena);
	d->workers.p = l->workers.p;
	d->workers.n = l->workers.n;
	d->workers.cap = l->workers.cap;
	d->arena = *a;
	d->fault[0] = 0;
}

void feed_disc_read(struct feed_disc *d)
{
	const struct conf_pool *pool = feed_pool(d->feed, d->pool);
	struct reading r = { .d = d };
	struct conf_list list;
	struct arena a;
	if (pool == NULL)
		return;
	arena_init(&a, 0);
	const char *why = conf_list_read(d->path, pool, &a, say_line, &r, &list);
	if (why == NULL) {
		d->bad_lines = list.bad;
		feed_count(d->feed, FEED_M_BAD_LINES, list.bad);
	}
	if (why == NULL && list.workers.n > 0) {
		take(d, &list, &a);
		return;
	}
	set_fault(d, why != NULL ? why : list.bad > 0 ? "no line of the file names a worker" : "the file is empty");
	VEC_FREE(&list.workers);
	arena_done(&a);
}

static void changed(void *arg)
{
	struct feed_disc *d = arg;
	feed_disc_read(d);
	feed_apply(d->feed);
}

struct feed_disc *feed_disc_new(struct feed *f, struct str pool, struct str path)
{
	struct feed_disc *d = must_calloc(1, sizeof(*d));
	d->feed = f;
	d->pool = str_clone(pool);
	d->path = str_clone(path);
	arena_init(&d->arena, 0);
	d->watch = io_watch_new(f->loop, d->path.p, changed, d);
	feed_disc_read(d);
	return d;
}

void feed_disc_free(struct feed_disc *d)
{
	if (d == NULL)
		return;
	io_watch_free(d->watch);
	VEC_FREE(&d->workers);
	arena_done(&d->arena);
	free((void *)(uintptr_t)d->pool.p);
	free((void *)(uintptr_t)d->path.p);
	free(d);
}

struct str feed_disc_pool(const struct feed_disc *d) { return d->pool; }
struct str feed_disc_path(const struct feed_disc *d) { return d->path; }

size_t feed_disc_workers(const struct feed_disc *d, const struct conf_worker **ret_w)
{
	*ret_w = d->workers.p;
	return d->workers.n;
}

void feed_disc_info(const struct feed_disc *d, struct arena *a, struct feed_discovery_info *ret_i)
{
	*ret_i = (struct feed_discovery_info){ arena_str(a, d->pool), arena_str(a, d->path), arena_str(a, str_of(d->fault)), d->workers.n, d->bad_lines };
}
