/* pick_kv.c: sticky, then least predicted TTFT (routing.md section 5).
 *
 * Bounded load first: who has more than 1.25 times the mean and 4 requests stands apart, so one hot prefix spreads and one
 * hot worker does not switch affinity off for the others. Among the rest S is whoever holds nearly all of what can be
 * held; S keeps the request while its wait beyond the least predicted TTFT is paid back by the prefill it saves. Greedy
 * TTFT alone collapses near the knee: misses make work, work spreads requests, spreading makes misses. */
#include "sched/cost.h"
#include "sched/pick.h"

#define HIT_SHARE 0.8          /* of the largest possible hit */
#define HIT_OF_BEST 0.9        /* of the best holder's */
#define BOUND_FACTOR 1.25
#define BOUND_SLACK 4.0
#define ROOM_USAGE 0.7         /* mean cache usage below which a full worker is an exception */
#define SPREAD_SHARE 0.25
#define SPREAD_LEAST 8.0       /* requests: below it nothing is worth spreading */
#define GATE_MAX_US 18e6
#define GATE_SAVED 2.0         /* times the prefill that the overlap saves */

static bool takes_part(const void *arg, const struct sched_candidate *c) { return (void)arg, !c->apart; }

struct holders { double least_hit_tok; };
static bool holds(const void *arg, const struct sched_candidate *c)
{
	const struct holders *h = arg;
	return !c->apart && c->hit_tok && c->hit_tok >= h->least_hit_tok;
}

/* A full cache moves sessions away only while the fleet has room: when all are near full, moving makes misses and nothing else. */
static bool fleet_has_room(const struct sched_candidate *c, size_t n)
{
	double sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += c[i].kv_usage;
	return sum <= ROOM_USAGE * (double)n;
}

static bool set_apart(struct sched_candidate *c, size_t n, double limit, bool pressed_too)
{
	bool any = false;
	for (size_t i = 0; i < n; i++) {
		c[i].apart = c[i].contexts > limit || (pressed_too && c[i].pressed);
		any |= !c[i].apart;
	}
	return any;
}

static void bound_load(struct sched_candidate *c, size_t n)
{
	double sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += c[i].contexts;
	double limit = BOUND_FACTOR * sum / (double)n + BOUND_SLACK;
	if (!set_apart(c, n, limit, fleet_has_room(c, n)) && !set_apart(c, n, limit, false))
		for (size_t i = 0; i < n; i++)
			c[i].apart = false;
}

/* The largest hit this prompt can have. Ranks of one model agree unless block sizes differ; then the best counts. A hit whose end
 * must be loaded from a lower tier may go beyond it, to the prompt's last token. */
static uint32_t largest_hit(const struct sched_ask *a, const struct sched_candidate *c, size_t n)
{
	uint32_t most = 0;
	for (size_t i = 0; i < n; i++)
		if (c[i].hit_tok || i == 0)
			most = MAX(most, MAX(c[i].hit_tok, kv_index_max_hit(a->index, a->prompt, c[i].kv_id)));
	return most;
}

static size_t pick_owner(const struct sched_ask *a, const struct sched_candidate *c, size_t n)
{
	size_t n_ranks = 0;
	for (size_t i = 0; i < n; i++)
		if (!c[i].apart)
			a->scratch[n_ranks++] = c[i].kv_id;
	uint32_t min_tok = (uint32_t)(HIT_SHARE * a->max_hit_tok), tok;
	kv_rank_id id;
	if (!min_tok || !kv_index_owner(a->index, a->prompt, a->scratch, n_ranks, min_tok, &id, &tok))
		return SIZE_MAX;
	for (size_t i = 0; i < n; i++)
		if (!c[i].apart && c[i].kv_id == id)
			return i;
	return SIZE_MAX;
}

static size_t pick_holder(const struct sched_ask *a, const struct sched_candidate *c, size_t n)
{
	uint32_t best_tok = 0;
	for (size_t i = 0; i < n; i++)
		best_tok = c[i].apart ? best_tok : MAX(best_tok, c[i].hit_tok);
	double possible = HIT_SHARE * a->max_hit_tok, best = HIT_OF_BEST * best_tok;
	struct holders h = { .least_hit_tok = possible > best ? possible : best };
	return a->max_hit_tok ? sched_least_ttft(a, c, n, holds, &h) : SIZE_MAX;
}

/* What S may cost beyond the least: twice what its overlap saves, but never 18 s. An owner whose cache has forgotten the
 * prefix saves nothing, so it is kept only while it costs no more (at its true overlap; measured better than crediting it). */
static double gate_us(const struct sched_candidate *c)
{
	double saved = sched_prefill_us(c->profile, 0, c->hit_tok) - sched_load_us(c->profile, c->lower);
	return MIN(GATE_SAVED * MAX(saved, 0.0) * c->slow / c->weight, GATE_MAX_US);
}

/* A holder so busy that somebody has less than a quarter of its requests shares its prefix: one computation more, once, and the
 * prefix has another home. The bound alone leaves one of four workers idle beside a hot prompt for ever (13 % worse than round
 * robin, measured); a half instead of a quarter costs families of long prefixes 20 %. */
static bool is_idle_beside(const void *arg, const struct sched_candidate *c)
{
	const struct sched_candidate *busy = arg;
	return !c->apart && c->contexts < SPREAD_SHARE * busy->contexts;
}

static size_t spread(const struct sched_ask *a, const struct sched_candidate *c, size_t n, size_t best)
{
	return c[best].contexts < SPREAD_LEAST ? SIZE_MAX : sched_least_ttft(a, c, n, is_idle_beside, &c[best]);
}

static size_t pick(struct sched_ask *a, struct sched_candidate *c, size_t n, const char **ret_reason)
{
	bound_load(c, n);
	size_t least = sched_least_ttft(a, c, n, takes_part, NULL);
	*ret_reason = a->keyed ? "ttft" : "load";
	if (!a->keyed)
		return least;
	a->max_hit_tok = largest_hit(a, c, n);
	const char *word = "sticky";
	size_t best = pick_holder(a, c, n);
	if (best == SIZE_MAX) {
		word = "owner";
		best = pick_owner(a, c, n);
	}
	if (best == SIZE_MAX)
		return least;
	size_t other = spread(a, c, n, best);
	if (other != SIZE_MAX) {
		*ret_reason = "spread";
		return other;
	}
	if (c[best].ttft_us - sched_tie_us(c[least].ttft_us) <= gate_us(&c[best])) {
		*ret_reason = word;
		return best;
	}
	*ret_reason = "relief";
	return least;
}

const struct sched_policy sched_kv = { .name = "kv", .pick = pick };
