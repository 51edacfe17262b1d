/* gate/metric.h: what a hand counts. Label values come from fixed tables or from the fleet's own names, never from a
 * client's text. */
#ifndef GATE_METRIC_H
#define GATE_METRIC_H

#include "obs/metric.h"

#define GATE_METRICS(X)                                                                                                                    \
	X(GATE_M_REQUESTS, COUNTER, "kvasir_requests_total", "Requests ended, by path, status and outcome.", NULL, 1, 1024, "path",        \
		"code", "outcome")                                                                                                         \
	X(GATE_M_ROUTED, COUNTER, "kvasir_routed_total", "Requests sent to a worker, by reason of the choice.", NULL, 1, 4096, "worker",   \
		"reason")                                                                                                                  \
	X(GATE_M_UPSTREAM, COUNTER, "kvasir_worker_answers_total", "Ends of requests at workers, by outcome.", NULL, 1, 4096, "worker",    \
		"outcome")                                                                                                                 \
	X(GATE_M_SWITCHES, COUNTER, "kvasir_switches_total", "Requests moved to the next worker of their plan after a connect failure.",   \
		NULL, 1, 2048, "worker")                                                                                                   \
	X(GATE_M_REFUSED, COUNTER, "kvasir_refused_total", "Requests answered with an error of our own, by reason.", NULL, 1, 64,          \
		"reason")                                                                                                                  \
	X(GATE_M_OPEN, GAUGE, "kvasir_requests_open", "Requests under way, by stage.", NULL, 1, 16, "stage")                               \
	X(GATE_M_BODY_BYTES, GAUGE, "kvasir_request_body_bytes", "Memory of request bodies held now.", NULL, 1, 1)                         \
	X(GATE_M_DURATION, HISTOGRAM, "kvasir_request_duration_seconds", "First byte of the request to last byte of the answer.",          \
		&obs_bounds_latency_us, 1e-6, 64, "path")                                                                                  \
	X(GATE_M_TTFT, HISTOGRAM, "kvasir_ttft_seconds", "Request complete to first token (streams) or whole answer.",                     \
		&obs_bounds_latency_us, 1e-6, 64, "path")                                                                                  \
	X(GATE_M_OWN, HISTOGRAM, "kvasir_overhead_seconds", "Request complete to sent, without waiting for token ids.",                    \
		&obs_bounds_short_us, 1e-6, 64, "path")                                                                                    \
	X(GATE_M_IDS, COUNTER, "kvasir_token_ids_total", "Prompts by where their token ids came from, or why there were none.", NULL, 1,   \
		64, "source")                                                                                                              \
	X(GATE_M_LEFT, COUNTER, "kvasir_token_ids_left_total",                                                                             \
		"Prompts that the tokenizer in this process left to the workers, by reason.", NULL, 1, 96, "reason")                       \
	X(GATE_M_COMPARED, COUNTER, "kvasir_token_ids_compared_total",                                                                     \
		"Our token ids held against a worker's: same, different, or other_length (its usage).", NULL, 1, 8, "result")              \
	X(GATE_M_IDS_TIME, HISTOGRAM, "kvasir_token_ids_seconds", "Wait of a request for token ids (cache hits left out).",                \
		&obs_bounds_short_us, 1e-6, 1)                                                                                             \
	X(GATE_M_TOK_PROMPT, COUNTER, "kvasir_prompt_tokens_total", "Prompt tokens as the workers reported them.", NULL, 1, 1)             \
	X(GATE_M_TOK_CACHED, COUNTER, "kvasir_cached_tokens_total", "Of these, tokens the workers found in their cache.", NULL, 1, 1)      \
	X(GATE_M_TOK_OUTPUT, COUNTER, "kvasir_output_tokens_total", "Output tokens as the workers reported them.", NULL, 1, 1)             \
	X(GATE_M_DROPPED_EVENTS, COUNTER, "kvasir_usage_events_hidden_total",                                                              \
		"Usage events that clients had not asked for and did not see.", NULL, 1, 1)

enum { GATE_METRICS(OBS_ROW_ID) GATE_M_COUNT };
extern const struct obs_def gate_metric_defs[GATE_M_COUNT];

#endif
