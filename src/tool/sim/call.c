#include "sim/call.h"

#include <stdio.h>

enum { MAX_CHOICE_TEXT = 64 << 20, MAX_CHOICES = 4096 };

struct choice {
	struct sim_call *call;
	struct sim_engine *engine;
	struct sim_req *req; /* NULL: ended */
	uint32_t index;
	struct buf text;
	sim_ids tok;
	const char *finish;
};

struct sim_call {
	struct sim_exch *x;
	struct json_doc *doc;
	struct sim_spec_call spec;
	struct sim_answer answer;
	char id[160], engine_id[32];
	struct choice *choices;
	uint32_t n_choices, left;
	struct sim_usage usage;
	bool usage_known;
};

/* ---- end ---------------------------------------------------------------------------------------------------------- */

void sim_call_abort(struct sim_call *c)
{
	for (uint32_t i = 0; c && i < c->n_choices; i++) {
		if (c->choices[i].req)
			sim_engine_abort(c->choices[i].engine, c->choices[i].req);
		c->choices[i].req = NULL;
	}
}

void sim_call_free(struct sim_call *c)
{
	if (!c)
		return;
	sim_call_abort(c);
	for (uint32_t i = 0; i < c->n_choices; i++) {
		buf_done(&c->choices[i].text);
		VEC_FREE(&c->choices[i].tok);
	}
	free(c->choices);
	sim_chunk_close(&c->answer);
	sim_spec_done(&c->spec);
	json_free(c->doc);
	free(c);
}

static void answer_whole(struct sim_call *c)
{
	struct sim_choice_text *t = must_calloc(c->n_choices, sizeof(*t));
	for (uint32_t i = 0; i < c->n_choices; i++) {
		struct choice *k = &c->choices[i];
		t[i] = (struct sim_choice_text){ buf_str(&k->text), k->tok.p, k->tok.n, k->finish };
	}
	buf_clear(&c->x->out);
	enum err e = sim_chunk_whole(&c->x->out, &c->answer, t, c->n_choices, &c->usage);
	free(t);
	if (e == ERR_OK)
		sim_exch_json(c->x, 200, buf_str(&c->x->out));
	else
		sim_exch_json(c->x, 500,
			STR("{\"error\":{\"message\":\"the answer is too "
			    "large\",\"type\":\"InternalServerError\",\"param\":null,\"code\":500}}"));
}

static void answer_end(struct sim_call *c)
{
	if (c->spec.api == SIM_RESPONSES && c->spec.store)
		sim_worker_hold_response(c->x->w, c->answer.id);
	if (!c->spec.stream) {
		answer_whole(c);
		return;
	}
	buf_clear(&c->x->out);
	if (sim_chunk_end(&c->x->out, &c->answer, &c->usage, buf_str(&c->choices[0].text), c->choices[0].finish) == ERR_OK)
		sim_exch_events(c->x, buf_str(&c->x->out));
	sim_exch_end(c->x);
}

/* ---- tokens ------------------------------------------------------------------------------------------------------- */

static uint32_t next_token(void *arg, const struct sim_req *r, uint64_t seed, uint32_t i)
{
	const struct sim_rank *rank = arg;
	const struct choice *k = sim_req_user(r);
	return sim_token_make(rank->w->fleet->vocab, seed, i, i == 0 && k->call->spec.api != SIM_COMPLETION);
}

/* As vLLM counts: a stream reports the first result's hit, a whole answer that of the sequence that ended last. */
static void note_usage(struct sim_call *c, const struct sim_req *r, bool last)
{
	c->usage.new_tok++;
	if (c->spec.stream ? c->usage_known : !last)
		return;
	c->usage_known = true;
	c->usage.cached_tok = sim_req_cached_tok(r);
	c->usage.created_tok = sim_req_created_tok(r);
}

static void stream_token(struct choice *k, uint32_t nth, uint32_t tok, struct str text)
{
	struct sim_call *c = k->call;
	struct sim_piece p = { .choice = k->index,
		.nth = nth,
		.text = text,
		.tok = tok,
		.finish = k->finish,
		.last = k->finish && c->left == 1,
		.usage = c->usage };
	buf_clear(&c->x->out);
	if (sim_chunk_piece(&c->x->out, &c->answer, &p) == ERR_OK)
		sim_exch_events(c->x, buf_str(&c->x->out));
}

static void keep_token(struct choice *k, uint32_t tok, struct str text)
{
	if (buf_add(&k->text, text) != ERR_OK)
		return;
	if (k->call->spec.return_ids || k->call->spec.api == SIM_GENERATE)
		VEC_PUSH(&k->tok, tok);
}

static void on_token(void *arg, struct sim_req *r, uint32_t tok, bool last)
{
	const struct sim_rank *rank = arg;
	struct choice *k = sim_req_user(r);
	struct sim_call *c = k->call;
	char room[16];
	struct str text = sim_token_text(rank->w->fleet->vocab, tok, room);
	note_usage(c, r, last);
	if (last) {
		k->req = NULL;
		k->finish = c->spec.natural_end ? "stop" : "length";
	}
	if (!c->spec.stream || c->spec.api == SIM_RESPONSES)
		keep_token(k, tok, text);
	if (c->spec.stream)
		stream_token(k, sim_req_new_tok(r) - 1, tok, text);
	if (last && --c->left == 0)
		answer_end(c);
}

static void on_batch(void *arg, const struct sim_batch *b) { sim_rank_publish(arg, b); }

const struct sim_engine_ops sim_call_engine_ops = { .on_token = on_token, .on_batch = on_batch, .next_token = next_token };

/* ---- start -------------------------------------------------------------------------------------------------------- */

/* X-data-parallel-rank: a number names a rank, a word is ignored. */
static struct sim_rank *pick_rank(struct sim_exch *x, struct sim_fail *f)
{
	uint64_t n, ranks = x->w->fleet->o->ranks;
	struct str v = http_find(x->r->headers, STR("x-data-parallel-rank"));
	if (!v.p || !str_to_u64(str_trim(v), &n))
		return sim_worker_least_loaded(x->w);
	if (n < ranks)
		return &x->w->ranks[n];
	sim_fail_set(f, 400, "BadRequestError", "", "data_parallel_rank %llu is out of range [0, %llu).", (unsigned long long)n,
		(unsigned long long)ranks);
	return NULL;
}

/* Fit to stand between quotes as it is. */
static bool is_plain_id(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] <= ' ' || s.p[i] > '~' || s.p[i] == '"' || s.p[i] == '\\')
			return false;
	return s.n > 0 && s.n < 128;
}

/* The side channel's usual ports begin at 5600; nothing listens there. */
enum { SIDE_PORT = 5600 };

static void set_answer(struct sim_call *c, const struct sim_rank *rank)
{
	static const char *const prefix[] = { "chatcmpl-", "cmpl-", "resp_", "chatcmpl-", "generate-tokens-", "embd-", "score-", "score-" };
	struct sim_exch *x = c->x;
	struct str given = http_find(x->r->headers, STR("x-request-id"));
	const struct sim_options *o = x->w->fleet->o;
	if (is_plain_id(given))
		snprintf(c->id, sizeof(c->id), "%s%.*s", prefix[c->spec.api], STR_ARG(given));
	else
		snprintf(c->id, sizeof(c->id), "%s%016llx", prefix[c->spec.api], (unsigned long long)sim_worker_random(x->w));
	snprintf(c->engine_id, sizeof(c->engine_id), "sim-%u-%u", x->w->n, rank->n);
	c->answer = (struct sim_answer){ .api = c->spec.api,
		.id = str_of(c->id),
		.model = c->spec.model,
		.created_s = io_unix_us() / 1000000,
		.fingerprint = o->array_events ? "vllm-0.23.0-kvasirsim" : "vllm-0.32.0-kvasirsim",
		.include_usage = c->spec.include_usage,
		.continuous_usage = c->spec.continuous_usage,
		.return_ids = c->spec.return_ids,
		.engine_id = str_of(c->engine_id),
		.host = str_of(o->host),
		.side_port = SIDE_PORT + rank->n,
		.block_tok = sim_engine_block_tok(rank->engine),
		.call = &c->spec };
	c->usage.old = o->array_events;
	for (size_t i = 0; i < c->spec.prompts.n; i++)
		c->usage.prompt_tok += c->spec.prompts.p[i].tok.n;
}

static bool add_choice(struct sim_call *c, struct sim_rank *rank, const struct sim_prompt *p, uint32_t child)
{
	struct choice *k = &c->choices[c->n_choices];
	struct sim_ask a = { .tok = p->tok.p,
		.n_tok = p->tok.n,
		.max_new = c->spec.max_new,
		.id = c->spec.lora,
		.no_lookup = c->spec.no_lookup,
		.report_full = c->spec.report_full,
		.remote_prefill = c->spec.remote_prefill,
		.seed = child,
		.user = k };
	a.id.salt = c->spec.salt;
	a.id.session = c->spec.session;
	a.id.mm = p->mm.p;
	a.id.n_mm = p->mm.n;
	*k = (struct choice){ .call = c, .engine = rank->engine, .index = c->n_choices };
	buf_init(&k->text, MAX_CHOICE_TEXT);
	if (sim_engine_add(rank->engine, &a, sim_worker_now_us(c->x->w), &k->req) != ERR_OK)
		return false;
	c->n_choices++;
	c->left++;
	return true;
}

static bool add_choices(struct sim_call *c, struct sim_rank *rank, struct sim_fail *f)
{
	size_t n = c->spec.prompts.n * c->spec.n;
	if (n > MAX_CHOICES) {
		sim_fail_set(f, 400, "BadRequestError", "", "too many prompts");
		return false;
	}
	c->choices = must_calloc(n, sizeof(*c->choices));
	for (size_t i = 0; i < n; i++)
		if (!add_choice(c, rank, &c->spec.prompts.p[i / c->spec.n], (uint32_t)(i % c->spec.n))) {
			sim_fail_set(f, 400, "BadRequestError", "", "The prompt does not fit");
			return false;
		}
	return true;
}

static bool check_previous(const struct sim_call *c, struct sim_fail *f)
{
	struct str id = c->spec.previous;
	if (!id.n || sim_worker_holds_response(c->x->w, id))
		return true;
	sim_fail_set(f, 404, "invalid_request_error", "response_id", "Response with id '%.*s' not found.", (int)MIN(id.n, 100u), id.p);
	return false;
}

void sim_call_start(struct sim_exch *x, enum sim_api api, struct json_doc *doc)
{
	struct sim_fail f;
	struct sim_rank *rank = pick_rank(x, &f);
	struct sim_spec_call spec;
	if (!rank || !sim_spec_read(&x->w->serving, api, json_root(doc), &spec, &f)) {
		json_free(doc);
		sim_exch_fail(x, &f);
		return;
	}
	struct sim_call *c = x->call = must_calloc(1, sizeof(*c));
	c->x = x;
	c->doc = doc;
	c->spec = spec;
	if (!check_previous(c, &f) || !add_choices(c, rank, &f)) {
		sim_exch_fail(x, &f);
		return;
	}
	set_answer(c, rank);
	must(sim_chunk_open(&c->answer) == ERR_OK); /* names are bounded */
	x->w->counts.inference++;
	if (spec.stream)
		sim_exch_stream(x);
	sim_worker_pump(x->w);
}
