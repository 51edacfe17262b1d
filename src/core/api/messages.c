/* messages.c: the forms of a prompt: chat messages with parts, and the four forms of /v1/completions. */
#include "api/messages_priv.h"

static const struct str TEXT_PARTS[] = {
	STR_INIT("text"),
	STR_INIT("input_text"),
	STR_INIT("output_text"),
	STR_INIT("refusal"),
	STR_INIT("thinking"),
	STR_INIT("tool_use"),
	STR_INIT("tool_result"),
	STR_INIT("tool_reference"),
	STR_INIT("redacted_thinking"),
};

/* A part may leave its type out; then what it holds tells. */
static bool is_text_part(const struct json_val *part)
{
	struct str type;
	if (!json_is(part, JSON_OBJECT))
		return true;
	if (!json_str(json_get(part, STR("type")), &type))
		return json_get(part, STR("text")) != NULL;
	for (size_t i = 0; i < ARRAY_LEN(TEXT_PARTS); i++)
		if (str_eq(type, TEXT_PARTS[i]))
			return true;
	return false;
}

/* Strings inside a part, two levels deep: {"image_url":{"url":"data:..."}}. */
static size_t string_bytes(const struct json_val *v, int levels)
{
	struct str s;
	size_t n = json_str(v, &s) ? s.n : 0;
	if (levels > 0)
		for (struct json_iter it = json_each(v); json_next(&it);)
			n += string_bytes(it.val, levels - 1);
	return n;
}

size_t api_messages_media(const struct json_val *messages, bool *ret_media)
{
	size_t bytes = 0;
	for (struct json_iter m = json_each(messages); json_next(&m);) {
		const struct json_val *content = json_get(m.val, STR("content"));
		if (!json_is(content, JSON_ARRAY))
			continue;
		for (struct json_iter part = json_each(content); json_next(&part);) {
			if (is_text_part(part.val))
				continue;
			*ret_media = true;
			bytes += string_bytes(part.val, 2);
		}
	}
	return bytes;
}

static bool read_ids(const struct json_val *list, struct arena *a, struct api_ids *ret_ids)
{
	size_t n = 0;
	uint32_t *ids = arena_new(a, uint32_t, json_len(list));
	for (struct json_iter it = json_each(list); json_next(&it);) {
		uint64_t id;
		if (!json_u64(it.val, &id) || id > UINT32_MAX)
			return false;
		ids[n++] = (uint32_t)id;
	}
	*ret_ids = (struct api_ids){ ids, n };
	return true;
}

static bool read_id_lists(const struct json_val *prompt, bool nested, struct arena *a, struct api_facts *f)
{
	size_t n = nested ? json_len(prompt) : 1, i = 0;
	struct api_ids *lists = arena_new(a, struct api_ids, n);
	f->form = API_PROMPT_IDS;
	f->ids = lists;
	f->n_ids = n;
	if (!nested)
		return read_ids(prompt, a, lists);
	for (struct json_iter it = json_each(prompt); json_next(&it); i++)
		if (!json_is(it.val, JSON_ARRAY) || !read_ids(it.val, a, &lists[i]))
			return false;
	return true;
}

const char *api_prompt_read(const struct json_val *prompt, struct arena *a, struct api_facts *f)
{
	if (!prompt)
		return "`prompt` is missing";
	if (json_is(prompt, JSON_STRING)) {
		f->form = API_PROMPT_TEXT;
		return NULL;
	}
	struct json_iter it = json_each(prompt);
	if (!json_is(prompt, JSON_ARRAY) || !json_next(&it))
		return "`prompt` must be a string, a list of strings, token ids, or lists of token ids";
	if ((json_is(it.val, JSON_NUMBER) || json_is(it.val, JSON_ARRAY)) && read_id_lists(prompt, json_is(it.val, JSON_ARRAY), a, f))
		return NULL;
	/* mixtures (["1", 2] is served as ids) are for the worker to judge */
	f->form = json_is(it.val, JSON_STRING) && json_len(prompt) == 1 ? API_PROMPT_TEXT : API_PROMPT_TEXTS;
	f->ids = NULL;
	f->n_ids = 0;
	return NULL;
}
