/* Sources -> a generation: defaults, then files in order, then flags; every fault of all of them at once. */
#include "conf/conf.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "brain/brain.h"
#include "conf/conf_priv.h"
#include "conf/tokenizer.h"
#include "conf/worker.h"
#include "engine/engine.h"
#include "io/file.h"

struct conf *conf_ref(struct conf *c)
{
	atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
	return c;
}

void conf_unref(struct conf *c)
{
	if (c == NULL || atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) != 1)
		return;
	arena_done(&c->arena);
	free(c);
}

/* A file without a byte of text is one that is being written in place as a rule: taken as "no pools", it would let go of every
 * worker. What is meant to be empty says so in a comment. */
static void read_file(struct conf_draft *d, struct str path)
{
	struct conf_place place = { path, 0, 0 };
	struct buf b = { 0 };
	char *z = str_dup(path);
	enum err e = io_file_read(z, YAML_MAX_BYTES, &b);
	free(z);
	if (e != ERR_OK)
		conf_fault_add(d->faults, place, (struct str){ 0 }, "cannot be read: %s",
		               e == ERR_LIMIT ? "larger than 1 MiB" : e == ERR_NOT_FOUND ? "there is no such file or folder" : err_text(e));
	else if (str_trim(buf_str(&b)).n == 0)
		conf_fault_add(d->faults, place, (struct str){ 0 }, "is empty: must hold objects, or a comment");
	else
		conf_objects_read(d, path, buf_str(&b));
	buf_done(&b);
}

struct folder { struct conf_draft *d; struct str path; size_t n; };

static void folder_entry(void *arg, struct str name)
{
	struct folder *f = arg;
	if (name.p[0] == '.' || (!str_ends(name, STR(".yaml")) && !str_ends(name, STR(".yml"))))
		return;
	f->n++;
	read_file(f->d, str_of(arena_printf(&f->d->c->arena, "%.*s%s%.*s", STR_ARG(f->path), str_ends(f->path, STR("/")) ? "" : "/", STR_ARG(name))));
}

static void read_path(struct conf_draft *d, struct str path)
{
	char *z = str_dup(path);
	struct folder f = { d, path, 0 };
	if (io_path_kind(z) != IO_PATH_DIR)
		read_file(d, path);
	else if (io_dir_list(z, folder_entry, &f) != ERR_OK || f.n == 0)
		conf_fault_add(d->faults, (struct conf_place){ path, 0, 0 }, (struct str){ 0 }, "the folder holds no *.yaml or *.yml file that can be read");
	free(z);
}

static bool url_known(const struct conf_draft *d, const struct conf_worker *w, size_t n, struct str url)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(w[i].url, url))
			return true;
	for (size_t p = 0; p < d->pools.n; p++)
		for (size_t i = 0; i < d->pools.p[p].n_workers; i++)
			if (str_eq(d->pools.p[p].workers[i].url, url))
				return true;
	return false;
}

static void flag_workers(struct conf_draft *d, const struct conf_sources *s)
{
	if (s->workers.n == 0)
		return;
	struct conf_worker *w = arena_new(&d->c->arena, struct conf_worker, s->workers.n);
	for (size_t i = 0; i < s->workers.n; i++) {
		const char *fault = conf_worker_url(s->workers.p[i], &w[i], &d->c->arena);
		if (fault != NULL)
			conf_fault_add(d->faults, (struct conf_place){ 0 }, STR("--worker"), "%s", fault);
		else if (url_known(d, w, i, w[i].url))
			conf_fault_add(d->faults, (struct conf_place){ 0 }, STR("--worker"), "%.*s is named twice", STR_ARG(w[i].url));
	}
	VEC_PUSH(&d->pools, (struct conf_pool){ .engine = engine_of(STR(""))->name, .workers = w, .n_workers = s->workers.n });
}

const char *conf_option_take(struct conf_draft *d, const struct conf_option *row, struct str text)
{
	const char *what = NULL;
	if (!conf_option_set(&d->c->opts, row, text, &d->c->arena, &what))
		return what;
	if (row != conf_option_of_key(STR("tokens.tokenizer")))
		return NULL;
	struct conf_tokenizer t = conf_tokenizer_of(text);
	return conf_tokenizer_fault(&t, &d->c->arena);
}

static void flag_options(struct conf_draft *d, const struct conf_sources *s)
{
	for (size_t i = 0; i < s->overrides.n; i++) {
		const struct conf_override *o = &s->overrides.p[i];
		const char *what = conf_option_take(d, o->option, o->text);
		if (what != NULL)
			conf_fault_add(d->faults, (struct conf_place){ 0 }, str_of(arena_printf(&d->faults->arena, "--%s", o->option->flag)), "%s", what);
	}
}

/* The key of workers.apiKey* goes to every pool and worker that has none. */
static void default_key(struct conf_draft *d)
{
	const struct conf_feed_opts *o = &d->c->opts.feed;
	struct str key = o->api_key;
	const char *fault = NULL;
	if (key.n == 0 && o->api_key_file.n > 0)
		fault = conf_secret_file(o->api_key_file, &key, &d->c->arena);
	else if (key.n == 0 && o->api_key_env.n > 0)
		fault = conf_secret_env(o->api_key_env, &key, &d->c->arena);
	if (fault != NULL)
		conf_fault_add(d->faults, (struct conf_place){ 0 }, o->api_key_file.n > 0 ? STR("workers.apiKeyFile") : STR("workers.apiKeyEnv"), "%s", fault);
	for (size_t p = 0; p < d->pools.n && key.n > 0; p++) {
		struct conf_pool *pool = &d->pools.p[p];
		struct conf_worker *w = arena_new(&d->c->arena, struct conf_worker, pool->n_workers + 1);
		for (size_t i = 0; i < pool->n_workers; i++) {
			w[i] = pool->workers[i];
			w[i].api_key = w[i].api_key.n > 0 ? w[i].api_key : key;
		}
		pool->workers = w;
		pool->api_key = pool->api_key.n > 0 ? pool->api_key : key;
	}
}

/* What is allowed by every row alone but not in this version or not together. */
static void check_count(struct conf_draft *d)
{
	size_t n = 0;
	for (size_t i = 0; i < d->pools.n; i++)
		n += d->pools.p[i].n_workers;
	if (n > BRAIN_MAX_WORKERS)
		conf_fault_add(d->faults, (struct conf_place){ 0 }, STR("workers"), "%zu workers are named: at most %d are allowed in one process", n, BRAIN_MAX_WORKERS);
}

/* Is it ours to write over? NULL: yes. */
static const char *file_fault(const char *path)
{
	struct buf b;
	enum err e = io_file_beginning(path, sizeof(CONF_INDEX_FILE_BEGINS) - 1, &b);
	if (e == ERR_UNSUPPORTED)
		return io_path_kind(path) == IO_PATH_DIR ? "is a folder: must be a file" : "is no plain file: must be one";
	if (e != ERR_OK)
		return e == ERR_NOT_FOUND ? NULL : "cannot be read";
	bool ours = b.n == 0 || str_eq(buf_str(&b), STR(CONF_INDEX_FILE_BEGINS));
	buf_done(&b);
	return ours ? NULL : "is another file, and would be written over: must be an index of kvasir, or not there";
}

/* At the start, not when it is written. */
static void check_index_file(struct conf_draft *d)
{
	const char *path = d->c->opts.feed.index_file.p, *slash = path ? strrchr(path, '/') : NULL;
	if (d->c->opts.feed.index_file.n == 0)
		return;
	const char *folder = slash == NULL ? "." : slash == path ? "/" : arena_printf(&d->c->arena, "%.*s", (int)(slash - path), path);
	const char *fault = file_fault(path);
	if (fault)
		conf_fault_add(d->faults, (struct conf_place){ 0 }, STR("events.indexFile"), "%s %s", path, fault);
	else if (io_path_kind(folder) != IO_PATH_DIR)
		conf_fault_add(d->faults, (struct conf_place){ 0 }, STR("events.indexFile"), "there is no folder %s", folder);
}

static void check_whole(struct conf_draft *d)
{
	check_count(d);
	check_index_file(d);
	if (str_eq(d->c->opts.gate.listen, d->c->opts.ops.admin) && !str_ends(d->c->opts.gate.listen, STR(":0")))
		conf_fault_add(d->faults, (struct conf_place){ 0 }, STR("admin"), "is the address of the data port: must be another one");
}

struct conf *conf_load(const struct conf_sources *s, uint64_t generation, struct conf_faults *faults)
{
	size_t before = faults->list.n + faults->cut;
	struct conf *c = must_calloc(1, sizeof(*c));
	c->refs = 1;
	c->generation = generation;
	arena_init(&c->arena, 0);
	conf_opts_default(&c->opts);
	struct conf_draft d = { .c = c, .faults = faults, .careful = s->careful };
	for (size_t i = 0; i < s->paths.n; i++)
		read_path(&d, s->paths.p[i]);
	flag_workers(&d, s);
	flag_options(&d, s);
	default_key(&d);
	check_whole(&d);
	struct conf_pool *pools = arena_new(&c->arena, struct conf_pool, d.pools.n + 1);
	for (size_t i = 0; i < d.pools.n; i++)
		pools[i] = d.pools.p[i];
	c->pools = pools;
	c->n_pools = d.pools.n;
	VEC_FREE(&d.pools);
	if (faults->list.n + faults->cut == before)
		return c;
	conf_unref(c);
	return NULL;
}
