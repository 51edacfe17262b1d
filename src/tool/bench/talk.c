/* talk.c: a session's turns over HTTP. The history is kept as the JSON text of its messages, so a turn adds only what is
 * new; the answer's words go into the history as the worker said them, so a next turn can hit them in its cache. */
#include "bench/talk.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "wire/json.h"
#include "wire/sse.h"

enum { BODY_MAX = 64 << 20, ANSWER_MAX = 16 << 20, TRACE_BLOCK_TOK = 512 };

struct talk {
	struct list node;
	struct bench_talk_shared *sh;
	const struct bench_session *s;
	struct buf history, body, words, reply;
	struct str body_piece;
	struct sse sse;
	bool sse_open, streaming, error_seen, done_seen, finish_seen;
	uint32_t turn;
	size_t sample;
	struct io_timer *think;
	struct http_call *call;
	double intended_s;
};

static double sim_now(const struct talk *t) { return (double)mono_diff_us(io_clock(), t->sh->began) * t->sh->o->time_scale / 1e6; }

static struct bench_sample *sample(struct talk *t) { return &t->sh->samples->p[t->sample]; }

static void must_ok(enum err e) { must(e == ERR_OK); }   /* our own buffers: their limits are far above any workload */

static void talk_free(struct talk *t)
{
	struct bench_talk_shared *sh = t->sh;
	list_del(&t->node);
	io_timer_free(t->think);
	buf_done(&t->history);
	buf_done(&t->body);
	buf_done(&t->words);
	buf_done(&t->reply);
	if (t->sse_open)
		sse_done(&t->sse);
	free(t);
	sh->on_end(sh->arg);
}

/* ---- what is said */

static void add_message(struct talk *t, struct str role, struct str text)
{
	must_ok(buf_add(&t->history, t->history.n ? STR(",{\"role\":") : STR("{\"role\":")));
	must_ok(json_quote(&t->history, role));
	must_ok(buf_add(&t->history, STR(",\"content\":")));
	must_ok(json_quote(&t->history, text));
	must_ok(buf_add_byte(&t->history, '}'));
}

/* Shared texts are the same under every seed, so that one run can find what another left in the caches. */
static const uint64_t shared_seed = 1;

static void words_of(struct talk *t, uint64_t seed, uint64_t id, uint32_t n)
{
	buf_clear(&t->words);
	must_ok(bench_words(&t->words, seed, id, 0, n));
}

static void trace_words(struct talk *t)
{
	uint32_t left = t->s->turns[0].question_tok;
	buf_clear(&t->words);
	for (uint32_t i = 0; i < t->s->n_blocks && left; i++) {
		uint32_t n = MIN(left, (uint32_t)TRACE_BLOCK_TOK);
		must_ok(bench_words(&t->words, shared_seed, 5000000 + t->s->blocks[i], 0, n));
		left -= n;
	}
	if (left)
		must_ok(bench_words(&t->words, t->sh->o->seed, t->s->id, 0, left));
}

static void ask_next(struct talk *t)
{
	if (t->s->blocks) {
		trace_words(t);
	} else {
		if (t->turn == 0 && t->s->prefix_tok) {
			words_of(t, shared_seed, t->s->prefix_id, t->s->prefix_tok);
			add_message(t, STR("system"), buf_str(&t->words));
		}
		words_of(t, t->sh->o->seed, (t->s->id << 8) + t->turn, t->s->turns[t->turn].question_tok);
	}
	add_message(t, STR("user"), buf_str(&t->words));
}

static void build_body(struct talk *t)
{
	const struct bench_load_opts *o = t->sh->o;
	struct json_writer w = json_writer(&t->body);
	buf_clear(&t->body);
	json_put_open(&w, '{');
	if (o->model.n) {
		json_put_key(&w, STR("model"));
		json_put_str(&w, o->model);
	}
	if (o->completions) {
		json_put_key(&w, STR("prompt"));
		json_put_str(&w, buf_str(&t->words));
	} else {
		json_put_key(&w, STR("messages"));
		json_put_open(&w, '[');
		json_put_raw(&w, buf_str(&t->history));
		json_put_close(&w, ']');
	}
	json_put_key(&w, STR("max_tokens"));
	json_put_u64(&w, t->s->turns[t->turn].output_tok);
	json_put_key(&w, STR("ignore_eos"));
	json_put_bool(&w, true);
	json_put_key(&w, STR("temperature"));
	json_put_u64(&w, 0);
	if (o->stream) {
		json_put_key(&w, STR("stream"));
		json_put_bool(&w, true);
		json_put_key(&w, STR("stream_options"));
		json_put_raw(&w, STR("{\"include_usage\":true}"));
	}
	json_put_close(&w, '}');
	must_ok(json_writer_done(&w));
}

/* ---- what comes back */

static void turn_over(struct talk *t, bool ok);

static void read_usage(struct talk *t, const struct json_val *usage)
{
	uint64_t v;
	struct bench_sample *s = sample(t);
	if (json_u64(json_get(usage, STR("prompt_tokens")), &v))
		s->prompt_tok = (uint32_t)v;
	if (json_u64(json_get(usage, STR("completion_tokens")), &v))
		s->output_tok = (uint32_t)v;
	if (json_u64(json_get(json_get(usage, STR("prompt_tokens_details")), STR("cached_tokens")), &v))
		s->cached_tok = (uint32_t)v;
}

static void read_choice(struct talk *t, const struct json_val *choice)
{
	struct str text = { 0 };
	const struct json_val *delta = json_get(choice, STR("delta"));
	if (!delta)
		delta = json_get(choice, STR("message"));
	bool chat = json_str(json_get(delta, STR("content")), &text);
	if (!chat && !json_str(json_get(choice, STR("text")), &text))
		text = (struct str){ 0 };
	if (text.n && sample(t)->ttft_s == 0)
		sample(t)->ttft_s = sim_now(t) - t->intended_s;
	struct str why;
	t->finish_seen |= json_str(json_get(choice, STR("finish_reason")), &why);
	if (t->turn + 1 < t->s->n_turns)
		must_ok(buf_add(&t->reply, text));
}

static void read_json(struct talk *t, struct str text)
{
	struct json_doc *d;
	if (json_parse(text, ANSWER_MAX, &d) != ERR_OK) {
		t->error_seen = true;
		return;
	}
	const struct json_val *root = json_root(d), *usage = json_get(root, STR("usage"));
	t->error_seen |= json_is(json_get(root, STR("error")), JSON_OBJECT);
	for (struct json_iter it = json_each(json_get(root, STR("choices"))); json_next(&it);)
		read_choice(t, it.val);
	if (json_is(usage, JSON_OBJECT))
		read_usage(t, usage);
	json_free(d);
}

static void on_event(struct talk *t, const struct sse_event *ev)
{
	if (!ev->has_data)
		return;
	if (str_eq(ev->data, STR("[DONE]"))) {
		t->done_seen = true;
		return;
	}
	sample(t)->chunks++;
	bool plain = sample(t)->ttft_s > 0 && t->turn + 1 == t->s->n_turns && str_find(ev->data, STR("\"usage\":{")) == SIZE_MAX &&
	             str_find(ev->data, STR("\"error\"")) == SIZE_MAX && str_find(ev->data, STR("\"finish_reason\":\"")) == SIZE_MAX;
	if (!plain)
		read_json(t, ev->data);
}

static uint32_t worker_index(struct talk *t, struct str name)
{
	uint64_t i, key = hash_str(name, 1);
	if (name.n == 0)
		return UINT32_MAX;
	if (!map_get(&t->sh->workers, key, &i)) {
		i = t->sh->workers.n;
		map_put(&t->sh->workers, key, i);
	}
	return (uint32_t)i;
}

static void on_head(void *arg, int status, struct http_headers h)
{
	struct talk *t = arg;
	sample(t)->status = status;
	sample(t)->worker = worker_index(t, http_find(h, STR("x-kvasir-worker")));
	t->streaming = str_istarts(http_find(h, STR("content-type")), STR("text/event-stream"));
}

static void on_body(void *arg, struct str piece)
{
	struct talk *t = arg;
	struct sse_event ev;
	if (!t->streaming) {
		must_ok(buf_add(&t->words, piece));
		return;
	}
	sse_feed(&t->sse, piece);
	while (sse_next(&t->sse, &ev) == ERR_OK)
		on_event(t, &ev);
}

static void on_end(void *arg)
{
	struct talk *t = arg;
	t->call = NULL;
	if (!t->streaming) {
		read_json(t, buf_str(&t->words));
		turn_over(t, sample(t)->status == 200 && !t->error_seen);
		return;
	}
	turn_over(t, sample(t)->status == 200 && t->done_seen && t->finish_seen && !t->error_seen);
}

static void on_fail(void *arg, enum err why)
{
	struct talk *t = arg;
	(void)why;
	t->call = NULL;
	turn_over(t, false);
}

/* ---- turns */

static const struct http_call_ops call_ops = { .on_head = on_head, .on_body = on_body, .on_end = on_end, .on_fail = on_fail };

static void send_turn(void *arg)
{
	struct talk *t = arg;
	const struct bench_load_opts *o = t->sh->o;
	ask_next(t);
	build_body(t);
	buf_clear(&t->words);
	t->sample = t->sh->samples->n;
	VEC_PUSH(t->sh->samples, (struct bench_sample){ .intended_s = t->intended_s, .turn = t->turn, .worker = UINT32_MAX });
	sample(t)->lag_s = MAX(0.0, sim_now(t) - t->intended_s);
	if (t->sse_open)
		sse_done(&t->sse);
	sse_init(&t->sse, ANSWER_MAX);
	t->sse_open = true;
	t->error_seen = t->done_seen = t->finish_seen = t->streaming = false;
	char auth[512], path[600];
	struct http_header h[2] = { { STR("Content-Type"), STR("application/json") } };
	size_t n_h = 1;
	if (o->api_key.n && o->api_key.n < 400) {
		int n = snprintf(auth, sizeof(auth), "Bearer %.*s", STR_ARG(o->api_key));
		h[n_h++] = (struct http_header){ STR("Authorization"), { auth, (size_t)n } };
	}
	int n = snprintf(path, sizeof(path), "%.*s%s", (int)MIN(t->sh->prefix.n, 500u), t->sh->prefix.p ? t->sh->prefix.p : "", o->completions ? "/v1/completions" : "/v1/chat/completions");
	t->body_piece = buf_str(&t->body);
	struct http_call_opts c = { .addr = t->sh->addr, .method = STR("POST"), .target = { path, (size_t)n }, .host = t->sh->host, .headers = { h, n_h },
	                            .body = &t->body_piece, .n_body = 1 };
	t->sh->on_turn(t->sh->arg, true, true);
	t->call = http_call_start(t->sh->pool, &c, &call_ops, t);
}

static void turn_over(struct talk *t, bool ok)
{
	struct bench_sample *s = sample(t);
	s->e2e_s = sim_now(t) - t->intended_s;
	s->ok = ok;
	if (s->ttft_s == 0)
		s->ttft_s = s->e2e_s;
	t->sh->on_turn(t->sh->arg, false, ok);
	double think_s = t->s->turns[t->turn++].think_s;
	t->intended_s = sim_now(t) + think_s;
	if (!ok || t->turn >= t->s->n_turns || t->intended_s > t->sh->o->duration_s) {
		talk_free(t);
		return;
	}
	add_message(t, STR("assistant"), buf_str(&t->reply));
	buf_clear(&t->reply);
	io_timer_after(t->think, (int64_t)(think_s * 1e6 / t->sh->o->time_scale));
}

void bench_talk_start(struct bench_talk_shared *sh, const struct bench_session *s, double at_s, struct list *talks)
{
	struct talk *t = must_calloc(1, sizeof(*t));
	t->sh = sh;
	t->s = s;
	t->intended_s = at_s;
	buf_init(&t->history, BODY_MAX);
	buf_init(&t->body, BODY_MAX);
	buf_init(&t->words, BODY_MAX);
	buf_init(&t->reply, BODY_MAX);
	t->think = io_timer_new(sh->loop, send_turn, t);
	list_add_tail(talks, &t->node);
	send_turn(t);
}

void bench_talk_abort(struct list *node)
{
	struct talk *t = container_of(node, struct talk, node);
	if (t->call) {
		http_call_abort(t->call);
		t->call = NULL;
		turn_over(t, false);
		return;
	}
	talk_free(t);
}
