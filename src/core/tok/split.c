/* split.c: the splitters that models use, each a hand scanner equal to its regex, found by the regex's exact text.
 *
 * A scanner gives the end of the piece that begins at p, whether a match of the regex or the gap between two. Families
 * share a body whose parameters are constants, so that the compiler makes a scanner of each. The regex's own text is the
 * specification; the tests run a slow matcher of it against these. */
#include "tok/tok_priv.h"

#define BIT(c) (1u << (c))
#define IN(set, c) (((set) >> (c)) & 1u)

enum {
	SET_LO = BIT(TOK_LO) | BIT(TOK_LO_HAN),
	SET_LM = BIT(TOK_LM) | BIT(TOK_LM_HAN),
	SET_L = BIT(TOK_LU) | BIT(TOK_LL) | BIT(TOK_LT) | SET_LM | SET_LO,
	SET_M = BIT(TOK_M) | BIT(TOK_M_HAN),
	SET_N = BIT(TOK_N) | BIT(TOK_N_HAN),
	SET_P = BIT(TOK_P) | BIT(TOK_P_HAN),
	SET_S = BIT(TOK_S) | BIT(TOK_S_HAN),
	SET_SPACE = BIT(TOK_SPACE) | BIT(TOK_NEWLINE),
	SET_NEWLINE = BIT(TOK_NEWLINE),
	SET_HAN = BIT(TOK_LM_HAN) | BIT(TOK_LO_HAN) | BIT(TOK_M_HAN) | BIT(TOK_N_HAN) | BIT(TOK_P_HAN) | BIT(TOK_S_HAN),
	SET_ALL = BIT(TOK_N_CLASSES) - 1,
	SET_OTHER = SET_ALL & ~(SET_SPACE | SET_L | SET_N), /* [^\s\p{L}\p{N}] */
	SET_LEAD = SET_ALL & ~(SET_NEWLINE | SET_L | SET_N), /* [^\r\n\p{L}\p{N}] */
	SET_UPPER = BIT(TOK_LU) | BIT(TOK_LT) | SET_LM | SET_LO | SET_M,
	SET_LOWER = BIT(TOK_LL) | SET_LM | SET_LO | SET_M,
};

ALWAYS_INLINE const uint8_t *run(const struct tok_table *k, const uint8_t *p, const uint8_t *end, uint32_t set)
{
	size_t n;
	while (p < end && IN(set, tok_class_at(k, p, &n)))
		p += n;
	return p;
}

ALWAYS_INLINE bool ascii_letter(uint8_t b) { return (uint8_t)((b | 0x20) - 'a') < 26; }

/* run() of a set with all ASCII letters and nothing else of ASCII. */
ALWAYS_INLINE const uint8_t *letters(const struct tok_table *k, const uint8_t *p, const uint8_t *end, uint32_t set)
{
	size_t n;
	for (;;) {
		const uint8_t *q = p = tok_ascii_letters(p, end, false);
		while (q < end && *q >= 0x80 && IN(set, tok_class_at(k, q, &n)))
			q += n;
		if (q == p)
			return q;
		p = q;
	}
}

/* ---- parts the families share */

/* (?i:'s|'t|'re|'ve|'m|'ll|'d) at an apostrophe with something behind it, or with its small letters only. The engine folds
 * U+017F (long s) onto s. */
static const uint8_t *apostrophe(const uint8_t *p, const uint8_t *end, bool any_case)
{
	uint8_t fold = any_case ? 0x20 : 0, a = p[1] | fold;
	if (a == 's' || a == 't' || a == 'm' || a == 'd')
		return p + 2;
	if (end - p < 3)
		return NULL;
	if (any_case && p[1] == 0xc5 && p[2] == 0xbf)
		return p + 3;
	uint8_t b = p[2] | fold;
	return (b == 'e' && (a == 'r' || a == 'v')) || (a == 'l' && b == 'l') ? p + 3 : NULL;
}

ALWAYS_INLINE const uint8_t *contraction(const uint8_t *p, const uint8_t *end, bool any_case)
{
	return end - p >= 2 && *p == '\'' ? apostrophe(p, end, any_case) : NULL;
}

/* [\r\n]* or [\r\n/]* */
ALWAYS_INLINE const uint8_t *line_tail(const uint8_t *p, const uint8_t *end, bool slash)
{
	while (p < end && (*p == '\r' || *p == '\n' || (slash && *p == '/')))
		p++;
	return p;
}

/*  ?[set]+ followed by a line tail, or NULL. */
ALWAYS_INLINE const uint8_t *punctuation(const struct tok_table *k, const uint8_t *p, const uint8_t *end, uint32_t set)
{
	size_t n;
	const uint8_t *q = *p == ' ' ? p + 1 : p;
	if (q == end || !IN(set, tok_class_at(k, q, &n)))
		return NULL;
	return run(k, q + n, end, set);
}

/* \s*[\r\n]+|\s+(?!\S)|\s+ at white space: through the last line end of the run; else all of a run at the end of the
 * text; else all but its last character; a lone one as it is. */
ALWAYS_INLINE const uint8_t *white(const struct tok_table *k, const uint8_t *p, const uint8_t *end, bool lines)
{
	const uint8_t *q = p, *last = p, *line = NULL;
	size_t n;
	for (enum tok_class c; q < end && IN(SET_SPACE, c = tok_class_at(k, q, &n)); q += n) {
		last = q;
		if (c == TOK_NEWLINE)
			line = q + 1;
	}
	if (lines && line)
		return line;
	return q == end || last == p ? q : last;
}

/* \p{N}{1,most} at a number. */
ALWAYS_INLINE const uint8_t *number(const struct tok_table *k, const uint8_t *p, const uint8_t *end, int most)
{
	size_t n;
	for (; most > 0 && p < end && IN(SET_N, tok_class_at(k, p, &n)); most--)
		p += n;
	return p;
}

/* ---- gpt2 */

static const uint8_t *next_gpt2(const struct tok_table *k, const uint8_t *p, const uint8_t *end)
{
	const uint8_t *q = contraction(p, end, false);
	if (q)
		return q;
	size_t n;
	q = *p == ' ' && p + 1 < end ? p + 1 : p;
	enum tok_class c = tok_class_at(k, q, &n);
	if (IN(SET_L, c))
		return letters(k, q + n, end, SET_L);
	if (IN(SET_N, c))
		return run(k, q + n, end, SET_N);
	if (IN(SET_OTHER, c))
		return run(k, q + n, end, SET_OTHER);
	return white(k, p, end, false);
}

/* ---- cl100k and its kin */

struct lines {
	int digits;
	uint32_t letters;
};

ALWAYS_INLINE const uint8_t *next_lines(const struct tok_table *k, const uint8_t *p, const uint8_t *end, struct lines r)
{
	size_t n, m;
	if (*p == ' ' && p + 1 < end && ascii_letter(p[1])) /* most of most texts */
		return letters(k, p + 2, end, r.letters);
	enum tok_class c = tok_class_at(k, p, &n);
	if (IN(r.letters, c))
		return letters(k, p + n, end, r.letters);
	const uint8_t *q = contraction(p, end, true);
	if (q)
		return q;
	if (IN(SET_LEAD, c) && p + n < end && IN(r.letters, tok_class_at(k, p + n, &m)))
		return letters(k, p + n + m, end, r.letters);
	if (IN(SET_N, c))
		return number(k, p, end, r.digits);
	if ((q = punctuation(k, p, end, SET_OTHER & ~r.letters)))
		return line_tail(q, end, false);
	return white(k, p, end, true);
}

#define LINES(name, ...)                                                                                                                   \
	static const uint8_t *name(const struct tok_table *k, const uint8_t *p, const uint8_t *end)                                        \
	{                                                                                                                                  \
		return next_lines(k, p, end, (struct lines){ __VA_ARGS__ });                                                               \
	}
LINES(next_cl100k, .digits = 3, .letters = SET_L)
LINES(next_qwen2, .digits = 1, .letters = SET_L)
LINES(next_qwen35, .digits = 1, .letters = SET_L | SET_M)

/* ---- o200k and its kin */

struct cased {
	bool contractions, slash;
	int digits;
	uint32_t upper, lower;
};

/* upper*lower+ or, when no lower can be had, upper+; then a contraction. The regex gives back the last capital that can
 * also be a small letter (a modifier, a letter without case, a mark) when nothing small follows. */
ALWAYS_INLINE const uint8_t *cased_word(const struct tok_table *k, const uint8_t *p, const uint8_t *end, struct cased r, bool *ret_small)
{
	const uint8_t *q = p, *both = NULL, *plain;
	size_t n;
	while (q < end && (uint8_t)(*q - 'A') < 26)
		q++;
	plain = tok_ascii_letters(q, end, true);
	if (plain == end || *plain < 0x80) {
		*ret_small = plain > q;
		return plain > p ? plain : NULL;
	}
	for (enum tok_class c; q < end && IN(r.upper, c = tok_class_at(k, q, &n)); q += n)
		if (IN(r.lower, c))
			both = q + n;
	const uint8_t *small = run(k, q, end, r.lower);
	*ret_small = small > q || both;
	return small > q ? small : both ? both : q > p ? q : NULL;
}

ALWAYS_INLINE const uint8_t *cased_suffix(const uint8_t *p, const uint8_t *end, struct cased r)
{
	const uint8_t *q = r.contractions ? contraction(p, end, true) : NULL;
	return q ? q : p;
}

/* The two letter alternatives at p, of class c and n bytes, or NULL. The first one (some small letter) is tried with the
 * leading character and without it before the second. */
ALWAYS_INLINE const uint8_t *cased_match(const struct tok_table *k, const uint8_t *p, const uint8_t *end, struct cased r)
{
	size_t n;
	enum tok_class c = tok_class_at(k, p, &n);
	bool small_behind = false, small_here = false;
	const uint8_t *behind = IN(SET_LEAD, c) && p + n < end ? cased_word(k, p + n, end, r, &small_behind) : NULL;
	if (behind && small_behind)
		return cased_suffix(behind, end, r);
	const uint8_t *here = IN(r.upper | r.lower, c) ? cased_word(k, p, end, r, &small_here) : NULL;
	if (here && small_here)
		return cased_suffix(here, end, r);
	if (behind)
		return cased_suffix(behind, end, r);
	return here ? cased_suffix(here, end, r) : NULL;
}

ALWAYS_INLINE const uint8_t *next_cased(const struct tok_table *k, const uint8_t *p, const uint8_t *end, struct cased r)
{
	size_t n;
	const uint8_t *q = cased_match(k, p, end, r);
	if (q)
		return q;
	if (IN(SET_N, tok_class_at(k, p, &n)))
		return number(k, p, end, r.digits);
	if ((q = punctuation(k, p, end, SET_OTHER)))
		return line_tail(q, end, r.slash);
	return white(k, p, end, true);
}

#define CASED(name, ...)                                                                                                                   \
	static const uint8_t *name(const struct tok_table *k, const uint8_t *p, const uint8_t *end)                                        \
	{                                                                                                                                  \
		return next_cased(k, p, end, (struct cased){ __VA_ARGS__ });                                                               \
	}
CASED(next_o200k, .contractions = true, .slash = true, .digits = 3, .upper = SET_UPPER, .lower = SET_LOWER)
CASED(next_tekken, .slash = true, .digits = 1, .upper = SET_UPPER, .lower = SET_LOWER)
CASED(next_kimi_rest, .contractions = true, .digits = 3, .upper = SET_UPPER & ~SET_HAN, .lower = SET_LOWER & ~SET_HAN)

static const uint8_t *next_kimi(const struct tok_table *k, const uint8_t *p, const uint8_t *end)
{
	const uint8_t *q = run(k, p, end, SET_HAN);
	return q > p ? q : next_kimi_rest(k, p, end);
}

/* ---- deepseek: three in turn */

static const uint8_t *next_digits3(const struct tok_table *k, const uint8_t *p, const uint8_t *end)
{
	const uint8_t *q = number(k, p, end, 3);
	return q > p ? q : run(k, p, end, SET_ALL & ~SET_N);
}

static const uint8_t *next_digits1(const struct tok_table *k, const uint8_t *p, const uint8_t *end)
{
	const uint8_t *q = number(k, p, end, 1);
	return q > p ? q : run(k, p, end, SET_ALL & ~SET_N);
}

/* [U+4E00-U+9FA5 U+3040-U+30FF]+ */
static const uint8_t *next_cjk(const struct tok_table *k, const uint8_t *p, const uint8_t *end)
{
	(void)k;
	size_t n;
	uint32_t cp = tok_cp(p, &n);
	bool inside = cp - 0x4e00 <= 0x9fa5 - 0x4e00 || cp - 0x3040 <= 0x30ff - 0x3040;
	for (p += n; p < end; p += n) {
		cp = tok_cp(p, &n);
		if ((cp - 0x4e00 <= 0x9fa5 - 0x4e00 || cp - 0x3040 <= 0x30ff - 0x3040) != inside)
			break;
	}
	return p;
}

static bool ascii_punct(uint8_t b) { return b > 0x20 && b < 0x7f && !ascii_letter(b) && (uint8_t)(b - '0') > 9; }

static const uint8_t *deepseek_match(const struct tok_table *k, const uint8_t *p, const uint8_t *end)
{
	enum { WORD = SET_L | SET_M, MARK = SET_P | SET_S, LEAD = SET_ALL & ~(SET_NEWLINE | SET_L | MARK) };
	size_t n, m;
	const uint8_t *q;
	if (ascii_punct(*p) && p + 1 < end && ascii_letter(p[1])) {
		for (q = p + 2; q < end && ascii_letter(*q);)
			q++;
		return q;
	}
	enum tok_class c = tok_class_at(k, p, &n);
	if (IN(WORD, c))
		return letters(k, p + n, end, WORD);
	if (IN(LEAD, c) && p + n < end && IN(WORD, tok_class_at(k, p + n, &m)))
		return letters(k, p + n + m, end, WORD);
	if ((q = punctuation(k, p, end, MARK)))
		return line_tail(q, end, false);
	return IN(SET_SPACE, c) ? white(k, p, end, true) : NULL;
}

static const uint8_t *next_deepseek(const struct tok_table *k, const uint8_t *p, const uint8_t *end)
{
	size_t n;
	const uint8_t *q = deepseek_match(k, p, end);
	while (!q) { /* a gap: up to where the next match begins */
		tok_cp(p, &n);
		p += n;
		if (p == end || deepseek_match(k, p, end))
			return p;
	}
	return q;
}

/* The pre-tokenizer Digits, each one alone. */
static const uint8_t *next_each_digit(const struct tok_table *k, const uint8_t *p, const uint8_t *end)
{
	enum { DIGITS = SET_N | BIT(TOK_OTHER_DIGIT) };
	size_t n;
	return IN(DIGITS, tok_class_at(k, p, &n)) ? p + n : run(k, p, end, SET_ALL & ~DIGITS);
}

static const uint8_t *next_whole(const struct tok_table *k, const uint8_t *p, const uint8_t *end)
{
	(void)k;
	(void)p;
	return end;
}

/* ---- the table */

#define SPLIT(name)                                                                                                                        \
	static void split_##name(const struct tok_table *k, const uint8_t *p, const uint8_t *end, struct tok_ends *ret_ends)               \
	{                                                                                                                                  \
		size_t n = 0;                                                                                                              \
		do                                                                                                                         \
			ret_ends->p[n++] = p = next_##name(k, p, end);                                                                     \
		while (n < TOK_ENDS && p < end);                                                                                           \
		ret_ends->n = n;                                                                                                           \
	}
SPLIT(gpt2)
SPLIT(cl100k)
SPLIT(qwen2)
SPLIT(qwen35)
SPLIT(o200k)
SPLIT(tekken)
SPLIT(kimi)
SPLIT(digits3)
SPLIT(digits1)
SPLIT(cjk)
SPLIT(deepseek)
SPLIT(each_digit)
SPLIT(whole)

#define CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define LINE_ENDS "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define U "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define L "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define U_KIMI "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]"
#define L_KIMI "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]"
#define LEAD_CHAR "[^\\r\\n\\p{L}\\p{N}]?"
#define CASED_LETTERS(u, l, suffix) LEAD_CHAR u "*" l "+" suffix "|" LEAD_CHAR u "+" l "*" suffix

static const struct tok_splitter SPLITTERS[] = {
	{ STR_INIT("'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"), split_gpt2, "gpt2", true, false },
	{ STR_INIT("<gpt2>"), split_gpt2, "gpt2", true, false },
	{ STR_INIT(CONTRACTIONS "|" LEAD_CHAR "\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" LINE_ENDS), split_cl100k, "cl100k", true,
		true },
	{ STR_INIT("'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}{1,3}| "
		   "?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+"),
		split_cl100k, "cl100k", true, true },
	{ STR_INIT(CONTRACTIONS "|" LEAD_CHAR "\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" LINE_ENDS), split_qwen2, "qwen2", true, true },
	{ STR_INIT(CONTRACTIONS "|" LEAD_CHAR "[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*" LINE_ENDS), split_qwen35,
		"qwen3.5", true, true },
	{ STR_INIT(CASED_LETTERS(U, L, CONTRACTIONS "?") "|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*" LINE_ENDS), split_o200k, "o200k",
		true, true },
	{ STR_INIT(CASED_LETTERS(U, L, "") "|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*" LINE_ENDS), split_tekken, "tekken", true, true },
	{ STR_INIT("[\\p{Han}]+|" CASED_LETTERS(U_KIMI, L_KIMI, CONTRACTIONS "?") "|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" LINE_ENDS),
		split_kimi, "kimi", true, true },
	{ STR_INIT("\\p{N}{1,3}"), split_digits3, "digits-3", false, true },
	{ STR_INIT("\\p{N}"), split_digits1, "digits-1", false, true },
	{ STR_INIT("[\xe4\xb8\x80-\xe9\xbe\xa5\xe3\x81\x80-\xe3\x82\x9f\xe3\x82\xa0-\xe3\x83\xbf]+"), split_cjk, "cjk", false, true },
	{ STR_INIT("[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| "
		   "?[\\p{P}\\p{S}]+[\\r\\n]*" LINE_ENDS),
		split_deepseek, "deepseek", false, true },
	{ STR_INIT("<digits>"), split_each_digit, "digits", true, true },
	{ STR_INIT("<whole>"), split_whole, "whole", true, false },
};

const struct tok_splitter *tok_splitter_find(struct str pattern)
{
	for (size_t i = 0; i < ARRAY_LEN(SPLITTERS); i++)
		if (str_eq(SPLITTERS[i].pattern, pattern))
			return &SPLITTERS[i];
	return NULL;
}
