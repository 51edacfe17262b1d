/* plan.c: a rank's groups, sorted into what a hit must satisfy. Groups of equal kind, window and block size are one spec:
 * a block counts when all of them hold it. Keys are chained in the smallest block size; a larger group uses every step-th,
 * as the engine's own hash of a larger block is its chain's hash at the end of that block. */
#include "kv/index_priv.h"

#include <string.h>

bool kv_plan_is(const struct kv_plan *p, const struct kv_group *g, size_t n)
{
	if (p->n_groups != n)
		return false;
	for (size_t i = 0; i < n; i++)
		if (p->groups[i].kind != g[i].kind || p->groups[i].window_tok != g[i].window_tok ||
			p->groups[i].block_size != g[i].block_size)
			return false;
	return true;
}

/* A kind we have no word for is taken for the strictest. */
static enum kv_group_kind kind_of(const struct kv_group *g)
{
	bool needs_size = g->kind == KV_GROUP_WINDOW || g->kind == KV_GROUP_CHUNKED;
	return g->kind == KV_GROUP_UNKNOWN || (needs_size && g->window_tok == 0) ? KV_GROUP_FULL : g->kind;
}

static struct kv_spec *spec_for(struct kv_plan *p, const struct kv_group *g)
{
	enum kv_group_kind kind = kind_of(g);
	for (uint32_t i = 0; i < p->n_specs; i++) {
		struct kv_spec *s = &p->specs[i];
		if (s->kind == kind && s->block_size == g->block_size && (kind == KV_GROUP_FULL || s->window_tok == g->window_tok))
			return s;
	}
	struct kv_spec *s = &p->specs[p->n_specs++];
	*s = (struct kv_spec){ .kind = kind, .window_tok = g->window_tok, .block_size = g->block_size };
	return s;
}

static void full_first(struct kv_plan *p)
{
	uint32_t front = 0;
	for (uint32_t i = 0; i < p->n_specs; i++)
		if (p->specs[i].kind == KV_GROUP_FULL) {
			struct kv_spec s = p->specs[i];
			memmove(&p->specs[front + 1], &p->specs[front], (i - front) * sizeof(s));
			p->specs[front++] = s;
		}
}

static uint32_t gcd(uint32_t a, uint32_t b)
{
	while (b) {
		uint32_t r = a % b;
		a = b;
		b = r;
	}
	return a;
}

struct kv_plan *kv_plan_new(const struct kv_group *g, size_t n)
{
	struct kv_plan *p = must_calloc(1, sizeof(*p));
	memcpy(p->groups, g, n * sizeof(*g));
	p->n_groups = n;
	for (size_t i = 0; i < n; i++) {
		if (g[i].block_size == 0)
			continue;
		struct kv_spec *s = spec_for(p, &g[i]);
		s->salts[s->n_groups++] = kv_group_salt((uint32_t)i);
		p->unit = p->unit ? MIN(p->unit, g[i].block_size) : g[i].block_size;
	}
	full_first(p);
	uint64_t align = 1;
	for (uint32_t i = 0; i < p->n_specs; i++) {
		struct kv_spec *s = &p->specs[i];
		s->step = s->block_size / p->unit;
		p->odd |= s->block_size % p->unit != 0;
		align = align / gcd((uint32_t)align, s->block_size) * s->block_size;
		if (align > UINT32_MAX / 2) {
			p->odd = true;
			align = 1;
		}
	}
	p->odd |= p->n_specs == 0;
	p->align = (uint32_t)align;
	p->simple = p->n_specs == 1 && p->specs[0].kind == KV_GROUP_FULL;
	return p;
}

uint32_t kv_plan_max_hit(const struct kv_plan *p, uint32_t n_tok)
{
	uint32_t limit = n_tok ? n_tok - 1 : 0;
	return p->odd ? 0 : limit - limit % p->align;
}

const struct kv_keyset *kv_prompt_set(const struct kv_prompt *p, uint32_t block_size)
{
	for (uint32_t i = 0; i < p->n_sets && i < KV_MAX_SIZES; i++)
		if (p->sets[i].block_size == block_size)
			return &p->sets[i];
	return NULL;
}
