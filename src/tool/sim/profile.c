#include "sim/profile.h"

#include <math.h>

/* Columns of the fitted table; capacities marked there as derived are rounded as given. */
#define DENSE(n, d, m, a, b, q, w, k, kv, kvb)                                                                                                 \
	{                                                                                                                                  \
		.name = n, .what = d, .model = m, .a_ms = a, .b_us_tok = b, .q_ns_tok2 = q, .w_ms = w, .k_us_tok = k, .c0_ms = 1,          \
		.r_ms = 0.03, .kv_tok = kv, .kv_bytes_tok = kvb, .budget_tok = 8192, .max_seqs = 256, .block_tok = 16,        \
		.max_model_tok = 131072                 \
	}
#define EXPERTS(n, d, m, b, q, w0, w1, k, kv, kvb)                                                                                             \
	{                                                                                                                                  \
		.name = n, .what = d, .model = m, .a_ms = 28, .b_us_tok = b, .q_ns_tok2 = q, .w_ms = w0, .w1_ms = w1,                      \
		.idle_share = 31.0 / 32, .k_us_tok = k, .c0_ms = 2, .r_ms = 0.03, .kv_tok = kv, .kv_bytes_tok = kvb, .budget_tok = 8192, .max_seqs = 256,       \
		.block_tok = 16, .max_model_tok = 131072                                                                                   \
	}

static const struct sim_profile profiles[] = {
	DENSE("qwen3-32b-h100-tp2", "Qwen3-32B on 2 H100", "Qwen/Qwen3-32B", 25, 55, 0.95, 9.8, 0.062, 307328, 131072),
	DENSE("qwen3-32b-h200-tp2", "Qwen3-32B on 2 H200", "Qwen/Qwen3-32B", 25, 55, 0.95, 7.2, 0.043, 760000, 131072),
	DENSE("qwen3-32b-h200", "Qwen3-32B on one H200", "Qwen/Qwen3-32B", 25, 105, 1.9, 14.3, 0.087, 247000, 262144),
	DENSE("llama-8b-a100", "Llama-3.1-8B on one A100-80", "meta-llama/Llama-3.1-8B-Instruct", 20, 66, 1.3, 9.7, 0.10, 420000, 131072),
	DENSE("llama-8b-h100", "Llama-3.1-8B on one H100", "meta-llama/Llama-3.1-8B-Instruct", 20, 25.5, 0.52, 5.0, 0.062, 420000, 131072),
	DENSE("llama-8b-l4", "Llama-3.1-8B on one L4 (roofline only)", "meta-llama/Llama-3.1-8B-Instruct", 30, 230, 4.8, 57, 0.69, 30000, 131072),
	DENSE("llama-70b-h100-tp4", "Llama-3.3-70B on 4 H100", "meta-llama/Llama-3.3-70B-Instruct", 25, 66, 0.66, 16, 0.039, 487000, 81920),
	DENSE("llama-70b-h100-tp8", "Llama-3.3-70B on 8 H100", "meta-llama/Llama-3.3-70B-Instruct", 25, 43, 0.33, 10.5, 0.019, 1420000, 40960),
	EXPERTS("gpt-oss-120b-h200", "gpt-oss-120b on one H200", "openai/gpt-oss-120b", 19.3, 0.304, 1.2, 12, 0.012, 1220000, 73728),
	/* Capacity at 80 GB is not published: the H200's less the 61 GB it lacks, at 72 KiB a token. */
	EXPERTS("gpt-oss-120b-h100", "gpt-oss-120b on one H100 (KV capacity estimated)", "openai/gpt-oss-120b", 19.5, 0.31, 1.8, 17, 0.017,
		390000, 73728),
	{ .name = "llama-3b-cpu",
		.what = "Llama-3.2-3B on a Sapphire Rapids CPU",
		.model = "meta-llama/Llama-3.2-3B-Instruct",
		.a_ms = 20,
		.b_us_tok = 508,
		.q_ns_tok2 = 1,
		.w_ms = 45,
		.k_us_tok = 1,
		.c0_ms = 1,
		.r_ms = 0.03,
		.kv_tok = 65536,
		.kv_bytes_tok = 114688,
		.budget_tok = 2048,
		.max_seqs = 64,
		.block_tok = 128,
		.max_model_tok = 32768 },
	{ .name = "instant",
		.what = "answers at once: measures the gateway's own cost",
		.model = "instant",
		.kv_tok = 4194304,
		.budget_tok = 1u << 30,
		.max_seqs = 4096,
		.block_tok = 16,
		.max_model_tok = 1048576,
		.instant = true },
};

const struct sim_profile *sim_profile_at(size_t i) { return i < ARRAY_LEN(profiles) ? &profiles[i] : NULL; }

const struct sim_profile *sim_profile_find(struct str name)
{
	for (size_t i = 0; i < ARRAY_LEN(profiles); i++)
		if (str_eq(name, str_of(profiles[i].name)))
			return &profiles[i];
	return NULL;
}

/* The facts' CPU tier: 20 GB/s on each device, which load side by side. */
double sim_profile_load_us(const struct sim_profile *p, uint32_t tok) { return p->kv_bytes_tok * tok / 20e3; }

double sim_profile_step_us(const struct sim_profile *p, const struct sim_step_load *l)
{
	if (p->instant)
		return 0;
	double tokens = (double)(l->prefill_tok + l->decodes);
	double weights_us = 1e3 * (p->w_ms + p->w1_ms * (1 - pow(p->idle_share, tokens)));
	double linear_us = p->b_us_tok * (double)l->prefill_tok;
	return 1e3 * p->c0_ms + MAX(weights_us, linear_us) + 1e-3 * p->q_ns_tok2 * l->chunk_tok2 + p->k_us_tok * (double)l->decode_ctx_tok +
	       1e3 * p->r_ms * l->decodes;
}
