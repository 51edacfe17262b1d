/* sim/route.h: the paths a worker serves. Inside the room. */
#ifndef SIM_ROUTE_H
#define SIM_ROUTE_H

#include "sim/call.h"

struct sim_route {
	const char *method, *path;
	void (*handle)(struct sim_exch *x);
	bool inference; /* faults aim at it unless told otherwise */
	bool prefix; /* the path goes on */
};

/* The body as JSON; NULL after an error was answered. */
struct json_doc *sim_route_json(struct sim_exch *x);

/* plain.c */
void sim_plain_models(struct sim_exch *x);
void sim_plain_version(struct sim_exch *x);
void sim_plain_health(struct sim_exch *x);
void sim_plain_load(struct sim_exch *x);
void sim_plain_event_sources(struct sim_exch *x);
void sim_plain_metrics(struct sim_exch *x);
void sim_plain_reset_cache(struct sim_exch *x);
void sim_plain_load_lora(struct sim_exch *x);
void sim_plain_unload_lora(struct sim_exch *x);
void sim_plain_stats(struct sim_exch *x);
void sim_plain_fault(struct sim_exch *x);
/* prompt.c */
void sim_prompt_tokenize(struct sim_exch *x);
void sim_prompt_detokenize(struct sim_exch *x);
void sim_prompt_count_tokens(struct sim_exch *x);
void sim_prompt_render_chat(struct sim_exch *x);
void sim_prompt_render_completion(struct sim_exch *x);

#endif
