#include "sim/worker.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/log.h"

/* ---- time ------------------------------------------------------------------------------------------------------- */

int64_t sim_worker_now_us(const struct sim_worker *w)
{
	return (int64_t)((double)mono_diff_us(io_now(w->fleet->loop), w->born) * w->fleet->o->time_scale);
}

static void arm(struct sim_worker *w)
{
	int64_t next = SIM_NEVER, now = sim_worker_now_us(w);
	for (uint32_t r = 0; r < w->fleet->o->ranks; r++)
		next = MIN(next, sim_engine_next(w->ranks[r].engine));
	if (next == SIM_NEVER)
		io_timer_stop(w->step_timer);
	else
		io_timer_after(w->step_timer, next <= now ? 0 : (int64_t)((double)(next - now) / w->fleet->o->time_scale) + 1);
}

/* Replies may come from inside (an instant step ends at once), and with them a new call: one pump at a time. */
void sim_worker_pump(struct sim_worker *w)
{
	if (!w->alive || w->pumping)
		return;
	w->pumping = true;
	int64_t now = sim_worker_now_us(w);
	for (uint32_t r = 0; r < w->fleet->o->ranks; r++)
		sim_engine_advance(w->ranks[r].engine, now);
	w->pumping = false;
	arm(w);
}

static void step_due(void *arg) { sim_worker_pump(arg); }

uint64_t sim_worker_random(struct sim_worker *w) { return rand_u64(&w->rand); }

/* As vLLM's front end: waiting counts four times. */
struct sim_rank *sim_worker_least_loaded(struct sim_worker *w)
{
	struct sim_rank *best = &w->ranks[0];
	uint64_t least = UINT64_MAX;
	for (uint32_t r = 0; r < w->fleet->o->ranks; r++) {
		struct sim_engine_stats s = sim_engine_stats(w->ranks[r].engine);
		uint64_t load = 4ull * s.waiting + s.running;
		if (load < least) {
			least = load;
			best = &w->ranks[r];
		}
	}
	return best;
}

void sim_worker_note_received(struct sim_worker *w, struct str request_id)
{
	enum { MAX_SEEN = 1 << 20 };
	struct map *seen = &w->fleet->seen_ids;
	uint64_t key = hash_str(request_id, 5), before;
	w->counts.received++;
	if (!request_id.n)
		return;
	w->counts.repeated += map_get(seen, key, &before);
	if (seen->n >= MAX_SEEN)
		map_done(seen);
	map_put(seen, key, 1);
}

void sim_worker_hold_response(struct sim_worker *w, struct str id)
{
	w->response_ids[w->responses++ % ARRAY_LEN(w->response_ids)] = hash_str(id, 3);
}

bool sim_worker_holds_response(const struct sim_worker *w, struct str id)
{
	uint64_t h = hash_str(id, 3);
	for (size_t i = 0; i < MIN(w->responses, ARRAY_LEN(w->response_ids)); i++)
		if (w->response_ids[i] == h)
			return true;
	return false;
}

/* ---- life ------------------------------------------------------------------------------------------------------- */

/* For the start: later deaths and returns tell nobody. */
static enum err cannot_bind(struct sim_worker *w, const char *address)
{
	snprintf(w->unbound, sizeof(w->unbound), "%s", address);
	return ERR_IO;
}

static enum err open_server(struct sim_worker *w)
{
	const struct sim_options *o = w->fleet->o;
	struct io_addr a;
	struct http_server_opts h = http_server_defaults();
	h.max_header_bytes = 64 << 10;
	h.idle_timeout_us = w->standing.idle_s > 0 ? (int64_t)(w->standing.idle_s * 1e6) : INT64_MAX / 4;
	h.write_timeout_us = (int64_t)3600e6;
	char address[128];
	snprintf(address, sizeof(address), "http://%s:%u", o->host, o->port + w->n);
	if (io_addr_of_host(str_of(o->host), (uint16_t)(o->port + w->n), &a) != ERR_OK ||
		http_server_new(w->fleet->loop, &a, &h, &sim_route_ops, w, &w->server) != ERR_OK)
		return cannot_bind(w, address);
	return ERR_OK;
}

static enum err open_pub(struct sim_rank *r)
{
	const struct sim_options *o = r->w->fleet->o;
	char events[128], replay[128];
	const char *unbound = events;
	uint32_t nth = r->w->n * o->ranks + r->n;
	if (o->no_events)
		return ERR_OK;
	snprintf(events, sizeof(events), "tcp://%s:%u", o->host, o->events_port + nth);
	snprintf(replay, sizeof(replay), "tcp://%s:%u", o->host, o->replay_port + nth);
	struct io_zpub_opts z = { .pub_endpoint = events,
		.replay_endpoint = replay,
		.topic = o->topic,
		.buffer_steps = o->replay_steps,
		.replay_has_topic = !o->old_replay,
		.ret_unbound = &unbound };
	if (io_zpub_open(r->w->fleet->hub, &z, &r->pub) != ERR_OK)
		return cannot_bind(r->w, unbound);
	io_zpub_mute_replay(r->pub, r->w->standing.mute_replay);
	return ERR_OK;
}

static struct sim_engine *make_engine(struct sim_rank *r)
{
	const struct sim_options *o = r->w->fleet->o;
	struct sim_engine_opts e = { .profile = o->profile,
		.budget_tok = o->budget_tok,
		.max_seqs = o->max_seqs,
		.max_model_tok = o->max_model_tok,
		.jitter = o->jitter,
		.seed = o->seed * 1000003 + r->w->n * 64 + r->n,
		.ops = &sim_call_engine_ops,
		.arg = r };
	e.cache = (struct sim_cache_opts){ .blocks = o->blocks,
		.block_tok = o->block_tok,
		.n_groups = o->n_groups,
		.retain_tok = o->retain_tok,
		.caching_off = o->caching_off,
		.cpu_blocks = o->cpu_blocks,
		.cpu_events_full = o->cpu_events_full };
	memcpy(e.cache.groups, o->groups, sizeof(e.cache.groups));
	struct sim_engine *engine = sim_engine_new(&e);
	sim_engine_slow(engine, r->w->standing.slow);
	return engine;
}

static void close_sockets(struct sim_worker *w)
{
	http_server_free(w->server); /* every open call ends in on_gone */
	w->server = NULL;
	for (uint32_t r = 0; r < w->fleet->o->ranks; r++) {
		if (w->ranks[r].pub)
			io_zpub_close(w->ranks[r].pub);
		w->ranks[r].pub = NULL;
	}
}

static enum err open_sockets(struct sim_worker *w)
{
	TRY(open_server(w));
	for (uint32_t r = 0; r < w->fleet->o->ranks; r++)
		TRY(open_pub(&w->ranks[r]));
	return ERR_OK;
}

static void free_engines(struct sim_worker *w)
{
	for (uint32_t r = 0; r < w->fleet->o->ranks; r++) {
		sim_rank_publish_done(&w->ranks[r]);
		sim_engine_free(w->ranks[r].engine);
		w->ranks[r].engine = NULL;
	}
}

static void make_engines(struct sim_worker *w)
{
	for (uint32_t n = 0; n < w->fleet->o->ranks; n++) {
		struct sim_rank *r = &w->ranks[n];
		*r = (struct sim_rank){ .w = w, .n = n };
		sim_rank_publish_start(r);
		r->engine = make_engine(r);
	}
	w->serving.max_model_tok = sim_engine_max_model_tok(w->ranks[0].engine);
}

/* The sockets first: on failure the dead worker's counters stay what they are. */
static enum err come_alive(struct sim_worker *w)
{
	for (uint32_t n = 0; n < w->fleet->o->ranks; n++)
		w->ranks[n].w = w, w->ranks[n].n = n;
	free_engines(w);
	make_engines(w);
	w->born = io_now(w->fleet->loop);
	w->born_unix_s = io_unix_us() / 1000000;
	w->responses = 0;
	w->alive = true;
	enum err e = open_sockets(w);
	if (e == ERR_OK)
		return e;
	w->alive = false;
	close_sockets(w);
	return e;
}

static void die(struct sim_worker *w)
{
	if (!w->alive)
		return;
	close_sockets(w);
	w->alive = false;
	io_timer_stop(w->step_timer);
	LOG_INFO("worker_died", "worker=%u", w->n);
}

/* A port may stay taken for a moment after its socket was closed: tried again. */
static void life_due(void *arg)
{
	struct sim_worker *w = arg;
	if (w->dying) {
		w->dying = false;
		die(w);
		if (w->back_after_s < 0)
			return;
		io_timer_after(w->life_timer, (int64_t)(w->back_after_s * 1e6));
		return;
	}
	if (w->alive)
		return;
	if (come_alive(w) != ERR_OK)
		io_timer_after(w->life_timer, 20000);
	else
		LOG_INFO("worker_back", "worker=%u", w->n);
}

void sim_worker_die_soon(struct sim_worker *w, double back_after_s)
{
	w->dying = true;
	w->back_after_s = back_after_s;
	io_timer_after(w->life_timer, 0);
}

/* ---- faults ----------------------------------------------------------------------------------------------------- */

static struct sim_standing healthy(const struct sim_options *o) { return (struct sim_standing){ .slow = 1, .idle_s = o->idle_s }; }

static void apply_standing(struct sim_worker *w)
{
	for (uint32_t r = 0; r < w->fleet->o->ranks; r++) {
		if (w->ranks[r].engine)
			sim_engine_slow(w->ranks[r].engine, w->standing.slow);
		if (w->ranks[r].pub)
			io_zpub_mute_replay(w->ranks[r].pub, w->standing.mute_replay);
	}
}

static double chance(const struct sim_fault *x) { return x->value < 0 ? 1 : x->value; }

static void set_standing(struct sim_worker *w, const struct sim_fault *x)
{
	struct sim_standing *s = &w->standing;
	switch ((int)x->kind) {
	case SIM_FAULT_UNHEALTHY: s->unhealthy = true; break;
	case SIM_FAULT_IDLE: s->idle_s = x->value; break;
	case SIM_FAULT_SLOW: s->slow = x->value; break;
	case SIM_FAULT_EVENT_DELAY: s->delay_us = x->value * 1e3; break;
	case SIM_FAULT_EVENT_LOSE: s->lose = chance(x); break;
	case SIM_FAULT_EVENT_DROP: s->drop = chance(x); break;
	case SIM_FAULT_EVENT_TWICE: s->twice = chance(x); break;
	case SIM_FAULT_EVENT_SWAP: s->swap = chance(x); break;
	case SIM_FAULT_EVENT_NOISE: s->noise = chance(x); break;
	case SIM_FAULT_MUTE_REPLAY: s->mute_replay = true; break;
	case SIM_FAULT_LIE_BLOCK: s->lie_block_tok = (uint32_t)x->value; break;
	default: break;
	}
	apply_standing(w);
}

static void take_back(struct sim_worker *w)
{
	sim_faults_clear(&w->faults);
	w->standing = healthy(w->fleet->o);
	apply_standing(w);
}

static void apply(struct sim_worker *w, const struct sim_fault *x)
{
	if (sim_fault_per_call(x->kind))
		sim_faults_add(&w->faults, x);
	else if (x->kind == SIM_FAULT_DIE)
		sim_worker_die_soon(w, x->value);
	else if (x->kind == SIM_FAULT_RESTART)
		sim_worker_die_soon(w, MAX(x->value, 0));
	else if (x->kind == SIM_FAULT_REVIVE)
		io_timer_after(w->life_timer, 0);
	else if (x->kind == SIM_FAULT_CLEAR)
		take_back(w);
	else
		set_standing(w, x);
}

void sim_fleet_fault(struct sim_fleet *f, const struct sim_fault *x, struct sim_worker *self)
{
	for (uint32_t i = 0; i < f->o->workers; i++)
		if (x->worker_given || !self ? i >= x->from && i <= x->to : &f->workers[i] == self)
			apply(&f->workers[i], x);
}

/* ---- fleet ------------------------------------------------------------------------------------------------------ */

static void worker_init(struct sim_fleet *f, uint32_t n)
{
	struct sim_worker *w = &f->workers[n];
	const struct sim_options *o = f->o;
	*w = (struct sim_worker){ .fleet = f, .n = n, .rand = { o->seed * 7919 + n }, .standing = healthy(o) };
	w->serving = (struct sim_serving){
		.model = str_of(o->model), .default_new_tok = o->default_new_tok, .vocab = f->vocab, .last_lora_id = (int64_t)o->loras.n
	};
	for (size_t i = 0; i < o->loras.n; i++)
		VEC_PUSH(&w->serving.loras, o->loras.p[i]);
	w->ranks = must_calloc(o->ranks, sizeof(*w->ranks));
	w->step_timer = io_timer_new(f->loop, step_due, w);
	w->life_timer = io_timer_new(f->loop, life_due, w);
}

enum err sim_fleet_start(struct io_loop *loop, const struct sim_options *o, struct sim_fleet **ret_fleet, char why[256])
{
	struct sim_fleet *f = must_calloc(1, sizeof(*f));
	enum err e = ERR_OK;
	f->loop = loop;
	f->hub = io_zhub_new(loop);
	f->o = o;
	f->vocab = sim_vocab_new();
	map_init(&f->seen_ids);
	f->workers = must_calloc(o->workers, sizeof(*f->workers));
	for (uint32_t i = 0; i < o->workers; i++)
		worker_init(f, i);
	for (size_t i = 0; i < o->faults.n; i++)
		sim_fleet_fault(f, &o->faults.p[i], NULL);
	for (uint32_t i = 0; i < o->workers && e == ERR_OK; i++) {
		e = come_alive(&f->workers[i]);
		if (e != ERR_OK)
			snprintf(why, 256, "worker %u cannot bind %s: the address is in use, not of this machine, or not allowed to this user", i,
				f->workers[i].unbound);
	}
	if (e == ERR_OK)
		*ret_fleet = f;
	else
		sim_fleet_free(f);
	return e;
}

void sim_fleet_free(struct sim_fleet *f)
{
	if (!f)
		return;
	for (uint32_t i = 0; i < f->o->workers; i++) {
		struct sim_worker *w = &f->workers[i];
		if (w->alive)
			close_sockets(w);
		w->alive = false;
		free_engines(w);
		io_timer_free(w->step_timer);
		io_timer_free(w->life_timer);
		sim_faults_clear(&w->faults);
		VEC_FREE(&w->serving.loras);
		free(w->ranks);
	}
	io_zhub_free(f->hub);
	sim_vocab_free(f->vocab);
	map_done(&f->seen_ids);
	free(f->workers);
	free(f);
}
