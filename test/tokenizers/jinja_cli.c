/* jinja_cli: the other half of the template oracle. Lines of JSON {"template": …, "vars": {…}} on standard input; each
 * answered with one line {"out": …} or {"error": …, "kind": …}. Time is fixed: Sunday, 1 March 2026, 12:34:56. */
#include <stdio.h>
#include <stdlib.h>

#include "jinja/from_json.h"
#include "jinja/jinja.h"

enum { LINE_MAX_BYTES = 64 << 20 };

static enum err render(struct str line, struct buf *out, struct jinja_fault *fault)
{
	struct json_doc *d;
	struct jinja_template *t;
	struct arena a;
	struct str source;
	TRY(json_parse(line, LINE_MAX_BYTES, &d));
	arena_init(&a, 0);
	enum err e = json_str(json_get(json_root(d), STR("template")), &source) ? jinja_compile(source, &t, fault) : ERR_SYNTAX;
	if (e == ERR_OK) {
		struct jinja_val vars = jinja_from_json(&a, json_get(json_root(d), STR("vars")));
		struct jinja_render_opts o = { .vars = &vars, .now = { 2026, 3, 1, 12, 34, 56, 0, 60 } };
		e = jinja_render(t, &o, &a, out, fault);
		jinja_free(t);
	}
	arena_done(&a);
	json_free(d);
	return e;
}

int main(void)
{
	char *line = NULL;
	size_t cap = 0;
	ssize_t n;
	while ((n = getline(&line, &cap, stdin)) > 0) {
		struct buf out, answer;
		struct jinja_fault fault = { 0 };
		buf_init(&out, LINE_MAX_BYTES);
		buf_init(&answer, 2 * LINE_MAX_BYTES);
		enum err e = render(str_trim(str_from(line, (size_t)n)), &out, &fault);
		struct json_writer w = json_writer(&answer);
		json_put_open(&w, '{');
		json_put_key(&w, e == ERR_OK ? STR("out") : STR("error"));
		json_put_str(&w, e == ERR_OK ? buf_str(&out) : str_of(fault.text));
		json_put_key(&w, STR("kind"));
		json_put_str(&w, str_of(err_label(e)));
		json_put_close(&w, '}');
		printf("%.*s\n", STR_ARG(buf_str(&answer)));
		fflush(stdout);
		buf_done(&out);
		buf_done(&answer);
	}
	free(line);
	return 0;
}
