/* normal.c: NFC, NFD, NFKC and NFKD as the reference library has them: the algorithm of the standard over tables that
 * stop near Unicode 9, so newer marks have no class and newer compositions do not happen. */
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "tok/tok_priv.h"

#define TOK_CANONICAL
static const uint32_t CANONICAL[] = {
#include "tok/normal.def"
};
#undef TOK_CANONICAL
#define TOK_COMPATIBLE
static const uint32_t COMPATIBLE[] = {
#include "tok/normal.def"
};
#undef TOK_COMPATIBLE
#define TOK_COMBINING
static const uint32_t COMBINING[] = {
#include "tok/normal.def"
};
#undef TOK_COMBINING
#define TOK_PAIRS
static const uint32_t PAIRS[] = {
#include "tok/normal.def"
};
#undef TOK_PAIRS

/* Hangul is computed. */
enum { S_BASE = 0xac00, L_BASE = 0x1100, V_BASE = 0x1161, T_BASE = 0x11a7, L_N = 19, V_N = 21, T_N = 28, S_N = L_N * V_N * T_N };

static bool composes(enum tok_form f) { return f == TOK_FORM_NFC || f == TOK_FORM_NFKC; }
static bool compatible(enum tok_form f) { return f == TOK_FORM_NFKC || f == TOK_FORM_NFKD; }

static uint8_t combining_of(const struct tok_normal *n, uint32_t cp)
{
	uint64_t v;
	return map_get(&n->combining, cp, &v) ? (uint8_t)v : 0;
}

static void push_hangul(struct tok_cps *out, uint32_t s)
{
	VEC_PUSH(out, L_BASE + s / (V_N * T_N));
	VEC_PUSH(out, V_BASE + s % (V_N * T_N) / T_N);
	if (s % T_N)
		VEC_PUSH(out, T_BASE + s % T_N);
}

static void push_decomposed(const struct tok_normal *n, struct tok_cps *out, uint32_t cp)
{
	uint64_t at;
	if (cp - S_BASE < S_N) {
		push_hangul(out, cp - S_BASE);
	} else if (map_get(&n->decomposed, cp, &at)) {
		const uint32_t *row = (at >> 32 ? COMPATIBLE : CANONICAL) + (uint32_t)at;
		for (uint32_t i = 1; i <= (*row & 255); i++)
			VEC_PUSH(out, row[i]);
	} else {
		VEC_PUSH(out, cp);
	}
}

/* A run of marks, stably by class. Long runs are hostile: they are counted, not compared. */
static void order_run(uint32_t *p, const uint8_t *class, size_t n)
{
	uint32_t *copy = must_malloc(n * sizeof(*copy));
	size_t place[257] = { 0 };
	memcpy(copy, p, n * sizeof(*copy));
	for (size_t i = 0; i < n; i++)
		place[class[i] + 1]++;
	for (size_t c = 0; c < 256; c++)
		place[c + 1] += place[c];
	for (size_t i = 0; i < n; i++)
		p[place[class[i]]++] = copy[i];
	free(copy);
}

static void order_marks(const struct tok_normal *n, struct tok_cps *c)
{
	uint8_t few[64], *class = c->n <= sizeof(few) ? few : must_malloc(c->n);
	for (size_t i = 0; i < c->n; i++)
		class[i] = combining_of(n, c->p[i]);
	for (size_t i = 0; i < c->n;) {
		size_t end = i;
		bool sorted = true;
		while (end < c->n && class[end] != 0) {
			sorted &= end == i || class[end - 1] <= class[end];
			end++;
		}
		if (!sorted)
			order_run(c->p + i, class + i, end - i);
		i = MAX(end, i + 1);
	}
	if (class != few)
		free(class);
}

/* The composition of two, or 0. */
static uint32_t composed(const struct tok_normal *n, uint32_t a, uint32_t b)
{
	uint64_t v;
	if (a - L_BASE < L_N && b - V_BASE < V_N)
		return S_BASE + ((a - L_BASE) * V_N + (b - V_BASE)) * T_N;
	if (a - S_BASE < S_N && (a - S_BASE) % T_N == 0 && b - T_BASE - 1 < T_N - 1)
		return a + (b - T_BASE);
	return map_get(&n->pairs, (uint64_t)a << 32 | b, &v) ? (uint32_t)v : 0;
}

static void compose(const struct tok_normal *n, struct tok_cps *c)
{
	size_t out = 0, starter = SIZE_MAX;
	uint8_t last = 0; /* class of what stands last behind the starter; 0: nothing does */
	for (size_t i = 0; i < c->n; i++) {
		uint32_t cp = c->p[i], both;
		uint8_t class = combining_of(n, cp);
		bool reachable = starter != SIZE_MAX && (last == 0 || last < class);
		if (reachable && (both = composed(n, c->p[starter], cp)) != 0) {
			c->p[starter] = both;
			continue;
		}
		if (class == 0) {
			starter = out;
			last = 0;
		} else {
			last = class;
		}
		c->p[out++] = cp;
	}
	c->n = out;
}

static void normalize_cps(const struct tok_normal *n, struct tok_cps *c)
{
	order_marks(n, c);
	if (composes(n->form))
		compose(n, c);
}

/* ---- tables */

static void read_rows(struct tok_normal *n, const uint32_t *rows, size_t len, uint64_t table)
{
	for (size_t i = 0; i < len; i += 1 + (rows[i] & 255))
		map_put(&n->decomposed, rows[i] >> 8, table << 32 | i);
}

/* ---- which characters are active: they change, take part in reordering, or melt into what stands before them */

struct marking {
	struct tok_normal *n;
	uint8_t *active;
	struct tok_cps tmp;
};

/* One that decomposes: does it come back as itself, and can its first part melt into what stands before? */
static bool changes(struct marking *m, uint32_t cp)
{
	m->tmp.n = 0;
	push_decomposed(m->n, &m->tmp, cp);
	if (m->active[m->tmp.p[0]])
		return true;
	normalize_cps(m->n, &m->tmp);
	return m->tmp.n != 1 || m->tmp.p[0] != cp;
}

static void mark_rows(struct marking *m, const uint32_t *rows, size_t len)
{
	for (size_t i = 0; i < len; i += 1 + (rows[i] & 255))
		if (changes(m, rows[i] >> 8))
			m->active[rows[i] >> 8] = 1;
}

static void mark_active(struct marking *m, enum tok_form form)
{
	for (size_t i = 0; i < ARRAY_LEN(COMBINING); i++)
		m->active[COMBINING[i] >> 8] = 1;
	for (size_t i = 0; composes(form) && i < ARRAY_LEN(PAIRS); i += 3)
		m->active[PAIRS[i + 1]] = 1;
	memset(m->active + V_BASE, 1, V_N);
	memset(m->active + T_BASE + 1, 1, T_N - 1);
	if (!composes(form))
		memset(m->active + S_BASE, 1, S_N);
	mark_rows(m, CANONICAL, ARRAY_LEN(CANONICAL));
	if (compatible(form))
		mark_rows(m, COMPATIBLE, ARRAY_LEN(COMPATIBLE));
}

static void fill_active(void *ctx, uint32_t block, uint8_t out[256])
{
	const struct marking *m = ctx;
	memcpy(out, m->active + (size_t)block * 256, 256);
}

void tok_normal_init(struct tok_normal *n, enum tok_form form)
{
	n->form = form;
	map_init(&n->decomposed);
	map_init(&n->combining);
	map_init(&n->pairs);
	if (form == TOK_FORM_NONE)
		return;
	struct marking m = { .n = n, .active = must_calloc(TOK_CODE_POINTS, 1) };
	read_rows(n, CANONICAL, ARRAY_LEN(CANONICAL), 0);
	if (compatible(form))
		read_rows(n, COMPATIBLE, ARRAY_LEN(COMPATIBLE), 1);
	for (size_t i = 0; i < ARRAY_LEN(COMBINING); i++)
		map_put(&n->combining, COMBINING[i] >> 8, COMBINING[i] & 255);
	for (size_t i = 0; composes(form) && i < ARRAY_LEN(PAIRS); i += 3)
		map_put(&n->pairs, (uint64_t)PAIRS[i] << 32 | PAIRS[i + 1], PAIRS[i + 2]);
	mark_active(&m, form);
	tok_table_init(&n->active, fill_active, &m);
	free(m.active);
	VEC_FREE(&m.tmp);
}

void tok_normal_done(struct tok_normal *n)
{
	map_done(&n->decomposed);
	map_done(&n->combining);
	map_done(&n->pairs);
	tok_table_done(&n->active);
}

/* ---- use */

/* The place of the first active character at or after i, or text.n. */
static size_t next_active(const struct tok_normal *n, struct str text, size_t i)
{
	const uint8_t *p = (const uint8_t *)text.p;
	size_t len;
	for (i = utf8_ascii_end(text, i); i < text.n; i += len) { /* ASCII is never active, in no form */
		if (p[i] < 0x80 && (i = utf8_ascii_end(text, i)) == text.n)
			break;
		if (tok_table_get(&n->active, tok_cp(p + i, &len)))
			break;
	}
	return i;
}

bool tok_normal_quick(const struct tok_normal *n, struct str text) { return n->form == TOK_FORM_NONE || next_active(n, text, 0) == text.n; }

static enum err put_cps(const struct tok_cps *c, struct buf *b)
{
	for (size_t i = 0; i < c->n; i++) {
		char utf8[4];
		TRY(buf_add(b, (struct str){ utf8, utf8_put(c->p[i], utf8) }));
	}
	return ERR_OK;
}

enum err tok_normal_put(const struct tok_normal *n, struct str text, struct tok_cps *tmp, struct buf *b)
{
	const uint8_t *p = (const uint8_t *)text.p;
	size_t done = 0;
	if (n->form == TOK_FORM_NONE)
		return buf_add(b, text);
	while (done < text.n) {
		size_t at = next_active(n, text, done), from = at, len;
		if (at > done && at < text.n)
			from = (size_t)(tok_back(p + at) - p);
		TRY(buf_add(b, str_sub(text, done, from - done)));
		tmp->n = 0;
		for (done = from; done < text.n; done += len) {
			uint32_t cp = tok_cp(p + done, &len);
			if (done > at && !tok_table_get(&n->active, cp))
				break;
			push_decomposed(n, tmp, cp);
		}
		normalize_cps(n, tmp);
		TRY(put_cps(tmp, b));
	}
	return ERR_OK;
}
