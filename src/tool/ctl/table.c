/* Tables for people, YAML for scripts. */
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "ctl/ctl_priv.h"

void ctl_table_init(struct ctl_table *t, const char *const *heads, size_t n)
{
	must(n <= CTL_MAX_COLUMNS);
	*t = (struct ctl_table){ .n_columns = n };
	arena_init(&t->arena, 0);
	for (size_t i = 0; i < n; i++)
		t->heads[i] = heads[i];
}

void ctl_table_done(struct ctl_table *t)
{
	VEC_FREE(&t->cells);
	arena_done(&t->arena);
}

void ctl_table_add(struct ctl_table *t, struct str cell) { VEC_PUSH(&t->cells, arena_str(&t->arena, cell.n > 0 ? cell : STR("-"))); }

void ctl_table_add_json(struct ctl_table *t, const struct json_val *v)
{
	struct str s = { 0 };
	bool b;
	double x;
	if (json_str(v, &s))
		ctl_table_add(t, s);
	else if (json_bool(v, &b))
		ctl_table_add(t, b ? STR("yes") : STR("no"));
	else if (json_number_text(v, &s) && str_find(s, STR(".")) == SIZE_MAX)
		ctl_table_add(t, s);
	else if (json_f64(v, &x))
		ctl_table_add(t, str_of(arena_printf(&t->arena, x >= 100 ? "%.0f" : x >= 1 ? "%.1f" : "%.3f", x)));
	else
		ctl_table_add(t, (struct str){ 0 });
}

static size_t width(struct str s)
{
	size_t n = 0;
	uint32_t cp;
	for (size_t step; s.n > 0; s = str_skip(s, step), n++) {
		step = utf8_next(s, &cp);
		step = step > 0 ? step : 1;
	}
	return n;
}

static bool is_number(struct str s)
{
	double x;
	return str_to_f64(s, &x) || str_eq(s, STR("-"));
}

struct column { size_t width; bool number; };

static enum err put_cell(struct buf *b, struct str s, struct column c, bool last)
{
	size_t w = width(s);
	int pad = (int)(c.width > w ? c.width - w : 0);
	if (c.number)
		TRY(buf_printf(b, "%*s%.*s", pad, "", STR_ARG(s)));
	else
		TRY(buf_printf(b, "%.*s%*s", STR_ARG(s), last ? 0 : pad, ""));
	return buf_add(b, last ? STR("\n") : STR("  "));
}

enum err ctl_table_print(struct buf *b, const struct ctl_table *t)
{
	struct column cols[CTL_MAX_COLUMNS];
	for (size_t c = 0; c < t->n_columns; c++) {
		cols[c] = (struct column){ strlen(t->heads[c]), t->cells.n > 0 };
		for (size_t i = c; i < t->cells.n; i += t->n_columns) {
			cols[c].width = MAX(cols[c].width, width(t->cells.p[i]));
			cols[c].number &= is_number(t->cells.p[i]);
		}
	}
	for (size_t c = 0; c < t->n_columns; c++)
		TRY(put_cell(b, str_of(t->heads[c]), cols[c], c + 1 == t->n_columns));
	for (size_t i = 0; i < t->cells.n; i++)
		TRY(put_cell(b, t->cells.p[i], cols[i % t->n_columns], (i + 1) % t->n_columns == 0));
	return ERR_OK;
}

static enum err yaml_scalar(struct buf *b, const struct json_val *v)
{
	struct str s = { 0 };
	bool t;
	if (json_str(v, &s))
		TRY(json_quote(b, s));
	else if (json_bool(v, &t))
		TRY(buf_add(b, t ? STR("true") : STR("false")));
	else if (json_number_text(v, &s))
		TRY(buf_add(b, s));
	else
		TRY(buf_add(b, STR("null")));
	return buf_add_byte(b, '\n');
}

static bool is_nested(const struct json_val *v) { return (json_is(v, JSON_OBJECT) || json_is(v, JSON_ARRAY)) && json_len(v) > 0; }

/* JSON nesting is bounded by the parser (JSON_MAX_DEPTH), so is this recursion. */
enum err ctl_yaml(struct buf *b, const struct json_val *v, unsigned indent)
{
	if (json_is(v, JSON_OBJECT) && json_len(v) == 0)
		return buf_add(b, STR("{}\n"));
	if (json_is(v, JSON_ARRAY) && json_len(v) == 0)
		return buf_add(b, STR("[]\n"));
	if (!is_nested(v))
		return yaml_scalar(b, v);
	bool array = json_is(v, JSON_ARRAY);
	for (struct json_iter it = json_each(v); json_next(&it);) {
		TRY(buf_printf(b, "%*s", (int)indent * 2, ""));
		if (array)
			TRY(buf_add(b, STR("-")));
		else
			TRY(json_quote(b, it.key));
		TRY(buf_add(b, array ? STR("") : STR(":")));
		TRY(buf_add(b, is_nested(it.val) ? STR("\n") : STR(" ")));
		TRY(ctl_yaml(b, it.val, indent + 1));
	}
	return ERR_OK;
}

int ctl_print(struct buf *b, enum err e)
{
	if (e == ERR_OK)
		fwrite(b->p != NULL ? b->p + b->head : "", 1, b->n, stdout);
	else
		fprintf(stderr, "kvasir: the answer is too long to print\n");
	buf_done(b);
	return e == ERR_OK ? 0 : 1;
}

int ctl_usage(bool asked, const char *verb, struct ctl_bad bad, const char *usage)
{
	if (!asked && bad.word.n > 0)
		fprintf(stderr, "kvasir %s: %.*s %s\n", verb, STR_ARG(bad.word), bad.why ? bad.why : "is not understood");
	fputs(usage, asked ? stdout : stderr);
	return asked ? 0 : 2;
}
