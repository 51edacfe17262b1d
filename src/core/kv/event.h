/* kv/event.h: one batch of KV cache events in our own form; core/engine decodes each engine's wire shape into it.
 * Slices and arrays live in the decoder's arena until the batch was applied. */
#ifndef KV_EVENT_H
#define KV_EVENT_H

#include "base/str.h"
#include "kv/key.h"

enum kv_event_type { KV_EVENT_STORED, KV_EVENT_REMOVED, KV_EVENT_CLEARED };
enum kv_group_kind { KV_GROUP_UNKNOWN, KV_GROUP_FULL, KV_GROUP_WINDOW, KV_GROUP_MAMBA, KV_GROUP_CHUNKED };
enum kv_tier { KV_TIER_GPU, KV_TIER_CPU, KV_TIER_STORAGE, KV_TIER_UNKNOWN, KV_TIERS = KV_TIER_UNKNOWN };
enum { KV_MAX_GROUPS = 16 };

struct kv_block_extras { const struct kv_extra *p; size_t n; };

struct kv_event {
	enum kv_event_type type;
	enum kv_tier tier;
	uint32_t group;                    /* group_idx, 0 when the engine does not say */
	bool group_known;                  /* false: a removal without a group applies to every group that holds the hash */
	/* stored and removed */
	const uint64_t *hashes; size_t n_hashes;   /* engine block hashes: low 64 bits */
	/* stored */
	bool has_parent; uint64_t parent;
	const uint32_t *ids; size_t n_ids;
	uint32_t block_size;
	struct str adapter;                /* lora_name, "" = base */
	const struct kv_block_extras *extras;      /* one per hash, or NULL */
	enum kv_group_kind kind; uint32_t window_tok;
};

struct kv_batch {
	double ts_s;                       /* the worker's wall clock */
	int64_t dp_rank;                   /* -1: not said */
	const struct kv_event *events; size_t n_events;
	uint32_t skipped;                  /* unknown tags, unusable events */
	uint32_t odd_parts;                /* passed over within events: unknown fields, bare strings in later blocks and the like */
};

#endif
