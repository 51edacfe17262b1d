/* The hub's own life: the brain, its tick, the list of workers against the configuration, views. */
#include "feed/feed.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/log.h"
#include "feed/feed_priv.h"

/* A view costs about a microsecond a worker; twenty times as long is rest, so that thousands that join at once do not fill the loop. */
enum { TICK_US = 100000, VIEW_MIN_US = 20000, VIEW_REST_US_PER_WORKER = 20, TICKS_PER_S = 10, KEPT_S = 60, BECOMING_US = 10000000 };

_Static_assert(BRAIN_KV == 0 && BRAIN_LEAST_REQUEST == 1 && BRAIN_ROUND_ROBIN == 2 && BRAIN_RANDOM == 3 && BRAIN_P2C_EWMA == 4 && BRAIN_CONSISTENT_HASH == 5,
               "the words of option routing stand in the order of enum brain_routing");

static const struct obs_def rows[] = { FEED_METRICS(OBS_ROW_DEF) };

const struct obs_def *feed_metric_rows(size_t *ret_n)
{
	*ret_n = ARRAY_LEN(rows);
	return rows;
}

const struct obs_set *feed_metrics(const struct feed *f) { return f->metrics; }
void feed_count(struct feed *f, uint32_t row, uint64_t n) { obs_add(f->metrics, obs_find(f->metrics, row, NULL), n); }
void feed_count1(struct feed *f, uint32_t row, const char *label) { obs_add(f->metrics, obs_find(f->metrics, row, (struct str[]){ str_of(label) }), 1); }

void feed_count2(struct feed *f, uint32_t row, const char *label, const char *label2)
{
	obs_add(f->metrics, obs_find(f->metrics, row, (struct str[]){ str_of(label), str_of(label2) }), 1);
}

/* Soon: what changed inside a call of the brain cannot be looked at before the call is over. */
void feed_mark(struct feed *f)
{
	if (!f->view_dirty && f->view_timer != NULL)
		io_timer_after(f->view_timer, VIEW_MIN_US);
	f->view_dirty = true;
}

/* ---- what the brain says */

static struct feed_worker *worker_of(const struct feed *f, brain_worker id) { return map_get_ptr(&f->by_id, id); }

static void on_health(void *arg, brain_worker id, enum brain_health from, enum brain_health to, const char *why)
{
	struct feed *f = arg;
	const struct feed_worker *w = worker_of(f, id);
	feed_mark(f);
	if (w == NULL)
		return;
	enum log_level level = to == BRAIN_DOWN || to == BRAIN_DEGRADED ? LOG_LEVEL_WARN : LOG_LEVEL_INFO;
	LOG_AT(level, "worker_health", "worker=%.*s from=%s to=%s why=\"%s\"", STR_ARG(w->conf.url), brain_health_name(from), brain_health_name(to), why);
}

static void on_panic(void *arg, struct str pool, bool on)
{
	struct feed *f = arg;
	feed_mark(f);
	LOG_WARN(on ? "pool_panic" : "pool_panic_over", "pool=%s why=\"%s\"", LOG_Q(pool.n ? pool : STR("-")), on ? "every worker is suspect: all are tried" : "a worker is usable again");
}

static void on_mismatch(void *arg, brain_worker id, const char *cause, double share)
{
	const struct feed_worker *w = worker_of(arg, id);
	LOG_WARN_EVERY(60, "cache_prediction_wrong", "worker=%s exact_share=%.2f likely_cause=\"%s\"", w != NULL ? w->conf.url.p : "-", share, cause);
}

static void on_work(void *arg)
{
	struct feed *f = arg;
	io_later(f->loop, &f->work);
}

static void work(void *arg)
{
	struct feed *f = arg;
	if (brain_work(f->brain))
		io_later(f->loop, &f->work);
}

static const struct brain_ops ops = { on_health, on_panic, on_mismatch, on_work };

/* ---- views */

static void publish(struct feed *f)
{
	struct feed_view *old = f->view;
	f->view = feed_view_make(f);
	f->view_dirty = false;
	f->view_rest_until = mono_add_us(io_now(f->loop), (int64_t)f->view->n_workers * VIEW_REST_US_PER_WORKER);
	feed_count(f, FEED_M_VIEWS, 1);
	feed_view_unref(old);
	if (old != NULL && f->on_view != NULL)
		f->on_view(f->arg, f->view);
}

static bool view_is_old(const struct feed *f) { return f->view_dirty || f->view->generation != brain_generation(f->brain); }

/* ---- workers against configuration */

const struct conf_pool *feed_pool(const struct feed *f, struct str name)
{
	for (size_t i = 0; i < f->conf->n_pools; i++)
		if (str_eq(f->conf->pools[i].name, name))
			return &f->conf->pools[i];
	return NULL;
}

/* `running`: the workers that are not draining, by their URL. */
static void want(struct feed *f, struct map *running, const struct conf_worker *c, const struct conf_pool *p, struct str source)
{
	uint64_t key = hash_str(c->url, 0);
	struct feed_worker *w = map_get_ptr(running, key);
	if (w == NULL || !str_eq(w->conf.url, c->url)) {
		map_put_ptr(running, key, feed_worker_new(f, c, p, source));
		return;
	}
	if (w->wanted) {                     /* the configuration stands before discovery */
		if (!w->said_twice)
			LOG_WARN("worker_named_twice", "worker=%.*s pool=%s source=%s ignored=%s", STR_ARG(w->conf.url), LOG_Q(w->pool.n ? w->pool : STR("-")), LOG_Q(w->source), LOG_Q(source));
		w->said_twice = true;
		return;
	}
	w->wanted = true;
	feed_worker_change(w, c, p, source);
}

static void want_all(struct feed *f)
{
	struct map running;
	map_init(&running);
	LIST_FOR(&f->workers, it) {
		struct feed_worker *w = container_of(it, struct feed_worker, node);
		w->wanted = false;
		if (!w->draining)
			map_put_ptr(&running, hash_str(w->conf.url, 0), w);
	}
	for (size_t i = 0; i < f->conf->n_pools; i++) {
		const struct conf_pool *p = &f->conf->pools[i];
		for (size_t k = 0; k < p->n_workers; k++)
			want(f, &running, &p->workers[k], p, p->name.n > 0 ? STR("config") : STR("flags"));
	}
	for (size_t i = 0; i < f->discs.n; i++) {
		const struct conf_pool *p = feed_pool(f, feed_disc_pool(f->discs.p[i]));
		const struct conf_worker *list;
		size_t n = feed_disc_workers(f->discs.p[i], &list);
		for (size_t k = 0; p != NULL && k < n; k++)
			want(f, &running, &list[k], p, feed_disc_path(f->discs.p[i]));
	}
	map_done(&running);
}

static bool shares_a_model(const struct feed_worker *a, const struct feed_worker *b)
{
	for (size_t i = 0; i < a->models.n; i++)
		for (size_t k = 0; k < b->models.n; k++)
			if (str_eq(a->models.p[i].id, b->models.p[k].id))
				return true;
	return false;
}

/* Is somebody of its pool ready to take over; is somebody about to be? Where the pool is gone too (it has another name now),
 * whoever serves one of its models. */
static bool has_successor(const struct feed *f, const struct feed_worker *old, bool *ret_becoming)
{
	bool pool_gone = feed_pool(f, old->pool) == NULL;
	*ret_becoming = false;
	LIST_FOR(&f->workers, it) {
		const struct feed_worker *w = container_of(it, struct feed_worker, node);
		if (!w->wanted || w->draining || (!pool_gone && !str_eq(w->pool, old->pool)))
			continue;
		if (!w->up || w->models.n == 0)
			*ret_becoming |= mono_diff_us(io_now(f->loop), w->born) < BECOMING_US;
		else if (!pool_gone || shares_a_model(w, old))
			return true;
	}
	return false;
}

/* Make before break: when a whole pool is replaced in one step, the old workers serve on until a new one was learnt. */
static void drain_unwanted(struct feed *f)
{
	LIST_FOR_SAFE(&f->workers, it) {
		struct feed_worker *w = container_of(it, struct feed_worker, node);
		bool becoming;
		if (!w->wanted && !w->draining && (has_successor(f, w, &becoming) || !becoming))
			feed_worker_drain(w);
	}
}

void feed_apply(struct feed *f)
{
	want_all(f);
	drain_unwanted(f);
	feed_mark(f);
	feed_refresh(f);
}

static bool is_kept(const struct feed *f, const struct feed_disc *d)
{
	const struct conf_pool *p = feed_pool(f, feed_disc_pool(d));
	return p != NULL && str_eq(p->discovery_file, feed_disc_path(d));
}

static bool is_followed(const struct feed *f, const struct conf_pool *p)
{
	for (size_t i = 0; i < f->discs.n; i++)
		if (str_eq(feed_disc_pool(f->discs.p[i]), p->name) && str_eq(feed_disc_path(f->discs.p[i]), p->discovery_file))
			return true;
	return false;
}

static void follow_files(struct feed *f)
{
	for (size_t i = 0; i < f->discs.n;) {
		if (is_kept(f, f->discs.p[i])) {
			feed_disc_read(f->discs.p[i++]);     /* what the pool says for all may have changed */
			continue;
		}
		feed_disc_free(f->discs.p[i]);
		f->discs.p[i] = f->discs.p[--f->discs.n];
	}
	for (size_t i = 0; i < f->conf->n_pools; i++) {
		const struct conf_pool *p = &f->conf->pools[i];
		if (p->discovery_file.n > 0 && !is_followed(f, p))
			VEC_PUSH(&f->discs, feed_disc_new(f, p->name, p->discovery_file));
	}
}

void feed_configure(struct feed *f, struct conf *c)
{
	struct conf *old = f->conf;
	f->conf = conf_ref(c);
	model_store_refresh(f->tokenizers);
	follow_files(f);
	feed_apply(f);
	conf_unref(old);
}

void feed_reload_tokenizers(struct feed *f)
{
	model_store_reload(f->tokenizers);
	feed_mark(f);
	feed_refresh(f);
}

bool feed_guess_taken(const struct feed_worker *w)
{
	LIST_FOR(&w->feed->workers, it) {
		const struct feed_worker *o = container_of(it, struct feed_worker, node);
		if (o != w && !o->draining && !o->sources_told && o->conf.events.n == 0 && str_eq(o->conf.host, w->conf.host))
			return true;
	}
	return false;
}

/* ---- the tick */

static bool brain_knows(const struct brain_worker_view *views, size_t n, brain_worker id)
{
	for (size_t i = 0; i < n; i++)
		if (views[i].id == id)
			return true;
	return false;
}

/* Drained workers are let go when the brain has let them go: their last request has ended. */
static void reap(struct feed *f)
{
	bool any = false;
	LIST_FOR(&f->workers, it)
		any |= container_of(it, struct feed_worker, node)->draining;
	if (!any)
		return;
	struct arena a;
	const struct brain_worker_view *views;
	arena_init(&a, 0);
	size_t n = brain_workers(f->brain, &views, &a);
	LIST_FOR_SAFE(&f->workers, it) {
		struct feed_worker *w = container_of(it, struct feed_worker, node);
		if (!w->draining || brain_knows(views, n, w->id))
			continue;
		LOG_INFO("worker_removed", "worker=%.*s", STR_ARG(w->conf.url));
		feed_worker_free(w);
		feed_mark(f);
	}
	arena_done(&a);
}

static void tick(void *arg)
{
	struct feed *f = arg;
	brain_tick(f->brain, io_now(f->loop));
	LIST_FOR(&f->workers, it) {
		struct feed_worker *w = container_of(it, struct feed_worker, node);
		feed_follow_again(w);
		for (uint32_t r = 0; r < w->n_ranks; r++)
			if (w->ranks[r] != NULL)
				feed_rank_tick(w->ranks[r]);
	}
	drain_unwanted(f);
	feed_refresh(f);
	if (++f->ticks % TICKS_PER_S == 0)
		reap(f);
	if (f->ticks == KEPT_S * TICKS_PER_S) {
		feed_kept_free(f->kept);
		f->kept = NULL;
	}
}

void feed_refresh(struct feed *f)
{
	if (f->view == NULL || !view_is_old(f))
		return;
	if (mono_diff_us(f->view_rest_until, io_now(f->loop)) <= 0)
		publish(f);
	else
		io_timer_at(f->view_timer, f->view_rest_until);
}

static void quick(void *arg) { feed_refresh(arg); }

/* ---- life */

static struct brain *make_brain(struct feed *f, uint64_t seed)
{
	struct brain_opts o = {
		.routing = (enum brain_routing)f->conf->opts.brain.routing, .seed = f->conf->opts.brain.seed != 0 ? (uint64_t)f->conf->opts.brain.seed : seed,
		.receipts = (uint32_t)f->conf->opts.brain.receipts,
	};
	return brain_new(&o, &ops, f);
}

struct feed *feed_new(const struct feed_opts *o)
{
	struct feed *f = must_calloc(1, sizeof(*f));
	uint64_t seed = o->seed;
	if (seed == 0)
		io_random(&seed, sizeof(seed));
	f->loop = o->loop;
	f->zhub = o->zhub;
	f->conf = conf_ref(o->conf);
	f->rand.s = seed;
	f->on_view = o->on_view;
	f->arg = o->arg;
	f->metrics = obs_set_new(rows, FEED_M_COUNT);
	f->tokenizers = model_store_new(f->loop);
	list_init(&f->workers);
	map_init(&f->by_id);
	list_init(&f->pending);
	io_soon_init(&f->work, work, f);
	f->brain = make_brain(f, seed);
	struct http_pool_opts po = http_pool_defaults();
	po.connect_timeout_us = MIN(po.connect_timeout_us, f->conf->opts.feed.probe_timeout_us);
	f->pool = http_pool_new(f->loop, &po);
	f->pump = io_timer_new(f->loop, feed_pump, f);
	f->view_timer = io_timer_new(f->loop, quick, f);
	if (f->zhub && f->conf->opts.feed.index_file.n)
		f->kept = feed_kept_read(f->conf->opts.feed.index_file.p);
	follow_files(f);
	feed_apply(f);
	publish(f);
	f->tick = io_timer_new(f->loop, tick, f);
	io_timer_every(f->tick, TICK_US);
	return f;
}

void feed_free(struct feed *f)
{
	if (f == NULL)
		return;
	for (size_t i = 0; i < f->discs.n; i++)
		feed_disc_free(f->discs.p[i]);
	VEC_FREE(&f->discs);
	LIST_FOR_SAFE(&f->workers, it)
		feed_worker_free(container_of(it, struct feed_worker, node));
	io_timer_free(f->tick);
	io_timer_free(f->view_timer);
	io_timer_free(f->pump);
	io_soon_cancel(&f->work);
	map_done(&f->by_id);
	feed_kept_free(f->kept);
	http_pool_free(f->pool);
	feed_view_unref(f->view);
	brain_free(f->brain);
	model_store_free(f->tokenizers);
	obs_set_free(f->metrics);
	conf_unref(f->conf);
	free(f);
}

struct brain *feed_brain(struct feed *f) { return f->brain; }
size_t feed_tokenizers(const struct feed *f, struct arena *a, const struct model_info **ret_infos) { return model_store_list(f->tokenizers, a, ret_infos); }
struct feed_view *feed_view_now(const struct feed *f) { return f->view; }

void feed_drain(struct feed *f)
{
	f->draining = true;
	publish(f);
}

/* ---- looking in */

static void info_of(const struct feed_worker *w, struct arena *a, struct feed_worker_info *i)
{
	struct feed_rank_info *ranks = arena_new(a, struct feed_rank_info, w->n_ranks + 1);
	struct conf_label *labels = arena_new(a, struct conf_label, w->conf.n_labels + 1);
	for (size_t k = 0; k < w->conf.n_labels; k++)
		labels[k] = (struct conf_label){ arena_str(a, w->conf.labels[k].name), arena_str(a, w->conf.labels[k].value) };
	for (uint32_t r = 0; r < w->n_ranks; r++)
		if (w->ranks[r] != NULL)
			feed_rank_info(w->ranks[r], a, &ranks[r]);
	*i = (struct feed_worker_info){
		.id = w->id, .url = arena_str(a, w->conf.url), .pool = arena_str(a, w->pool), .source = arena_str(a, w->source), .role = arena_str(a, w->conf.role),
		.accelerator = arena_str(a, w->conf.accelerator), .labels = labels, .n_labels = w->conf.n_labels, .resolved = w->addr.len > 0, .has_key = w->conf.api_key.n > 0,
		.asleep = w->metrics.asleep, .probe = arena_str(a, str_of(w->probe)), .events_why = w->events_why != NULL ? str_of(w->events_why) : (struct str){ "", 0 },
		.probes = w->jobs[FEED_JOB_HEALTH].asked, .probe_failures = w->jobs[FEED_JOB_HEALTH].failed, .scrapes = w->jobs[FEED_JOB_METRICS].asked,
		.scrape_failures = w->jobs[FEED_JOB_METRICS].failed, .restarts = w->restarts, .ranks = ranks, .n_ranks = w->n_ranks,
	};
}

bool feed_info(const struct feed *f, brain_worker id, struct arena *a, struct feed_worker_info *ret_info)
{
	const struct feed_worker *w = worker_of(f, id);
	if (w != NULL)
		info_of(w, a, ret_info);
	return w != NULL;
}

size_t feed_infos(const struct feed *f, size_t max, struct arena *a, const struct feed_worker_info **ret_infos)
{
	struct feed_worker_info *infos = arena_new(a, struct feed_worker_info, max);
	size_t n = 0;
	LIST_FOR(&f->workers, it)
		if (n < max)
			info_of(container_of(it, struct feed_worker, node), a, &infos[n++]);
	*ret_infos = infos;
	return n;
}

size_t feed_discoveries(const struct feed *f, struct arena *a, const struct feed_discovery_info **ret_infos)
{
	struct feed_discovery_info *infos = arena_new(a, struct feed_discovery_info, f->discs.n + 1);
	for (size_t i = 0; i < f->discs.n; i++)
		feed_disc_info(f->discs.p[i], a, &infos[i]);
	*ret_infos = infos;
	return f->discs.n;
}
