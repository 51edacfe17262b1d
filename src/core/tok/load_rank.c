/* load_rank.c: files of ranks. tiktoken.model has a line "BASE64 RANK" for each piece; tekken.json a list of them and its
 * pattern. A pair merges when its bytes are a piece, the lowest rank first, so every way to cut a piece in two is a merge. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "tok/tok_priv.h"
#include "wire/json.h"

struct ranks {
	struct tok *t;
	struct tok_why why;
	struct arena a;
	struct str *pieces; /* by id */
	uint32_t first, end; /* ids of the ranked pieces */
	struct str lines; /* of tiktoken.model */
	uint32_t vocab; /* highest id + 1, special ones included */
	VEC(struct tok_pattern) special; /* token = id */
};

/* ---- base64 */

static int digit_of(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

static bool decode_base64(struct arena *a, struct str s, struct str *ret_bytes)
{
	while (s.n && s.p[s.n - 1] == '=')
		s.n--;
	char *out = arena_new(a, char, s.n * 3 / 4 + 1);
	uint32_t bits = 0, held = 0;
	size_t n = 0;
	for (size_t i = 0; i < s.n; i++) {
		int d = digit_of(s.p[i]);
		if (d < 0)
			return false;
		bits = bits << 6 | (uint32_t)d;
		held += 6;
		if (held >= 8)
			out[n++] = (char)(bits >> (held -= 8));
	}
	*ret_bytes = (struct str){ out, n };
	return n > 0;
}

/* ---- pieces and merges */

struct rank_pair {
	uint32_t a, b, id;
};
struct rank_pairs {
	struct rank_pair *p;
	size_t n, cap;
};

static void each_cut(const struct tok_pool *pool, uint32_t id, struct rank_pairs *pairs)
{
	struct str s = tok_pool_get(pool, id);
	for (size_t i = 1; i < s.n; i++) {
		uint32_t a = tok_pool_find(pool, str_sub(s, 0, i)), b = a == TOK_NONE ? a : tok_pool_find(pool, str_skip(s, i));
		if (b != TOK_NONE)
			VEC_PUSH(pairs, (struct rank_pair){ a, b, id });
	}
}

static enum err make_merges(struct ranks *r)
{
	struct tok *t = r->t;
	struct rank_pairs pairs = { 0 };
	for (uint32_t id = r->first; id < r->end; id++)
		each_cut(&t->pieces, id, &pairs);
	tok_merges_init(&t->merges, pairs.n, r->end);
	for (size_t i = 0; i < pairs.n; i++)
		tok_merges_put(&t->merges, pairs.p[i].a, pairs.p[i].b, pairs.p[i].id);
	for (uint32_t id = r->first; id < r->end; id++)
		t->merges.result[id] = id;
	VEC_FREE(&pairs);
	for (uint32_t b = 0; b < 256; b++) {
		char c = (char)b;
		t->byte_id[b] = tok_pool_find(&t->pieces, (struct str){ &c, 1 });
		if (t->byte_id[b] == TOK_NONE)
			return tok_say(r->why, ERR_SYNTAX, "the byte %u has no rank", b);
	}
	tok_merges_first(&t->merges, t->byte_id);
	return ERR_OK;
}

/* Special tokens are no pieces: their ids stay empty in `pieces` and full in `bytes`. */
static void make_tokens(struct ranks *r)
{
	struct tok *t = r->t;
	VEC(struct tok_pattern) patterns = { 0 };
	t->n_tokens = r->special.n;
	t->tokens = must_calloc(t->n_tokens + 1, sizeof(*t->tokens));
	for (size_t i = 0; i < t->n_tokens; i++) {
		struct tok_pattern s = r->special.p[i];
		t->tokens[i] = (struct tok_token){ .content = str_clone(s.text), .id = s.token, .special = true };
		map_put(&t->token_by_id, s.token, i);
		r->pieces[s.token] = s.text;
		VEC_PUSH(&patterns, (struct tok_pattern){ s.text, (uint32_t)i });
	}
	if (!t->control)
		tok_trie_init(&t->raw, patterns.p, patterns.n);
	VEC_FREE(&patterns);
}

static enum err build(struct ranks *r)
{
	struct tok *t = r->t;
	bool *hidden = arena_new(&r->a, bool, r->vocab + (size_t)1);
	t->kind = TOK_BYTES;
	t->decoder = TOK_DECODE_BYTES;
	t->whole_words = true;
	tok_pool_init(&t->pieces, r->pieces, r->end);
	if (tok_pool_index(&t->pieces, NULL) != TOK_NONE)
		return tok_say(r->why, ERR_SYNTAX, "a piece has two ranks");
	TRY(make_merges(r));
	make_tokens(r);
	for (uint32_t id = 0; id < r->vocab; id++)
		hidden[id] = id < r->first || id >= r->end;
	tok_pool_init(&t->bytes, r->pieces, r->vocab);
	(void)tok_pool_index(&t->bytes, hidden);
	return ERR_OK;
}

static enum err set_pattern(struct ranks *r, struct str pattern)
{
	r->t->stages[0] = tok_splitter_find(pattern);
	if (!r->t->stages[0])
		return tok_say(r->why, ERR_UNSUPPORTED, "this split pattern is not known: %.*s", STR_ARG(str_sub(pattern, 0, 300)));
	r->t->n_stages = 1;
	r->t->scheme = r->t->stages[0]->name;
	return ERR_OK;
}

static void keep_name(struct tok *t, struct str name, struct str text)
{
	t->names = must_realloc(t->names, (t->n_names + 1) * sizeof(*t->names));
	t->names[t->n_names++] = (struct tok_name){ str_clone(name), str_clone(text) };
}

/* ---- tekken.json */

/* Files up to version v7 name no special tokens: these are meant. */
static const struct str OLD_SPECIAL[] = {
	STR_INIT("<unk>"),
	STR_INIT("<s>"),
	STR_INIT("</s>"),
	STR_INIT("[INST]"),
	STR_INIT("[/INST]"),
	STR_INIT("[AVAILABLE_TOOLS]"),
	STR_INIT("[/AVAILABLE_TOOLS]"),
	STR_INIT("[TOOL_RESULTS]"),
	STR_INIT("[/TOOL_RESULTS]"),
	STR_INIT("[TOOL_CALLS]"),
	STR_INIT("[IMG]"),
	STR_INIT("<pad>"),
	STR_INIT("[IMG_BREAK]"),
	STR_INIT("[IMG_END]"),
	STR_INIT("[PREFIX]"),
	STR_INIT("[MIDDLE]"),
	STR_INIT("[SUFFIX]"),
	STR_INIT("[SYSTEM_PROMPT]"),
	STR_INIT("[/SYSTEM_PROMPT]"),
	STR_INIT("[TOOL_CONTENT]"),
};

static bool old_version(struct str v)
{
	return str_eq(v, STR("v1")) || str_eq(v, STR("v2")) || str_eq(v, STR("v3")) || str_eq(v, STR("v7"));
}

static enum err tekken_special(struct ranks *r, const struct json_val *list, struct str version)
{
	size_t n = json_is(list, JSON_ARRAY) ? json_len(list) : ARRAY_LEN(OLD_SPECIAL), i = 0;
	if (n > r->first || (!json_is(list, JSON_ARRAY) && !old_version(version)))
		return tok_say(r->why, ERR_SYNTAX, "tekken.json has no good list of special tokens");
	for (size_t k = 0; k < n && !json_is(list, JSON_ARRAY); k++)
		VEC_PUSH(&r->special, (struct tok_pattern){ OLD_SPECIAL[k], (uint32_t)k });
	for (struct json_iter it = json_each(list); json_next(&it); i++) {
		struct str text;
		uint64_t rank;
		if (!json_str(json_get(it.val, STR("token_str")), &text) || text.n == 0 ||
			!json_u64(json_get(it.val, STR("rank")), &rank) || rank != i)
			return tok_say(r->why, ERR_UNSUPPORTED, "tekken.json has special tokens out of order");
		VEC_PUSH(&r->special, (struct tok_pattern){ text, (uint32_t)i });
	}
	for (i = n; i < r->first; i++)
		VEC_PUSH(&r->special, (struct tok_pattern){ str_of(arena_printf(&r->a, "<SPECIAL_%zu>", i)), (uint32_t)i });
	return ERR_OK;
}

static enum err tekken_pieces(struct ranks *r, const struct json_val *vocab)
{
	uint32_t id = r->first;
	for (struct json_iter it = json_each(vocab); id < r->end && json_next(&it); id++) {
		struct str code;
		uint64_t rank;
		if (!json_u64(json_get(it.val, STR("rank")), &rank) || rank != id - r->first ||
			!json_str(json_get(it.val, STR("token_bytes")), &code) || !decode_base64(&r->a, code, &r->pieces[id]))
			return tok_say(r->why, ERR_SYNTAX, "tekken.json: piece %u is not as expected", id - r->first);
	}
	return id == r->end ? ERR_OK : tok_say(r->why, ERR_SYNTAX, "tekken.json has fewer pieces than its config says");
}

static enum err read_tekken(struct ranks *r, const struct json_val *root)
{
	const struct json_val *config = json_get(root, STR("config"));
	struct str pattern, version;
	uint64_t size, special;
	if (!json_str(json_get(config, STR("pattern")), &pattern) || !json_str(json_get(config, STR("version")), &version) ||
		!json_u64(json_get(config, STR("default_vocab_size")), &size) ||
		!json_u64(json_get(config, STR("default_num_special_tokens")), &special) || size > TOK_MAX_VOCAB || special >= size)
		return tok_say(r->why, ERR_SYNTAX, "tekken.json has no usable config");
	r->first = (uint32_t)special;
	r->end = r->vocab = (uint32_t)size;
	r->pieces = arena_new(&r->a, struct str, size + 1);
	r->t->control = true;
	TRY(set_pattern(r, pattern));
	TRY(tekken_special(r, json_get(root, STR("special_tokens")), version));
	TRY(tekken_pieces(r, json_get(root, STR("vocab"))));
	TRY(build(r));
	uint32_t bos;
	if (!tok_id_of(r->t, STR("<s>"), &bos))
		return tok_say(r->why, ERR_UNSUPPORTED, "tekken.json has no token <s>");
	tok_set_around(r->t, &bos, 1, NULL, 0); /* the worker's encode adds BOS alone */
	keep_name(r->t, STR("bos_token"), STR("<s>"));
	keep_name(r->t, STR("eos_token"), STR("</s>"));
	return ERR_OK;
}

static enum err with_doc(struct ranks *r, struct str text, const char *name, enum err (*read)(struct ranks *r, const struct json_val *root))
{
	struct json_doc *doc;
	enum err e = json_parse_file(text, TOK_MAX_FILE_BYTES, &doc);
	if (e != ERR_OK)
		return tok_say(r->why, e, "%s is not JSON that we take: %s", name, err_text(e));
	arena_init(&r->a, 0);
	e = read(r, json_root(doc));
	arena_done(&r->a);
	VEC_FREE(&r->special);
	json_free(doc);
	return e;
}

enum err tok_load_tekken(struct tok *t, const struct tok_files *f, struct tok_why why)
{
	struct ranks r = { .t = t, .why = why };
	return with_doc(&r, f->tekken, "tekken.json", read_tekken);
}

/* ---- tiktoken.model, as the one family that ships it alone reads it */

enum { RESERVED = 256 };

static enum err read_lines(struct ranks *r, struct str text)
{
	VEC(struct str) lines = { 0 };
	enum err e = ERR_OK;
	while (text.n && e == ERR_OK) {
		struct str line, code, number;
		uint64_t rank;
		struct str bytes;
		(void)str_cut(text, '\n', &line, &text);
		if (line.n == 0)
			continue;
		if (!str_cut(str_trim(line), ' ', &code, &number) || !str_to_u64(number, &rank) || rank != lines.n ||
			!decode_base64(&r->a, code, &bytes))
			e = tok_say(r->why, ERR_UNSUPPORTED, "tiktoken.model: line %zu is not a piece and its rank in order", lines.n + 1);
		else
			VEC_PUSH(&lines, bytes);
	}
	if (e == ERR_OK && lines.n + RESERVED > TOK_MAX_VOCAB)
		e = tok_say(r->why, ERR_LIMIT, "tiktoken.model has too many pieces");
	if (e == ERR_OK) {
		r->end = (uint32_t)lines.n;
		r->vocab = r->end + RESERVED;
		r->pieces = arena_new(&r->a, struct str, r->vocab + (size_t)1);
		for (size_t i = 0; i < lines.n; i++)
			r->pieces[i] = lines.p[i];
	}
	VEC_FREE(&lines);
	return e;
}

/* The 256 ids behind the pieces: named by the config, the others reserved. */
static enum err name_reserved(struct ranks *r, const struct json_val *decoder)
{
	for (uint32_t id = r->end; id < r->vocab; id++) {
		struct tok_define d = { .content = str_of(arena_printf(&r->a, "<|reserved_token_%u|>", id)) };
		const struct json_val *v = json_get(decoder, str_of(arena_printf(&r->a, "%u", id)));
		if (v)
			TRY(tok_define_read(v, &d, r->why));
		if (d.content.n == 0 || d.lstrip || d.rstrip || d.single_word)
			return tok_say(r->why, ERR_UNSUPPORTED, "tiktoken.model with tokens that take spaces is not supported");
		for (size_t i = 0; i < r->special.n; i++)
			if (str_starts(r->special.p[i].text, d.content) || str_starts(d.content, r->special.p[i].text))
				return tok_say(r->why, ERR_UNSUPPORTED, "tiktoken.model with a token that begins another is not supported");
		VEC_PUSH(&r->special, (struct tok_pattern){ d.content, id });
	}
	return ERR_OK;
}

static const char KIMI[] = "[\\p{Han}]+|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{"
			   "M}&&[^\\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
			   "|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{"
			   "Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
			   "|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";

static enum err read_tiktoken(struct ranks *r, const struct json_val *config)
{
	static const struct str CLASSES[] = { STR_INIT("TikTokenTokenizer"), STR_INIT("TikTokenTokenizerFast") };
	static const struct str NAMES[] = { STR_INIT("bos_token"), STR_INIT("eos_token"), STR_INIT("unk_token"), STR_INIT("pad_token") };
	struct str class = STR("none"), text;
	(void)json_str(json_get(config, STR("tokenizer_class")), &class);
	if (!str_eq(class, CLASSES[0]) && !str_eq(class, CLASSES[1]))
		return tok_say(r->why, ERR_UNSUPPORTED, "tiktoken.model of the class %.*s is not supported", STR_ARG(class));
	r->t->long_runs_differ = true;
	TRY(set_pattern(r, str_of(KIMI)));
	TRY(read_lines(r, r->lines));
	TRY(name_reserved(r, json_get(config, STR("added_tokens_decoder"))));
	TRY(build(r));
	for (size_t i = 0; i < ARRAY_LEN(NAMES); i++)
		if (json_str(json_get(config, NAMES[i]), &text) || json_str(json_get(json_get(config, NAMES[i]), STR("content")), &text))
			keep_name(r->t, NAMES[i], text);
	return ERR_OK;
}

enum err tok_load_tiktoken(struct tok *t, const struct tok_files *f, struct tok_why why)
{
	struct ranks r = { .t = t, .why = why, .lines = f->tiktoken };
	if (f->config.n == 0)
		return tok_say(why, ERR_UNSUPPORTED, "tiktoken.model without tokenizer_config.json has no special tokens");
	return with_doc(&r, f->config, "tokenizer_config.json", read_tiktoken);
}
