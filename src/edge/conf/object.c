/* YAML documents -> objects: apiVersion, kind, metadata and the spec of the Gateway. A fault never stops the reading. */
#include "conf/conf_priv.h"

#include <stdio.h>
#include <string.h>

#define API STR("kvasir.dev/v1alpha1")

static const char *const later_kinds[] = { "ModelAlias", "InferencePolicy", "InferenceProvider", "Tenant", "PriceList" };

static struct str allowed_keys(struct conf_draft *d, const struct conf_field *fields, size_t n)
{
	struct buf b;
	buf_init(&b, 2048);
	for (size_t i = 0; i < n; i++)
		if (buf_printf(&b, "%s%s", i == 0 ? "" : ", ", fields[i].key) != ERR_OK)
			break;
	struct str s = arena_str(&d->faults->arena, buf_str(&b));
	buf_done(&b);
	return s;
}

void conf_map_read(struct conf_draft *d, const struct yaml_node *map, struct str path, const struct conf_field *fields, size_t n, void *into)
{
	if (map->kind != YAML_MAP) {
		conf_fault_add(d->faults, conf_at(d, map->pos), path, "is %s: must be a mapping of %.*s", yaml_kind_name(map->kind), STR_ARG(allowed_keys(d, fields, n)));
		return;
	}
	for (size_t i = 0; i < map->n; i++) {
		const struct yaml_pair *pair = &map->pairs[i];
		struct str sub = str_of(arena_printf(&d->faults->arena, "%.*s%s%.*s", STR_ARG(path), path.n ? "." : "", (int)MIN(pair->key.n, 100), pair->key.p));
		size_t k = 0;
		while (k < n && !str_eq(str_of(fields[k].key), pair->key))
			k++;
		if (k == n)
			conf_fault_add(d->faults, conf_at(d, pair->pos), sub, "is not known here: allowed are %.*s", STR_ARG(allowed_keys(d, fields, n)));
		else
			fields[k].read(d, pair->val, sub, into);
	}
}

struct str conf_text_read(struct conf_draft *d, const struct yaml_node *v, struct str path)
{
	bool good = v->kind != YAML_SEQ && v->kind != YAML_MAP && v->kind != YAML_NULL && v->text.n > 0;
	if (good && memchr(v->text.p, 0, v->text.n) != NULL) {      /* the system would read a shorter name than is written */
		conf_fault_add(d->faults, conf_at(d, v->pos), path, "holds a NUL byte: must be a text without one");
		return (struct str){ 0 };
	}
	if (good)
		return arena_str(&d->c->arena, v->text);
	conf_fault_add(d->faults, conf_at(d, v->pos), path, "is %s: must be a text", v->kind == YAML_STRING ? "empty" : yaml_kind_name(v->kind));
	return (struct str){ 0 };
}

/* ---- Gateway: dotted keys of the option rows */

/* Does a row live under this dotted prefix? */
static bool is_branch(struct str key)
{
	const struct conf_option *rows;
	size_t n = conf_options(&rows);
	for (size_t i = 0; i < n; i++)
		if (str_starts(str_of(rows[i].key), key) && rows[i].key[key.n] == '.')
			return true;
	return false;
}

/* The members a mapping at this prefix may have, each once. */
static struct str branch_members(struct conf_draft *d, struct str prefix)
{
	const struct conf_option *rows;
	size_t n = conf_options(&rows);
	struct buf b;
	buf_init(&b, 4096);
	struct str last = { 0 };
	for (size_t i = 0; i < n; i++) {
		struct str key = str_of(rows[i].key), head, tail;
		if (prefix.n > 0 && (!str_starts(key, prefix) || key.p[prefix.n] != '.'))
			continue;
		str_cut(str_skip(key, prefix.n ? prefix.n + 1 : 0), '.', &head, &tail);
		if (str_eq(head, last))
			continue;
		if (buf_printf(&b, "%s%.*s", last.n ? ", " : "", STR_ARG(head)) != ERR_OK)
			break;
		last = head;
	}
	struct str s = arena_str(&d->faults->arena, buf_str(&b));
	buf_done(&b);
	return s;
}

/* A list is kept comma-joined. */
static struct str option_text(struct conf_draft *d, const struct conf_option *row, const struct yaml_node *v, struct str path)
{
	bool may_be_empty = (row->type == CONF_TEXT || row->type == CONF_LIST || row->type == CONF_SECRET) && v->kind == YAML_STRING;
	if (may_be_empty && v->text.n == 0)
		return (struct str){ "", 0 };
	if (row->type != CONF_LIST || v->kind != YAML_SEQ)
		return conf_text_read(d, v, path);
	struct buf b;
	buf_init(&b, 65536);
	for (size_t i = 0; i < v->n; i++) {
		struct str s = conf_text_read(d, v->items[i], path);
		if (s.n > 0 && buf_printf(&b, "%s%.*s", b.n ? "," : "", STR_ARG(s)) != ERR_OK)
			conf_fault_add(d->faults, conf_at(d, v->pos), path, "the list is too long");
	}
	struct str s = arena_str(&d->c->arena, buf_str(&b));
	buf_done(&b);
	return s;
}

static void option_read(struct conf_draft *d, const struct conf_option *row, const struct yaml_node *v, struct str path)
{
	size_t before = d->faults->list.n;
	struct str text = option_text(d, row, v, path);
	const char *what = d->faults->list.n == before ? conf_option_take(d, row, text) : NULL;
	if (what != NULL)
		conf_fault_add(d->faults, conf_at(d, v->pos), path, "%s", what);
}

/* The tree of options is at most two deep; the loop over levels is bounded by the rows' keys. */
static void branch_read(struct conf_draft *d, const struct yaml_node *map, struct str prefix, struct str path, unsigned depth)
{
	if (map->kind != YAML_MAP) {
		conf_fault_add(d->faults, conf_at(d, map->pos), path, "is %s: must be a mapping of %.*s", yaml_kind_name(map->kind), STR_ARG(branch_members(d, prefix)));
		return;
	}
	for (size_t i = 0; i < map->n; i++) {
		const struct yaml_pair *pair = &map->pairs[i];
		struct str key = str_of(arena_printf(&d->faults->arena, "%.*s%s%.*s", STR_ARG(prefix), prefix.n ? "." : "", (int)MIN(pair->key.n, 100), pair->key.p));
		struct str sub = str_of(arena_printf(&d->faults->arena, "%.*s.%.*s", STR_ARG(path), (int)MIN(pair->key.n, 100), pair->key.p));
		const struct conf_option *row = conf_option_of_key(key);
		if (row != NULL)
			option_read(d, row, pair->val, sub);
		else if (depth < 4 && is_branch(key))
			branch_read(d, pair->val, key, sub, depth + 1);
		else
			conf_fault_add(d->faults, conf_at(d, pair->pos), sub, "is not known here: allowed are %.*s", STR_ARG(branch_members(d, prefix)));
	}
}

void conf_gateway_read(struct conf_draft *d, const struct yaml_node *spec, struct str path) { branch_read(d, spec, (struct str){ 0 }, path, 0); }

/* ---- one object */

struct object { struct str api, kind, name; const struct yaml_node *spec; bool has_api, has_kind, has_name; struct yaml_pos kind_pos, api_pos; };

static void read_api(struct conf_draft *d, const struct yaml_node *v, struct str path, void *into)
{
	struct object *o = into;
	o->api = conf_text_read(d, v, path);
	o->api_pos = v->pos;
	o->has_api = true;
}

static void read_kind(struct conf_draft *d, const struct yaml_node *v, struct str path, void *into)
{
	struct object *o = into;
	o->kind = conf_text_read(d, v, path);
	o->kind_pos = v->pos;
	o->has_kind = true;
}

static void read_metadata(struct conf_draft *d, const struct yaml_node *v, struct str path, void *into)
{
	struct object *o = into;
	if (v->kind != YAML_MAP) {
		conf_fault_add(d->faults, conf_at(d, v->pos), path, "is %s: must be a mapping with name", yaml_kind_name(v->kind));
		return;
	}
	const struct yaml_node *name = yaml_get(v, STR("name"));
	o->has_name = name != NULL;
	if (o->has_name)
		o->name = conf_text_read(d, name, STR("metadata.name"));
}

static void read_spec(struct conf_draft *d, const struct yaml_node *v, struct str path, void *into)
{
	struct object *o = into;
	(void)d, (void)path;
	o->spec = v;
}

static void read_status(struct conf_draft *d, const struct yaml_node *v, struct str path, void *into) { (void)d, (void)v, (void)path, (void)into; }

static const struct conf_field object_fields[] = {
	{ "apiVersion", read_api }, { "kind", read_kind }, { "metadata", read_metadata }, { "spec", read_spec }, { "status", read_status },
};

static bool is_later_kind(struct str kind)
{
	for (size_t i = 0; i < ARRAY_LEN(later_kinds); i++)
		if (str_eq(str_of(later_kinds[i]), kind))
			return true;
	return false;
}

static void gateway(struct conf_draft *d, const struct object *o)
{
	if (d->has_gateway) {
		conf_fault_add(d->faults, conf_at(d, o->kind_pos), STR("kind"), "a second Gateway: one is allowed, the first is at %.*s:%u", STR_ARG(d->gateway_file), d->gateway_line);
		return;
	}
	d->has_gateway = true;
	d->gateway_file = d->file;
	d->gateway_line = o->kind_pos.line;
	if (o->spec != NULL)
		conf_gateway_read(d, o->spec, STR("spec"));
}

static void pool(struct conf_draft *d, const struct object *o, const struct yaml_node *doc)
{
	if (!o->has_name)
		conf_fault_add(d->faults, conf_at(d, doc->pos), STR("metadata.name"), "is missing: a WorkerPool needs a name");
	for (size_t i = 0; i < d->pools.n; i++)
		if (o->name.n > 0 && str_eq(d->pools.p[i].name, o->name))
			conf_fault_add(d->faults, conf_at(d, doc->pos), STR("metadata.name"), "'%.*s' names a WorkerPool twice", STR_ARG(o->name));
	if (o->spec == NULL)
		conf_fault_add(d->faults, conf_at(d, doc->pos), STR("spec"), "is missing: a WorkerPool needs workers or discovery");
	else
		conf_pool_read(d, o->name, o->spec, STR("spec"));
}

/* Is it meant for us? Then the rest is looked at too, whatever is wrong with its version. */
static bool check_api(struct conf_draft *d, const struct object *o, const struct yaml_node *doc)
{
	if (!o->has_api)
		conf_fault_add(d->faults, conf_at(d, doc->pos), STR("apiVersion"), "is missing: must be kvasir.dev/v1alpha1");
	else if (o->api.n > 0 && !str_eq(o->api, API) && !is_later_kind(o->kind))
		conf_fault_add(d->faults, conf_at(d, o->api_pos), STR("apiVersion"), "'%.*s' is not known: must be kvasir.dev/v1alpha1", (int)MIN(o->api.n, 100), o->api.p);
	return o->api.n == 0 || str_starts(o->api, STR("kvasir.dev/"));
}

static void object(struct conf_draft *d, const struct yaml_node *doc)
{
	struct object o = { 0 };
	if (doc->kind == YAML_NULL)
		return;
	conf_map_read(d, doc, (struct str){ 0 }, object_fields, ARRAY_LEN(object_fields), &o);
	if (doc->kind != YAML_MAP)
		return;
	bool ours = check_api(d, &o, doc);
	if (!o.has_kind)
		conf_fault_add(d->faults, conf_at(d, doc->pos), STR("kind"), "is missing: must be Gateway or WorkerPool");
	else if (is_later_kind(o.kind))
		conf_fault_add(d->faults, conf_at(d, o.kind_pos), STR("kind"), "%.*s is not in this version: allowed are Gateway and WorkerPool", STR_ARG(o.kind));
	else if (str_eq(o.kind, STR("Gateway")) && ours)
		gateway(d, &o);
	else if (str_eq(o.kind, STR("WorkerPool")) && ours)
		pool(d, &o, doc);
	else if (ours && o.kind.n > 0)
		conf_fault_add(d->faults, conf_at(d, o.kind_pos), STR("kind"), "'%.*s' is not known: allowed are Gateway and WorkerPool", (int)MIN(o.kind.n, 100), o.kind.p);
}

void conf_objects_read(struct conf_draft *d, struct str file, struct str text)
{
	d->file = arena_str(&d->c->arena, file);
	struct yaml_file *y = yaml_file_read(text);
	size_t n;
	const struct yaml_fault *faults = yaml_faults(y, &n);
	for (size_t i = 0; i < n; i++)
		conf_fault_add(d->faults, conf_at(d, faults[i].pos), (struct str){ 0 }, "%s", faults[i].what);
	for (size_t i = 0; i < yaml_docs(y); i++)
		if (yaml_doc(y, i) != NULL)
			object(d, yaml_doc(y, i));
	yaml_file_free(y);
}
