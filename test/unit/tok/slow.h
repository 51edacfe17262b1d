/* slow.h: a slow, plain matcher of the regex dialect in which split patterns are written, and a slow BPE: the references
 * for the fast code, in the unit tests and in the fuzzers. Understood: alternatives, classes with \p{..} \s \S, ranges and
 * &&[^\p{Han}], (?i:..) of literals and small classes, ? * + {a,b} and their possessive forms, (?!\S). */
#ifndef TEST_TOK_SLOW_H
#define TEST_TOK_SLOW_H

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "tok/tok_priv.h"

#define SLOW_BIT(c) (1u << (c))

struct slow_class {
	uint32_t mask;
	uint32_t low[32], high[32];
	size_t n;
	bool negated, no_han;
};
enum slow_kind { SLOW_CLASS, SLOW_WORDS, SLOW_LOOK };
struct slow_item {
	enum slow_kind kind;
	size_t min, max;
	bool possessive;
	struct slow_class set;
	const char *words[16]; /* literals, lower case; matched without regard to case */
	size_t n_words;
	bool any_case;
};
struct slow_branch {
	struct slow_item items[8];
	size_t n;
};
struct slow_regex {
	struct slow_branch branches[16];
	size_t n;
	char text[4096];
	size_t used;
};

static inline uint32_t slow_property(const char **p)
{
	static const struct {
		const char *name;
		uint32_t mask;
	} ALL[] = {
		{ "L", SLOW_BIT(TOK_LU) | SLOW_BIT(TOK_LL) | SLOW_BIT(TOK_LT) | SLOW_BIT(TOK_LM) | SLOW_BIT(TOK_LO) | SLOW_BIT(TOK_LM_HAN) |
				SLOW_BIT(TOK_LO_HAN) },
		{ "Lu", SLOW_BIT(TOK_LU) },
		{ "Ll", SLOW_BIT(TOK_LL) },
		{ "Lt", SLOW_BIT(TOK_LT) },
		{ "Lm", SLOW_BIT(TOK_LM) | SLOW_BIT(TOK_LM_HAN) },
		{ "Lo", SLOW_BIT(TOK_LO) | SLOW_BIT(TOK_LO_HAN) },
		{ "M", SLOW_BIT(TOK_M) | SLOW_BIT(TOK_M_HAN) },
		{ "N", SLOW_BIT(TOK_N) | SLOW_BIT(TOK_N_HAN) },
		{ "P", SLOW_BIT(TOK_P) | SLOW_BIT(TOK_P_HAN) },
		{ "S", SLOW_BIT(TOK_S) | SLOW_BIT(TOK_S_HAN) },
		{ "Han", SLOW_BIT(TOK_LM_HAN) | SLOW_BIT(TOK_LO_HAN) | SLOW_BIT(TOK_M_HAN) | SLOW_BIT(TOK_N_HAN) | SLOW_BIT(TOK_P_HAN) |
				 SLOW_BIT(TOK_S_HAN) },
	};
	const char *end = strchr(*p, '}');
	size_t n = (size_t)(end - *p);
	for (size_t i = 0; i < sizeof(ALL) / sizeof(ALL[0]); i++)
		if (strlen(ALL[i].name) == n && memcmp(ALL[i].name, *p, n) == 0) {
			*p = end + 1;
			return ALL[i].mask;
		}
	abort();
}

static inline void slow_range(struct slow_class *c, uint32_t low, uint32_t high)
{
	c->low[c->n] = low;
	c->high[c->n++] = high;
}

static inline uint32_t slow_char(const char **p)
{
	uint32_t cp;
	size_t n = utf8_next((struct str){ *p, strlen(*p) }, &cp);
	must(n);
	*p += n;
	return cp;
}

/* One element of a class, or a class of its own outside brackets; *p is moved on. */
static inline void slow_element(struct slow_class *c, const char **p)
{
	if (**p == '\\') {
		char e = (*p)[1];
		*p += 2;
		if (e == 'p') {
			(*p)++;
			c->mask |= slow_property(p);
		} else if (e == 's') {
			c->mask |= SLOW_BIT(TOK_SPACE) | SLOW_BIT(TOK_NEWLINE);
		} else {
			uint32_t cp = e == 'r' ? '\r' : e == 'n' ? '\n' : (uint32_t)e;
			slow_range(c, cp, cp);
		}
		return;
	}
	uint32_t low = slow_char(p), high = low;
	if (**p == '-' && (*p)[1] != ']') {
		(*p)++;
		high = slow_char(p);
	}
	slow_range(c, low, high);
}

static inline void slow_brackets(struct slow_class *c, const char **p)
{
	(*p)++;
	if (**p == '^') {
		c->negated = true;
		(*p)++;
	}
	while (**p != ']') {
		if (strncmp(*p, "&&[^\\p{Han}]", 12) == 0) {
			c->no_han = true;
			*p += 12;
		} else {
			slow_element(c, p);
		}
	}
	(*p)++;
}

static inline void slow_quantity(struct slow_item *it, const char **p)
{
	it->min = it->max = 1;
	if (**p == '?')
		it->min = 0;
	else if (**p == '*' || **p == '+')
		it->min = **p == '+', it->max = SIZE_MAX;
	else if (**p == '{')
		it->min = (size_t)((*p)[1] - '0'), it->max = (size_t)((*p)[3] - '0'), *p += 4;
	else
		return;
	(*p)++;
	if (**p == '+') {
		it->possessive = true;
		(*p)++;
	}
}

/* 's|'t|... or [sdmt]|ll|... up to the closing bracket or a bar outside; prefix goes before each. */
static inline void slow_words(struct slow_regex *r, struct slow_item *it, const char **p, const char *prefix, bool grouped)
{
	it->kind = SLOW_WORDS;
	while (**p && **p != ')' && (grouped || **p == '\'')) {
		bool set = **p == '[';
		*p += set;
		do {
			char *w = r->text + r->used;
			size_t n = strlen(prefix);
			memcpy(w, prefix, n);
			while (**p && !strchr("|)]", **p)) {
				w[n++] = *(*p)++;
				if (set)
					break;
			}
			w[n] = 0;
			r->used += n + 1;
			it->words[it->n_words++] = w;
		} while (set && **p != ']');
		*p += set;
		if (**p == '|' && (grouped || (*p)[1] == '\''))
			(*p)++;
		else if (!grouped)
			break;
	}
	*p += grouped;
}

static inline void slow_item(struct slow_regex *r, struct slow_item *it, const char **p)
{
	memset(it, 0, sizeof(*it));
	if (strncmp(*p, "(?i:", 4) == 0) {
		*p += 4;
		it->any_case = true;
		slow_words(r, it, p, "", true);
	} else if (strncmp(*p, "'(?i:", 5) == 0) {
		*p += 5;
		it->any_case = true;
		slow_words(r, it, p, "'", true);
	} else if (strncmp(*p, "(?!\\S)", 6) == 0) {
		*p += 6;
		it->kind = SLOW_LOOK;
	} else if (**p == '\'') {
		slow_words(r, it, p, "", false);
	} else if (**p == '[') {
		slow_brackets(&it->set, p);
	} else {
		slow_element(&it->set, p);
	}
	slow_quantity(it, p);
}

static inline void slow_compile(struct slow_regex *r, const char *p)
{
	memset(r, 0, sizeof(*r));
	r->n = 1;
	while (*p) {
		if (*p == '|') {
			r->n++;
			p++;
			continue;
		}
		struct slow_branch *b = &r->branches[r->n - 1];
		must(r->n <= 16 && b->n < 8);
		slow_item(r, &b->items[b->n++], &p);
	}
}

static inline bool slow_in(const struct slow_class *c, const struct tok_table *k, uint32_t cp)
{
	uint8_t class = tok_table_get(k, cp);
	bool in = c->mask >> class & 1;
	for (size_t i = 0; i < c->n; i++)
		in |= cp >= c->low[i] && cp <= c->high[i];
	in ^= c->negated;
	return in && !(c->no_han && class >= TOK_LM_HAN && class <= TOK_S_HAN);
}

/* The length of the word at p without regard to case (U+017F counts as s), or 0. */
static inline size_t slow_word_at(const char *w, const uint8_t *p, const uint8_t *end, bool any_case)
{
	const uint8_t *q = p;
	for (; *w; w++) {
		if (q == end)
			return 0;
		if (any_case && *w == 's' && end - q >= 2 && q[0] == 0xc5 && q[1] == 0xbf)
			q += 2;
		else if (*q == (uint8_t)*w || (any_case && *w >= 'a' && *w <= 'z' && *q == (uint8_t)(*w - 32)))
			q++;
		else
			return 0;
	}
	return (size_t)(q - p);
}

/* The end of a match of items from i on at p, or NULL. */
static inline const uint8_t *slow_match(
	const struct slow_branch *b, size_t i, const struct tok_table *k, const uint8_t *p, const uint8_t *end)
{
	if (i == b->n)
		return p;
	const struct slow_item *it = &b->items[i];
	size_t len;
	if (it->kind == SLOW_LOOK) {
		enum tok_class c = p < end ? tok_class_at(k, p, &len) : TOK_SPACE;
		return c == TOK_SPACE || c == TOK_NEWLINE ? slow_match(b, i + 1, k, p, end) : NULL;
	}
	if (it->kind == SLOW_WORDS) {
		for (size_t w = 0; w < it->n_words; w++) {
			size_t n = slow_word_at(it->words[w], p, end, it->any_case);
			const uint8_t *r = n ? slow_match(b, i + 1, k, p + n, end) : NULL;
			if (r)
				return r;
		}
		return it->min == 0 ? slow_match(b, i + 1, k, p, end) : NULL;
	}
	size_t n = 0;
	const uint8_t *q = p;
	while (n < it->max && q < end && slow_in(&it->set, k, tok_cp(q, &len))) {
		q += len;
		n++;
	}
	for (;; q = tok_back(q), n--) {
		const uint8_t *r = n >= it->min ? slow_match(b, i + 1, k, q, end) : NULL;
		if (r || n == 0 || n <= it->min || it->possessive)
			return r;
	}
}

static inline const uint8_t *slow_regex_at(const struct slow_regex *r, const struct tok_table *k, const uint8_t *p, const uint8_t *end)
{
	for (size_t i = 0; i < r->n; i++) {
		const uint8_t *q = slow_match(&r->branches[i], 0, k, p, end);
		if (q && q > p)
			return q;
	}
	return NULL;
}

/* The end of the piece at p: a match, or a gap up to the next one. */
static inline const uint8_t *slow_next(const struct slow_regex *r, const struct tok_table *k, const uint8_t *p, const uint8_t *end)
{
	const uint8_t *q = slow_regex_at(r, k, p, end);
	size_t len;
	while (!q) {
		tok_cp(p, &len);
		p += len;
		if (p == end || slow_regex_at(r, k, p, end))
			return p;
	}
	return q;
}

/* The patterns, written out once more (in brackets, or clang suspects a comma was forgotten). */
#define SLOW_CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define SLOW_ENDS "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define SLOW_CASED(han, suffix)                                                                                                            \
	"[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}" han "]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}" han "]+" suffix                   \
	"|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}" han "]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}" han "]*" suffix
static const char *const SLOW_PATTERNS[] = {
	("'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"),
	(SLOW_CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" SLOW_ENDS),
	("'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+"),
	(SLOW_CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" SLOW_ENDS),
	(SLOW_CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*" SLOW_ENDS),
	(SLOW_CASED("", SLOW_CONTRACTIONS "?") "|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*" SLOW_ENDS),
	(SLOW_CASED("", "") "|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*" SLOW_ENDS),
	("[\\p{Han}]+|" SLOW_CASED("&&[^\\p{Han}]", SLOW_CONTRACTIONS "?") "|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" SLOW_ENDS),
	("\\p{N}{1,3}"),
	("\\p{N}"),
	("[\xe4\xb8\x80-\xe9\xbe\xa5\xe3\x81\x80-\xe3\x82\x9f\xe3\x82\xa0-\xe3\x83\xbf]+"),
	("[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| "
	 "?[\\p{P}\\p{S}]+[\\r\\n]*" SLOW_ENDS),
};
enum { SLOW_N_PATTERNS = sizeof(SLOW_PATTERNS) / sizeof(SLOW_PATTERNS[0]) };

/* Merges the pair of least rank, leftmost first, until there is none: the definition. Returns the new n. */
static inline size_t slow_merge(const struct tok_merges *m, uint32_t *sym, size_t n)
{
	for (;;) {
		size_t best = SIZE_MAX;
		uint32_t rank = TOK_NONE;
		for (size_t i = 0; i + 1 < n; i++) {
			uint32_t r = tok_merges_rank(m, sym[i], sym[i + 1]);
			if (r < rank)
				rank = r, best = i;
		}
		if (best == SIZE_MAX)
			return n;
		sym[best] = m->result[rank];
		memmove(sym + best + 1, sym + best + 2, (n - best - 2) * sizeof(*sym));
		n--;
	}
}

#endif
