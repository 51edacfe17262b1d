/* bench/workload.h: what is asked and when: seeded, the same for every policy that is compared.
 *
 * A workload is a set of sessions; a session is a row of turns; turn k+1 starts a think time after turn k was answered
 * (its arrival is then its intended time). One-turn sessions make an open loop. Times are seconds of simulated time.
 * Prompts are text made of three-letter words, one word about one token for the simulator's tokenizer, so lengths are
 * given in words. A shared prefix is the same text under every seed; what is one's own depends on the seed.
 *
 *   shared-prefix  groups x one long system prompt, a fresh question each   (llm-d's b2b at its published shape)
 *   chat           growing conversations: shared system prompt, history sent anew each turn
 *   no-sharing     every prompt fresh
 *   hot            one prompt prefix for everybody
 *   FILE           a Mooncake-format trace (JSON lines: timestamp ms, input_length, output_length, hash_ids)
 *
 * Pure but for reading the trace's text, which the caller hands in. */
#ifndef BENCH_WORKLOAD_H
#define BENCH_WORKLOAD_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/rand.h"

struct bench_workload_opts {
	struct str name;             /* one of the names above, or a file's path with `trace` set */
	struct str trace;            /* the text of a trace file */
	uint64_t seed;
	double rate;                 /* requests a second of simulated time; 0: all sessions at once (closed loop) */
	double duration_s;           /* of simulated time */
	uint32_t groups, prefix_tok, question_tok, output_tok, turns;   /* 0 = the workload's own */
	double think_s;              /* < 0 = the workload's own */
};

struct bench_turn { uint32_t question_tok, output_tok; double think_s; };
struct bench_session {
	double start_s;
	uint64_t prefix_id; uint32_t prefix_tok;       /* words of the system prompt */
	const uint32_t *blocks; uint32_t n_blocks;     /* a trace's hash ids (512 words each) instead of a prefix */
	uint64_t id;
	const struct bench_turn *turns; uint32_t n_turns;
};
struct bench_workload {
	const struct bench_session *sessions;
	size_t n, n_requests;
	bool goes_round;             /* a closed loop begins again behind its last session, until its time is over */
	const char *what;
};

/* NOT_FOUND: no such name; SYNTAX: a broken trace line. All memory is in the arena. */
must_use enum err bench_workload_make(const struct bench_workload_opts *o, struct arena *a, struct bench_workload *ret_w);
const char *bench_workload_names(void);

/* Appends n words of the text `id` (words at.. at+n). */
must_use enum err bench_words(struct buf *b, uint64_t seed, uint64_t id, uint32_t at, uint32_t n);

#endif
