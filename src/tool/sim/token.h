/* sim/token.h: the simulator's own tokenizer. Roughly four characters a token, the same text gives the same ids.
 *
 * Text is cut before each space and behind each newline, then into pieces of at most four bytes that split no UTF-8
 * sequence; <|im_start|>, <|im_end|> and the image marks are one token each. So a text that is put together from
 * messages has the ids of its messages, put together. An id is a hash of its piece (two pieces may share one: harmless,
 * as both sides see the same ids). Going back needs the pieces seen so far: a vocab remembers one per id. Pure. */
#ifndef SIM_TOKEN_H
#define SIM_TOKEN_H

#include "base/buf.h"
#include "base/vec.h"

enum {
	SIM_TOK_IM_START = 1,
	SIM_TOK_IM_END = 2,
	SIM_TOK_IMAGE_START = 3,
	SIM_TOK_IMAGE_END = 4,
	SIM_TOK_IMAGE_PAD = 5,
	SIM_TOK_FIRST = 16,
	SIM_VOCAB = 150016 /* ids are below it */
};

struct sim_vocab; /* one a process: which piece an id stands for */
struct sim_vocab *sim_vocab_new(void);
void sim_vocab_free(struct sim_vocab *v);

typedef VEC(uint32_t) sim_ids;
void sim_tokenize(struct sim_vocab *v, struct str text, sim_ids *out); /* appends */
/* The text of an id; "<id>" for one never seen. out: room for 16 bytes. */
struct str sim_token_text(const struct sim_vocab *v, uint32_t id, char out[16]);
/* The i-th generated piece for a seed: a syllable with a space before it, or without one when bare. Returns its id. */
uint32_t sim_token_make(struct sim_vocab *v, uint64_t seed, uint32_t i, bool bare);

#endif
