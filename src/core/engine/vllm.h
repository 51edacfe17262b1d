/* engine/vllm.h: vLLM's KV cache events and metric names.
 *
 * Events are MessagePack: a batch [ts, [event...], data_parallel_rank] (a map of these names is accepted too); an event is
 * an array, tag first (up to 0.23; fields were only ever appended, so 7, 8, 9, 10, 12 and more elements are read alike), a
 * map with its tag under "type" (0.24 and later), or either wrapped in a bin. Hashes are unsigned or negative integers or
 * a bin of 8 bytes or more, of which the last 8 count. Unknown tags, keys and extension types are skipped and counted.
 * Source: vllm-observed.md I.2, II.1; vllm-wire.md 1.2-1.4, 10. Pure. */
#ifndef ENGINE_VLLM_H
#define ENGINE_VLLM_H

#include "engine/engine.h"

/* Limits on one batch, far above what a worker sends: ERR_LIMIT beyond. */
enum { VLLM_MAX_EVENTS = 1 << 20, VLLM_MAX_HASHES = 1 << 22, VLLM_MAX_IDS = 1 << 25 };

extern const struct engine vllm_engine;
must_use enum err vllm_events(struct str payload, struct arena *a, struct kv_batch *ret_b);

#endif
