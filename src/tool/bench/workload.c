/* workload.c: sessions and their text. The shapes and sizes are those the field publishes (the shared facts, workloads.md
 * section 2), scaled to the rate asked for. */
#include "bench/workload.h"

#include "base/hash.h"
#include "wire/json.h"

enum { TRACE_BLOCK_TOK = 512, TRACE_LINE_MAX = 1 << 20, CLOSED_LOOP_SESSIONS = 4096 };

enum err bench_words(struct buf *b, uint64_t seed, uint64_t id, uint32_t at, uint32_t n)
{
	char *p;
	TRY(buf_reserve(b, (size_t)n * 4, &p));
	for (uint32_t i = 0; i < n; i++, p += 4) {
		uint64_t h = hash_mix(seed ^ hash_mix(id + 1) ^ ((uint64_t)(at + i) * 0x9e3779b97f4a7c15u));
		p[0] = (char)('a' + h % 26);
		p[1] = (char)('a' + (h >> 16) % 26);
		p[2] = (char)('a' + (h >> 32) % 26);
		p[3] = ' ';
	}
	buf_commit(b, (size_t)n * 4);
	return ERR_OK;
}

struct shape {
	const char *name, *what;
	uint32_t groups, prefix_tok, question_tok, output_tok, turns;
	double question_sd, think_s, turns_mean;
};

static const struct shape shapes[] = {
	{ .name = "shared-prefix", .what = "150 groups, 6,000-token system prompt, 1,200-token question, 300 out", .groups = 150, .prefix_tok = 6000,
	  .question_tok = 1200, .output_tok = 300, .turns = 1 },
	{ .name = "chat", .what = "growing chats: shared 1,000-token system prompt, 6 turns of 600 in and 200 out, 5 s think time", .groups = 1, .prefix_tok = 1000,
	  .question_tok = 600, .output_tok = 200, .turns = 6, .think_s = 5 },
	{ .name = "no-sharing", .what = "2,048-token prompts that share nothing, 128 out", .question_tok = 2048, .question_sd = 1024, .output_tok = 128, .turns = 1 },
	{ .name = "hot", .what = "one 6,000-token prefix for everybody, 200-token question, 100 out", .groups = 1, .prefix_tok = 6000, .question_tok = 200,
	  .output_tok = 100, .turns = 1 },
};

const char *bench_workload_names(void) { return "shared-prefix, chat, no-sharing, hot, or the path of a trace"; }

static struct shape shape_with(const struct shape *s, const struct bench_workload_opts *o)
{
	struct shape r = *s;
	r.groups = o->groups ? o->groups : r.groups;
	r.prefix_tok = o->prefix_tok ? o->prefix_tok : r.prefix_tok;
	r.question_tok = o->question_tok ? o->question_tok : r.question_tok;
	r.output_tok = o->output_tok ? o->output_tok : r.output_tok;
	r.turns = o->turns ? o->turns : r.turns;
	r.think_s = o->think_s >= 0 ? o->think_s : r.think_s;
	return r;
}

static uint32_t question_len(const struct shape *s, struct rand *r)
{
	if (s->question_sd == 0)
		return s->question_tok;
	double x = rand_normal(r, s->question_tok, s->question_sd);
	return (uint32_t)MAX(64.0, MIN(x, 4.0 * s->question_tok));
}

static void session_fill(struct bench_session *se, const struct shape *s, struct rand *r, struct arena *a, uint64_t id)
{
	struct bench_turn *t = arena_new(a, struct bench_turn, s->turns);
	for (uint32_t i = 0; i < s->turns; i++)
		t[i] = (struct bench_turn){ question_len(s, r), s->output_tok, s->think_s > 0 ? rand_exp(r, s->think_s) : 0 };
	se->id = id;
	se->prefix_tok = s->groups ? s->prefix_tok : 0;
	se->prefix_id = s->groups ? 1000000 + rand_below(r, s->groups) : 0;
	se->turns = t;
	se->n_turns = s->turns;
}

static void from_shape(const struct shape *s, const struct bench_workload_opts *o, struct arena *a, struct bench_workload *ret_w)
{
	struct rand r = { o->seed * 7919 + 17 };
	double per_s = o->rate / s->turns;
	size_t max = o->rate > 0 ? (size_t)(per_s * o->duration_s * 1.5) + 64 : CLOSED_LOOP_SESSIONS, n = 0;
	struct bench_session *se = arena_new(a, struct bench_session, max);
	for (double t = 0; n < max; n++) {
		t += o->rate > 0 ? rand_exp(&r, 1 / per_s) : 0;
		if (t > o->duration_s)
			break;
		se[n].start_s = t;
		session_fill(&se[n], s, &r, a, 2000000 + n);
	}
	*ret_w = (struct bench_workload){ .sessions = se, .n = n, .n_requests = n * s->turns, .what = s->what, .goes_round = o->rate <= 0 };
}

static enum err trace_line(struct str line, struct arena *a, struct bench_session *se, uint64_t id)
{
	struct json_doc *d;
	TRY(json_parse(line, TRACE_LINE_MAX, &d));
	const struct json_val *root = json_root(d), *ids = json_get(root, STR("hash_ids"));
	double t_ms;
	uint64_t in, out;
	bool ok = json_f64(json_get(root, STR("timestamp")), &t_ms) && json_u64(json_get(root, STR("input_length")), &in) &&
	          json_u64(json_get(root, STR("output_length")), &out) && json_is(ids, JSON_ARRAY) && in < 1u << 22 && out < 1u << 20;
	if (ok) {
		uint32_t *blocks = arena_new(a, uint32_t, json_len(ids)), n = 0;
		for (struct json_iter it = json_each(ids); json_next(&it);) {
			uint64_t v;
			if (json_u64(it.val, &v))
				blocks[n++] = (uint32_t)v;
		}
		struct bench_turn *turn = arena_new(a, struct bench_turn, 1);
		*turn = (struct bench_turn){ (uint32_t)in, (uint32_t)MAX(out, 1u), 0 };
		*se = (struct bench_session){ .start_s = t_ms / 1000, .blocks = blocks, .n_blocks = n, .id = id, .turns = turn, .n_turns = 1 };
	}
	json_free(d);
	return ok ? ERR_OK : ERR_SYNTAX;
}

static enum err from_trace(const struct bench_workload_opts *o, struct arena *a, struct bench_workload *ret_w)
{
	size_t max = 1, n = 0;
	for (size_t i = 0; i < o->trace.n; i++)
		max += o->trace.p[i] == '\n';
	struct bench_session *se = arena_new(a, struct bench_session, max);
	struct str rest = o->trace, line;
	while (rest.n) {
		str_cut(rest, '\n', &line, &rest);
		if (str_trim(line).n == 0)
			continue;
		TRY(trace_line(line, a, &se[n], 3000000 + n));
		if (se[n].start_s > o->duration_s)
			break;
		n++;
	}
	/* With a rate the trace keeps its order and its gaps' shape, stretched to that mean rate. */
	double span = n ? se[n - 1].start_s : 0, stretch = o->rate > 0 && span > 0 ? (double)n / o->rate / span : 1;
	for (size_t i = 0; i < n; i++)
		se[i].start_s *= stretch;
	*ret_w = (struct bench_workload){ .sessions = se, .n = n, .n_requests = n, .what = "trace" };
	return ERR_OK;
}

enum err bench_workload_make(const struct bench_workload_opts *o, struct arena *a, struct bench_workload *ret_w)
{
	if (o->trace.n)
		return from_trace(o, a, ret_w);
	for (size_t i = 0; i < ARRAY_LEN(shapes); i++)
		if (str_eq(o->name, str_of(shapes[i].name))) {
			struct shape s = shape_with(&shapes[i], o);
			from_shape(&s, o, a, ret_w);
			return ERR_OK;
		}
	return ERR_NOT_FOUND;
}
