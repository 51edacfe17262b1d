/* metric.c: series tables and their text. Cells are written by one thread and read by any: every access is a relaxed
 * atomic of one word (a plain load or store on the machines we run on), a series is published by storing its count last. */
#include "obs/metric.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/must.h"
#include "base/vec.h"
#include "obs/text.h"

const struct obs_bounds obs_bounds_latency_us = { 21,
	{ 1000, 2000, 5000, 10000, 20000, 50000, 100000, 150000, 200000, 300000, 500000, 750000, 1000000, 2000000, 3000000, 5000000,
	  10000000, 20000000, 30000000, 60000000, 120000000 } };
const struct obs_bounds obs_bounds_short_us = { 15,
	{ 5, 10, 20, 50, 100, 200, 300, 500, 1000, 2000, 5000, 10000, 50000, 200000, 1000000 } };
const struct obs_bounds obs_bounds_tok = { 16,
	{ 1, 16, 64, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072, 262144, 524288, 1048576 } };
const struct obs_bounds obs_bounds_bytes = { 10, { 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864 } };
const struct obs_bounds obs_bounds_share = { 11, { 0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100 } };

enum { ID_SHIFT = 20, INDEX_MASK = (1 << ID_SHIFT) - 1 };

struct series { struct str values[OBS_MAX_LABELS]; };
struct family {
	const struct obs_def *def;
	uint32_t n_labels, n_cells;     /* cells of one series */
	uint32_t n;                     /* published series; the slot max_series is "_other" */
	uint32_t other_used;
	uint32_t last;                  /* found last: most look-ups ask for it again */
	struct series *series;          /* max_series + 1 */
	int64_t *cells;
	struct map by_hash;             /* hash of the labels -> index; the writer's own */
};
struct obs_set {
	struct family *families;
	uint32_t n;
	struct arena labels;
};

const char *obs_kind_name(enum obs_kind k)
{
	static const char *const names[] = { "counter", "gauge", "histogram" };
	return names[k];
}

static void family_init(struct family *f, const struct obs_def *d)
{
	must(d->name && d->help && d->max_series >= 1 && d->max_series < INDEX_MASK);
	must((d->kind == OBS_HISTOGRAM) == (d->bounds != NULL));
	f->def = d;
	while (f->n_labels < OBS_MAX_LABELS && d->labels[f->n_labels])
		f->n_labels++;
	f->n_cells = d->bounds ? d->bounds->n + 2 : 1;     /* buckets, +Inf, sum */
	f->series = must_calloc(d->max_series + 1u, sizeof(*f->series));
	f->cells = must_calloc((size_t)(d->max_series + 1u) * f->n_cells, sizeof(*f->cells));
	for (uint32_t i = 0; i < f->n_labels; i++)
		f->series[d->max_series].values[i] = STR("_other");
	map_init(&f->by_hash);
	f->n = f->n_labels == 0;                           /* without labels the one series is there from the start */
}

struct obs_set *obs_set_new(const struct obs_def *defs, uint32_t n_defs)
{
	must(n_defs < 1u << (32 - ID_SHIFT));
	struct obs_set *s = must_calloc(1, sizeof(*s));
	s->families = must_calloc(n_defs, sizeof(*s->families));
	s->n = n_defs;
	arena_init(&s->labels, 0);
	for (uint32_t i = 0; i < n_defs; i++)
		family_init(&s->families[i], &defs[i]);
	return s;
}

void obs_set_free(struct obs_set *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; i < s->n; i++) {
		free(s->families[i].series);
		free(s->families[i].cells);
		map_done(&s->families[i].by_hash);
	}
	free(s->families);
	arena_done(&s->labels);
	free(s);
}

static uint64_t hash_labels(const struct str *values, uint32_t n)
{
	uint64_t h = n;
	for (uint32_t i = 0; i < n; i++)
		h = hash_str(values[i], h);
	return h;
}

static bool same_labels(const struct str *a, const struct str *b, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (!str_eq(a[i], b[i]))
			return false;
	return true;
}

static uint32_t add_series(struct obs_set *s, struct family *f, const struct str *values, uint64_t hash)
{
	if (f->n == f->def->max_series) {
		__atomic_store_n(&f->other_used, 1, __ATOMIC_RELAXED);
		return f->def->max_series;
	}
	for (uint32_t i = 0; i < f->n_labels; i++)
		f->series[f->n].values[i] = arena_str(&s->labels, values[i]);
	map_put(&f->by_hash, hash, f->n);
	__atomic_store_n(&f->n, f->n + 1, __ATOMIC_RELEASE);
	return f->n - 1;
}

obs_series obs_find(struct obs_set *s, uint32_t id, const struct str *values)
{
	must(id < s->n);
	struct family *f = &s->families[id];
	if (!f->n_labels)
		return id << ID_SHIFT;
	if (f->n && same_labels(f->series[f->last].values, values, f->n_labels))
		return id << ID_SHIFT | f->last;
	struct str cut[OBS_MAX_LABELS];
	for (uint32_t i = 0; i < f->n_labels; i++)
		cut[i] = str_sub(values[i], 0, OBS_LABEL_MAX);
	uint64_t h = hash_labels(cut, f->n_labels), at;
	while (map_get(&f->by_hash, h, &at)) {
		if (same_labels(f->series[at].values, cut, f->n_labels)) {
			f->last = (uint32_t)at;
			return id << ID_SHIFT | f->last;
		}
		h = hash_mix(h + 1);                       /* two label sets, one hash */
	}
	return id << ID_SHIFT | add_series(s, f, cut, h);
}

static struct family *family_of(const struct obs_set *s, obs_series x) { return &s->families[x >> ID_SHIFT]; }
static int64_t *cells_of(const struct obs_set *s, obs_series x)
{
	const struct family *f = family_of(s, x);
	return f->cells + (size_t)(x & INDEX_MASK) * f->n_cells;
}
static int64_t load(const int64_t *p) { return __atomic_load_n(p, __ATOMIC_RELAXED); }
static void bump(int64_t *p, int64_t by) { __atomic_store_n(p, (int64_t)((uint64_t)load(p) + (uint64_t)by), __ATOMIC_RELAXED); }

void obs_add(struct obs_set *s, obs_series x, uint64_t n) { bump(cells_of(s, x), (int64_t)n); }
void obs_sub(struct obs_set *s, obs_series x, uint64_t n) { bump(cells_of(s, x), -(int64_t)n); }
void obs_put(struct obs_set *s, obs_series x, int64_t v) { __atomic_store_n(cells_of(s, x), v, __ATOMIC_RELAXED); }

void obs_observe(struct obs_set *s, obs_series x, int64_t v)
{
	const struct obs_bounds *b = family_of(s, x)->def->bounds;
	must(b != NULL);
	int64_t *c = cells_of(s, x);
	uint32_t lo = 0, hi = b->n;
	while (lo < hi) {
		uint32_t mid = (lo + hi) / 2;
		if (b->le[mid] < v)
			lo = mid + 1;
		else
			hi = mid;
	}
	bump(&c[lo], 1);
	bump(&c[b->n + 1], v);
}

int64_t obs_value(const struct obs_set *s, obs_series x)
{
	const struct obs_bounds *b = family_of(s, x)->def->bounds;
	const int64_t *c = cells_of(s, x);
	int64_t sum = 0;
	for (uint32_t i = 0; i <= (b ? b->n : 0); i++)
		sum += load(&c[i]);
	return sum;
}

/* ---- text ---- */

struct row { const struct str *values; int64_t *cells; };
struct rows { VEC(struct row) v; struct map by_hash; struct arena mem; };

static struct row *row_find(struct rows *r, const struct str *values, uint32_t n_labels, uint32_t n_cells)
{
	uint64_t h = hash_labels(values, n_labels), at;
	while (map_get(&r->by_hash, h, &at)) {
		if (same_labels(r->v.p[at].values, values, n_labels))
			return &r->v.p[at];
		h = hash_mix(h + 1);
	}
	map_put(&r->by_hash, h, r->v.n);
	VEC_PUSH(&r->v, (struct row){ values, arena_new(&r->mem, int64_t, n_cells) });
	return &r->v.p[r->v.n - 1];
}

static void gather(struct rows *r, const struct family *f)
{
	uint32_t n = __atomic_load_n(&f->n, __ATOMIC_ACQUIRE);
	bool other = __atomic_load_n(&f->other_used, __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < n + other; i++) {
		uint32_t at = i < n ? i : f->def->max_series;
		struct row *row = row_find(r, f->series[at].values, f->n_labels, f->n_cells);
		for (uint32_t c = 0; c < f->n_cells; c++)
			row->cells[c] += load(&f->cells[(size_t)at * f->n_cells + c]);
	}
}

static enum err write_histogram(struct buf *out, const struct obs_def *d, uint32_t n_labels, const struct row *row)
{
	const char *labels[OBS_MAX_LABELS + 1];
	struct str values[OBS_MAX_LABELS + 1];
	char name[128], le[32];
	for (uint32_t i = 0; i < n_labels; i++) {
		labels[i] = d->labels[i];
		values[i] = row->values[i];
	}
	labels[n_labels] = "le";
	(void)snprintf(name, sizeof(name), "%s_bucket", d->name);
	int64_t total = 0;
	for (uint32_t i = 0; i <= d->bounds->n; i++) {
		total += row->cells[i];
		if (i < d->bounds->n)
			(void)snprintf(le, sizeof(le), "%.12g", (double)d->bounds->le[i] * d->scale);
		values[n_labels] = i < d->bounds->n ? str_of(le) : STR("+Inf");
		TRY(obs_text_sample(out, name, labels, values, n_labels + 1, (double)total));
	}
	(void)snprintf(name, sizeof(name), "%s_sum", d->name);
	TRY(obs_text_sample(out, name, labels, values, n_labels, (double)row->cells[d->bounds->n + 1] * d->scale));
	(void)snprintf(name, sizeof(name), "%s_count", d->name);
	return obs_text_sample(out, name, labels, values, n_labels, (double)total);
}

static enum err write_rows(struct buf *out, const struct family *f, const struct rows *r)
{
	const struct obs_def *d = f->def;
	TRY(obs_text_family(out, d->name, d->kind, d->help));
	for (size_t i = 0; i < r->v.n; i++) {
		const struct row *row = &r->v.p[i];
		if (d->kind == OBS_HISTOGRAM)
			TRY(write_histogram(out, d, f->n_labels, row));
		else
			TRY(obs_text_sample(out, d->name, d->labels, row->values, f->n_labels, (double)row->cells[0] * d->scale));
	}
	return ERR_OK;
}

uint32_t obs_rows(const struct obs_set *s) { return s->n; }

enum err obs_write(struct buf *out, const struct obs_set *const *sets, size_t n_sets, uint32_t id)
{
	struct rows r = { 0 };
	map_init(&r.by_hash);
	arena_init(&r.mem, 0);
	must(n_sets && id < sets[0]->n);
	for (size_t i = 0; i < n_sets; i++)
		gather(&r, &sets[i]->families[id]);
	enum err e = r.v.n ? write_rows(out, &sets[0]->families[id], &r) : ERR_OK;
	VEC_FREE(&r.v);
	map_done(&r.by_hash);
	arena_done(&r.mem);
	return e;
}

