/* fleet/health.h: the states of a worker and what moves it between them. One writer: fleet_enter.
 *
 *	unknown   added, nothing heard yet           down      not to be asked: connections fail, probes fail, or most answers do
 *	healthy   probes and answers are good        draining  taken out; its last requests run on
 *	degraded  asked less: a few failures, one bad probe, or it refuses our key
 *
 * A failed connection is down at once. Answers 5xx, timeouts and broken streams degrade and, five in a row, put down for a
 * while that doubles (5 s to 80 s). Other 4xx than 408 and 429 say nothing about a worker. After down comes a slow start:
 * the weight climbs from 0.1 to 1 in 30 s. A pool where nobody is healthy or degraded and somebody is down is in panic:
 * all are tried. Units: microseconds of the monotonic clock handed in. */
#ifndef FLEET_HEALTH_H
#define FLEET_HEALTH_H

#include "fleet/fleet.h"

enum fleet_probe { FLEET_PROBE_OK, FLEET_PROBE_CONNECT_FAILED, FLEET_PROBE_BAD_STATUS, FLEET_PROBE_TIMEOUT, FLEET_PROBE_NOT_FOUND, FLEET_PROBE_UNAUTHORIZED };
enum fleet_outcome { FLEET_ANSWERED, FLEET_NEUTRAL, FLEET_BUSY, FLEET_FAILED, FLEET_CONNECT_FAILED };

const char *fleet_health_name(enum fleet_health h);
void fleet_enter(struct fleet *f, struct fleet_worker *w, enum fleet_health to, const char *why, struct mono now);
void fleet_probed(struct fleet *f, struct fleet_worker *w, enum fleet_probe r, struct mono now);
/* `started`: when the request was chosen; an answer to a request older than a failure does not undo it. */
void fleet_outcome(struct fleet *f, struct fleet_worker *w, enum fleet_outcome o, struct mono started, struct mono now);
/* What an answer says about its worker, by HTTP status. */
enum fleet_outcome fleet_outcome_of_status(int status);
static inline bool fleet_usable(const struct fleet_worker *w) { return w->health == FLEET_HEALTHY || w->health == FLEET_DEGRADED; }
/* Share of the load a worker should get against a healthy one: (0, 1]. */
double fleet_weight(const struct fleet_worker *w, struct mono now);

#endif
