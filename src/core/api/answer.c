/* answer.c: three dialects, one table of usage names, one reader of chunks each. */
#include "api/answer.h"

#include <string.h>

#include "wire/json.h"

/* ---- usage */

static uint32_t count_of(const struct json_val *v)
{
	uint64_t n;
	return json_u64(v, &n) && n < API_TOK_UNKNOWN ? (uint32_t)n : API_TOK_UNKNOWN;
}

static const struct usage_names {
	struct str prompt, output, details, cached;
} NAMES[] = {
	[API_OPENAI] = { STR_INIT("prompt_tokens"), STR_INIT("completion_tokens"), STR_INIT("prompt_tokens_details"),
		STR_INIT("cached_tokens") },
	[API_RESPONSES] = { STR_INIT("input_tokens"), STR_INIT("output_tokens"), STR_INIT("input_tokens_details"),
		STR_INIT("cached_tokens") },
	[API_ANTHROPIC] = { STR_INIT("input_tokens"), STR_INIT("output_tokens"), STR_INIT(""), STR_INIT("cache_read_input_tokens") },
};

/* input_tokens leaves out what was cached (since 0.24) and what was stored (since 0.26). */
static void whole_anthropic_prompt(const struct json_val *usage, struct api_usage *u)
{
	uint32_t created = count_of(json_get(usage, STR("cache_creation_input_tokens")));
	uint64_t sum = u->prompt_tok;
	if (u->prompt_tok == API_TOK_UNKNOWN)
		return;
	sum += u->cached_tok == API_TOK_UNKNOWN ? 0 : u->cached_tok;
	sum += created == API_TOK_UNKNOWN ? 0 : created;
	u->prompt_tok = sum < API_TOK_UNKNOWN ? (uint32_t)sum : API_TOK_UNKNOWN;
}

static bool read_usage(enum api_dialect d, const struct json_val *usage, struct api_usage *ret_u)
{
	const struct usage_names *n = &NAMES[d];
	if (!json_is(usage, JSON_OBJECT))
		return false;
	const struct json_val *details = n->details.n ? json_get(usage, n->details) : usage;
	struct api_usage u = { .prompt_tok = count_of(json_get(usage, n->prompt)),
		.output_tok = count_of(json_get(usage, n->output)),
		.cached_tok = count_of(json_get(details, n->cached)),
		.details_null = json_is(details, JSON_NULL) };
	if (d == API_ANTHROPIC)
		whole_anthropic_prompt(usage, &u);
	if (u.cached_tok != API_TOK_UNKNOWN && u.prompt_tok != API_TOK_UNKNOWN && u.cached_tok > u.prompt_tok)
		u.cached_tok = API_TOK_UNKNOWN;
	*ret_u = u;
	return true;
}

void api_usage_merge(struct api_usage *into, const struct api_usage *from)
{
	if (from->prompt_tok != API_TOK_UNKNOWN)
		into->prompt_tok = from->prompt_tok;
	if (from->cached_tok != API_TOK_UNKNOWN)
		into->cached_tok = from->cached_tok;
	if (from->output_tok != API_TOK_UNKNOWN)
		into->output_tok = from->output_tok;
	into->details_null |= from->details_null;
}

static void take_usage(enum api_dialect d, const struct json_val *usage, struct api_chunk *c)
{
	if (read_usage(d, usage, &c->usage))
		c->has_usage = true;
}

/* ---- chunks */

/* Too long, or with a NUL: as if it were absent. */
static void copy_text(const struct json_val *v, char *out, size_t cap)
{
	struct str s;
	if (!json_str(v, &s) || s.n >= cap || memchr(s.p, 0, s.n))
		return;
	memcpy(out, s.p, s.n);
	out[s.n] = 0;
}

static void copy_id(const struct json_val *v, char id[128]) { copy_text(v, id, 128); }

static bool has_text(const struct json_val *v)
{
	struct str s;
	return json_str(v, &s) && s.n > 0;
}

static bool is_error(const struct json_val *root)
{
	struct str type;
	if (json_is(json_get(root, STR("error")), JSON_OBJECT))
		return true;
	if (json_str(json_get(root, STR("type")), &type) && str_eq(type, STR("error")))
		return true;
	return json_str(json_get(root, STR("object")), &type) && str_eq(type, STR("error"));
}

/* The status that an error in a 200 would have had. vLLM says it as a number; others say words, of which these are the
 * client's fault. What is unknown is the worker's. */
static int status_of(const struct json_val *v)
{
	static const struct {
		struct str word;
		int status;
	} WORDS[] = {
		{ STR_INIT("BadRequestError"), 400 },
		{ STR_INIT("invalid_request_error"), 400 },
		{ STR_INIT("invalid_prompt"), 400 },
		{ STR_INIT("context_length_exceeded"), 400 },
		{ STR_INIT("not_found_error"), 404 },
		{ STR_INIT("request_too_large"), 413 },
		{ STR_INIT("rate_limit_error"), 429 },
		{ STR_INIT("rate_limit_exceeded"), 429 },
	};
	uint64_t n = 0;
	struct str word = STR("");
	if (json_u64(v, &n) || (json_str(v, &word) && str_to_u64(word, &n)))
		return n >= 400 && n < 600 ? (int)n : 0;
	for (size_t i = 0; i < ARRAY_LEN(WORDS); i++)
		if (str_eq(word, WORDS[i].word))
			return WORDS[i].status;
	return 0;
}

static int error_status(const struct json_val *root)
{
	const struct json_val *error = json_get(root, STR("error"));
	if (!json_is(error, JSON_OBJECT))
		error = root;
	int status = status_of(json_get(error, STR("code")));
	if (!status)
		status = status_of(json_get(error, STR("type")));
	return status ? status : 500;
}

static bool choice_has_output(const struct json_val *choice)
{
	static const struct str TEXTS[] = { STR_INIT("content"), STR_INIT("reasoning"), STR_INIT("reasoning_content"),
		STR_INIT("refusal") };
	const struct json_val *delta = json_get(choice, STR("delta"));
	if (has_text(json_get(choice, STR("text"))) || json_len(json_get(choice, STR("token_ids"))) > 0)
		return true;
	for (size_t i = 0; i < ARRAY_LEN(TEXTS); i++)
		if (has_text(json_get(delta, TEXTS[i])))
			return true;
	return json_len(json_get(delta, STR("tool_calls"))) > 0;
}

static void read_openai(const struct json_val *root, struct api_chunk *c)
{
	const struct json_val *choices = json_get(root, STR("choices"));
	copy_id(json_get(root, STR("id")), c->id);
	copy_text(json_get(root, STR("system_fingerprint")), c->fingerprint, sizeof(c->fingerprint));
	take_usage(API_OPENAI, json_get(root, STR("usage")), c);
	for (struct json_iter it = json_each(choices); json_next(&it);) {
		if (choice_has_output(it.val))
			c->kind = API_CHUNK_CONTENT;
		c->finish |= json_is(json_get(it.val, STR("finish_reason")), JSON_STRING);
	}
	if (json_is(choices, JSON_ARRAY) && json_len(choices) == 0 && c->has_usage)
		c->kind = API_CHUNK_USAGE_ONLY;
}

static void read_anthropic(const struct json_val *root, struct api_chunk *c)
{
	const struct json_val *message = json_get(root, STR("message")), *delta = json_get(root, STR("delta"));
	struct str type = STR("");
	json_str(json_get(root, STR("type")), &type);
	if (str_eq(type, STR("message_start"))) {
		copy_id(json_get(message, STR("id")), c->id);
		take_usage(API_ANTHROPIC, json_get(message, STR("usage")), c);
	} else if (str_eq(type, STR("message_delta"))) {
		take_usage(API_ANTHROPIC, json_get(root, STR("usage")), c);
		c->finish = has_text(json_get(delta, STR("stop_reason")));
	} else if (str_eq(type, STR("message_stop"))) {
		c->kind = API_CHUNK_DONE;
	} else if (str_eq(type, STR("content_block_delta"))) {
		if (has_text(json_get(delta, STR("text"))) || has_text(json_get(delta, STR("thinking"))) ||
			has_text(json_get(delta, STR("partial_json"))))
			c->kind = API_CHUNK_CONTENT;
	}
}

static void read_responses(const struct json_val *root, struct api_chunk *c)
{
	const struct json_val *response = json_get(root, STR("response"));
	struct str type = STR("");
	json_str(json_get(root, STR("type")), &type);
	c->has_sequence = json_u64(json_get(root, STR("sequence_number")), &c->sequence);
	copy_id(json_get(response, STR("id")), c->id);
	take_usage(API_RESPONSES, json_get(response, STR("usage")), c);
	if (str_eq(type, STR("response.failed"))) {
		c->kind = API_CHUNK_ERROR;
		c->error_status = error_status(response);
	} else if (str_eq(type, STR("response.completed")) || str_eq(type, STR("response.incomplete")))
		c->kind = API_CHUNK_DONE;
	else if (str_ends(type, STR(".delta")) && has_text(json_get(root, STR("delta"))))
		c->kind = API_CHUNK_CONTENT;
	c->finish = c->kind == API_CHUNK_DONE;
}

void api_chunk_read(enum api_dialect d, struct str data, struct api_chunk *ret_c)
{
	struct json_doc *doc;
	*ret_c = (struct api_chunk){ .kind = API_CHUNK_OTHER, .usage = api_usage_none() };
	if (str_eq(str_trim(data), STR("[DONE]"))) {
		ret_c->kind = API_CHUNK_DONE;
		return;
	}
	if (json_parse(data, data.n, &doc) != ERR_OK) {
		/* half of a surrogate pair, the other half in the next delta: strictly no JSON, yet output */
		if (str_find(data, STR("\\ud")) != SIZE_MAX)
			ret_c->kind = API_CHUNK_CONTENT;
		return;
	}
	const struct json_val *root = json_root(doc);
	if (is_error(root)) {
		ret_c->kind = API_CHUNK_ERROR;
		ret_c->error_status = error_status(root);
		ret_c->has_sequence = json_u64(json_get(root, STR("sequence_number")), &ret_c->sequence);
	} else {
		switch (d) {
		case API_OPENAI: read_openai(root, ret_c); break;
		case API_ANTHROPIC: read_anthropic(root, ret_c); break;
		case API_RESPONSES: read_responses(root, ret_c); break;
		}
	}
	json_free(doc);
}

/* The quote that ends a JSON string which begins at `at`; SIZE_MAX: none. */
static size_t string_end(struct str data, size_t at)
{
	while (at < data.n) {
		const char *quote = memchr(data.p + at, '"', data.n - at);
		if (!quote)
			return SIZE_MAX;
		size_t end = (size_t)(quote - data.p), slashes = 0;
		while (slashes < end && data.p[end - 1 - slashes] == '\\')
			slashes++;
		if (slashes % 2 == 0)
			return end;
		at = end + 1;
	}
	return SIZE_MAX;
}

void api_shape_learn(struct api_shape *s, const struct api_chunk *c, struct str data)
{
	static const struct str OUTPUT[] = { STR_INIT("\"delta\":{\"content\":\""), STR_INIT("\"text\":\"") };
	s->n = 0;
	if (c->kind != API_CHUNK_CONTENT || c->finish || c->has_usage || c->has_sequence)
		return;
	for (size_t i = 0; i < ARRAY_LEN(OUTPUT) && s->n == 0; i++) {
		size_t at = str_find(data, OUTPUT[i]), begin = at + OUTPUT[i].n, end = at == SIZE_MAX ? at : string_end(data, begin);
		if (end == SIZE_MAX || begin + data.n - end > sizeof(s->text))
			continue;
		memcpy(s->text, data.p, begin);
		memcpy(s->text + begin, data.p + end, data.n - end);
		s->before = (uint16_t)begin;
		s->n = (uint16_t)(begin + data.n - end);
	}
}

bool api_shape_fits(const struct api_shape *s, struct str data)
{
	if (s->n == 0 || data.n <= s->n)
		return false;
	size_t after = s->n - s->before, end = data.n - after;
	return memcmp(data.p, s->text, s->before) == 0 && memcmp(data.p + end, s->text + s->before, after) == 0 &&
	       string_end(data, s->before) == end;
}

bool api_fingerprint_at(const struct api_chunk *c, struct str ev_raw, struct str ev_data, size_t *ret_at)
{
	struct str data = str_trim(ev_data);
	if (!c->finish || c->fingerprint[0] || data.n < 2 || data.p[data.n - 1] != '}' || ev_data.p < ev_raw.p ||
		ev_data.p + ev_data.n > ev_raw.p + ev_raw.n)
		return false;
	*ret_at = (size_t)(data.p + data.n - 1 - ev_raw.p);
	return true;
}

enum err api_fingerprint_put(struct buf *b, const char *fingerprint)
{
	TRY(buf_add(b, STR(",\"system_fingerprint\":")));
	return json_quote(b, str_of(fingerprint));
}

/* ---- whole bodies */

void api_whole_init(struct api_whole *w)
{
	*w = (struct api_whole){ 0 };
	buf_init(&w->copy, API_WHOLE_MAX);
}

void api_whole_done(struct api_whole *w) { buf_done(&w->copy); }

/* The value behind `"name":` at its first (or last) place; quotes inside strings are escaped, so a bare one is a key or a
 * whole string value, and only a key has a colon behind it. */
static size_t after_key(struct str s, struct str quoted_key, bool last)
{
	size_t found = SIZE_MAX;
	for (size_t at = 0, hit; (hit = str_find(str_skip(s, at), quoted_key)) != SIZE_MAX; at += hit + 1) {
		size_t key = at + hit, i = key + quoted_key.n;
		if (key > 0 && s.p[key - 1] == '\\')
			continue;
		while (i < s.n && (s.p[i] == ' ' || s.p[i] == ':'))
			i++;
		if (i >= s.n || i == key + quoted_key.n)
			continue;
		found = i;
		if (!last)
			break;
	}
	return found;
}

static void take_head_id(struct api_whole *w)
{
	struct str head = str_sub(buf_str(&w->copy), 0, 512), id, rest;
	size_t at = after_key(head, STR("\"id\""), false);
	if (at == SIZE_MAX || head.p[at] != '"' || !str_cut(str_skip(head, at + 1), '"', &id, &rest))
		return;
	if (id.n >= sizeof(w->id) || memchr(id.p, '\\', id.n))
		return;
	memcpy(w->id, id.p, id.n);
	w->id[id.n] = 0;
}

void api_whole_feed(struct api_whole *w, struct str piece)
{
	if (buf_add(&w->copy, piece) == ERR_OK)
		return;
	if (!w->cut) {
		if (w->copy.n < 512)
			(void)!buf_add(&w->copy, str_sub(piece, 0, 512));
		take_head_id(w);
		w->cut = true;
	}
	piece = str_skip(piece, piece.n - MIN(piece.n, (size_t)API_WHOLE_TAIL));
	size_t keep = API_WHOLE_TAIL - piece.n;
	if (w->copy.n > keep)
		buf_consume(&w->copy, w->copy.n - keep);
	(void)!buf_add(&w->copy, piece); /* fits: the tail is far below the limit */
}

/* The object that begins at the front of s. */
static struct str object_at(struct str s)
{
	size_t depth = 0;
	for (size_t i = 0; i < s.n; i++) {
		depth += s.p[i] == '{';
		if (s.p[i] == '}' && --depth == 0)
			return str_sub(s, 0, i + 1);
		if (depth == 0)
			break;
	}
	return STR("");
}

static void read_tail(struct api_whole *w, enum api_dialect d, struct api_result *r)
{
	struct str tail = buf_str(&w->copy);
	struct json_doc *doc;
	size_t at = after_key(tail, STR("\"usage\""), true);
	if (at == SIZE_MAX || json_parse(object_at(str_skip(tail, at)), API_WHOLE_TAIL, &doc) != ERR_OK)
		return;
	r->has_usage = read_usage(d, json_root(doc), &r->usage);
	json_free(doc);
}

/* A string as written; with escapes in it, as if it were absent. */
static bool plain_string(struct str written, struct str *ret_s)
{
	if (written.n < 2 || written.p[0] != '"' || memchr(written.p, '\\', written.n))
		return false;
	*ret_s = str_sub(written, 1, written.n - 2);
	return true;
}

static int error_status_of_text(struct str text)
{
	struct json_doc *doc;
	if (json_parse(text, API_WHOLE_MAX, &doc) != ERR_OK)
		return 500;
	int status = error_status(json_root(doc));
	json_free(doc);
	return status;
}

static void take_member(struct api_result *r, enum api_dialect d, struct str key, struct str val, bool *error)
{
	struct json_doc *doc;
	struct str id;
	if (str_eq(key, STR("\"usage\"")) && json_parse(val, API_WHOLE_MAX, &doc) == ERR_OK) {
		r->has_usage = read_usage(d, json_root(doc), &r->usage);
		json_free(doc);
	} else if (str_eq(key, STR("\"error\""))) {
		*error |= val.n && val.p[0] == '{';
	} else if (str_eq(key, STR("\"type\"")) || str_eq(key, STR("\"object\""))) {
		*error |= str_eq(val, STR("\"error\""));
	} else if (str_eq(key, STR("\"id\"")) && plain_string(val, &id) && id.n < sizeof(r->id) && !memchr(id.p, 0, id.n)) {
		memcpy(r->id, id.p, id.n);
		r->id[id.n] = 0;
	}
}

/* What is asked lies in a few members of the outermost object. They are found by a scan: the long part, the text of the
 * answer, is jumped over instead of being made into a tree. */
void api_whole_read(struct api_whole *w, enum api_dialect d, struct api_result *ret_r)
{
	struct json_member m[64];
	struct str text = str_trim(buf_str(&w->copy));
	bool error = false;
	*ret_r = (struct api_result){ .usage = api_usage_none() };
	memcpy(ret_r->id, w->id, sizeof(w->id));
	if (w->cut) {
		read_tail(w, d, ret_r);
		return;
	}
	if (text.n < 2 || text.p[0] != '{' || text.p[text.n - 1] != '}')
		return;
	size_t n = json_scan_members(text, m, ARRAY_LEN(m));
	for (size_t i = 0; i < MIN(n, ARRAY_LEN(m)); i++)
		take_member(ret_r, d, json_span_str(text, m[i].key), json_span_str(text, m[i].val), &error);
	if (error)
		ret_r->error_status = error_status_of_text(text);
}
