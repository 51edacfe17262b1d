/* base/memo.h: what was made of pieces of text (ids of a stretch, a parsed value), remembered for a whole process.
 *
 * A thing is found by a hash of its text and believed by the text's bytes: a wrong one cannot come out. Bounded in bytes; in each
 * of the table's parts what was not used for longest goes first. A thing lives as long as somebody refers to it.
 *
 *   struct thing { struct memo_item item; ... };               the text's bytes are in the thing's own memory
 *   struct memo_item *it = memo_find(m, kind, text);           a reference; NULL: not known
 *   memo_keep(m, it);                                          m takes a reference of its own
 *   memo_item_unref(it);
 *
 * For any number of threads, which never wait: a part of the table that another thread is in counts as a miss. */
#ifndef BASE_MEMO_H
#define BASE_MEMO_H

#include <stdatomic.h>

#include "base/hash.h"
#include "base/list.h"

struct memo_item {
	struct list used;
	uint64_t key;
	atomic_uint refs;
	struct hash128 kind;                     /* equal texts of other kinds are other things */
	struct str text;
	size_t bytes;                            /* of the whole thing */
	void (*free)(struct memo_item *it);
};
void memo_item_init(struct memo_item *it);       /* one reference; kind, text, bytes and free are set by its maker */
void memo_item_unref(struct memo_item *it);      /* NULL is fine */

struct memo;
/* seed: what nobody outside knows. Its maker frees it, when nobody else is in it. */
struct memo *memo_new(size_t max_bytes, uint64_t seed);
void memo_free(struct memo *m);                  /* NULL is fine, here and below; things that are referred to live on */
must_use struct memo_item *memo_find(struct memo *m, struct hash128 kind, struct str text);
void memo_keep(struct memo *m, struct memo_item *it);   /* in the place of an equal one; not when it is larger than a part */

struct memo_stats { uint64_t evicted; size_t bytes, items; };   /* held now: bytes, items */
struct memo_stats memo_stats(const struct memo *m);

#endif
