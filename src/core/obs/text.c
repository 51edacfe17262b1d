/* text.c: lines of the metric text format. Each call adds whole lines or nothing. */
#include "obs/text.h"

#include <math.h>

static enum err add_escaped(struct buf *out, struct str s, bool quotes)
{
	size_t from = 0;
	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];
		if (c != '\n' && c != '\\' && !(quotes && c == '"'))
			continue;
		TRY(buf_add(out, str_sub(s, from, i - from)));
		TRY(buf_add_byte(out, '\\'));
		TRY(buf_add_byte(out, c == '\n' ? 'n' : c));
		from = i + 1;
	}
	return buf_add(out, str_skip(s, from));
}

static enum err add_family(struct buf *out, const char *name, enum obs_kind kind, const char *help)
{
	TRY(buf_printf(out, "# HELP %s ", name));
	TRY(add_escaped(out, str_of(help), false));
	return buf_printf(out, "\n# TYPE %s %s\n", name, obs_kind_name(kind));
}

/* Integers without an exponent, however large; the rest short. */
static enum err add_number(struct buf *out, double v)
{
	if (isnan(v))
		return buf_add(out, STR("NaN"));
	if (isinf(v))
		return buf_add(out, v > 0 ? STR("+Inf") : STR("-Inf"));
	if (floor(v) != v || fabs(v) >= 1e15)
		return buf_printf(out, "%.9g", v);
	if (v < 0)
		TRY(buf_add_byte(out, '-'));
	return buf_add_u64(out, (uint64_t)fabs(v));
}

static enum err add_sample(struct buf *out, const char *name, const char *const *labels, const struct str *values, size_t n_labels, double v)
{
	TRY(buf_add(out, str_of(name)));
	for (size_t i = 0; i < n_labels; i++) {
		TRY(buf_add_byte(out, i ? ',' : '{'));
		TRY(buf_add(out, str_of(labels[i])));
		TRY(buf_add(out, STR("=\"")));
		TRY(add_escaped(out, values[i], true));
		TRY(buf_add_byte(out, '"'));
	}
	TRY(buf_add(out, n_labels ? STR("} ") : STR(" ")));
	TRY(add_number(out, v));
	return buf_add_byte(out, '\n');
}

enum err obs_text_family(struct buf *out, const char *name, enum obs_kind kind, const char *help)
{
	size_t before = out->n;
	enum err e = add_family(out, name, kind, help);
	if (e)
		out->n = before;
	return e;
}

enum err obs_text_sample(struct buf *out, const char *name, const char *const *labels, const struct str *values, size_t n_labels, double v)
{
	size_t before = out->n;
	enum err e = add_sample(out, name, labels, values, n_labels, v);
	if (e)
		out->n = before;
	return e;
}
