#include "sim/pool.h"

#include "base/hash.h"
#include "base/map.h"

/* Copies of one content form a chain in order of age: `first` of the map, then next_copy; the first knows the last, as
 * there may be thousands (one request sent again and again stores its answer each time). */
struct block {
	uint64_t hash;
	uint32_t refs;
	uint32_t prev, next; /* free queue; block 0 is its head */
	uint32_t prev_copy, next_copy, last_copy;
	uint32_t group;
	bool holds;
};

struct sim_pool {
	struct block *blocks;
	uint32_t n;
	size_t free_n, held_n;
	struct map first; /* (group, hash) -> oldest copy */
	struct sim_batch *out;
};

static uint64_t key_of(uint32_t group, uint64_t hash) { return hash_mix(hash + (uint64_t)group * 0x9e3779b97f4a7c15u); }

static void queue_insert(struct sim_pool *p, uint32_t after, uint32_t b)
{
	struct block *v = p->blocks;
	v[b].prev = after;
	v[b].next = v[after].next;
	v[v[after].next].prev = b;
	v[after].next = b;
	p->free_n++;
}

static void queue_remove(struct sim_pool *p, uint32_t b)
{
	struct block *v = p->blocks;
	v[v[b].prev].next = v[b].next;
	v[v[b].next].prev = v[b].prev;
	p->free_n--;
}

static void queue_push_back(struct sim_pool *p, uint32_t b) { queue_insert(p, p->blocks[0].prev, b); }

struct sim_pool *sim_pool_new(uint32_t blocks, struct sim_batch *out)
{
	must(blocks >= 2);
	struct sim_pool *p = must_calloc(1, sizeof(*p));
	p->blocks = must_calloc(blocks, sizeof(*p->blocks));
	p->n = blocks;
	p->out = out;
	map_init(&p->first);
	for (uint32_t b = 1; b < blocks; b++)
		queue_push_back(p, b);
	return p;
}

void sim_pool_free(struct sim_pool *p)
{
	if (!p)
		return;
	map_done(&p->first);
	free(p->blocks);
	free(p);
}

static void forget(struct sim_pool *p, uint32_t b)
{
	struct block *v = p->blocks, *x = &v[b];
	uint64_t key = key_of(x->group, x->hash), first = b;
	if (x->prev_copy) {
		v[x->prev_copy].next_copy = x->next_copy;
		must(map_get(&p->first, key, &first));
	} else if (x->next_copy) {
		v[x->next_copy].last_copy = x->last_copy;
		map_put(&p->first, key, x->next_copy);
	} else {
		map_del(&p->first, key);
	}
	if (x->next_copy)
		v[x->next_copy].prev_copy = x->prev_copy;
	else if (x->prev_copy)
		v[first].last_copy = x->prev_copy;
	x->prev_copy = x->next_copy = x->last_copy = 0;
	x->holds = false;
	p->held_n--;
}

uint32_t sim_pool_take(struct sim_pool *p)
{
	uint32_t b = p->blocks[0].next;
	if (!b)
		return SIM_NO_BLOCK;
	queue_remove(p, b);
	if (p->blocks[b].holds) {
		VEC_PUSH(&p->out->ev, sim_batch_removal(p->out, SIM_GPU, p->blocks[b].group, p->blocks[b].hash));
		forget(p, b);
	}
	p->blocks[b].refs = 1;
	return b;
}

void sim_pool_touch(struct sim_pool *p, uint32_t b)
{
	if (p->blocks[b].refs++ == 0)
		queue_remove(p, b);
}

void sim_pool_drop(struct sim_pool *p, uint32_t b)
{
	must(p->blocks[b].refs > 0);
	if (--p->blocks[b].refs)
		return;
	if (p->blocks[b].holds)
		queue_push_back(p, b);
	else
		queue_insert(p, 0, b);
}

void sim_pool_hold(struct sim_pool *p, uint32_t b, uint32_t group, uint64_t hash)
{
	struct block *v = p->blocks;
	must(!v[b].holds);
	v[b].holds = true;
	v[b].group = group;
	v[b].hash = hash;
	p->held_n++;
	uint64_t first;
	v[b].last_copy = b;
	if (!map_get(&p->first, key_of(group, hash), &first)) {
		map_put(&p->first, key_of(group, hash), b);
		return;
	}
	v[b].prev_copy = v[first].last_copy;
	v[v[first].last_copy].next_copy = b;
	v[first].last_copy = b;
}

uint32_t sim_pool_find(const struct sim_pool *p, uint32_t group, uint64_t hash)
{
	uint64_t b;
	return map_get(&p->first, key_of(group, hash), &b) ? (uint32_t)b : SIM_NO_BLOCK;
}

bool sim_pool_in_use(const struct sim_pool *p, uint32_t b) { return p->blocks[b].refs > 0; }
size_t sim_pool_free_blocks(const struct sim_pool *p) { return p->free_n; }
size_t sim_pool_held(const struct sim_pool *p) { return p->held_n; }
uint32_t sim_pool_size(const struct sim_pool *p) { return p->n - 1; }

bool sim_pool_reset(struct sim_pool *p)
{
	if (p->free_n != p->n - 1)
		return false;
	for (uint32_t b = 1; b < p->n; b++)
		p->blocks[b].holds = false, p->blocks[b].prev_copy = p->blocks[b].next_copy = p->blocks[b].last_copy = 0;
	map_done(&p->first);
	map_init(&p->first);
	p->held_n = 0;
	sim_batch_cleared(p->out);
	return true;
}
