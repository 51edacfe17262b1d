#include "sched_kit.h"

#include <stdio.h>

#include "base/must.h"

static void on_health(void *arg, struct fleet_worker *w, enum fleet_health from, const char *why) { (void)arg, (void)w, (void)from, (void)why; }
static void on_panic(void *arg, struct fleet_pool *p, bool on) { (void)arg, (void)p, (void)on; }
static void on_rank(void *arg, struct fleet_worker *w, uint32_t rank, bool added) { (void)arg, (void)w, (void)rank, (void)added; }
static const struct fleet_ops ops = { on_health, on_panic, on_rank };

void kit_init(struct kit *k, size_t n, uint64_t seed)
{
	*k = (struct kit){ .fleet = fleet_new(&ops, NULL), .n = n, .rand = { seed } };
	for (size_t i = 0; i < n; i++) {
		char url[48];
		(void)snprintf(url, sizeof(url), "http://w%zu:8000", i);
		must(fleet_add(k->fleet, STR(""), str_of(url), STR(""), (struct mono){ 0 }, &k->worker[i]) == ERR_OK);
		k->c[i] = (struct sched_candidate){ .worker = k->worker[i], .profile = sched_profile_find(STR(""), NULL), .weight = 1, .slow = 1, .ttft_us = 30000 };
	}
}

void kit_done(struct kit *k) { fleet_free(k->fleet); }

struct sched_ask kit_ask(struct kit *k) { return (struct sched_ask){ .turn = &k->turn, .rand = &k->rand, .scratch = k->scratch, .prompt_tok = 100 }; }

size_t kit_send(struct kit *k, const struct sched_policy *p, struct sched_ask *a)
{
	const char *why = NULL;
	size_t i = p->pick(a, k->c, k->n, &why);
	must(i < k->n && why);
	k->c[i].load.requests++;
	k->c[i].load.unanswered++;
	k->c[i].contexts += 1;
	return i;
}
