/* Answers of workers -> facts. Names of metrics and labels come from core/engine; no vendor's word stands here. */
#include "feed/learn.h"

#include <math.h>

#include "wire/json.h"
#include "wire/prom.h"
#include "wire/url.h"

/* ---- /v1/models */

static struct str own_name(const struct json_val *v, const char *key, struct arena *a)
{
	struct str s = { 0 };
	if (!json_str(json_get(v, str_of(key)), &s) || s.n > FEED_MAX_NAME_BYTES)
		return (struct str){ "", 0 };
	return arena_str(a, s);
}

static bool read_model(const struct json_val *v, struct arena *a, struct feed_model *ret_m)
{
	struct feed_model m = { .id = own_name(v, "id", a), .root = own_name(v, "root", a), .parent = own_name(v, "parent", a) };
	uint64_t len;
	if (json_u64(json_get(v, STR("max_model_len")), &len) && len <= UINT32_MAX)
		m.max_model_len = (uint32_t)len;
	*ret_m = m;
	return m.id.n > 0;
}

static enum err read_models(const struct json_val *root, struct arena *a, struct feed_models *ret_m)
{
	const struct json_val *data = json_get(root, STR("data"));
	if (!json_is(data, JSON_ARRAY))
		return ERR_SYNTAX;
	struct feed_model *list = arena_new(a, struct feed_model, MIN(json_len(data), (size_t)FEED_MAX_MODELS) + 1);
	struct feed_models m = { .p = list };
	for (struct json_iter it = json_each(data); json_next(&it) && m.n < FEED_MAX_MODELS;) {
		if (!read_model(it.val, a, &list[m.n]))
			continue;
		const struct feed_model *got = &list[m.n++];
		if (got->parent.n == 0 && got->max_model_len > 0 && (m.max_model_len == 0 || got->max_model_len < m.max_model_len))
			m.max_model_len = got->max_model_len;
	}
	*ret_m = m;
	return ERR_OK;
}

enum err feed_learn_models(struct str json, struct arena *a, struct feed_models *ret_m)
{
	struct json_doc *d;
	TRY(json_parse(json, 16 << 20, &d));
	enum err e = read_models(json_root(d), a, ret_m);
	json_free(d);
	return e;
}

/* ---- /version */

struct str feed_learn_version(struct str json)
{
	struct json_doc *d;
	struct str s = { 0 }, copy = { 0 };
	if (json_parse(json, 64 << 10, &d) != ERR_OK)
		return copy;
	if (json_str(json_get(json_root(d), STR("version")), &s) && s.n > 0 && s.n <= 64)
		copy = str_clone(s);
	json_free(d);
	return copy;
}

/* ---- /metrics */

struct scrape { const struct engine *e; struct feed_metrics *m; };

static uint32_t count_of(double v) { return v >= 0 && v < 4e9 ? (uint32_t)v : 0; }
static uint64_t total_of(double v) { return v >= 0 && v < 9e18 ? (uint64_t)v : 0; }

/* The rank a sample belongs to; NULL when its label is no rank we can hold. */
static struct feed_gauges *rank_of(struct scrape *s, const struct prom_sample *x)
{
	uint64_t rank = 0;
	struct str label = prom_label(x, s->e->labels.rank);
	if (label.n > 0 && (!str_to_u64(label, &rank) || rank >= BRAIN_MAX_RANKS_PER_WORKER))
		return NULL;
	s->m->n_ranks = MAX(s->m->n_ranks, (uint32_t)rank + 1);
	s->m->ranks[rank].seen = true;
	return &s->m->ranks[rank];
}

static void cache_config(struct scrape *s, const struct prom_sample *x)
{
	uint64_t size, blocks;
	struct str caching = prom_label(x, s->e->labels.prefix_caching);
	if (str_to_u64(prom_label(x, s->e->labels.block_size), &size) && size > 0 && size <= 65536)
		s->m->block_size = (uint32_t)size;
	if (str_to_u64(prom_label(x, s->e->labels.blocks), &blocks) && blocks < UINT32_MAX)
		s->m->blocks = blocks;
	s->m->prefix_caching = !str_ieq(caching, STR("False"));
	(void)rank_of(s, x);
}

static void sleep_state(struct scrape *s, const struct prom_sample *x)
{
	if (x->value > 0 && !str_eq(prom_label(x, s->e->labels.sleep_state), s->e->labels.awake))
		s->m->asleep = true;
}

static void gauge(struct scrape *s, const struct prom_sample *x, enum engine_fact fact)
{
	struct feed_gauges *g = rank_of(s, x);
	if (g == NULL || isnan(x->value))
		return;
	if (fact == ENGINE_REQUESTS_RUNNING)
		g->running += count_of(x->value);
	else if (fact == ENGINE_REQUESTS_WAITING)
		g->waiting += count_of(x->value);
	else
		g->kv_usage = MAX(g->kv_usage, MIN(MAX(x->value, 0.0), 1.0));
}

static void sample(void *arg, const struct prom_sample *x)
{
	struct scrape *s = arg;
	enum engine_fact fact;
	if (str_eq(x->name, STR("process_start_time_seconds")) && isfinite(x->value))
		s->m->started_s = x->value;
	if (!engine_fact_of(s->e, x->name, &fact))
		return;
	switch (fact) {
	case ENGINE_REQUESTS_RUNNING: case ENGINE_REQUESTS_WAITING: case ENGINE_KV_USAGE: gauge(s, x, fact); break;
	case ENGINE_CACHE_CONFIG: cache_config(s, x); break;
	case ENGINE_SLEEP_STATE: sleep_state(s, x); break;
	case ENGINE_PREFIX_QUERIES: s->m->prefix_queries += total_of(x->value); break;
	case ENGINE_PREFIX_HITS: s->m->prefix_hits += total_of(x->value); break;
	case ENGINE_PREEMPTIONS: case ENGINE_GENERATION_TOKENS: break;
	}
}

void feed_learn_metrics(const struct engine *e, struct str text, struct feed_metrics *ret_m)
{
	*ret_m = (struct feed_metrics){ .n_ranks = 1, .prefix_caching = true };
	struct scrape s = { e, ret_m };
	ret_m->skipped_lines = prom_parse(text, sample, &s).skipped;
}

/* ---- /kv_event_sources */

static bool is_loopback(struct str host) { return str_starts(host, STR("127.")) || str_eq(host, STR("localhost")) || str_eq(host, STR("::1")); }

/* Hosts that mean "me" or that nobody else can reach. */
static bool is_unroutable(struct str host)
{
	return str_eq(host, STR("*")) || str_eq(host, STR("0.0.0.0")) || str_eq(host, STR("::")) || str_eq(host, STR("[::]")) || is_loopback(host) ||
	       str_starts(host, STR("169.254.")) || str_istarts(host, STR("fe80:"));
}

static struct str endpoint_at(const struct conf_worker *w, uint32_t port, struct arena *a)
{
	return str_of(arena_printf(a, w->ipv6 ? "tcp://[%.*s]:%u" : "tcp://%.*s:%u", STR_ARG(w->host), port));
}

/* What a host and a port are written with; it goes into log lines as it is. */
static bool is_plain(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] <= ' ' || s.p[i] > '~' || s.p[i] == '"' || s.p[i] == '\\')
			return false;
	return true;
}

/* NULL when good. A publisher that names another machine's address connects out to it: nobody is listening there for us. */
static const char *usable_endpoint(struct str text, const struct conf_worker *w, struct arena *a, struct str *ret_s)
{
	struct url u;
	struct str host = text, port, rest;
	uint64_t n;
	if (!str_starts(text, STR("tcp://")))
		return "its event endpoint is not tcp";
	if (!is_plain(text))
		return "its event endpoint cannot be read";
	if (url_parse(text, &u) == ERR_OK) {
		host = u.host;
		n = u.port;
	} else {                               /* "tcp://:::5557" and the like: the port is behind the last colon */
		size_t at = text.n;
		while (at > 6 && text.p[at - 1] != ':')
			at--;
		port = str_skip(text, at);
		rest = str_sub(text, 6, at > 7 ? at - 7 : 0);
		host = rest;
		if (!str_to_u64(port, &n) || n == 0 || n > 65535)
			return "its event endpoint cannot be read";
	}
	if (is_unroutable(host) || str_eq(host, w->host))
		*ret_s = endpoint_at(w, (uint32_t)n, a);
	else if (is_loopback(w->host))
		*ret_s = arena_str(a, text);           /* the same machine under its other name */
	else
		return "it publishes by connecting out (its event endpoint names another host): not supported; let it bind tcp://*:PORT or set kvEvents.endpoint";
	return NULL;
}

static void read_source(const struct json_val *v, const struct conf_worker *w, struct arena *a, struct feed_sources *s, uint64_t rank)
{
	struct str endpoint, replay;
	if (rank >= BRAIN_MAX_RANKS_PER_WORKER || !json_str(json_get(v, STR("endpoint")), &endpoint))
		return;
	struct feed_source *at = &s->ranks[rank];
	const char *why = usable_endpoint(endpoint, w, a, &at->events);
	if (why != NULL) {
		s->why = why;
		return;
	}
	if (json_str(json_get(v, STR("replay_endpoint")), &replay) && replay.n > 0 && usable_endpoint(replay, w, a, &at->replay) != NULL)
		at->replay = (struct str){ 0 };
	s->n = MAX(s->n, (uint32_t)rank + 1);
}

static void read_sources(const struct json_val *root, const struct conf_worker *w, struct arena *a, struct feed_sources *s)
{
	const struct json_val *list = json_get(root, STR("sources"));
	uint64_t rank = 0;
	if (json_is(list, JSON_ARRAY)) {
		for (struct json_iter it = json_each(list); json_next(&it) && rank < BRAIN_MAX_RANKS_PER_WORKER; rank++)
			read_source(it.val, w, a, s, rank);
		return;
	}
	for (struct json_iter it = json_each(root); json_next(&it);)
		if (str_to_u64(it.key, &rank) && rank < BRAIN_MAX_RANKS_PER_WORKER)
			read_source(it.val, w, a, s, rank);
}

enum err feed_learn_sources(struct str json, const struct conf_worker *w, struct arena *a, struct feed_sources *ret_s)
{
	struct json_doc *d;
	TRY(json_parse(json, 1 << 20, &d));
	struct feed_sources s = { 0 };
	enum err e = json_is(json_root(d), JSON_OBJECT) ? ERR_OK : ERR_SYNTAX;
	if (e == ERR_OK)
		read_sources(json_root(d), w, a, &s);
	json_free(d);
	if (e == ERR_OK && s.n == 0 && s.why == NULL)
		s.why = "it says that it publishes no KV cache events";
	if (e == ERR_OK)
		*ret_s = s;
	return e;
}

static struct str plus_rank(struct str endpoint, uint32_t rank, struct arena *a)
{
	struct url u;
	if (endpoint.n == 0 || url_parse(endpoint, &u) != ERR_OK || u.port + (uint64_t)rank > 65535)
		return (struct str){ 0 };
	return str_of(arena_printf(a, u.ipv6 ? "tcp://[%.*s]:%u" : "tcp://%.*s:%u", STR_ARG(u.host), u.port + rank));
}

void feed_default_sources(const struct conf_worker *w, uint16_t events_port, uint16_t replay_port, uint32_t n, struct arena *a, struct feed_sources *ret_s)
{
	struct feed_sources s = { .n = MIN(n, (uint32_t)BRAIN_MAX_RANKS_PER_WORKER) };
	struct str events = w->events.n > 0 ? w->events : endpoint_at(w, events_port, a);
	bool replay_known = w->replay.n > 0 || (w->events.n == 0 && replay_port != 0);
	struct str replay = !replay_known ? (struct str){ 0 } : w->replay.n > 0 ? w->replay : endpoint_at(w, replay_port, a);
	for (uint32_t r = 0; r < s.n; r++) {
		s.ranks[r] = (struct feed_source){ plus_rank(events, r, a), plus_rank(replay, r, a) };
		if (s.ranks[r].events.n == 0)
			s.why = "port + data-parallel rank is above 65535";
	}
	*ret_s = s;
}
