/* sim/fault.h: what goes wrong on purpose. A SPEC is
 *
 *   [WORKERS:]KIND[=VALUE][,p=P][,n=N][,after=N][,path=PREFIX]
 *
 * WORKERS: an index, a range a-b or *; without it all (on the command line) or the worker asked (POST /sim/fault).
 * Request faults look at inference calls; with path= at any path that begins so. p: the chance for each call (1),
 * n: how many calls at most (no limit), after: how many are let through first (0). KINDS: sim_fault_help(). Pure. */
#ifndef SIM_FAULT_H
#define SIM_FAULT_H

#include "base/err.h"
#include "base/rand.h"
#include "base/str.h"
#include "base/vec.h"

enum sim_fault_kind {
#define X(name, word, value, text) SIM_FAULT_##name,
#include "sim/fault.def"
#undef X
	SIM_FAULT_COUNT_
};

struct sim_fault {
	enum sim_fault_kind kind;
	double value;
	double p;
	uint64_t left, after; /* left: UINT64_MAX = no limit */
	uint32_t from, to; /* workers, inclusive */
	bool worker_given;
	char path[64]; /* empty: inference calls */
};

/* SYNTAX: not in the grammar; RANGE: a value that makes no sense for its kind. */
must_use enum err sim_fault_parse(struct str spec, struct sim_fault *ret_fault);
const char *sim_fault_word(enum sim_fault_kind k);
const char *sim_fault_help(void); /* the grammar and every kind, for --help and error bodies */
bool sim_fault_per_call(enum sim_fault_kind k); /* one of those decided call by call */

/* The per-call faults of a worker. */
struct sim_faults {
	VEC(struct sim_fault) v;
};
void sim_faults_add(struct sim_faults *f, const struct sim_fault *x);
void sim_faults_clear(struct sim_faults *f);
/* What happens to this call: the first fault that matches and is due, else NULL. Counts it. Valid until the next change. */
const struct sim_fault *sim_faults_pick(struct sim_faults *f, struct str path, bool inference, struct rand *r);

#endif
