/* Answers of our own: whole replies, and errors in the shape that the client's SDK expects at whatever point it stands. */
#include <string.h>

#include "base/utf8.h"
#include "gate/gate_priv.h"

void gate_reply(struct gate_req *r, int status, struct http_headers extra, struct str body)
{
	struct http_headers h = gate_headers_own(r, extra);
	r->status = status;
	r->bytes_out += str_eq(r->hr->method, STR("HEAD")) ? 0 : body.n;
	gate_enter(r, GATE_REPLIED);
	http_reply(r->hr, status, h, STR("application/json"), body);
}

static struct api_error error_of(struct gate_req *r, enum err why, const char *message, const char *param)
{
	const char *id = r->client_id.n ? r->client_id.p : r->id;
	return (struct api_error){ .why = why, .message = message, .param = param, .request_id = id };
}

/* At most this much of what a client sent stands in an answer: cut between characters, control and broken bytes as '?'. */
enum { SHOWN_MAX_BYTES = 200 };

static const char *shown(struct gate_req *r, struct str s)
{
	char *out = arena_new(&r->arena, char, SHOWN_MAX_BYTES + sizeof("..."));
	size_t n = 0;
	while (s.n > 0) {
		uint32_t cp;
		size_t used = utf8_next(s, &cp);
		bool good = used > 1 || (used == 1 && cp >= ' ' && cp != 0x7f);
		if (n + MAX(used, (size_t)1) > SHOWN_MAX_BYTES) {
			memcpy(out + n, "...", 3);
			break;
		}
		if (good)
			memcpy(out + n, s.p, used);
		else
			out[n] = '?';
		n += good ? used : 1;
		s = str_skip(s, MAX(used, (size_t)1));
	}
	return out;
}

/* The words where nobody chose others: what is not known here is named. */
static const char *words_of(struct gate_req *r, enum err why)
{
	if (why == ERR_UNKNOWN_MODEL && r->model_name.n)
		return arena_printf(&r->arena, "no pool serves the model '%s'", shown(r, r->model_name));
	if (why == ERR_UNKNOWN_PATH && r->hr)
		return arena_printf(&r->arena, "the path %s is not served", shown(r, r->hr->path));
	return NULL;
}

/* Refusals that pass by themselves say when to come back; 405 says what would do. */
static struct http_headers error_headers(struct gate_req *r, enum err why, int status)
{
	struct http_header *h = arena_new(&r->arena, struct http_header, 3);
	size_t n = 0;
	h[n++] = (struct http_header){ STR("x-kvasir-reason"), str_of(err_label(why)) };
	if (status == 429 || status == 503)
		h[n++] = (struct http_header){ STR("retry-after"), STR("1") };
	const char *allow = why == ERR_METHOD ? api_path_allow(r->hr->target) : NULL;
	if (allow)
		h[n++] = (struct http_header){ STR("allow"), str_of(allow) };
	return (struct http_headers){ h, n };
}

/* In the gate's scratch. */
static struct str error_body(struct gate_req *r, const struct api_error *e)
{
	struct buf *b = &r->gate->scratch;
	buf_clear(b);
	return api_error_put(b, r->path ? r->path->dialect : API_DEFAULT, e) == ERR_OK ? buf_str(b) : STR("{}");
}

static void reply_error(struct gate_req *r, const struct api_error *e)
{
	int status = api_error_status(e);
	struct str body = error_body(r, e);
	if (e->why == ERR_DRAINING)
		http_reply_close(r->hr);
	gate_reply(r, status, error_headers(r, e->why, status), body);
}

/* The status went out long ago: an event stream ends with an error event and a broken connection, anything else only
 * with the broken connection. Never [DONE], never the last chunk. */
static void cut_reply(struct gate_req *r, const struct api_error *e)
{
	struct buf *b = &r->gate->scratch;
	buf_clear(b);
	if (r->streaming && !r->raw && !r->saw_done && api_error_put_event(b, r->path->dialect, e, r->next_sequence) == ERR_OK) {
		http_reply_write(r->hr, buf_str(b));
		r->bytes_out += buf_str(b).n;
	}
	gate_enter(r, GATE_REPLIED);
	http_reply_cut(r->hr);
}

static void explain_error(struct gate_req *r, const struct api_error *e)
{
	struct gate_explained x = { .e = e->why, .message = e->message, .param = e->param, .model = r->model_name, .view = r->view };
	gate_explain_fn *fn = r->explain;
	r->explain = NULL;
	gate_enter(r, GATE_OVER);
	fn(r->explain_arg, &x);
	gate_req_maybe_free(r);
}

static void count_refused(struct gate_req *r, enum err why)
{
	struct obs_set *m = r->gate->metrics;
	r->fault = err_label(why);
	obs_add(m, obs_find(m, GATE_M_REFUSED, (struct str[]){ str_of(r->fault) }), 1);
	if (r->outcome == GATE_OUT_DONE)
		r->outcome = why == ERR_DRAINING ? GATE_OUT_DRAINED : GATE_OUT_REFUSED;
}

void gate_call_drop(struct gate_req *r)
{
	if (!r->call)
		return;
	http_call_abort(r->call);
	r->call = NULL;
}

void gate_fail(struct gate_req *r, enum err why, const char *message, const char *param)
{
	struct api_error e = error_of(r, why, message ? message : words_of(r, why), param);
	if (r->state == GATE_REPLIED || r->state == GATE_OVER)
		return;
	gate_ids_leave(r);
	gate_call_drop(r);
	count_refused(r, why);
	gate_settle_worker(r, BRAIN_NOT_SENT, 0);
	if (r->explain)
		explain_error(r, &e);
	else if (r->state == GATE_RELAY)
		cut_reply(r, &e);
	else
		reply_error(r, &e);
}

void gate_refuse(struct gate_req *r, const struct http_refusal *x)
{
	struct api_error e = error_of(r, x->why, NULL, NULL);
	e.status = r->status = x->status;
	gate_enter(r, GATE_REPLIED);
	count_refused(r, x->why);
	struct str body = error_body(r, &e);
	r->bytes_out += body.n;
	http_refuse(x, gate_headers_own(r, error_headers(r, x->why, x->status)), body);
}
