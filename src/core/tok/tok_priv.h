/* tok/tok_priv.h: what the files of this room share. Everything here is immutable once tok_load has returned, but
 * struct tok_scratch, which belongs to one thread. */
#ifndef TOK_TOK_PRIV_H
#define TOK_TOK_PRIV_H

#include <string.h>

#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"
#include "tok/tok.h"

enum { TOK_NONE = UINT32_MAX }; /* no id, no rank */

/* ---- class.c: code points by general category, in two levels -------------------------------------------------- */

/* The order is that of script/gen-unicode.py. x_HAN: the same category, script Han. OTHER_DIGIT: a digit for the
 * pre-tokenizer Digits, which asks the Rust compiler's Unicode, and nothing for the regex engine, whose is older. */
enum tok_class {
	TOK_OTHER,
	TOK_LU,
	TOK_LL,
	TOK_LT,
	TOK_LM,
	TOK_LO,
	TOK_M,
	TOK_N,
	TOK_P,
	TOK_S,
	TOK_SPACE,
	TOK_NEWLINE,
	TOK_LM_HAN,
	TOK_LO_HAN,
	TOK_M_HAN,
	TOK_N_HAN,
	TOK_P_HAN,
	TOK_S_HAN,
	TOK_OTHER_DIGIT,
	TOK_N_CLASSES
};
enum { TOK_CODE_POINTS = 0x110000, TOK_BLOCKS = TOK_CODE_POINTS >> 8 };

struct tok_table { /* code point -> byte */
	uint8_t index[TOK_BLOCKS];
	uint8_t *blocks; /* 256 bytes each */
	size_t n_blocks;
};
/* fill(ctx, block, out): the 256 values of a block. */
typedef void (*tok_fill_fn)(void *ctx, uint32_t block, uint8_t out[256]);
void tok_table_init(struct tok_table *t, tok_fill_fn fill, void *ctx);
void tok_table_done(struct tok_table *t);
static inline uint8_t tok_table_get(const struct tok_table *t, uint32_t cp)
{
	return t->blocks[(size_t)t->index[cp >> 8] << 8 | (cp & 255)];
}
void tok_classes_init(struct tok_table *t, enum tok_unicode version); /* ANY: as 16 */
void tok_disputed_init(struct tok_table *t); /* 1: the versions have different classes for it */
bool tok_is_word(uint32_t cp); /* a word character to a single_word token */

/* The code point at p (checked UTF-8, at least one character); its bytes go to *n. */
static inline uint32_t tok_cp(const uint8_t *p, size_t *n)
{
	if (p[0] < 0x80) {
		*n = 1;
		return p[0];
	}
	if (p[0] < 0xe0) {
		*n = 2;
		return (uint32_t)(p[0] & 31) << 6 | (p[1] & 63);
	}
	if (p[0] < 0xf0) {
		*n = 3;
		return (uint32_t)(p[0] & 15) << 12 | (uint32_t)(p[1] & 63) << 6 | (p[2] & 63);
	}
	*n = 4;
	return (uint32_t)(p[0] & 7) << 18 | (uint32_t)(p[1] & 63) << 12 | (uint32_t)(p[2] & 63) << 6 | (p[3] & 63);
}
static inline enum tok_class tok_class_at(const struct tok_table *t, const uint8_t *p, size_t *n)
{
	if (p[0] < 0x80) { /* the first block's: most of what is asked for */
		*n = 1;
		return (enum tok_class)t->blocks[p[0]];
	}
	return (enum tok_class)tok_table_get(t, tok_cp(p, n));
}
#define ALWAYS_INLINE static inline __attribute__((always_inline))
/* The end of the ASCII letters at p, of small ones only or of both, eight bytes at once. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the lowest byte of eight is the first");
ALWAYS_INLINE const uint8_t *tok_ascii_letters(const uint8_t *p, const uint8_t *end, bool small)
{
	const uint64_t each = 0x0101010101010101u, high = 0x80 * each, fold = small ? 0 : 0x20 * each;
	for (uint64_t x; (size_t)(end - p) >= sizeof(x); p += sizeof(x)) {
		memcpy(&x, p, sizeof(x));
		uint64_t low = (x | fold) & ~high; /* no sum of a byte reaches the next one */
		uint64_t others = (~(low + (0x80 - 'a') * each) | (low + (0x7f - 'z') * each) | x) & high;
		if (others)
			return p + __builtin_ctzll(others) / 8;
	}
	while (p < end && (uint8_t)((*p | (small ? 0 : 0x20)) - 'a') < 26)
		p++;
	return p;
}
/* The start of the character before p. */
static inline const uint8_t *tok_back(const uint8_t *p)
{
	do
		p--;
	while ((*p & 0xc0) == 0x80);
	return p;
}

/* ---- normal.c: the library's own normal forms ------------------------------------------------------------------ */

enum tok_form { TOK_FORM_NONE, TOK_FORM_NFC, TOK_FORM_NFD, TOK_FORM_NFKC, TOK_FORM_NFKD };

struct tok_normal {
	enum tok_form form;
	struct tok_table active; /* 0: this character stands for itself and ends what came before it */
	struct map decomposed; /* code point -> place in the table of its form | table << 32 */
	struct map combining;
	struct map pairs; /* first << 32 | second -> composition */
};
struct tok_cps {
	uint32_t *p;
	size_t n, cap;
};
void tok_normal_init(struct tok_normal *n, enum tok_form form);
void tok_normal_done(struct tok_normal *n);
/* Is text its own normal form, as a quick look tells? false: maybe. */
bool tok_normal_quick(const struct tok_normal *n, struct str text);
/* Appends the normal form of text; tmp is working memory. LIMIT as buf. */
must_use enum err tok_normal_put(const struct tok_normal *n, struct str text, struct tok_cps *tmp, struct buf *b);

/* ---- added.c: added tokens, found leftmost-longest --------------------------------------------------------------- */

struct tok_token {
	struct str content; /* owned */
	uint32_t id;
	bool single_word, lstrip, rstrip, normalized, special;
	bool listed, configured; /* while loading: it is in the list of special ones; a list by id tells its flags */
};
struct tok_trie {
	struct tok_trie_node {
		uint32_t first_child, token;
		uint16_t n_children;
		uint8_t byte;
	} * nodes; /* token: index or TOK_NONE */
	size_t n_nodes;
	uint32_t root[256]; /* the node of a first byte, or TOK_NONE */
	uint32_t n_roots;
	uint8_t only_root; /* the first byte when there is just one */
	bool inside[256]; /* a pattern has this byte behind its first one */
};
struct tok_pattern {
	struct str text;
	uint32_t token;
};
void tok_trie_init(struct tok_trie *t, const struct tok_pattern *patterns, size_t n);
void tok_trie_done(struct tok_trie *t);
/* The next match at or after `from`: its place, end and token. false: none. */
struct tok_match {
	size_t start, end;
	uint32_t token;
};
bool tok_trie_next(const struct tok_trie *t, struct str text, size_t from, struct tok_match *ret_m);
/* The same of those that begin in [from, upto). */
struct tok_range {
	size_t from, upto;
};
bool tok_trie_before(const struct tok_trie *t, struct str text, struct tok_range where, struct tok_match *ret_m);
/* The last place up to `at` that no match which begins before it reaches across: what is found from there on is what is found from 0. */
size_t tok_trie_apart(const struct tok_trie *t, struct str text, size_t at);
/* Where, at or behind from, a pattern may have begun that goes on behind the text's end; text.n: nowhere. */
size_t tok_trie_open(const struct tok_trie *t, struct str text, size_t from);

/* ---- vocab.c: pieces and merges ---------------------------------------------------------------------------------- */

struct tok_pool { /* strings by id, back to back, and a table to find them by their bytes */
	char *bytes;
	uint32_t *off; /* n + 1 */
	uint32_t n;
	uint64_t *slots; /* upper half of the hash << 32 | id; TOK_EMPTY_SLOT */
	size_t mask;
};
#define TOK_EMPTY_SLOT UINT64_MAX
void tok_pool_init(struct tok_pool *p, const struct str *by_id, uint32_t n);
/* Makes them findable, the hidden ones (or NULL) left out. Returns an id whose string was there already, or TOK_NONE. */
uint32_t tok_pool_index(struct tok_pool *p, const bool *hidden);
void tok_pool_done(struct tok_pool *p);
static inline struct str tok_pool_get(const struct tok_pool *p, uint32_t id)
{
	return id < p->n ? (struct str){ p->bytes + p->off[id], p->off[id + 1] - p->off[id] } : (struct str){ "", 0 };
}
uint32_t tok_pool_find(const struct tok_pool *p, struct str s); /* or TOK_NONE; empty strings are not found */
/* The same for many, faster: their cache lines are asked for ahead, TOK_AHEAD at a time. The pool is indexed. */
enum { TOK_AHEAD = 32 };
void tok_pool_find_all(const struct tok_pool *p, const struct str *s, size_t n, uint32_t *ret_ids);
size_t tok_pool_held(const struct tok_pool *p);

/* A pair of ids and the rank of their merge: 20 + 20 + 24 bits a slot. */
enum { TOK_ID_BITS = 20, TOK_RANK_BITS = 24, TOK_MAX_RANKS = (1 << TOK_RANK_BITS) - 1 };
struct tok_merges {
	uint64_t *slots;
	unsigned shift; /* 64 - log2(slots) */
	size_t mask;
	uint32_t *result; /* rank -> id */
	uint32_t n;
	uint32_t *first; /* 65536 ranks of byte pairs (byte-level), or NULL */
};
void tok_merges_init(struct tok_merges *m, size_t n_pairs, size_t n_ranks);
void tok_merges_put(struct tok_merges *m, uint32_t a, uint32_t b, uint32_t rank); /* again: the later one counts */
void tok_merges_ask(const struct tok_merges *m, uint32_t a, uint32_t b); /* put or rank will be called: brings its cache line */
void tok_merges_first(struct tok_merges *m, const uint32_t byte_id[256]); /* fills `first` */
void tok_merges_done(struct tok_merges *m);
static inline size_t tok_merges_home(const struct tok_merges *m, uint64_t key) { return (size_t)((key * 0x9e3779b97f4a7c15u) >> m->shift); }
static inline uint32_t tok_merges_rank(const struct tok_merges *m, uint32_t a, uint32_t b)
{
	uint64_t key = (uint64_t)a << TOK_ID_BITS | b;
	for (size_t i = tok_merges_home(m, key);; i = (i + 1) & m->mask) {
		uint64_t slot = m->slots[i];
		if (slot >> TOK_RANK_BITS == key)
			return (uint32_t)(slot & TOK_MAX_RANKS);
		if (slot == TOK_EMPTY_SLOT)
			return TOK_NONE;
	}
}

/* ---- split.c: the splitters --------------------------------------------------------------------------------------- */

enum { TOK_ENDS = 64 }; /* enough words for the first one's cache line to come while the others' are asked for */
struct tok_ends {
	const uint8_t *p[TOK_ENDS];
	size_t n;
};
/* The ends of the first pieces of the text from p to end (p < end): TOK_ENDS of them, or all. */
typedef void (*tok_split_fn)(const struct tok_table *classes, const uint8_t *p, const uint8_t *end, struct tok_ends *ret_ends);
struct tok_splitter {
	struct str pattern; /* the regex as files write it (CR and LF as \r and \n), or a name in <> */
	tok_split_fn split;
	const char *name;
	bool covers; /* every text is matched without gaps: then Removed + invert is Isolated */
	bool newline_cut; /* between CR or LF and a letter or digit it never looks across */
};
const struct tok_splitter *tok_splitter_find(struct str pattern);
enum { TOK_MAX_STAGES = 4 };

/* ---- cut.c: cuts in plain text stand beside such a character ------------------------------------------------------- */

static inline bool tok_alnum(char c) { return ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || (c >= '0' && c <= '9'); }

/* ---- struct tok ---------------------------------------------------------------------------------------------------- */

enum tok_kind { TOK_BYTES, TOK_SPACES }; /* byte-level; whole text with U+2581 for the space */
enum tok_prepend { TOK_PREPEND_NEVER, TOK_PREPEND_PIECE, TOK_PREPEND_MISSING, TOK_PREPEND_FIRST };
enum tok_decoder { TOK_DECODE_UNKNOWN, TOK_DECODE_BYTES, TOK_DECODE_SPACES, TOK_DECODE_RAW };

struct tok_crossing {
	struct str before, after;
}; /* a piece of the vocabulary that spans a cut: what stands on its two sides */

struct tok {
	enum tok_kind kind;
	struct tok_table classes, disputed; /* disputed: empty when the version is known, or makes no difference */
	struct tok_normal normal;

	struct tok_token *tokens; /* added */
	size_t n_tokens;
	struct map token_by_id; /* id -> index in tokens */
	struct tok_trie raw, late; /* matched before and after normalisation */

	const struct tok_splitter *stages[TOK_MAX_STAGES];
	size_t n_stages;

	struct tok_pool pieces; /* of the model, as the file writes them */
	struct tok_pool bytes; /* of every id, what it stands for; findable when whole words are looked up */
	bool whole_words; /* ignore_merges */
	struct tok_merges merges;
	uint32_t byte_id[256]; /* byte-level: the id of a byte; spaces: of `<0xHH>` */
	uint32_t ascii_id[128]; /* spaces: of a character; the space's is that of U+2581 */
	uint32_t unk_id; /* TOK_NONE: unknown characters vanish */
	bool byte_fallback, fuse_unk;

	enum tok_prepend prepend; /* spaces: of U+2581 */
	bool late_spaces; /* spaces: U+2581 is put in by the pre-tokenizer, behind the late tokens */
	bool split_spaces; /* Metaspace with split */
	bool cut_words; /* spaces: words may be cut, but at crossings */
	uint8_t *
		neighbours; /* spaces, or NULL: bit a << 8 | b is set when a piece has byte b behind byte a; words are cut between others too */
	struct tok_crossing *crossings;
	size_t n_crossings;

	uint32_t *before, *after; /* ids that the post-processor puts around */
	size_t n_before, n_after;
	bool around_unknown; /* loaders differ in what they put there */
	enum tok_decoder decoder;
	size_t strip_left; /* decoder: leading spaces taken off */
	bool long_runs_differ; /* the worker cuts very long texts in its own way: refused */
	bool control; /* added tokens never come from text (tekken) */

	struct tok_name {
		struct str name, text;
	} * names; /* bos_token ...; owned */
	size_t n_names;
	bool token_cuts, plain_cuts;
	struct hash128 fingerprint;
	const char *scheme;
};

/* ---- load*.c --------------------------------------------------------------------------------------------------------- */

struct tok_why {
	char *p;
	size_t cap;
};
/* Writes the sentence and returns e. */
enum err tok_say(struct tok_why why, enum err e, const char *fmt, ...) printf_like(3, 4);

/* The reference's list of added tokens, as it grows by being told of tokens one after another. */
struct tok_define {
	struct str content;
	uint64_t id; /* as the file says; UINT64_MAX: it does not */
	bool single_word, lstrip, rstrip, normalized, special;
};
struct tok_adding {
	const struct tok_pool *pieces;
	uint32_t vocab_size; /* pieces of the model: new ids begin here */
	bool strict; /* a token that is told again with other flags is refused: which of them count depends on too much */
	VEC(struct tok_token) tokens; /* one for each id, with what was said last */
	VEC(struct tok_define) special, plain; /* all that matches, in the order in which it is looked for */
	struct map by_content; /* hash of the content -> index in tokens */
	struct map by_id; /* id -> index in tokens */
	uint32_t max_id; /* of the added tokens; TOK_NONE: there is none yet */
};
void tok_adding_init(struct tok_adding *a, const struct tok_pool *pieces, uint32_t vocab_size);
void tok_adding_done(struct tok_adding *a);
must_use enum err tok_adding_add(struct tok_adding *a, const struct tok_define *d, struct tok_why why);
/* Many, in the order of their ids; of those with one id the last. */
must_use enum err tok_adding_by_id(struct tok_adding *a, const struct tok_define *d, size_t n, struct tok_why why);
struct tok_token *tok_adding_find(const struct tok_adding *a, struct str content);
bool tok_adding_same(const struct tok_adding *a, const struct tok_adding *b); /* the same tokens with the same ids and flags? */
/* Reads {content, id, lstrip, rstrip, single_word, normalized, special}. */
struct json_val;
must_use enum err tok_define_read(const struct json_val *v, struct tok_define *ret_d, struct tok_why why);
/* Moves the tokens into t and builds its tries, byte strings and indexes. */
must_use enum err tok_adding_finish(struct tok_adding *a, struct tok *t, struct tok_why why);

/* What stands between a text and its words: as tokenizer.json says, or as a class of the worker's builds it. */
struct tok_pipeline {
	enum tok_form form;
	bool byte_level, replaces, prepends, metaspace, split;
	enum tok_prepend prepend;
	const struct tok_splitter *stages[TOK_MAX_STAGES];
	size_t n_stages;
	bool whole_words, byte_fallback, fuse_unk, unk_known;
};
enum tok_class_kind { TOK_CLASS_BYTES, TOK_CLASS_SPACES, TOK_CLASS_METASPACE };
struct tok_worker_class {
	struct str name;
	enum tok_form form;
	struct str stages[TOK_MAX_STAGES]; /* patterns */
	enum tok_class_kind kind;
	bool again; /* tells its special tokens again at the end, without flags */
	struct {
		struct str name, text;
	} defaults[7]; /* special tokens when the config has no such member */
};
/* load_worker.c. own_format: the folder has tekken.json too. NULL: tokenizer.json counts. */
must_use enum err tok_worker_class_find(const struct json_val *config, const struct json_val *model, bool own_format,
	const struct tok_worker_class **ret_c, struct tok_why why);
must_use enum err tok_worker_pipeline(
	const struct tok_worker_class *c, const struct json_val *config, struct tok_pipeline *ret_p, struct tok_why why);
bool tok_pipeline_same(const struct tok_pipeline *a, const struct tok_pipeline *b);

/* load_config.c: what tokenizer_config.json and special_tokens_map.json add; add_bos, add_eos: -1 when it does not say. */
struct tok_config {
	const struct json_val *config, *map, *added; /* their roots, or NULL */
	const struct tok_worker_class *class; /* whose defaults count, or NULL */
	int add_bos, add_eos;
};
bool tok_config_lists(const struct tok_config *c); /* has it an added_tokens_decoder? */
must_use enum err tok_config_tokens(const struct tok_config *c, struct tok_adding *a, struct tok_why why);
must_use enum err tok_config_read(struct tok *t, struct tok_config *c, struct tok_why why); /* names; the rest of *c */
must_use enum err tok_config_around(struct tok *t, const struct tok_config *c, enum tok_loader loader, struct tok_why why);
void tok_set_around(struct tok *t, const uint32_t *before, size_t n_before, const uint32_t *after, size_t n_after);

must_use enum err tok_load_model(struct tok *t, const struct json_val *model, uint32_t *ret_vocab_size, struct tok_why why);
/* After the model and the added tokens: first ids, fallback, crossings, whole words. */
must_use enum err tok_finish_model(struct tok *t, struct tok_why why);
must_use enum err tok_load_hf(struct tok *t, const struct tok_files *f, struct tok_why why);
must_use enum err tok_load_tiktoken(struct tok *t, const struct tok_files *f, struct tok_why why);
must_use enum err tok_load_tekken(struct tok *t, const struct tok_files *f, struct tok_why why);

/* ---- the byte alphabet of byte-level files ------------------------------------------------------------------------- */

/* The byte a code point of that alphabet stands for, or -1. */
int tok_alphabet_byte(uint32_t cp);
/* The bytes a piece stands for, into out (at least piece.n bytes); false: it has a foreign character. */
bool tok_alphabet_decode(struct str piece, char *out, size_t *ret_n);

/* ---- bpe.c, encode.c ------------------------------------------------------------------------------------------------- */

struct tok_entries {
	uint64_t *p;
	size_t n, cap;
}; /* merges to come: rank << 32 | place */
struct tok_cache_entry {
	uint64_t key[2];
	uint64_t ids[2];
};
struct tok_scratch {
	const struct tok *t;
	struct tok_cache_entry *cache; /* pairs: two ways, in: */
	size_t cache_mask; /* of pairs */
	struct buf normal; /* a piece in normal form */
	struct buf spaced; /* a piece with its spaces marked */
	struct tok_cps cps;
	VEC(uint32_t) sym, rank, next, prev;
	struct tok_entries heap, due, later, spare;
	size_t due_at; /* in due: those before it are done */
	uint32_t rank_now;
};
/* The merges of a long word whose symbols and ranks are set (long.c). */
void tok_merge_long(const struct tok *t, struct tok_scratch *s, struct tok_ids *ids);
/* Puts *text into the form in which late tokens are looked for; the result may lie in s->normal. */
must_use enum err tok_normalize(const struct tok *t, struct tok_scratch *s, bool mid_text, struct str *text);
/* Appends the ids of one word. */
void tok_word(const struct tok *t, struct tok_scratch *s, struct str word, struct tok_ids *ids);

#endif
