/* A discovery file: one worker a line, written by whoever starts the workers (Slurm, Ray, a shell). Scripts write it anew
 * while we read: an empty or unreadable file keeps the old list, a bad line costs only itself. */
#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/log.h"
#include "conf/worker.h"
#include "feed/feed_priv.h"
#include "io/file.h"

enum { MAX_FILE_BYTES = 4 << 20, MAX_SAID_LINES = 10 };

struct feed_disc {
	struct feed *feed;
	struct str pool, path;               /* owned */
	struct io_watch *watch;
	struct arena arena;                  /* of the current list */
	VEC(struct conf_worker) workers;
	size_t bad_lines;
	char fault[256];
};

struct reading { struct feed_disc *d; const struct conf_pool *pool; struct arena arena; VEC(struct conf_worker) workers; struct map at; size_t bad, line, over; };

static void say_line(struct reading *r, const char *what)
{
	char quoted[400];
	if (r->bad <= MAX_SAID_LINES)
		LOG_WARN("discovery_line", "file=%s line=%zu what=%s", r->d->path.p, r->line, log_quote(str_of(what), quoted, sizeof(quoted)));
}

static bool known(const struct reading *r, struct str url)
{
	uint64_t at;
	return map_get(&r->at, hash_str(url, 0), &at) && str_eq(r->workers.p[at].url, url);
}

static void add(struct reading *r, const struct conf_worker *w)
{
	map_put(&r->at, hash_str(w->url, 0), r->workers.n);
	VEC_PUSH(&r->workers, *w);
}

static void read_line(struct reading *r, struct str line)
{
	struct conf_worker w;
	const char *what;
	enum conf_line kind = conf_worker_line(line, r->pool, &r->arena, &w, &what);
	r->bad += kind == CONF_LINE_BAD;
	if (what != NULL)
		say_line(r, what);
	if (kind == CONF_LINE_WORKER && known(r, w.url))
		say_line(r, "this worker stands in the file already");
	else if (kind == CONF_LINE_WORKER && r->workers.n < BRAIN_MAX_WORKERS)
		add(r, &w);
	else if (kind == CONF_LINE_WORKER)
		r->over++;
}

static void set_fault(struct feed_disc *d, const char *why)
{
	snprintf(d->fault, sizeof(d->fault), "%s: the old list of %zu workers stays", why, d->workers.n);
	LOG_WARN("discovery_kept", "file=%s why=\"%s\" workers=%zu", d->path.p, why, d->workers.n);
	feed_count1(d->feed, FEED_M_DISCOVERY, "kept");
}

static void take(struct feed_disc *d, struct reading *r)
{
	feed_count(d->feed, FEED_M_BAD_LINES, r->bad);
	d->bad_lines = r->bad;
	if (r->workers.n == 0) {
		set_fault(d, r->bad > 0 ? "no line of the file names a worker" : "the file is empty");
		VEC_FREE(&r->workers);
		arena_done(&r->arena);
		return;
	}
	if (r->over > 0)
		LOG_ERROR("discovery_too_many", "file=%s workers_left_out=%zu at most %d are allowed in one process", d->path.p, r->over, BRAIN_MAX_WORKERS);
	feed_count1(d->feed, FEED_M_DISCOVERY, "read");
	LOG_INFO("discovery_read", "file=%s workers=%zu bad_lines=%zu", d->path.p, r->workers.n, r->bad);
	VEC_FREE(&d->workers);
	arena_done(&d->arena);
	d->workers.p = r->workers.p;
	d->workers.n = r->workers.n;
	d->workers.cap = r->workers.cap;
	d->arena = r->arena;
	d->fault[0] = 0;
}

void feed_disc_read(struct feed_disc *d)
{
	struct buf b = { 0 };
	enum err e = io_file_read(d->path.p, MAX_FILE_BYTES, &b);
	if (e != ERR_OK) {
		set_fault(d, e == ERR_NOT_FOUND ? "there is no such file" : e == ERR_LIMIT ? "the file is larger than 4 MiB" : "the file cannot be read");
		buf_done(&b);
		return;
	}
	struct reading r = { .d = d, .pool = feed_pool(d->feed, d->pool) };
	arena_init(&r.arena, 0);
	map_init(&r.at);
	for (struct str line, rest = buf_str(&b); rest.n > 0 && r.pool != NULL;) {
		str_cut(rest, '\n', &line, &rest);
		r.line++;
		read_line(&r, line);
	}
	buf_done(&b);
	map_done(&r.at);
	take(d, &r);
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
