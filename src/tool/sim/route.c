#include "sim/route.h"

static void chat(struct sim_exch *x);
static void completion(struct sim_exch *x);
static void responses(struct sim_exch *x);
static void messages(struct sim_exch *x);
static void generate(struct sim_exch *x);
static void embeddings(struct sim_exch *x);
static void score(struct sim_exch *x);
static void rerank(struct sim_exch *x);
static void response_by_id(struct sim_exch *x);

static const struct sim_route routes[] = {
	{ "POST", "/v1/chat/completions", chat, true, false },
	{ "POST", "/v1/completions", completion, true, false },
	{ "POST", "/v1/responses", responses, true, false },
	{ "POST", "/v1/messages", messages, true, false },
	{ "POST", "/inference/v1/generate", generate, true, false },
	{ "POST", "/v1/embeddings", embeddings, true, false },
	{ "POST", "/score", score, true, false },
	{ "POST", "/v1/score", score, true, false },
	{ "POST", "/rerank", rerank, true, false },
	{ "POST", "/v1/rerank", rerank, true, false },
	{ "POST", "/v2/rerank", rerank, true, false },
	{ "GET", "/v1/responses/", response_by_id, false, true },
	{ "POST", "/v1/messages/count_tokens", sim_prompt_count_tokens, false, false },
	{ "POST", "/v1/chat/completions/render", sim_prompt_render_chat, false, false },
	{ "POST", "/v1/completions/render", sim_prompt_render_completion, false, false },
	{ "POST", "/tokenize", sim_prompt_tokenize, false, false },
	{ "POST", "/detokenize", sim_prompt_detokenize, false, false },
	{ "GET", "/v1/models", sim_plain_models, false, false },
	{ "POST", "/v1/load_lora_adapter", sim_plain_load_lora, false, false },
	{ "POST", "/v1/unload_lora_adapter", sim_plain_unload_lora, false, false },
	{ "GET", "/health", sim_plain_health, false, false },
	{ "GET", "/ping", sim_plain_health, false, false },
	{ "POST", "/ping", sim_plain_health, false, false },
	{ "GET", "/version", sim_plain_version, false, false },
	{ "GET", "/load", sim_plain_load, false, false },
	{ "GET", "/metrics", sim_plain_metrics, false, false },
	{ "GET", "/kv_event_sources", sim_plain_event_sources, false, false },
	{ "POST", "/reset_prefix_cache", sim_plain_reset_cache, false, false },
	{ "GET", "/sim/stats", sim_plain_stats, false, false },
	{ "POST", "/sim/fault", sim_plain_fault, false, false },
};

/* ---- inference ---------------------------------------------------------------------------------------------------- */

static bool is_json(struct str content_type)
{
	struct str kind, rest;
	(void)str_cut(content_type, ';', &kind, &rest);
	return str_ieq(str_trim(kind), STR("application/json"));
}

struct json_doc *sim_route_json(struct sim_exch *x)
{
	struct sim_fail f;
	struct json_doc *doc = NULL;
	struct str body = buf_str(&x->body);
	if (!body.n)
		sim_fail_set(&f, 400, "Bad Request", "body",
			"1 validation error:\n  {'type': 'missing', 'loc': 'body', 'msg': 'Field required', 'input': 'None'}");
	else if (!is_json(http_find(x->r->headers, STR("content-type"))))
		sim_fail_set(&f, 400, "Bad Request", "",
			"1 validation error:\n  {'type': 'value_error', 'loc': 'body', 'msg': 'Unsupported Media Type: Only "
			"application/json is allowed'}");
	else if (json_parse(body, body.n, &doc) == ERR_OK && json_is(json_root(doc), JSON_OBJECT))
		return doc;
	else
		sim_fail_bad_json(&f, body.n);
	json_free(doc);
	sim_exch_fail(x, &f);
	return NULL;
}

static void start(struct sim_exch *x, enum sim_api api)
{
	struct json_doc *doc = sim_route_json(x);
	if (doc)
		sim_call_start(x, api, doc);
}

static void chat(struct sim_exch *x) { start(x, SIM_CHAT); }
static void completion(struct sim_exch *x) { start(x, SIM_COMPLETION); }
static void responses(struct sim_exch *x) { start(x, SIM_RESPONSES); }
static void messages(struct sim_exch *x) { start(x, SIM_MESSAGES); }
static void embeddings(struct sim_exch *x) { start(x, SIM_EMBEDDING); }
static void score(struct sim_exch *x) { start(x, SIM_SCORE); }
static void rerank(struct sim_exch *x) { start(x, SIM_RERANK); }

static void generate(struct sim_exch *x)
{
	struct sim_fail f;
	sim_fail_set(&f, 403, "PermissionDeniedError", "", "This endpoint needs --enable-render.");
	if (x->w->fleet->o->enable_render)
		start(x, SIM_GENERATE);
	else
		sim_exch_fail(x, &f);
}

static void response_by_id(struct sim_exch *x)
{
	struct str id = str_skip(x->r->path, sizeof("/v1/responses/") - 1);
	struct sim_fail f;
	buf_clear(&x->out);
	if (sim_worker_holds_response(x->w, id) &&
		buf_printf(&x->out, "{\"id\":\"%.*s\",\"object\":\"response\",\"status\":\"completed\"}", STR_ARG(id)) == ERR_OK) {
		sim_exch_json(x, 200, buf_str(&x->out));
		return;
	}
	sim_fail_set(&f, 404, "invalid_request_error", "response_id", "Response with id '%.*s' not found.", (int)MIN(id.n, 100u), id.p);
	sim_exch_fail(x, &f);
}

/* ---- the way in --------------------------------------------------------------------------------------------------- */

/* The route; or NULL and *ret_method = the method the path would take. */
static const struct sim_route *find(struct str method, struct str path, const char **ret_method)
{
	for (size_t i = 0; i < ARRAY_LEN(routes); i++) {
		struct str known = str_of(routes[i].path);
		if (routes[i].prefix ? !str_starts(path, known) : !str_eq(path, known))
			continue;
		if (str_eq(method, str_of(routes[i].method)))
			return &routes[i];
		*ret_method = routes[i].method;
	}
	return NULL;
}

static void refuse(struct http_req *r, int status, const char *allow, struct str body)
{
	struct http_header h[] = { { STR("server"), STR("uvicorn") }, { STR("allow"), str_of(allow) } };
	http_reply(r, status, (struct http_headers){ h, allow ? 2 : 1 }, STR("application/json"), body);
}

static bool authorized(const struct sim_worker *w, const struct http_req *r)
{
	const char *key = w->fleet->o->api_key;
	if (!key || (!str_starts(r->path, STR("/v1")) && !str_starts(r->path, STR("/inference"))))
		return true;
	struct str v = http_find(r->headers, STR("authorization"));
	return str_istarts(v, STR("bearer ")) && str_eq(str_skip(v, 7), str_of(key));
}

static void on_request(void *arg, struct http_req *r)
{
	struct sim_worker *w = arg;
	const char *allow = NULL;
	w->counts.calls++;
	const struct sim_route *route = find(r->method, r->path, &allow);
	if (!authorized(w, r))
		refuse(r, 401, NULL, STR("{\"error\":\"Unauthorized\"}"));
	else if (route)
		r->user = sim_exch_new(w, r, route);
	else if (allow)
		refuse(r, 405, allow, STR("{\"detail\":\"Method Not Allowed\"}"));
	else
		refuse(r, 404, NULL, STR("{\"detail\":\"Not Found\"}"));
}

static void on_body(struct http_req *r, struct str piece)
{
	struct sim_exch *x = r->user;
	if (!x || buf_add(&x->body, piece) == ERR_OK)
		return;
	r->user = NULL;
	sim_exch_free(x);
	http_reply_abort(r);
}

static void handle_late(void *arg)
{
	struct sim_exch *x = arg;
	x->route->handle(x);
}

/* What happens instead of an answer; true: it did. */
static bool fail_on_purpose(struct sim_exch *x)
{
	struct sim_fail f;
	switch ((int)x->fault.kind) {
	case SIM_FAULT_STATUS:
		sim_fail_set(
			&f, (int)x->fault.value, x->fault.value < 500 ? "BadRequestError" : "InternalServerError", "", "simulated failure");
		x->faulty = false;
		sim_exch_fail(x, &f);
		return true;
	case SIM_FAULT_HANG_BEFORE: return true;
	case SIM_FAULT_RESET: {
		struct http_req *r = x->r;
		r->user = NULL;
		sim_exch_free(x);
		http_reply_abort(r);
		return true;
	}
	case SIM_FAULT_DIE_BEFORE: sim_worker_die_soon(x->w, x->fault.value); return true;
	case SIM_FAULT_WAIT:
		x->wait_timer = io_timer_new(x->w->fleet->loop, handle_late, x);
		io_timer_after(x->wait_timer, (int64_t)(x->fault.value * 1e3));
		return true;
	default: return false;
	}
}

static void on_body_end(struct http_req *r)
{
	struct sim_exch *x = r->user;
	if (!x)
		return;
	if (x->route->inference)
		sim_worker_note_received(x->w, http_find(r->headers, STR("x-request-id")));
	const struct sim_fault *fault = sim_faults_pick(&x->w->faults, r->path, x->route->inference, &x->w->rand);
	if (fault) {
		x->fault = *fault;
		x->faulty = true;
		if (fail_on_purpose(x))
			return;
	}
	x->route->handle(x);
}

static void on_drain(struct http_req *r) { (void)r; }

static void on_gone(struct http_req *r, enum err why)
{
	struct sim_exch *x = r->user;
	(void)why;
	if (x)
		x->w->counts.gone++;
	sim_exch_free(x);
	r->user = NULL;
}

static void on_done(struct http_req *r)
{
	sim_exch_free(r->user);
	r->user = NULL;
}

const struct http_server_ops sim_route_ops = { .on_request = on_request,
	.on_body = on_body,
	.on_body_end = on_body_end,
	.on_drain = on_drain,
	.on_gone = on_gone,
	.on_done = on_done };
