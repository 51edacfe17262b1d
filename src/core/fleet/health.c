/* health.c: the state machine of a worker. Two kinds of evidence: probes (we ask) and outcomes (requests tell). */
#include "fleet/health.h"

#include <math.h>

#include "base/must.h"
#include "fleet/fleet_priv.h"

enum {
	HOLD_US = 5000000,               /* first put-down for failing answers; doubles up to 16 times that */
	HOLD_DOUBLINGS = 4,
	SLOW_START_US = 30000000,
	RECENT_OK_US = 5000000,          /* an answer this young outweighs failed probes: it is busy, not dead */
	ROW_DOWN = 5, PROBES_DOWN = 2
};
#define FAILURES_HALF_LIFE_US 10e6
#define FAILURES_DEGRADED 2.0
#define FAILURES_MENDED 0.5
#define WEIGHT_DEGRADED 0.25
#define WEIGHT_START 0.1

const char *fleet_health_name(enum fleet_health h)
{
	static const char *const names[] = { "unknown", "healthy", "degraded", "draining", "down" };
	must(h < FLEET_HEALTH_COUNT_);
	return names[h];
}

void fleet_panic_check(struct fleet *f, struct fleet_pool *p)
{
	bool panic = p->by_health[FLEET_DOWN] && !p->by_health[FLEET_HEALTHY] && !p->by_health[FLEET_DEGRADED];
	if (panic == p->panic)
		return;
	p->panic = panic;
	f->ops.on_panic(f->arg, p, panic);
}

void fleet_enter(struct fleet *f, struct fleet_worker *w, enum fleet_health to, const char *why, struct mono now)
{
	enum fleet_health from = w->health;
	if (from == FLEET_DRAINING)
		return;                          /* nothing leads out of it but the end */
	w->why = why;
	if (from == to)
		return;
	must(w->pool->by_health[from] > 0);
	w->pool->by_health[from]--;
	w->pool->by_health[to]++;
	w->health = to;
	w->since = now;
	if (to == FLEET_DOWN)
		w->slow_start_at = (struct mono){ INT64_MIN / 2 };
	f->ops.on_health(f->arg, w, from, why);
	fleet_panic_check(f, w->pool);
}

static void recover(struct fleet *f, struct fleet_worker *w, struct mono now)
{
	w->failures = 0;
	w->failures_in_row = 0;
	fleet_enter(f, w, FLEET_HEALTHY, "recovered", now);
	w->slow_start_at = now;
}

static double failures_now(struct fleet_worker *w, struct mono now)
{
	w->failures *= exp2(-(double)mono_diff_us(now, w->failures_at) / FAILURES_HALF_LIFE_US);
	w->failures_at = now;
	return w->failures;
}

/* ---- probes ---- */

static void probe_good(struct fleet *f, struct fleet_worker *w, struct mono now)
{
	w->probe_failures = 0;
	bool mended = failures_now(w, now) < FAILURES_MENDED;
	if (w->health == FLEET_DOWN && !mono_before(now, w->held_until))
		recover(f, w, now);
	else if (w->health == FLEET_UNKNOWN)
		fleet_enter(f, w, FLEET_HEALTHY, "probe answered", now);
	else if (w->health == FLEET_DEGRADED && (w->by_probe || mended))
		fleet_enter(f, w, FLEET_HEALTHY, "probe answered", now);
	if (w->health == FLEET_HEALTHY && mended)
		w->ejections = 0;
}

static void probe_bad(struct fleet *f, struct fleet_worker *w, const char *why, struct mono now)
{
	bool answers = mono_diff_us(now, w->last_ok) < RECENT_OK_US;
	if (++w->probe_failures >= PROBES_DOWN && !answers) {
		fleet_enter(f, w, FLEET_DOWN, why, now);
	} else if (w->health == FLEET_HEALTHY) {
		w->by_probe = true;
		fleet_enter(f, w, FLEET_DEGRADED, why, now);
	}
}

void fleet_probed(struct fleet *f, struct fleet_worker *w, enum fleet_probe r, struct mono now)
{
	switch (r) {
	case FLEET_PROBE_OK: probe_good(f, w, now); break;
	case FLEET_PROBE_CONNECT_FAILED:
		w->probe_failures++;
		fleet_enter(f, w, FLEET_DOWN, "probe could not connect", now);
		break;
	case FLEET_PROBE_BAD_STATUS: probe_bad(f, w, "probe answered with an error", now); break;
	case FLEET_PROBE_NOT_FOUND: probe_bad(f, w, "its /health answers 404: is the URL a worker's, and its path right?", now); break;
	case FLEET_PROBE_TIMEOUT: probe_bad(f, w, "probe timed out", now); break;
	case FLEET_PROBE_UNAUTHORIZED:
		w->by_probe = true;
		fleet_enter(f, w, FLEET_DEGRADED, "the worker refuses the gateway's key", now);
		break;
	}
}

/* ---- outcomes ---- */

static void answered(struct fleet *f, struct fleet_worker *w, struct mono started, struct mono now)
{
	w->last_ok = now;
	w->failures_in_row = 0;
	w->failures = failures_now(w, now) / 2;
	bool newer = mono_before(w->since, started);
	if (w->health == FLEET_UNKNOWN)
		fleet_enter(f, w, FLEET_HEALTHY, "a request was answered", now);
	else if (w->health == FLEET_DOWN && newer && !mono_before(now, w->held_until))
		recover(f, w, now);
	else if (w->health == FLEET_DEGRADED && !w->by_probe && w->failures < FAILURES_MENDED)
		fleet_enter(f, w, FLEET_HEALTHY, "requests are answered", now);
}

static void put_down(struct fleet *f, struct fleet_worker *w, struct mono now)
{
	w->held_until = mono_add_us(now, (int64_t)HOLD_US << MIN(w->ejections, (uint32_t)HOLD_DOUBLINGS));
	w->ejections++;
	w->failures_in_row = 0;
	fleet_enter(f, w, FLEET_DOWN, "requests fail", now);
}

static void failed(struct fleet *f, struct fleet_worker *w, double weight, struct mono now)
{
	w->failures = failures_now(w, now) + weight;
	if (w->failures_in_row >= ROW_DOWN && w->health != FLEET_DOWN) {
		put_down(f, w, now);
	} else if (w->failures >= FAILURES_DEGRADED && (w->health == FLEET_HEALTHY || w->health == FLEET_UNKNOWN)) {
		w->by_probe = false;
		fleet_enter(f, w, FLEET_DEGRADED, "some requests fail", now);
	}
}

void fleet_outcome(struct fleet *f, struct fleet_worker *w, enum fleet_outcome o, struct mono started, struct mono now)
{
	switch (o) {
	case FLEET_NEUTRAL: return;
	case FLEET_ANSWERED: answered(f, w, started, now); return;
	case FLEET_BUSY: failed(f, w, 0.5, now); break;
	case FLEET_FAILED:
		w->failures_in_row++;
		failed(f, w, 1, now);
		break;
	case FLEET_CONNECT_FAILED: fleet_enter(f, w, FLEET_DOWN, "a request could not connect", now); break;
	}
	w->n_failures++;
}

enum fleet_outcome fleet_outcome_of_status(int status)
{
	if (status == 408 || status == 429)
		return FLEET_BUSY;
	if (status >= 500)
		return FLEET_FAILED;
	return status >= 400 ? FLEET_NEUTRAL : FLEET_ANSWERED;
}

double fleet_weight(const struct fleet_worker *w, struct mono now)
{
	double weight = w->health == FLEET_DEGRADED ? WEIGHT_DEGRADED : 1;
	int64_t up_us = mono_diff_us(now, w->slow_start_at);
	if (up_us < SLOW_START_US)
		weight *= MAX(WEIGHT_START, (double)up_us / (double)SLOW_START_US);
	return weight;
}
