#include "sim/engine.h"

#include "base/hash.h"
#include "base/list.h"
#include "base/rand.h"

struct sim_req {
	struct list node; /* pending, waiting, loading or running */
	struct sim_seq seq;
	struct arena mem; /* identity */
	void *user;
	int64_t ready_us, first_us, end_us;
	uint64_t seed;
	uint32_t done_tok; /* tokens whose KV is computed */
	uint32_t max_new, new_tok;
	uint32_t cached_tok, created_tok;
	uint32_t loaded_tok; /* there when the load has ended */
	bool scheduled; /* at least once */
	bool no_lookup, report_full, remote_prefill, keep;
};

/* What the running step computes for one request; r is NULL when the request left meanwhile. */
struct item {
	struct sim_req *r;
	uint32_t n_tok;
};

struct sim_engine {
	struct sim_engine_opts o;
	struct sim_cache *cache;
	struct list pending, waiting, loading, running; /* pending: on the way in (the profile's a_ms) */
	VEC(struct item) items;
	struct sim_step_load load;
	int64_t now_us, end_us;
	uint32_t left_tok; /* budget left in the step being made */
	uint32_t n_running, n_waiting;
	double slow;
	bool busy;
	struct rand rand;
	struct sim_engine_stats st;
};

/* ---- birth and death ------------------------------------------------------------------------------------------ */

static void set_defaults(struct sim_engine_opts *o)
{
	const struct sim_profile *p = o->profile;
	struct sim_cache_opts *c = &o->cache;
	o->budget_tok = o->budget_tok ? o->budget_tok : p->budget_tok;
	o->max_seqs = o->max_seqs ? o->max_seqs : p->max_seqs;
	o->max_model_tok = o->max_model_tok ? o->max_model_tok : p->max_model_tok;
	c->block_tok = c->block_tok ? c->block_tok : p->block_tok;
	c->blocks = c->blocks ? c->blocks : (uint32_t)(p->kv_tok / c->block_tok) + 1;
	c->chunk_tok = MIN(o->budget_tok, o->max_model_tok);
}

struct sim_engine *sim_engine_new(const struct sim_engine_opts *o)
{
	struct sim_engine *e = must_calloc(1, sizeof(*e));
	e->o = *o;
	set_defaults(&e->o);
	e->cache = sim_cache_new(&e->o.cache);
	e->o.max_model_tok = (uint32_t)MIN(e->o.max_model_tok, sim_cache_capacity_tok(e->cache));
	e->slow = 1;
	e->rand.s = o->seed;
	list_init(&e->pending);
	list_init(&e->waiting);
	list_init(&e->loading);
	list_init(&e->running);
	return e;
}

static void req_destroy(struct sim_req *r)
{
	sim_seq_done(&r->seq);
	arena_done(&r->mem);
	free(r);
}

void sim_engine_free(struct sim_engine *e)
{
	if (!e)
		return;
	struct list *lists[] = { &e->pending, &e->waiting, &e->loading, &e->running };
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		LIST_FOR_SAFE(lists[i], it)
	req_destroy(container_of(it, struct sim_req, node));
	VEC_FREE(&e->items);
	sim_cache_free(e->cache);
	free(e);
}

static struct sim_identity copy_identity(struct arena *a, const struct sim_identity *id)
{
	struct sim_identity c = { .lora_id = id->lora_id, .n_mm = id->n_mm };
	c.lora = arena_str(a, id->lora);
	c.lora_path = arena_str(a, id->lora_path);
	c.salt = arena_str(a, id->salt);
	c.session = arena_str(a, id->session);
	struct sim_mm *mm = id->n_mm ? arena_new(a, struct sim_mm, id->n_mm) : NULL;
	for (size_t i = 0; i < id->n_mm; i++)
		mm[i] = (struct sim_mm){ arena_str(a, id->mm[i].hash), id->mm[i].at_tok, id->mm[i].n_tok };
	c.mm = mm;
	return c;
}

enum err sim_engine_add(struct sim_engine *e, const struct sim_ask *a, int64_t now_us, struct sim_req **ret_req)
{
	if (!a->n_tok || !a->max_new || a->n_tok >= e->o.max_model_tok)
		return ERR_RANGE;
	struct sim_req *r = must_calloc(1, sizeof(*r));
	arena_init(&r->mem, 0);
	struct sim_identity id = copy_identity(&r->mem, &a->id);
	sim_seq_init(&r->seq, &id, a->tok, a->n_tok);
	r->user = a->user;
	r->max_new = MIN(a->max_new, e->o.max_model_tok - (uint32_t)a->n_tok);
	r->seed = hash_bytes(a->tok, a->n_tok * sizeof(*a->tok), a->seed);
	r->no_lookup = a->no_lookup;
	r->report_full = a->report_full;
	r->remote_prefill = a->remote_prefill;
	r->keep = a->keep;
	r->first_us = r->end_us = SIM_NEVER;
	e->now_us = e->busy ? e->now_us : MAX(e->now_us, now_us);
	r->ready_us = now_us + (int64_t)(1e3 * e->o.profile->a_ms);
	list_add_tail(&e->pending, &r->node);
	e->n_waiting++;
	e->st.begun++;
	*ret_req = r;
	return ERR_OK;
}

static void leave_step(struct sim_engine *e, const struct sim_req *r)
{
	for (size_t i = 0; i < e->items.n; i++)
		if (e->items.p[i].r == r)
			e->items.p[i].r = NULL;
}

static bool is_running(const struct sim_engine *e, const struct sim_req *r)
{
	LIST_FOR(&e->running, it)
	if (it == &r->node)
		return true;
	return false;
}

void sim_engine_abort(struct sim_engine *e, struct sim_req *r)
{
	must(r->end_us == SIM_NEVER);
	*(is_running(e, r) ? &e->n_running : &e->n_waiting) -= 1;
	leave_step(e, r);
	list_del(&r->node);
	sim_cache_release(e->cache, &r->seq);
	e->st.aborted++;
	req_destroy(r);
}

void sim_req_free(struct sim_req *r)
{
	if (!r)
		return;
	must(r->keep && r->end_us != SIM_NEVER);
	req_destroy(r);
}

/* ---- scheduling a step ---------------------------------------------------------------------------------------- */

static void account(struct sim_engine *e, const struct sim_req *r, uint32_t n_tok)
{
	if (n_tok == 1 && r->new_tok && r->done_tok + 1 == r->seq.tok.n) {
		e->load.decodes++;
		e->load.decode_ctx_tok += r->done_tok;
	} else {
		e->load.prefill_tok += n_tok;
		e->load.chunk_tok2 += (double)n_tok * (2.0 * r->done_tok + n_tok);
	}
}

static void add_item(struct sim_engine *e, struct sim_req *r, uint32_t n_tok)
{
	e->left_tok -= n_tok;
	VEC_PUSH(&e->items, (struct item){ r, n_tok });
}

/* A Mamba state exists only where a chunk ends: chunks aim at the boundaries that will be kept. */
static uint32_t chunk_of(const struct sim_engine *e, const struct sim_req *r)
{
	uint32_t n = MIN((uint32_t)r->seq.tok.n - r->done_tok, e->left_tok), b = e->o.cache.block_tok;
	if (!sim_cache_has_mamba(e->cache))
		return n;
	uint32_t ends[] = { r->seq.junction_blocks * b, (r->seq.prompt_tok - 1) / b * b };
	for (size_t i = 0; i < ARRAY_LEN(ends); i++)
		if (ends[i] > r->done_tok && ends[i] < r->done_tok + n)
			n = ends[i] - r->done_tok;
	return n;
}

static void preempt(struct sim_engine *e, struct sim_req *r)
{
	for (size_t i = 0; i < e->items.n; i++)
		if (e->items.p[i].r == r)
			e->left_tok += e->items.p[i].n_tok;
	leave_step(e, r);
	sim_cache_release(e->cache, &r->seq);
	r->done_tok = 0;
	list_del(&r->node);
	list_add_head(&e->waiting, &r->node);
	e->n_running--;
	e->n_waiting++;
	e->st.preempted++;
}

/* Room for the next chunk of r, at the cost of the youngest; false when r itself had to go. */
static bool make_room(struct sim_engine *e, struct sim_req *r, uint32_t n_tok)
{
	while (!sim_cache_grow(e->cache, &r->seq, r->done_tok, r->done_tok + n_tok)) {
		struct sim_req *youngest = container_of(e->running.prev, struct sim_req, node);
		preempt(e, youngest);
		if (youngest == r)
			return false;
	}
	return true;
}

static bool decoding(const struct sim_req *r) { return r->done_tok + 1 == r->seq.tok.n && r->new_tok; }

/* One pass over the running ones, decodes or prefills. The list may shrink at its tail under our feet. */
static void schedule_running(struct sim_engine *e, bool decodes)
{
	struct list *it = e->running.next;
	while (it != &e->running && e->left_tok) {
		struct sim_req *r = container_of(it, struct sim_req, node);
		uint32_t n = decoding(r) == decodes ? chunk_of(e, r) : 0;
		if (n && make_room(e, r, n))
			add_item(e, r, n);
		else if (n)
			return; /* r was the youngest and is gone */
		it = it->next;
	}
}

static void commit_items(struct sim_engine *e)
{
	for (size_t i = 0; i < e->items.n; i++) {
		struct item *x = &e->items.p[i];
		if (x->r)
			sim_cache_commit(e->cache, &x->r->seq, x->r->done_tok + x->n_tok);
	}
}

static void note_first_match(struct sim_engine *e, struct sim_req *r, uint32_t hit_tok, uint32_t load_tok)
{
	uint32_t whole = r->seq.prompt_tok / e->o.cache.block_tok * e->o.cache.block_tok;
	r->scheduled = true;
	r->cached_tok = hit_tok + load_tok;
	r->created_tok = whole > r->cached_tok ? whole - r->cached_tok : 0;
	e->st.load_tok += load_tok;
	e->st.prompt_tok += r->seq.prompt_tok;
	if (r->no_lookup)
		return;
	e->st.query_tok += r->seq.prompt_tok;
	e->st.hit_tok += hit_tok;
}

static void leave_queue(struct sim_engine *e, struct sim_req *r, uint32_t hit, uint32_t load)
{
	if (r->report_full)
		sim_cache_announce_hit(e->cache, &r->seq);
	if (!r->scheduled)
		note_first_match(e, r, hit, load);
	list_del(&r->node);
}

static void enter(struct sim_engine *e, struct sim_req *r, uint32_t n_tok)
{
	list_add_tail(&e->running, &r->node);
	e->n_running++;
	e->n_waiting--;
	add_item(e, r, n_tok);
	sim_cache_commit(e->cache, &r->seq, r->done_tok + n_tok);
}

/* All its blocks are taken now: while it loads and behind it nothing has to be found for it. */
static bool start_load(struct sim_engine *e, struct sim_req *r, uint32_t hit, uint32_t load)
{
	if (!sim_cache_grow(e->cache, &r->seq, hit, (uint32_t)r->seq.tok.n)) {
		sim_cache_release(e->cache, &r->seq);
		return false;
	}
	leave_queue(e, r, hit, load);
	r->loaded_tok = hit + load;
	r->ready_us = e->now_us + (r->remote_prefill ? 0 : (int64_t)(sim_profile_load_us(e->o.profile, load) * e->slow));
	r->remote_prefill = false;
	list_add_tail(&e->loading, &r->node);
	return true;
}

/* What was loaded is in the cache; of a whole prompt the last token is computed anew. */
static void take_loaded(struct sim_engine *e)
{
	LIST_FOR_SAFE(&e->loading, it) {
		struct sim_req *r = container_of(it, struct sim_req, node);
		if (r->ready_us > e->now_us || !e->left_tok || e->n_running >= e->o.max_seqs)
			continue;
		list_del(&r->node);
		sim_cache_commit(e->cache, &r->seq, r->loaded_tok);
		r->done_tok = MIN(r->loaded_tok, (uint32_t)r->seq.tok.n - 1);
		enter(e, r, chunk_of(e, r));
	}
}

static bool admit(struct sim_engine *e, struct sim_req *r)
{
	uint32_t hit = r->no_lookup ? 0 : sim_cache_match(e->cache, &r->seq);
	uint32_t load = r->no_lookup ? 0 : r->remote_prefill ? (uint32_t)r->seq.tok.n - hit : sim_cache_match_below(e->cache, &r->seq);
	if (!sim_cache_fits(e->cache, &r->seq))
		return false;
	sim_cache_attach(e->cache, &r->seq);
	if (load)
		return start_load(e, r, hit, load);
	r->done_tok = hit;
	uint32_t n = chunk_of(e, r);
	if (!sim_cache_grow(e->cache, &r->seq, hit, hit + n)) {
		sim_cache_release(e->cache, &r->seq);
		r->done_tok = 0;
		return false;
	}
	leave_queue(e, r, hit, 0);
	enter(e, r, n);
	return true;
}

static void take_arrivals(struct sim_engine *e)
{
	while (!list_empty(&e->pending)) {
		struct sim_req *r = container_of(e->pending.next, struct sim_req, node);
		if (r->ready_us > e->now_us)
			return;
		list_del(&r->node);
		list_add_tail(&e->waiting, &r->node);
	}
}

static void schedule(struct sim_engine *e)
{
	uint64_t preempted = e->st.preempted;
	e->left_tok = e->o.budget_tok;
	schedule_running(e, true);
	schedule_running(e, false);
	commit_items(e);
	take_loaded(e);
	while (preempted == e->st.preempted && e->left_tok && e->n_running < e->o.max_seqs && !list_empty(&e->waiting))
		if (!admit(e, container_of(e->waiting.next, struct sim_req, node)))
			break;
}

/* When the first load ends. */
static int64_t next_load(const struct sim_engine *e)
{
	int64_t t = SIM_NEVER;
	LIST_FOR(&e->loading, it)
	t = MIN(t, container_of(it, struct sim_req, node)->ready_us);
	return t;
}

/* A load ends or a request arrives. */
static int64_t next_change(const struct sim_engine *e)
{
	int64_t t = next_load(e);
	if (!list_empty(&e->pending))
		t = MIN(t, container_of(e->pending.next, struct sim_req, node)->ready_us);
	return MAX(e->now_us, t);
}

static void start_step(struct sim_engine *e)
{
	e->items.n = 0;
	e->load = (struct sim_step_load){ 0 };
	take_arrivals(e);
	if (list_empty(&e->waiting) && list_empty(&e->running) && next_load(e) > e->now_us)
		return;
	schedule(e);
	for (size_t i = 0; i < e->items.n; i++)
		if (e->items.p[i].r)
			account(e, e->items.p[i].r, e->items.p[i].n_tok);
	double us = sim_profile_step_us(e->o.profile, &e->load) * e->slow;
	if (us > 0 && e->o.jitter > 0)
		us *= rand_lognormal_mean(&e->rand, 1, e->o.jitter);
	bool idle = !e->items.n && !list_empty(&e->loading);
	e->end_us = idle ? next_change(e) : e->now_us + (int64_t)(us + 0.5);
	e->busy = true;
}

/* ---- ending a step -------------------------------------------------------------------------------------------- */

static uint32_t token_of(struct sim_engine *e, const struct sim_req *r)
{
	if (e->o.ops && e->o.ops->next_token)
		return e->o.ops->next_token(e->o.arg, r, r->seed, r->new_tok);
	return (uint32_t)(hash_mix(r->seed + r->new_tok) % 100000);
}

static void end_request(struct sim_engine *e, struct sim_req *r)
{
	r->end_us = e->now_us;
	list_del(&r->node);
	e->n_running--;
	e->st.ended++;
	sim_cache_release(e->cache, &r->seq);
}

static void put_token(struct sim_engine *e, struct sim_req *r)
{
	uint32_t tok = token_of(e, r);
	VEC_PUSH(&r->seq.tok, tok);
	if (r->new_tok++ == 0)
		r->first_us = e->now_us;
	e->st.generated_tok++;
	bool last = r->new_tok == r->max_new;
	if (last)
		end_request(e, r);
	if (e->o.ops && e->o.ops->on_token)
		e->o.ops->on_token(e->o.arg, r, tok, last); /* r may be gone now, unless it was the last */
	if (last && !r->keep)
		req_destroy(r);
}

static void finish_step(struct sim_engine *e)
{
	e->busy = false;
	e->st.steps++;
	struct sim_batch *b = sim_cache_batch(e->cache);
	if (b->ev.n && e->o.ops && e->o.ops->on_batch)
		e->o.ops->on_batch(e->o.arg, b);
	sim_batch_clear(b);
	for (size_t i = 0; i < e->items.n; i++) {
		struct sim_req *r = e->items.p[i].r;
		if (!r)
			continue;
		r->done_tok += e->items.p[i].n_tok;
		if (r->done_tok == r->seq.tok.n)
			put_token(e, r);
	}
	e->items.n = 0;
}

int64_t sim_engine_next(const struct sim_engine *e)
{
	if (e->busy)
		return e->end_us;
	if (!list_empty(&e->waiting) || !list_empty(&e->running))
		return e->now_us;
	return next_change(e);
}

void sim_engine_advance(struct sim_engine *e, int64_t now_us)
{
	for (;;) {
		int64_t t = sim_engine_next(e);
		if (t > now_us)
			return;
		e->now_us = t;
		if (e->busy)
			finish_step(e);
		start_step(e);
	}
}

int64_t sim_engine_time(const struct sim_engine *e) { return e->now_us; }

/* ---- looking on ----------------------------------------------------------------------------------------------- */

bool sim_engine_reset_cache(struct sim_engine *e) { return sim_pool_reset(sim_cache_pool(e->cache)); }
void sim_engine_slow(struct sim_engine *e, double factor) { e->slow = factor; }
uint32_t sim_engine_max_model_tok(const struct sim_engine *e) { return e->o.max_model_tok; }
uint32_t sim_engine_block_tok(const struct sim_engine *e) { return e->o.cache.block_tok; }
uint32_t sim_engine_blocks(const struct sim_engine *e) { return e->o.cache.blocks; }

struct sim_engine_stats sim_engine_stats(const struct sim_engine *e)
{
	struct sim_engine_stats s = e->st;
	const struct sim_pool *p = sim_cache_pool(e->cache);
	s.running = e->n_running;
	s.waiting = e->n_waiting;
	s.size_blocks = sim_pool_size(p);
	s.used_blocks = s.size_blocks - (uint32_t)sim_pool_free_blocks(p);
	s.held_blocks = (uint32_t)sim_pool_held(p);
	s.cpu_blocks = sim_cache_below_blocks(e->cache);
	return s;
}

uint32_t sim_engine_would_hit(struct sim_engine *e, const struct sim_ask *a)
{
	struct sim_seq s;
	sim_seq_init(&s, &a->id, a->tok, a->n_tok);
	uint32_t hit = sim_cache_match(e->cache, &s);
	hit += sim_cache_match_below(e->cache, &s);
	sim_seq_done(&s);
	return hit;
}

void *sim_req_user(const struct sim_req *r) { return r->user; }
void sim_req_set_user(struct sim_req *r, void *user) { r->user = user; }
uint32_t sim_req_prompt_tok(const struct sim_req *r) { return r->seq.prompt_tok; }
uint32_t sim_req_cached_tok(const struct sim_req *r) { return r->cached_tok; }
uint32_t sim_req_created_tok(const struct sim_req *r) { return r->created_tok; }
uint32_t sim_req_new_tok(const struct sim_req *r) { return r->new_tok; }
bool sim_req_scheduled(const struct sim_req *r) { return r->scheduled; }
int64_t sim_req_first_us(const struct sim_req *r) { return r->first_us; }
int64_t sim_req_end_us(const struct sim_req *r) { return r->end_us; }
