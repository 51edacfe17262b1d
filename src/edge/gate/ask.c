/* Stage 4: block keys for the sizes in use, the question to the brain, its plan. */
#include "gate/gate_priv.h"

/* Several prompts in one body: workers report the cached tokens of the last, in streams of the first (facts:
 * vllm-observed I.3), so that one is keyed. */
static const struct text_prompt *keyed_prompt(const struct gate_req *r)
{
	if (!r->ids || !r->ids->n)
		return NULL;
	return &r->ids->prompts[r->facts.stream ? 0 : r->ids->n - 1];
}

static void put_keys(struct gate_req *r, const struct text_prompt *p)
{
	struct kv_mm_item *mm = arena_new(&r->arena, struct kv_mm_item, p->n_mm);
	struct kv_prompt_extras x = { .cache_salt = r->facts.cache_salt, .mm = mm, .n_mm = p->n_mm };
	uint64_t seed = kv_seed(r->model->adapter ? r->model->id : (struct str){ 0 });
	for (size_t i = 0; i < p->n_mm; i++)
		mm[i] = (struct kv_mm_item){ .hash = p->mm[i].hash, .offset_tok = p->mm[i].offset_tok, .len_tok = p->mm[i].len_tok };
	r->keys = (struct kv_prompt){ .n_tok = (uint32_t)(p->n + p->rest_tok) };
	for (uint32_t i = 0; i < r->model->n_block_sizes && i < KV_MAX_SIZES; i++) {
		uint32_t size = r->model->block_sizes[i];
		uint64_t *keys = arena_new(&r->arena, uint64_t, p->n / size);
		size_t n = kv_prompt_keys(seed, p->ids, p->n, size, &x, keys);
		r->keys.sets[r->keys.n_sets++] = (struct kv_keyset){ .block_size = size, .n = (uint32_t)n, .keys = keys };
	}
}

/* Consistent hashing: the session, else what names the user's prompts, else how the prompt begins. */
static uint64_t affinity(const struct gate_req *r)
{
	struct str session = r->hr ? http_find(r->hr->headers, STR("x-session-id")) : (struct str){ 0 };
	const struct str tries[] = { session, r->facts.prompt_cache_key, r->facts.user, r->facts.prompt_head };
	for (size_t i = 0; i < ARRAY_LEN(tries); i++)
		if (tries[i].n)
			return hash_str(tries[i], 0);
	return 0;
}

/* A token is about four bytes of text; a body without a known prompt counts as a whole. */
static uint32_t estimate(const struct gate_req *r)
{
	size_t bytes = r->facts.form == API_PROMPT_NONE ? r->body_bytes : r->facts.prompt_text_bytes;
	return (uint32_t)MIN(bytes / 4 + 1, (size_t)UINT32_MAX / 2);
}

static void tell_explained(struct gate_req *r)
{
	struct gate_explained x = { .model = r->model_name,
		.ids_why = r->ids_why,
		.plan = &r->plan,
		.view = r->view,
		.prompt_tok = r->prompt ? r->keys.n_tok : estimate(r) };
	gate_explain_fn *fn = r->explain;
	r->explain = NULL;
	gate_enter(r, GATE_OVER);
	fn(r->explain_arg, &x);
	gate_req_maybe_free(r);
}

/* The plan may name workers that came after the request began. */
static void freshen_view(struct gate_req *r)
{
	struct gate *g = r->gate;
	if (r->view == g->view)
		return;
	feed_view_unref(r->view);
	r->view = feed_view_ref(g->view);
	r->model = NULL;
}

static const char *ask_fault(enum err e)
{
	if (e == ERR_BAD_REQUEST)
		return "Several models are served here: `model` is needed";
	return NULL;
}

static void on_plan(void *arg, enum err e, const struct brain_plan *plan)
{
	struct gate_req *r = arg;
	r->asking = false;
	if (e == ERR_OK) {
		r->plan = *plan;
		r->has_plan = true;
	}
	if (r->state != GATE_ASK) { /* the client left, or the drain's limit came */
		gate_settle_worker(r, BRAIN_NOT_SENT, 0);
		gate_req_maybe_free(r);
		return;
	}
	if (e != ERR_OK) {
		gate_fail(r, e, ask_fault(e), e == ERR_UNKNOWN_MODEL || e == ERR_BAD_REQUEST ? "model" : NULL);
		return;
	}
	freshen_view(r);
	if (r->explain)
		tell_explained(r);
	else
		gate_legs(r);
}

void gate_ask(struct gate_req *r)
{
	r->prompt = keyed_prompt(r);
	bool routed = r->prompt || r->path->route == API_ROUTE_CHAT || r->path->route == API_ROUTE_COMPLETIONS;
	if (r->prompt)
		put_keys(r, r->prompt);
	struct brain_ask a = {
		.model = r->model_name,
		.prompt = r->prompt ? &r->keys : NULL,
		.prefix_only = r->prompt && r->prompt->rest_tok,
		.no_ids_why = r->ids_why,
		.no_lookup = r->facts.no_lookup,
		.prompt_tok_estimate = estimate(r),
		.max_new_tok = r->facts.has_max_tok ? (uint32_t)MIN(r->facts.max_tok, (uint64_t)UINT32_MAX) : 0,
		.stream = r->facts.stream,
		.kv_routed = routed,
		.affinity_key = affinity(r),
		.pinned = r->pinned,
		.dry_run = r->explain,
		.request_id = r->id,
		.client_id = r->client_id,
	};
	gate_enter(r, GATE_ASK);
	r->asking = true;
	gate_link_ask(r->gate->link, &a, on_plan, r);
}
