/* feed/metric.h: what edge/feed counts. Gauges of workers and ranks are written at scrape time by edge/ops. */
#ifndef FEED_METRIC_H
#define FEED_METRIC_H

#include "obs/metric.h"

#define FEED_METRICS(X)                                                                                                                             \
	X(FEED_M_ASKS, COUNTER, "kvasir_feed_requests_total", "Probes and scrapes of workers by question and result.", NULL, 1, 64, "what", "result") \
	X(FEED_M_RELEARNT, COUNTER, "kvasir_feed_worker_restarts_total", "Workers that came back, or turned out to be another process, and were learnt anew.", NULL, 1, 1) \
	X(FEED_M_BATCHES, COUNTER, "kvasir_feed_event_batches_total", "KV event batches received, by way.", NULL, 1, 4, "way")                      \
	X(FEED_M_BLOCKS, COUNTER, "kvasir_feed_index_changes_total", "Changes of the index told to the brain.", NULL, 1, 1)                          \
	X(FEED_M_UNDECODED, COUNTER, "kvasir_feed_undecoded_batches_total", "KV event batches that could not be decoded, by reason.", NULL, 1, 8, "reason") \
	X(FEED_M_DROPPED, COUNTER, "kvasir_feed_dropped_batches_total", "KV event batches dropped because the queue of their rank was full; they are asked for again.", NULL, 1, 1) \
	X(FEED_M_REPLAYS, COUNTER, "kvasir_feed_replays_total", "Replays of KV events asked for, by result.", NULL, 1, 4, "result")                  \
	X(FEED_M_DISCOVERY, COUNTER, "kvasir_feed_discovery_reads_total", "Readings of discovery files by result.", NULL, 1, 4, "result")            \
	X(FEED_M_BAD_LINES, COUNTER, "kvasir_feed_discovery_bad_lines_total", "Lines of discovery files that named no worker.", NULL, 1, 1)                         \
	X(FEED_M_VIEWS, COUNTER, "kvasir_feed_views_total", "Pictures of the fleet made for the hands: at most one for many changes that come together.", NULL, 1, 1)
enum { FEED_METRICS(OBS_ROW_ID) FEED_M_COUNT };

#endif
