/* braces.c: "…{}…{0}…{name}…".format(…): the plain fields. Conversions, format specs and look-ups inside the braces are refused. */
#include "jinja/method.h"

struct fields {
	struct jinja_run *r;
	const struct jinja_args *a;
	struct buf out;
	uint64_t next;           /* of the fields without a name */
	bool automatic, manual;  /* such fields, and numbered ones: not both */
};

static enum err find(struct fields *f, struct str name, const struct jinja_val **ret_v)
{
	uint64_t n;
	bool number = name.n == 0 || str_to_u64(name, &n);
	if (name.n == 0)
		n = f->next++;
	f->automatic |= name.n == 0;
	f->manual |= name.n > 0 && number;
	if (f->automatic && f->manual)
		return jinja_raise(f->r, "cannot mix numbered and automatic fields");
	if (number && n >= f->a->n)
		return jinja_raise(f->r, "Replacement index out of range for positional args tuple");
	*ret_v = number ? &f->a->p[n] : NULL;
	for (size_t i = 0; !number && i < f->a->n_named; i++)
		if (str_eq(f->a->named[i].name, name))
			*ret_v = &f->a->named[i].val;
	return *ret_v ? ERR_OK : jinja_raise(f->r, "no argument of this name");
}

static enum err put_field(struct fields *f, struct str name)
{
	const struct jinja_val *v;
	struct str text;
	for (size_t i = 0; i < name.n; i++)
		if (str_find(STR("!:.[{"), str_sub(name, i, 1)) != SIZE_MAX)
			return jinja_refuse(f->r, "a format with more than names");
	TRY(find(f, name, &v));
	TRY(jinja_text(f->r, v, &text));
	return buf_add(&f->out, text);
}

static enum err put_all(struct fields *f, struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];
		bool twice = i + 1 < s.n && s.p[i + 1] == c;
		if ((c == '{' || c == '}') && twice) {
			TRY(buf_add_byte(&f->out, c));
			i++;
		} else if (c == '{') {
			size_t n = str_find(str_skip(s, i + 1), STR("}"));
			if (n == SIZE_MAX)
				return jinja_raise(f->r, "Single '{' encountered in format string");
			TRY(put_field(f, str_sub(s, i + 1, n)));
			i += n + 1;
		} else if (c == '}') {
			return jinja_raise(f->r, "Single '}' encountered in format string");
		} else {
			TRY(buf_add_byte(&f->out, c));
		}
	}
	return ERR_OK;
}

enum err jinja_format(struct jinja_run *r, struct str s, const struct jinja_args *a, struct str *ret_s)
{
	struct fields f = { .r = r, .a = a };
	buf_init(&f.out, r->max_text_bytes);
	enum err e = put_all(&f, s);
	if (e == ERR_OK)
		*ret_s = arena_str(r->a, buf_str(&f.out));
	buf_done(&f.out);
	return e == ERR_OK ? jinja_step(r, 1 + s.n / 256) : e;
}
