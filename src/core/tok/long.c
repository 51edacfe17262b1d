/* long.c: merging a long word. Every pair that may merge is an entry (rank, place); the least comes next. A plain heap of them
 * misses the cache at each step when a run of one letter makes a million, so most entries go another way: those of higher
 * ranks wait unsorted until their rank could be next, and then, when they are many, are sorted at once by their digits and
 * merged into a sorted list; only the few go through the heap. */
#include <string.h>

#include "tok/tok_priv.h"

#define NEVER UINT64_MAX
enum { MANY = 256 }; /* entries that are worth sorting together */

static uint64_t entry(uint32_t rank, size_t at) { return (uint64_t)rank << 32 | at; }

/* ---- the heap, four children a node */

static void sift_down(uint64_t *h, size_t n, size_t i)
{
	uint64_t x = h[i];
	for (size_t c; (c = 4 * i + 1) < n; i = c) {
		size_t end = MIN(c + 4, n), least = c;
		for (size_t k = c + 1; k < end; k++)
			if (h[k] < h[least])
				least = k;
		c = least;
		if (h[c] >= x)
			break;
		h[i] = h[c];
	}
	h[i] = x;
}

static void heap_push(struct tok_scratch *s, uint64_t x)
{
	VEC_PUSH(&s->heap, x);
	size_t i = s->heap.n - 1;
	for (; i > 0 && s->heap.p[(i - 1) / 4] > x; i = (i - 1) / 4)
		s->heap.p[i] = s->heap.p[(i - 1) / 4];
	s->heap.p[i] = x;
}

static uint64_t heap_pop(struct tok_scratch *s)
{
	uint64_t *h = s->heap.p, top = h[0];
	h[0] = h[--s->heap.n];
	if (s->heap.n)
		sift_down(h, s->heap.n, 0);
	return top;
}

/* ---- the sorted list */

static void make_room(struct tok_entries *v, size_t n)
{
	if (v->cap >= n)
		return;
	v->cap = MAX(n, 2 * v->cap);
	v->p = must_realloc(v->p, v->cap * sizeof(*v->p));
}

/* By their bytes from the lowest up, those left out that all have in common. The result is in v. */
static void sort_entries(struct tok_entries *v, struct tok_entries *spare)
{
	uint64_t differ = 0;
	for (size_t i = 1; i < v->n; i++)
		differ |= v->p[i] ^ v->p[0];
	make_room(spare, v->n);
	for (unsigned shift = 0; shift < 64; shift += 8) {
		size_t place[257] = { 0 };
		if ((differ >> shift & 255) == 0)
			continue;
		for (size_t i = 0; i < v->n; i++)
			place[(v->p[i] >> shift & 255) + 1]++;
		for (size_t b = 0; b < 256; b++)
			place[b + 1] += place[b];
		for (size_t i = 0; i < v->n; i++)
			spare->p[place[v->p[i] >> shift & 255]++] = v->p[i];
		spare->n = v->n;
		struct tok_entries t = *v;
		*v = *spare;
		*spare = t;
	}
}

/* due = what is left of it, and later, in order. */
static void merge_later(struct tok_scratch *s)
{
	struct tok_entries *a = &s->due, *b = &s->later, *out = &s->spare;
	size_t i = s->due_at, j = 0, n = 0;
	make_room(out, a->n - i + b->n);
	while (i < a->n || j < b->n)
		out->p[n++] = j == b->n || (i < a->n && a->p[i] <= b->p[j]) ? a->p[i++] : b->p[j++];
	out->n = n;
	struct tok_entries t = s->due;
	s->due = s->spare;
	s->spare = t;
	s->due_at = s->later.n = 0;
}

/* The entries that waited, without those that have gone stale meanwhile. */
static void settle_later(struct tok_scratch *s)
{
	size_t n = 0;
	for (size_t i = 0; i < s->later.n; i++)
		if (s->rank.p[(uint32_t)s->later.p[i]] == s->later.p[i] >> 32)
			s->later.p[n++] = s->later.p[i];
	s->later.n = n;
	if (n >= MANY && n >= (s->due.n - s->due_at) / 8) { /* so copying the list costs each entry a constant */
		sort_entries(&s->later, &s->spare);
		merge_later(s);
		return;
	}
	for (size_t i = 0; i < n; i++)
		heap_push(s, s->later.p[i]);
	s->later.n = 0;
}

/* ---- merging */

static void add(struct tok_scratch *s, uint32_t rank, size_t at)
{
	if (rank == TOK_NONE)
		return;
	if (rank > s->rank_now)
		VEC_PUSH(&s->later, entry(rank, at));
	else
		heap_push(s, entry(rank, at));
}

static uint64_t take(struct tok_scratch *s)
{
	for (;;) {
		uint64_t due = s->due_at < s->due.n ? s->due.p[s->due_at] : NEVER, top = s->heap.n ? s->heap.p[0] : NEVER,
			 least = MIN(due, top);
		if (s->later.n && (least == NEVER || least >> 32 > s->rank_now)) {
			settle_later(s);
			continue;
		}
		if (least == NEVER)
			return NEVER;
		s->rank_now = (uint32_t)(least >> 32);
		if (least == due) {
			s->due_at++;
			return due;
		}
		return heap_pop(s);
	}
}

static void merge_at(const struct tok *t, struct tok_scratch *s, size_t i)
{
	size_t n = s->sym.n, j = s->next.p[i], k = s->next.p[j];
	s->sym.p[i] = t->merges.result[s->rank.p[i]];
	s->rank.p[j] = TOK_NONE; /* whatever is said of j is stale now */
	s->next.p[i] = (uint32_t)k;
	if (k < n)
		s->prev.p[k] = (uint32_t)i;
	s->rank.p[i] = k < n ? tok_merges_rank(&t->merges, s->sym.p[i], s->sym.p[k]) : TOK_NONE;
	if (i > 0) {
		size_t h = s->prev.p[i];
		s->rank.p[h] = tok_merges_rank(&t->merges, s->sym.p[h], s->sym.p[i]);
		add(s, s->rank.p[h], h);
	}
	add(s, s->rank.p[i], i);
}

static void start(struct tok_scratch *s)
{
	size_t n = s->sym.n;
	s->next.n = s->prev.n = s->heap.n = s->due.n = s->due_at = s->later.n = 0;
	s->rank_now = 0;
	for (size_t i = 0; i < n; i++) {
		VEC_PUSH(&s->next, (uint32_t)(i + 1));
		VEC_PUSH(&s->prev, (uint32_t)(i - 1));
		if (s->rank.p[i] != TOK_NONE)
			VEC_PUSH(&s->later, entry(s->rank.p[i], i));
	}
}

void tok_merge_long(const struct tok *t, struct tok_scratch *s, struct tok_ids *ids)
{
	start(s);
	for (uint64_t least; (least = take(s)) != NEVER;) {
		size_t at = (uint32_t)least;
		if (s->rank.p[at] == (uint32_t)(least >> 32))
			merge_at(t, s, at);
	}
	for (size_t i = 0; i < s->sym.n; i = s->next.p[i])
		VEC_PUSH(ids, s->sym.p[i]);
}
