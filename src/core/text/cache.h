/* text/cache.h: digest of a prompt -> its token ids. Bounded by bytes, least recently used goes first; equal prompts that
 * are being asked for share one call.
 *
 *   switch (text_cache_ask(c, digest, &wait, &ids)) {
 *   case TEXT_HIT:   ids is yours (unref it)                        break;
 *   case TEXT_JOIN:  wait->fn will be called by the leader's end    break;
 *   case TEXT_LEAD:  make the call, then text_cache_fill or text_cache_fail for this digest, in every case
 *   }
 * A waiter that gives up calls text_cache_leave. Owner: one hand; one thread. fn may call text_cache_ask, not _free. */
#ifndef TEXT_CACHE_H
#define TEXT_CACHE_H

#include "base/err.h"
#include "base/hash.h"
#include "base/list.h"
#include "text/ids.h"

struct text_cache;
struct text_wait {
	struct list node;
	void (*fn)(struct text_wait *w, enum err e, struct text_ids *ids);   /* ids: borrowed, ref it to keep it; NULL when e != OK */
};
enum text_found { TEXT_HIT, TEXT_JOIN, TEXT_LEAD };

struct text_cache *text_cache_new(size_t max_bytes, size_t max_calls);   /* max_calls: leads open at once; beyond: every ask leads alone */
void text_cache_free(struct text_cache *c);                              /* waiters get ERR_DRAINING first */
enum text_found text_cache_ask(struct text_cache *c, struct hash128 digest, struct text_wait *w, struct text_ids **ret_ids);
void text_cache_fill(struct text_cache *c, struct hash128 digest, struct text_ids *ids);   /* takes its own reference */
void text_cache_fail(struct text_cache *c, struct hash128 digest, enum err why);
void text_cache_leave(struct text_wait *w);                              /* harmless when not waiting */
size_t text_cache_waiting(const struct text_cache *c, struct hash128 digest);
/* The model's tokenizer may have changed (worker restart with another model): forget all ids, keep the open calls. */
void text_cache_forget(struct text_cache *c);
struct text_cache_stats { uint64_t hits, joins, leads, evicted; size_t bytes, entries, calls; } text_cache_stats(const struct text_cache *c);

#endif
