/* cut.c: where a text may be cut in two whose ids stand side by side. Behind an added token, unless it swallows the space that
 * follows. And in plain text at places that no splitter, merge, normal form or token looks across, which are found from
 * three bytes: byte-level, between a line end and an ASCII letter or digit; spaced, between such a letter and a space before
 * another. What makes a tokenizer unfit for either was found when it was loaded (load.c). */
#include <string.h>

#include "tok/tok_priv.h"

enum { WINDOW = 4096 }; /* so that neither kind is looked for much further than where the other one was */

static bool spaced_cut(struct str text, size_t p) { return p + 1 < text.n && tok_alnum(text.p[p - 1]) && tok_alnum(text.p[p + 1]); }

/* The first cut p in plain text, 0 < from <= p < upto; 0: none. */
static size_t plain_cut(const struct tok *t, struct str text, size_t from, size_t upto)
{
	bool bytes = t->kind == TOK_BYTES;
	size_t at = bytes ? from - 1 : from, end = bytes ? upto - 1 : upto; /* of the line end, or of the space */
	for (const char *q; at < end && (q = memchr(text.p + at, bytes ? '\n' : ' ', end - at)); at++) {
		at = (size_t)(q - text.p);
		if (bytes ? tok_alnum(text.p[at + 1]) : spaced_cut(text, at))
			return bytes ? at + 1 : at;
	}
	return 0;
}

size_t tok_cut_ordinary(const struct tok *t, struct str text, size_t least)
{
	return t->plain_cuts && least < text.n ? plain_cut(t, text, least, text.n) : 0;
}

size_t tok_cut_next(const struct tok *t, struct str text, size_t least, enum tok_from *ret_from)
{
	if (least > text.n)
		return 0;
	size_t done = tok_trie_apart(&t->raw, text, least - 1); /* tokens that begin before it are seen, or end before least */
	for (size_t upto, plain; (t->token_cuts || t->plain_cuts) && done < text.n; done = MAX(done, upto)) {
		upto = MIN(MAX(least, done) + WINDOW, text.n);
		plain = t->plain_cuts ? plain_cut(t, text, MAX(least, done), upto) : 0;
		if (plain)
			upto = plain;
		for (struct tok_match m; t->token_cuts && tok_trie_before(&t->raw, text, (struct tok_range){ done, upto }, &m); done = m.end)
			if (m.end >= least && !t->tokens[m.token].rstrip) {
				*ret_from = TOK_FROM_TOKEN;
				return m.end;
			}
		if (plain) {
			*ret_from = TOK_FROM_TEXT;
			return plain;
		}
	}
	return 0;
}

size_t tok_cut_last(const struct tok *t, struct str text)
{
	size_t longest = 0, last = 0, open;
	enum tok_from from;
	for (size_t i = 0; i < t->n_tokens; i++)
		longest = MAX(longest, t->tokens[i].content.n);
	open = tok_trie_open(&t->raw, text, text.n > longest ? text.n - longest : 0);
	for (size_t step; last < text.n && (step = tok_cut_next(t, str_skip(text, last), 1, &from)); last += step)
		if (last + step > open || last + step == text.n)
			break;
	return last;
}
