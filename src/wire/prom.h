/* wire/prom.h: reads the Prometheus text format (0.0.4 and what OpenMetrics adds to it) sample by sample.
 *
 * Tolerant: a line that cannot be read (bad name, unclosed label, no number, more than PROM_MAX_LABELS labels, longer
 * than PROM_MAX_LINE) is counted in `skipped` and the next one is tried. Comments, time stamps and exemplars are passed
 * over. Pure, allocates nothing; slices are valid during the callback only. */
#ifndef WIRE_PROM_H
#define WIRE_PROM_H

#include "base/str.h"

enum { PROM_MAX_LABELS = 128, PROM_MAX_LINE = 8192 };

struct prom_label { struct str name, value; };     /* value unescaped */
struct prom_sample {
	struct str name;
	const struct prom_label *labels;
	size_t n_labels;
	double value;                              /* NaN, +Inf and -Inf come through */
};
struct prom_count { size_t samples, skipped; };

typedef void prom_sample_fn(void *arg, const struct prom_sample *s);
struct prom_count prom_parse(struct str text, prom_sample_fn *fn, void *arg);
/* Value of a label; empty slice with p == NULL when absent. */
struct str prom_label(const struct prom_sample *s, struct str name);

#endif
