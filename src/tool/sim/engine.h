/* sim/engine.h: one vLLM-like engine (a data-parallel rank) in virtual time: continuous batching over a block cache.
 *
 * Nothing here waits or reads a clock. Time is a count of virtual microseconds that the owner moves:
 *
 *     struct sim_engine *e = sim_engine_new(&opts);
 *     struct sim_req *r; (void)sim_engine_add(e, &ask, now_us, &r);
 *     while (sim_engine_next(e) <= horizon) sim_engine_advance(e, sim_engine_next(e));
 *
 * A fleet in virtual time: keep N engines, always advance the one with the smallest sim_engine_next().
 *
 * One step: decodes first, then running prefills, then waiting requests in order of arrival, while the token budget and
 * max_num_seqs allow; a waiting request enters only when its whole prompt fits beside what is found in the cache; when a running one
 * needs a block and none is free, the youngest is preempted and recomputed later. Blocks are findable when their step
 * is scheduled; its events and tokens come out when it ends. Step time: sim/profile.h with lognormal jitter.
 *
 * What a CPU tier (sim/cache.h) or another worker has of a prompt is loaded beside the steps: the request has all its blocks meanwhile
 * and enters behind the load, which counts as cached.
 *
 * Callbacks run from sim_engine_advance(), at the end of a step: first on_batch, then on_token per sequence. They may
 * call sim_engine_add and sim_engine_abort. Pure: owner's thread, no I/O. */
#ifndef SIM_ENGINE_H
#define SIM_ENGINE_H

#include "base/err.h"
#include "sim/cache.h"
#include "sim/profile.h"

#define SIM_NEVER INT64_MAX

struct sim_engine;
struct sim_req;

struct sim_engine_ops {
	/* `last`: the request reached max_new; it is freed after this call. tok: the generated token's id. */
	void (*on_token)(void *arg, struct sim_req *r, uint32_t tok, bool last);
	/* The step's events, at least one. */
	void (*on_batch)(void *arg, const struct sim_batch *b);
	/* The id of the i-th generated token (0 = first); NULL: a built-in function of seed and i. */
	uint32_t (*next_token)(void *arg, const struct sim_req *r, uint64_t seed, uint32_t i);
};

struct sim_engine_opts {
	const struct sim_profile *profile;
	struct sim_cache_opts cache; /* blocks 0 and block_tok 0: from the profile */
	uint32_t budget_tok, max_seqs, max_model_tok; /* 0: from the profile; max_model_tok is lowered to what the cache can hold */
	double jitter; /* sigma of the log; 0.05 is the fitted fleet's */
	uint64_t seed;
	const struct sim_engine_ops *ops; /* NULL: no callbacks, poll sim_req_* */
	void *arg;
};

struct sim_ask {
	const uint32_t *tok;
	size_t n_tok;
	uint32_t max_new; /* at least 1 */
	struct sim_identity id; /* copied, strings included */
	bool no_lookup; /* as prompt_logprobs does: stores, but finds nothing */
	bool report_full; /* kv_cache_report_mode=full */
	bool remote_prefill; /* kv_transfer_params: another worker computed the prompt; taken as loaded, at no cost */
	uint64_t seed; /* mixed with a digest of the prompt */
	bool keep; /* not freed at its end, so it can be polled; sim_req_free() then */
	void *user;
};

struct sim_engine *sim_engine_new(const struct sim_engine_opts *o);
void sim_engine_free(struct sim_engine *e); /* requests still there are dropped without callbacks */

/* RANGE: prompt empty or longer than max_model_tok - 1, or max_new 0. max_new is cut to what max_model_tok leaves. */
must_use enum err sim_engine_add(struct sim_engine *e, const struct sim_ask *a, int64_t now_us, struct sim_req **ret_req);
void sim_engine_abort(struct sim_engine *e, struct sim_req *r); /* frees its blocks and r, at once */
int64_t sim_engine_next(const struct sim_engine *e); /* when advance() has something to do; SIM_NEVER: idle */
void sim_engine_advance(struct sim_engine *e, int64_t now_us); /* everything due up to now */
int64_t sim_engine_time(const struct sim_engine *e); /* inside callbacks: the end of the step */
bool sim_engine_reset_cache(struct sim_engine *e); /* false while requests run; AllBlocksCleared leads the next step's batch */
void sim_engine_slow(struct sim_engine *e, double factor); /* steps take so many times as long from now on */
uint32_t sim_engine_max_model_tok(const struct sim_engine *e);
uint32_t sim_engine_block_tok(const struct sim_engine *e);
uint32_t sim_engine_blocks(const struct sim_engine *e); /* with the null block, as num_gpu_blocks says */

struct sim_engine_stats {
	uint64_t begun, ended, aborted, preempted, steps;
	uint64_t prompt_tok, generated_tok, query_tok, hit_tok;
	uint64_t load_tok; /* found elsewhere than on the GPU */
	uint32_t running, waiting;
	uint32_t used_blocks, held_blocks, size_blocks, cpu_blocks;
};
struct sim_engine_stats sim_engine_stats(const struct sim_engine *e);
/* What a newcomer would find now, in tokens (an oracle for tests and benches). */
uint32_t sim_engine_would_hit(struct sim_engine *e, const struct sim_ask *a);

void *sim_req_user(const struct sim_req *r);
void sim_req_set_user(struct sim_req *r, void *user);
uint32_t sim_req_prompt_tok(const struct sim_req *r);
uint32_t sim_req_cached_tok(const struct sim_req *r); /* what the first scheduling found, loads included */
uint32_t sim_req_created_tok(const struct sim_req *r); /* prompt tokens in blocks newly stored */
uint32_t sim_req_new_tok(const struct sim_req *r);
bool sim_req_scheduled(const struct sim_req *r);
int64_t sim_req_first_us(const struct sim_req *r); /* SIM_NEVER until then */
int64_t sim_req_end_us(const struct sim_req *r);
void sim_req_free(struct sim_req *r); /* one added with keep, after its end */

#endif
