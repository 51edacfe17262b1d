/* tokenize.c: the command line of `kvasir tokenize`. */
#include "tokenize/tokenize.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tokenize/model.h"
#include "wire/json.h"

enum shape { SHAPE_IDS, SHAPE_COUNT, SHAPE_PIECES };
enum { MAX_INPUT = TOK_MAX_TEXT_BYTES };

struct options {
	const char *folder, *file;
	enum shape shape;
	bool lines, no_special;
	enum tok_unicode unicode;
};

struct work {
	const struct options *o;
	struct tok *t;
	struct tok_scratch *s;
	struct tok_ids ids;
	struct buf out;
	bool failed;
};

static const char HELP[] =
	"kvasir tokenize --model-dir DIR [--text] [--ids|--count|--pieces] [--lines] [--no-special] [--unicode 14|16] [FILE|-]\n"
	"  The token ids of FILE (default: standard input) as a JSON array.\n"
	"  --text        the input is a prompt's text (the default)\n"
	"  --count       how many ids; --pieces: the vocabulary's own spelling of each\n"
	"  --lines       each input line is a JSON string, each output line its answer, or {\"error\": ...}\n"
	"  --no-special  without the ids that the model's post-processor puts around a prompt\n"
	"  --unicode 14  letters and digits as tokenizers up to 0.21.1 have them\n";

/* ---- output */

static enum err put_answer(struct work *w)
{
	struct json_writer j = json_writer(&w->out);
	if (w->o->shape == SHAPE_COUNT) {
		json_put_u64(&j, w->ids.n);
		return json_writer_done(&j);
	}
	json_put_open(&j, '[');
	for (size_t i = 0; i < w->ids.n; i++) {
		if (w->o->shape == SHAPE_PIECES)
			json_put_str(&j, tok_piece(w->t, w->ids.p[i]));
		else
			json_put_u64(&j, w->ids.p[i]);
	}
	json_put_close(&j, ']');
	return json_writer_done(&j);
}

static enum err answer(struct work *w, struct str text)
{
	struct tok_job job = { .text = text, .add_bos = !w->o->no_special, .add_eos = !w->o->no_special };
	w->ids.n = 0;
	TRY(tok_encode(w->t, w->s, &job, &w->ids));
	return put_answer(w);
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
	enum err e = json_str(json_root(doc), &text) ? answer(w, text) : ERR_BAD_REQUEST;
	json_free(doc);
	return e;
}

/* ---- input */

static void each_line(struct work *w, struct str text)
{
	while (text.n) {
		struct str line, rest;
		(void)str_cut(text, '\n', &line, &rest);
		enum err e = answer_line(w, line);
		if (e != ERR_OK) {
			w->failed = true;
			buf_clear(&w->out);
			printf("{\"error\":\"%s\"}", err_label(e));
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
	enum err e = answer(w, text);
	if (e != ERR_OK)
		fprintf(stderr, "kvasir tokenize: %s: %s\n", w->o->file, e == ERR_SYNTAX ? "the text is not UTF-8" : err_text(e));
	w->failed = e != ERR_OK || !flush(w) || putchar('\n') == EOF;
}

static int run(const struct options *o)
{
	char why[512];
	struct work w = { .o = o };
	struct str text;
	enum err e = tokenize_load(o->folder, o->unicode, why, sizeof(why), &w.t);
	if (e != ERR_OK) {
		fprintf(stderr, "kvasir tokenize: %s: %s\n", o->folder, why);
		return 1;
	}
	e = tokenize_read_file(o->file, MAX_INPUT, &text);
	if (e != ERR_OK) {
		fprintf(stderr, "kvasir tokenize: %s: %s\n", o->file, err_text(e));
		tok_free(w.t);
		return 1;
	}
	buf_init(&w.out, SIZE_MAX / 2);
	w.s = tok_scratch_new(w.t, TOK_CACHE_BYTES);
	if (o->lines)
		each_line(&w, text);
	else
		whole(&w, text);
	free((void *)(uintptr_t)text.p);
	tok_scratch_free(w.s);
	tok_ids_done(&w.ids);
	buf_done(&w.out);
	tok_free(w.t);
	return w.failed || fflush(stdout) ? 1 : 0;
}

/* ---- options */

enum option_code { OPT_DIR = 256, OPT_TEXT, OPT_CHAT, OPT_IDS, OPT_COUNT, OPT_PIECES, OPT_LINES, OPT_NO_SPECIAL, OPT_UNICODE, OPT_HELP };

static const struct option OPTIONS[] = {
	{ "model-dir", required_argument, NULL, OPT_DIR }, { "text", no_argument, NULL, OPT_TEXT },
	{ "chat", no_argument, NULL, OPT_CHAT }, { "responses", no_argument, NULL, OPT_CHAT }, { "messages", no_argument, NULL, OPT_CHAT },
	{ "ids", no_argument, NULL, OPT_IDS }, { "count", no_argument, NULL, OPT_COUNT }, { "pieces", no_argument, NULL, OPT_PIECES },
	{ "lines", no_argument, NULL, OPT_LINES }, { "no-special", no_argument, NULL, OPT_NO_SPECIAL },
	{ "unicode", required_argument, NULL, OPT_UNICODE }, { "help", no_argument, NULL, OPT_HELP }, { NULL, 0, NULL, 0 },
};

/* Returns -1 to go on, else the exit code. */
static int take_option(struct options *o, int code)
{
	switch (code) {
	case OPT_DIR: o->folder = optarg; break;
	case OPT_TEXT: break;
	case OPT_CHAT: fprintf(stderr, "kvasir tokenize: chat, responses and messages bodies need a chat template, which this build does not render\n"); return 2;
	case OPT_IDS: o->shape = SHAPE_IDS; break;
	case OPT_COUNT: o->shape = SHAPE_COUNT; break;
	case OPT_PIECES: o->shape = SHAPE_PIECES; break;
	case OPT_LINES: o->lines = true; break;
	case OPT_NO_SPECIAL: o->no_special = true; break;
	case OPT_UNICODE:
		o->unicode = strcmp(optarg, "14") == 0 ? TOK_UNICODE_14 : TOK_UNICODE_16;
		if (strcmp(optarg, "14") == 0 || strcmp(optarg, "16") == 0)
			break;
		fprintf(stderr, "kvasir tokenize: --unicode is 14 or 16, not %s\n", optarg);
		return 2;
	case OPT_HELP: fputs(HELP, stdout); return 0;
	default: fputs(HELP, stderr); return 2;
	}
	return -1;
}

int tokenize_main(int argc, char **argv)
{
	struct options o = { .file = "-" };
	optind = 1;
	for (int c; (c = getopt_long(argc, argv, "", OPTIONS, NULL)) != -1;) {
		int code = take_option(&o, c);
		if (code >= 0)
			return code;
	}
	if (optind < argc)
		o.file = argv[optind++];
	if (!o.folder || optind < argc) {
		fputs(HELP, stderr);
		return 2;
	}
	return run(&o);
}
