/* key.c: the chained hash of a prompt's blocks. Events and prompts go through the same two functions, so both sides agree
 * whatever the engine's own hash is. */
#include "kv/key.h"

#include "base/hash.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "token ids are hashed where they lie, as little-endian u32");

#define SEED_OF_SEEDS 0x6b76617369722d31u

uint64_t kv_seed(struct str adapter) { return hash_str(adapter, SEED_OF_SEEDS); }

/* Typed and length-prefixed, so no salt equals an image and no two extras equal one longer. */
static uint64_t add_extra(uint64_t h, const struct kv_extra *x)
{
	const uint64_t head[3] = { (uint64_t)x->kind, (uint64_t)x->offset_tok, x->id.n };
	return hash_str(x->id, hash_bytes(head, sizeof(head), h));
}

uint64_t kv_key_next(uint64_t prev, const uint32_t *ids, uint32_t n_ids, const struct kv_extra *x, size_t n_x)
{
	uint64_t h = hash_bytes(ids, (size_t)n_ids * sizeof(*ids), prev);
	for (size_t i = 0; i < n_x; i++)
		h = add_extra(h, &x[i]);
	return h;
}

/* Extras in the order the events have them: images, then the salt (first block only). */
static uint64_t add_prompt_extras(uint64_t h, const struct kv_prompt_extras *x, uint64_t start_tok, uint32_t block_size)
{
	for (size_t i = 0; i < x->n_mm; i++) {
		const struct kv_mm_item *m = &x->mm[i];
		if (m->offset_tok < start_tok + block_size && (uint64_t)m->offset_tok + m->len_tok > start_tok)
			h = add_extra(h, &(struct kv_extra){ KV_EXTRA_MM, m->hash, (int64_t)m->offset_tok - (int64_t)start_tok });
	}
	if (start_tok == 0 && x->cache_salt.n)
		h = add_extra(h, &(struct kv_extra){ KV_EXTRA_SALT, x->cache_salt, 0 });
	return h;
}

size_t kv_prompt_keys(
	uint64_t seed, const uint32_t *ids, size_t n_ids, uint32_t block_size, const struct kv_prompt_extras *x, uint64_t *ret_keys)
{
	size_t n = block_size ? n_ids / block_size : 0;
	uint64_t key = seed;
	for (size_t i = 0; i < n; i++) {
		key = kv_key_next(key, ids + i * block_size, block_size, NULL, 0);
		if (x)
			key = add_prompt_extras(key, x, i * block_size, block_size);
		ret_keys[i] = key;
	}
	return n;
}
