/* tokenize.c: the command line of `kvasir tokenize`. */
#include "tokenize/tokenize.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/must.h"
#include "io/loop.h"
#include "model/hub.h"
#include "model/place.h"
#include "tokenize/check.h"
#include "tokenize/model.h"
#include "wire/json.h"

enum shape { SHAPE_IDS, SHAPE_COUNT, SHAPE_PIECES };
enum { MAX_INPUT = TOK_MAX_TEXT_BYTES };

struct options {
	const char *folder, *repo;       /* one of them */
	const char **files;              /* one, but for check; not NULL */
	size_t n_files;
	enum shape shape;
	bool lines, no_special, body;    /* body: the input is a request, not a text */
	bool prompt, check;
	const char *worker, *key_env;
	enum text_form form;
	enum tok_unicode unicode;
	uint64_t model_tok;              /* 0: not said */
};

struct work {
	const struct options *o;
	struct text_local *l;
	const struct tok *t;
	struct tok_scratch *s;
	struct text_local_scratch *bodies;
	struct tok_ids ids;
	const char *why;                 /* what an answer failed for; NULL: see the error */
	struct buf out;
	bool failed;
};

static const char HELP[] =
	"kvasir tokenize --model-dir DIR|--hub REPO[@REVISION] [--text|--chat|--completions|--responses|--messages|--embeddings|--score] [--ids|--count|--pieces|--prompt] [--lines] [--no-special]\n"
	"                [--unicode 14|16] [--max-model-len N] [FILE|-]\n"
	"kvasir tokenize --check --worker URL [--api-key-env NAME] --model-dir DIR|--hub REPO[@REVISION] [--text|--chat|--completions|--responses|--messages|--embeddings] [--lines] [FILE...]\n"
	"  The token ids of FILE (default: standard input) as a JSON array. --help, -h: this text.\n"
	"  --hub         a repository of the caches on this machine, else fetched from HF_ENDPOINT (HF_TOKEN, HF_HUB_OFFLINE)\n"
	"  --text        the input is a prompt's text (the default)\n"
	"  --chat        the input is the body of a /v1/chat/completions request; --completions: of /v1/completions (several prompts:\n"
	"                a list with one answer for each); --responses: of /v1/responses; --messages: of /v1/messages or its count_tokens;\n"
	"                --embeddings: of /v1/embeddings; --score: of /score or /rerank to a model that embeds (one answer for each text)\n"
	"  --ids         the answer is an array of ids (the default); --count: how many they are; --pieces: the vocabulary's own spelling of each\n"
	"  --prompt      not the ids but the chat's text as the model gets it, as a JSON string; the input is a body (--chat where none is said)\n"
	"  --lines       each input line is one input: a text as a JSON string, or a body (with --chat and the like) as it is or as a JSON string;\n"
	"                each output line is its answer, or {\"error\": ...}\n"
	"  --no-special  of a text without the ids that the model's post-processor puts around a prompt\n"
	"  --unicode 14  letters and digits as tokenizers up to 0.21.1 have them\n"
	"  --max-model-len N  the worker's: how long truncate_prompt_tokens -1 leaves a prompt\n"
	"  --check       holds our ids of all files' lines, each a text (with --lines as a JSON string) or a body, against that worker's own\n"
	"                (render or tokenize calls); prints a summary as JSON. Exit code 1 when one differs, when one could not be compared for\n"
	"                a fault of the line or the worker, and when nothing was compared at all\n"
	"  --api-key-env NAME  the environment variable that holds the key for that worker\n";

/* ---- output */

static void put_prompt(const struct work *w, struct json_writer *j, const uint32_t *ids, size_t n)
{
	if (w->o->shape == SHAPE_COUNT) {
		json_put_u64(j, n);
		return;
	}
	json_put_open(j, '[');
	for (size_t i = 0; i < n; i++) {
		if (w->o->shape == SHAPE_PIECES)
			json_put_str(j, tok_piece(w->t, ids[i]));
		else
			json_put_u64(j, ids[i]);
	}
	json_put_close(j, ']');
}

static enum err answer(struct work *w, struct str text)
{
	struct tok_job job = { .text = text, .add_bos = !w->o->no_special, .add_eos = !w->o->no_special };
	struct json_writer j = json_writer(&w->out);
	w->ids.n = 0;
	TRY(tok_encode(w->t, w->s, &job, &w->ids));
	put_prompt(w, &j, w->ids.p, w->ids.n);
	return json_writer_done(&j);
}

/* A whole request. Several prompts are a list of answers. */
static enum err answer_body(struct work *w, struct str body)
{
	struct text_local_job job = { .form = w->o->form, .body = body, .now_s = io_unix_us() / 1000000, .max_tok = SIZE_MAX, .model_tok = w->o->model_tok };
	struct json_writer j = json_writer(&w->out);
	struct text_ids *ids;
	if (w->o->prompt) {
		struct buf prompt;
		buf_init(&prompt, MAX_INPUT);
		enum err e = text_local_prompt(w->bodies, &job, &prompt, &w->why);
		if (e == ERR_OK)
			json_put_str(&j, buf_str(&prompt));
		buf_done(&prompt);
		return e == ERR_OK ? json_writer_done(&j) : e;
	}
	TRY(text_local_ids(w->bodies, &job, &ids, &w->why));
	if (ids->n != 1)
		json_put_open(&j, '[');
	for (size_t i = 0; i < ids->n; i++)
		put_prompt(w, &j, ids->prompts[i].ids, ids->prompts[i].n);
	if (ids->n != 1)
		json_put_close(&j, ']');
	text_ids_unref(ids);
	return json_writer_done(&j);
}

static bool flush(struct work *w)
{
	struct str s = buf_str(&w->out);
	bool ok = fwrite(s.p, 1, s.n, stdout) == s.n;
	buf_clear(&w->out);
	return ok;
}

static enum err answer_line(struct work *w, struct str line)
{
	struct json_doc *doc;
	struct str text;
	TRY(json_parse(line, MAX_INPUT, &doc));
	bool quoted = json_str(json_root(doc), &text);
	enum err e = ERR_BAD_REQUEST;
	if (w->o->body)
		e = answer_body(w, quoted ? text : line);
	else if (quoted)
		e = answer(w, text);
	json_free(doc);
	return e;
}

/* ---- input */

static void each_line(struct work *w, struct str text)
{
	while (text.n) {
		struct str line, rest;
		(void)str_cut(text, '\n', &line, &rest);
		w->why = NULL;
		enum err e = answer_line(w, line);
		if (e != ERR_OK) {
			w->failed = true;
			buf_clear(&w->out);
			printf("{\"error\":\"%s\"}", w->why ? w->why : err_label(e));
		}
		if (!flush(w) || putchar('\n') == EOF) {
			w->failed = true;
			return;
		}
		text = rest;
	}
}

static void whole(struct work *w, struct str text)
{
	enum err e = w->o->body ? answer_body(w, text) : answer(w, text);
	if (e != ERR_OK && w->why && strcmp(w->why, "not_json") == 0)
		fprintf(stderr, "kvasir tokenize: %s: the body is not valid JSON\n", w->o->files[0]);
	else if (e != ERR_OK && w->why)
		fprintf(stderr, "kvasir tokenize: %s: only a worker can say: %s\n", w->o->files[0], w->why);
	else if (e != ERR_OK)
		fprintf(stderr, "kvasir tokenize: %s: %s\n", w->o->files[0], e == ERR_SYNTAX ? "the text is not UTF-8" : err_text(e));
	w->failed = e != ERR_OK || !flush(w) || putchar('\n') == EOF;
}

static enum err load_repo(const struct options *o, char *why, size_t cap, struct text_local **ret_l)
{
	struct arena a;
	struct model_hub hub = model_hub_env();
	struct model_fetch f = { .hub = &hub };
	struct str folder, told = { 0 };
	arena_init(&a, 0);
	f.cache = model_own_cache(&a);
	(void)str_cut(str_of(o->repo), '@', &f.repo, &f.revision);
	enum err e = model_find_or_fetch(&f, &a, &folder, &told);
	if (e == ERR_OK)
		e = tokenize_load(arena_str(&a, folder).p, o->unicode, why, cap, ret_l);
	else
		snprintf(why, cap, "%.*s", STR_ARG(told));
	arena_done(&a);
	return e;
}

static enum err load_model(const struct options *o, char *why, size_t cap, struct text_local **ret_l)
{
	return o->repo ? load_repo(o, why, cap, ret_l) : tokenize_load(o->folder, o->unicode, why, cap, ret_l);
}

/* One behind the other, each beginning a line. */
static enum err read_files(const struct options *o, struct buf *text, const char **ret_file)
{
	for (size_t i = 0; i < o->n_files; i++) {
		struct str s;
		*ret_file = o->files[i];
		TRY(tokenize_read_file(o->files[i], MAX_INPUT, &s));
		enum err e = text->n && text->p[text->n - 1] != '\n' ? buf_add_byte(text, '\n') : ERR_OK;
		if (e == ERR_OK)
			e = buf_add(text, s);
		free((void *)(uintptr_t)s.p);
		TRY(e);
	}
	return ERR_OK;
}

static int check(const struct options *o, const struct work *w, struct str text)
{
	struct tokenize_check c = { .s = w->bodies, .input = o->body ? TOKENIZE_BODY : o->lines ? TOKENIZE_QUOTED : TOKENIZE_TEXT,
		.form = o->body ? o->form : TEXT_COMPLETIONS, .no_special = o->no_special, .worker = o->worker, .api_key = o->key_env ? getenv(o->key_env) : NULL };
	c.render_only = c.form == TEXT_CHAT && text_local_is_harmony(w->l);
	return tokenize_check(&c, text);
}

static int run(const struct options *o)
{
	char why[512];
	const char *file = "";
	struct work w = { .o = o };
	struct buf all;
	int code = 0;
	enum err e = load_model(o, why, sizeof(why), &w.l);
	if (e == ERR_OK && o->body && o->form != TEXT_COMPLETIONS && text_has_render(o->form) && !text_local_has_chat(w.l)) {
		text_local_unref(w.l);
		e = ERR_UNSUPPORTED;
	}
	if (e != ERR_OK) {
		fprintf(stderr, "kvasir tokenize: %s: %s\n", o->repo ? o->repo : o->folder, why);
		return 1;
	}
	buf_init(&all, MAX_INPUT);
	e = read_files(o, &all, &file);
	struct str text = buf_str(&all);
	if (e != ERR_OK) {
		fprintf(stderr, "kvasir tokenize: %s: %s\n", file, err_text(e));
		buf_done(&all);
		text_local_unref(w.l);
		return 1;
	}
	buf_init(&w.out, SIZE_MAX / 2);
	w.t = text_local_tok(w.l);
	w.s = tok_scratch_new(w.t, TOK_CACHE_BYTES);
	w.bodies = text_local_scratch_new(w.l, TOK_CACHE_BYTES);
	if (o->check)
		code = check(o, &w, text);
	else if (o->lines)
		each_line(&w, text);
	else
		whole(&w, text);
	buf_done(&all);
	tok_scratch_free(w.s);
	tok_ids_done(&w.ids);
	buf_done(&w.out);
	text_local_scratch_free(w.bodies);
	text_local_unref(w.l);
	return w.failed || fflush(stdout) ? 1 : code;
}

/* ---- options */

/* Returns -1 to go on, else the exit code. value: of an option that takes one. */
typedef int (*take_fn)(struct options *o, const char *value);

static int take_dir(struct options *o, const char *value) { return o->folder = value, -1; }
static int take_hub(struct options *o, const char *value) { return o->repo = value, -1; }
static int take_text(struct options *o, const char *value) { return (void)value, o->body = false, -1; }
static int take_ids(struct options *o, const char *value) { return (void)value, o->shape = SHAPE_IDS, -1; }
static int take_count(struct options *o, const char *value) { return (void)value, o->shape = SHAPE_COUNT, -1; }
static int take_pieces(struct options *o, const char *value) { return (void)value, o->shape = SHAPE_PIECES, -1; }
static int take_lines(struct options *o, const char *value) { return (void)value, o->lines = true, -1; }
static int take_no_special(struct options *o, const char *value) { return (void)value, o->no_special = true, -1; }

static int take_body(struct options *o, enum text_form form) { return o->body = true, o->form = form, -1; }
static int take_chat(struct options *o, const char *value) { return (void)value, take_body(o, TEXT_CHAT); }
static int take_completions(struct options *o, const char *value) { return (void)value, take_body(o, TEXT_COMPLETIONS); }
static int take_responses(struct options *o, const char *value) { return (void)value, take_body(o, TEXT_RESPONSES); }
static int take_messages(struct options *o, const char *value) { return (void)value, take_body(o, TEXT_MESSAGES); }
static int take_embeddings(struct options *o, const char *value) { return (void)value, take_body(o, TEXT_EMBEDDINGS); }
static int take_score(struct options *o, const char *value) { return (void)value, take_body(o, TEXT_SCORE); }
static int take_prompt(struct options *o, const char *value) { return (void)value, o->prompt = true, -1; }

static int take_check(struct options *o, const char *value) { return (void)value, o->check = true, -1; }
static int take_worker(struct options *o, const char *value) { return o->worker = value, -1; }
static int take_key_env(struct options *o, const char *value) { return o->key_env = value, -1; }

static int take_unicode(struct options *o, const char *value)
{
	if (strcmp(value, "14") && strcmp(value, "16")) {
		fprintf(stderr, "kvasir tokenize: --unicode is 14 or 16, not %s\n", value);
		return 2;
	}
	o->unicode = value[1] == '4' ? TOK_UNICODE_14 : TOK_UNICODE_16;
	return -1;
}

static int take_model_len(struct options *o, const char *value)
{
	if (str_to_u64(str_of(value), &o->model_tok) && o->model_tok)
		return -1;
	fprintf(stderr, "kvasir tokenize: --max-model-len is a number from 1 on, not %s\n", value);
	return 2;
}

static int take_help(struct options *o, const char *value)
{
	(void)o;
	(void)value;
	fputs(HELP, stdout);
	return 0;
}

static const struct { const char *name; bool has_value; take_fn take; } OPTIONS[] = {
	{ "--model-dir", true, take_dir }, { "--hub", true, take_hub }, { "--text", false, take_text }, { "--ids", false, take_ids }, { "--count", false, take_count },
	{ "--pieces", false, take_pieces }, { "--lines", false, take_lines }, { "--no-special", false, take_no_special },
	{ "--unicode", true, take_unicode }, { "--chat", false, take_chat }, { "--completions", false, take_completions },
	{ "--check", false, take_check }, { "--worker", true, take_worker }, { "--api-key-env", true, take_key_env },
	{ "--max-model-len", true, take_model_len }, { "--prompt", false, take_prompt }, { "--responses", false, take_responses }, { "--messages", false, take_messages }, { "--embeddings", false, take_embeddings }, { "--score", false, take_score }, { "--help", false, take_help }, { "-h", false, take_help },
};

static int wrong_use(const char *what, const char *word)
{
	fprintf(stderr, "kvasir tokenize: %s%s%s (see kvasir tokenize --help)\n", what, *word ? ": " : "", word);
	return 2;
}

/* One word, and the next one when it is an option's value (*i moves on). */
static int take_word(struct options *o, int argc, char **argv, int *i)
{
	const char *word = argv[*i];
	if (word[0] != '-' || !word[1]) {
		o->files[o->n_files++] = word;
		return -1;
	}
	for (size_t k = 0; k < ARRAY_LEN(OPTIONS); k++) {
		size_t n = strlen(OPTIONS[k].name);
		if (strncmp(word, OPTIONS[k].name, n) || (word[n] && (word[n] != '=' || !OPTIONS[k].has_value)))
			continue;
		if (OPTIONS[k].has_value && !word[n] && ++*i >= argc)
			return wrong_use("a value is missing behind", word);
		return OPTIONS[k].take(o, word[n] ? word + n + 1 : OPTIONS[k].has_value ? argv[*i] : NULL);
	}
	return wrong_use("unknown option", word);
}

static int obey(struct options *o, int argc, char **argv)
{
	for (int i = 0; i < argc; i++) {
		int code = take_word(o, argc, argv, &i);
		if (code >= 0)
			return code;
	}
	o->body |= o->prompt;   /* TEXT_CHAT where none is said */
	if (o->n_files == 0)
		o->files[o->n_files++] = "-";
	if (o->n_files > 1 && !o->check)
		return wrong_use("more than one file", o->files[1]);
	if (o->check && !o->worker)
		return wrong_use("--check needs --worker URL", "");
	if (o->check && o->body && o->form == TEXT_SCORE)
		return wrong_use("no call of a worker gives such ids to --check against", "--score");
	if (o->key_env && !getenv(o->key_env))
		return wrong_use("--api-key-env: no such variable in the environment", o->key_env);
	return !o->folder == !o->repo ? wrong_use("--model-dir or --hub is needed, one of them", "") : run(o);
}

int tokenize_main(int argc, char **argv)
{
	struct options o = { .files = must_calloc((size_t)argc + 1, sizeof(*o.files)) };
	int code = obey(&o, argc, argv);
	free(o.files);
	return code;
}
