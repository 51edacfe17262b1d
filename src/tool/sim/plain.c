/* Everything beside prompts and answers: what a worker says about itself, and the simulator's own calls. */
#include <stdio.h>
#include <string.h>

#include "sim/route.h"

static void answer(struct sim_exch *x, enum err e)
{
	if (e == ERR_OK)
		sim_exch_json(x, 200, buf_str(&x->out));
	else
		sim_exch_json(x, 500, STR("{}"));
}

/* ---- models -------------------------------------------------------------------------------------------------------- */

static enum err put_model(struct sim_exch *x, struct str id, struct str root, struct str parent)
{
	struct buf *b = &x->out;
	TRY(buf_add(b, STR("{\"id\":")));
	TRY(json_quote(b, id));
	TRY(buf_printf(b, ",\"object\":\"model\",\"created\":%lld,\"owned_by\":\"vllm\",\"root\":", (long long)(io_unix_us() / 1000000)));
	TRY(json_quote(b, root));
	TRY(buf_add(b, STR(",\"parent\":")));
	TRY(parent.n ? json_quote(b, parent) : buf_add(b, STR("null")));
	TRY(parent.n ? buf_add(b, STR(",\"max_model_len\":null")) : buf_printf(b, ",\"max_model_len\":%u", x->w->serving.max_model_tok));
	return buf_printf(b,
		",\"permission\":[{\"id\":\"modelperm-%016llx\",\"object\":\"model_permission\",\"created\":%lld,\"allow_create_engine\":"
		"false,"
		"\"allow_sampling\":true,\"allow_logprobs\":true,\"allow_search_indices\":false,\"allow_view\":true,\"allow_fine_tuning\":"
		"false,"
		"\"organization\":\"*\",\"group\":null,\"is_blocking\":false}]}",
		(unsigned long long)sim_worker_random(x->w), (long long)(io_unix_us() / 1000000));
}

static enum err put_models(struct sim_exch *x)
{
	const struct sim_serving *s = &x->w->serving;
	buf_clear(&x->out);
	TRY(buf_add(&x->out, STR("{\"object\":\"list\",\"data\":[")));
	TRY(put_model(x, s->model, s->model, (struct str){ 0 }));
	for (size_t i = 0; i < s->loras.n; i++) {
		TRY(buf_add(&x->out, STR(",")));
		TRY(put_model(x, str_of(s->loras.p[i].name), str_of(s->loras.p[i].path), s->model));
	}
	return buf_add(&x->out, STR("]}"));
}

void sim_plain_models(struct sim_exch *x) { answer(x, put_models(x)); }

/* ---- adapters ------------------------------------------------------------------------------------------------------ */

static size_t lora_at(const struct sim_serving *s, struct str name)
{
	size_t i = 0;
	while (i < s->loras.n && !str_eq(name, str_of(s->loras.p[i].name)))
		i++;
	return i;
}

static void lora_text(struct sim_exch *x, struct str name, const char *what)
{
	buf_clear(&x->out);
	if (buf_printf(&x->out, "Success: LoRA adapter '%.*s' %s successfully.", STR_ARG(name), what) == ERR_OK)
		sim_exch_text(x, 200, STR("text/plain; charset=utf-8"), buf_str(&x->out));
}

static bool lora_name(struct sim_exch *x, const struct json_doc *doc, struct str *ret_name)
{
	struct sim_fail f;
	if (json_str(json_get(json_root(doc), STR("lora_name")), ret_name) && ret_name->n &&
		ret_name->n < sizeof(((struct sim_lora *)0)->name))
		return true;
	sim_fail_set(&f, 400, "InvalidUserInput", "", "'lora_name' needs to be provided to load a LoRA adapter.");
	sim_exch_fail(x, &f);
	return false;
}

void sim_plain_load_lora(struct sim_exch *x)
{
	struct json_doc *doc = sim_route_json(x);
	struct sim_serving *s = &x->w->serving;
	struct str name, path;
	struct sim_fail f;
	struct sim_lora l = { 0 };
	if (!doc)
		return;
	if (!lora_name(x, doc, &name)) {
		json_free(doc);
		return;
	}
	if (!json_str(json_get(json_root(doc), STR("lora_path")), &path) || path.n >= sizeof(l.path) || lora_at(s, name) < s->loras.n) {
		sim_fail_set(&f, 400, "InvalidUserInput", "", "The lora adapter '%.*s' has already been loaded, or has no usable path.",
			STR_ARG(name));
		sim_exch_fail(x, &f);
	} else {
		memcpy(l.name, name.p, name.n);
		memcpy(l.path, path.p, path.n);
		l.id = ++s->last_lora_id;
		VEC_PUSH(&s->loras, l);
		lora_text(x, name, "added");
	}
	json_free(doc);
}

void sim_plain_unload_lora(struct sim_exch *x)
{
	struct json_doc *doc = sim_route_json(x);
	struct sim_serving *s = &x->w->serving;
	struct str name;
	struct sim_fail f;
	if (!doc)
		return;
	if (!lora_name(x, doc, &name)) {
		json_free(doc);
		return;
	}
	size_t i = lora_at(s, name);
	if (i == s->loras.n) {
		sim_fail_set(&f, 404, "NotFoundError", "", "The lora adapter '%.*s' cannot be found.", STR_ARG(name));
		sim_exch_fail(x, &f);
	} else {
		memmove(&s->loras.p[i], &s->loras.p[i + 1], (s->loras.n - i - 1) * sizeof(s->loras.p[0]));
		s->loras.n--;
		lora_text(x, name, "removed");
	}
	json_free(doc);
}

/* ---- health and facts ---------------------------------------------------------------------------------------------- */

void sim_plain_version(struct sim_exch *x)
{
	buf_clear(&x->out);
	answer(x, buf_printf(&x->out, "{\"version\":\"%s\"}", sim_options_vllm_version(x->w->fleet->o)));
}

void sim_plain_health(struct sim_exch *x) { sim_exch_text(x, x->w->standing.unhealthy ? 503 : 200, (struct str){ 0 }, STR("")); }

void sim_plain_load(struct sim_exch *x)
{
	buf_clear(&x->out);
	answer(x, buf_printf(&x->out, "{\"server_load\":%u}", x->w->open_calls - 1));
}

static enum err put_sources(struct sim_exch *x)
{
	const struct sim_options *o = x->w->fleet->o;
	buf_clear(&x->out);
	TRY(buf_add(&x->out, STR("{")));
	for (uint32_t r = 0; r < o->ranks; r++) {
		uint32_t nth = x->w->n * o->ranks + r;
		TRY(buf_printf(&x->out,
			"%s\"%u\":{\"enable_kv_cache_events\":true,\"publisher\":\"zmq\",\"endpoint\":\"tcp://"
			"*:%u\",\"replay_endpoint\":\"tcp://*:%u\","
			"\"buffer_steps\":%u,\"hwm\":100000,\"max_queue_size\":100000,\"topic\":",
			r ? "," : "", r, o->events_port + nth, o->replay_port + nth, o->replay_steps));
		TRY(json_quote(&x->out, str_of(o->topic)));
		TRY(buf_add(&x->out, STR("}")));
	}
	return buf_add(&x->out, STR("}"));
}

/* Workers below 0.31 do not have it. */
void sim_plain_event_sources(struct sim_exch *x)
{
	const struct sim_options *o = x->w->fleet->o;
	if (o->array_events || o->no_events)
		sim_exch_json(x, 404, STR("{\"detail\":\"Not Found\"}"));
	else
		answer(x, put_sources(x));
}

void sim_plain_metrics(struct sim_exch *x)
{
	buf_clear(&x->out);
	if (sim_metrics_write(x->w, &x->out) == ERR_OK)
		sim_exch_text(x, 200, STR("text/plain; version=0.0.4; charset=utf-8"), buf_str(&x->out));
	else
		sim_exch_json(x, 500, STR("{}"));
}

void sim_plain_reset_cache(struct sim_exch *x)
{
	bool ok = true;
	for (uint32_t r = 0; r < x->w->fleet->o->ranks; r++)
		ok &= sim_engine_reset_cache(x->w->ranks[r].engine);
	sim_exch_json(x, 200, ok ? STR("{\"success\":true}") : STR("{\"success\":false}"));
}

/* ---- the simulator's own ------------------------------------------------------------------------------------------- */

void sim_plain_stats(struct sim_exch *x)
{
	buf_clear(&x->out);
	answer(x, sim_stats_write(x->w, &x->out));
}

/* One SPEC a line. All are read before one acts. */
void sim_plain_fault(struct sim_exch *x)
{
	struct str left = buf_str(&x->body), line;
	VEC(struct sim_fault) all = { 0 };
	bool ok = true;
	while (left.n && ok) {
		struct sim_fault f;
		(void)str_cut(left, '\n', &line, &left);
		if (!str_trim(line).n)
			continue;
		ok = sim_fault_parse(line, &f) == ERR_OK;
		if (ok)
			VEC_PUSH(&all, f);
	}
	for (size_t i = 0; i < all.n && ok; i++)
		sim_fleet_fault(x->w->fleet, &all.p[i], x->w);
	VEC_FREE(&all);
	if (ok)
		sim_exch_json(x, 200, STR("{\"ok\":true}"));
	else
		sim_exch_text(x, 400, STR("text/plain; charset=utf-8"), str_of(sim_fault_help()));
}
