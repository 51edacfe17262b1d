/* The questions a worker is asked again and again, each with its own timer and jitter, at most one of a kind under way:
 * is it healthy, which models, its gauges, where its events are, which version, does it embed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "feed/feed_priv.h"
#include "text/chat.h"

static const char *const job_words[FEED_JOBS] = { "health", "models", "metrics", "event_sources", "version", "embeddings" };
static const struct str job_paths[FEED_JOBS] = { STR_INIT("/health"), STR_INIT("/v1/models"), STR_INIT("/metrics"), STR_INIT("/kv_event_sources"),
                                             STR_INIT("/version"), STR_INIT("/v1/embeddings") };

enum { RETRY_US = 1000000, BOOT_RETRY_US = 500000, UNLEARNT_US = 250000, UNLEARNT_DOUBLES = 8, SPREAD_MIN_US = 50000, SPREAD_US_PER_WORKER = 250 };

static int64_t jitter(struct feed *f, int64_t us) { return us - us / 10 + (int64_t)rand_below(&f->rand, (uint64_t)us / 5 + 1); }

static int64_t interval(const struct feed_job *j)
{
	const struct conf_feed_opts *o = &j->w->feed->conf->opts.feed;
	switch (j->kind) {
	case FEED_JOB_HEALTH: return j->w->up ? o->probe_interval_us : MIN(o->probe_interval_us, j->w->ever_up ? RETRY_US : BOOT_RETRY_US);
	case FEED_JOB_MODELS: return j->w->models.n > 0 && !j->w->unauthorized ? o->models_interval_us : MIN(o->models_interval_us, 2 * RETRY_US);
	case FEED_JOB_METRICS: return o->scrape_interval_us;
	case FEED_JOB_SOURCES:
	case FEED_JOB_VERSION:
	case FEED_JOB_EMBEDS: return 2 * RETRY_US;
	case FEED_JOBS: break;
	}
	return RETRY_US;
}

/* What a worker failed to tell (it is up, but still starting, or overrun for a moment) is asked again soon: until it is known,
 * no request can be routed by it. */
static void arm(struct feed_job *j)
{
	int64_t us = interval(j);
	if (j->unlearnt > 0)
		us = MIN(us, (int64_t)UNLEARNT_US << MIN(j->unlearnt - 1, (uint32_t)UNLEARNT_DOUBLES));
	io_timer_after(j->timer, jitter(j->w->feed, us));
}

void feed_job_soon(struct feed_worker *w, enum feed_job_kind k)
{
	if (w->jobs[k].timer != NULL && w->jobs[k].fetch == NULL)
		io_timer_after(w->jobs[k].timer, 0);
}

/* ---- health */

static enum brain_probe probe_result(const struct feed_worker *w, enum err e, int status)
{
	if (e == ERR_CONNECT)
		return BRAIN_PROBE_CONNECT_FAILED;
	if (e == ERR_TIMEOUT_FIRST_BYTE || e == ERR_TIMEOUT_STALL)
		return BRAIN_PROBE_TIMEOUT;
	if (e != ERR_OK)
		return BRAIN_PROBE_BAD_STATUS;
	if (status == 401 || status == 403 || (status == 200 && w->unauthorized))
		return BRAIN_PROBE_UNAUTHORIZED;
	if (status == 404)
		return BRAIN_PROBE_NOT_FOUND;
	return status >= 200 && status < 300 ? BRAIN_PROBE_OK : BRAIN_PROBE_BAD_STATUS;
}

/* What an operator sees of a probe; once for each answer that is no good, the log says it too. */
static void note_probe(struct feed_worker *w, enum brain_probe r, int status)
{
	static const char *const words[] = {
		[BRAIN_PROBE_OK] = "ok", [BRAIN_PROBE_CONNECT_FAILED] = "no connection", [BRAIN_PROBE_BAD_STATUS] = "bad answer", [BRAIN_PROBE_TIMEOUT] = "no answer in time",
		[BRAIN_PROBE_NOT_FOUND] = "its path, if it has one, stands before every path that is asked: right for http://HOST:PORT alone as a rule",
		[BRAIN_PROBE_UNAUTHORIZED] = "the worker refuses our key (set apiKey, apiKeyFile or apiKeyEnv)",
	};
	bool refused = status > 0 && r != BRAIN_PROBE_OK;
	if (refused)
		snprintf(w->probe, sizeof(w->probe), "%d: %s", status, words[r]);
	else
		snprintf(w->probe, sizeof(w->probe), "%s", words[r]);
	if (refused && status != w->probe_status && r != BRAIN_PROBE_UNAUTHORIZED)
		LOG_WARN("worker_probe_refused", "worker=%s path=%.*s/health status=%d", LOG_Q(w->conf.url), STR_ARG(w->conf.prefix), status);
	if (refused || r == BRAIN_PROBE_OK)
		w->probe_status = status;
}

static void took_health(struct feed_worker *w, enum err e, int status)
{
	enum brain_probe r = probe_result(w, e, status);
	bool up = r == BRAIN_PROBE_OK || r == BRAIN_PROBE_UNAUTHORIZED, back = up && !w->up && w->ever_up;
	if (r != BRAIN_PROBE_UNAUTHORIZED || status != 200)     /* what /v1/models was refused with stays said */
		note_probe(w, r, e == ERR_OK ? status : 0);
	if (!up && w->up)
		http_pool_forget(w->feed->pool, &w->addr);
	if (up && !w->ever_up)
		for (int k = FEED_JOB_MODELS; k < FEED_JOBS; k++)
			feed_job_soon(w, (enum feed_job_kind)k);
	w->up = up;
	w->ever_up |= up;
	brain_fact_probe(w->feed->brain, w->id, r, io_now(w->feed->loop));
	if (back)
		feed_worker_relearn(w, "it was away and is back");
}

/* ---- models */

static void refused(struct feed_worker *w, int status)
{
	if (!w->unauthorized)
		LOG_ERROR("worker_unauthorized", "worker=%.*s status=%d key=%s what=\"the worker refuses %s\"", STR_ARG(w->conf.url), status, w->conf.api_key.n ? "set" : "none",
		          w->conf.api_key.n ? "the key that is configured for it" : "requests without a key: set apiKey, apiKeyFile or apiKeyEnv");
	w->unauthorized = true;
	brain_fact_probe(w->feed->brain, w->id, BRAIN_PROBE_UNAUTHORIZED, io_now(w->feed->loop));
	note_probe(w, BRAIN_PROBE_UNAUTHORIZED, status);
}

static bool same_models(const struct feed_models *a, const struct feed_models *b)
{
	if (a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++)
		if (!str_eq(a->p[i].id, b->p[i].id) || !str_eq(a->p[i].parent, b->p[i].parent) || !str_eq(a->p[i].root, b->p[i].root) || a->p[i].max_model_len != b->p[i].max_model_len)
			return false;
	return true;
}

static void tell_models(struct feed_worker *w)
{
	struct arena a;
	arena_init(&a, 0);
	struct str *names = arena_new(&a, struct str, w->models.n + 1), *adapters = arena_new(&a, struct str, w->models.n + 1);
	struct brain_models m = { .names = names, .adapters = adapters, .max_model_len = w->models.max_model_len };
	for (size_t i = 0; i < w->models.n; i++)
		if (w->models.p[i].parent.n > 0)
			adapters[m.n_adapters++] = w->models.p[i].id;
		else
			names[m.n_names++] = w->models.p[i].id;
	brain_fact_models(w->feed->brain, w->id, &m, io_now(w->feed->loop));
	arena_done(&a);
}

static bool took_models(struct feed_worker *w, struct str body)
{
	struct arena a;
	struct feed_models m;
	arena_init(&a, 0);
	if (feed_learn_models(body, &a, &m) != ERR_OK) {
		LOG_WARN_EVERY(30, "worker_models_unreadable", "worker=%.*s", STR_ARG(w->conf.url));
		arena_done(&a);
		return false;
	}
	bool changed = !same_models(&w->models, &m);
	arena_done(&w->models_arena);
	w->models_arena = a;
	w->models = m;
	if (changed) {
		LOG_INFO("worker_models", "worker=%.*s models=%zu first=%s max_model_len=%u", STR_ARG(w->conf.url), m.n, LOG_Q(m.n ? m.p[0].id : STR("-")), m.max_model_len);
		feed_mark(w->feed);
	}
	if (w->unauthorized) {
		w->unauthorized = false;
		feed_job_soon(w, FEED_JOB_HEALTH);
	}
	tell_models(w);
	return true;
}

/* ---- metrics */

static void tell_metrics(struct feed_worker *w)
{
	const struct feed_metrics *m = &w->metrics;
	struct brain *b = w->feed->brain;
	struct mono now = io_now(w->feed->loop);
	uint32_t ranks = MAX(m->n_ranks, w->sources_told ? w->sources.n : 1);
	if (m->block_size > 0)
		brain_fact_cache(b, w->id, m->block_size, m->blocks, ranks, m->prefix_caching, now);
	for (uint32_t r = 0; r < m->n_ranks; r++)
		if (m->ranks[r].seen)
			brain_fact_gauges(b, w->id, r, m->ranks[r].running, m->ranks[r].waiting, m->ranks[r].kv_usage, now);
	for (uint32_t r = 0; r < w->n_ranks; r++)
		if (w->ranks[r] != NULL)
			feed_rank_capacity(w->ranks[r], m->blocks / ranks);
}

static bool took_metrics(struct feed_worker *w, struct str body)
{
	struct feed_metrics m;
	feed_learn_metrics(w->engine, body, &m);
	bool another = w->has_metrics && m.started_s > 0 && w->metrics.started_s > 0 && m.started_s != w->metrics.started_s;
	bool fell_asleep = m.asleep && !w->metrics.asleep;
	bool more_ranks = !w->has_metrics || m.n_ranks > w->metrics.n_ranks;
	w->metrics = m;
	w->has_metrics = true;
	tell_metrics(w);
	if (fell_asleep) {
		LOG_INFO("worker_asleep", "worker=%.*s what=\"its cache is gone\"", STR_ARG(w->conf.url));
		for (uint32_t r = 0; r < w->n_ranks; r++)
			if (w->ranks[r] != NULL)
				feed_rank_cleared(w->ranks[r]);
	}
	if (another)
		feed_worker_relearn(w, "its process is another one");
	else if (more_ranks && w->sources_final && !w->sources_told)
		feed_follow(w);
	return m.block_size > 0;
}

/* ---- event sources */

static void took_sources(struct feed_worker *w, int status, struct str body)
{
	struct arena a;
	struct feed_sources s;
	if (status != 200 && status != 404 && status != 405 && status != 501 && status != 401 && status != 403)
		return;
	w->sources_final = true;
	w->sources_told = false;
	arena_init(&a, 0);
	if (status == 200 && feed_learn_sources(body, &w->conf, &a, &s) == ERR_OK) {
		arena_done(&w->sources_arena);
		w->sources_arena = a;
		w->sources = s;
		w->sources_told = true;
	} else {
		arena_done(&a);
	}
	feed_follow(w);
}

/* ---- the engine's version */

static void took_version(struct feed_worker *w, int status, struct str body)
{
	struct str version = { 0 };
	if (status >= 500)
		return;
	if (status == 200)
		version = feed_learn_version(body);
	if (!w->version_final || !str_eq(version, w->version))
		feed_mark(w->feed);
	w->version_final = w->version_told = true;
	free((void *)(uintptr_t)w->version.p);
	w->version = version;
	feed_job_soon(w, FEED_JOB_EMBEDS);
}

/* A GET of a route that is there is 405. A vLLM of a version that we know has this one for models that embed, and for no others; such a
 * model's scores are made of embeddings, others' of pairs. */
static void took_embeds(struct feed_worker *w, int status)
{
	bool embeds = status == 405;
	if (status >= 500)
		return;
	if (!w->embeds_final || embeds != w->embeds)
		feed_mark(w->feed);
	w->embeds = embeds;
	w->embeds_final = true;
}

/* ---- the round */

/* Is the question answered? */
static bool took(struct feed_job *j, enum err e, int status, struct str body)
{
	struct feed_worker *w = j->w;
	bool good = e == ERR_OK && status == 200;
	switch (j->kind) {
	case FEED_JOB_HEALTH:
		took_health(w, e, status);
		return true;             /* whatever it is, it is the answer; see interval() */
	case FEED_JOB_MODELS:
		if (e == ERR_OK && (status == 401 || status == 403))
			refused(w, status);
		return good && took_models(w, body);
	case FEED_JOB_METRICS: return good && took_metrics(w, body);
	case FEED_JOB_SOURCES:
		if (e == ERR_OK)
			took_sources(w, status, body);
		return w->sources_final;
	case FEED_JOB_VERSION:
		if (e == ERR_OK)
			took_version(w, status, body);
		return w->version_final;
	case FEED_JOB_EMBEDS:
		if (e == ERR_OK)
			took_embeds(w, status);
		return w->embeds_final;
	case FEED_JOBS: break;
	}
	return true;
}

static void answered(void *arg, enum err e, int status, struct http_headers h, struct str body)
{
	struct feed_job *j = arg;
	struct feed_worker *w = j->w;
	bool good = e == ERR_OK && status == 200;
	(void)h;
	j->fetch = NULL;
	j->failed += !good;
	feed_count2(w->feed, FEED_M_ASKS, job_words[j->kind], e != ERR_OK ? err_label(e) : good ? "ok" : "status");
	j->unlearnt = took(j, e, status, body) ? 0 : j->unlearnt + 1;
	feed_refresh(w->feed);
	arm(j);
}

/* Questions that make no sense now wait for their next turn. */
static bool is_due(const struct feed_job *j)
{
	const struct feed_worker *w = j->w;
	if (j->kind == FEED_JOB_HEALTH)
		return true;
	if (j->kind == FEED_JOB_SOURCES)
		return w->up && !w->draining && !w->sources_final;
	if (j->kind == FEED_JOB_VERSION)
		return w->up && !w->version_final;
	if (j->kind == FEED_JOB_EMBEDS)
		return w->up && text_chat_knows(w->version) && w->version_final && !w->embeds_final;
	return w->up;
}

static void ask(void *arg)
{
	struct feed_job *j = arg;
	struct feed_worker *w = j->w;
	struct feed *f = w->feed;
	const struct conf_feed_opts *o = &f->conf->opts.feed;
	if (j->fetch != NULL)
		return;
	if (j->kind == FEED_JOB_HEALTH)
		feed_worker_resolve(w);
	const struct feed_view_worker *seen = feed_view_worker(f->view, w->id);
	if (seen == NULL || seen->addr.len == 0 || !is_due(j)) {     /* no plan may name a worker that hands do not know */
		j->unlearnt = 0;
		arm(j);
		return;
	}
	struct http_header auth = { STR("authorization"), w->authorization };
	char target[512];
	struct str path = job_paths[j->kind];
	int n = snprintf(target, sizeof(target), "%.*s%.*s", STR_ARG(w->conf.prefix), STR_ARG(path));
	if (n < 0 || (size_t)n >= sizeof(target))
		return;
	struct http_fetch_opts q = {
		.addr = seen->addr, .method = STR("GET"), .target = str_from(target, (size_t)n), .host = w->host_header, .headers = { &auth, w->authorization.n > 0 },
		.max_bytes = (size_t)o->max_scrape_bytes, .timeout_us = o->probe_timeout_us,
	};
	j->asked++;
	j->fetch = http_fetch_start(f->pool, &q, answered, j);
}

/* Spread, so that a fleet of thousands is not asked in one turn. */
void feed_jobs_start(struct feed_worker *w)
{
	uint64_t spread_us = MAX(w->feed->by_id.n * SPREAD_US_PER_WORKER, (size_t)SPREAD_MIN_US);
	for (int k = 0; k < FEED_JOBS; k++) {
		struct feed_job *j = &w->jobs[k];
		*j = (struct feed_job){ .w = w, .kind = (enum feed_job_kind)k };
		j->timer = io_timer_new(w->feed->loop, ask, j);
		io_timer_after(j->timer, (int64_t)rand_below(&w->feed->rand, spread_us));
	}
}

void feed_jobs_stop(struct feed_worker *w)
{
	for (int k = 0; k < FEED_JOBS; k++) {
		if (w->jobs[k].fetch != NULL)
			http_fetch_abort(w->jobs[k].fetch);
		io_timer_free(w->jobs[k].timer);
		w->jobs[k].fetch = NULL;
		w->jobs[k].timer = NULL;
	}
}
