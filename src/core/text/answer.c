/* answer.c: ids out of the answers of both calls, in every shape seen:
 *   tokenize      {"tokens":[..]}
 *   render, chat  {"token_ids":[..],"features":{..}}, formerly [[messages],[{"prompt_token_ids":[..]}]]
 *   render, text  [{"token_ids":[..]},..], formerly [{"prompt_token_ids":[..]},..] */
#include "text/ask.h"
#include "text/ids_priv.h"
#include "wire/json.h"

enum { MAX_PROMPTS = 4096, MAX_MM_ITEMS = 4096 };

static enum err read_ids(struct text_ids_made *m, const struct json_val *list, size_t max_tok, struct text_prompt *p)
{
	size_t n = 0;
	if (!json_is(list, JSON_ARRAY))
		return ERR_UPSTREAM_PROTOCOL;
	if (json_len(list) > max_tok)
		return ERR_LIMIT;
	uint32_t *ids = arena_new(&m->mem, uint32_t, json_len(list));
	for (struct json_iter it = json_each(list); json_next(&it);) {
		uint64_t id;
		if (!json_u64(it.val, &id) || id > UINT32_MAX)
			return ERR_UPSTREAM_PROTOCOL;
		ids[n++] = (uint32_t)id;
	}
	p->ids = ids;
	p->n = n;
	return ERR_OK;
}

/* ---- multimodal items: {"mm_hashes":{"image":[h,..]},"mm_placeholders":{"image":[{"offset":o,"length":l},..]}} */

static bool read_item(
	struct text_ids_made *m, const struct json_val *hash, const struct json_val *place, size_t n_tok, struct text_mm *item)
{
	struct str s;
	uint64_t offset, length;
	if (!json_str(hash, &s) || !json_u64(json_get(place, STR("offset")), &offset) || !json_u64(json_get(place, STR("length")), &length))
		return false;
	if (offset > n_tok || length > n_tok - offset)
		return false;
	*item = (struct text_mm){ arena_str(&m->mem, s), (uint32_t)offset, (uint32_t)length };
	return true;
}

static size_t count_items(const struct json_val *hashes)
{
	size_t n = 0;
	for (struct json_iter kind = json_each(hashes); json_next(&kind);)
		n += json_len(kind.val);
	return n;
}

/* By insertion: each kind comes in order, so there is little to move (and the library's sort may allocate). */
static void sort_items(struct text_mm *items, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		struct text_mm x = items[i];
		size_t k = i;
		for (; k > 0 && items[k - 1].offset_tok > x.offset_tok; k--)
			items[k] = items[k - 1];
		items[k] = x;
	}
}

/* Items whose hash or place is missing would make wrong keys: better no ids at all. */
static enum err read_mm(struct text_ids_made *m, const struct json_val *features, struct text_prompt *p)
{
	const struct json_val *hashes = json_get(features, STR("mm_hashes")), *places = json_get(features, STR("mm_placeholders"));
	size_t n = count_items(hashes), i = 0;
	if (n != count_items(places))
		return ERR_UPSTREAM_PROTOCOL;
	if (n > MAX_MM_ITEMS)
		return ERR_LIMIT;
	if (n == 0)
		return ERR_OK;
	struct text_mm *items = arena_new(&m->mem, struct text_mm, n);
	for (struct json_iter kind = json_each(hashes); json_next(&kind);) {
		const struct json_val *list = json_get(places, kind.key);
		struct json_iter hash = json_each(kind.val), place = json_each(list);
		if (json_len(list) != json_len(kind.val))
			return ERR_UPSTREAM_PROTOCOL;
		while (json_next(&hash) && json_next(&place))
			if (!read_item(m, hash.val, place.val, p->n, &items[i++]))
				return ERR_UPSTREAM_PROTOCOL;
	}
	sort_items(items, n);
	p->mm = items;
	p->n_mm = n;
	return ERR_OK;
}

/* One rendered prompt, of the new or the former shape. A former one with media has no hashes that are known to be right. */
static enum err read_rendered(struct text_ids_made *m, const struct json_val *v, size_t max_tok, struct text_prompt *p)
{
	const struct json_val *ids = json_get(v, STR("token_ids"));
	struct str type;
	if (ids) {
		TRY(read_ids(m, ids, max_tok, p));
		return read_mm(m, json_get(v, STR("features")), p);
	}
	if (json_str(json_get(v, STR("type")), &type) && (str_eq(type, STR("multimodal")) || str_eq(type, STR("embeds"))))
		return ERR_UPSTREAM_PROTOCOL;
	return read_ids(m, json_get(v, STR("prompt_token_ids")), max_tok, p);
}

/* ---- the common answer, quickly: one object with a list of ids and nothing about media. A tree of 100,000 numbers costs
 * milliseconds, the list read as it stands a third of that. Anything unusual is left to the tree. */

static bool read_number(const char **at, const char *end, uint32_t *ret_id)
{
	const char *p = *at;
	uint64_t id = 0;
	while (p < end && *p >= '0' && *p <= '9' && id <= UINT32_MAX)
		id = id * 10 + (uint64_t)(*p++ - '0');
	if (p == *at || id > UINT32_MAX || (**at == '0' && p - *at > 1))
		return false;
	*at = p;
	*ret_id = (uint32_t)id;
	return true;
}

/* [1,2, 3] */
static bool read_list(struct text_ids_made *m, struct str list, size_t max_tok, struct text_prompt *p)
{
	const char *at = list.p + 1, *end = list.p + list.n - 1;
	size_t cap = 1, n = 0;
	if (list.n < 3 || list.p[0] != '[' || *end != ']')
		return false;
	for (size_t i = 0; i < list.n; i++)
		cap += list.p[i] == ',';
	if (cap > max_tok)
		return false;
	uint32_t *ids = arena_new(&m->mem, uint32_t, cap);
	while (n < cap && read_number(&at, end, &ids[n])) {
		n++;
		p->ids = ids;
		p->n = n;
		if (at == end)
			return true;
		if (*at++ != ',')
			return false;
		at += at < end && *at == ' ';
	}
	return false;
}

enum { FAST_MEMBERS = 64 };

static struct str member_text(struct str answer, const struct json_member *m, size_t n, struct str quoted_name)
{
	struct str found = STR("");
	for (size_t i = 0; i < n; i++) {
		if (!str_eq(json_span_str(answer, m[i].key), quoted_name))
			continue;
		if (found.n)
			return STR("twice: no list");
		found = json_span_str(answer, m[i].val);
	}
	return found;
}

static struct text_ids *read_fast(enum text_form form, enum text_call call, struct str answer, size_t max_tok)
{
	struct json_member m[FAST_MEMBERS];
	if (form == TEXT_COMPLETIONS && call == TEXT_RENDER)
		return NULL;
	size_t n = json_scan_members(answer, m, FAST_MEMBERS);
	struct str list =
		member_text(answer, m, MIN(n, (size_t)FAST_MEMBERS), call == TEXT_TOKENIZE ? STR("\"tokens\"") : STR("\"token_ids\""));
	struct str features = member_text(answer, m, MIN(n, (size_t)FAST_MEMBERS), STR("\"features\""));
	if (n > FAST_MEMBERS || list.n == 0 || (features.n && !str_eq(features, STR("null"))))
		return NULL;
	struct text_ids_made *made = text_ids_make(1);
	bool ok = read_list(made, list, max_tok, &made->prompts[0]);
	struct text_ids *ids = text_ids_made(made);
	if (ok)
		return ids;
	text_ids_unref(ids);
	return NULL;
}

/* ---- where the prompts are */

/* The list of rendered prompts in the answer, or the answer itself when it is one. */
static const struct json_val *rendered_list(enum text_form form, const struct json_val *root)
{
	if (form == TEXT_COMPLETIONS || !json_is(root, JSON_ARRAY))
		return root;
	struct json_iter it = json_each(root);
	return json_len(root) == 2 && json_next(&it) && json_next(&it) ? it.val : NULL;
}

static enum err read_prompts(struct text_ids_made *m, enum text_call call, const struct json_val *from, size_t max_tok)
{
	size_t i = 0;
	if (call == TEXT_TOKENIZE)
		return read_ids(m, json_get(from, STR("tokens")), max_tok, &m->prompts[0]);
	if (json_is(from, JSON_OBJECT))
		return read_rendered(m, from, max_tok, &m->prompts[0]);
	for (struct json_iter it = json_each(from); json_next(&it); i++) {
		TRY(read_rendered(m, it.val, max_tok, &m->prompts[i]));
		max_tok -= m->prompts[i].n;
	}
	return ERR_OK;
}

static enum err read_root(enum text_form form, enum text_call call, const struct json_val *root, size_t max_tok, struct text_ids **ret_ids)
{
	const struct json_val *from = call == TEXT_RENDER ? rendered_list(form, root) : root;
	size_t n = json_is(from, JSON_OBJECT) ? 1 : json_is(from, JSON_ARRAY) && call == TEXT_RENDER ? json_len(from) : 0;
	if (n == 0 || n > MAX_PROMPTS)
		return n ? ERR_LIMIT : ERR_UPSTREAM_PROTOCOL;
	struct text_ids_made *m = text_ids_make(n);
	enum err e = read_prompts(m, call, from, max_tok);
	struct text_ids *ids = text_ids_made(m);
	if (e == ERR_OK)
		*ret_ids = ids;
	else
		text_ids_unref(ids);
	return e;
}

enum err text_read_answer(enum text_form form, enum text_call call, struct str answer, size_t max_tok, struct text_ids **ret_ids)
{
	struct json_doc *d;
	struct text_ids *fast = read_fast(form, call, answer, max_tok);
	if (fast) {
		*ret_ids = fast;
		return ERR_OK;
	}
	enum err e = json_parse(answer, answer.n, &d);
	if (e != ERR_OK)
		return e == ERR_LIMIT ? e : ERR_UPSTREAM_PROTOCOL;
	e = read_root(form, call, json_root(d), max_tok, ret_ids);
	json_free(d);
	return e;
}
