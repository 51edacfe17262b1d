/* kv/key.h: block keys: our own chained hash of a prompt's blocks, equal for events and for prompts.
 *
 * key_0 = hash(seed, block 0), key_i = XXH3-64(key_{i-1}, token ids as little-endian u32, typed length-prefixed extras).
 * The seed depends on the adapter name only ("" = base model): which ranks are candidates is decided by the model, so
 * the model's many names never matter. Extras: salt (block 0 only), images (content hash, offset relative to the block
 * start, may be negative), embeds digests. An event's leading bare string equal to its lora_name is no extra.
 * Source: vllm-observed.md I.3 rule 1, design routing.md section 1. Pure; owns nothing. */
#ifndef KV_KEY_H
#define KV_KEY_H

#include "base/str.h"

enum kv_extra_kind { KV_EXTRA_SALT = 1, KV_EXTRA_MM = 2, KV_EXTRA_EMBEDS = 3 };
struct kv_extra { enum kv_extra_kind kind; struct str id; int64_t offset_tok; };

uint64_t kv_seed(struct str adapter);
/* The key of one block after `prev` (the seed for block 0). */
uint64_t kv_key_next(uint64_t prev, const uint32_t *ids, uint32_t n_ids, const struct kv_extra *x, size_t n_x);

/* One multimodal item of a prompt: content hash, placeholder range. */
struct kv_mm_item { struct str hash; uint32_t offset_tok, len_tok; };
struct kv_prompt_extras { struct str cache_salt; const struct kv_mm_item *mm; size_t n_mm; };
/* Keys of the whole blocks of a prompt: returns how many (n_ids / block_size) were written to ret_keys (room for that many). x may be NULL. */
size_t kv_prompt_keys(uint64_t seed, const uint32_t *ids, size_t n_ids, uint32_t block_size, const struct kv_prompt_extras *x, uint64_t *ret_keys);

/* A prompt as the index sees it: its keys for each block size in use (a worker uses the set of its group's size). */
enum { KV_MAX_SIZES = 4 };
struct kv_keyset { uint32_t block_size; uint32_t n; const uint64_t *keys; };
struct kv_prompt { uint32_t n_tok; uint32_t n_sets; struct kv_keyset sets[KV_MAX_SIZES]; };

#endif
