#include "sim/cache.h"

#include <string.h>

#include "base/hash.h"
#include "sim/tier.h"

struct sim_cache {
	struct sim_cache_opts o;
	struct sim_batch batch;
	struct sim_pool *pool;
	struct sim_tier *below; /* NULL: none */
	VEC(struct sim_event) later; /* the tier's, in the batch's memory: they come behind the GPU's */
};

struct sim_cache *sim_cache_new(const struct sim_cache_opts *o)
{
	struct sim_cache *c = must_calloc(1, sizeof(*c));
	c->o = *o;
	must(o->block_tok > 0 && o->n_groups <= SIM_MAX_GROUPS);
	if (!c->o.n_groups)
		c->o.n_groups = 1;
	sim_batch_init(&c->batch);
	c->pool = sim_pool_new(o->blocks, &c->batch);
	must(!o->cpu_blocks || (c->o.n_groups == 1 && c->o.groups[0].spec == SIM_FULL));
	if (o->cpu_blocks && !o->caching_off)
		c->below = sim_tier_new(o->cpu_blocks);
	return c;
}

void sim_cache_free(struct sim_cache *c)
{
	if (!c)
		return;
	sim_pool_free(c->pool);
	sim_tier_free(c->below);
	VEC_FREE(&c->later);
	sim_batch_done(&c->batch);
	free(c);
}

struct sim_batch *sim_cache_batch(struct sim_cache *c)
{
	for (size_t i = 0; i < c->later.n; i++)
		VEC_PUSH(&c->batch.ev, c->later.p[i]);
	c->later.n = 0;
	return &c->batch;
}

struct sim_pool *sim_cache_pool(struct sim_cache *c) { return c->pool; }
uint32_t sim_cache_block_tok(const struct sim_cache *c) { return c->o.block_tok; }

bool sim_cache_has_mamba(const struct sim_cache *c)
{
	for (uint32_t g = 0; g < c->o.n_groups; g++)
		if (c->o.groups[g].spec == SIM_MAMBA)
			return true;
	return false;
}

/* Blocks in a row, ending at the hit, without which a group cannot continue there. */
static uint32_t tail_blocks(const struct sim_cache *c, uint32_t g)
{
	const struct sim_group *gr = &c->o.groups[g];
	return gr->spec == SIM_WINDOW ? (uint32_t)div_ceil_u64(gr->window_tok - 1, c->o.block_tok) : 1;
}

/* Blocks a group has in use at most while a sequence of `blocks` blocks runs. */
static uint64_t working_blocks(const struct sim_cache *c, uint32_t g, uint64_t blocks)
{
	uint64_t chunk = div_ceil_u64(c->o.chunk_tok, c->o.block_tok);
	switch (c->o.groups[g].spec) {
	case SIM_FULL: return blocks;
	case SIM_WINDOW: return MIN(blocks, tail_blocks(c, g) + chunk + 1);
	case SIM_MAMBA: return MIN(blocks, 2u);
	}
	return blocks;
}

uint64_t sim_cache_capacity_tok(const struct sim_cache *c)
{
	uint64_t size = sim_pool_size(c->pool), fixed = 0, full = 0;
	for (uint32_t g = 0; g < c->o.n_groups; g++) {
		if (c->o.groups[g].spec == SIM_FULL)
			full++;
		else
			fixed += working_blocks(c, g, UINT32_MAX);
	}
	if (fixed >= size)
		return 0;
	return full ? (size - fixed) / full * c->o.block_tok : UINT32_MAX;
}

/* ---- identity of blocks --------------------------------------------------------------------------------------- */

/* Our own chain, deliberately neither vLLM's digest nor anyone's index key. */
#define CHAIN_START 0x5eed0fb10c5c4a11u

static bool overlaps(const struct sim_mm *m, uint64_t from, uint64_t n)
{
	return m->at_tok < from + n && from < (uint64_t)m->at_tok + m->n_tok;
}

static uint64_t extra_digest(const struct sim_identity *id, uint64_t from, uint64_t n)
{
	uint64_t h = id->lora.n ? hash_str(id->lora_path, hash_str(id->lora, 1)) : 0;
	for (size_t i = 0; i < id->n_mm; i++)
		if (overlaps(&id->mm[i], from, n))
			h = hash_str(id->mm[i].hash, hash_mix(h + id->mm[i].at_tok - from));
	if (from == 0 && id->salt.n)
		h = hash_str(id->salt, h + 2);
	return h;
}

static void extend_hashes(const struct sim_cache *c, struct sim_seq *s)
{
	uint32_t b = c->o.block_tok;
	while ((s->hash.n + 1) * b <= s->tok.n) {
		size_t i = s->hash.n;
		uint64_t parent = i ? s->hash.p[i - 1] : CHAIN_START;
		uint64_t seed = hash_mix(parent) ^ hash_mix(extra_digest(&s->id, i * b, b));
		VEC_PUSH(&s->hash, hash_bytes(&s->tok.p[i * b], b * sizeof(uint32_t), seed));
	}
}

void sim_seq_init(struct sim_seq *s, const struct sim_identity *id, const uint32_t *tok, size_t n)
{
	*s = (struct sim_seq){ .id = *id, .prompt_tok = (uint32_t)n };
	s->tok.p = must_malloc((n + 8) * sizeof(*tok));
	s->tok.cap = n + 8;
	s->tok.n = n;
	memcpy(s->tok.p, tok, n * sizeof(*tok));
}

void sim_seq_done(struct sim_seq *s)
{
	VEC_FREE(&s->tok);
	VEC_FREE(&s->hash);
	for (size_t g = 0; g < SIM_MAX_GROUPS; g++)
		VEC_FREE(&s->block[g]);
}

/* ---- the hit rule --------------------------------------------------------------------------------------------- */

static bool same_spec(const struct sim_group *a, const struct sim_group *b)
{
	return a->spec == b->spec && (a->spec != SIM_WINDOW || a->window_tok == b->window_tok);
}

/* Groups of one spec are looked up together: block i counts when all of them hold it. */
static bool held(const struct sim_cache *c, const struct sim_seq *s, uint32_t like, uint32_t i)
{
	for (uint32_t g = like; g < c->o.n_groups; g++)
		if (same_spec(&c->o.groups[g], &c->o.groups[like]) && !sim_pool_find(c->pool, g, s->hash.p[i]))
			return false;
	return true;
}

static bool first_of_spec(const struct sim_cache *c, uint32_t g)
{
	for (uint32_t i = 0; i < g; i++)
		if (same_spec(&c->o.groups[i], &c->o.groups[g]))
			return false;
	return true;
}

static uint32_t longest(const struct sim_cache *c, const struct sim_seq *s, uint32_t g, uint32_t limit)
{
	uint32_t run = 0, want = tail_blocks(c, g);
	if (c->o.groups[g].spec == SIM_FULL) {
		while (run < limit && held(c, s, g, run))
			run++;
		return run;
	}
	for (uint32_t i = limit; i-- > 0;) {
		run = held(c, s, g, i) ? run + 1 : 0;
		if (run == want)
			return i + run;
	}
	return run; /* a shorter run that begins at block 0 */
}

uint32_t sim_cache_match(struct sim_cache *c, struct sim_seq *s)
{
	extend_hashes(c, s);
	uint32_t hit = c->o.caching_off || !s->tok.n ? 0 : (uint32_t)((s->tok.n - 1) / c->o.block_tok);
	uint32_t furthest = 0, before;
	for (uint32_t g = 0; g < c->o.n_groups; g++)
		if (c->o.groups[g].spec == SIM_FULL && first_of_spec(c, g))
			hit = furthest = longest(c, s, g, hit);
	do {
		before = hit;
		for (uint32_t g = 0; g < c->o.n_groups && hit; g++)
			if (c->o.groups[g].spec != SIM_FULL && first_of_spec(c, g))
				hit = longest(c, s, g, hit);
	} while (hit != before);
	s->hit_blocks = hit;
	s->junction_blocks = furthest > hit ? furthest : 0;
	return hit * c->o.block_tok;
}

uint32_t sim_cache_match_below(const struct sim_cache *c, const struct sim_seq *s)
{
	uint32_t end = s->hit_blocks;
	while (c->below && end < s->hash.n && sim_tier_has(c->below, s->hash.p[end]))
		end++;
	return (end - s->hit_blocks) * c->o.block_tok;
}

uint32_t sim_cache_below_blocks(const struct sim_cache *c) { return c->below ? sim_tier_held(c->below) : 0; }

/* First block of a group that a hit really uses: earlier ones may be missing. */
static uint32_t first_used(const struct sim_cache *c, const struct sim_seq *s, uint32_t g)
{
	uint32_t tail = tail_blocks(c, g);
	return c->o.groups[g].spec == SIM_FULL || s->hit_blocks < tail ? 0 : s->hit_blocks - tail;
}

bool sim_cache_fits(const struct sim_cache *c, const struct sim_seq *s)
{
	uint64_t need = 0, blocks = div_ceil_u64(s->tok.n, c->o.block_tok);
	for (uint32_t g = 0; g < c->o.n_groups; g++) {
		need += working_blocks(c, g, blocks - s->hit_blocks);
		for (uint32_t i = first_used(c, s, g); i < s->hit_blocks; i++)
			need += !sim_pool_in_use(c->pool, sim_pool_find(c->pool, g, s->hash.p[i]));
	}
	return need <= sim_pool_free_blocks(c->pool);
}

void sim_cache_attach(struct sim_cache *c, struct sim_seq *s)
{
	for (uint32_t g = 0; g < c->o.n_groups; g++) {
		uint32_t from = first_used(c, s, g);
		for (uint32_t i = 0; i < s->hit_blocks; i++) {
			uint32_t b = i < from ? SIM_NO_BLOCK : sim_pool_find(c->pool, g, s->hash.p[i]);
			if (b)
				sim_pool_touch(c->pool, b);
			VEC_PUSH(&s->block[g], b);
		}
		s->committed[g] = s->hit_blocks;
		s->dropped[g] = from;
	}
}

/* ---- growing ------------------------------------------------------------------------------------------------------ */

/* Blocks before this one are not looked at any more by tokens from done_tok on. */
static uint32_t left_behind(const struct sim_cache *c, uint32_t g, uint32_t done_tok)
{
	const struct sim_group *gr = &c->o.groups[g];
	switch (gr->spec) {
	case SIM_FULL: return 0;
	case SIM_WINDOW: return done_tok + 1 > gr->window_tok ? (done_tok + 1 - gr->window_tok) / c->o.block_tok : 0;
	case SIM_MAMBA: return done_tok ? (uint32_t)div_ceil_u64(done_tok, c->o.block_tok) - 1 : 0;
	}
	return 0;
}

/* They are freed without a word; what they hold stays findable until evicted. */
static void drop_behind(struct sim_cache *c, struct sim_seq *s, uint32_t g, uint32_t done_tok)
{
	uint32_t end = MIN(left_behind(c, g, done_tok), (uint32_t)s->block[g].n);
	for (uint32_t i = s->dropped[g]; i < end; i++) {
		if (s->block[g].p[i])
			sim_pool_drop(c->pool, s->block[g].p[i]);
		s->block[g].p[i] = SIM_NO_BLOCK;
	}
	s->dropped[g] = MAX(s->dropped[g], end);
}

/* A Mamba group keeps one running state, in the last block; the others of a chunk stay empty. */
static size_t blocks_missing(const struct sim_cache *c, const struct sim_seq *s, uint32_t g, size_t upto_blocks)
{
	size_t n = upto_blocks > s->block[g].n ? upto_blocks - s->block[g].n : 0;
	return c->o.groups[g].spec == SIM_MAMBA ? MIN(n, 1u) : n;
}

bool sim_cache_grow(struct sim_cache *c, struct sim_seq *s, uint32_t done_tok, uint32_t upto_tok)
{
	size_t upto_blocks = div_ceil_u64(upto_tok, c->o.block_tok), need = 0;
	for (uint32_t g = 0; g < c->o.n_groups; g++) {
		drop_behind(c, s, g, done_tok);
		need += blocks_missing(c, s, g, upto_blocks);
	}
	if (need > sim_pool_free_blocks(c->pool))
		return false;
	for (uint32_t g = 0; g < c->o.n_groups; g++)
		while (s->block[g].n < upto_blocks) {
			bool empty = c->o.groups[g].spec == SIM_MAMBA && s->block[g].n + 1 < upto_blocks;
			VEC_PUSH(&s->block[g], empty ? SIM_NO_BLOCK : sim_pool_take(c->pool));
		}
	return true;
}

/* ---- committing --------------------------------------------------------------------------------------------------- */

/* Sparse storing: is block i part of a tail that a resend, the next of this family, or a checkpoint can use? */
static bool in_kept_tail(const struct sim_cache *c, const struct sim_seq *s, uint32_t g, uint32_t i)
{
	uint32_t tail = tail_blocks(c, g), b = c->o.block_tok;
	if (c->o.retain_tok == SIM_RETAIN_ALL)
		return true;
	uint32_t ends[3] = { (s->prompt_tok - 1) / b, s->junction_blocks, 0 };
	if (c->o.retain_tok >= b)
		ends[2] = (uint32_t)div_ceil_u64(i + 1, c->o.retain_tok / b) * (c->o.retain_tok / b);
	for (size_t k = 0; k < 3; k++)
		if (i < ends[k] && i + tail >= ends[k])
			return true;
	return false;
}

static bool kept(const struct sim_cache *c, const struct sim_seq *s, uint32_t g, uint32_t i)
{
	return s->block[g].p[i] && (c->o.groups[g].spec == SIM_FULL || in_kept_tail(c, s, g, i));
}

static struct sim_extra extra_of(struct sim_batch *out, const struct sim_identity *id, uint64_t from, uint64_t n)
{
	struct sim_extra x = { .lora = id->lora, .salt = from == 0 ? id->salt : (struct str){ 0 } };
	size_t items = 0;
	for (size_t i = 0; i < id->n_mm; i++)
		items += overlaps(&id->mm[i], from, n);
	struct sim_mmkey *keys = items ? arena_new(&out->mem, struct sim_mmkey, items) : NULL;
	for (size_t i = 0; i < id->n_mm; i++)
		if (overlaps(&id->mm[i], from, n))
			keys[x.n_mm++] =
				(struct sim_mmkey){ arena_str(&out->mem, id->mm[i].hash), (int64_t)id->mm[i].at_tok - (int64_t)from };
	x.mm = keys;
	if (x.lora.n)
		x.lora = arena_str(&out->mem, x.lora);
	if (x.salt.n)
		x.salt = arena_str(&out->mem, x.salt);
	return x;
}

static struct sim_event stored_event(struct sim_cache *c, const struct sim_seq *s, uint32_t g, uint32_t from, uint32_t upto)
{
	uint32_t b = c->o.block_tok, n = (upto - from) * b;
	uint32_t *tok = arena_new(&c->batch.mem, uint32_t, n);
	memcpy(tok, &s->tok.p[(size_t)from * b], n * sizeof(*tok));
	struct str lora = s->id.lora.n ? arena_str(&c->batch.mem, s->id.lora) : (struct str){ 0 };
	struct str session = s->id.session.n ? arena_str(&c->batch.mem, s->id.session) : (struct str){ 0 };
	return (struct sim_event){ .kind = SIM_STORED,
		.group = g,
		.has_parent = from > 0,
		.parent = from ? s->hash.p[from - 1] : 0,
		.tok = tok,
		.n_tok = n,
		.block_tok = b,
		.lora = lora,
		.lora_id = s->id.lora_id,
		.spec = c->o.groups[g].spec,
		.window_tok = c->o.groups[g].window_tok,
		.session = session };
}

static void commit_group(struct sim_cache *c, struct sim_seq *s, uint32_t g, uint32_t upto)
{
	uint32_t from = s->committed[g], b = c->o.block_tok;
	struct sim_event v = stored_event(c, s, g, from, upto);
	uint64_t *hashes = arena_new(&c->batch.mem, uint64_t, upto - from);
	struct sim_extra *extra = arena_new(&c->batch.mem, struct sim_extra, upto - from);
	for (uint32_t i = from; i < upto; i++) {
		if (!kept(c, s, g, i))
			continue;
		sim_pool_hold(c->pool, s->block[g].p[i], g, s->hash.p[i]);
		extra[v.n_hashes] = extra_of(&c->batch, &s->id, (uint64_t)i * b, b);
		hashes[v.n_hashes++] = s->hash.p[i];
	}
	v.hashes = hashes;
	v.extra = extra;
	s->committed[g] = upto;
	VEC_PUSH(&c->batch.ev, v);
}

static struct sim_event below_event(struct sim_cache *c, const struct sim_seq *s, uint32_t i)
{
	struct sim_event v = { .kind = SIM_STORED, .bare = true };
	uint64_t *hash = arena_new(&c->batch.mem, uint64_t, 1);
	*hash = s->hash.p[i];
	if (c->o.cpu_events_full)
		v = stored_event(c, s, 0, i, i + 1);
	v.medium = SIM_CPU;
	v.hashes = hash;
	v.n_hashes = 1;
	v.session = (struct str){ 0 };
	return v;
}

/* What is there already becomes the newest, its tail less so than its head; a sequence that the tier cannot hold stays out. */
static void offload(struct sim_cache *c, struct sim_seq *s, uint32_t upto)
{
	uint64_t evicted;
	if (!c->below || upto <= s->offered || upto > sim_tier_size(c->below))
		return;
	s->offered = upto;
	for (uint32_t i = upto; i-- > 0;)
		(void)sim_tier_touch(c->below, s->hash.p[i]);
	for (uint32_t i = 0; i < upto; i++) {
		if (sim_tier_has(c->below, s->hash.p[i]))
			continue;
		if (sim_tier_add(c->below, s->hash.p[i], &evicted))
			VEC_PUSH(&c->later, sim_batch_removal(&c->batch, SIM_CPU, 0, evicted));
		VEC_PUSH(&c->later, below_event(c, s, i));
	}
}

void sim_cache_commit(struct sim_cache *c, struct sim_seq *s, uint32_t upto_tok)
{
	if (c->o.caching_off)
		return;
	extend_hashes(c, s);
	uint32_t upto = upto_tok / c->o.block_tok;
	for (uint32_t g = 0; g < c->o.n_groups; g++)
		if (upto > s->committed[g])
			commit_group(c, s, g, upto);
	offload(c, s, upto);
}

void sim_cache_announce_hit(struct sim_cache *c, struct sim_seq *s)
{
	for (uint32_t g = 0; g < c->o.n_groups && s->hit_blocks; g++) {
		if (c->o.groups[g].spec != SIM_FULL)
			continue;
		struct sim_event v = stored_event(c, s, g, 0, s->hit_blocks);
		uint64_t *hashes = arena_new(&c->batch.mem, uint64_t, s->hit_blocks);
		struct sim_extra *extra = arena_new(&c->batch.mem, struct sim_extra, s->hit_blocks);
		for (uint32_t i = 0; i < s->hit_blocks; i++) {
			hashes[i] = s->hash.p[i];
			extra[i] = extra_of(&c->batch, &s->id, (uint64_t)i * c->o.block_tok, c->o.block_tok);
		}
		v.hashes = hashes, v.extra = extra, v.n_hashes = s->hit_blocks;
		VEC_PUSH(&c->batch.ev, v);
	}
}

void sim_cache_release(struct sim_cache *c, struct sim_seq *s)
{
	for (uint32_t g = 0; g < c->o.n_groups; g++) {
		for (size_t i = s->block[g].n; i-- > 0;)
			if (s->block[g].p[i])
				sim_pool_drop(c->pool, s->block[g].p[i]);
		s->block[g].n = 0;
		s->committed[g] = s->dropped[g] = 0;
	}
	s->hit_blocks = s->junction_blocks = s->offered = 0;
}
