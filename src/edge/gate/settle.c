/* Stage 7: the end, once. The worker's side ends with the END tell (the ledger is released the moment the worker is free,
 * not when a slow client has read everything); the client's side ends with the log line and the counters. */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "gate/gate_priv.h"
#include "obs/record.h"

enum { LOG_WRITE_BYTES = 48 << 10 };

const char *const gate_outcome_words[GATE_OUTCOME_COUNT] = {
#define X(id, word) [GATE_OUT_##id] = word,
	GATE_OUTCOMES(X)
#undef X
};

static const char *const brain_outcome_words[] = {
	[BRAIN_DONE] = "done",
	[BRAIN_CLIENT_LEFT] = "client_left",
	[BRAIN_WORKER_ERROR] = "worker_error",
	[BRAIN_WORKER_DIED] = "worker_died",
	[BRAIN_CONNECT_FAILED] = "connect_failed",
	[BRAIN_TIMED_OUT] = "timed_out",
	[BRAIN_NOT_SENT] = "not_sent",
};

void gate_tell(struct gate_req *r, struct brain_tell t)
{
	if (!r->has_plan || r->ended || !r->plan.ticket)
		return;
	t.ticket = r->plan.ticket;
	gate_link_tell(r->gate->link, &t);
}

void gate_tell_tokens(struct gate_req *r)
{
	if (r->untold_tok)
		gate_tell(r, (struct brain_tell){ .kind = BRAIN_TELL_TOKENS, .output_tok = r->untold_tok });
	r->untold_tok = 0;
}

static void count_worker(struct gate_req *r, enum brain_outcome o)
{
	struct obs_set *m = r->gate->metrics;
	struct str url = r->worker_url.n ? r->worker_url : STR("none");
	obs_add(m, obs_find(m, GATE_M_UPSTREAM, (struct str[]){ url, str_of(brain_outcome_words[o]) }), 1);
	obs_add(m, obs_find(m, GATE_M_ROUTED, (struct str[]){ url, str_of(r->plan.reason) }), 1);
}

void gate_settle_worker(struct gate_req *r, enum brain_outcome o, int status)
{
	if (!r->has_plan || r->ended || !r->plan.ticket)
		return;
	gate_tell_tokens(r);
	gate_tell(r, (struct brain_tell){ .kind = BRAIN_TELL_END, .outcome = o, .status = status });
	r->ended = true;
	count_worker(r, o);
	list_del(&r->on_worker);
	r->worker = NULL;
}

/* ---- the client's side */

static int64_t since(struct mono from, struct mono to) { return from.us && to.us ? mono_diff_us(to, from) : -1; }

static void put_plan(struct obs_record *o, struct gate_req *r)
{
	const struct brain_leg *l = &r->plan.legs[MIN(r->leg, r->plan.n_legs - 1)];
	obs_record_str(o, "worker", r->worker_url);
	obs_record_str(o, "reason", str_of(r->plan.reason));
	obs_record_str(o, "ids", r->ids_why ? str_of(r->ids_why) : STR("keys"));
	obs_record_u64(o, "overlap_tok", l->hit_tok);
	obs_record_us(o, "ttft_predicted_ms", l->ttft_us);
	obs_record_u64(o, "switches", r->leg);
}

static void put_tok(struct obs_record *o, const char *key, uint32_t tok)
{
	if (tok == API_TOK_UNKNOWN)
		obs_record_str(o, key, (struct str){ 0 });
	else
		obs_record_u64(o, key, tok);
}

static void put_usage(struct obs_record *o, struct gate_req *r)
{
	struct api_usage u = r->has_usage ? r->usage : api_usage_none();
	put_tok(o, "prompt_tok", u.prompt_tok == API_TOK_UNKNOWN ? r->keys.n_tok : u.prompt_tok);
	put_tok(o, "cached_tok", u.cached_tok);
	put_tok(o, "output_tok", u.output_tok);
}

static void put_times(struct obs_record *o, struct gate_req *r, struct mono now)
{
	obs_record_us(o, "ttft_ms", since(r->t_body, r->t_first));
	obs_record_us(o, "head_ms", since(r->t_body, r->t_head));
	obs_record_us(o, "sent_ms", since(r->t_body, r->t_sent));
	obs_record_us(o, "duration_ms", since(r->t_start, now));
	obs_record_u64(o, "bytes_in", r->bytes_in);
	obs_record_u64(o, "bytes_out", r->bytes_out);
}

/* A path of ours by its label, as in the metrics; another as it came, without its query. */
static struct str shown_path(const struct gate_req *r)
{
	if (r->path)
		return str_of(r->path->label);
	return r->hr ? r->hr->path : (struct str){ 0 };
}

static void log_line_of(struct gate_req *r, struct mono now)
{
	struct gate *g = r->gate;
	struct obs_record o;
	char at[LOG_TIME_BYTES];
	obs_record_begin(&o, &g->log);
	obs_record_str(&o, "ts", log_time(io_unix_us(), at));
	obs_record_str(&o, "level", STR("info"));
	obs_record_str(&o, "event", STR("access"));
	obs_record_str(&o, "id", str_of(r->id));
	obs_record_str(&o, "client_id", r->client_id);
	obs_record_str(&o, "path", shown_path(r));
	obs_record_str(&o, "model", r->model_name);
	obs_record_i64(&o, "status", r->status);
	obs_record_str(&o, "outcome", str_of(gate_outcome_words[r->outcome]));
	obs_record_str(&o, "fault", str_of(r->fault));
	obs_record_u64(&o, "stream", r->streaming);
	if (r->has_plan) {
		put_plan(&o, r);
		put_usage(&o, r);
	}
	put_times(&o, r, now);
	obs_record_end(&o);
	if (g->log.n > LOG_WRITE_BYTES)
		gate_log_flush(g);
}

/* Lines of a tenth of a second go out in one write. */
void gate_log_flush(struct gate *g)
{
	if (!g->log.n)
		return;
	log_write(buf_str(&g->log));
	buf_clear(&g->log);
}

static void count_client(struct gate_req *r, struct mono now)
{
	struct obs_set *m = r->gate->metrics;
	struct str path = str_of(r->path ? r->path->label : "other");
	char code[4] = { (char)('0' + r->status / 100 % 10), (char)('0' + r->status / 10 % 10), (char)('0' + r->status % 10), '\0' };
	obs_add(m, obs_find(m, GATE_M_REQUESTS, (struct str[]){ path, str_of(code), str_of(gate_outcome_words[r->outcome]) }), 1);
	if (r->outcome != GATE_OUT_DONE)
		return;
	struct mono first = r->t_first.us ? r->t_first : now;
	obs_observe(m, obs_find(m, GATE_M_DURATION, &path), mono_diff_us(now, r->t_start));
	if (r->t_body.us)
		obs_observe(m, obs_find(m, GATE_M_TTFT, &path), mono_diff_us(first, r->t_body));
	if (r->t_body.us && r->t_sent.us && !r->t_ids.us)
		obs_observe(m, obs_find(m, GATE_M_OWN, &path), mono_diff_us(r->t_sent, r->t_body));
}

void gate_settle_client(struct gate_req *r)
{
	struct mono now = io_now(r->gate->loop);
	if (r->streaming) {
		sse_done(&r->sse);
		buf_done(&r->held);
	}
	if (r->reading_whole)
		api_whole_done(&r->whole);
	count_client(r, now);
	if (r->gate->opts.access_log)
		log_line_of(r, now);
}
