/* sim/options.h: the command line of kvasir-sim. One table of rows gives parsing and --help. Pure. */
#ifndef SIM_OPTIONS_H
#define SIM_OPTIONS_H

#include "sim/cache.h"
#include "sim/fault.h"
#include "sim/profile.h"
#include "sim/spec.h"

struct sim_options {
	const char *host;
	uint32_t workers, port, events_port, replay_port;
	const char *model;
	const struct sim_profile *profile;
	uint32_t block_tok, blocks, max_model_tok, budget_tok, max_seqs; /* 0: the profile's */
	uint32_t ranks, replay_steps;
	bool array_events, wide_hashes, no_events, old_replay;
	const char *topic;
	double time_scale, jitter, idle_s;
	uint64_t seed;
	const char *api_key;
	bool enable_render, caching_off;
	uint32_t default_new_tok;
	uint32_t n_groups;
	struct sim_group groups[SIM_MAX_GROUPS];
	uint32_t retain_tok;
	uint32_t cpu_blocks;
	bool cpu_events_full;
	VEC(struct sim_lora) loras;
	VEC(struct sim_fault) faults;
};

/* false: *ret_why says what is wrong. --help and --version are the caller's: sim_options_help(). */
bool sim_options_parse(int argc, char **argv, struct sim_options *o, char ret_why[256]);
void sim_options_done(struct sim_options *o);
void sim_options_help(struct buf *out);
static inline const char *sim_options_vllm_version(const struct sim_options *o) { return o->array_events ? "0.23.0" : "0.32.0"; }

#endif
