/* sim/event.h: KV events of one engine step, before they are encoded. Field meanings are vLLM's
 * (shared facts, vllm-observed.md I.2). A batch owns what its events point at, until it is cleared. Pure. */
#ifndef SIM_EVENT_H
#define SIM_EVENT_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/vec.h"

enum sim_spec { SIM_FULL, SIM_WINDOW, SIM_MAMBA };
const char *sim_spec_name(enum sim_spec s); /* full_attention, sliding_window, mamba */

struct sim_mmkey {
	struct str hash;
	int64_t offset;
}; /* offset of the item from the block's start; negative in later blocks */
struct sim_extra {
	struct str lora, salt;
	const struct sim_mmkey *mm;
	size_t n_mm;
}; /* all empty: nil */

enum sim_event_kind { SIM_STORED, SIM_REMOVED, SIM_CLEARED };
enum sim_medium { SIM_GPU, SIM_CPU };

struct sim_event {
	enum sim_event_kind kind;
	enum sim_medium medium;
	bool bare; /* stored: hashes alone, as the offloading connector's placeholder */
	uint32_t group;
	const uint64_t *hashes; /* stored: those of the blocks this group keeps, may be none; removed: one */
	size_t n_hashes;
	bool has_parent;
	uint64_t parent;
	const uint32_t *tok; /* the whole range, kept or not */
	size_t n_tok;
	uint32_t block_tok;
	int64_t lora_id; /* 0: nil */
	struct str lora;
	const struct sim_extra *extra; /* n_hashes entries; NULL: nil */
	enum sim_spec spec;
	uint32_t window_tok; /* windows only */
	struct str session; /* empty: left out */
};

struct sim_batch {
	VEC(struct sim_event) ev;
	struct arena mem;
};

void sim_batch_init(struct sim_batch *b);
void sim_batch_clear(struct sim_batch *b);
void sim_batch_done(struct sim_batch *b);
struct sim_event sim_batch_removal(struct sim_batch *b, enum sim_medium medium, uint32_t group, uint64_t hash); /* not yet among its events */
void sim_batch_cleared(struct sim_batch *b);

/* One batch as msgpack: [ts, [events], rank]. `array`: events as vLLM 0.23 sends them (12 long, all members);
 * else as maps (0.24 and later; members that equal their default are left out). */
struct sim_encoding {
	bool array, wide_hashes;
	uint32_t lie_block_tok;
}; /* wide: 32 bytes; lie: said instead of the truth when not 0 */
must_use enum err sim_batch_encode(const struct sim_batch *b, const struct sim_encoding *e, double unix_s, uint32_t rank, struct buf *out);

#endif
