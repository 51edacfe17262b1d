#include "sim/options.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum kind { TEXT, COUNT, REAL, FLAG, CALL };

struct row {
	const char *name, *value, *text;
	enum kind kind;
	size_t at; /* offset in struct sim_options */
	double min, max;
	bool (*call)(struct sim_options *o, struct str v);
};

static bool set_profile(struct sim_options *o, struct str v) { return (o->profile = sim_profile_find(v)) != NULL; }

static bool set_encoding(struct sim_options *o, struct str v)
{
	o->array_events = str_eq(v, STR("array"));
	return o->array_events || str_eq(v, STR("map"));
}

static bool set_fault(struct sim_options *o, struct str v)
{
	struct sim_fault f;
	if (sim_fault_parse(v, &f) != ERR_OK)
		return false;
	VEC_PUSH(&o->faults, f);
	return true;
}

static bool set_lora(struct sim_options *o, struct str v)
{
	struct str name, path;
	struct sim_lora l = { .id = (int64_t)o->loras.n + 1 };
	if (!str_cut(v, '=', &name, &path))
		path = name;
	if (!name.n || name.n >= sizeof(l.name) || path.n >= sizeof(l.path))
		return false;
	memcpy(l.name, name.p, name.n);
	memcpy(l.path, path.p, path.n);
	VEC_PUSH(&o->loras, l);
	return true;
}

static bool set_retention(struct sim_options *o, struct str v)
{
	uint64_t n = SIM_RETAIN_ALL;
	if (!str_eq(v, STR("all")) && (!str_to_u64(v, &n) || n >= SIM_RETAIN_ALL))
		return false;
	o->retain_tok = (uint32_t)n;
	return true;
}

/* "window:512*5,full": kind[:tokens][*count], separated by commas, in the order of group_idx. */
static bool add_group(struct sim_options *o, struct str v)
{
	struct str kind, count, tokens;
	uint64_t n = 1, window = 0;
	struct sim_group g = { SIM_FULL, 0 };
	if (str_cut(v, '*', &kind, &count) && (!str_to_u64(count, &n) || !n))
		return false;
	if (str_cut(kind, ':', &kind, &tokens) && (!str_to_u64(tokens, &window) || window < 2 || window > UINT32_MAX))
		return false;
	if (str_eq(kind, STR("window")) && window)
		g = (struct sim_group){ SIM_WINDOW, (uint32_t)window };
	else if (str_eq(kind, STR("mamba")) && !window)
		g.spec = SIM_MAMBA;
	else if (!str_eq(kind, STR("full")) || window)
		return false;
	if (o->n_groups + n > SIM_MAX_GROUPS)
		return false;
	while (n--)
		o->groups[o->n_groups++] = g;
	return true;
}

static bool set_groups(struct sim_options *o, struct str v)
{
	struct str part;
	while (v.n) {
		(void)str_cut(v, ',', &part, &v);
		if (!add_group(o, part))
			return false;
	}
	return o->n_groups > 0;
}

#define AT(m) offsetof(struct sim_options, m)
static const struct row rows[] = {
	{ "--workers", "N", "how many workers; worker i serves HTTP on PORT+i (1)", COUNT, AT(workers), 1, 1000, NULL },
	{ "--port", "BASE", "first HTTP port (8000)", COUNT, AT(port), 1, 65535, NULL },
	{ "--events-port", "BASE", "first KV event port; worker i, rank r: BASE + i*RANKS + r (PORT + WORKERS)", COUNT, AT(events_port), 1,
		65535, NULL },
	{ "--replay-port", "BASE", "first replay port, laid out alike (EVENTS_PORT + WORKERS*RANKS)", COUNT, AT(replay_port), 1, 65535,
		NULL },
	{ "--host", "ADDRESS", "address to bind (127.0.0.1)", TEXT, AT(host), 0, 0, NULL },
	{ "--model", "NAME", "served model name (the profile's)", TEXT, AT(model), 0, 0, NULL },
	{ "--profile", "NAME", "accelerator and model, see below (qwen3-32b-h100-tp2)", CALL, 0, 0, 0, set_profile },
	{ "--block-size", "N", "tokens a block (the profile's)", COUNT, AT(block_tok), 1, 65536, NULL },
	{ "--blocks", "N", "KV cache blocks of a rank, the null block included (the profile's capacity)", COUNT, AT(blocks), 2, 1u << 28,
		NULL },
	{ "--groups", "LIST", "KV cache groups: full, window:TOKENS, mamba, each with *COUNT: window:512*5,full (full)", CALL, 0, 0, 0,
		set_groups },
	{ "--retention", "N|all", "prefix_cache_retention_interval of window and mamba groups (0: tails only)", CALL, 0, 0, 0,
		set_retention },
	{ "--cpu-blocks", "N", "blocks of a CPU tier below each rank's cache, as the OffloadingConnector's; full attention only (0: none)", COUNT,
		AT(cpu_blocks), 0, 1u << 28, NULL },
	{ "--self-describing-events", NULL, "the CPU tier's events carry tokens and parents, not hashes alone", FLAG, AT(cpu_events_full), 0, 0,
		NULL },
	{ "--no-prefix-caching", NULL, "prefix caching off: no hit, no event", FLAG, AT(caching_off), 0, 0, NULL },
	{ "--max-model-len", "N", "longest sequence (the profile's, at most what the cache can hold)", COUNT, AT(max_model_tok), 2,
		1u << 30, NULL },
	{ "--max-num-batched-tokens", "N", "token budget of a step (the profile's)", COUNT, AT(budget_tok), 1, 1u << 30, NULL },
	{ "--max-num-seqs", "N", "running sequences at most (the profile's)", COUNT, AT(max_seqs), 1, 65536, NULL },
	{ "--data-parallel-size", "N", "ranks of each worker (1)", COUNT, AT(ranks), 1, 64, NULL },
	{ "--encoding", "map|array", "events as vLLM 0.24 and later send them, or 0.23 (map)", CALL, 0, 0, 0, set_encoding },
	{ "--wide-hashes", NULL, "block hashes as 32 bytes, not as 64-bit numbers", FLAG, AT(wide_hashes), 0, 0, NULL },
	{ "--old-replay", NULL, "replay framing before vLLM 0.26 (implied by --encoding array)", FLAG, AT(old_replay), 0, 0, NULL },
	{ "--replay-steps", "N", "batches kept for replay, whole (10000, as vLLM; less saves memory with long prompts)", COUNT,
		AT(replay_steps), 1, 1u << 20, NULL },
	{ "--topic", "TEXT", "topic of event messages (empty)", TEXT, AT(topic), 0, 0, NULL },
	{ "--no-events", NULL, "no KV event sockets", FLAG, AT(no_events), 0, 0, NULL },
	{ "--lora", "NAME[=PATH]", "an adapter; repeatable", CALL, 0, 0, 0, set_lora },
	{ "--api-key", "KEY", "calls under /v1 need Authorization: Bearer KEY", TEXT, AT(api_key), 0, 0, NULL },
	{ "--enable-render", NULL, "the render calls and /inference/v1/generate answer (else 403)", FLAG, AT(enable_render), 0, 0, NULL },
	{ "--default-tokens", "N", "answer length of a chat without max_tokens (128)", COUNT, AT(default_new_tok), 1, 1u << 20, NULL },
	{ "--time-scale", "X", "X times faster than real (1)", REAL, AT(time_scale), 1e-3, 1e6, NULL },
	{ "--jitter", "SIGMA", "lognormal spread of step times (0.05)", REAL, AT(jitter), 0, 1, NULL },
	{ "--idle-timeout", "S", "idle connections are closed after S seconds, as vLLM does; 0: never (5)", REAL, AT(idle_s), 0, 1e6,
		NULL },
	{ "--seed", "N", "seed of jitter and of faults by chance (1)", COUNT, AT(seed), 0, 9e18, NULL },
	{ "--fault", "SPEC", "something that goes wrong, see below; repeatable", CALL, 0, 0, 0, set_fault },
};

static bool set_count(struct sim_options *o, const struct row *r, struct str v)
{
	uint64_t n;
	if (!str_to_u64(v, &n) || (double)n < r->min || (double)n > r->max)
		return false;
	char *at = (char *)o + r->at;
	if (r->at == AT(seed))
		memcpy(at, &n, sizeof(n));
	else
		memcpy(at, &(uint32_t){ (uint32_t)n }, sizeof(uint32_t));
	return true;
}

static bool set_row(struct sim_options *o, const struct row *r, const char *value)
{
	char *at = (char *)o + r->at;
	double x;
	switch (r->kind) {
	case TEXT: memcpy(at, &value, sizeof(value)); return true;
	case COUNT: return set_count(o, r, str_of(value));
	case REAL:
		if (!str_to_f64(str_of(value), &x) || x < r->min || x > r->max)
			return false;
		memcpy(at, &x, sizeof(x));
		return true;
	case FLAG: memcpy(at, &(bool){ true }, sizeof(bool)); return true;
	case CALL: return r->call(o, str_of(value));
	}
	return false;
}

static const struct row *find_row(struct str name)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (str_eq(name, str_of(rows[i].name)))
			return &rows[i];
	return NULL;
}

static bool check_tier(const struct sim_options *o, char why[256])
{
	if (!o->cpu_blocks || !o->n_groups || (o->n_groups == 1 && o->groups[0].spec == SIM_FULL))
		return true;
	snprintf(why, 256, "--cpu-blocks: only for one group of full attention");
	return false;
}

static bool derive_ports(struct sim_options *o, char why[256])
{
	uint32_t endpoints = o->workers * o->ranks;
	o->events_port = o->events_port ? o->events_port : o->port + o->workers;
	o->replay_port = o->replay_port ? o->replay_port : o->events_port + endpoints;
	if (o->port + o->workers <= 65536 && (o->no_events || (o->events_port + endpoints <= 65536 && o->replay_port + endpoints <= 65536)))
		return true;
	snprintf(why, 256, "the ports do not fit below 65536");
	return false;
}

bool sim_options_parse(int argc, char **argv, struct sim_options *o, char why[256])
{
	*o = (struct sim_options){ .host = "127.0.0.1",
		.workers = 1,
		.port = 8000,
		.ranks = 1,
		.replay_steps = 10000,
		.topic = "",
		.time_scale = 1,
		.jitter = 0.05,
		.idle_s = 5,
		.seed = 1,
		.default_new_tok = 128 };
	o->profile = sim_profile_at(0);
	for (int i = 1; i < argc; i++) {
		struct str name, value;
		bool glued = str_cut(str_of(argv[i]), '=', &name, &value);
		const struct row *r = find_row(name);
		if (!r || (glued && r->kind == FLAG) || (!glued && r->kind != FLAG && i + 1 == argc)) {
			snprintf(why, 256, r ? "%.*s: wants %s" : "%.*s: no such option%s", STR_ARG(name),
				!r                ? ""
				: r->kind == FLAG ? "no value"
						  : r->value);
			return false;
		}
		const char *v = r->kind == FLAG ? "" : glued ? value.p : argv[++i];
		if (!set_row(o, r, v)) {
			snprintf(why, 256, "%s %s: not a value for it (%s: %s)", r->name, v, r->value, r->text);
			return false;
		}
	}
	o->model = o->model ? o->model : o->profile->model;
	o->old_replay |= o->array_events;
	return check_tier(o, why) && derive_ports(o, why);
}

void sim_options_done(struct sim_options *o)
{
	VEC_FREE(&o->loras);
	VEC_FREE(&o->faults);
}

/* buf is large enough: the text is ours. */
void sim_options_help(struct buf *out)
{
	enum err e = buf_printf(out, "kvasir-sim: a fleet of vLLM-like workers in one process\n\n");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char left[40];
		snprintf(left, sizeof(left), "%s %s", rows[i].name, rows[i].value ? rows[i].value : "");
		e = e ? e : buf_printf(out, "  %-30s %s\n", left, rows[i].text);
	}
	e = e ? e : buf_printf(out, "  %-30s %s\n  %-30s %s\n\nprofiles\n", "--help", "this text", "--version", "the version");
	for (size_t i = 0; sim_profile_at(i); i++)
		e = e ? e : buf_printf(out, "  %-30s %s\n", sim_profile_at(i)->name, sim_profile_at(i)->what);
	e = e ? e : buf_printf(out, "\nfaults\n%s", sim_fault_help());
	must(e == ERR_OK);
}
