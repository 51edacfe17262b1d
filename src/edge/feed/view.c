/* The snapshot for hands: brain's health and models + what only the feed knows (addresses, keys). Slices are copied. */
#include "feed/view.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "conf/tokenizer.h"
#include "feed/feed_priv.h"

struct feed_view *feed_view_ref(struct feed_view *v)
{
	atomic_fetch_add_explicit(&v->refs, 1, memory_order_relaxed);
	return v;
}

void feed_view_unref(struct feed_view *v)
{
	if (v == NULL || atomic_fetch_sub_explicit(&v->refs, 1, memory_order_acq_rel) != 1)
		return;
	for (size_t i = 0; i < v->n_models; i++)
		model_unref(v->models[i].tokenizer);
	arena_done(&v->arena);
	free(v);
}

const struct feed_view_worker *feed_view_worker(const struct feed_view *v, brain_worker id)
{
	size_t lo = 0, hi = v->n_workers;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (v->workers[mid].id < id)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < v->n_workers && v->workers[lo].id == id ? &v->workers[lo] : NULL;
}

const struct feed_view_model *feed_view_model(const struct feed_view *v, struct str id)
{
	size_t lo = 0, hi = v->n_models;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (str_cmp(v->models[mid].id, id) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < v->n_models && str_eq(v->models[lo].id, id) ? &v->models[lo] : NULL;
}

static const struct str *copy_strs(struct arena *a, const struct str *from, size_t n)
{
	struct str *to = arena_new(a, struct str, n + 1);
	for (size_t i = 0; i < n; i++)
		to[i] = arena_str(a, from[i]);
	return to;
}

static void make_worker(struct feed_view *v, const struct feed_worker *w, const struct brain_worker_view *b, struct feed_view_worker *out)
{
	struct arena *a = &v->arena;
	*out = (struct feed_view_worker){
		.id = w->id, .url = arena_str(a, w->conf.url), .host = arena_str(a, w->host_header), .prefix = arena_str(a, w->conf.prefix), .addr = w->addr,
		.authorization = arena_str(a, w->authorization), .pass_client_authorization = !w->drop_authorization, .health = b->health,
		.usable = (b->health == BRAIN_HEALTHY || b->health == BRAIN_DEGRADED) && !b->draining, .names = copy_strs(a, b->names, b->n_names), .n_names = b->n_names,
		.adapters = copy_strs(a, b->adapters, b->n_adapters), .n_adapters = b->n_adapters, .max_model_len = b->max_model_len, .pool = arena_str(a, w->pool),
	};
	v->any_usable |= out->usable && out->n_names > 0;     /* one that tells us no model cannot serve a request */
}

static int by_id(const void *a, const void *b)
{
	const struct feed_view_worker *x = a, *y = b;
	return (x->id > y->id) - (x->id < y->id);
}

static void make_workers(const struct feed *f, struct feed_view *v)
{
	struct arena scratch;
	const struct brain_worker_view *views;
	arena_init(&scratch, 0);
	size_t n_views = brain_workers(f->brain, &views, &scratch), n = 0;
	struct feed_view_worker *list = arena_new(&v->arena, struct feed_view_worker, n_views + 1);
	for (size_t i = 0; i < n_views; i++) {
		const struct feed_worker *w = map_get_ptr(&f->by_id, views[i].id);
		if (w != NULL)
			make_worker(v, w, &views[i], &list[n++]);
	}
	qsort(list, n, sizeof(*list), by_id);
	v->workers = list;
	v->n_workers = n;
	arena_done(&scratch);
}

static int by_model(const void *a, const void *b)
{
	const struct feed_view_model *x = a, *y = b;
	int c = str_cmp(x->id, y->id);
	return c ? c : (x->max_model_len > y->max_model_len) - (x->max_model_len < y->max_model_len);
}

/* ---- tokenizers */

static struct str tokens_word(const struct feed *f)
{
	return conf_word(conf_option_of_key(STR("tokens.from"))->words, f->conf->opts.gate.tokens);
}

/* What the pool says, else the option, else nothing: the root decides. */
static struct model_source source_of(const struct feed *f, struct str pool)
{
	const struct conf_pool *p = feed_pool(f, pool);
	struct conf_tokenizer t = conf_tokenizer_of(f->conf->opts.gate.tokenizer);
	if (p != NULL && (p->tokenizer.worker || p->tokenizer.path.n > 0 || p->tokenizer.repo.n > 0))
		t = p->tokenizer;
	return (struct model_source){ t.worker, t.path, t.repo, t.revision };
}

/* An adapter's tokenizer is its base model's. */
static struct str root_of(const struct feed_worker *w, const struct feed_model *m)
{
	for (size_t i = 0; m->parent.n > 0 && i < w->models.n; i++)
		if (str_eq(w->models.p[i].id, m->parent))
			return w->models.p[i].root;
	return m->parent.n > 0 ? (struct str){ "", 0 } : m->root;
}

/* While a worker that was away is asked its version again its tokenizer is not used, but kept: it would have to be loaded anew,
 * and what was found wrong with it would be forgotten. */
static struct model *tokenizer_of(const struct feed *f, const struct feed_worker *w, const struct feed_model *m)
{
	struct model_source source = source_of(f, w->pool);
	struct str root = root_of(w, m);
	struct model_want want = { .root = root, .source = &source, .known_version = text_chat_knows(w->version) };
	if (!str_eq(tokens_word(f), STR("auto")) && !str_eq(tokens_word(f), STR("local")))
		return NULL;
	if (root.n == 0 || !w->version_told)
		return NULL;
	struct model *t = model_store_get(f->tokenizers, &want);
	return t != NULL && w->version_final ? model_ref(t) : NULL;
}

/* Workers of one model name that do not agree on its tokenizer: none is used; nor on what a score is. */
static void merge(struct feed_view_model *kept, struct feed_view_model *other)
{
	kept->embeds &= other->embeds;
	kept->lengths_differ |= kept->max_model_len != other->max_model_len;
	if (kept->tokenizer != other->tokenizer) {
		model_unref(kept->tokenizer);
		kept->tokenizer = NULL;
	}
	model_unref(other->tokenizer);
	other->tokenizer = NULL;
}

static void make_model(const struct feed *f, struct feed_view *v, const struct feed_worker *w, const struct feed_model *m, struct feed_view_model *out)
{
	struct str from = tokens_word(f);
	*out = (struct feed_view_model){
		.embeds = w->embeds && w->embeds_final,
		.id = arena_str(&v->arena, m->id), .root = arena_str(&v->arena, m->root), .parent = arena_str(&v->arena, m->parent), .max_model_len = m->max_model_len,
		.adapter = m->parent.n > 0, .text_from_workers = str_eq(from, STR("auto")) || str_eq(from, STR("worker")), .tokenizer = tokenizer_of(f, w, m),
	};
}

/* Models of workers that are down stay listed: asking for one is then 503, not 404. */
static void make_models(const struct feed *f, struct feed_view *v)
{
	size_t n = 0, kept = 0;
	LIST_FOR(&f->workers, it)
		n += container_of(it, struct feed_worker, node)->models.n;
	struct feed_view_model *list = arena_new(&v->arena, struct feed_view_model, n + 1);
	n = 0;
	LIST_FOR(&f->workers, it) {
		const struct feed_worker *w = container_of(it, struct feed_worker, node);
		for (size_t i = 0; i < w->models.n && !w->draining; i++)
			make_model(f, v, w, &w->models.p[i], &list[n++]);
	}
	qsort(list, n, sizeof(*list), by_model);
	for (size_t i = 0; i < n; i++)
		if (kept == 0 || !str_eq(list[kept - 1].id, list[i].id))
			list[kept++] = list[i];
		else
			merge(&list[kept - 1], &list[i]);
	for (size_t i = 0; i < kept; i++)
		list[i].n_block_sizes = (uint32_t)brain_block_sizes(f->brain, list[i].id, list[i].block_sizes);
	v->models = list;
	v->n_models = kept;
	model_store_sweep(f->tokenizers);
}

struct feed_view *feed_view_make(const struct feed *f)
{
	struct feed_view *v = must_calloc(1, sizeof(*v));
	v->refs = 1;
	v->generation = brain_generation(f->brain);
	v->draining = f->draining;
	arena_init(&v->arena, 0);
	make_workers(f, v);
	make_models(f, v);
	return v;
}
