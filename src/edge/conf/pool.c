/* WorkerPool: spec -> struct conf_pool. */
#include "conf/conf_priv.h"
#include "conf/list.h"
#include "conf/tokenizer.h"
#include "conf/worker.h"
#include "engine/engine.h"

static void fault_unless(struct conf_draft *d, const char *fault, const struct yaml_node *v, struct str path)
{
	if (fault != NULL)
		conf_fault_add(d->faults, conf_at(d, v->pos), path, "%s", fault);
}

/* A relative path is taken from the folder of the file that names it. */
static struct str beside(struct conf_draft *d, struct str path)
{
	size_t n = d->file.n;
	while (n > 0 && d->file.p[n - 1] != '/')
		n--;
	if (path.n == 0 || path.p[0] == '/' || n == 0)
		return path;
	return str_of(arena_printf(&d->c->arena, "%.*s%.*s", (int)n, d->file.p, STR_ARG(path)));
}

static void read_key_file(struct conf_draft *d, const struct yaml_node *v, struct str path, struct str *into)
{
	struct str name = conf_text_read(d, v, path);
	if (name.n > 0)
		fault_unless(d, conf_secret_file(beside(d, name), into, &d->c->arena), v, path);
}

static void read_key_env(struct conf_draft *d, const struct yaml_node *v, struct str path, struct str *into)
{
	struct str name = conf_text_read(d, v, path);
	if (name.n > 0)
		fault_unless(d, conf_secret_env(name, into, &d->c->arena), v, path);
}

static void read_accelerator(struct conf_draft *d, const struct yaml_node *v, struct str path, struct str *into)
{
	*into = conf_text_read(d, v, path);
	if (d->careful && into->n > 0)
		fault_unless(d, conf_worker_accelerator(*into, &d->c->arena), v, path);
}

/* ---- workers */

static void worker_url(struct conf_draft *d, const struct yaml_node *v, struct str path, void *into)
{
	struct str text = conf_text_read(d, v, path);
	if (text.n > 0)
		fault_unless(d, conf_worker_url(text, into, &d->c->arena), v, path);
}

static void events_endpoint(struct conf_draft *d, const struct yaml_node *v, struct str path, void *into)
{
	struct conf_worker *w = into;
	struct str text = conf_text_read(d, v, path);
	if (text.n > 0)
		fault_unless(d, conf_worker_endpoint(text, &w->events, &d->c->arena), v, path);
}

static void events_replay(struct conf_draft *d, const struct yaml_node *v, struct str path, void *into)
{
	struct conf_worker *w = into;
	struct str text = conf_text_read(d, v, path);
	if (text.n > 0)
		fault_unless(d, conf_worker_endpoint(text, &w->replay, &d->c->arena), v, path);
}

static const struct conf_field events_fields[] = { { "endpoint", events_endpoint }, { "replay", events_replay } };

static void worker_events(struct conf_draft *d, const struct yaml_node *v, struct str path, void *into)
{
	struct conf_worker *w = into;
	if ((v->kind == YAML_STRING && str_eq(v->text, STR("off"))) || (v->kind == YAML_BOOL && !v->b))
		w->events_off = true;
	else
		conf_map_read(d, v, path, events_fields, ARRAY_LEN(events_fields), w);
}

static void worker_role(struct conf_draft *d, const struct yaml_node *v, struct str path, void *into)
{
	((struct conf_worker *)into)->role = conf_text_read(d, v, path);
}

static void worker_accelerator(struct conf_draft *d, const struct yaml_node *v, struct str path, void *into)
{
	read_accelerator(d, v, path, &((struct conf_worker *)into)->accelerator);
}

static void worker_labels(struct conf_draft *d, const struct yaml_node *v, struct str path, void *into)
{
	struct conf_worker *w = into;
	if (v->kind != YAML_MAP) {
		conf_fault_add(d->faults, conf_at(d, v->pos), path, "is %s: must be a mapping of names to texts", yaml_kind_name(v->kind));
		return;
	}
	struct conf_label *labels = arena_new(&d->c->arena, struct conf_label, v->n + 1);
	for (size_t i = 0; i < v->n; i++)
		labels[i] = (struct conf_label){ arena_str(&d->c->arena, v->pairs[i].key), conf_text_read(d, v->pairs[i].val, path) };
	w->labels = labels;
	w->n_labels = v->n;
}

static void worker_key(struct conf_draft *d, const struct yaml_node *v, struct str path, void *into)
{
	((struct conf_worker *)into)->api_key = conf_text_read(d, v, path);
}

static void worker_key_file(struct conf_draft *d, const struct yaml_node *v, struct str path, void *into) { read_key_file(d, v, path, &((struct conf_worker *)into)->api_key); }
static void worker_key_env(struct conf_draft *d, const struct yaml_node *v, struct str path, void *into) { read_key_env(d, v, path, &((struct conf_worker *)into)->api_key); }

static const struct conf_field worker_fields[] = {
	{ "url", worker_url }, { "kvEvents", worker_events }, { "role", worker_role }, { "accelerator", worker_accelerator }, { "labels", worker_labels },
	{ "apiKey", worker_key }, { "apiKeyFile", worker_key_file }, { "apiKeyEnv", worker_key_env },
};

static bool url_taken(const struct conf_draft *d, const struct conf_worker *w, size_t n, struct str url, struct str *ret_pool, const struct conf_pool *own)
{
	*ret_pool = own->name;
	for (size_t i = 0; i < n; i++)
		if (str_eq(w[i].url, url))
			return true;
	for (size_t p = 0; p < d->pools.n; p++)
		for (size_t i = 0; i < d->pools.p[p].n_workers; i++)
			if (str_eq(d->pools.p[p].workers[i].url, url)) {
				*ret_pool = d->pools.p[p].name;
				return true;
			}
	return false;
}

static void pool_worker(struct conf_draft *d, const struct yaml_node *v, struct str path, struct conf_worker *w)
{
	if (v->kind == YAML_STRING) {
		worker_url(d, v, path, w);
		return;
	}
	size_t before = d->faults->list.n;
	conf_map_read(d, v, path, worker_fields, ARRAY_LEN(worker_fields), w);
	if (w->url.n == 0 && d->faults->list.n == before)
		conf_fault_add(d->faults, conf_at(d, v->pos), path, "has no url: must be url: http://HOST:PORT");
}

static void pool_workers(struct conf_draft *d, const struct yaml_node *v, struct str path, void *into)
{
	struct conf_pool *p = into;
	if (v->kind != YAML_SEQ) {
		conf_fault_add(d->faults, conf_at(d, v->pos), path, "is %s: must be a list of workers", yaml_kind_name(v->kind));
		return;
	}
	struct conf_worker *workers = arena_new(&d->c->arena, struct conf_worker, v->n + 1);
	for (size_t i = 0; i < v->n; i++) {
		struct str sub = str_of(arena_printf(&d->faults->arena, "%.*s[%zu]", STR_ARG(path), i)), where;
		pool_worker(d, v->items[i], sub, &workers[i]);
		if (workers[i].url.n > 0 && url_taken(d, workers, i, workers[i].url, &where, p))
			conf_fault_add(d->faults, conf_at(d, v->items[i]->pos), sub, "%.*s is named twice (pool '%.*s'): a worker belongs to one pool, once", STR_ARG(workers[i].url), STR_ARG(where));
	}
	p->workers = workers;
	p->n_workers = v->n;
}

/* ---- the rest of a pool */

static void pool_engine(struct conf_draft *d, const struct yaml_node *v, struct str path, void *into)
{
	struct str s = conf_text_read(d, v, path);
	if (s.n > 0 && engine_of(s) == NULL)
		conf_fault_add(d->faults, conf_at(d, v->pos), path, "'%.*s' is not in this version: must be %.*s", (int)MIN(s.n, 100), s.p, STR_ARG(engine_of(STR(""))->name));
	((struct conf_pool *)into)->engine = s;
}

static void discovery_file(struct conf_draft *d, const struct yaml_node *v, struct str path, void *into)
{
	struct str s = conf_text_read(d, v, path);
	if (s.n > 0)
		((struct conf_pool *)into)->discovery_file = beside(d, s);
}

static const struct conf_field discovery_fields[] = { { "file", discovery_file } };

static void pool_discovery(struct conf_draft *d, const struct yaml_node *v, struct str path, void *into)
{
	size_t before = d->faults->list.n;
	conf_map_read(d, v, path, discovery_fields, ARRAY_LEN(discovery_fields), into);
	if (d->faults->list.n == before && ((struct conf_pool *)into)->discovery_file.n == 0)
		conf_fault_add(d->faults, conf_at(d, v->pos), path, "names no source: must be file: PATH");
}

/* ---- tokenizer: worker, {path: FOLDER} or {hub: {repo: ORG/NAME, revision: COMMIT}} */

static void tokenizer_path(struct conf_draft *d, const struct yaml_node *v, struct str path, void *into)
{
	struct str s = conf_text_read(d, v, path);
	struct conf_tokenizer one = { .path = s.n > 0 ? beside(d, s) : s };
	((struct conf_tokenizer *)into)->path = one.path;
	fault_unless(d, conf_tokenizer_fault(&one, &d->c->arena), v, path);
}

static void hub_repo(struct conf_draft *d, const struct yaml_node *v, struct str path, void *into)
{
	struct conf_tokenizer one = { .repo = conf_text_read(d, v, path) };
	((struct conf_tokenizer *)into)->repo = one.repo;
	fault_unless(d, conf_tokenizer_fault(&one, &d->c->arena), v, path);
}

static void hub_revision(struct conf_draft *d, const struct yaml_node *v, struct str path, void *into)
{
	struct conf_tokenizer one = { .revision = conf_text_read(d, v, path) };
	((struct conf_tokenizer *)into)->revision = one.revision;
	fault_unless(d, conf_tokenizer_fault(&one, &d->c->arena), v, path);
}

static const struct conf_field hub_fields[] = { { "repo", hub_repo }, { "revision", hub_revision } };

static void tokenizer_hub(struct conf_draft *d, const struct yaml_node *v, struct str path, void *into)
{
	size_t before = d->faults->list.n;
	conf_map_read(d, v, path, hub_fields, ARRAY_LEN(hub_fields), into);
	if (d->faults->list.n == before && ((struct conf_tokenizer *)into)->repo.n == 0)
		conf_fault_add(d->faults, conf_at(d, v->pos), path, "names no repository: must have repo: ORG/NAME");
}

static const struct conf_field tokenizer_fields[] = { { "path", tokenizer_path }, { "hub", tokenizer_hub } };

static void pool_tokenizer(struct conf_draft *d, const struct yaml_node *v, struct str path, void *into)
{
	struct conf_tokenizer *t = &((struct conf_pool *)into)->tokenizer;
	size_t before = d->faults->list.n;
	if (v->kind == YAML_STRING && str_eq(v->text, STR("worker"))) {
		t->worker = true;
		return;
	}
	if (v->kind != YAML_MAP) {
		conf_fault_add(d->faults, conf_at(d, v->pos), path, "must be worker, {path: FOLDER} or {hub: {repo: ORG/NAME, revision: COMMIT}}");
		return;
	}
	conf_map_read(d, v, path, tokenizer_fields, ARRAY_LEN(tokenizer_fields), t);
	if (d->faults->list.n == before && (t->path.n > 0) == (t->repo.n > 0))
		conf_fault_add(d->faults, conf_at(d, v->pos), path, "must have path or hub, one of them");
}

static void pool_accelerator(struct conf_draft *d, const struct yaml_node *v, struct str path, void *into) { read_accelerator(d, v, path, &((struct conf_pool *)into)->accelerator); }
static void pool_key(struct conf_draft *d, const struct yaml_node *v, struct str path, void *into) { ((struct conf_pool *)into)->api_key = conf_text_read(d, v, path); }
static void pool_key_file(struct conf_draft *d, const struct yaml_node *v, struct str path, void *into) { read_key_file(d, v, path, &((struct conf_pool *)into)->api_key); }
static void pool_key_env(struct conf_draft *d, const struct yaml_node *v, struct str path, void *into) { read_key_env(d, v, path, &((struct conf_pool *)into)->api_key); }

static void pool_routing(struct conf_draft *d, const struct yaml_node *v, struct str path, void *into)
{
	struct conf_pool *p = into;
	const struct conf_option *row = conf_option_of_key(STR("routing"));
	struct conf_opts scratch;
	const char *what;
	struct str s = conf_text_read(d, v, path);
	if (s.n == 0)
		return;
	if (!conf_option_set(&scratch, row, s, &d->faults->arena, &what)) {
		conf_fault_add(d->faults, conf_at(d, v->pos), path, "%s", what);
		return;
	}
	p->has_routing = true;
	p->routing = scratch.brain.routing;
}

static void pool_authorization(struct conf_draft *d, const struct yaml_node *v, struct str path, void *into)
{
	struct str s = conf_text_read(d, v, path);
	if (s.n > 0 && !str_eq(s, STR("pass")) && !str_eq(s, STR("drop")))
		conf_fault_add(d->faults, conf_at(d, v->pos), path, "'%.*s' is not allowed: must be pass or drop", (int)MIN(s.n, 100), s.p);
	((struct conf_pool *)into)->drop_authorization = str_eq(s, STR("drop"));
}

static const struct conf_field pool_fields[] = {
	{ "workers", pool_workers }, { "discovery", pool_discovery }, { "engine", pool_engine }, { "accelerator", pool_accelerator }, { "tokenizer", pool_tokenizer },
	{ "routing", pool_routing }, { "authorization", pool_authorization }, { "apiKey", pool_key }, { "apiKeyFile", pool_key_file }, { "apiKeyEnv", pool_key_env },
};

/* What the pool says for all goes to the workers that say nothing. */
static void inherit(struct conf_draft *d, struct conf_pool *p)
{
	struct conf_worker *workers = arena_new(&d->c->arena, struct conf_worker, p->n_workers + 1);
	for (size_t i = 0; i < p->n_workers; i++) {
		workers[i] = p->workers[i];
		if (workers[i].accelerator.n == 0)
			workers[i].accelerator = p->accelerator;
		if (workers[i].api_key.n == 0)
			workers[i].api_key = p->api_key;
	}
	p->workers = workers;
}

/* ---- the pool's list, for a careful reading */

struct list_check { struct conf_draft *d; struct str file; };

static void list_fault(void *arg, unsigned line, const char *what)
{
	struct list_check *k = arg;
	conf_fault_add(k->d->faults, (struct conf_place){ k->file, line, 1 }, (struct str){ 0 }, "%s", what);
}

static void check_list(struct conf_draft *d, const struct conf_pool *p, const struct yaml_node *spec)
{
	struct list_check k = { d, p->discovery_file };
	struct conf_list list;
	const struct yaml_node *v = yaml_get(yaml_get(spec, STR("discovery")), STR("file"));
	const char *fault = conf_list_read(p->discovery_file, p, &d->c->arena, list_fault, &k, &list);
	if (fault != NULL)
		conf_fault_add(d->faults, conf_at(d, v->pos), STR("spec.discovery.file"), "'%.*s': %s", STR_ARG(p->discovery_file), fault);
	else if (list.workers.n == 0)
		conf_fault_add(d->faults, conf_at(d, v->pos), STR("spec.discovery.file"), "'%.*s': no line of the file names a worker", STR_ARG(p->discovery_file));
	for (size_t i = 0; i < list.workers.n; i++) {
		const char *unknown = list.workers.p[i].accelerator.n > 0 ? conf_worker_accelerator(list.workers.p[i].accelerator, &d->c->arena) : NULL;
		struct str where;
		if (unknown != NULL && !str_eq(list.workers.p[i].accelerator, p->accelerator))
			list_fault(&k, list.workers.p[i].line, unknown);
		if (url_taken(d, p->workers, p->n_workers, list.workers.p[i].url, &where, p))
			list_fault(&k, list.workers.p[i].line, arena_printf(&d->c->arena, "%.*s is named by the configuration too (pool '%.*s')", STR_ARG(list.workers.p[i].url), STR_ARG(where)));
	}
	VEC_FREE(&list.workers);
}

void conf_pool_read(struct conf_draft *d, struct str name, const struct yaml_node *spec, struct str path)
{
	struct conf_pool p = { .name = name, .engine = engine_of(STR(""))->name };
	size_t before = d->faults->list.n;
	conf_map_read(d, spec, path, pool_fields, ARRAY_LEN(pool_fields), &p);
	if (p.n_workers == 0 && p.discovery_file.n == 0 && d->faults->list.n == before)
		conf_fault_add(d->faults, conf_at(d, spec->pos), path, "names no worker: must have workers or discovery");
	if (d->careful && p.discovery_file.n > 0)
		check_list(d, &p, spec);
	inherit(d, &p);
	VEC_PUSH(&d->pools, p);
}
