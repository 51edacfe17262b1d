/* ids.c: the counted object; everything in one arena, freed with the last reference. */
#include "text/ids_priv.h"

#include <stdlib.h>
#include <string.h>

#include "base/must.h"

enum { ARENA_SLACK = 4096 }; /* what an arena takes beyond what is asked of it, about */

struct text_ids_made *text_ids_make(size_t n_prompts)
{
	struct text_ids_made *m = must_calloc(1, sizeof(*m));
	arena_init(&m->mem, 0);
	m->prompts = arena_new(&m->mem, struct text_prompt, n_prompts);
	m->pub = (struct text_ids){ .refs = 1, .n = n_prompts, .prompts = m->prompts };
	return m;
}

struct text_ids *text_ids_made(struct text_ids_made *m)
{
	m->pub.bytes = sizeof(*m) + m->mem.used_bytes + ARENA_SLACK;
	return &m->pub;
}

struct text_ids *text_ids_ref(struct text_ids *t)
{
	must(t->refs > 0 && t->refs < UINT32_MAX);
	t->refs++;
	return t;
}

void text_ids_unref(struct text_ids *t)
{
	if (!t)
		return;
	must(t->refs > 0);
	if (--t->refs)
		return;
	struct text_ids_made *m = container_of(t, struct text_ids_made, pub);
	arena_done(&m->mem);
	free(m);
}

bool text_ids_is_prefix(const struct text_ids *t) { return t->n == 1 && t->prompts[0].rest_tok; }

struct text_ids *text_ids_from(const struct text_span *lists, size_t n)
{
	struct text_ids_made *m = text_ids_make(n);
	for (size_t i = 0; i < n; i++) {
		m->prompts[i].ids = arena_copy(&m->mem, lists[i].p, lists[i].n, sizeof(*lists[i].p));
		m->prompts[i].n = lists[i].n;
		m->prompts[i].rest_tok = lists[i].rest_tok;
	}
	return text_ids_made(m);
}
