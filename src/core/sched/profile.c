/* profile.c: the table of start values. */
#include "sched/profile.h"

#define DENSE(n, a, b, q, w, k, kv, kvb) { .name = n, .a_us = a * 1e3, .b_us_tok = b, .q_us_tok2 = q * 1e-3, .w_us = w * 1e3, .k_us_tok = k, \
		.c0_us = 1e3, .r_us = 30, .kv_tok = kv, .kv_bytes_tok = kvb, .budget_tok = 8192, .max_seqs = 256 }
#define EXPERTS(n, b, q, w, w1, k, kv, kvb) { .name = n, .a_us = 28e3, .b_us_tok = b, .q_us_tok2 = q * 1e-3, .w_us = w * 1e3, .w1_us = w1 * 1e3, \
		.idle_share = 31.0 / 32, .k_us_tok = k, .c0_us = 2e3, .r_us = 30, .kv_tok = kv, .kv_bytes_tok = kvb, .budget_tok = 8192, .max_seqs = 256 }

/* The last column, bytes of KV a token and device: layers * KV heads * head size * 2 (keys, values) * 2 bytes, over the devices. */
static const struct sched_profile profiles[] = {
	DENSE("qwen3-32b-h100-tp2", 25, 55, 0.95, 9.8, 0.062, 307328, 131072),
	DENSE("qwen3-32b-h200-tp2", 25, 55, 0.95, 7.2, 0.043, 760000, 131072),
	DENSE("qwen3-32b-h200", 25, 105, 1.9, 14.3, 0.087, 247000, 262144),
	DENSE("llama-8b-a100", 20, 66, 1.3, 9.7, 0.10, 420000, 131072),
	DENSE("llama-8b-h100", 20, 25.5, 0.52, 5.0, 0.062, 420000, 131072),
	DENSE("llama-8b-l4", 30, 230, 4.8, 57, 0.69, 30000, 131072),
	DENSE("llama-70b-h100-tp4", 25, 66, 0.66, 16, 0.039, 487000, 81920),
	DENSE("llama-70b-h100-tp8", 25, 43, 0.33, 10.5, 0.019, 1420000, 40960),
	EXPERTS("gpt-oss-120b-h200", 19.3, 0.304, 1.2, 12, 0.012, 1220000, 73728),
	EXPERTS("gpt-oss-120b-h100", 19.5, 0.31, 1.8, 17, 0.017, 390000, 73728),
	{ .name = "llama-3b-cpu", .a_us = 20e3, .b_us_tok = 508, .q_us_tok2 = 1e-3, .w_us = 45e3, .k_us_tok = 1, .c0_us = 1e3, .r_us = 30,
	  .kv_tok = 65536, .kv_bytes_tok = 114688, .budget_tok = 2048, .max_seqs = 64 },
	/* A simulated worker that answers at once: its cost is the wire's. */
	{ .name = "instant", .a_us = 200, .b_us_tok = 0.001, .w_us = 1, .kv_tok = 4194304, .kv_bytes_tok = 1, .budget_tok = 1u << 30, .max_seqs = 4096 },
};

/* An accelerator alone, when the model is not said: the row nearest to it. */
static const struct { const char *alias, *name; } aliases[] = {
	{ "h100", "llama-8b-h100" }, { "a100", "llama-8b-a100" }, { "l4", "llama-8b-l4" }, { "h200", "qwen3-32b-h200" }, { "cpu", "llama-3b-cpu" },
};

static const struct sched_profile *find(struct str name)
{
	for (size_t i = 0; i < ARRAY_LEN(profiles); i++)
		if (str_ieq(name, str_of(profiles[i].name)))
			return &profiles[i];
	return NULL;
}

const struct sched_profile *sched_profile_find(struct str name, bool *ret_known)
{
	const struct sched_profile *p = find(name);
	for (size_t i = 0; !p && i < ARRAY_LEN(aliases); i++)
		if (str_ieq(name, str_of(aliases[i].alias)))
			p = find(str_of(aliases[i].name));
	if (ret_known)
		*ret_known = p != NULL;
	return p ? p : find(str_of(SCHED_PROFILE_DEFAULT));
}

const char *sched_profile_name(size_t i)
{
	if (i < ARRAY_LEN(profiles))
		return profiles[i].name;
	i -= ARRAY_LEN(profiles);
	return i < ARRAY_LEN(aliases) ? aliases[i].alias : NULL;
}
