/* prom.c: one line at a time; whatever cannot be read is skipped and counted, so that a worker with one odd metric is
 * still understood. */
#include "wire/prom.h"

#include <math.h>
#include <string.h>

struct line {
	struct str rest;
	struct prom_label labels[PROM_MAX_LABELS];
	size_t n;
	char text[PROM_MAX_LINE]; /* unescaped label values */
	size_t used;
};

static bool name_byte(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == ':' || c == '.';
}

static struct str take_name(struct str *s)
{
	size_t i = 0;
	while (i < s->n && name_byte(s->p[i]))
		i++;
	struct str name = str_sub(*s, 0, i);
	*s = str_skip(*s, i);
	return name;
}

static void skip_blanks(struct str *s)
{
	while (s->n && (s->p[0] == ' ' || s->p[0] == '\t'))
		*s = str_skip(*s, 1);
}

static bool take_byte(struct str *s, char c)
{
	if (s->n == 0 || s->p[0] != c)
		return false;
	*s = str_skip(*s, 1);
	return true;
}

/* A quoted value, its escapes undone into l->text. */
static bool take_quoted(struct line *l, struct str *ret_value)
{
	if (!take_byte(&l->rest, '"'))
		return false;
	size_t start = l->used;
	for (size_t i = 0; i < l->rest.n; i++) {
		char c = l->rest.p[i];
		if (c == '"') {
			*ret_value = (struct str){ l->text + start, l->used - start };
			l->rest = str_skip(l->rest, i + 1);
			return true;
		}
		if (c == '\\' && i + 1 < l->rest.n) {
			c = l->rest.p[++i];
			c = c == 'n' ? '\n' : c;
		}
		l->text[l->used++] = c; /* never longer than the line, which is below PROM_MAX_LINE */
	}
	return false;
}

static bool take_labels(struct line *l)
{
	if (!take_byte(&l->rest, '{'))
		return true;
	for (;;) {
		skip_blanks(&l->rest);
		if (take_byte(&l->rest, '}'))
			return true;
		if (l->n == PROM_MAX_LABELS)
			return false;
		struct prom_label *lab = &l->labels[l->n];
		lab->name = take_name(&l->rest);
		skip_blanks(&l->rest);
		if (lab->name.n == 0 || !take_byte(&l->rest, '='))
			return false;
		skip_blanks(&l->rest);
		if (!take_quoted(l, &lab->value))
			return false;
		l->n++;
		skip_blanks(&l->rest);
		if (!take_byte(&l->rest, ',') && (l->rest.n == 0 || l->rest.p[0] != '}'))
			return false;
	}
}

static bool read_value(struct str s, double *ret_v)
{
	struct str word, rest;
	str_cut(s, ' ', &word, &rest);
	word = str_trim(word);
	if (str_to_f64(word, ret_v))
		return true;
	bool minus = word.n && word.p[0] == '-', sign = minus || (word.n && word.p[0] == '+');
	struct str bare = str_skip(word, sign);
	if (str_ieq(bare, STR("nan")))
		*ret_v = NAN;
	else if (str_ieq(bare, STR("inf")) || str_ieq(bare, STR("infinity")))
		*ret_v = minus ? -INFINITY : INFINITY;
	else
		return false;
	return true;
}

static bool read_line(struct str text, prom_sample_fn *fn, void *arg)
{
	struct line l;
	struct prom_sample s;
	if (text.n >= PROM_MAX_LINE)
		return false;
	l.rest = text;
	l.n = l.used = 0;
	s.name = take_name(&l.rest);
	skip_blanks(&l.rest);
	if (s.name.n == 0 || !take_labels(&l))
		return false;
	skip_blanks(&l.rest);
	if (!read_value(l.rest, &s.value))
		return false;
	s.labels = l.labels;
	s.n_labels = l.n;
	fn(arg, &s);
	return true;
}

struct prom_count prom_parse(struct str text, prom_sample_fn *fn, void *arg)
{
	struct prom_count c = { 0 };
	while (text.n) {
		struct str line;
		str_cut(text, '\n', &line, &text);
		line = str_trim(line);
		if (line.n == 0 || line.p[0] == '#')
			continue;
		bool ok = read_line(line, fn, arg);
		c.samples += ok;
		c.skipped += !ok;
	}
	return c;
}

struct str prom_label(const struct prom_sample *s, struct str name)
{
	for (size_t i = 0; i < s->n_labels; i++)
		if (str_eq(s->labels[i].name, name))
			return s->labels[i].value;
	return (struct str){ 0 };
}
