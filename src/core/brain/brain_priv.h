/* brain/brain_priv.h: what the files of this room share. */
#ifndef BRAIN_BRAIN_PRIV_H
#define BRAIN_BRAIN_PRIV_H

#include "base/list.h"
#include "base/rand.h"
#include "brain/brain.h"
#include "fleet/fleet.h"
#include "fleet/health.h"
#include "fleet/ledger.h"
#include "sched/cost.h"
#include "sched/pick.h"

enum { BRAIN_RECEIPT_CANDIDATES = 16, BRAIN_NAME_MAX = 96, BRAIN_SPARE_BUFFERS = 4 };

/* A ticket's copy of its prompt's keys. A few buffers are kept for the next requests: fresh memory costs a page fault per 512 keys. */
struct brain_keys { uint64_t *p; size_t cap; };

/* Raised when something is bad, again only after a while, and lowered when it has mended. */
struct brain_alarm { bool on; struct mono at; };

/* Predicted against reported cached tokens of one worker. */
struct brain_truth {
	uint32_t worker;                 /* whose this is; another id: a former tenant of the slot */
	uint64_t predictions, exact;
	double share;                    /* moving, of exact ones */
	uint32_t window;                 /* predictions since the last verdict */
	struct brain_alarm alarm;
	uint64_t told, not_told;         /* good ends whose last whole block its events told in time, and those they did not */
	uint32_t told_window, not_told_window;
	struct brain_alarm told_alarm;
	/* kinds of difference in the window */
	uint32_t wrong, other_length, off_block, all_missing, less, more;
};

/* Prompts of requests that ended well: the worker holds them, and its events may be some hundred milliseconds behind its answers
 * (seen on crowded machines: vLLM publishes from a thread of its own). Until they came, or half a second passed, they stay held as
 * those in flight are. Oldest first. */
enum { BRAIN_SETTLE_US = 500000, BRAIN_SETTLING_MAX = 4096, BRAIN_SETTLING_MAX_TOK = 16 << 20 /* beyond these the oldest is let go */,
       BRAIN_SETTLE_A_TICK = 512 };
struct brain_settling { kv_flight flight; kv_rank_id kv_id; uint32_t tok, worker, rank; struct mono due; };

struct brain_leg_state {
	uint32_t worker, rank;
	kv_rank_id kv_id;
	uint32_t hit_tok, new_tok;
	double base_us;
	bool events;                     /* the overlap rests on events, not on our own dispatches */
};

struct brain_ticket {
	uint64_t id;                     /* 0: free */
	struct list waiting;             /* among those without a stream whose prefill has not ended as predicted */
	struct fleet_charge charge;
	struct brain_leg_state legs[BRAIN_MAX_CANDIDATES];
	uint32_t n_legs, leg;
	uint32_t prompt_tok, output_tok;
	bool stream, keyed, prefix_only, answered, usage_told;
	struct mono leg_started, due, first_at;
	kv_flight flight;
	struct kv_prompt prompt;         /* keys are our own copy; n_sets 0: not kept (any more) */
	struct brain_keys keys;
	uint64_t receipt;
};

struct brain_receipt_entry {
	uint64_t id;                     /* 0: empty */
	char request_id[BRAIN_NAME_MAX], client_id[BRAIN_NAME_MAX], model[BRAIN_NAME_MAX];
	struct mono at;
	const char *reason, *ids, *outcome;
	uint32_t prompt_tok, max_hit_tok, n_candidates, chosen, cached_reported, output_tok;
	int64_t ttft_predicted_us, ttft_measured_us;
	struct brain_candidate candidates[BRAIN_RECEIPT_CANDIDATES];
};

struct brain {
	struct brain_opts opts;
	struct brain_ops ops;
	void *arg;
	struct fleet *fleet;
	struct kv_index *index;
	kv_rank_id no_rank;              /* stands for ranks beyond the index's limit: holds nothing, ever */
	struct rand rand;
	uint64_t generation, next_receipt, strange_tells;
	uint32_t turn;                   /* round robin of requests without a model */
	VEC(struct brain_ticket *) tickets;
	VEC(uint32_t) free_tickets;
	uint64_t ticket_age;
	struct list waiting;
	struct brain_ticket *unposted;   /* its prompt is not in flight yet: done after the plan is on its way */
	struct mono unposted_at;
	struct brain_settling *settling; /* a ring of BRAIN_SETTLING_MAX */
	uint32_t settling_at, n_settling;
	uint64_t settling_tok;
	struct brain_receipt_entry *receipts;
	VEC(struct brain_truth) truths;  /* by fleet slot */
	struct brain_keys spare[BRAIN_SPARE_BUFFERS];
	uint32_t n_spare;
	/* scratch of one ask */
	VEC(struct sched_candidate) candidates;
	VEC(kv_rank_id) ids, scratch;
	VEC(uint32_t) hits;
	VEC(struct kv_load) loads;
};

/* Does what a plan left for later: the prompt in flight, owner memory. Every entry that reads or changes the index calls it. */
void brain_post(struct brain *b);
/* What is settling at this rank is let go: its cache was cleared. */
void brain_settle_clear(struct brain *b, kv_rank_id id);
void brain_ticket_drop_keys(struct brain *b, struct brain_ticket *t);
void brain_ticket_copy_keys(struct brain *b, struct brain_ticket *t, const struct kv_prompt *p);
struct brain_ticket *brain_ticket_new(struct brain *b);
struct brain_ticket *brain_ticket_of(const struct brain *b, uint64_t id);
void brain_ticket_free(struct brain *b, struct brain_ticket *t);
uint64_t brain_receipt_begin(struct brain *b, const struct brain_ask *a, const struct sched_ask *s, const struct brain_plan *p, struct mono now);
struct brain_receipt_entry *brain_receipt_entry(const struct brain *b, uint64_t id);   /* NULL: overwritten since */
void brain_truth_tell(struct brain *b, struct fleet_worker *w, const struct brain_ticket *t, const struct brain_tell *u, struct mono now);
/* Whether the events of a rank told, in time, what a prompt that ended well left there. */
void brain_truth_told(struct brain *b, struct fleet_worker *w, bool told, struct mono now);
const struct brain_truth *brain_truth_of(const struct brain *b, const struct fleet_worker *w);

#endif
