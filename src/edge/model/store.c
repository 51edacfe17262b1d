/* store.c: the models that the fleet serves now, each loaded once. */
#include <stdlib.h>

#include "base/list.h"
#include "base/log.h"
#include "base/must.h"
#include "model/model.h"
#include "model/model_priv.h"

enum { MODELS_MAX = 256, KEY_MAX_BYTES = 2048 };

struct entry {
	struct list node;
	struct model *model;
	bool asked;
};

struct model_store {
	struct io_loop *loop;
	struct list entries;
	size_t n;
};

struct model_store *model_store_new(struct io_loop *l)
{
	struct model_store *s = must_calloc(1, sizeof(*s));
	s->loop = l;
	list_init(&s->entries);
	return s;
}

static void drop(struct model_store *s, struct entry *e)
{
	list_del(&e->node);
	model_unref(e->model);
	free(e);
	s->n--;
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
	free(s);
}

/* ---- loading: a job holds its model, nothing else */

static void work(void *arg) { model_load(arg); }

static void done(void *arg)
{
	struct model *m = arg;
	struct model_info i = model_info(m);
	if (i.state == MODEL_READY && i.chats)
		LOG_INFO("tokenizer_ready", "model=%.*s folder=%.*s bytes=%zu", STR_ARG(i.key), STR_ARG(i.place), i.bytes);
	else if (i.state == MODEL_READY)
		LOG_INFO("tokenizer_ready", "model=%.*s folder=%.*s bytes=%zu chats=ask_worker why=\"%.*s\"", STR_ARG(i.key), STR_ARG(i.place), i.bytes, STR_ARG(i.why));
	else
		LOG_INFO("tokenizer_absent", "model=%.*s folder=\"%.*s\" why=\"%.*s\" the workers are asked for token ids", STR_ARG(i.key),
			(int)i.place.n, i.place.n ? i.place.p : "", (int)i.why.n, i.why.n ? i.why.p : "");
	model_unref(m);
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

static struct entry *find(struct model_store *s, struct str key, bool known_version)
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
		LOG_WARN_EVERY(60, "tokenizers_too_many", "max=%d the workers are asked for the others", MODELS_MAX);
		return NULL;
	}
	struct entry *e = must_calloc(1, sizeof(*e));
	e->model = model_new(key, w);
	list_add_tail(&s->entries, &e->node);
	s->n++;
	io_work(s->loop, work, done, model_ref(e->model));
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
		e = find(s, buf_str(&key), w->known_version);
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

size_t model_store_list(const struct model_store *s, struct arena *a, const struct model_info **ret_infos)
{
	struct model_info *infos = arena_new(a, struct model_info, s->n + 1);
	size_t n = 0;
	LIST_FOR(&s->entries, it) {
		struct model_info i = model_info(container_of(it, struct entry, node)->model);
		i.key = arena_str(a, i.key);
		i.place = arena_str(a, i.place);
		i.why = arena_str(a, i.why);
		infos[n++] = i;
	}
	*ret_infos = infos;
	return n;
}
