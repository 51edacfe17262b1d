/* added.c: added tokens in a text, leftmost-longest, by a trie tried at each byte that begins a token. Tokens are short,
 * so the retries of hostile text are bounded by the longest of them. */
#include <stdlib.h>
#include <string.h>

#include "tok/tok_priv.h"

/* Merge sort (qsort is not among what core may call); stable: of equal patterns the first one counts. */
static void sort_patterns(struct tok_pattern *p, size_t n)
{
	struct tok_pattern *from = p, *to = must_malloc((n + 1) * sizeof(*p)), *spare = to;
	for (size_t width = 1; width < n; width *= 2) {
		for (size_t lo = 0; lo < n; lo += 2 * width) {
			size_t mid = MIN(lo + width, n), hi = MIN(lo + 2 * width, n), i = lo, j = mid;
			for (size_t k = lo; k < hi; k++)
				to[k] = j == hi || (i < mid && str_cmp(from[i].text, from[j].text) <= 0) ? from[i++] : from[j++];
		}
		struct tok_pattern *t = from;
		from = to;
		to = t;
	}
	if (from != p)
		memcpy(p, from, n * sizeof(*p));
	free(spare);
}

struct range {
	size_t low, high, depth;
};

/* Makes the children of node `at` from the patterns of its range (sorted, all longer than depth). */
static void add_children(struct tok_trie *t, struct range *ranges, const struct tok_pattern *p, size_t at)
{
	struct range r = ranges[at];
	t->nodes[at].first_child = (uint32_t)t->n_nodes;
	while (r.low < r.high && p[r.low].text.n == r.depth)
		t->nodes[at].token = t->nodes[at].token == TOK_NONE ? p[r.low].token : t->nodes[at].token, r.low++;
	while (r.low < r.high) {
		size_t end = r.low;
		char byte = p[r.low].text.p[r.depth];
		while (end < r.high && p[end].text.p[r.depth] == byte)
			end++;
		ranges[t->n_nodes] = (struct range){ r.low, end, r.depth + 1 };
		t->nodes[t->n_nodes++] = (struct tok_trie_node){ .byte = (uint8_t)byte, .token = TOK_NONE };
		t->inside[(uint8_t)byte] |= r.depth > 0;
		t->nodes[at].n_children++;
		r.low = end;
	}
}

void tok_trie_init(struct tok_trie *t, const struct tok_pattern *patterns, size_t n)
{
	size_t most = 1;
	struct tok_pattern *sorted = must_malloc((n + 1) * sizeof(*sorted));
	for (size_t i = 0; i < n; i++) {
		sorted[i] = patterns[i];
		most += patterns[i].text.n;
	}
	sort_patterns(sorted, n);
	*t = (struct tok_trie){ .nodes = must_calloc(most, sizeof(*t->nodes)), .n_nodes = 1 };
	struct range *ranges = must_malloc(most * sizeof(*ranges));
	ranges[0] = (struct range){ 0, n, 0 };
	t->nodes[0].token = TOK_NONE;
	for (size_t i = 0; i < t->n_nodes; i++)
		add_children(t, ranges, sorted, i);
	t->nodes = must_realloc(t->nodes, t->n_nodes * sizeof(*t->nodes));
	memset(t->root, 0xff, sizeof(t->root));
	for (uint32_t i = 0; i < t->nodes[0].n_children; i++) {
		t->only_root = t->nodes[1 + i].byte;
		t->root[t->only_root] = 1 + i;
		t->n_roots++;
	}
	free(ranges);
	free(sorted);
}

void tok_trie_done(struct tok_trie *t)
{
	free(t->nodes);
	*t = (struct tok_trie){ 0 };
}

static const struct tok_trie_node *child_of(const struct tok_trie *t, const struct tok_trie_node *node, uint8_t byte)
{
	const struct tok_trie_node *c = t->nodes + node->first_child;
	size_t low = 0, high = node->n_children;
	while (low < high) {
		size_t mid = (low + high) / 2;
		if (c[mid].byte < byte)
			low = mid + 1;
		else
			high = mid;
	}
	return low < node->n_children && c[low].byte == byte ? c + low : NULL;
}

/* The longest pattern that begins at i. */
static bool match_at(const struct tok_trie *t, struct str text, size_t i, struct tok_match *ret_m)
{
	const uint8_t *p = (const uint8_t *)text.p;
	const struct tok_trie_node *node = t->nodes + t->root[p[i]];
	bool found = false;
	for (size_t at = i + 1;; at++) {
		if (node->token != TOK_NONE) {
			*ret_m = (struct tok_match){ i, at, node->token };
			found = true;
		}
		if (at == text.n || node->n_children == 0 || !(node = child_of(t, node, p[at])))
			return found;
	}
}

bool tok_trie_before(const struct tok_trie *t, struct str text, struct tok_range where, struct tok_match *ret_m)
{
	const uint8_t *p = (const uint8_t *)text.p;
	if (t->n_roots == 0)
		return false;
	for (size_t i = where.from; i < where.upto; i++) {
		if (t->n_roots == 1) {
			const uint8_t *q = memchr(p + i, t->only_root, where.upto - i);
			if (!q)
				return false;
			i = (size_t)(q - p);
		}
		while (t->root[p[i]] == TOK_NONE)
			if (++i == where.upto)
				return false;
		if (match_at(t, text, i, ret_m))
			return true;
	}
	return false;
}

size_t tok_trie_apart(const struct tok_trie *t, struct str text, size_t at)
{
	while (at > 0 && t->inside[(uint8_t)text.p[at]])
		at--;
	return at;
}

size_t tok_trie_open(const struct tok_trie *t, struct str text, size_t from)
{
	const uint8_t *p = (const uint8_t *)text.p;
	for (; t->n_roots && from < text.n; from++) {
		const struct tok_trie_node *node = t->root[p[from]] == TOK_NONE ? NULL : t->nodes + t->root[p[from]];
		for (size_t at = from + 1; node && at < text.n; at++)
			node = child_of(t, node, p[at]);
		if (node && node->n_children)
			return from;
	}
	return text.n;
}

bool tok_trie_next(const struct tok_trie *t, struct str text, size_t from, struct tok_match *ret_m)
{
	return tok_trie_before(t, text, (struct tok_range){ from, text.n }, ret_m);
}
