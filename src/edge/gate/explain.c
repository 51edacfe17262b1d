/* A dry run of the stages: no client, no worker's request; the plan is told instead of walked. */
#include <stdlib.h>
#include <string.h>

#include "gate/gate_priv.h"

void gate_explain(struct gate *g, struct str method, struct str target, struct str body, gate_explain_fn *fn, void *arg)
{
	struct gate_req *r = gate_req_new(g, NULL);
	r->explain = fn;
	r->explain_arg = arg;
	r->path = api_path_find(method, target, &r->path_id);
	r->path_id = arena_str(&r->arena, r->path_id);
	if (!r->path || r->path->route == API_ROUTE_MODELS || r->path->route == API_ROUTE_MODEL || r->path->body == API_BODY_FORM) {
		gate_fail(r, ERR_UNKNOWN_PATH, NULL, NULL);
		return;
	}
	if (body.n > (size_t)g->opts.max_body_bytes || !gate_charge(g, &r->charged, (int64_t)body.n)) {
		gate_fail(r, ERR_BODY_TOO_LARGE, NULL, NULL);
		return;
	}
	r->body = must_malloc(body.n + 1);
	memcpy(r->body, body.p, body.n);
	r->body_bytes = r->body_cap = body.n;
	r->t_body = io_now(g->loop);
	gate_facts(r);
}
