/* obs/text.h: the metric text format written straight from values at scrape time: gauges of workers, pools, the index.
 *
 *	TRY(obs_text_family(out, "kvasir_worker_in_flight_requests", OBS_GAUGE, "Requests in flight."));
 *	TRY(obs_text_sample(out, "kvasir_worker_in_flight_requests", (const char *[]){ "worker" }, (struct str[]){ url }, 1, 7));
 *
 * All samples of a family follow its head. Escapes what needs escaping. Errors: LIMIT (out is full, nothing was added).
 * Source: Prometheus text exposition format 0.0.4. */
#ifndef OBS_TEXT_H
#define OBS_TEXT_H

#include "obs/metric.h"

must_use enum err obs_text_family(struct buf *out, const char *name, enum obs_kind kind, const char *help);
must_use enum err obs_text_sample(struct buf *out, const char *name, const char *const *labels, const struct str *values, size_t n_labels, double v);

#endif
