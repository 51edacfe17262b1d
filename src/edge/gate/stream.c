/* Stage 6: the worker's answer: its head, its body (relay.c), its end or failure. */
#include <string.h>

#include "gate/gate_priv.h"

/* ---- the worker's answer */

static void on_sent(void *arg)
{
	struct gate_req *r = arg;
	r->t_sent = io_now(r->gate->loop);
	r->progress = r->t_sent;
	gate_tell(r, (struct brain_tell){ .kind = BRAIN_TELL_SENT });
}

static int64_t length_of(struct gate_req *r, struct http_headers h)
{
	uint64_t n;
	struct str told = http_find(h, STR("content-length"));
	bool known = told.p && str_to_u64(str_trim(told), &n) && n <= INT64_MAX;
	r->close_delimited = !known && !http_has_token(h, STR("transfer-encoding"), STR("chunked"));
	if (known)
		return (int64_t)n;
	return r->worker_status == 204 || r->worker_status == 304 ? 0 : -1;
}

/* Our own key was refused: the client can do nothing about it and must not see whose key it is. */
static bool refused_our_key(const struct gate_req *r, int status)
{
	const struct feed_view_worker *w = feed_view_worker(r->view, r->worker->id);
	return status == 401 && w && w->authorization.n;
}

/* What kind of body comes, and whether we can look into it: a worker that encodes it although we asked for identity
 * sends bytes that only the client can read. */
static void begin_body(struct gate_req *r, struct http_headers h)
{
	struct str type = http_find(h, STR("content-type")), coding = http_find(h, STR("content-encoding"));
	r->raw = coding.n && !str_ieq(coding, STR("identity"));
	r->streaming = str_istarts(type, STR("text/event-stream"));
	r->reading_whole = !r->raw && str_istarts(type, STR("application/json"));
	if (r->streaming)
		gate_relay_init(r);
	if (r->reading_whole)
		api_whole_init(&r->whole);
}

static void on_head(void *arg, int status, struct http_headers h)
{
	struct gate_req *r = arg;
	r->t_head = io_now(r->gate->loop);
	r->progress = r->t_head;
	r->worker_status = status;
	gate_body_free(r);
	if (refused_our_key(r, status)) {
		r->outcome = GATE_OUT_WORKER_ERROR;
		gate_call_drop(r);
		gate_settle_worker(r, BRAIN_WORKER_ERROR, status);
		gate_fail(r, ERR_UPSTREAM_AUTH, NULL, NULL);
		return;
	}
	begin_body(r, h);
	r->status = status;
	int64_t length = length_of(r, h);
	http_reply_begin(r->hr, status, gate_headers_down(r, h), r->streaming ? -1 : length);
	gate_enter(r, GATE_RELAY);
}

static void on_body(void *arg, struct str piece) { gate_relay(arg, piece); }

static void read_whole(struct gate_req *r)
{
	struct api_result res;
	if (!r->reading_whole)
		return;
	api_whole_read(&r->whole, r->path->dialect, &res);
	r->error_status = res.error_status;
	if (res.has_usage)
		gate_note_usage(r, &res.usage);
	if (r->worker_status < 300)
		gate_note_id(r, res.id);
}

/* Did the stream end without saying so? The last chunk alone proves nothing: a proxy in between may have added it. */
static bool ended_early(const struct gate_req *r)
{
	if (!r->streaming || r->raw || r->saw_done || r->error_status || r->worker_status != 200)
		return false;
	return r->facts.form != API_PROMPT_NONE || r->close_delimited;
}

static uint32_t known(uint32_t tok) { return tok == API_TOK_UNKNOWN ? 0 : tok; }

static void tell_usage(struct gate_req *r)
{
	if (!r->has_usage)
		return;
	gate_local_usage(r);
	gate_tell_tokens(r); /* the usage counts them too: first */
	uint32_t cached = r->usage.cached_tok;
	if (cached == API_TOK_UNKNOWN && r->usage.details_null && r->worker && r->worker->details_seen)
		cached = 0;
	bool several = (r->ids && r->ids->n > 1) || r->facts.n > 1; /* what is reported then is not one prompt's hit */
	struct gate *g = r->gate;
	obs_add(g->metrics, g->m_prompt, known(r->usage.prompt_tok));
	obs_add(g->metrics, g->m_cached, known(cached));
	obs_add(g->metrics, g->m_output, known(r->usage.output_tok));
	gate_tell(r, (struct brain_tell){ .kind = BRAIN_TELL_USAGE,
			     .prompt_tok = known(r->usage.prompt_tok),
			     .output_tok = known(r->usage.output_tok),
			     .cached_tok = several ? API_TOK_UNKNOWN : cached });
}

static void on_end(void *arg)
{
	struct gate_req *r = arg;
	gate_relay_end(r);
	r->call = NULL;
	read_whole(r);
	if (ended_early(r)) {
		gate_stream_break(r, ERR_UPSTREAM_MIDSTREAM);
		return;
	}
	int status = r->worker_status < 400 && r->error_status ? r->error_status : r->worker_status;
	bool bad = status >= 500;
	r->outcome = bad ? GATE_OUT_WORKER_ERROR : GATE_OUT_DONE;
	tell_usage(r);
	gate_settle_worker(r, bad ? BRAIN_WORKER_ERROR : BRAIN_DONE, status);
	gate_enter(r, GATE_REPLIED);
	http_reply_end(r->hr);
}

/* ---- the worker's failure */

static enum brain_outcome outcome_of(enum err why, enum gate_outcome *ret_own)
{
	switch ((int)why) {
	case ERR_CONNECT: *ret_own = GATE_OUT_CONNECT_FAILED; return BRAIN_CONNECT_FAILED;
	case ERR_TIMEOUT_FIRST_BYTE:
	case ERR_TIMEOUT_STALL: *ret_own = GATE_OUT_TIMED_OUT; return BRAIN_TIMED_OUT;
	case ERR_UPSTREAM_PROTOCOL: *ret_own = GATE_OUT_WORKER_ERROR; return BRAIN_WORKER_ERROR;
	default: *ret_own = GATE_OUT_WORKER_DIED; return BRAIN_WORKER_DIED;
	}
}

void gate_stream_break(struct gate_req *r, enum err why)
{
	enum brain_outcome o = outcome_of(why, &r->outcome);
	gate_call_drop(r);
	gate_relay_held(r);
	tell_usage(r);
	gate_settle_worker(r, o, r->worker_status);
	gate_fail(r, why, NULL, NULL);
}

static void on_fail(void *arg, enum err why)
{
	struct gate_req *r = arg;
	r->call = NULL;
	if (why == ERR_CONNECT && r->state == GATE_SENT) {
		gate_leg_failed(r);
		gate_legs(r);
		return;
	}
	gate_stream_break(r, why);
}

const struct http_call_ops gate_call_ops = {
	.on_sent = on_sent,
	.on_head = on_head,
	.on_body = on_body,
	.on_end = on_end,
	.on_fail = on_fail,
};
