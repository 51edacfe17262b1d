/* argv -> sources. Values are checked when the sources are loaded, so a flag's fault reads like a file's. */
#include "conf/args.h"

#include <string.h>

struct cursor { int argc, at; char **argv; struct conf_faults *faults; };

static void arg_fault(struct cursor *c, struct str path, const char *what)
{
	conf_fault_add(c->faults, (struct conf_place){ 0 }, path, "%s", what);
}

/* The value of a flag: behind '=' or the next argument. */
static bool take_value(struct cursor *c, struct str flag, bool has_inline, struct str inline_value, struct str *ret_v)
{
	if (has_inline) {
		*ret_v = inline_value;
		return true;
	}
	if (c->at >= c->argc) {
		arg_fault(c, flag, "needs a value");
		return false;
	}
	*ret_v = str_of(c->argv[c->at++]);
	return true;
}

static bool is_bool_text(const char *s) { return strcmp(s, "true") == 0 || strcmp(s, "false") == 0; }

static void option_flag(struct cursor *c, struct conf_args *a, struct str flag, bool has_inline, struct str v)
{
	const struct conf_option *row = conf_option_of_flag(str_skip(flag, 2));
	if (row == NULL) {
		arg_fault(c, flag, "is no flag of kvasir serve: see kvasir serve --help");
		return;
	}
	bool alone = row->type == CONF_BOOL && !has_inline && (c->at >= c->argc || !is_bool_text(c->argv[c->at]));
	if (alone)
		v = STR("true");
	else if (!take_value(c, flag, has_inline, v, &v))
		return;
	VEC_PUSH(&a->sources.overrides, (struct conf_override){ row, v });
}

static void one_arg(struct cursor *c, struct conf_args *a, struct str arg)
{
	struct str flag, v;
	bool has_inline = str_starts(arg, STR("--")) && str_cut(arg, '=', &flag, &v);
	if (!has_inline)
		flag = arg;
	if (str_eq(flag, STR("--help")) || str_eq(flag, STR("-h")))
		a->help = true;
	else if (str_eq(flag, STR("--version")))
		a->version = true;
	else if (str_eq(flag, STR("--print-config")))
		a->print_config = true;
	else if (str_eq(flag, STR("-c")) || str_eq(flag, STR("--config"))) {
		if (take_value(c, flag, has_inline, v, &v))
			VEC_PUSH(&a->sources.paths, v);
	} else if (str_eq(flag, STR("--worker"))) {
		if (take_value(c, flag, has_inline, v, &v))
			VEC_PUSH(&a->sources.workers, v);
	} else if (str_starts(flag, STR("--")))
		option_flag(c, a, flag, has_inline, v);
	else
		arg_fault(c, arg, "is not understood: workers are named with --worker URL, files with -c FILE_OR_DIR");
}

bool conf_args_parse(int argc, char **argv, struct conf_args *ret_args, struct conf_faults *faults)
{
	struct cursor c = { argc, 0, argv, faults };
	size_t before = faults->list.n;
	memset(ret_args, 0, sizeof(*ret_args));
	while (c.at < c.argc) {
		struct str arg = str_of(c.argv[c.at++]);
		one_arg(&c, ret_args, arg);
	}
	bool asks = ret_args->help || ret_args->version || ret_args->print_config;
	if (faults->list.n == before && !asks && ret_args->sources.paths.n == 0 && ret_args->sources.workers.n == 0)
		arg_fault(&c, (struct str){ 0 }, "there is nothing to serve: name a worker with --worker URL, or files with -c FILE_OR_DIR");
	return faults->list.n == before;
}

void conf_args_done(struct conf_args *a)
{
	VEC_FREE(&a->sources.paths);
	VEC_FREE(&a->sources.workers);
	VEC_FREE(&a->sources.overrides);
}

static enum err wrapped(struct buf *b, struct str text, size_t indent, size_t width)
{
	size_t col = indent;
	TRY(buf_printf(b, "%*s", (int)indent, ""));
	for (struct str word, rest = text; rest.n > 0;) {
		str_cut(rest, ' ', &word, &rest);
		if (col > indent && col + 1 + word.n > width) {
			TRY(buf_printf(b, "\n%*s", (int)indent, ""));
			col = indent;
		}
		TRY(buf_printf(b, "%s%.*s", col > indent ? " " : "", STR_ARG(word)));
		col += word.n + (col > indent);
	}
	return buf_add_byte(b, '\n');
}

static enum err option_help(struct buf *b, const struct conf_option *row)
{
	TRY(buf_printf(b, "  --%s %s\n", row->flag, row->type == CONF_WORD ? row->words : conf_type_name(row->type)));
	TRY(wrapped(b, str_of(row->doc), 8, 110));
	return buf_printf(b, "        default %s; in YAML: spec.%s%s\n", *row->def ? row->def : "(none)", row->key, row->reload == CONF_LIVE ? "; reloaded" : "");
}

enum err conf_args_help(struct buf *b)
{
	const struct conf_option *rows;
	size_t n = conf_options(&rows);
	TRY(buf_add(b, STR("usage: kvasir serve [-c FILE_OR_DIR]... [--worker URL]... [--FLAG VALUE]...\n\n"
	                   "  --worker URL\n        A worker, http://HOST:PORT; repeatable. Everything else is learnt from it.\n"
	                   "  -c, --config FILE_OR_DIR\n        Objects (Gateway, WorkerPool) in YAML; a folder's *.yaml and *.yml; repeatable; watched and reloaded.\n"
	                   "  --print-config\n        Print the whole configuration as YAML, without secrets, and end.\n"
	                   "  --version\n  --help\n\nOptions (a flag wins over a file):\n")));
	for (size_t i = 0; i < n; i++)
		TRY(option_help(b, &rows[i]));
	return ERR_OK;
}
