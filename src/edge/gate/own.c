/* Paths that Kvasir answers itself: health, version, the merged list of models. */
#include "gate/gate_priv.h"
#include "wire/url.h"

static const struct api_path own_health = { .method = STR_INIT("GET"), .path = STR_INIT("/health"), .label = "health" };
static const struct api_path own_version = { .method = STR_INIT("GET"), .path = STR_INIT("/version"), .label = "version" };

static bool is_read(const struct gate_req *r) { return str_eq(r->hr->method, STR("GET")) || str_eq(r->hr->method, STR("HEAD")); }

/* 200 while a worker is usable: what a load balancer before several gateways wants to know. No body, as vLLM's. */
static void health(struct gate_req *r)
{
	struct gate *g = r->gate;
	bool ok = !g->draining && r->view && r->view->any_usable;
	r->path = &own_health;
	r->outcome = GATE_OUT_OWN;
	if (ok)
		gate_reply(r, 200, (struct http_headers){ 0 }, (struct str){ 0 });
	else
		gate_fail(r, g->draining ? ERR_DRAINING : ERR_NO_WORKER, NULL, NULL);
}

static void version(struct gate_req *r)
{
	r->path = &own_version;
	r->outcome = GATE_OUT_OWN;
	gate_reply(r, 200, (struct http_headers){ 0 }, STR("{\"version\":\"" KVASIR_VERSION "\"}"));
}

static struct api_model shown(const struct feed_view_model *m)
{
	return (struct api_model){ .id = m->id, .root = m->root, .parent = m->parent, .max_model_len = m->max_model_len };
}

static void models(struct gate_req *r)
{
	struct buf *b = &r->gate->scratch;
	size_t n = r->view ? r->view->n_models : 0;
	struct api_model *list = arena_new(&r->arena, struct api_model, n);
	for (size_t i = 0; i < n; i++)
		list[i] = shown(&r->view->models[i]);
	buf_clear(b);
	r->outcome = GATE_OUT_OWN;
	if (api_models_put(b, list, n, io_unix_us() / 1000000) != ERR_OK)
		gate_fail(r, ERR_LIMIT, "too many models", NULL);
	else
		gate_reply(r, 200, (struct http_headers){ 0 }, buf_str(b));
}

/* SDKs put the name into the path as it is, or escaped. */
static void model(struct gate_req *r)
{
	struct buf *b = &r->gate->scratch;
	buf_clear(b);
	r->model_name = arena_str(&r->arena, url_put_unescaped(b, r->path_id) == ERR_OK ? buf_str(b) : r->path_id);
	const struct feed_view_model *m = r->view ? feed_view_model(r->view, r->model_name) : NULL;
	buf_clear(b);
	if (!m) {
		gate_fail(r, ERR_UNKNOWN_MODEL, NULL, "model");
		return;
	}
	r->outcome = GATE_OUT_OWN;
	struct api_model one = shown(m);
	if (api_model_put(b, &one, io_unix_us() / 1000000) != ERR_OK)
		gate_fail(r, ERR_LIMIT, "the answer is too long", NULL);
	else
		gate_reply(r, 200, (struct http_headers){ 0 }, buf_str(b));
}

bool gate_own(struct gate_req *r)
{
	struct str path = r->hr->path;
	bool ping = str_eq(path, STR("/ping"));
	if ((str_eq(path, STR("/health")) && is_read(r)) || (ping && (is_read(r) || str_eq(r->hr->method, STR("POST"))))) {
		health(r);
		return true;
	}
	if (str_eq(path, STR("/version")) && is_read(r)) {
		version(r);
		return true;
	}
	if (!r->path || (r->path->route != API_ROUTE_MODELS && r->path->route != API_ROUTE_MODEL))
		return false;
	if (r->path->route == API_ROUTE_MODELS)
		models(r);
	else
		model(r);
	return true;
}
