/* obs/metric.h: counters, gauges and histograms: tables of rows declared by the room that counts, plain integers per
 * thread, text at scrape time.
 *
 * A room declares its rows once, as a table, and keeps one `struct obs_set` per thread that counts:
 *
 *	#define GATE_METRICS(X) \
 *		X(GATE_M_REQUESTS, COUNTER,   "kvasir_requests_total", "Requests by outcome.", NULL, 1, 64, "pool", "outcome") \
 *		X(GATE_M_TTFT,     HISTOGRAM, "kvasir_ttft_seconds", "Time to first token.", &obs_bounds_latency_us, 1e-6, 64, "pool") \
 *		X(GATE_M_OPEN,     GAUGE,     "kvasir_connections", "Client connections open.", NULL, 1, 1)
 *	enum { GATE_METRICS(OBS_ROW_ID) GATE_M_COUNT };
 *	static const struct obs_def gate_defs[] = { GATE_METRICS(OBS_ROW_DEF) };
 *	...
 *	struct obs_set *set = obs_set_new(gate_defs, GATE_M_COUNT);
 *	obs_series s = obs_find(set, GATE_M_REQUESTS, (struct str[]){ pool, STR("ok") });   // may be kept
 *	obs_add(set, s, 1);
 *
 * Owner: one set has one writing thread. Any thread may read it at any time (obs_write): memory never moves, words are
 * stored whole, a series appears only when its labels are complete. Bounded: a metric has at most `max_series` series;
 * what comes after is counted under label values "_other". Label values longer than OBS_LABEL_MAX bytes are cut.
 * Values are integers in the room's unit (microseconds, bytes); `scale` turns them into the unit of the name at scrape.
 * Gauges of things that come and go (workers) are better written at scrape time: obs/text.h. */
#ifndef OBS_METRIC_H
#define OBS_METRIC_H

#include "base/buf.h"

enum { OBS_MAX_LABELS = 6, OBS_MAX_BOUNDS = 32, OBS_LABEL_MAX = 160 };
enum obs_kind { OBS_COUNTER, OBS_GAUGE, OBS_HISTOGRAM };
const char *obs_kind_name(enum obs_kind k);

/* Upper bounds of histogram buckets, ascending, in the room's unit; +Inf is implied. */
struct obs_bounds { uint32_t n; int64_t le[OBS_MAX_BOUNDS]; };
extern const struct obs_bounds obs_bounds_latency_us;   /* 1 ms .. 120 s: answers of workers */
extern const struct obs_bounds obs_bounds_short_us;     /* 5 us .. 1 s: the gateway's own work */
extern const struct obs_bounds obs_bounds_tok;          /* 1 .. 1 M tokens */
extern const struct obs_bounds obs_bounds_bytes;        /* 256 B .. 64 MiB */
extern const struct obs_bounds obs_bounds_share;        /* 0 .. 100 percent; scale 0.01 for a ratio */

struct obs_def {
	const char *name;                 /* counters end in _total, units in base units: _seconds, _bytes, _tokens */
	const char *help;                 /* one sentence; also the text of doc/reference */
	enum obs_kind kind;
	const struct obs_bounds *bounds;  /* histograms */
	double scale;                     /* value in the name's unit = stored integer x scale */
	uint32_t max_series;              /* >= 1; 1 for a metric without labels */
	const char *labels[OBS_MAX_LABELS];
};
#define OBS_ROW_ID(id, ...) id,
#define OBS_ROW_DEF(id, kind_, name_, help_, bounds_, scale_, max_, ...) \
	[id] = { .name = name_, .help = help_, .kind = OBS_##kind_, .bounds = bounds_, .scale = scale_, .max_series = max_, .labels = { __VA_ARGS__ } },

struct obs_set;
struct obs_set *obs_set_new(const struct obs_def *defs, uint32_t n_defs);   /* defs must outlive the set */
void obs_set_free(struct obs_set *s);

/* The series of metric `id` with these label values (as many as the row has labels; NULL for none). Never fails: a full
 * table gives the "_other" series. Handles stay good for the set's life. */
typedef uint32_t obs_series;
obs_series obs_find(struct obs_set *s, uint32_t id, const struct str *values);

void obs_add(struct obs_set *s, obs_series x, uint64_t n);       /* counters; gauges too */
void obs_sub(struct obs_set *s, obs_series x, uint64_t n);       /* gauges */
void obs_put(struct obs_set *s, obs_series x, int64_t v);        /* gauges */
void obs_observe(struct obs_set *s, obs_series x, int64_t v);    /* histograms */
int64_t obs_value(const struct obs_set *s, obs_series x);        /* counters and gauges; histograms: how many observations */

/* Text exposition (format 0.0.4) of one row of sets that share one table of rows, summed (gauges too). LIMIT when `out`
 * is full: it then holds whole lines only. A row at a time, because a large fleet's are too many lines for one turn. */
uint32_t obs_rows(const struct obs_set *s);
must_use enum err obs_write(struct buf *out, const struct obs_set *const *sets, size_t n_sets, uint32_t id);

#endif
