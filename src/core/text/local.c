/* local.c: body -> ids. A chat is rendered and encoded; a completion's strings are encoded, its ids pass through. */
#include "text/local.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/must.h"
#include "base/vec.h"
#include "text/harmony.h"
#include "text/truncate.h"

enum { PROMPT_MAX_BYTES = 64 << 20, ARENA_MAX_BYTES = 256 << 20, PROMPTS_MAX = 4096 };

const char *const text_file_names[TEXT_FILE_COUNT] = {
#define X(id, name) [TEXT_FILE_##id] = name,
	TEXT_FILES(X)
#undef X
};

struct text_local {
	atomic_uint refs;
	struct tok *tok;
	struct text_chat *chat;          /* NULL: no usable template */
	bool gpt_oss, has_template;      /* it is one; its folder has a template all the same */
	bool harmony;                    /* its chats go through text/harmony.h */
	bool plain_decode;
	bool truncates;                  /* a worker's way to cut prompts is known */
	size_t longest_piece_cp;
};

struct text_local_scratch {
	struct text_local *l;
	struct tok_scratch *tok;
	struct arena arena;
	struct buf prompt, chat;         /* chat: a body of another API, as a chat's */
	struct text_truncate truncate;
	struct text_pieces pieces;
	const struct text_local_job *job;
	size_t new_bytes;                /* text of this job that nobody had tokenised before */
	struct tok_ids ids;              /* of all prompts, one behind the other */
	VEC(size_t) ends;                /* where each prompt's ids end */
	size_t rest_tok;                 /* of the only one: see text_prompt */
};

/* Left out, it depends on the library's version. */
static bool says_plain(struct str config)
{
	struct json_doc *d;
	bool tidy = true;
	if (!config.n || json_parse(config, config.n, &d) != ERR_OK)
		return false;
	(void)json_bool(json_get(json_root(d), STR("clean_up_tokenization_spaces")), &tidy);
	json_free(d);
	return !tidy;
}

static void load_harmony(struct text_local *l, const struct text_local_files *f, char *why, size_t why_cap)
{
	l->gpt_oss = true;
	l->harmony = f->known_version && text_harmony_fits(l->tok);
	l->has_template = f->text[TEXT_FILE_TEMPLATE].n || f->more_templates || str_find(f->text[TEXT_FILE_CONFIG], STR("\"chat_template\"")) != SIZE_MAX;
	if (!l->harmony)
		snprintf(why, why_cap, "%s", f->known_version ? "gpt_oss, but not the tokens of o200k_harmony" : "gpt_oss: chats are rendered for workers whose version is known only");
}

enum err text_local_load(const struct text_local_files *f, char *why, size_t why_cap, struct text_local **ret_l)
{
	struct text_local *l = must_calloc(1, sizeof(*l));
	struct tok_files t = { .tokenizer_json = f->text[TEXT_FILE_TOKENIZER], .tiktoken = f->text[TEXT_FILE_TIKTOKEN],
		.tekken = f->text[TEXT_FILE_TEKKEN], .config = f->text[TEXT_FILE_CONFIG], .special_map = f->text[TEXT_FILE_SPECIAL_MAP],
		.added = f->text[TEXT_FILE_ADDED],
		.model_config = f->text[TEXT_FILE_MODEL], 
		.unicode = f->known_version ? f->unicode : TOK_UNICODE_ANY, .loader = f->known_version ? TOK_LOADER_5 : TOK_LOADER_ANY };
	struct text_chat_files c = { .config = t.config, .template_file = f->text[TEXT_FILE_TEMPLATE],
		.processor_template = f->text[TEXT_FILE_PROCESSOR_TEMPLATE], .more_templates = f->more_templates, .known_version = f->known_version,
		.model = f->text[TEXT_FILE_MODEL], .other_tokenizer = f->text[TEXT_FILE_TEKKEN].n > 0 };
	snprintf(why, why_cap, "%s", "");
	if (t.tekken.n && t.tokenizer_json.n)
		snprintf(why, why_cap, "tekken.json and tokenizer.json: which of them the worker reads depends on its other files");
	enum err e = why[0] ? ERR_UNSUPPORTED : tok_load(&t, why, why_cap, &l->tok);
	if (e != ERR_OK) {
		free(l);
		return e;
	}
	l->plain_decode = says_plain(f->text[TEXT_FILE_CONFIG]);
	l->truncates = f->known_version && t.tokenizer_json.n;
	l->longest_piece_cp = l->truncates ? text_truncate_longest_cp(l->tok) : 0;
	if (text_harmony_is(f->text[TEXT_FILE_MODEL]))
		load_harmony(l, f, why, why_cap);
	else if (text_chat_load(&c, l->tok, why, why_cap, &l->chat) != ERR_OK)
		l->chat = NULL;
	atomic_init(&l->refs, 1);
	*ret_l = l;
	return ERR_OK;
}

struct text_local *text_local_ref(struct text_local *l)
{
	must(atomic_fetch_add(&l->refs, 1) > 0);
	return l;
}

void text_local_unref(struct text_local *l)
{
	if (!l || atomic_fetch_sub(&l->refs, 1) != 1)
		return;
	text_chat_free(l->chat);
	tok_free(l->tok);
	free(l);
}

bool text_local_has_chat(const struct text_local *l) { return l->chat || l->harmony; }
bool text_local_is_harmony(const struct text_local *l) { return l->gpt_oss; }
bool text_local_decodes_plainly(const struct text_local *l) { return l->plain_decode; }
bool text_local_uses_clock(const struct text_local *l) { return l->harmony || (l->chat && text_chat_uses_clock(l->chat)); }
const struct tok *text_local_tok(const struct text_local *l) { return l->tok; }
size_t text_local_bytes(const struct text_local *l) { return sizeof(*l) + tok_bytes_held(l->tok); }

struct text_local_scratch *text_local_scratch_new(struct text_local *l, size_t cache_bytes)
{
	struct text_local_scratch *s = must_calloc(1, sizeof(*s));
	s->l = text_local_ref(l);
	s->tok = tok_scratch_new(l->tok, cache_bytes);
	arena_init(&s->arena, ARENA_MAX_BYTES);
	buf_init(&s->prompt, PROMPT_MAX_BYTES);
	buf_init(&s->chat, PROMPT_MAX_BYTES);
	text_pieces_init(&s->pieces, PROMPT_MAX_BYTES);
	return s;
}

void text_local_scratch_free(struct text_local_scratch *s)
{
	if (!s)
		return;
	tok_scratch_free(s->tok);
	arena_done(&s->arena);
	buf_done(&s->prompt);
	buf_done(&s->chat);
	text_pieces_done(&s->pieces);
	tok_ids_done(&s->ids);
	VEC_FREE(&s->ends);
	text_local_unref(s->l);
	free(s);
}

/* ---- encoding */

/* Several texts share what may be new. */
static enum err add_ids(struct text_local_scratch *s, struct tok_job job, const char **ret_why)
{
	job.memo = s->job->memo;
	job.max_new_bytes = s->job->max_new_bytes;
	job.new_bytes = &s->new_bytes;
	enum err e = tok_encode(s->l->tok, s->tok, &job, &s->ids);
	if (e != ERR_OK)
		*ret_why = e == ERR_LIMIT || e == ERR_AGAIN ? "too_long" : e == ERR_SYNTAX ? "not_utf8" : "tokenizer_unsupported";
	return e;
}

static enum err refuse(const char *why, const char **ret_why)
{
	*ret_why = why;
	return ERR_UNSUPPORTED;
}

static enum err encode(struct text_local_scratch *s, struct str text, bool special, const char **ret_why)
{
	struct tok_around around = tok_around(s->l->tok);
	size_t from = s->ids.n;
	if (!text_truncate_takes(&s->truncate, text, around.before_tok + around.after_tok))
		return refuse("truncation", ret_why);
	TRY(add_ids(s, (struct tok_job){ .text = text, .from = TOK_FROM_START, .add_bos = special, .add_eos = special }, ret_why));
	text_truncate_cut(&s->truncate, &s->ids, from, special ? around : (struct tok_around){ 0 });
	VEC_PUSH(&s->ends, s->ids.n);
	return ERR_OK;
}

static enum err encode_pieces(struct text_local_scratch *s, const char **ret_why)
{
	size_t from = 0;
	for (size_t i = 0; i < s->pieces.n; from = s->pieces.p[i++].end) {
		struct str text = str_sub(buf_str(&s->pieces.text), from, s->pieces.p[i].end - from);
		if (s->pieces.p[i].special)
			VEC_PUSH(&s->ids, s->pieces.p[i].special);
		else
			TRY(add_ids(s, (struct tok_job){ .text = text, .from = TOK_FROM_START, .ordinary = true }, ret_why));
	}
	VEC_PUSH(&s->ends, s->ids.n);
	return ERR_OK;
}

static enum err take_ids(struct text_local_scratch *s, const struct json_val *list, const char **ret_why)
{
	size_t from = s->ids.n;
	for (struct json_iter it = json_each(list); json_next(&it);) {
		uint64_t id;
		if (!json_u64(it.val, &id) || id > UINT32_MAX)
			return refuse("prompt_form", ret_why);
		VEC_PUSH(&s->ids, (uint32_t)id);
	}
	text_truncate_cut(&s->truncate, &s->ids, from, (struct tok_around){ 0 });
	VEC_PUSH(&s->ends, s->ids.n);
	return ERR_OK;
}

/* "text", ["text", …], [1, 2, …], [[1, …], …]; never mixed. */
static enum err prompts(struct text_local_scratch *s, const struct json_val *prompt, bool special, const char **ret_why)
{
	struct str text;
	if (json_str(prompt, &text))
		return encode(s, text, special, ret_why);
	if (!json_is(prompt, JSON_ARRAY) || json_len(prompt) == 0)
		return refuse("prompt_form", ret_why);
	struct json_iter first = json_each(prompt);
	(void)json_next(&first);
	if (json_is(first.val, JSON_NUMBER))
		return take_ids(s, prompt, ret_why);
	if (json_len(prompt) > PROMPTS_MAX)
		return refuse("too_many_prompts", ret_why);
	bool strings = json_is(first.val, JSON_STRING);
	for (struct json_iter it = json_each(prompt); json_next(&it);) {
		if (!json_is(it.val, strings ? JSON_STRING : JSON_ARRAY))
			return refuse("prompt_form", ret_why);
		TRY(json_str(it.val, &text) ? encode(s, text, special, ret_why) : take_ids(s, it.val, ret_why));
	}
	return ERR_OK;
}

static enum err completions(struct text_local_scratch *s, const struct json_val *body, struct str member, const char **ret_why)
{
	static const struct str ODD[] = { STR_INIT("prompt_embeds"), STR_INIT("suffix"), STR_INIT("padding") };
	const struct json_val *v = json_get(body, STR("add_special_tokens"));
	bool special = true;
	for (size_t i = 0; i < ARRAY_LEN(ODD); i++)
		if (!json_absent(json_get(body, ODD[i])))
			return refuse("prompt_form", ret_why);
	if (v && !json_bool(v, &special))
		return refuse("flag_form", ret_why);
	return prompts(s, json_get(body, member), special, ret_why);
}

/* A text or a list of texts, each a prompt; not ids. */
static enum err texts(struct text_local_scratch *s, const struct json_val *v, const char **ret_why)
{
	struct str text;
	if (json_str(v, &text))
		return encode(s, text, true, ret_why);
	if (!json_is(v, JSON_ARRAY) || json_len(v) == 0)
		return refuse("prompt_form", ret_why);
	if (json_len(v) > PROMPTS_MAX)
		return refuse("too_many_prompts", ret_why);
	for (struct json_iter it = json_each(v); json_next(&it);) {
		if (!json_str(it.val, &text))
			return refuse("prompt_form", ret_why);
		TRY(encode(s, text, true, ret_why));
	}
	return ERR_OK;
}

/* The members of its two sides; several such pairs in one body are the worker's to choose from. */
static bool score_sides(const struct json_val *body, const struct json_val *ret_sides[2])
{
	static const struct str PAIRS[][2] = { { STR_INIT("queries"), STR_INIT("documents") }, { STR_INIT("queries"), STR_INIT("items") },
		{ STR_INIT("data_1"), STR_INIT("data_2") }, { STR_INIT("text_1"), STR_INIT("text_2") }, { STR_INIT("query"), STR_INIT("documents") } };
	size_t n = 0;
	for (size_t i = 0; i < ARRAY_LEN(PAIRS); i++) {
		const struct json_val *a = json_get(body, PAIRS[i][0]), *b = json_get(body, PAIRS[i][1]);
		if (json_absent(a) || json_absent(b))
			continue;
		ret_sides[0] = a;
		ret_sides[1] = b;
		n++;
	}
	return n == 1;
}

/* What a model that embeds is asked for a score or a ranking: each text of both sides is a prompt of its own, one behind the other. */
static enum err score(struct text_local_scratch *s, const struct json_val *body, const char **ret_why)
{
	static const struct str CUTS[] = { STR_INIT("max_tokens_per_query"), STR_INIT("max_tokens_per_doc") };
	const struct json_val *sides[2];
	uint64_t n;
	for (size_t i = 0; i < ARRAY_LEN(CUTS); i++) {
		const struct json_val *v = json_get(body, CUTS[i]);
		if (!json_absent(v) && (!json_u64(v, &n) || n > 0))
			return refuse("truncation", ret_why);
	}
	if (!json_absent(json_get(body, STR("padding"))) || !score_sides(body, sides))
		return refuse("prompt_form", ret_why);
	TRY(texts(s, sides[0], ret_why));
	size_t n_first = s->ends.n;
	TRY(texts(s, sides[1], ret_why));
	return n_first == 1 || s->ends.n == 2 * n_first ? ERR_OK : refuse("prompt_form", ret_why);
}

/* The ids up to the last place from which on nothing can change them, whatever the media become. */
static enum err encode_prefix(struct text_local_scratch *s, const struct text_chat_rest *rest, bool special, const char **ret_why)
{
	struct str text = buf_str(&s->prompt);
	size_t cut = tok_cut_last(s->l->tok, text);
	if (cut == 0 || s->truncate.keep_tok)
		return refuse(cut ? "truncation" : "media_too_early", ret_why);
	TRY(add_ids(s, (struct tok_job){ .text = str_sub(text, 0, cut), .from = TOK_FROM_START, .add_bos = special }, ret_why));
	VEC_PUSH(&s->ends, s->ids.n);
	s->rest_tok = (text.n - cut + rest->bytes) / 4 + (size_t)rest->n_media * TEXT_MEDIA_TOK;
	return ERR_OK;
}

static enum err render(struct text_local_scratch *s, const struct text_local_job *job, const struct json_val *body, struct buf *out, struct text_chat_rest *rest,
	bool *ret_special, const char **ret_why)
{
	struct text_chat_job c = { .body = body, .from_responses = job->form == TEXT_RESPONSES, .now_s = job->now_s, .arena = &s->arena, .rest = rest };
	if (!s->l->chat)
		return refuse("no_template", ret_why);
	if (job->max_new_bytes && text_chat_has_own(body)) {
		*ret_why = "request_template";
		return ERR_AGAIN;
	}
	struct arena_mark mark = arena_mark(&s->arena);
	enum err e = text_chat_render(s->l->chat, &c, out, ret_special, ret_why);
	arena_rewind(&s->arena, mark);
	return e;
}

static enum err render_pieces(struct text_local_scratch *s, const struct text_local_job *job, const struct json_val *body, const char **ret_why)
{
	struct text_chat_job c = { .body = body, .from_responses = job->form == TEXT_RESPONSES, .now_s = job->now_s, .arena = &s->arena };
	struct arena_mark mark = arena_mark(&s->arena);
	enum err e = text_harmony_render(&c, &s->pieces, ret_why);
	arena_rewind(&s->arena, mark);
	return e;
}

static enum err chat(struct text_local_scratch *s, const struct text_local_job *job, const struct json_val *body, const char **ret_why)
{
	bool special;
	struct text_chat_rest rest = { 0 };
	if (s->l->harmony) {
		TRY(render_pieces(s, job, body, ret_why));
		return encode_pieces(s, ret_why);
	}
	buf_clear(&s->prompt);
	TRY(render(s, job, body, &s->prompt, job->prefix_will_do ? &rest : NULL, &special, ret_why));
	if (rest.n_media)
		return encode_prefix(s, &rest, special, ret_why);
	return encode(s, buf_str(&s->prompt), special, ret_why);
}

/* The chat that the worker makes of another API's body. */
static enum err converted(struct text_local_scratch *s, const struct text_local_job *job, const struct json_val *body, struct json_doc **ret_doc, const char **ret_why)
{
	struct text_convert_opts o = text_harmony_convert_opts(s->l->has_template);
	if (!s->l->chat && (!s->l->harmony || job->form == TEXT_EMBEDDINGS))
		return refuse("no_template", ret_why);
	if (!s->l->harmony && !text_chat_convert_opts(s->l->chat, &o))
		return refuse("version", ret_why);
	buf_clear(&s->chat);
	TRY(text_convert(job->form, body, &o, &s->chat, ret_why));
	*ret_why = "conversion_form";
	return json_parse(buf_str(&s->chat), s->chat.n, ret_doc) == ERR_OK ? ERR_OK : ERR_UNSUPPORTED;
}

/* The worker cuts all prompts but the chats of GPT-OSS. */
static enum err read_truncation(struct text_local_scratch *s, const struct text_local_job *job, const struct json_val *body, const char **ret_why)
{
	bool never = s->l->harmony && (job->form == TEXT_CHAT || job->form == TEXT_MESSAGES || job->form == TEXT_RESPONSES);
	s->truncate = (struct text_truncate){ 0 };
	if (never || json_absent(json_get(body, STR("truncate_prompt_tokens"))))
		return ERR_OK;
	if (!s->l->truncates)
		return refuse("truncation", ret_why);
	return text_truncate_read(body, job->form, job->model_tok, s->l->longest_piece_cp, &s->truncate, ret_why);
}

/* ---- the whole */

static struct text_ids *made(struct text_local_scratch *s)
{
	struct text_span *lists = must_calloc(s->ends.n, sizeof(*lists));
	size_t from = 0;
	for (size_t i = 0; i < s->ends.n; i++) {
		lists[i] = (struct text_span){ s->ids.p ? s->ids.p + from : NULL, s->ends.p[i] - from, s->rest_tok };
		from = s->ends.p[i];
	}
	struct text_ids *ids = text_ids_from(lists, s->ends.n);
	free(lists);
	return ids;
}

/* Members as they come, or as a chat of vLLM's; an embeddings body is the one or the other. */
static bool as_it_is(const struct text_local_scratch *s, enum text_form form, const struct json_val *body)
{
	if (form == TEXT_EMBEDDINGS)
		return json_absent(json_get(body, STR("messages")));
	return form == TEXT_CHAT || form == TEXT_COMPLETIONS || form == TEXT_SCORE || (form == TEXT_RESPONSES && s->l->harmony);
}

/* The body, as a chat's when it is another API's. */
static enum err parsed(struct text_local_scratch *s, const struct text_local_job *job, struct json_doc **ret_doc, const char **ret_why)
{
	struct json_doc *d;
	struct json_body_opts o = { .max_bytes = job->body.n, .memo = tok_memo_table(job->memo) };
	enum err e = json_parse_body(job->body, &o, &d);
	if (e != ERR_OK) {
		*ret_why = e == ERR_LIMIT ? "too_long" : "not_json";
		return e;
	}
	if (as_it_is(s, job->form, json_root(d))) {
		*ret_doc = d;
		return ERR_OK;
	}
	e = converted(s, job, json_root(d), ret_doc, ret_why);
	json_free(d);
	return e;
}

static enum err ids_of(struct text_local_scratch *s, const struct text_local_job *job, const struct json_val *body, const char **ret_why)
{
	TRY(read_truncation(s, job, body, ret_why));
	if (job->form == TEXT_SCORE)
		return score(s, body, ret_why);
	if (job->form == TEXT_COMPLETIONS)
		return completions(s, body, STR("prompt"), ret_why);
	if (job->form == TEXT_EMBEDDINGS && json_absent(json_get(body, STR("messages"))))
		return completions(s, body, STR("input"), ret_why);
	return chat(s, job, body, ret_why);
}

enum err text_local_ids(struct text_local_scratch *s, const struct text_local_job *job, struct text_ids **ret_ids, const char **ret_why)
{
	struct json_doc *d;
	TRY(parsed(s, job, &d, ret_why));
	s->job = job;
	s->new_bytes = 0;
	s->ids.n = 0;
	s->ends.n = 0;
	s->rest_tok = 0;
	const struct json_val *body = json_root(d);
	enum err e = ids_of(s, job, body, ret_why);
	json_free(d);
	TRY(e);
	if (s->ids.n > job->max_tok || s->rest_tok > job->max_tok) {
		*ret_why = "too_long";
		return ERR_LIMIT;
	}
	*ret_ids = made(s);
	return ERR_OK;
}

enum err text_local_prompt(struct text_local_scratch *s, const struct text_local_job *job, struct buf *out, const char **ret_why)
{
	struct json_doc *d;
	bool special;
	TRY(parsed(s, job, &d, ret_why));
	enum err e = s->l->harmony ? render_pieces(s, job, json_root(d), ret_why) : render(s, job, json_root(d), out, NULL, &special, ret_why);
	if (e == ERR_OK && s->l->harmony)
		e = buf_add(out, buf_str(&s->pieces.text));
	json_free(d);
	return e;
}
