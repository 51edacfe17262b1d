/* sched/profile.h: what a prompt costs on a given pair of model and accelerator: start values, before anything is learnt.
 *
 * One engine step takes c0 + max(w, b*P) + q * sum c*(2s+c) + k * sum L + r * decodes (P uncached prompt tokens, chunks of
 * c tokens at context s, L context of each decoding sequence). Mixtures of experts read more weights the more tokens a
 * step has: w + w1 * (1 - idle^tokens). A worker whose accelerator is not said or not known gets SCHED_PROFILE_DEFAULT;
 * the slow factor (sched/cost.h) mends the scale. Source: the shared facts, workloads.md section 3 (fitted to public figures). */
#ifndef SCHED_PROFILE_H
#define SCHED_PROFILE_H

#include "base/str.h"

#define SCHED_PROFILE_DEFAULT "llama-8b-h100"

struct sched_profile {
	const char *name;
	double a_us;             /* API, tokenising, the first token's way out */
	double b_us_tok;         /* prefill, linear */
	double q_us_tok2;        /* prefill, attention */
	double w_us, w1_us;      /* reading the weights, once a step; w1: experts */
	double idle_share;
	double k_us_tok;         /* decode, per token of context */
	double c0_us, r_us;      /* per step; per decoding sequence */
	uint64_t kv_tok;         /* cache, when the worker does not say */
	double kv_bytes_tok;     /* of one token on each of its devices, which load side by side */
	uint32_t budget_tok;     /* prompt tokens of one step */
	uint32_t max_seqs;
};

/* Never NULL: an unknown name gives the default and *ret_known (may be NULL) false. Case does not matter. */
const struct sched_profile *sched_profile_find(struct str name, bool *ret_known);
/* The names that are known, those of an accelerator alone last: for messages and documents. NULL behind the last. */
const char *sched_profile_name(size_t i);

#endif
