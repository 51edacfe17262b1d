/* sim/chunk.h: the bytes of answers, in the members and order of vLLM 0.32 (and 0.23's usage when told so). Pure:
 * appends to a buf. Streams: each function appends one or more whole events, each ending in a blank line. */
#ifndef SIM_CHUNK_H
#define SIM_CHUNK_H

#include "sim/spec.h"

struct sim_usage {
	uint64_t prompt_tok, new_tok, cached_tok, created_tok;
	bool old; /* below 0.24: details null on a miss, no created_cache_tokens */
};

/* What is the same in every chunk of an answer. */
struct sim_answer {
	enum sim_api api;
	struct str id, model;
	int64_t created_s;
	const char *fingerprint;
	bool include_usage, continuous_usage, return_ids;
	const struct sim_spec_call *call;
	/* Where another worker would fetch the prompt's blocks, for a call that asks for it. */
	struct str engine_id, host;
	uint32_t side_port, block_tok;
	struct buf head; /* how each chunk begins; made by sim_chunk_open */
};

struct sim_piece {
	uint32_t choice, nth; /* nth token of this choice, from 0 */
	struct str text;
	uint32_t tok;
	const char *finish; /* NULL: goes on; else length or stop */
	bool last; /* of the whole answer */
	struct sim_usage usage; /* so far */
};

struct sim_choice_text {
	struct str text;
	const uint32_t *tok;
	size_t n_tok;
	const char *finish;
};

/* Before the first piece; sim_chunk_close frees. */
must_use enum err sim_chunk_open(struct sim_answer *a);
void sim_chunk_close(struct sim_answer *a);
must_use enum err sim_chunk_piece(struct buf *out, const struct sim_answer *a, const struct sim_piece *p);
/* Usage, if asked for, and the end of the stream. all: the joined text of choice 0 (responses repeat it). */
must_use enum err sim_chunk_end(struct buf *out, const struct sim_answer *a, const struct sim_usage *u, struct str all, const char *finish);
must_use enum err sim_chunk_whole(
	struct buf *out, const struct sim_answer *a, const struct sim_choice_text *c, size_t n, const struct sim_usage *u);

#endif
