/* sim/profile.h: what one engine step costs on a given pair of model and accelerator.
 *
 *   t_step = c0 + max(w, b*P) + q * sum over chunks c*(2s+c) + k * sum over decodes L + r * n_dec
 *     P    uncached prompt tokens in the step
 *     c,s  a chunk of c tokens that starts at context s
 *     L    context of each decoding sequence
 *   mixtures of experts: w = w0 + w1 * (1 - (1-K/E)^tokens)      (the share of experts the batch touches)
 *   TTFT = a + wait + steps until the prompt's last chunk
 *
 * Source: the shared facts, workloads.md section 3 (fitted to public figures; not measured by us). Pure tables. */
#ifndef SIM_PROFILE_H
#define SIM_PROFILE_H

#include "base/str.h"

struct sim_profile {
	const char *name, *what, *model;
	double a_ms; /* API, tokenising, first token's way out */
	double b_us_tok; /* prefill, linear part */
	double q_ns_tok2; /* prefill, attention part */
	double w_ms, w1_ms; /* weights read once a step; w1 > 0: a mixture of experts */
	double idle_share; /* 1 - K/E; 0 for dense models */
	double k_us_tok; /* decode, per token of context */
	double c0_ms, r_ms; /* per step; per decoding sequence */
	uint64_t kv_tok; /* capacity of the KV cache */
	double kv_bytes_tok; /* KV of a token on each device */
	uint32_t budget_tok; /* max_num_batched_tokens */
	uint32_t max_seqs; /* max_num_seqs */
	uint32_t block_tok;
	uint32_t max_model_tok;
	bool instant; /* steps take no time at all */
};

const struct sim_profile *sim_profile_find(struct str name); /* NULL: unknown */
const struct sim_profile *sim_profile_at(size_t i); /* NULL behind the last */

struct sim_step_load {
	uint64_t prefill_tok; /* P */
	double chunk_tok2; /* sum c*(2s+c) */
	uint64_t decode_ctx_tok; /* sum L */
	uint32_t decodes; /* n_dec */
};
double sim_profile_load_us(const struct sim_profile *p, uint32_t tok); /* from host memory, beside the steps */
double sim_profile_step_us(const struct sim_profile *p, const struct sim_step_load *l); /* without jitter */

#endif
