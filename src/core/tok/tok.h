/* tok/tok.h: text -> token ids, exactly as the reference library gives them, and back.
 *
 * A `struct tok` is made from the texts of a model's tokenizer files, is immutable afterwards and may be used by any
 * number of threads at once; whoever keeps it counts its references. The loader is an allow-list: every normalizer,
 * pre-tokenizer, model, post-processor and decoder is either done exactly or refused by name, so a tokenizer that
 * loads gives the worker's ids, as far as the worker uses the same files (a sample is compared with it elsewhere).
 *
 * What is understood: byte-level BPE with the known splitters, BPE over whole text with byte fallback (the
 * SentencePiece kind), tiktoken.model (base64 ranks) and tekken.json. What is not: Unigram, WordPiece, WordLevel,
 * lower-casing and stripping normalizers, unknown split patterns.
 *
 * A `struct tok_scratch` is the working memory and the word cache of one thread with one tokenizer.
 *
 * User text that spells a special token becomes that token, as in the library; with tok_job.ordinary it stays text.
 *
 * Incremental use. The ids of a text are those of its head followed by those of its tail when the cut between them is safe and
 * the tail is encoded with the right tok_from. Behind most added tokens and at some places in plain text a cut is safe;
 * tok_cut_next finds them. With a memo (tok/memo.h) tok_encode itself cuts a text there and only does the stretches that nobody
 * has done before.
 *
 * Pure: no clock, no file, no thread; memory through base. Units: bytes of UTF-8 unless named otherwise. */
#ifndef TOK_TOK_H
#define TOK_TOK_H

#include "base/buf.h"
#include "base/hash.h"

struct tok;
struct tok_scratch;

enum {
	TOK_MAX_FILE_BYTES = 256 << 20, /* each file of a tokenizer */
	TOK_MAX_TEXT_BYTES = 1 << 30, /* one text to encode */
	TOK_MAX_VOCAB = (1 << 20) - 1, /* highest id + 1 */
	TOK_MAX_ADDED = 1 << 16, /* added tokens */
};

/* Whose letters and digits: tokenizers up to 0.21.1 split by Unicode 14, later ones by Unicode 16. ANY: not known; then a text with a
 * character on which they differ is not encoded. */
enum tok_unicode { TOK_UNICODE_16, TOK_UNICODE_14, TOK_UNICODE_ANY };

/* What the worker's library makes of tokenizer.json: transformers 4 takes it as it stands (FILES); 5 builds the pipeline anew
 * for some classes. ANY: not known; then a tokenizer loads only when both give the same ids. */
enum tok_loader { TOK_LOADER_FILES, TOK_LOADER_5, TOK_LOADER_ANY };

/* The files' texts, borrowed during tok_load only; an absent one has n = 0. One of the first three must be there;
 * tokenizer_json wins over tiktoken, tekken over both only when it stands alone. */
struct tok_files {
	struct str tokenizer_json;
	struct str tiktoken; /* tiktoken.model; needs config for its special tokens */
	struct str tekken; /* tekken.json */
	struct str config; /* tokenizer_config.json */
	struct str special_map; /* special_tokens_map.json */
	struct str added; /* added_tokens.json */
	struct str model_config; /* config.json: its model_type; for TOK_LOADER_5 and _ANY */
	enum tok_unicode unicode;
	enum tok_loader loader;
};

/* UNSUPPORTED: a feature that is not on the list; SYNTAX: a broken file; LIMIT: too big. In each case `why` (NUL-
 * terminated) says in a sentence what it was. */
must_use enum err tok_load(const struct tok_files *f, char *why, size_t why_cap, struct tok **ret_t);
void tok_free(struct tok *t); /* NULL is fine; no scratch of it may be in use */
size_t tok_bytes_held(const struct tok *t); /* its memory, scratches apart */
const char *tok_scheme_name(const struct tok *t); /* "o200k", "metaspace" ...: for people */
/* Equal for equal files and options: part of every cache key of ids. */
struct hash128 tok_fingerprint(const struct tok *t);

/* cache_bytes: of the word cache, rounded down to a power of two; 0: no cache. The tokenizer outlives it. */
struct tok_scratch *tok_scratch_new(const struct tok *t, size_t cache_bytes);
void tok_scratch_free(struct tok_scratch *s);
enum { TOK_CACHE_BYTES = 8 << 20 }; /* a good size */

struct tok_ids {
	uint32_t *p;
	size_t n, cap;
}; /* zeroed = empty; grows with VEC_PUSH of base/vec.h */
void tok_ids_done(struct tok_ids *ids);

enum tok_from {
	TOK_FROM_START, /* the text is a whole prompt */
	TOK_FROM_TOKEN, /* an added token stands right before it */
	TOK_FROM_TEXT, /* a cut in plain text lies right before it */
};
struct tok_memo;
struct tok_job {
	struct str text;
	enum tok_from from;
	bool add_bos, add_eos; /* what the post-processor puts around a prompt (add_special_tokens: both) */
	bool ordinary; /* no added token is looked for (tiktoken's encode_ordinary) */
	struct tok_memo *memo; /* NULL: everything is done anew */
	size_t max_new_bytes; /* of text that the memo does not know: more is AGAIN, found out before it is done; 0: no limit */
	size_t *new_bytes; /* NULL, or a sum over several jobs that share the limit: what was new is added */
};
/* Appends to ids. SYNTAX: the text is not UTF-8 (lone surrogates included: let the worker answer). LIMIT: too long.
 * UNSUPPORTED: a text that this model's worker cuts in a way of its own, or one that depends on a Unicode version which is not known; or add_bos, add_eos with a tokenizer of
 * TOK_LOADER_ANY whose loaders differ in what they put there. */
must_use enum err tok_encode(const struct tok *t, struct tok_scratch *s, const struct tok_job *job, struct tok_ids *ids);

/* The first safe cut at or behind `least` (not 0) of a text that is a prompt or follows a safe cut: its place, and how the tail goes on
 * (TOKEN or TEXT); 0: there is none. It may be the text's end. Safe in this text: with another tail, ask again. */
size_t tok_cut_next(const struct tok *t, struct str text, size_t least, enum tok_from *ret_from);
/* The same for text to be encoded with `ordinary`; its tail goes on FROM_TEXT. */
size_t tok_cut_ordinary(const struct tok *t, struct str text, size_t least);
/* The last cut in the beginning of a prompt that is safe whatever comes behind this text; 0: there is none. */
size_t tok_cut_last(const struct tok *t, struct str text);

/* How many ids the post-processor puts before and behind a prompt that asks for them (of TOK_LOADER_ANY: perhaps). */
struct tok_around {
	size_t before_tok, after_tok;
};
struct tok_around tok_around(const struct tok *t);

/* The bytes the ids stand for, as the library's decoder joins them; bad UTF-8 becomes U+FFFD. An id out of range: RANGE. */
struct tok_decode_job {
	const uint32_t *ids;
	size_t n;
	bool skip_special;
};
must_use enum err tok_decode(const struct tok *t, const struct tok_decode_job *job, struct buf *b);

/* Vocabulary. */
size_t tok_vocab_size(const struct tok *t); /* highest id + 1 */
bool tok_id_of(const struct tok *t, struct str token, uint32_t *ret_id); /* token as the file writes it; added tokens first */
struct str tok_piece(const struct tok *t, uint32_t id); /* as the file writes it; empty when there is no such id */
bool tok_is_special(const struct tok *t, uint32_t id);
/* The text of "bos_token", "eos_token", "pad_token", "unk_token" ... by tokenizer_config.json and special_tokens_map.json;
 * false when unset. Chat templates print them. */
bool tok_special_text(const struct tok *t, struct str name, struct str *ret_text);

#endif
