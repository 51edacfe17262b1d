/* Token ids from the tokenizer in this process. Prompts with little new text at once; others on the thread pool, so that other
 * streams do not wait. And the proof that they are right: the first prompts of a model and then a sample are asked of a worker as well, beside the
 * request, and what a worker reports as a prompt's length is held against ours. */
#include <stdlib.h>

#include "gate/gate_priv.h"

enum { SCRATCHES_MAX = 4, JOB_CACHE_BYTES = 1 << 20 };

void gate_local_left(struct gate *g, const char *why)
{
	obs_add(g->metrics, obs_find(g->metrics, GATE_M_LEFT, (struct str[]){ str_of(why) }), 1);
}

/* ---- working memory: one for each of the last few models */

struct scratch {
	struct list node;
	struct model *model;
	struct text_local_scratch *s;
};

static void scratch_free(struct scratch *s)
{
	list_del(&s->node);
	text_local_scratch_free(s->s);
	model_unref(s->model);
	free(s);
}

static struct text_local_scratch *scratch_of(struct gate *g, struct model *m, struct text_local *l)
{
	size_t n = 0;
	LIST_FOR(&g->scratches, it) {
		struct scratch *s = container_of(it, struct scratch, node);
		n++;
		if (s->model != m)
			continue;
		list_del(&s->node);
		list_add_head(&g->scratches, &s->node);
		return s->s;
	}
	if (n >= SCRATCHES_MAX)
		scratch_free(container_of(g->scratches.prev, struct scratch, node));
	struct scratch *s = must_calloc(1, sizeof(*s));
	s->model = model_ref(m);
	s->s = text_local_scratch_new(l, TOK_CACHE_BYTES);
	list_add_head(&g->scratches, &s->node);
	return s->s;
}

void gate_local_free(struct gate *g)
{
	LIST_FOR_SAFE(&g->scratches, it)
		scratch_free(container_of(it, struct scratch, node));
}

/* ---- asking it */

bool gate_text_form(const struct gate_req *r, enum text_form *ret_form)
{
	switch (r->path->route) {
	case API_ROUTE_CHAT: *ret_form = TEXT_CHAT; return true;
	case API_ROUTE_COMPLETIONS: *ret_form = TEXT_COMPLETIONS; return true;
	case API_ROUTE_RESPONSES: *ret_form = TEXT_RESPONSES; return true;
	case API_ROUTE_MESSAGES: *ret_form = TEXT_MESSAGES; return true;
	case API_ROUTE_EMBEDDINGS: *ret_form = TEXT_EMBEDDINGS; return true;
	case API_ROUTE_SCORE: *ret_form = TEXT_SCORE; return true;
	case API_ROUTE_LOAD:
	case API_ROUTE_RESPONSE:
	case API_ROUTE_MODELS:
	case API_ROUTE_MODEL: break;
	}
	return false;
}

static struct text_local_job job_of(enum text_form form, struct str body, size_t model_tok, struct tok_memo *memo)
{
	return (struct text_local_job){
		.form = form, .body = body, .now_s = io_unix_us() / 1000000, .max_tok = GATE_IDS_MAX_TOK, .model_tok = model_tok, .memo = memo
	};
}

/* Not where its workers do not agree. */
static size_t model_tok(const struct gate_req *r) { return r->model->lengths_differ ? 0 : r->model->max_model_len; }

static void away(void *arg)
{
	struct gate_ids_call *c = arg;
	struct text_local_job job = job_of(c->form, c->body, c->model_tok, c->memo);
	struct text_local *l = model_local(c->model);
	c->local_err = ERR_UNSUPPORTED;
	c->local_why = "distrusted";
	job.prefix_will_do = true;
	if (!l)
		return;
	struct text_local_scratch *s = text_local_scratch_new(l, JOB_CACHE_BYTES);
	c->local_err = text_local_ids(s, &job, &c->ours, &c->local_why);
	text_local_scratch_free(s);
}

/* A request's own template may take a second of a thread. One at a time, so that the pool is there for others, and only as long as
 * somebody waits for it. */
static void own_or_wait(struct gate_ids_call *c)
{
	c->own = true;
	c->away = !c->gate->own_runs;
	if (!c->away)
		list_add_tail(&c->gate->own_waiting, &c->own_node);
	else
		io_work(c->gate->loop, away, gate_local_back, c);
	c->gate->own_runs = true;
}

void gate_local_own_over(struct gate *g)
{
	g->own_runs = false;
	while (!g->own_runs && !list_empty(&g->own_waiting)) {
		struct gate_ids_call *c = container_of(g->own_waiting.next, struct gate_ids_call, own_node);
		list_del(&c->own_node);
		if (c->leader) {
			own_or_wait(c);
			continue;
		}
		gate_local_left(g, "nobody_waits");
		gate_ids_drop(c);
	}
}

static enum gate_local send_away(struct gate_req *r, struct model *m, struct gate_ids_call **ret_call)
{
	struct gate_ids_call *c = gate_ids_call_new(r, m);
	if (!c)
		return GATE_LOCAL_NOT;
	c->model_tok = model_tok(r);
	c->memo = tok_memo_ref(gate_shared_memo(r->gate->shared));
	*ret_call = c;
	if (r->facts.own_template) {
		own_or_wait(c);
		return GATE_LOCAL_AWAY;
	}
	c->away = true;
	io_work(r->gate->loop, away, gate_local_back, c);
	return GATE_LOCAL_AWAY;
}

/* AGAIN: too much new text for the loop. */
static enum err ids_now(struct gate_req *r, enum text_form form, bool prefix_will_do, struct text_ids **ret_ids, const char **ret_why)
{
	struct model *m = r->model->tokenizer;
	struct text_local *l = model_local(m);
	struct text_local_job job = job_of(form, (struct str){ r->body, r->body_bytes }, model_tok(r), gate_shared_memo(r->gate->shared));
	*ret_why = "distrusted";
	job.max_new_bytes = GATE_LOCAL_NEW_BYTES;
	job.prefix_will_do = prefix_will_do;
	return l ? text_local_ids(scratch_of(r->gate, m, l), &job, ret_ids, ret_why) : ERR_UNSUPPORTED;
}

bool gate_local_only(struct gate_req *r, enum text_form form, struct text_ids **ret_ids, const char **ret_why)
{
	enum err e = ids_now(r, form, false, ret_ids, ret_why);
	if (e == ERR_AGAIN)
		*ret_why = "too_long";
	return e == ERR_OK;
}

enum gate_local gate_local(struct gate_req *r, struct text_ids **ret_ids, struct gate_ids_call **ret_call)
{
	struct model *m = r->model->tokenizer;
	struct text_local *l = m ? model_local(m) : NULL;
	const char *why = NULL;
	if (!l) {
		if (m)
			gate_local_left(r->gate, model_state_name(model_state(m)));
		return GATE_LOCAL_NOT;
	}
	if (r->body_bytes > GATE_LOCAL_INLINE_BYTES || r->facts.own_template)
		return send_away(r, m, ret_call);
	enum text_form form;
	bool keyed = gate_text_form(r, &form);
	must(keyed);
	enum err e = ids_now(r, form, true, ret_ids, &why);
	if (e == ERR_OK)
		return GATE_LOCAL_DONE;
	if (e == ERR_AGAIN)
		return send_away(r, m, ret_call);
	gate_local_left(r->gate, why);
	return GATE_LOCAL_NOT;
}

/* The day is part of what such a template makes of a body, the model's length of what is cut to it. */
void gate_local_digest(struct gate_req *r)
{
	struct text_local *l = r->model->tokenizer ? model_local(r->model->tokenizer) : NULL;
	if (r->facts.truncates)
		r->facts.digest.hi ^= (uint64_t)model_tok(r) * UINT64_C(0x9e3779b97f4a7c15);
	if (l && (text_local_uses_clock(l) || r->facts.own_template))
		r->facts.digest.lo ^= (uint64_t)(io_unix_us() / 86400000000 + 1) * UINT64_C(0x9e3779b97f4a7c15);
}

/* ---- is it right? */

/* Of a prefix what it is the beginning of may go on. */
static size_t first_difference(const struct text_ids *a, const struct text_ids *b, size_t *ret_prompt)
{
	for (size_t p = 0; p < a->n && p < b->n; p++) {
		const struct text_prompt *x = &a->prompts[p], *y = &b->prompts[p];
		size_t n = MIN(x->n, y->n), i = 0;
		while (i < n && x->ids[i] == y->ids[i])
			i++;
		*ret_prompt = p;
		if (i < x->n || (i < y->n && !x->rest_tok))
			return i;
	}
	*ret_prompt = MIN(a->n, b->n);
	return a->n == b->n ? SIZE_MAX : 0;
}

static size_t length_of(const struct text_ids *t, size_t prompt) { return prompt < t->n ? t->prompts[prompt].n : 0; }

/* What was kept of a tokenizer that is wrong is forgotten: the next ask goes its own way. */
void gate_local_compare(struct gate *g, struct model *m, const struct text_ids *ours, const struct text_ids *theirs)
{
	size_t prompt, at = first_difference(ours, theirs, &prompt);
	struct str word = at == SIZE_MAX ? STR("same") : STR("different");
	obs_add(g->metrics, obs_find(g->metrics, GATE_M_COMPARED, &word), 1);
	if (at == SIZE_MAX) {
		if (!text_ids_is_prefix(ours))
			model_agreed(m);
		return;
	}
	model_differed(m, at, length_of(ours, prompt), length_of(theirs, prompt));
	text_cache_forget(g->cache);
}

void gate_local_usage(struct gate_req *r)
{
	uint64_t ours = 0;
	if (!r->ids_model || !r->ids || text_ids_is_prefix(r->ids) || r->usage.prompt_tok == API_TOK_UNKNOWN || r->worker_status != 200)
		return;
	for (size_t i = 0; i < r->ids->n; i++)
		ours += r->ids->prompts[i].n;
	if (ours == r->usage.prompt_tok)
		return;
	struct str word = STR("other_length");
	obs_add(r->gate->metrics, obs_find(r->gate->metrics, GATE_M_COMPARED, &word), 1);
	model_differed(r->ids_model, SIZE_MAX, (size_t)ours, r->usage.prompt_tok);
	text_cache_forget(r->gate->cache);
}
