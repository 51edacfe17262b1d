/* dump.c: json.dumps as Python writes it: spaces behind separators, floats by repr, keys in their order. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "base/vec.h"
#include "jinja/value.h"

enum { DUMP_DEPTH_MAX = 100, SORT_MAX = 4096 };

struct dump { struct buf *b; const struct jinja_json_opts *o; };

static enum err put_escape(struct buf *b, uint32_t cp)
{
	if (cp < 0x10000)
		return buf_printf(b, "\\u%04x", cp);
	cp -= 0x10000;
	return buf_printf(b, "\\u%04x\\u%04x", 0xd800 + (cp >> 10), 0xdc00 + (cp & 0x3ff));
}

static enum err put_str(struct dump *d, struct str s)
{
	static const char plain[] = "\"\\\n\r\t\f\b", code[] = "\"\\nrtfb";
	TRY(buf_add_byte(d->b, '"'));
	while (s.n) {
		unsigned char c = (unsigned char)s.p[0];
		const char *at = c ? strchr(plain, c) : NULL;
		uint32_t cp = c;
		size_t n = c < 0x80 ? 1 : utf8_next(s, &cp);
		if (n == 0)
			return ERR_SYNTAX;
		if (at)
			TRY(buf_printf(d->b, "\\%c", code[at - plain]));
		else if (c < ' ' || (d->o->ensure_ascii && c >= 0x7f))
			TRY(put_escape(d->b, cp));
		else
			TRY(buf_add(d->b, str_sub(s, 0, n)));
		s = str_skip(s, n);
	}
	return buf_add_byte(d->b, '"');
}

static enum err put_number(struct dump *d, const struct jinja_val *v)
{
	if (v->type == JINJA_FLOAT && isnan(v->f))
		return buf_add(d->b, STR("NaN"));
	if (v->type == JINJA_FLOAT && isinf(v->f))
		return buf_add(d->b, v->f > 0 ? STR("Infinity") : STR("-Infinity"));
	return jinja_print(d->b, v);
}

static enum err new_line(struct dump *d, unsigned depth)
{
	if (d->o->indent < 0)
		return ERR_OK;
	TRY(buf_add_byte(d->b, '\n'));
	for (unsigned i = 0; i < depth * (unsigned)d->o->indent; i++)
		TRY(buf_add_byte(d->b, ' '));
	return ERR_OK;
}

static enum err put(struct dump *d, const struct jinja_val *v, unsigned depth);

static enum err put_list(struct dump *d, const struct jinja_list *l, unsigned depth)
{
	if (l->n == 0)
		return buf_add(d->b, STR("[]"));
	TRY(buf_add_byte(d->b, '['));
	for (size_t i = 0; i < l->n; i++) {
		if (i)
			TRY(buf_add(d->b, d->o->item_sep));
		TRY(new_line(d, depth + 1));
		TRY(put(d, &l->p[i], depth + 1));
	}
	TRY(new_line(d, depth));
	return buf_add_byte(d->b, ']');
}

/* Keys that are no strings become what json makes of them. */
static enum err put_key(struct dump *d, const struct jinja_val *k)
{
	if (k->type == JINJA_STR)
		return put_str(d, k->s);
	if (k->type > JINJA_STR || k->type == JINJA_UNDEFINED)
		return ERR_BAD_REQUEST;
	TRY(buf_add_byte(d->b, '"'));
	TRY(put(d, k, 0));
	return buf_add_byte(d->b, '"');
}

static enum err put_pairs(struct dump *d, const struct jinja_pair *p, size_t n, unsigned depth)
{
	TRY(buf_add_byte(d->b, '{'));
	for (size_t i = 0; i < n; i++) {
		if (i)
			TRY(buf_add(d->b, d->o->item_sep));
		TRY(new_line(d, depth + 1));
		TRY(put_key(d, &p[i].key));
		TRY(buf_add(d->b, d->o->key_sep));
		TRY(put(d, &p[i].val, depth + 1));
	}
	TRY(new_line(d, depth));
	return buf_add_byte(d->b, '}');
}

/* By insertion over shrinking gaps: no two keys are equal. */
static void sort_by_key(struct jinja_pair *p, size_t n)
{
	for (size_t gap = n / 2; gap > 0; gap /= 2)
		for (size_t i = gap; i < n; i++)
			for (size_t k = i; k >= gap && str_cmp(p[k - gap].key.s, p[k].key.s) > 0; k -= gap) {
				struct jinja_pair swap = p[k];
				p[k] = p[k - gap];
				p[k - gap] = swap;
			}
}

static enum err put_dict(struct dump *d, const struct jinja_dict *x, unsigned depth)
{
	if (x->n == 0)
		return buf_add(d->b, STR("{}"));
	if (!d->o->sort_keys)
		return put_pairs(d, x->p, x->n, depth);
	VEC(struct jinja_pair) sorted = { 0 };
	if (x->n > SORT_MAX)
		return ERR_LIMIT;
	for (size_t i = 0; i < x->n; i++) {
		if (x->p[i].key.type != JINJA_STR) {
			VEC_FREE(&sorted);
			return ERR_UNSUPPORTED;
		}
		VEC_PUSH(&sorted, x->p[i]);
	}
	sort_by_key(sorted.p, sorted.n);
	enum err e = put_pairs(d, sorted.p, sorted.n, depth);
	VEC_FREE(&sorted);
	return e;
}

static enum err put(struct dump *d, const struct jinja_val *v, unsigned depth)
{
	if (depth > DUMP_DEPTH_MAX)
		return ERR_LIMIT;
	switch (v->type) {
	case JINJA_NONE: return buf_add(d->b, STR("null"));
	case JINJA_BOOL: return buf_add(d->b, v->b ? STR("true") : STR("false"));
	case JINJA_INT:
	case JINJA_BIGINT:
	case JINJA_FLOAT: return put_number(d, v);
	case JINJA_STR: return put_str(d, v->s);
	case JINJA_LIST:
	case JINJA_TUPLE: return put_list(d, v->list, depth);
	case JINJA_DICT: return put_dict(d, v->dict, depth);
	case JINJA_UNDEFINED:
	case JINJA_ITER:
	case JINJA_NAMESPACE:
	case JINJA_LOOP:
	case JINJA_MACRO:
	case JINJA_METHOD:
	case JINJA_GLOBAL: return ERR_BAD_REQUEST;
	}
	return ERR_BAD_REQUEST;
}

enum err jinja_print_json(struct buf *b, const struct jinja_val *v, const struct jinja_json_opts *o)
{
	struct dump d = { b, o };
	return put(&d, v, 0);
}
