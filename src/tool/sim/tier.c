#include "sim/tier.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/must.h"

/* Node 0 ends the list on both sides: its `newer` is the oldest, its `older` the newest. */
struct node {
	uint64_t hash;
	uint32_t older, newer;
};

struct sim_tier {
	struct map at; /* hash -> node */
	struct node *v;
	uint32_t size, n;
};

struct sim_tier *sim_tier_new(uint32_t blocks)
{
	struct sim_tier *t = must_calloc(1, sizeof(*t));
	must(blocks > 0);
	map_init(&t->at);
	t->size = blocks;
	t->v = must_calloc((size_t)blocks + 1, sizeof(*t->v));
	return t;
}

void sim_tier_free(struct sim_tier *t)
{
	if (!t)
		return;
	map_done(&t->at);
	free(t->v);
	free(t);
}

uint32_t sim_tier_size(const struct sim_tier *t) { return t->size; }
uint32_t sim_tier_held(const struct sim_tier *t) { return t->n; }

bool sim_tier_has(const struct sim_tier *t, uint64_t hash)
{
	uint64_t i;
	return map_get(&t->at, hash, &i);
}

static void cut(struct sim_tier *t, uint32_t i)
{
	t->v[t->v[i].older].newer = t->v[i].newer;
	t->v[t->v[i].newer].older = t->v[i].older;
}

static void put_newest(struct sim_tier *t, uint32_t i)
{
	t->v[i].older = t->v[0].older;
	t->v[i].newer = 0;
	t->v[t->v[0].older].newer = i;
	t->v[0].older = i;
}

bool sim_tier_touch(struct sim_tier *t, uint64_t hash)
{
	uint64_t i;
	if (!map_get(&t->at, hash, &i))
		return false;
	cut(t, (uint32_t)i);
	put_newest(t, (uint32_t)i);
	return true;
}

bool sim_tier_add(struct sim_tier *t, uint64_t hash, uint64_t *ret_evicted)
{
	bool full = t->n == t->size;
	uint32_t i = full ? t->v[0].newer : ++t->n;
	if (full) {
		*ret_evicted = t->v[i].hash;
		map_del(&t->at, *ret_evicted);
		cut(t, i);
	}
	t->v[i].hash = hash;
	put_newest(t, i);
	map_put(&t->at, hash, i);
	return full;
}
