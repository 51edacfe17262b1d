#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "play.h"

/* ---- workers ---- */

struct play_worker *play_worker_of(struct play *p, const struct play_line *l, struct str name)
{
	for (size_t i = p->workers.n; i-- > 0;)       /* the newest of a name */
		if (str_eq(p->workers.p[i].name, name))
			return &p->workers.p[i];
	play_fail(l, "no worker %.*s", STR_ARG(name));
}

static void on_panic(void *arg, struct str pool, bool on)
{
	(void)pool;
	((struct play *)arg)->panic = on;
}

static void on_mismatch(void *arg, brain_worker w, const char *cause, double share)
{
	struct play *p = arg;
	(void)share;
	for (size_t i = 0; i < p->workers.n; i++)
		if (p->workers.p[i].id == w)
			p->workers.p[i].alarm = cause;
}

static void need_brain(struct play *p)
{
	static const struct brain_ops ops = { .on_panic = on_panic, .on_mismatch = on_mismatch };
	if (!p->brain)
		p->brain = brain_new(&p->opts, &ops, p);
}

static size_t split(struct str s, struct str *ret, size_t max)
{
	size_t n = 0;
	while (s.n && n < max)
		(void)str_cut(s, ',', &ret[n++], &s);
	return n;
}

static void set_models(struct play *p, const struct play_line *l, brain_worker id)
{
	struct str names[8], loras[8];
	struct brain_models m = { .names = names, .adapters = loras, .max_model_len = (uint32_t)play_number(l, "len", 0) };
	struct str list = play_value(l, "model");
	m.n_names = split(list.n ? list : STR("m"), names, 8);
	m.n_adapters = split(play_value(l, "lora"), loras, 8);
	brain_fact_models(p->brain, id, &m, p->now);
}

static void add_worker(struct play *p, const struct play_line *l, struct str name)
{
	need_brain(p);
	struct str routing = play_value(l, "routing");
	struct brain_worker_conf c = { .pool = play_value(l, "pool"), .url = str_of(arena_printf(&p->mem, "http://%.*s:8000", STR_ARG(name))),
		.accelerator = play_value(l, "profile"), .has_routing = routing.n != 0 };
	if (routing.n && !brain_routing_of(routing, &c.routing))
		play_fail(l, "no such routing");
	struct play_worker w = { .name = arena_str(&p->mem, name), .block = (uint32_t)play_number(l, "block", 16) };
	enum err e = brain_worker_add(p->brain, &c, p->now, &w.id);
	if (e)
		play_fail(l, "worker %.*s: %s", STR_ARG(name), err_label(e));
	set_models(p, l, w.id);
	uint32_t ranks = (uint32_t)play_number(l, "ranks", 1);
	brain_fact_cache(p->brain, w.id, w.block, play_number(l, "blocks", 20000) * ranks, ranks, !play_flag(l, "nocaching"), p->now);
	for (uint32_t r = 0; r < ranks && !play_flag(l, "noevents"); r++)
		brain_kv_status(p->brain, w.id, r, true, false, p->now);
	if (!play_flag(l, "unprobed"))
		brain_fact_probe(p->brain, w.id, BRAIN_PROBE_OK, p->now);
	VEC_PUSH(&p->workers, w);
}

static void cmd_worker(struct play *p, const struct play_line *l) { add_worker(p, l, l->words[1]); }

static void cmd_workers(struct play *p, const struct play_line *l)
{
	uint64_t n;
	if (!str_to_u64(l->words[1], &n))
		play_fail(l, "workers N PREFIX");
	for (uint64_t i = 1; i <= n; i++)
		add_worker(p, l, str_of(arena_printf(&p->mem, "%.*s%d", STR_ARG(l->words[2]), (int)i)));
}

static void cmd_models(struct play *p, const struct play_line *l) { set_models(p, l, play_worker_of(p, l, l->words[1])->id); }
static void cmd_drain(struct play *p, const struct play_line *l) { brain_worker_drain(p->brain, play_worker_of(p, l, l->words[1])->id, p->now); }
static void cmd_clear(struct play *p, const struct play_line *l) { brain_kv_clear(p->brain, play_worker_of(p, l, l->words[1])->id, 0); }

static void cmd_probe(struct play *p, const struct play_line *l)
{
	static const char *const words[] = { "ok", "connect", "status", "timeout", "auth" };
	for (int i = 0; i < 5; i++)
		if (str_eq(l->words[2], str_of(words[i]))) {
			brain_fact_probe(p->brain, play_worker_of(p, l, l->words[1])->id, (enum brain_probe)i, p->now);
			return;
		}
	play_fail(l, "probe: what?");
}

static void cmd_gauges(struct play *p, const struct play_line *l)
{
	brain_fact_gauges(p->brain, play_worker_of(p, l, l->words[1])->id, 0, (uint32_t)play_number(l, "running", 0),
		(uint32_t)play_number(l, "waiting", 0), (double)play_number(l, "kv", 0) / 100, p->now);
}

/* ---- prompts ---- */

static void add_segment(struct play *p, const struct play_line *l, struct str segment, uint64_t number, uint32_t *ids, size_t *n)
{
	struct str name, count;
	uint64_t tokens;
	if (!str_cut(segment, ':', &name, &count) || !str_to_u64(count, &tokens) || *n + tokens > 1 << 20)
		play_fail(l, "prompt: NAME:TOKENS+NAME:TOKENS");
	uint64_t seed = 0;
	if (str_ends(name, STR("%"))) {
		name.n--;
		seed = number + 1;
	}
	(void)p;
	for (uint64_t i = 0; i < tokens; i++)
		ids[(*n)++] = (uint32_t)hash_str(name, seed * 1000003 + i) & 0xffff;
}

struct kv_prompt play_prompt(struct play *p, const struct play_line *l, struct str spec, const uint32_t *sizes, size_t n_sizes, uint64_t number)
{
	uint32_t *ids = arena_new(&p->mem, uint32_t, (1 << 20) + 1);
	size_t n = 0;
	struct str segment;
	while (spec.n) {
		(void)str_cut(spec, '+', &segment, &spec);
		add_segment(p, l, segment, number, ids, &n);
	}
	struct kv_prompt prompt = { .n_tok = (uint32_t)n, .n_sets = (uint32_t)n_sizes };
	for (size_t i = 0; i < n_sizes; i++) {
		uint64_t *keys = arena_new(&p->mem, uint64_t, n / sizes[i] + 1);
		size_t n_keys = kv_prompt_keys(kv_seed(STR("")), ids, n, sizes[i], NULL, keys);
		prompt.sets[i] = (struct kv_keyset){ sizes[i], (uint32_t)n_keys, keys };
	}
	return prompt;
}

static enum kv_tier tier_of(const struct play_line *l)
{
	struct str word = play_value(l, "tier");
	if (!word.n)
		return KV_TIER_GPU;
	if (!str_eq(word, STR("cpu")) && !str_eq(word, STR("storage")))
		play_fail(l, "tier=cpu or tier=storage");
	return str_eq(word, STR("cpu")) ? KV_TIER_CPU : KV_TIER_STORAGE;
}

static void cmd_hold(struct play *p, const struct play_line *l)
{
	struct arena_mark mark = arena_mark(&p->mem);
	struct play_worker *w = play_worker_of(p, l, l->words[1]);
	struct kv_prompt prompt = play_prompt(p, l, play_value(l, "prompt"), &w->block, 1, 0);
	struct kv_group g = { .kind = KV_GROUP_FULL, .block_size = w->block };
	enum kv_tier tier = tier_of(l);
	struct kv_delta *d = arena_new(&p->mem, struct kv_delta, prompt.sets[0].n);
	for (uint32_t i = 0; i < prompt.sets[0].n; i++)
		d[i] = (struct kv_delta){ .key = prompt.sets[0].keys[i], .add_groups = 1, .tier = tier };
	uint32_t rank = (uint32_t)play_number(l, "rank", 0);
	brain_kv_groups(p->brain, w->id, rank, &g, 1);
	brain_kv_deltas(p->brain, w->id, rank, d, prompt.sets[0].n);
	arena_rewind(&p->mem, mark);
}

/* ---- requests ---- */

static void check_plan(struct play *p, const struct play_line *l, const struct play_request *r)
{
	struct str to = play_after(l, "->"), not_to = play_after(l, "!->"), reason = play_value(l, "reason"), hit = play_value(l, "hit");
	const struct brain_leg *leg = &r->plan.legs[0];
	if (to.n) {
		struct str name, rank;
		uint64_t n = 0;
		bool has_rank = str_cut(to, '/', &name, &rank);
		if (has_rank && !str_to_u64(rank, &n))
			play_fail(l, "-> NAME/RANK");
		if (leg->worker != play_worker_of(p, l, name)->id || (has_rank && leg->dp_rank != (int32_t)n))
			play_fail(l, "%.*s went to worker id %u rank %d (%s), not to %.*s", STR_ARG(r->id), leg->worker, leg->dp_rank, r->plan.reason, STR_ARG(to));
	}
	if (not_to.n && leg->worker == play_worker_of(p, l, not_to)->id)
		play_fail(l, "%.*s went to %.*s (%s)", STR_ARG(r->id), STR_ARG(not_to), r->plan.reason);
	if (reason.n && !str_eq(str_of(r->plan.reason), reason))
		play_fail(l, "%.*s: the reason is %s", STR_ARG(r->id), r->plan.reason);
	if (hit.n && leg->hit_tok != play_number(l, "hit", 0))
		play_fail(l, "%.*s: predicted hit %u", STR_ARG(r->id), leg->hit_tok);
}

static void ask(struct play *p, const struct play_line *l, struct str id, uint64_t number)
{
	need_brain(p);
	struct arena_mark mark = arena_mark(&p->mem);
	struct str spec = play_value(l, "prompt"), model = play_value(l, "model"), pin = play_value(l, "pinned");
	uint32_t sizes[KV_MAX_SIZES];
	struct kv_prompt prompt = { 0 };
	struct brain_ask a = { .model = str_eq(model, STR("-")) ? STR("") : model.n ? model : STR("m"), .pool = play_value(l, "pool"),
		.prompt_tok_estimate = (uint32_t)play_number(l, "tokens", 100), .stream = !play_flag(l, "nostream"), .kv_routed = !play_flag(l, "plain"),
		.no_lookup = play_flag(l, "nolookup"), .dry_run = play_flag(l, "dry"), .affinity_key = play_number(l, "key", 0),
		.pinned = pin.n ? play_worker_of(p, l, pin)->id : 0, .request_id = arena_str(&p->mem, id).p };
	if (spec.n) {
		size_t n_sizes = brain_block_sizes(p->brain, a.model, sizes);
		prompt = play_prompt(p, l, spec, sizes, n_sizes, number);
		a.prompt = &prompt;
	}
	struct play_request r = { .id = id };
	r.error = brain_ask(p->brain, &a, p->now, &r.plan);
	struct str wanted = play_value(l, "error");
	if (!str_eq(wanted.n ? wanted : STR("ok"), str_of(err_label(r.error))))
		play_fail(l, "%.*s: the answer is %s", STR_ARG(id), err_label(r.error));
	arena_rewind(&p->mem, mark);
	if (r.error)
		return;
	r.id = arena_str(&p->mem, id);
	r.ticket = r.plan.ticket;
	r.open = r.ticket != 0;
	check_plan(p, l, &r);
	VEC_PUSH(&p->requests, r);
}

static void cmd_ask(struct play *p, const struct play_line *l) { ask(p, l, l->words[1], 0); }

static void cmd_asks(struct play *p, const struct play_line *l)
{
	uint64_t n;
	if (!str_to_u64(l->words[1], &n))
		play_fail(l, "asks N ID");
	for (uint64_t i = 1; i <= n; i++) {
		char id[64];
		(void)snprintf(id, sizeof(id), "%.*s.%d", STR_ARG(l->words[2]), (int)i);
		ask(p, l, str_of(id), i);
	}
}

void play_each(struct play *p, const struct play_line *l, struct str pattern, bool open_only, void (*fn)(struct play *, const struct play_line *, struct play_request *))
{
	bool all = str_ends(pattern, STR("*")), any = false;
	struct str prefix = { pattern.p, pattern.n - all };
	for (size_t i = 0; i < p->requests.n; i++) {
		struct play_request *r = &p->requests.p[i];
		if ((open_only && !r->open) || !(all ? str_starts(r->id, prefix) : str_eq(r->id, pattern)))
			continue;
		any = true;
		fn(p, l, r);
	}
	if (!any)
		play_fail(l, "no open request %.*s", STR_ARG(pattern));
}

static enum brain_outcome outcome_of(const struct play_line *l)
{
	static const char *const words[] = { "done", "left", "error", "died", "connect", "timeout", "notsent" };
	struct str how = play_value(l, "how");
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (str_eq(how.n ? how : STR("done"), str_of(words[i])))
			return (enum brain_outcome)i;
	play_fail(l, "how?");
}

static void tell_one(struct play *p, const struct play_line *l, struct play_request *r)
{
	static const char *const words[] = { "sent", "switch", "first", "tokens", "usage", "end" };
	struct brain_tell t = { .ticket = r->ticket, .leg = (uint32_t)play_number(l, "leg", 1), .outcome = outcome_of(l), .status = (int)play_number(l, "status", 0),
		.prompt_tok = (uint32_t)play_number(l, "prompt", 0), .cached_tok = (uint32_t)play_number(l, "cached", UINT32_MAX),
		.output_tok = (uint32_t)play_number(l, "n", 0) };
	for (int i = 0; i < 6; i++)
		if (str_eq(l->words[0], str_of(words[i])))
			t.kind = (enum brain_tell_kind)i;
	brain_tell(p->brain, &t, p->now);
	if (t.kind == BRAIN_TELL_END)
		r->open = false;
}

static void cmd_tell(struct play *p, const struct play_line *l)
{
	for (size_t i = 1; i < l->n; i++)
		if (str_find(l->words[i], STR("=")) == SIZE_MAX)
			play_each(p, l, l->words[i], true, tell_one);
}

/* ---- the rest ---- */

static void cmd_wait(struct play *p, const struct play_line *l)
{
	struct str s = l->words[1];
	bool ms = str_ends(s, STR("ms"));
	uint64_t n;
	s.n -= ms ? 2 : 1;
	if (!str_to_u64(s, &n))
		play_fail(l, "wait 100ms or 3s");
	struct mono end = mono_add_us(p->now, (int64_t)n * (ms ? 1000 : 1000000));
	while (mono_before(p->now, end)) {
		p->now = mono_add_us(p->now, MIN(100000, mono_diff_us(end, p->now)));
		if (p->brain)
			brain_tick(p->brain, p->now);
	}
}

static void cmd_routing(struct play *p, const struct play_line *l)
{
	if (p->brain || !brain_routing_of(l->words[1], &p->opts.routing))
		play_fail(l, "routing WORD, before the first worker");
}

static void cmd_seed(struct play *p, const struct play_line *l)
{
	if (p->brain || !str_to_u64(l->words[1], &p->opts.seed))
		play_fail(l, "seed N, before the first worker");
}

void play_command(struct play *p, const struct play_line *l)
{
	static const struct { const char *word; void (*fn)(struct play *, const struct play_line *); } commands[] = {
		{ "worker", cmd_worker }, { "workers", cmd_workers }, { "models", cmd_models }, { "drain", cmd_drain }, { "clear", cmd_clear },
		{ "probe", cmd_probe }, { "gauges", cmd_gauges }, { "hold", cmd_hold }, { "ask", cmd_ask }, { "asks", cmd_asks }, { "sent", cmd_tell },
		{ "switch", cmd_tell }, { "first", cmd_tell }, { "tokens", cmd_tell }, { "usage", cmd_tell }, { "end", cmd_tell }, { "wait", cmd_wait },
		{ "routing", cmd_routing }, { "seed", cmd_seed }, { "expect", play_expect },
	};
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		if (str_eq(l->words[0], str_of(commands[i].word))) {
			if (l->n < 2)
				play_fail(l, "%s needs more words", commands[i].word);
			commands[i].fn(p, l);
			return;
		}
	play_fail(l, "no command %.*s", STR_ARG(l->words[0]));
}
