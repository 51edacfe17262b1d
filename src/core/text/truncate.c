/* truncate.c: which ids of a prompt its worker keeps. */
#include "text/truncate.h"

#include <string.h>

#include "base/utf8.h"

enum { COMPLETION_NEW_TOK = 16 };   /* what a completion without max_tokens may grow by */

static enum err refuse(const char **ret_why)
{
	*ret_why = "truncation";
	return ERR_UNSUPPORTED;
}

/* A request that generates leaves room for one id, unless it says that it does not. */
static bool generates(const struct json_val *body, enum text_form form, bool *ret_generates)
{
	const struct json_val *v = json_get(body, STR("max_completion_tokens"));
	uint64_t n = form == TEXT_COMPLETIONS ? COMPLETION_NEW_TOK : 0;
	if (form == TEXT_COMPLETIONS || json_absent(v))
		v = json_get(body, STR("max_tokens"));
	bool known = json_absent(v) || (json_is(v, JSON_NUMBER) && json_u64(v, &n));
	*ret_generates = n > 0;
	return known;
}

/* Of a pooling model: another limit may have been set for it, and it is not told. */
static enum err whole_model(const struct json_val *body, enum text_form form, size_t model_tok, size_t *ret_keep, const char **ret_why)
{
	bool room;
	if (!text_has_render(form) || model_tok < 2 || !generates(body, form, &room))
		return refuse(ret_why);
	*ret_keep = model_tok - room;
	return ERR_OK;
}

static bool read_side(const struct json_val *v, struct text_truncate *t)
{
	struct str s;
	t->named_side = !json_absent(v);
	if (!t->named_side)
		return true;
	if (!json_str(v, &s))
		return false;
	t->last = str_eq(s, STR("left"));
	return t->last || str_eq(s, STR("right"));
}

enum err text_truncate_read(const struct json_val *body, enum text_form form, size_t model_tok, size_t longest_piece_cp,
	struct text_truncate *ret_t, const char **ret_why)
{
	const struct json_val *v = json_get(body, STR("truncate_prompt_tokens"));
	struct text_truncate t = { .last = text_has_render(form) };
	int64_t n;
	if (!json_is(v, JSON_NUMBER) || !json_i64(v, &n) || n < -1 || n == 0 || !read_side(json_get(body, STR("truncation_side")), &t))
		return refuse(ret_why);
	t.keep_tok = (size_t)MAX(n, (int64_t)0);
	if (n < 0)
		TRY(whole_model(body, form, model_tok, &t.keep_tok, ret_why));
	/* more than the model takes is refused by the worker: so many it takes */
	size_t least_tok = text_has_render(form) ? MAX(t.keep_tok, model_tok) : t.keep_tok;
	t.max_text_cp = longest_piece_cp && least_tok > SIZE_MAX / longest_piece_cp ? SIZE_MAX : least_tok * longest_piece_cp;
	*ret_t = t;
	return ERR_OK;
}

size_t text_truncate_longest_cp(const struct tok *t)
{
	size_t longest = 0;
	for (size_t id = 0; id < tok_vocab_size(t); id++) {
		struct str piece = tok_piece(t, (uint32_t)id);
		if (piece.n > longest)
			longest = MAX(longest, utf8_count(piece));
	}
	return longest;
}

bool text_truncate_takes(const struct text_truncate *t, struct str text, size_t around_tok)
{
	if (t->keep_tok == 0)
		return true;
	return t->named_side ? text.n <= t->max_text_cp || utf8_count(text) <= t->max_text_cp : t->keep_tok > around_tok;
}

void text_truncate_cut(const struct text_truncate *t, struct tok_ids *ids, size_t from, struct tok_around around)
{
	size_t n = ids->n - from;
	if (t->keep_tok == 0 || n <= t->keep_tok)
		return;
	if (t->named_side)
		around = (struct tok_around){ 0 };
	size_t kept = t->keep_tok - around.before_tok - around.after_tok, end = ids->n - around.after_tok;
	uint32_t *to = ids->p + from + around.before_tok;
	memmove(to, t->last ? ids->p + end - kept : to, kept * sizeof(*to));
	memmove(to + kept, ids->p + end, around.after_tok * sizeof(*to));
	ids->n = from + t->keep_tok;
}
