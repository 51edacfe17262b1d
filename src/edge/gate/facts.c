/* Stage 2: one parse of the body: what the request is, which spans of it change, whether it must go to one worker. */
#include "gate/gate_priv.h"

static bool pin(struct gate_req *r, struct str response_id)
{
	uint64_t url_hash;
	brain_worker w;
	if (!gate_recall(r->gate->shared, response_id, &w, &url_hash))
		return false;
	const struct feed_view_worker *v = r->view ? feed_view_worker(r->view, w) : NULL;
	if (!v || hash_str(v->url, 0) != url_hash)
		return false;
	r->pinned = w;
	return true;
}

static struct str response_wanted(const struct gate_req *r)
{
	if (r->path->route == API_ROUTE_RESPONSE)
		return r->path_id;
	return r->facts.previous_response_id;
}

/* The model a request without the member means: the only base model there is. */
static struct str only_base_model(const struct feed_view *v)
{
	const struct feed_view_model *only = NULL;
	for (size_t i = 0; v && i < v->n_models; i++) {
		if (v->models[i].adapter)
			continue;
		if (only && !str_eq(v->models[i].root, only->root))
			return (struct str){ 0 };
		only = &v->models[i];
	}
	return only ? only->id : (struct str){ 0 };
}

/* Of several answers the usage is not one prompt's, and their finishing events come apart: no usage is asked then. */
static bool one_answer(const struct api_facts *f)
{
	return f->form != API_PROMPT_NONE && f->form != API_PROMPT_TEXTS && f->n == 1 && f->n_ids <= 1;
}

static enum err read_body(struct gate_req *r, struct api_fault *fault)
{
	struct str body = { r->body, r->body_bytes };
	struct json_body_opts o = { .max_bytes = (size_t)r->gate->opts.max_body_bytes, .memo = tok_memo_table(gate_shared_memo(r->gate->shared)) };
	r->facts.n = 1;
	if (r->path->body == API_BODY_JSON)
		TRY(api_facts_read(r->path, body, &o, &r->arena, &r->facts, fault));
	if (r->path->body == API_BODY_FORM)
		r->facts.model = api_form_model(http_find(r->hr->headers, STR("content-type")), body);
	TRY(api_patch_report(&r->patch, &r->facts, body, fault));
	if (r->gate->opts.ask_usage && one_answer(&r->facts))
		r->usage_added = api_patch_usage(&r->patch, &r->facts, body);
	return ERR_OK;
}

void gate_facts(struct gate_req *r)
{
	struct api_fault fault = { 0 };
	enum err e = read_body(r, &fault);
	if (e != ERR_OK) {
		gate_fail(r, e, fault.message, fault.param);
		return;
	}
	r->model_name = arena_str(&r->arena, r->facts.model);
	struct str wanted = response_wanted(r), model = r->facts.model.n ? r->facts.model : only_base_model(r->view);
	if (wanted.n && !pin(r, wanted)) {
		gate_fail(r, ERR_RESPONSE_GONE, "No worker here remembers this response", r->path_id.n ? NULL : "previous_response_id");
		return;
	}
	r->model = r->view && model.n ? feed_view_model(r->view, model) : NULL;
	if (!gate_here(r))
		gate_ids(r);
}
