/* The body on its way to the client.
 *
 * Bytes pass as they came. An event stream is split only to look at it, and goes on in whole events: if the worker dies,
 * the client has no half event before the error event. One exception: when we asked for usage and the client did not, the
 * usage event is left out whole, and the finishing event before it (held until then) gets back what the asking moved.
 * A worker that was started with --enable-force-include-usage puts usage into every event, asked or not: there it is the
 * client's. */
#include "gate/gate_priv.h"

/* ---- to the client */

static void forward(struct gate_req *r, struct str s)
{
	if (!s.n)
		return;
	r->bytes_out += s.n;
	size_t queued = http_reply_write(r->hr, s);
	if (queued > r->gate->high_bytes && r->call && !r->paused) {
		r->paused = true;
		http_call_pause(r->call);
	}
}

void gate_stream_drain(struct gate_req *r)
{
	if (!r->paused)
		return;
	r->paused = false;
	r->progress = io_now(r->gate->loop);
	if (r->call)
		http_call_resume(r->call);
}

/* ---- looking */

static void note_token(struct gate_req *r)
{
	if (!r->began_tokens) {
		r->began_tokens = true;
		r->t_first = io_now(r->gate->loop);
		gate_tell(r, (struct brain_tell){ .kind = BRAIN_TELL_FIRST_TOKEN });
	}
	if (++r->untold_tok == GATE_TOKENS_PER_TELL)
		gate_tell_tokens(r);
}

void gate_note_id(struct gate_req *r, const char *id)
{
	if (!id[0] || r->remembered || r->path->dialect != API_RESPONSES || !r->worker)
		return;
	r->remembered = true;
	gate_remember(r->gate->shared, str_of(id), r->worker->id, r->worker->url);
}

void gate_note_usage(struct gate_req *r, const struct api_usage *u)
{
	if (!r->has_usage)
		r->usage = api_usage_none();
	r->has_usage = true;
	api_usage_merge(&r->usage, u);
	if (r->worker && u->cached_tok != API_TOK_UNKNOWN)
		r->worker->details_seen = true;
}

enum seen { PASS, HIDE, HOLD };

static enum seen note_chunk(struct gate_req *r, const struct api_chunk *c)
{
	if (c->has_usage)
		gate_note_usage(r, &c->usage);
	if (c->has_sequence)
		r->next_sequence = c->sequence + 1;
	gate_note_id(r, c->id);
	r->saw_done |= c->kind == API_CHUNK_DONE;
	if (c->kind == API_CHUNK_ERROR)
		r->error_status = MAX(r->error_status, c->error_status);
	if (c->kind == API_CHUNK_CONTENT)
		note_token(r);
	if (c->has_usage && c->kind != API_CHUNK_USAGE_ONLY)
		r->usage_added = false; /* nobody asked for it here: the worker tells everyone, the last event is the client's too */
	if (!r->usage_added)
		return PASS;
	return c->kind == API_CHUNK_USAGE_ONLY ? HIDE : c->finish ? HOLD : PASS;
}

static enum seen look(struct gate_req *r, const struct sse_event *ev, struct api_chunk *ret_c)
{
	*ret_c = (struct api_chunk){ .kind = API_CHUNK_OTHER };
	if (!ev->has_data)
		return PASS; /* a comment is no sign of life, see stall.c */
	r->saw_data = true;
	r->progress = io_now(r->gate->loop);
	if (api_shape_fits(r->shape, ev->data)) {
		note_token(r);
		return PASS;
	}
	api_chunk_read(r->path->dialect, ev->data, ret_c);
	api_shape_learn(r->shape, ret_c, ev->data);
	return note_chunk(r, ret_c);
}

/* ---- events */

static bool inside(struct str whole, struct str part) { return part.p >= whole.p && part.p + part.n <= whole.p + whole.n; }

static void flush_run(struct gate_req *r, struct str *run)
{
	forward(r, *run);
	*run = (struct str){ 0 };
}

/* Neighbouring events of one read go out in one write; an event that lies in the splitter's own memory goes at once,
 * because the next look moves it. */
static void pass(struct gate_req *r, struct str piece, struct str raw, struct str *run)
{
	if (inside(piece, raw) && run->n && run->p + run->n == raw.p) {
		run->n += raw.n;
		return;
	}
	flush_run(r, run);
	if (inside(piece, raw))
		*run = raw;
	else
		forward(r, raw);
}

void gate_relay_held(struct gate_req *r)
{
	if (r->state == GATE_RELAY && r->held.n)
		forward(r, buf_str(&r->held));
	buf_clear(&r->held);
}

/* The held event as the client would have seen it had nobody asked for usage. */
static enum err put_held(struct gate_req *r, struct buf *b, const char *fingerprint)
{
	struct str held = buf_str(&r->held);
	TRY(buf_add(b, str_sub(held, 0, r->held_at)));
	if (fingerprint[0] && r->held_at < held.n)
		TRY(api_fingerprint_put(b, fingerprint));
	return buf_add(b, str_skip(held, r->held_at));
}

static void hide(struct gate_req *r, const struct api_chunk *usage)
{
	struct buf *b = &r->gate->scratch;
	buf_clear(b);
	if (r->held.n && put_held(r, b, usage->fingerprint) == ERR_OK)
		forward(r, buf_str(b));
	buf_clear(&r->held);
	obs_add(r->gate->metrics, r->gate->m_hidden, 1);
}

static bool hold(struct gate_req *r, const struct sse_event *ev, const struct api_chunk *c)
{
	if (!api_fingerprint_at(c, ev->raw, ev->data, &r->held_at))
		r->held_at = SIZE_MAX;
	return buf_add(&r->held, ev->raw) == ERR_OK;
}

static void one_event(struct gate_req *r, struct str piece, const struct sse_event *ev, struct str *run)
{
	struct api_chunk c;
	enum seen seen = look(r, ev, &c);
	if (seen != PASS || r->held.n)
		flush_run(r, run);
	if (seen == HIDE) {
		hide(r, &c);
		return;
	}
	gate_relay_held(r);
	if (seen != HOLD || !hold(r, ev, &c))
		pass(r, piece, ev->raw, run);
}

static void relay_events(struct gate_req *r, struct str piece)
{
	struct sse_event ev;
	struct str run = { 0 }, held, unread;
	enum err e;
	sse_feed(&r->sse, piece);
	while ((e = sse_next(&r->sse, &ev)) == ERR_OK)
		one_event(r, piece, &ev, &run);
	flush_run(r, &run);
	if (e != ERR_LIMIT)
		return;
	gate_relay_held(r);
	sse_take_rest(&r->sse, &held, &unread);
	r->raw = true;
	forward(r, held);
	forward(r, unread);
}

/* ---- the verbs of stream.c */

void gate_relay_init(struct gate_req *r)
{
	r->shape = arena_new(&r->arena, struct api_shape, 1);
	sse_init(&r->sse, GATE_EVENT_MAX_BYTES);
	buf_init(&r->held, GATE_EVENT_MAX_BYTES);
}

void gate_relay(struct gate_req *r, struct str piece)
{
	if (r->streaming && !r->raw) {
		relay_events(r, piece);
		return;
	}
	r->progress = io_now(r->gate->loop);
	r->saw_data = true;
	if (r->reading_whole)
		api_whole_feed(&r->whole, piece);
	forward(r, piece);
}

/* The body ended: what is left of it, a last event without its blank line included. */
void gate_relay_end(struct gate_req *r)
{
	struct sse_event ev;
	struct str run = { 0 };
	if (!r->streaming || r->raw)
		return;
	if (sse_end(&r->sse, &ev))
		one_event(r, (struct str){ 0 }, &ev, &run);
	gate_relay_held(r);
}
