/* objects_fuzz.c: any text as a configuration file: faults have places, a good one has workers that can be named. */
#include <stdint.h>
#include <stdlib.h>

#include "conf/conf_priv.h"

static void check_pool(const struct conf_pool *p)
{
	must(p->name.n > 0 && p->engine.n > 0 && (p->n_workers > 0 || p->discovery_file.n > 0));
	for (size_t i = 0; i < p->n_workers; i++)
		must(p->workers[i].url.n > 7 && p->workers[i].host.n > 0 && p->workers[i].port > 0);
}

static void check_faults(const struct conf_faults *f)
{
	must(f->list.n <= CONF_MAX_FAULTS);
	for (size_t i = 0; i < f->list.n; i++)
		must(f->list.p[i].what.n > 0 && f->list.p[i].line > 0 && f->list.p[i].col > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct conf c = { .refs = 1 };
	struct conf_faults faults;
	struct conf_draft d = { .c = &c, .faults = &faults };
	conf_faults_init(&faults);
	arena_init(&c.arena, 0);
	conf_opts_default(&c.opts);
	conf_objects_read(&d, STR("x.yaml"), str_from(data, size));
	check_faults(&faults);
	for (size_t i = 0; i < d.pools.n && faults.list.n == 0; i++)
		check_pool(&d.pools.p[i]);
	VEC_FREE(&d.pools);
	arena_done(&c.arena);
	conf_faults_done(&faults);
	return 0;
}
