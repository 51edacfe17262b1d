/* load_config.c: what the workers' loader adds from tokenizer_config.json (and, when that has no added_tokens_decoder,
 * from special_tokens_map.json and added_tokens.json): more added tokens, the names of special ones, and BOS and EOS around a prompt. */
#include <stdlib.h>
#include <string.h>

#include "tok/tok_priv.h"
#include "wire/json.h"

static const struct str NAMES[] = {
	STR_INIT("bos_token"),
	STR_INIT("eos_token"),
	STR_INIT("unk_token"),
	STR_INIT("sep_token"),
	STR_INIT("pad_token"),
	STR_INIT("cls_token"),
	STR_INIT("mask_token"),
};

struct reading {
	struct tok_adding *adding;
	struct tok_why why;
	bool again; /* see tok_worker_class */
};

void tok_set_around(struct tok *t, const uint32_t *before, size_t n_before, const uint32_t *after, size_t n_after)
{
	free(t->before);
	free(t->after);
	t->before = must_calloc(n_before + 1, sizeof(*before));
	t->after = must_calloc(n_after + 1, sizeof(*after));
	for (size_t i = 0; i < n_before; i++)
		t->before[i] = before[i];
	for (size_t i = 0; i < n_after; i++)
		t->after[i] = after[i];
	t->n_before = n_before;
	t->n_after = n_after;
}

/* ---- added_tokens_decoder: {"151643": {content, ...}} */

bool tok_config_lists(const struct tok_config *c) { return json_is(json_get(c->config, STR("added_tokens_decoder")), JSON_OBJECT); }

static enum err read_decoder_list(struct reading *r, const struct json_val *list)
{
	size_t n = json_len(list), i = 0;
	if (n > TOK_MAX_ADDED)
		return tok_say(r->why, ERR_LIMIT, "too many added tokens");
	struct tok_define *d = must_calloc(n + 1, sizeof(*d));
	enum err e = ERR_OK;
	for (struct json_iter it = json_each(list); e == ERR_OK && json_next(&it); i++) {
		e = tok_define_read(it.val, &d[i], r->why);
		if (e == ERR_OK && !str_to_u64(it.key, &d[i].id))
			e = tok_say(r->why, ERR_SYNTAX, "added_tokens_decoder has a key that is no id");
	}
	if (e == ERR_OK)
		e = tok_adding_by_id(r->adding, d, n, r->why);
	free(d);
	return e;
}

/* added_tokens.json, {"<pad>": 32000}, counts when there is no such list. What it changes depends on the loader: only a file that
 * says nothing new is taken. */
static enum err check_added(const struct reading *r, const struct json_val *added)
{
	for (struct json_iter it = json_each(added); json_next(&it);) {
		const struct tok_token *t = tok_adding_find(r->adding, it.key);
		uint64_t id;
		if (!t || !json_u64(it.val, &id) || id != t->id || t->lstrip || t->rstrip || t->single_word || t->normalized == t->special)
			return tok_say(r->why, ERR_UNSUPPORTED, "added_tokens.json has another token %.*s than tokenizer.json",
				STR_ARG(str_sub(it.key, 0, 100)));
	}
	return ERR_OK;
}

/* ---- named special tokens */

/* A token by name is a string or an object; the loader adds those that are not there yet, as special. Of one that only
 * tokenizer.json knows, loaders differ in whose flags count. */
static enum err add_named(struct reading *r, const struct json_val *v)
{
	struct tok_define d = { .special = true };
	if (!json_str(v, &d.content)) {
		TRY(tok_define_read(v, &d, r->why));
		d.special = true;
	}
	const struct tok_token *have = tok_adding_find(r->adding, d.content);
	if (!have)
		TRY(tok_adding_add(r->adding, &d, r->why));
	if (r->again)
		TRY(tok_adding_add(r->adding, &(struct tok_define){ .content = d.content, .special = true }, r->why));
	if (!have)
		return ERR_OK;
	if (have->configured || (have->lstrip == d.lstrip && have->rstrip == d.rstrip && have->single_word == d.single_word))
		return ERR_OK;
	return tok_say(r->why, ERR_UNSUPPORTED, "tokenizer.json and tokenizer_config.json disagree on the token %.*s", STR_ARG(d.content));
}

static void keep_name(struct tok *t, struct str name, const struct json_val *v)
{
	struct str text;
	if (!json_str(v, &text) && !json_str(json_get(v, STR("content")), &text))
		return;
	t->names = must_realloc(t->names, (t->n_names + 1) * sizeof(*t->names));
	t->names[t->n_names++] = (struct tok_name){ str_clone(name), str_clone(text) };
}

/* A special token that the config leaves out altogether is the class's own. */
static enum err add_default(struct reading *r, const struct tok_worker_class *class, struct str name)
{
	for (size_t i = 0; class && i < ARRAY_LEN(class->defaults); i++) {
		struct tok_define d = { .content = class->defaults[i].text, .special = true };
		if (d.content.n && str_eq(class->defaults[i].name, name) && !tok_adding_find(r->adding, d.content))
			return tok_adding_add(r->adding, &d, r->why);
	}
	return ERR_OK;
}

/* special_tokens_map.json counts when there is no list by id. */
static const struct json_val *named(const struct tok_config *c, struct str name)
{
	const struct json_val *v = tok_config_lists(c) ? NULL : json_get(c->map, name);
	return v ? v : json_get(c->config, name);
}

static enum err add_names(struct reading *r, const struct tok_config *c)
{
	static const struct str LISTS[] = { STR_INIT("additional_special_tokens"), STR_INIT("extra_special_tokens") };
	for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) {
		const struct json_val *v = named(c, NAMES[i]);
		if (!v)
			TRY(add_default(r, c->class, NAMES[i]));
		else if (!json_absent(v))
			TRY(add_named(r, v));
	}
	for (size_t i = 0; i < ARRAY_LEN(LISTS); i++)
		for (struct json_iter it = json_each(named(c, LISTS[i])); json_next(&it);)
			TRY(add_named(r, it.val));
	return ERR_OK;
}

/* ---- the whole */

static int tristate(const struct json_val *v)
{
	bool b;
	return json_bool(v, &b) ? b : -1;
}

enum err tok_config_tokens(const struct tok_config *c, struct tok_adding *a, struct tok_why why)
{
	struct reading r = { a, why, c->class && c->class->again };
	if (tok_config_lists(c))
		TRY(read_decoder_list(&r, json_get(c->config, STR("added_tokens_decoder"))));
	else
		TRY(check_added(&r, c->added));
	return add_names(&r, c);
}

enum err tok_config_read(struct tok *t, struct tok_config *c, struct tok_why why)
{
	if (json_true(json_get(c->config, STR("split_special_tokens"))))
		return tok_say(why, ERR_UNSUPPORTED, "split_special_tokens is not supported");
	for (size_t i = 0; i < ARRAY_LEN(NAMES); i++)
		keep_name(t, NAMES[i], named(c, NAMES[i]));
	c->add_bos = tristate(json_get(c->config, STR("add_bos_token")));
	c->add_eos = tristate(json_get(c->config, STR("add_eos_token")));
	return ERR_OK;
}

static bool around_is(const struct tok *t, const uint32_t *bos, bool with_bos, const uint32_t *eos, bool with_eos)
{
	return t->n_before == with_bos && t->n_after == with_eos && (!with_bos || t->before[0] == *bos) &&
	       (!with_eos || t->after[0] == *eos);
}

/* add_bos_token or add_eos_token said: under transformers 4 they replace what the file's post-processor puts around a prompt;
 * 5 does not look at them when there is a tokenizer.json. */
enum err tok_config_around(struct tok *t, const struct tok_config *c, enum tok_loader loader, struct tok_why why)
{
	uint32_t bos = 0, eos = 0;
	struct str text;
	if ((c->add_bos < 0 && c->add_eos < 0) || loader == TOK_LOADER_5)
		return ERR_OK;
	bool with_bos = c->add_bos == 1 && tok_special_text(t, STR("bos_token"), &text);
	if (with_bos && !tok_id_of(t, text, &bos))
		return tok_say(why, ERR_UNSUPPORTED, "bos_token is not in the vocabulary");
	bool with_eos = c->add_eos == 1 && tok_special_text(t, STR("eos_token"), &text);
	if (with_eos && !tok_id_of(t, text, &eos))
		return tok_say(why, ERR_UNSUPPORTED, "eos_token is not in the vocabulary");
	if (loader == TOK_LOADER_ANY)
		t->around_unknown = !around_is(t, &bos, with_bos, &eos, with_eos);
	else
		tok_set_around(t, &bos, with_bos, &eos, with_eos);
	return ERR_OK;
}
