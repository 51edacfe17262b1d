#include <string.h>

#include "play.h"

static struct brain_worker_view view_of(struct play *p, const struct play_line *l, struct str name)
{
	const struct brain_worker_view *v;
	brain_worker id = play_worker_of(p, l, name)->id;
	size_t n = brain_workers(p->brain, &v, &p->mem);
	for (size_t i = 0; i < n; i++)
		if (v[i].id == id)
			return v[i];
	play_fail(l, "worker %.*s has left the table", STR_ARG(name));
}

static void expect_zero(struct play *p, const struct play_line *l)
{
	if (!brain_ledger_is_zero(p->brain))
		play_fail(l, "the ledger is not zero");
}

static void expect_health(struct play *p, const struct play_line *l)
{
	struct brain_worker_view v = view_of(p, l, l->words[2]);
	if (!str_eq(str_of(brain_health_name(v.health)), l->words[3]))
		play_fail(l, "%.*s is %s (%s)", STR_ARG(l->words[2]), brain_health_name(v.health), v.why);
}

static void expect_load(struct play *p, const struct play_line *l)
{
	struct brain_worker_view v = view_of(p, l, l->words[2]);
	const struct brain_rank_view *r = &v.ranks[play_number(l, "rank", 0)];
	if (r->in_flight_requests != play_number(l, "requests", r->in_flight_requests) || r->in_flight_prompt_tok != play_number(l, "prefill", r->in_flight_prompt_tok) ||
		r->in_flight_contexts != play_number(l, "contexts", r->in_flight_contexts) || r->context_tok != play_number(l, "context_tok", r->context_tok))
		play_fail(l, "%.*s has requests=%u prefill=%llu contexts=%u context_tok=%llu", STR_ARG(l->words[2]), r->in_flight_requests,
			(unsigned long long)r->in_flight_prompt_tok, r->in_flight_contexts, (unsigned long long)r->context_tok);
}

/* How many of the requests named by words[2] went to each worker. */
static uint32_t *tally_to;
static void tally_one(struct play *p, const struct play_line *l, struct play_request *r)
{
	(void)l;
	for (size_t i = 0; i < p->workers.n; i++)
		tally_to[i] += p->workers.p[i].id == r->plan.legs[0].worker;
}
static uint32_t *tally(struct play *p, const struct play_line *l)
{
	tally_to = arena_new(&p->mem, uint32_t, p->workers.n);
	play_each(p, l, l->words[2], false, tally_one);
	return tally_to;
}

static void expect_spread(struct play *p, const struct play_line *l)
{
	uint32_t *t = tally(p, l), least = UINT32_MAX, most = 0;
	for (size_t i = 0; i < p->workers.n; i++) {
		least = MIN(least, t[i]);
		most = MAX(most, t[i]);
	}
	if (most - least > play_number(l, "most-least", 1))
		play_fail(l, "least %u, most %u", least, most);
}

static void expect_used(struct play *p, const struct play_line *l)
{
	uint32_t *t = tally(p, l), used = 0;
	for (size_t i = 0; i < p->workers.n; i++)
		used += t[i] != 0;
	if (used > play_number(l, "workers", UINT32_MAX) || used < play_number(l, "at-least", 0))
		play_fail(l, "%u workers are used", used);
}

static void expect_on(struct play *p, const struct play_line *l)
{
	uint32_t *t = tally(p, l), total = 0, on = 0;
	struct play_worker *w = play_worker_of(p, l, l->words[3]);
	for (size_t i = 0; i < p->workers.n; i++)
		total += t[i];
	on = t[w - p->workers.p];
	uint64_t percent = 100ull * on / MAX(total, 1u);
	if (percent > play_number(l, "at-most", 100) || percent < play_number(l, "at-least", 0))
		play_fail(l, "%u of %u", on, total);
}

static void expect_leg_one(struct play *p, const struct play_line *l, struct play_request *r)
{
	uint64_t n = play_number(l, "n", 1);
	if (n >= r->plan.n_legs)
		play_fail(l, "the plan has %u legs", r->plan.n_legs);
	if (r->plan.legs[n].worker != play_worker_of(p, l, l->words[l->n - 1])->id)
		play_fail(l, "leg %d is worker id %u", (int)n, r->plan.legs[n].worker);
}
static void expect_leg(struct play *p, const struct play_line *l) { play_each(p, l, l->words[2], false, expect_leg_one); }

static void expect_panic(struct play *p, const struct play_line *l)
{
	if (p->panic != str_eq(l->words[2], STR("on")))
		play_fail(l, "panic is %s", p->panic ? "on" : "off");
}

static void expect_alarm(struct play *p, const struct play_line *l)
{
	struct play_worker *w = play_worker_of(p, l, l->words[2]);
	if (!w->alarm)
		play_fail(l, "no alarm for %.*s", STR_ARG(l->words[2]));
	if (str_find(str_of(w->alarm), l->words[3]) == SIZE_MAX)
		play_fail(l, "the alarm says: %s", w->alarm);
}

static void expect_no_alarm(struct play *p, const struct play_line *l)
{
	const char *alarm = play_worker_of(p, l, l->words[2])->alarm;
	if (alarm)
		play_fail(l, "the alarm says: %s", alarm);
}

static void expect_gone(struct play *p, const struct play_line *l)
{
	const struct brain_worker_view *v;
	brain_worker id = play_worker_of(p, l, l->words[2])->id;
	size_t n = brain_workers(p->brain, &v, &p->mem);
	for (size_t i = 0; i < n; i++)
		if (v[i].id == id)
			play_fail(l, "it is still there");
}

void play_expect(struct play *p, const struct play_line *l)
{
	static const struct { const char *word; size_t words; void (*fn)(struct play *, const struct play_line *); } kinds[] = {
		{ "zero", 2, expect_zero }, { "health", 4, expect_health }, { "load", 3, expect_load }, { "spread", 3, expect_spread },
		{ "used", 3, expect_used }, { "on", 4, expect_on }, { "leg", 4, expect_leg }, { "panic", 3, expect_panic },
		{ "alarm", 4, expect_alarm }, { "no-alarm", 3, expect_no_alarm }, { "gone", 3, expect_gone },
	};
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (str_eq(l->words[1], str_of(kinds[i].word)) && l->n >= kinds[i].words) {
			struct arena_mark mark = arena_mark(&p->mem);
			kinds[i].fn(p, l);
			arena_rewind(&p->mem, mark);
			return;
		}
	play_fail(l, "expect what?");
}
