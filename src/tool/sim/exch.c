#include "sim/exch.h"

#include <stdio.h>

#include "sim/call.h"

enum { MAX_BODY = 256 << 20 };

static const struct http_header server_name = { STR_INIT("server"), STR_INIT("uvicorn") };

struct sim_exch *sim_exch_new(struct sim_worker *w, struct http_req *r, const struct sim_route *route)
{
	struct sim_exch *x = must_calloc(1, sizeof(*x));
	x->w = w;
	x->r = r;
	x->route = route;
	buf_init(&x->body, MAX_BODY);
	buf_init(&x->out, MAX_BODY);
	w->open_calls++;
	return x;
}

void sim_exch_free(struct sim_exch *x)
{
	if (!x)
		return;
	x->w->open_calls--;
	sim_call_free(x->call);
	io_timer_free(x->wait_timer);
	buf_done(&x->body);
	buf_done(&x->out);
	free(x);
}

static bool has(const struct sim_exch *x, enum sim_fault_kind k) { return x->faulty && x->fault.kind == k; }

/* The engine stops working for an answer nobody will get; a hanging worker goes on. */
static void cut(struct sim_exch *x)
{
	x->silent = true;
	http_reply_cut(x->r);
	sim_call_abort(x->call);
}

/* Sends as much as the fault lets through. */
static void send_piece(struct sim_exch *x, struct str piece)
{
	if (x->silent)
		return;
	bool limited = has(x, SIM_FAULT_CUT) || (has(x, SIM_FAULT_HANG_AFTER) && x->fault.value >= 0);
	uint64_t room = limited ? (uint64_t)x->fault.value - MIN((uint64_t)x->fault.value, x->sent_bytes) : UINT64_MAX;
	struct str part = str_sub(piece, 0, (size_t)MIN(room, piece.n));
	x->sent_bytes += part.n;
	if (part.n)
		(void)http_reply_write(x->r, part);
	if (limited && room <= piece.n) {
		if (has(x, SIM_FAULT_CUT))
			cut(x);
		x->silent = true;
	}
	if (has(x, SIM_FAULT_HANG_AFTER) && x->fault.value < 0)
		x->silent = true;
	if (has(x, SIM_FAULT_DIE_AFTER)) {
		x->silent = true;
		sim_worker_die_soon(x->w, x->fault.value);
	}
}

static struct str noise(const struct sim_exch *x)
{
	static const struct str kinds[] = { STR_INIT("data: {\"id\":\"chatcmpl-1\",\"choices\":[{\"index\":0,\"del\n\n"),
		STR_INIT("data: \xff\xfe\x01\n\n"), STR_INIT("garbage without a field name\n\n"), STR_INIT("data: []\n\ndata: 17\n\n") };
	return kinds[(x->sent_bytes / 16) % ARRAY_LEN(kinds)];
}

void sim_exch_text(struct sim_exch *x, int status, struct str content_type, struct str body)
{
	struct http_header h[] = { server_name, { STR("content-type"), content_type } };
	bool garbage = has(x, SIM_FAULT_GARBAGE);
	body = garbage ? STR("{\"id\": \xff\x01 [[[") : body;
	http_reply_begin(x->r, status, (struct http_headers){ h, content_type.n ? 2 : 1 }, (int64_t)body.n);
	send_piece(x, body);
	if (!x->silent)
		http_reply_end(x->r);
}

void sim_exch_json(struct sim_exch *x, int status, struct str body) { sim_exch_text(x, status, STR("application/json"), body); }

void sim_exch_fail(struct sim_exch *x, const struct sim_fail *f)
{
	struct buf b;
	buf_init(&b, 8 << 10);
	x->w->counts.bad++;
	if (sim_fail_write(f, &b) == ERR_OK)
		sim_exch_json(x, f->status, buf_str(&b));
	else
		sim_exch_json(x, 500, STR("{}"));
	buf_done(&b);
}

void sim_exch_stream(struct sim_exch *x)
{
	struct http_header h[] = { server_name, { STR("content-type"), STR("text/event-stream; charset=utf-8") } };
	http_reply_begin(x->r, 200, (struct http_headers){ h, ARRAY_LEN(h) }, -1);
}

void sim_exch_events(struct sim_exch *x, struct str events)
{
	while (events.n && !x->silent) {
		size_t at = str_find(events, STR("\n\n"));
		size_t n = at == SIZE_MAX ? events.n : at + 2;
		struct str one = str_sub(events, 0, n);
		send_piece(x, has(x, SIM_FAULT_GARBAGE) ? noise(x) : one);
		events = str_skip(events, n);
	}
}

void sim_exch_end(struct sim_exch *x)
{
	if (!x->silent)
		http_reply_end(x->r);
}
