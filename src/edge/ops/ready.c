/* /readyz: ready while a worker is usable and the process is not shutting down; with reasons, and with what is not as the
 * operator wants it although it does not make us unready (a refused configuration, a kept discovery file). */
#include "ops/ops_priv.h"

static void put_faults(const struct conf_faults *f, struct json_writer *w)
{
	json_put_open(w, '[');
	for (size_t i = 0; f != NULL && i < f->list.n; i++) {
		struct buf b;
		buf_init(&b, CONF_FAULT_MAX_BYTES);
		if (conf_fault_print(&b, &f->list.p[i]) == ERR_OK)
			json_put_str(w, buf_str(&b));
		buf_done(&b);
	}
	json_put_close(w, ']');
}

static void put_config(const struct ops *o, struct json_writer *w)
{
	struct conf_store_status s = conf_store_status(o->store);
	json_put_open(w, '{');
	ops_u64(w, "generation", s.generation);
	ops_bool(w, "ok", s.faults == NULL);
	ops_u64(w, "reloads", s.reloads);
	ops_u64(w, "failed_reloads", s.failed_reloads);
	json_put_key(w, STR("faults"));
	put_faults(s.faults, w);
	json_put_close(w, '}');
}

static void put_discovery(const struct ops *o, struct json_writer *w)
{
	struct arena a;
	const struct feed_discovery_info *d;
	arena_init(&a, 0);
	size_t n = feed_discoveries(o->feed, &a, &d);
	json_put_open(w, '[');
	for (size_t i = 0; i < n; i++) {
		json_put_open(w, '{');
		ops_str(w, "pool", d[i].pool);
		ops_str(w, "file", d[i].file);
		ops_bool(w, "ok", d[i].fault.n == 0);
		ops_str(w, "fault", d[i].fault);
		ops_u64(w, "workers", d[i].workers);
		ops_u64(w, "bad_lines", d[i].bad_lines);
		json_put_close(w, '}');
	}
	json_put_close(w, ']');
	arena_done(&a);
}

static void put_worker_reasons(const struct ops *o, struct json_writer *w)
{
	struct arena a;
	const struct feed_worker_info *infos;
	arena_init(&a, 0);
	size_t n = feed_infos(o->feed, 20, &a, &infos);
	if (n == 0)
		json_put_str(w, STR("no worker is configured"));
	for (size_t i = 0; i < n; i++)
		json_put_str(w, str_of(arena_printf(&a, "worker %.*s: %.*s", STR_ARG(infos[i].url), STR_ARG(infos[i].resolved ? infos[i].probe : STR("its name does not resolve")))));
	arena_done(&a);
}

bool ops_put_ready(const struct ops *o, struct json_writer *w)
{
	bool usable = feed_view_now(o->feed)->any_usable, ready = usable && !o->draining;
	json_put_open(w, '{');
	ops_bool(w, "ready", ready);
	json_put_key(w, STR("reasons"));
	json_put_open(w, '[');
	if (o->draining)
		json_put_str(w, STR("the gateway is shutting down"));
	if (!usable)
		put_worker_reasons(o, w);
	json_put_close(w, ']');
	json_put_key(w, STR("config"));
	put_config(o, w);
	json_put_key(w, STR("discovery"));
	put_discovery(o, w);
	json_put_close(w, '}');
	return ready;
}
