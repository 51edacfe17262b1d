/* One worker of the fleet: its own copy of the configuration, its place in the brain, its questions and its events. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "feed/feed_priv.h"
#include "sched/profile.h"

static struct brain_worker_conf brain_conf(const struct feed_worker *w, const struct conf_pool *p)
{
	return (struct brain_worker_conf){ .pool = w->pool, .url = w->conf.url, .accelerator = w->conf.accelerator, .has_routing = p->has_routing, .routing = (enum brain_routing)p->routing };
}

static void copy_conf(struct feed_worker *w, const struct conf_worker *c, const struct conf_pool *p, struct str source)
{
	struct arena *a = &w->arena, old = w->arena;
	arena_init(a, 0);
	struct conf_label *labels = arena_new(a, struct conf_label, c->n_labels + 1);
	for (size_t i = 0; i < c->n_labels; i++)
		labels[i] = (struct conf_label){ arena_str(a, c->labels[i].name), arena_str(a, c->labels[i].value) };
	w->conf = (struct conf_worker){
		.url = arena_str(a, c->url), .host = arena_str(a, c->host), .ipv6 = c->ipv6, .port = c->port, .prefix = arena_str(a, c->prefix), .events = arena_str(a, c->events),
		.replay = arena_str(a, c->replay), .events_off = c->events_off, .role = arena_str(a, c->role), .accelerator = arena_str(a, c->accelerator), .labels = labels,
		.n_labels = c->n_labels, .api_key = arena_str(a, c->api_key),
	};
	w->pool = arena_str(a, p->name);
	w->source = arena_str(a, source);
	w->engine = engine_of(p->engine);
	w->drop_authorization = p->drop_authorization;
	w->host_header = str_of(arena_printf(a, c->ipv6 ? "[%.*s]:%u" : "%.*s:%u", STR_ARG(c->host), c->port));
	w->authorization = c->api_key.n > 0 ? str_of(arena_printf(a, "Bearer %.*s", STR_ARG(c->api_key))) : (struct str){ "", 0 };
	arena_done(&old);
}

static void say_unknown_accelerator(const struct feed_worker *w)
{
	bool known = true;
	if (w->conf.accelerator.n > 0)
		(void)sched_profile_find(w->conf.accelerator, &known);
	if (!known)
		LOG_WARN("accelerator_unknown", "worker=%.*s accelerator=%s instead=%s what=\"start values, corrected by what is measured\"", STR_ARG(w->conf.url),
		         LOG_Q(w->conf.accelerator), SCHED_PROFILE_DEFAULT);
}

static void own_address(struct feed_worker *w)
{
	struct io_addr addr;
	w->literal = io_addr_of_host(w->conf.host, w->conf.port, &addr) == ERR_OK;
	if (w->literal)
		w->addr = addr;
}

struct feed_worker *feed_worker_new(struct feed *f, const struct conf_worker *c, const struct conf_pool *p, struct str source)
{
	struct feed_worker *w = must_calloc(1, sizeof(*w));
	w->feed = f;
	w->refs = 1;
	w->wanted = true;
	w->born = io_now(f->loop);
	w->reopen_at = MONO_NEVER;
	snprintf(w->probe, sizeof(w->probe), "not asked yet");
	arena_init(&w->arena, 0);
	arena_init(&w->models_arena, 0);
	arena_init(&w->sources_arena, 0);
	list_init(&w->node);
	copy_conf(w, c, p, source);
	own_address(w);
	struct brain_worker_conf bc = brain_conf(w, p);
	enum err e = brain_worker_add(f->brain, &bc, io_now(f->loop), &w->id);
	if (e != ERR_OK) {
		LOG_ERROR("worker_refused", "worker=%.*s why=\"%s\" max=%d", STR_ARG(w->conf.url), err_text(e), BRAIN_MAX_WORKERS);
		feed_worker_free(w);
		return NULL;
	}
	LOG_INFO("worker_added", "worker=%.*s pool=%s source=%s", STR_ARG(w->conf.url), LOG_Q(w->pool.n ? w->pool : STR("-")), LOG_Q(w->source));
	say_unknown_accelerator(w);
	list_add_tail(&f->workers, &w->node);
	map_put_ptr(&f->by_id, w->id, w);
	brain_kv_status(f->brain, w->id, 0, false, false, io_now(f->loop));
	feed_jobs_start(w);
	return w;
}

static bool same_labels(const struct conf_worker *a, const struct conf_worker *b)
{
	if (a->n_labels != b->n_labels)
		return false;
	for (size_t i = 0; i < a->n_labels; i++)
		if (!str_eq(a->labels[i].name, b->labels[i].name) || !str_eq(a->labels[i].value, b->labels[i].value))
			return false;
	return true;
}

static bool same_conf(const struct feed_worker *w, const struct conf_worker *c, const struct conf_pool *p)
{
	const struct conf_worker *o = &w->conf;
	return str_eq(o->events, c->events) && str_eq(o->replay, c->replay) && o->events_off == c->events_off && str_eq(o->role, c->role) && str_eq(o->accelerator, c->accelerator) &&
	       str_eq_const_time(o->api_key, c->api_key) && same_labels(o, c) && str_eq(w->pool, p->name) && w->drop_authorization == p->drop_authorization;
}

void feed_worker_change(struct feed_worker *w, const struct conf_worker *c, const struct conf_pool *p, struct str source)
{
	bool same = same_conf(w, c, p);
	bool events_moved = !str_eq(w->conf.events, c->events) || !str_eq(w->conf.replay, c->replay) || w->conf.events_off != c->events_off;
	copy_conf(w, c, p, source);
	struct brain_worker_conf bc = brain_conf(w, p);
	brain_worker_update(w->feed->brain, w->id, &bc, io_now(w->feed->loop));
	feed_mark(w->feed);
	if (!same)
		LOG_INFO("worker_changed", "worker=%.*s pool=%s", STR_ARG(w->conf.url), LOG_Q(w->pool.n ? w->pool : STR("-")));
	if (!events_moved)
		return;
	w->sources_final = w->sources_told = false;
	feed_job_soon(w, FEED_JOB_SOURCES);
}

void feed_worker_drain(struct feed_worker *w)
{
	if (w->draining)
		return;
	LOG_INFO("worker_draining", "worker=%.*s", STR_ARG(w->conf.url));
	w->draining = true;
	feed_mark(w->feed);
	feed_follow_stop(w);
	brain_worker_drain(w->feed->brain, w->id, io_now(w->feed->loop));
}

static void unref(struct feed_worker *w)
{
	if (--w->refs > 0)
		return;
	arena_done(&w->arena);
	arena_done(&w->models_arena);
	arena_done(&w->sources_arena);
	free((void *)(uintptr_t)w->version.p);
	free(w);
}

void feed_worker_free(struct feed_worker *w)
{
	feed_jobs_stop(w);
	feed_follow_stop(w);
	list_del(&w->node);
	map_del(&w->feed->by_id, w->id);
	w->dead = true;
	unref(w);
}

void feed_worker_relearn(struct feed_worker *w, const char *why)
{
	w->restarts++;
	w->metrics.started_s = 0;            /* whatever the next scrape says is this process */
	feed_count(w->feed, FEED_M_RELEARNT, 1);
	LOG_INFO("worker_relearnt", "worker=%.*s why=\"%s\"", STR_ARG(w->conf.url), why);
	w->sources_final = w->version_final = w->embeds_final = false;
	feed_job_soon(w, FEED_JOB_VERSION);
	feed_job_soon(w, FEED_JOB_MODELS);
	feed_job_soon(w, FEED_JOB_METRICS);
	feed_job_soon(w, FEED_JOB_SOURCES);
	for (uint32_t r = 0; r < w->n_ranks; r++)
		if (w->ranks[r] != NULL)
			feed_rank_reconnected(w->ranks[r]);
}

/* ---- names */

static void resolved(void *arg, enum err e, struct io_addr a)
{
	struct feed_worker *w = arg;
	w->resolving = false;
	if (!w->dead && e == ERR_OK && (w->addr.len != a.len || memcmp(w->addr.raw, a.raw, a.len) != 0)) {
		w->addr = a;
		feed_mark(w->feed);
	}
	if (!w->dead && e != ERR_OK && w->addr.len == 0)
		LOG_WARN_EVERY(30, "worker_unresolved", "worker=%.*s", STR_ARG(w->conf.url));
	unref(w);
}

void feed_worker_resolve(struct feed_worker *w)
{
	if (w->literal || w->resolving)
		return;
	w->resolving = true;
	w->refs++;
	io_resolve(w->feed->loop, w->conf.host, w->conf.port, resolved, w);
}
