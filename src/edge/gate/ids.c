/* Stage 3: the token ids of the prompt: given by the client, remembered, made here (local.c), or asked of a worker.
 *
 * A question belongs to the prompt, not to the request: equal prompts that come meanwhile wait for the same answer, and a
 * late answer still fills the cache. A request waits for its budget and no longer; it is never refused for want of ids.
 * Of a prompt with images the tokenizer here knows the beginning only: a worker is asked where one renders, and when none does, or not in
 * time, the beginning is what the request goes with.
 * Budgets are equal, so the waiting requests lie in the order of their deadlines and one timer serves them all. */
#include <stdlib.h>
#include <string.h>

#include "gate/gate_priv.h"

static void count(struct gate_req *r, const char *source)
{
	struct obs_set *m = r->gate->metrics;
	obs_add(m, obs_find(m, GATE_M_IDS, (struct str[]){ str_of(source) }), 1);
}

/* ---- the end of the stage: with ids or with the reason why not */

static void go_on(struct gate_req *r, const char *why)
{
	r->ids_why = why;
	if (r->t_ids.us) {
		struct obs_set *m = r->gate->metrics;
		obs_observe(m, obs_find(m, GATE_M_IDS_TIME, NULL), mono_diff_us(io_now(r->gate->loop), r->t_ids));
	}
	if (r->ids && r->ids->bytes > GATE_IDS_LONG_TOK * sizeof(uint32_t)) {
		gate_enter(r, GATE_IDS);
		io_later(r->gate->loop, &r->turn);
	} else {
		gate_ask(r);
	}
}

void gate_ids_turn(struct gate_req *r) { gate_ask(r); }

static void take_ids(struct gate_req *r, struct text_ids *ids, const char *source)
{
	bool prefix = text_ids_is_prefix(ids);
	r->ids = ids;
	count(r, prefix ? "prefix" : source);
	go_on(r, prefix ? "prefix" : NULL);
}

static void no_ids(struct gate_req *r, const char *why)
{
	count(r, why);
	go_on(r, why);
}

void gate_ids_leave(struct gate_req *r)
{
	list_del(&r->ids_node);
	text_cache_leave(&r->ids_wait);
	if (r->ids_call)
		r->ids_call->leader = NULL;
	r->ids_call = NULL;
}

static const char *why_failed(enum err e)
{
	switch ((int)e) {
	case ERR_UNSUPPORTED: return "not_expressible";
	case ERR_UPSTREAM_AUTH: return "worker_auth";
	case ERR_NO_WORKER: return "no_worker_to_ask";
	case ERR_LIMIT: return "too_long";
	case ERR_BAD_REQUEST: return "worker_refused";
	default: return "worker_failed";
	}
}

/* Texts for pooling models come in bulk, and many such models have no prefix cache: no call is made before each. */
static bool workers_give(const struct gate_req *r)
{
	enum text_form form;
	return r->model->text_from_workers && gate_text_form(r, &form) && text_has_render(form);
}

/* Where no worker may be asked, what keeps the tokenizer here from it says more than that nothing could be asked. */
static const char *why_none(const struct gate_req *r, enum err e)
{
	const struct model *m = r->model->tokenizer;
	return e == ERR_UNSUPPORTED && !workers_give(r) && m && !model_local(m) ? model_state_name(model_state(m)) : why_failed(e);
}

static void answered(struct gate_req *r, enum err e, struct text_ids *ids, const char *source)
{
	gate_ids_leave(r);
	if (e == ERR_OK)
		take_ids(r, text_ids_ref(ids), source);
	else
		no_ids(r, why_none(r, e));
}

static void on_shared_answer(struct text_wait *w, enum err e, struct text_ids *ids)
{
	answered(container_of(w, struct gate_req, ids_wait), e, ids, "shared_call");
}

/* ---- the budget */

static void arm(struct gate *g)
{
	if (list_empty(&g->ids_waiting)) {
		io_timer_stop(g->ids_timer);
		return;
	}
	struct gate_req *first = container_of(g->ids_waiting.next, struct gate_req, ids_node);
	io_timer_at(g->ids_timer, mono_add_us(first->t_ids, g->opts.tokens_budget_us));
}

static void over_budget(struct gate_req *r)
{
	struct gate_ids_call *c = r->ids_call;
	struct text_ids *prefix = c && !c->away && c->ours ? text_ids_ref(c->ours) : NULL;
	gate_ids_leave(r);
	if (prefix)
		take_ids(r, prefix, "local");
	else
		no_ids(r, "budget_over");
}

void gate_ids_on_timer(void *arg)
{
	struct gate *g = arg;
	struct mono now = io_now(g->loop);
	while (!list_empty(&g->ids_waiting)) {
		struct gate_req *r = container_of(g->ids_waiting.next, struct gate_req, ids_node);
		if (mono_before(now, mono_add_us(r->t_ids, g->opts.tokens_budget_us)))
			break;
		over_budget(r);
	}
	arm(g);
}

static void wait_for_ids(struct gate_req *r)
{
	struct gate *g = r->gate;
	bool first = list_empty(&g->ids_waiting);
	gate_enter(r, GATE_IDS);
	r->t_ids = io_now(g->loop);
	list_add_tail(&g->ids_waiting, &r->ids_node);
	if (first)
		arm(g);
}

/* ---- questions to workers */

static bool lists(const struct str *names, size_t n, struct str name)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(names[i], name))
			return true;
	return false;
}

/* Which of two workers to ask: a rested one, a healthy one, the one with fewer questions open. */
static bool rather(const struct feed_view_worker *w, const struct gate_worker *k, const struct feed_view_worker *best,
	const struct gate_worker *than, struct mono now)
{
	bool rests = mono_before(now, k->ids_rest_until), best_rests = mono_before(now, than->ids_rest_until);
	if (rests != best_rests)
		return best_rests;
	if ((w->health == BRAIN_HEALTHY) != (best->health == BRAIN_HEALTHY))
		return w->health == BRAIN_HEALTHY;
	return k->ids_open < than->ids_open;
}

static bool may_ask(const struct feed_view_worker *w, struct str model)
{
	return w->usable && w->addr.len && (lists(w->names, w->n_names, model) || lists(w->adapters, w->n_adapters, model));
}

/* Of equals the next in turn. When all were late lately, a few questions still go out: that is how they are found well. */
static const struct feed_view_worker *choose(struct gate *g, const struct feed_view *v, struct str model)
{
	const struct feed_view_worker *best = NULL;
	const struct gate_worker *best_k = NULL;
	struct mono now = io_now(g->loop);
	size_t start = v->n_workers ? g->ids_turn++ % v->n_workers : 0;
	for (size_t i = 0; i < v->n_workers; i++) {
		const struct feed_view_worker *w = &v->workers[(start + i) % v->n_workers];
		if (!may_ask(w, model))
			continue;
		const struct gate_worker *k = gate_worker_of(g, w);
		if (best && !rather(w, k, best, best_k, now))
			continue;
		best = w;
		best_k = k;
	}
	if (best && mono_before(now, best_k->ids_rest_until) && best_k->ids_open >= GATE_IDS_TRIES)
		return NULL;
	return best;
}

static struct gate_worker *call_worker(struct gate_ids_call *c) { return map_get_ptr(&c->gate->workers, c->worker); }

/* Off the gate's books: nothing of it is the gate's any more. */
static void call_leave(struct gate_ids_call *c)
{
	struct gate_worker *k = c->open ? call_worker(c) : NULL;
	if (k && k->ids_open)
		k->ids_open--;
	c->open = false;
	list_del(&c->node);
	list_del(&c->own_node);
	bool given = gate_charge(c->gate, &c->charged, 0);
	must(given);
	if (c->leader)
		c->leader->ids_call = NULL;
	c->leader = NULL;
	c->gate = NULL;
}

static void call_free(struct gate_ids_call *c)
{
	if (c->gate)
		call_leave(c);
	feed_view_unref(c->view);
	text_ids_unref(c->ours);
	text_ids_unref(c->theirs);
	free((char *)(uintptr_t)c->answer.p);
	model_unref(c->model);
	tok_memo_unref(c->memo);
	free((char *)(uintptr_t)c->body.p);
	free((char *)(uintptr_t)c->authorization.p);
	free(c);
}

/* The answer goes to the cache, to those who wait there, and to the leader. Without one a prefix made here has to do. */
static void call_tell(struct gate_ids_call *c, enum err e, struct text_ids *ids)
{
	struct gate *g = c->gate;
	struct gate_req *leader = c->leader;
	if (e != ERR_OK && c->ours) {
		e = ERR_OK;
		ids = c->ours;
	}
	bool local = ids && ids == c->ours;
	if (leader)
		leader->ids_call = NULL;
	c->leader = NULL;
	if (e == ERR_OK)
		text_cache_fill(g->cache, c->digest, ids);
	else
		text_cache_fail(g->cache, c->digest, e);
	if (leader && local)
		leader->ids_model = model_ref(c->model);
	if (leader)
		answered(leader, e, ids, local ? "local" : "call");
}

static void call_over(struct gate_ids_call *c, enum err e, struct text_ids *ids)
{
	struct gate *g = c->gate;
	if (c->ours && e == ERR_OK)
		gate_local_compare(g, c->model, c->ours, ids);
	if (!c->comparing)
		call_tell(c, e, ids);
	call_free(c);
	text_ids_unref(ids);
	arm(g);
}

void gate_ids_drop(struct gate_ids_call *c) { call_over(c, ERR_LIMIT, NULL); }

static enum err call_send(struct gate_ids_call *c);

static enum err status_fault(int status)
{
	if (status == 401 || status == 403)
		return ERR_UPSTREAM_AUTH;
	return status >= 400 && status < 500 ? ERR_BAD_REQUEST : ERR_IO;
}

static struct text_offer *offer_of(struct gate_worker *k, enum text_form form)
{
	return form == TEXT_RESPONSES || form == TEXT_MESSAGES ? &k->other_offer : &k->offer;
}

/* An answer of a shape that we cannot read counts as "not offered": the other call may do. */
static void learn_answer(struct gate_ids_call *c, int status, enum err read, struct text_ids *ids)
{
	struct gate_worker *k = call_worker(c);
	struct mono now = io_now(c->gate->loop);
	bool again = k && text_offer_learn(offer_of(k, c->form), c->call, read == ERR_UPSTREAM_PROTOCOL ? 501 : status, now);
	enum err e = status == 200 ? read : status ? status_fault(status) : ERR_IO;
	if (k && (!status || mono_diff_us(now, c->started) > c->gate->opts.tokens_budget_us))
		k->ids_rest_until = mono_add_us(now, GATE_IDS_REST_US);
	if (status && again)
		e = call_send(c);
	if (!c->fetch)
		call_over(c, e, ids);
}

static void read_away(void *arg)
{
	struct gate_ids_call *c = arg;
	c->read = text_read_answer(c->form, c->call, c->answer, GATE_IDS_MAX_TOK, &c->theirs);
}

static void read_back(void *arg)
{
	struct gate_ids_call *c = arg;
	struct text_ids *ids = c->theirs;
	c->away = false;
	if (!c->gate) {
		call_free(c);
		return;
	}
	free((char *)(uintptr_t)c->answer.p);
	c->answer = (struct str){ 0 };
	c->theirs = NULL;
	learn_answer(c, 200, c->read, ids);
}

static void on_fetched(void *arg, enum err e, int status, struct http_headers h, struct str body)
{
	struct gate_ids_call *c = arg;
	struct text_ids *ids = NULL;
	(void)h;
	c->fetch = NULL;
	if (e != ERR_OK)
		status = 0;
	if (status == 200 && body.n > GATE_IDS_LONG_BYTES) {
		c->answer = str_clone(body);
		c->away = true;
		io_work(c->gate->loop, read_away, read_back, c);
		return;
	}
	enum err read = status == 200 ? text_read_answer(c->form, c->call, body, GATE_IDS_MAX_TOK, &ids) : ERR_OK;
	learn_answer(c, status, read, ids);
}

static struct http_headers call_headers(const struct gate_ids_call *c, const struct feed_view_worker *w, struct http_header h[3])
{
	size_t n = 0;
	h[n++] = (struct http_header){ STR("content-type"), STR("application/json") };
	h[n++] = (struct http_header){ STR("accept-encoding"), STR("identity") };
	struct str own = w->authorization.n || !w->pass_client_authorization ? w->authorization : c->authorization;
	if (own.n)
		h[n++] = (struct http_header){ STR("authorization"), own };
	return (struct http_headers){ h, n };
}

/* Starts the call its worker offers now. Not OK: none is possible; nothing was started. */
static enum err call_send(struct gate_ids_call *c)
{
	struct gate *g = c->gate;
	const struct feed_view_worker *w = feed_view_worker(c->view, c->worker);
	struct gate_worker *k = call_worker(c);
	struct buf ask;
	struct http_header h[3];
	if (!w || !k)
		return ERR_NO_WORKER;
	buf_init(&ask, c->body.n * 2 + 4096);
	bool expressible = !c->render_only && text_put_ask(&ask, c->form, TEXT_TOKENIZE, c->body) == ERR_OK;
	c->call = TEXT_TOKENIZE;
	bool any = text_has_render(c->form) ? text_offer_choose(offer_of(k, c->form), expressible, io_now(g->loop), &c->call) : expressible;
	enum err e = any ? ERR_OK : ERR_UNSUPPORTED;
	if (e == ERR_OK && c->call == TEXT_RENDER) {
		buf_clear(&ask);
		e = text_put_ask(&ask, c->form, TEXT_RENDER, c->body);
	}
	if (e == ERR_OK) {
		struct http_fetch_opts o = { .addr = w->addr,
			.method = STR("POST"),
			.host = w->host,
			.headers = call_headers(c, w, h),
			.body = buf_str(&ask),
			.max_bytes = GATE_IDS_ANSWER_MAX_BYTES,
			.timeout_us = GATE_IDS_CALL_US };
		buf_clear(&g->scratch);
		e = buf_printf(&g->scratch, "%.*s%.*s", STR_ARG(w->prefix), STR_ARG(text_call_path(c->form, c->call)));
		o.target = buf_str(&g->scratch);
		c->started = io_now(g->loop);
		if (e == ERR_OK)
			c->fetch = http_fetch_start(g->pool, &o, on_fetched, c);
	}
	buf_done(&ask);
	return e;
}

/* GPT-OSS: by its files, or by its name where they are not here. Its chats go through a template in /tokenize, and only there. */
static bool is_harmony(const struct feed_view_model *m)
{
	return (m->tokenizer && model_is_harmony(m->tokenizer)) || str_find(m->root, STR("gpt-oss")) != SIZE_MAX;
}

/* The request may be over before the answer comes: the question keeps what it needs. */
struct gate_ids_call *gate_ids_call_new(struct gate_req *r, struct model *m)
{
	struct gate *g = r->gate;
	struct gate_ids_call *c = must_calloc(1, sizeof(*c));
	*c = (struct gate_ids_call){ .gate = g,
		.digest = r->facts.digest,
		.view = feed_view_ref(r->view),
		.model_id = r->model->id,
		.from_workers = r->model->text_from_workers,
		.model = m ? model_ref(m) : NULL };
	bool keyed = gate_text_form(r, &c->form);
	must(keyed);
	c->render_only = c->form == TEXT_CHAT && is_harmony(r->model);
	list_add_tail(&g->ids_calls, &c->node);
	list_init(&c->own_node);
	if (!gate_charge(g, &c->charged, (int64_t)r->body_bytes)) {
		call_free(c);
		return NULL;
	}
	c->body = str_clone((struct str){ r->body, r->body_bytes });
	c->authorization = str_clone(r->hr ? http_find(r->hr->headers, STR("authorization")) : (struct str){ 0 });
	return c;
}

static enum err to_worker(struct gate_ids_call *c)
{
	const struct feed_view_worker *w = choose(c->gate, c->view, c->model_id);
	if (!w)
		return ERR_NO_WORKER;
	c->worker = w->id;
	c->open = true;
	gate_worker_of(c->gate, w)->ids_open++;
	return call_send(c);
}

/* prefix: made here, NULL: none. */
static enum err lead(struct gate_req *r, struct text_ids *prefix)
{
	struct gate_ids_call *c = gate_ids_call_new(r, prefix ? r->model->tokenizer : NULL);
	if (!c)
		return ERR_LIMIT;
	c->ours = prefix ? text_ids_ref(prefix) : NULL;
	enum err e = to_worker(c);
	if (e != ERR_OK) {
		call_free(c);
		return e;
	}
	c->leader = r;
	r->ids_call = c;
	return ERR_OK;
}

/* ---- the tokenizer in this process */

/* Asks a worker for the same prompt, beside the request. Not where they are never to be asked. */
static void compare(struct gate_ids_call *c)
{
	c->comparing = true;
	if (to_worker(c) != ERR_OK)
		call_free(c);
}

static bool to_be_compared(struct model *m, bool from_workers, const struct text_ids *ids)
{
	return from_workers && !text_ids_is_prefix(ids) && model_check_due(m);
}

static void local_done(struct gate_req *r, struct text_ids *ids)
{
	struct model *m = r->model->tokenizer;
	struct gate_ids_call *c = to_be_compared(m, r->model->text_from_workers, ids) ? gate_ids_call_new(r, m) : NULL;
	text_cache_fill(r->gate->cache, r->facts.digest, ids);
	if (c) {
		c->ours = text_ids_ref(ids);
		compare(c);
	}
	r->ids_model = model_ref(m);
	take_ids(r, ids, "local");
}

void gate_local_back(void *arg)
{
	struct gate_ids_call *c = arg;
	struct gate *g = c->gate;
	c->away = false;
	if (!g) {
		call_free(c);
		return;
	}
	if (c->own)
		gate_local_own_over(g);
	bool ask = c->from_workers && text_has_render(c->form);
	if (c->local_err == ERR_OK && text_ids_is_prefix(c->ours) && ask && to_worker(c) == ERR_OK)
		return;
	if (c->local_err == ERR_OK) {
		call_tell(c, ERR_OK, c->ours);
		if (to_be_compared(c->model, c->from_workers, c->ours))
			compare(c);
		else
			call_free(c);
		arm(g);
		return;
	}
	gate_local_left(g, c->local_why);
	enum err e = ask ? to_worker(c) : ERR_UNSUPPORTED;
	if (e != ERR_OK)
		call_over(c, e, NULL);
}

/* True: it answered, or will. */
static bool find_here(struct gate_req *r)
{
	struct gate_ids_call *c = NULL;
	struct text_ids *ids = NULL;
	switch (gate_local(r, &ids, &c)) {
	case GATE_LOCAL_DONE:
		if (text_ids_is_prefix(ids) && workers_give(r) && lead(r, ids) == ERR_OK) {
			text_ids_unref(ids);
			wait_for_ids(r);
		} else {
			local_done(r, ids);
		}
		return true;
	case GATE_LOCAL_AWAY:
		c->leader = r;
		r->ids_call = c;
		wait_for_ids(r);
		return true;
	case GATE_LOCAL_NOT: break;
	}
	return false;
}

static void find_ids(struct gate_req *r)
{
	struct text_ids *ids = NULL;
	gate_local_digest(r);
	r->ids_wait.fn = on_shared_answer;
	switch (text_cache_ask(r->gate->cache, r->facts.digest, &r->ids_wait, &ids)) {
	case TEXT_HIT: take_ids(r, ids, "cache"); return;
	case TEXT_JOIN: wait_for_ids(r); return;
	case TEXT_LEAD: break;
	}
	if (find_here(r))
		return;
	enum err e = workers_give(r) ? lead(r, NULL) : ERR_UNSUPPORTED;
	if (e == ERR_OK) {
		wait_for_ids(r);
		return;
	}
	text_cache_fail(r->gate->cache, r->facts.digest, e);
	no_ids(r, why_none(r, e));
}

/* ---- the stage */

/* Why ids are not even looked for; NULL: they are. */
static const char *not_wanted(const struct gate_req *r)
{
	enum text_form form;
	if (!gate_text_form(r, &form))
		return "path";
	bool plain = form == TEXT_CHAT || form == TEXT_COMPLETIONS;
	if (plain && (r->facts.form == API_PROMPT_NONE || r->facts.form == API_PROMPT_EMBEDS))
		return "embeds";
	if (r->facts.previous_response_id.n)
		return "previous_response";
	if (!r->model)
		return "unknown_model";
	if (form == TEXT_SCORE && !r->model->embeds)
		return "not_embedding";
	if (!r->model->n_block_sizes)
		return "no_block_size";
	return NULL;
}

static void given_ids(struct gate_req *r)
{
	struct text_span *lists_ = arena_new(&r->arena, struct text_span, r->facts.n_ids);
	for (size_t i = 0; i < r->facts.n_ids; i++)
		lists_[i] = (struct text_span){ .p = r->facts.ids[i].p, .n = r->facts.ids[i].n };
	take_ids(r, text_ids_from(lists_, r->facts.n_ids), "given");
}

void gate_ids(struct gate_req *r)
{
	const char *why = not_wanted(r);
	if (why)
		go_on(r, why);
	else if (r->facts.form == API_PROMPT_IDS && !r->facts.truncates)
		given_ids(r);
	else if (!workers_give(r) && !r->model->tokenizer)
		no_ids(r, "off");
	else
		find_ids(r);
}

void gate_ids_free(struct gate *g)
{
	LIST_FOR_SAFE(&g->ids_calls, it)
	{
		struct gate_ids_call *c = container_of(it, struct gate_ids_call, node);
		if (c->fetch)
			http_fetch_abort(c->fetch);
		if (c->away)
			call_leave(c); /* the thread pool still reads it */
		else
			call_free(c);
	}
	LIST_FOR_SAFE(&g->ids_waiting, it)
	gate_ids_leave(container_of(it, struct gate_req, ids_node));
	text_cache_free(g->cache);
	g->cache = NULL;
	gate_local_free(g);
}
