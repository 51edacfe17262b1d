/* fleet/fleet_priv.h: what the files of this room share. */
#ifndef FLEET_FLEET_PRIV_H
#define FLEET_FLEET_PRIV_H

#include "fleet/fleet.h"

struct fleet_slot_entry { struct fleet_worker *worker; uint64_t age; };
struct fleet {
	struct fleet_ops ops;
	void *arg;
	VEC(struct fleet_slot_entry) slots;
	size_t n_workers;
	VEC(struct fleet_pool *) pools;
	struct map models;               /* hash of (pool, name) -> fleet_model */
	bool models_stale;               /* names or members changed since the index was made */
};

struct fleet_pool *fleet_pool_of(struct fleet *f, struct str name);
void fleet_names_free(struct fleet_worker *w);
void fleet_models_free(struct fleet *f);
void fleet_models_forget_pool(struct fleet *f, const struct fleet_pool *p);
void fleet_panic_check(struct fleet *f, struct fleet_pool *p);

#endif
