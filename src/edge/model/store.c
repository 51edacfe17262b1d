/* store.c: the models that the fleet serves now, each loaded once. */
#include <stdlib.h>

#include "base/list.h"
#include "base/log.h"
#include "base/must.h"
#include "model/model.h"
#include "model/model_priv.h"

enum { MODELS_MAX = 256, KEY_MAX_BYTES = 2048, RETRY_FIRST_US = 2 * 1000 * 1000, RETRY_MAX_US = 300 * 1000 * 1000 };

struct entry {
	struct list node;
	struct model *model;
	bool asked;
	bool waits;                  /* to be fetched, or looked for again, from `due` on */
	struct mono due;
	int64_t retry_us;
	char *why;                   /* the last try failed; NULL: none did */
};

/* Files being read, perhaps fetched: holds its model, and the store while there is one. */
struct job {
	struct list node;
	struct model_store *store;   /* NULL: it is gone */
	struct model *model;
	bool settled;
};

struct model_store {
	struct io_loop *loop;
	struct list entries, jobs;
	struct job *fetching;        /* one at a time: a download keeps a thread of the pool for long */
	struct io_timer *timer;      /* for what waits */
	size_t n;
};

static void pump(void *arg);

struct model_store *model_store_new(struct io_loop *l)
{
	struct model_store *s = must_calloc(1, sizeof(*s));
	s->loop = l;
	s->timer = io_timer_new(l, pump, s);
	list_init(&s->entries);
	list_init(&s->jobs);
	return s;
}

static void drop(struct model_store *s, struct entry *e)
{
	list_del(&e->node);
	atomic_store(&e->model->stop, true);
	model_unref(e->model);
	free(e->why);
	free(e);
	s->n--;
}

void model_store_refresh(struct model_store *s)
{
	LIST_FOR_SAFE(&s->entries, it)
		if (!model_is_current(container_of(it, struct entry, node)->model))
			drop(s, container_of(it, struct entry, node));
}

void model_store_reload(struct model_store *s)
{
	LIST_FOR_SAFE(&s->entries, it)
		drop(s, container_of(it, struct entry, node));
}

void model_store_free(struct model_store *s)
{
	if (!s)
		return;
	model_store_reload(s);
	LIST_FOR(&s->jobs, it)
		container_of(it, struct job, node)->store = NULL;
	io_timer_free(s->timer);
	free(s);
}

/* ---- loading */

static void work(void *arg)
{
	struct job *j = arg;
	j->settled = model_load(j->model);
}

static void say(const struct model *m)
{
	struct model_info i = model_info(m);
	if (i.state == MODEL_READY && i.chats)
		LOG_INFO("tokenizer_ready", "model=%s folder=%s bytes=%zu", LOG_Q(i.key), LOG_Q(i.place), i.bytes);
	else if (i.state == MODEL_READY)
		LOG_INFO("tokenizer_ready", "model=%s folder=%s bytes=%zu chats=ask_worker why=%s", LOG_Q(i.key), LOG_Q(i.place), i.bytes, LOG_Q(i.why));
	else                             /* what the configuration names ought to be there; what a worker calls its model need not */
		LOG_AT(m->source.path.n || m->source.repo.n ? LOG_LEVEL_WARN : LOG_LEVEL_INFO, "tokenizer_absent", "model=%s folder=%s why=%s instead=worker_if_tokens_allow", LOG_Q(i.key), LOG_Q(i.place), LOG_Q(i.why));
}

static struct entry *entry_of(struct model_store *s, const struct model *m)
{
	LIST_FOR(&s->entries, it)
		if (container_of(it, struct entry, node)->model == m)
			return container_of(it, struct entry, node);
	return NULL;
}

static void wait_for(struct model_store *s, struct entry *e)
{
	free(e->why);
	e->why = str_dup(e->model->why);
	e->waits = true;
	e->due = mono_add_us(io_now(s->loop), e->retry_us);
	LOG_WARN("tokenizer_waits", "model=%s why=%s again_in_s=%lld meanwhile=%s", LOG_Q(e->model->key), LOG_Q(e->model->why), (long long)(e->retry_us / 1000000),
		LOG_Q(STR(MODEL_INSTEAD)));
	e->retry_us = MIN(2 * e->retry_us, (int64_t)RETRY_MAX_US);
}

static void done(void *arg)
{
	struct job *j = arg;
	struct model_store *s = j->store;
	struct entry *e = s ? entry_of(s, j->model) : NULL;
	if (j->settled)
		say(j->model);
	else if (e)
		wait_for(s, e);
	if (s) {
		list_del(&j->node);
		if (s->fetching == j)
			s->fetching = NULL;
		pump(s);
	}
	model_unref(j->model);
	free(j);
}

static struct job *start(struct model_store *s, struct model *m)
{
	struct job *j = must_calloc(1, sizeof(*j));
	*j = (struct job){ .store = s, .model = model_ref(m) };
	list_add_tail(&s->jobs, &j->node);
	io_work(s->loop, work, done, j);
	return j;
}

/* Starts what is due, the first that waits first. */
static void pump(void *arg)
{
	struct model_store *s = arg;
	struct entry *first = NULL;
	if (s->fetching)
		return;
	LIST_FOR(&s->entries, it) {
		struct entry *e = container_of(it, struct entry, node);
		if (e->waits && (!first || mono_diff_us(e->due, first->due) < 0))
			first = e;
	}
	if (!first)
		return;
	if (mono_diff_us(first->due, io_now(s->loop)) > 0) {
		io_timer_at(s->timer, first->due);
		return;
	}
	first->waits = false;
	s->fetching = start(s, first->model);
}

/* ---- asking */

static bool key_of(const struct model_want *w, struct buf *b)
{
	const struct model_source *s = w->source;
	enum err e = ERR_OK;
	if (s->path.n)
		e = buf_printf(b, "%.*s", STR_ARG(s->path));
	else if (s->repo.n)
		e = buf_printf(b, "%.*s%s%.*s", STR_ARG(s->repo), s->revision.n ? "@" : "", (int)s->revision.n, s->revision.n ? s->revision.p : "");
	else
		e = buf_printf(b, "%.*s", STR_ARG(w->root));
	return e == ERR_OK && b->n > 0;
}

static struct entry *entry_for(struct model_store *s, struct str key, bool known_version)
{
	LIST_FOR(&s->entries, it) {
		struct entry *e = container_of(it, struct entry, node);
		if (str_eq(e->model->key, key) && e->model->known_version == known_version)
			return e;
	}
	return NULL;
}

static struct entry *add(struct model_store *s, struct str key, const struct model_want *w)
{
	if (s->n == MODELS_MAX) {
		LOG_WARN_EVERY(60, "tokenizers_too_many", "max=%d others=\"the workers are asked\"", MODELS_MAX);
		return NULL;
	}
	struct entry *e = must_calloc(1, sizeof(*e));
	e->model = model_new(key, w);
	e->retry_us = RETRY_FIRST_US;
	list_add_tail(&s->entries, &e->node);
	s->n++;
	if (model_may_fetch(e->model)) {
		e->waits = true;
		e->due = io_now(s->loop);
		pump(s);
	} else
		(void)start(s, e->model);
	return e;
}

struct model *model_store_get(struct model_store *s, const struct model_want *w)
{
	struct buf key;
	struct entry *e = NULL;
	if (w->source->worker)
		return NULL;
	buf_init(&key, KEY_MAX_BYTES);
	if (key_of(w, &key)) {
		e = entry_for(s, buf_str(&key), w->known_version);
		if (!e)
			e = add(s, buf_str(&key), w);
	}
	buf_done(&key);
	if (e)
		e->asked = true;
	return e ? e->model : NULL;
}

void model_store_sweep(struct model_store *s)
{
	LIST_FOR_SAFE(&s->entries, it) {
		struct entry *e = container_of(it, struct entry, node);
		if (!e->asked)
			drop(s, e);
		else
			e->asked = false;
	}
}

static struct str why_waits(const struct model_store *s, const struct entry *e, struct arena *a)
{
	if (!e->why)
		return STR("");
	if (!e->waits)
		return str_of(arena_printf(a, "%s; being tried again", e->why));
	int64_t left_us = MAX(mono_diff_us(e->due, io_now(s->loop)), 0);
	return str_of(arena_printf(a, "%s; tried again in %lld s", e->why, (long long)((left_us + 999999) / 1000000)));
}

size_t model_store_list(const struct model_store *s, struct arena *a, const struct model_info **ret_infos)
{
	struct model_info *infos = arena_new(a, struct model_info, s->n + 1);
	size_t n = 0;
	LIST_FOR(&s->entries, it) {
		const struct entry *e = container_of(it, struct entry, node);
		struct model_info i = model_info(e->model);
		i.key = arena_str(a, i.key);
		i.place = arena_str(a, i.place);
		i.why = i.state == MODEL_LOADING ? why_waits(s, e, a) : arena_str(a, i.why);
		infos[n++] = i;
	}
	*ret_infos = infos;
	return n;
}
