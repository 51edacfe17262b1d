/* memo.c: stretches as things of a table. */
#include "tok/memo.h"

#include <stdlib.h>
#include <string.h>

#include "base/must.h"

struct entry {
	struct memo_item item;
	size_t n_ids;
	uint32_t ids[]; /* the text's bytes lie behind them */
};

struct tok_memo {
	atomic_uint refs;
	struct memo *table;
	size_t least_bytes;
	_Atomic uint64_t known_bytes, new_bytes;
};

struct tok_memo *tok_memo_new(const struct tok_memo_opts *o)
{
	struct tok_memo *m = must_calloc(1, sizeof(*m));
	must(o->least_bytes);
	atomic_init(&m->refs, 1);
	m->table = memo_new(o->max_bytes, o->seed);
	m->least_bytes = o->least_bytes;
	return m;
}

struct tok_memo *tok_memo_ref(struct tok_memo *m)
{
	if (m)
		must(atomic_fetch_add(&m->refs, 1) > 0);
	return m;
}

void tok_memo_unref(struct tok_memo *m)
{
	if (!m || atomic_fetch_sub(&m->refs, 1) != 1)
		return;
	memo_free(m->table);
	free(m);
}

struct memo *tok_memo_table(struct tok_memo *m) { return m ? m->table : NULL; }
size_t tok_memo_least(const struct tok_memo *m) { return m->least_bytes; }

/* Of one tokenizer, in one place of a text. */
static struct hash128 kind_of(const struct tok *t, const struct tok_stretch *s)
{
	struct hash128 kind = tok_fingerprint(t);
	kind.lo ^= hash_mix(s->from + 1 + (s->ordinary ? 8u : 0));
	return kind;
}

static void append(struct tok_ids *ids, const struct entry *e)
{
	if (ids->n + e->n_ids > ids->cap) {
		ids->cap = MAX(ids->cap * 2, ids->n + e->n_ids + 64);
		ids->p = must_realloc(ids->p, ids->cap * sizeof(*ids->p));
	}
	memcpy(ids->p + ids->n, e->ids, e->n_ids * sizeof(*ids->p));
	ids->n += e->n_ids;
}

bool tok_memo_find(struct tok_memo *m, const struct tok *t, const struct tok_stretch *s, struct tok_ids *ids)
{
	struct memo_item *it = s->text.n <= TOK_MEMO_MOST_BYTES ? memo_find(m->table, kind_of(t, s), s->text) : NULL;
	if (!it)
		return false;
	append(ids, container_of(it, struct entry, item));
	memo_item_unref(it);
	return true;
}

static void entry_free(struct memo_item *it) { free(container_of(it, struct entry, item)); }

void tok_memo_keep(struct tok_memo *m, const struct tok *t, const struct tok_stretch *s, struct tok_ids ids)
{
	if (s->text.n > TOK_MEMO_MOST_BYTES)
		return;
	size_t ids_bytes = ids.n * sizeof(*ids.p), bytes = sizeof(struct entry) + ids_bytes + s->text.n;
	struct entry *e = must_malloc(bytes);
	char *text = (char *)(e->ids + ids.n);
	memo_item_init(&e->item);
	e->item.kind = kind_of(t, s);
	e->item.text = (struct str){ text, s->text.n };
	e->item.bytes = bytes;
	e->item.free = entry_free;
	e->n_ids = ids.n;
	if (ids.n)
		memcpy(e->ids, ids.p, ids_bytes);
	memcpy(text, s->text.p, s->text.n);
	memo_keep(m->table, &e->item);
	memo_item_unref(&e->item);
}

void tok_memo_count(struct tok_memo *m, size_t known_bytes, size_t new_bytes)
{
	atomic_fetch_add_explicit(&m->known_bytes, known_bytes, memory_order_relaxed);
	atomic_fetch_add_explicit(&m->new_bytes, new_bytes, memory_order_relaxed);
}

struct tok_memo_stats tok_memo_stats(const struct tok_memo *m)
{
	return (struct tok_memo_stats){ .known_bytes = m->known_bytes, .new_bytes = m->new_bytes, .table = memo_stats(m->table) };
}
