/* path.c: the table and how a request's target finds its row. */
#include "api/path.h"

#define ROW(m, p, r, d, b, l)                                                                                                              \
	{                                                                                                                                  \
		STR_INIT(m), STR_INIT(p), API_ROUTE_##r, API_##d, API_BODY_##b, l                                                          \
	}

static const struct api_path TABLE[] = {
	ROW("POST", "/v1/chat/completions", CHAT, OPENAI, JSON, "chat_completions"),
	ROW("POST", "/v1/completions", COMPLETIONS, OPENAI, JSON, "completions"),
	ROW("GET", "/v1/models", MODELS, OPENAI, NONE, "models"),
	ROW("GET", "/v1/models/{rest}", MODEL, OPENAI, NONE, "model"), /* names have slashes */
	ROW("POST", "/v1/messages", MESSAGES, ANTHROPIC, JSON, "messages"),
	ROW("POST", "/v1/messages/count_tokens", LOAD, ANTHROPIC, JSON, "count_tokens"),
	ROW("POST", "/v1/responses", RESPONSES, RESPONSES, JSON, "responses"),
	ROW("GET", "/v1/responses/{id}", RESPONSE, RESPONSES, NONE, "response"),
	ROW("POST", "/v1/responses/{id}/cancel", RESPONSE, RESPONSES, NONE, "response_cancel"),
	ROW("POST", "/v1/chat/completions/batch", LOAD, OPENAI, JSON, "chat_batch"),
	ROW("POST", "/v1/embeddings", EMBEDDINGS, OPENAI, JSON, "embeddings"),
	ROW("POST", "/v2/embed", LOAD, OPENAI, JSON, "embed"),
	ROW("POST", "/pooling", LOAD, OPENAI, JSON, "pooling"),
	ROW("POST", "/classify", LOAD, OPENAI, JSON, "classify"),
	ROW("POST", "/score", SCORE, OPENAI, JSON, "score"),
	ROW("POST", "/v1/score", SCORE, OPENAI, JSON, "score"),
	ROW("POST", "/rerank", SCORE, OPENAI, JSON, "rerank"),
	ROW("POST", "/v1/rerank", SCORE, OPENAI, JSON, "rerank"),
	ROW("POST", "/v2/rerank", SCORE, OPENAI, JSON, "rerank"),
	ROW("POST", "/v1/audio/transcriptions", LOAD, OPENAI, FORM, "transcriptions"),
	ROW("POST", "/v1/audio/translations", LOAD, OPENAI, FORM, "translations"),
	ROW("POST", "/v1/audio/speech", LOAD, OPENAI, JSON, "speech"),
	ROW("POST", "/tokenize", LOAD, OPENAI, JSON, "tokenize"),
	ROW("POST", "/detokenize", LOAD, OPENAI, JSON, "detokenize"),
	ROW("POST", "/inference/v1/generate", LOAD, OPENAI, JSON, "generate"),
	ROW("POST", "/v1/chat/completions/render", LOAD, OPENAI, JSON, "render"),
	ROW("POST", "/v1/completions/render", LOAD, OPENAI, JSON, "render"),
	ROW("POST", "/v1/messages/render", LOAD, ANTHROPIC, JSON, "render"),
	ROW("POST", "/v1/responses/render", LOAD, RESPONSES, JSON, "render"),
	ROW("POST", "/v1/chat/completions/derender", LOAD, OPENAI, JSON, "derender"),
	ROW("POST", "/v1/completions/derender", LOAD, OPENAI, JSON, "derender"),
};

static struct str without_query(struct str target)
{
	struct str path, query;
	str_cut(target, '?', &path, &query);
	return path;
}

/* `{id}` takes one non-empty segment. */
static bool matches(struct str pattern, struct str path, struct str *ret_id)
{
	if (str_eq(pattern, path) && !memchr(path.p, '{', path.n))
		return true; /* the common case, without a search */
	size_t brace = str_find(pattern, STR("{rest}"));
	if (brace != SIZE_MAX) {
		*ret_id = str_skip(path, brace);
		return path.n > brace && str_eq(str_sub(path, 0, brace), str_sub(pattern, 0, brace));
	}
	brace = str_find(pattern, STR("{id}"));
	if (brace == SIZE_MAX)
		return str_eq(pattern, path);
	if (!str_eq(str_sub(path, 0, brace), str_sub(pattern, 0, brace)))
		return false;
	struct str rest = str_skip(path, brace), id, tail;
	bool more = str_cut(rest, '/', &id, &tail);
	struct str pattern_tail = str_skip(pattern, brace + STR("{id}").n);
	if (id.n == 0 || more != (pattern_tail.n > 0) || (more && !str_eq(tail, str_skip(pattern_tail, 1))))
		return false;
	*ret_id = id;
	return true;
}

const struct api_path *api_path_find(struct str method, struct str target, struct str *ret_id)
{
	struct str path = without_query(target), id = STR(""), wanted = str_eq(method, STR("HEAD")) ? STR("GET") : method;
	const struct api_path *fixed = NULL, *open = NULL;
	for (size_t i = 0; i < ARRAY_LEN(TABLE) && !fixed; i++) {
		struct str here = STR("");
		if (!str_eq(TABLE[i].method, wanted) || !matches(TABLE[i].path, path, &here))
			continue;
		if (here.n == 0)
			fixed = &TABLE[i];
		else if (!open) {
			open = &TABLE[i];
			id = here;
		}
	}
	if (ret_id)
		*ret_id = fixed ? STR("") : id;
	return fixed ? fixed : open;
}

const char *api_path_allow(struct str target)
{
	struct str path = without_query(target), id;
	bool get = false, post = false;
	for (size_t i = 0; i < ARRAY_LEN(TABLE); i++) {
		if (!matches(TABLE[i].path, path, &id))
			continue;
		get |= str_eq(TABLE[i].method, STR("GET"));
		post |= str_eq(TABLE[i].method, STR("POST"));
	}
	return get && post ? "GET, HEAD, POST" : get ? "GET, HEAD" : post ? "POST" : NULL;
}

const struct api_path *api_path_table(size_t *ret_n)
{
	*ret_n = ARRAY_LEN(TABLE);
	return TABLE;
}

bool api_path_same(struct str target, struct str path) { return str_eq(without_query(target), path); }
