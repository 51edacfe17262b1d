/* tok/memo.h: what this process has tokenised lately: stretches of text between safe cuts, and their ids. The next turn of a chat, or
 * another chat with the same instructions or documents, costs the text that is new. A stretch may stand anywhere in any text of the
 * same tokenizer. Found, bounded and shared by threads as base/memo.h says. */
#ifndef TOK_MEMO_H
#define TOK_MEMO_H

#include "base/memo.h"
#include "tok/tok.h"

enum {
	TOK_MEMO_LEAST_BYTES = 1024, /* a good size */
	TOK_MEMO_MOST_BYTES = 64 << 10, /* longer stretches are not kept */
	TOK_MEMO_PIECE_BYTES = 128, /* an ordinary text's end is kept too, from so much on: special tokens stand around the text */
};
struct tok_memo_opts {
	size_t max_bytes;
	size_t least_bytes; /* a stretch ends at the first safe cut behind so much; not 0 */
	uint64_t seed; /* what nobody outside knows */
};
struct tok_memo *tok_memo_new(const struct tok_memo_opts *o); /* one reference */
struct tok_memo *tok_memo_ref(struct tok_memo *m); /* NULL is fine, here and in the next two */
void tok_memo_unref(struct tok_memo *m); /* the last one frees it */
struct memo *tok_memo_table(struct tok_memo *m); /* what it keeps them in: others may keep theirs there too, within the same bound */

size_t tok_memo_least(const struct tok_memo *m);

struct tok_stretch {
	struct str text;
	enum tok_from from;
	bool ordinary; /* as in tok_job */
};
/* Appends the stretch's ids; false: not known. */
bool tok_memo_find(struct tok_memo *m, const struct tok *t, const struct tok_stretch *s, struct tok_ids *ids);
void tok_memo_keep(struct tok_memo *m, const struct tok *t, const struct tok_stretch *s, struct tok_ids ids);
void tok_memo_count(struct tok_memo *m, size_t known_bytes, size_t new_bytes); /* a text was done: so much of it was known */

struct tok_memo_stats {
	uint64_t known_bytes, new_bytes; /* text that was found, and that was not */
	struct memo_stats table;
};
struct tok_memo_stats tok_memo_stats(const struct tok_memo *m);

#endif
