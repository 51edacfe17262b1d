/* sim/spec.h: what an inference call asks for, read and checked as vLLM does: same statuses, error types and words where
 * they were seen (shared facts, recording surfaces). Pure. */
#ifndef SIM_SPEC_H
#define SIM_SPEC_H

#include "sim/render.h"

enum sim_api { SIM_CHAT, SIM_COMPLETION, SIM_RESPONSES, SIM_MESSAGES, SIM_GENERATE, SIM_EMBEDDING, SIM_SCORE, SIM_RERANK };
/* Of pooling models: no stream, and one step for each prompt. */
static inline bool sim_api_pools(enum sim_api api) { return api >= SIM_EMBEDDING; }

struct sim_lora {
	char name[64], path[192];
	int64_t id;
};

/* What a worker serves. */
struct sim_serving {
	struct str model;
	uint32_t max_model_tok;
	uint32_t default_new_tok; /* chat without max_tokens: the model "stops" after so many */
	struct sim_vocab *vocab;
	VEC(struct sim_lora) loras;
	int64_t last_lora_id;
};

struct sim_fail {
	int status;
	const char *type;
	char param[48]; /* empty: null */
	char message[512];
};

struct sim_spec_call {
	enum sim_api api;
	struct arena mem; /* owns what the slices point at */
	struct str model; /* as asked, or the served name */
	struct str salt, session, previous;
	struct sim_identity lora; /* only lora, lora_path, lora_id are set */
	bool stream, include_usage, continuous_usage, return_ids;
	bool no_lookup, report_full, natural_end;
	bool ignore_eos, max_given; /* as the client said */
	bool store; /* responses */
	bool remote_decode, remote_prefill; /* kv_transfer_params, NIXL's: another worker goes on; another worker computed the prompt */
	uint32_t n, max_new;
	size_t n_queries; /* of a score or ranking: so many prompts come before the documents */
	VEC(struct sim_prompt) prompts;
};

/* The body's bytes must outlive the call's prompts' text. True: *out is to be freed with sim_spec_done. */
bool sim_spec_read(
	const struct sim_serving *s, enum sim_api api, const struct json_val *body, struct sim_spec_call *out, struct sim_fail *ret_fail);
void sim_spec_done(struct sim_spec_call *c);

/* Model name or adapter: fills lora; false: unknown (404 in *ret_fail). An absent name means the base model. */
bool sim_spec_model(const struct sim_serving *s, const struct json_val *body, struct str *ret_model, struct sim_identity *ret_lora,
	struct sim_fail *ret_fail);
/* A chat or tokenize body's messages: there, a list, not empty. */
bool sim_spec_messages(const struct json_val *body, struct sim_fail *ret_fail);
void sim_fail_set(struct sim_fail *f, int status, const char *type, const char *param, const char *fmt, ...) printf_like(5, 6);
void sim_fail_bad_json(struct sim_fail *f, size_t body_bytes);
/* The error body: {"error":{"message","type","param","code"}}. */
must_use enum err sim_fail_write(const struct sim_fail *f, struct buf *out);

#endif
