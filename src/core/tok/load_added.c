/* load_added.c: the list of added tokens while it is being told, with the reference's own habits: the id is that of the
 * vocabulary or the next free one; what the file calls it at most tells the order. What is said last of a token counts. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "tok/tok_priv.h"
#include "wire/json.h"

void tok_adding_init(struct tok_adding *a, const struct tok_pool *pieces, uint32_t vocab_size)
{
	*a = (struct tok_adding){ .pieces = pieces, .vocab_size = vocab_size, .max_id = TOK_NONE };
	map_init(&a->by_content);
	map_init(&a->by_id);
}

void tok_adding_done(struct tok_adding *a)
{
	for (size_t i = 0; i < a->tokens.n; i++)
		free((void *)(uintptr_t)a->tokens.p[i].content.p);
	VEC_FREE(&a->tokens);
	VEC_FREE(&a->special);
	VEC_FREE(&a->plain);
	map_done(&a->by_content);
	map_done(&a->by_id);
}

struct tok_token *tok_adding_find(const struct tok_adding *a, struct str content)
{
	uint64_t at;
	return map_get(&a->by_content, hash_str(content, 0), &at) ? &a->tokens.p[at] : NULL;
}

static uint32_t next_id(const struct tok_adding *a)
{
	if (a->max_id == TOK_NONE)
		return a->vocab_size;
	return a->max_id >= a->vocab_size ? a->max_id + 1 : a->vocab_size;
}

static bool same(const struct tok_token *t, const struct tok_define *d)
{
	return str_eq(t->content, d->content) && t->single_word == d->single_word && t->lstrip == d->lstrip && t->rstrip == d->rstrip &&
	       t->normalized == d->normalized && t->special == d->special;
}

/* A new token of this content, the last of them all. */
static enum err append(struct tok_adding *a, const struct tok_define *d, struct tok_why why)
{
	uint64_t owner;
	uint32_t id = tok_pool_find(a->pieces, d->content);
	if (id == TOK_NONE)
		id = next_id(a);
	if (map_get(&a->by_id, id, &owner))
		return tok_say(why, ERR_UNSUPPORTED, "two added tokens have the id %u", id);
	if (id >= TOK_MAX_VOCAB || a->tokens.n >= TOK_MAX_ADDED)
		return tok_say(why, ERR_LIMIT, "too many added tokens");
	map_put(&a->by_content, hash_str(d->content, 0), a->tokens.n);
	map_put(&a->by_id, id, a->tokens.n);
	a->max_id = a->max_id == TOK_NONE ? id : MAX(a->max_id, id);
	VEC_PUSH(&a->tokens, (struct tok_token){ .content = str_clone(d->content), .id = id });
	return ERR_OK;
}

enum err tok_adding_add(struct tok_adding *a, const struct tok_define *d, struct tok_why why)
{
	if (d->content.n == 0)
		return ERR_OK;
	const struct tok_token *old = tok_adding_find(a, d->content);
	if (old && !str_eq(old->content, d->content))
		return tok_say(why, ERR_UNSUPPORTED, "two added tokens have the same digest");
	bool repeated = old && same(old, d);
	if (a->strict && old && !repeated)
		return tok_say(why, ERR_UNSUPPORTED, "the token %.*s is added twice with different flags", STR_ARG(str_sub(d->content, 0, 100)));
	size_t at = old ? (size_t)(old - a->tokens.p) : a->tokens.n;
	if (!old)
		TRY(append(a, d, why));
	struct tok_token *t = &a->tokens.p[at];
	struct tok_define kept = *d;
	kept.content = t->content;
	bool special = t->listed;
	if (d->special && !special)
		VEC_PUSH(&a->special, kept);
	t->listed |= d->special;
	if (repeated)
		return ERR_OK;
	if (!d->special && !special)
		VEC_PUSH(&a->plain, kept);
	t->single_word = d->single_word;
	t->lstrip = d->lstrip;
	t->rstrip = d->rstrip;
	t->normalized = d->normalized;
	t->special = d->special;
	return ERR_OK;
}

enum err tok_adding_by_id(struct tok_adding *a, const struct tok_define *d, size_t n, struct tok_why why)
{
	uint64_t top = 0;
	enum err e = ERR_OK;
	for (size_t i = 0; i < n; i++) {
		if (d[i].id >= TOK_MAX_VOCAB)
			return tok_say(why, ERR_LIMIT, "an added token has no id, or one of %d or more", TOK_MAX_VOCAB);
		top = MAX(top, d[i].id + 1);
	}
	uint32_t *at = must_calloc(top + 1, sizeof(*at)); /* id -> place + 1 */
	for (size_t i = 0; i < n; i++)
		at[d[i].id] = (uint32_t)i + 1;
	for (size_t id = 0; id < top && e == ERR_OK; id++) {
		e = at[id] ? tok_adding_add(a, &d[at[id] - 1], why) : ERR_OK;
		struct tok_token *t = e == ERR_OK && at[id] ? tok_adding_find(a, d[at[id] - 1].content) : NULL;
		if (t)
			t->configured = true;
	}
	free(at);
	return e;
}

bool tok_adding_same(const struct tok_adding *a, const struct tok_adding *b)
{
	bool same_so_far = a->tokens.n == b->tokens.n;
	for (size_t i = 0; i < a->tokens.n && same_so_far; i++) {
		const struct tok_token *x = &a->tokens.p[i], *y = tok_adding_find(b, x->content);
		same_so_far = y && x->id == y->id && x->lstrip == y->lstrip && x->rstrip == y->rstrip && x->single_word == y->single_word &&
			      x->normalized == y->normalized;
	}
	return same_so_far;
}

enum err tok_define_read(const struct json_val *v, struct tok_define *ret_d, struct tok_why why)
{
	struct tok_define d = { .id = UINT64_MAX };
	if (!json_str(json_get(v, STR("content")), &d.content))
		return tok_say(why, ERR_SYNTAX, "an added token has no content");
	(void)json_u64(json_get(v, STR("id")), &d.id);
	d.single_word = json_true(json_get(v, STR("single_word")));
	d.lstrip = json_true(json_get(v, STR("lstrip")));
	d.rstrip = json_true(json_get(v, STR("rstrip")));
	d.special = json_true(json_get(v, STR("special")));
	if (!json_bool(json_get(v, STR("normalized")), &d.normalized))
		d.normalized = !d.special;
	*ret_d = d;
	return ERR_OK;
}

/* ---- into the tokenizer */

/* What a late token looks like in normal form. */
static enum err late_form(const struct tok *t, struct str content, struct str *ret_form, struct tok_why why)
{
	struct tok_scratch s = { .t = t };
	buf_init(&s.normal, content.n * 24 + 64);
	buf_init(&s.spaced, content.n * 24 + 64);
	enum err e = tok_normalize(t, &s, false, &content);
	*ret_form = str_clone(content);
	buf_done(&s.normal);
	VEC_FREE(&s.cps);
	if (e == ERR_OK && ret_form->n == 0)
		return tok_say(why, ERR_UNSUPPORTED, "an added token vanishes when it is normalised");
	return e;
}

struct patterns {
	VEC(struct tok_pattern) raw, late;
};

static enum err collect(const struct tok *t, struct tok_adding *a, struct patterns *p, struct tok_why why)
{
	for (size_t i = 0; i < a->special.n + a->plain.n; i++) {
		const struct tok_define *d = i < a->special.n ? &a->special.p[i] : &a->plain.p[i - a->special.n];
		uint64_t at;
		must(map_get(&a->by_content, hash_str(d->content, 0), &at));
		if (d->normalized) {
			struct tok_pattern late = { .token = (uint32_t)at };
			enum err e = late_form(t, d->content, &late.text, why);
			VEC_PUSH(&p->late, late);
			TRY(e);
		} else {
			VEC_PUSH(&p->raw, (struct tok_pattern){ d->content, (uint32_t)at });
		}
	}
	return ERR_OK;
}

static void take_tokens(struct tok_adding *a, struct tok *t)
{
	t->tokens = a->tokens.p;
	t->n_tokens = a->tokens.n;
	memset(&a->tokens, 0, sizeof(a->tokens));
	for (size_t i = 0; i < t->n_tokens; i++)
		map_put(&t->token_by_id, t->tokens[i].id, i);
}

enum err tok_adding_finish(struct tok_adding *a, struct tok *t, struct tok_why why)
{
	struct patterns p = { 0 };
	enum err e = collect(t, a, &p, why);
	if (e == ERR_OK && !t->control) {
		tok_trie_init(&t->raw, p.raw.p, p.raw.n);
		tok_trie_init(&t->late, p.late.p, p.late.n);
	}
	for (size_t i = 0; i < p.late.n; i++)
		free((void *)(uintptr_t)p.late.p[i].text.p);
	VEC_FREE(&p.raw);
	VEC_FREE(&p.late);
	take_tokens(a, t);
	return e;
}
