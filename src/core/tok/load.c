/* load.c: a tokenizer's life and the small questions about it. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tok/tok_priv.h"

enum err tok_say(struct tok_why why, enum err e, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	if (why.cap)
		vsnprintf(why.p, why.cap, fmt, ap);
	va_end(ap);
	return e;
}

/* ---- the fingerprint: of the files, and of what one may choose beside them */

static struct hash128 fold(struct hash128 h, struct str s)
{
	struct hash128 parts[2] = { h, hash_bytes128(s.p, s.n, h.lo) };
	return hash_bytes128(parts, sizeof(parts), s.n);
}

static struct hash128 fingerprint_of(const struct tok_files *f)
{
	struct hash128 h = { 1 + (uint64_t)f->unicode, f->loader }; /* 1: of this code's tables; raise it when they change */
	struct str all[] = { f->tokenizer_json, f->tiktoken, f->tekken, f->config, f->special_map, f->model_config, f->added };
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		h = fold(h, all[i]);
	return h;
}

/* ---- what follows from the tokens and is worth knowing before a text comes */


/* Could a plain cut fall into this token? */
static bool spans_plain_cut(const struct tok *t, struct str s)
{
	for (size_t i = 1; i < s.n; i++)
		if (t->kind == TOK_BYTES ? s.p[i - 1] == '\n' : tok_alnum(s.p[i - 1]) && (s.p[i] == ' ' || (uint8_t)s.p[i] == 0xe2))
			return true;
	return false;
}

static bool crossing_alnum(const struct tok *t)
{
	for (size_t i = 0; i < t->n_crossings; i++) {
		struct str a = t->crossings[i].before, b = t->crossings[i].after;
		if (tok_alnum(a.p[a.n - 1]) && (b.n < 2 || tok_alnum(b.p[1])))
			return true;
	}
	return false;
}

static void decide_cuts(struct tok *t)
{
	t->token_cuts = t->plain_cuts = true;
	for (size_t i = 0; i < t->n_tokens; i++) {
		const struct tok_token *k = &t->tokens[i];
		if (k->single_word)
			t->token_cuts = t->plain_cuts = false;
		if (spans_plain_cut(t, k->content) || (k->lstrip && tok_alnum(k->content.p[0])) || (k->rstrip && t->kind == TOK_SPACES))
			t->plain_cuts = false;
	}
	if (t->normal.form == TOK_FORM_NFKC || t->normal.form == TOK_FORM_NFKD)
		t->plain_cuts = false;
	for (size_t i = 0; i < t->n_stages; i++)
		t->plain_cuts &= t->stages[i]->newline_cut;
	if (t->kind == TOK_SPACES)
		t->plain_cuts &= t->cut_words && t->prepend != TOK_PREPEND_PIECE && t->prepend != TOK_PREPEND_MISSING && !crossing_alnum(t);
}

/* ---- life */

static enum err load_by_kind(struct tok *t, const struct tok_files *f, struct tok_why why)
{
	if (f->tokenizer_json.n)
		return tok_load_hf(t, f, why);
	if (f->tekken.n)
		return tok_load_tekken(t, f, why);
	if (f->tiktoken.n)
		return tok_load_tiktoken(t, f, why);
	return tok_say(why, ERR_NOT_FOUND, "there is no tokenizer.json, tekken.json or tiktoken.model");
}

enum err tok_load(const struct tok_files *f, char *why, size_t why_cap, struct tok **ret_t)
{
	struct tok_why w = { why, why_cap };
	struct tok *t = must_calloc(1, sizeof(*t));
	map_init(&t->token_by_id);
	tok_normal_init(&t->normal, TOK_FORM_NONE);
	tok_classes_init(&t->classes, f->unicode);
	memset(t->byte_id, 0xff, sizeof(t->byte_id));
	memset(t->ascii_id, 0xff, sizeof(t->ascii_id));
	t->unk_id = TOK_NONE;
	enum err e = load_by_kind(t, f, w);
	if (e != ERR_OK) {
		tok_free(t);
		return e;
	}
	decide_cuts(t);
	if (f->unicode == TOK_UNICODE_ANY && t->kind == TOK_BYTES)
		tok_disputed_init(&t->disputed);
	t->fingerprint = fingerprint_of(f);
	*ret_t = t;
	return ERR_OK;
}

static void free_str(struct str s) { free((void *)(uintptr_t)s.p); }

void tok_free(struct tok *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->n_tokens; i++)
		free_str(t->tokens[i].content);
	for (size_t i = 0; i < t->n_names; i++) {
		free_str(t->names[i].name);
		free_str(t->names[i].text);
	}
	for (size_t i = 0; i < t->n_crossings; i++) {
		free_str(t->crossings[i].before);
		free_str(t->crossings[i].after);
	}
	free(t->tokens);
	free(t->names);
	free(t->crossings);
	free(t->neighbours);
	free(t->before);
	free(t->after);
	map_done(&t->token_by_id);
	tok_trie_done(&t->raw);
	tok_trie_done(&t->late);
	tok_pool_done(&t->pieces);
	tok_pool_done(&t->bytes);
	tok_merges_done(&t->merges);
	tok_normal_done(&t->normal);
	tok_table_done(&t->classes);
	tok_table_done(&t->disputed);
	free(t);
}

/* ---- questions */

static size_t map_held(const struct map *m) { return m->cap * (sizeof(struct map_slot) + 1); }

size_t tok_bytes_held(const struct tok *t)
{
	size_t n = sizeof(*t) + (t->classes.n_blocks + t->disputed.n_blocks + t->normal.active.n_blocks) * 256;
	n += map_held(&t->token_by_id) + map_held(&t->normal.decomposed) + map_held(&t->normal.combining) + map_held(&t->normal.pairs);
	n += (t->raw.n_nodes + t->late.n_nodes) * sizeof(struct tok_trie_node) + t->n_tokens * sizeof(*t->tokens);
	n += tok_pool_held(&t->pieces) + tok_pool_held(&t->bytes);
	if (t->merges.slots)
		n += (t->merges.mask + 1) * sizeof(*t->merges.slots) + (t->merges.n + (size_t)1) * 4 + (t->merges.first ? 65536 * 4 : 0);
	return n;
}

const char *tok_scheme_name(const struct tok *t) { return t->scheme; }
struct hash128 tok_fingerprint(const struct tok *t) { return t->fingerprint; }
size_t tok_vocab_size(const struct tok *t) { return t->bytes.n; }

static const struct tok_token *token_of(const struct tok *t, uint32_t id)
{
	uint64_t at;
	return map_get(&t->token_by_id, id, &at) ? &t->tokens[at] : NULL;
}

bool tok_id_of(const struct tok *t, struct str token, uint32_t *ret_id)
{
	for (size_t i = 0; i < t->n_tokens; i++)
		if (str_eq(t->tokens[i].content, token)) {
			*ret_id = t->tokens[i].id;
			return true;
		}
	uint32_t id = tok_pool_find(&t->pieces, token);
	if (id == TOK_NONE)
		return false;
	*ret_id = id;
	return true;
}

struct str tok_piece(const struct tok *t, uint32_t id)
{
	const struct tok_token *k = token_of(t, id);
	return k ? k->content : tok_pool_get(&t->pieces, id);
}

bool tok_is_special(const struct tok *t, uint32_t id)
{
	const struct tok_token *k = token_of(t, id);
	return k && k->special;
}

bool tok_special_text(const struct tok *t, struct str name, struct str *ret_text)
{
	for (size_t i = 0; i < t->n_names; i++)
		if (str_eq(t->names[i].name, name)) {
			*ret_text = t->names[i].text;
			return true;
		}
	return false;
}
