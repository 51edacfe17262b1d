/* arg.c: reading a call's arguments. */
#include <string.h>

#include "jinja/run.h"

const struct jinja_val *jinja_arg_get(const struct jinja_args *a, size_t i, const char *name)
{
	if (i < a->n)
		return &a->p[i];
	for (size_t k = 0; name && k < a->n_named; k++)
		if (str_eq(a->named[k].name, str_of(name)))
			return &a->named[k].val;
	return NULL;
}

enum err jinja_arg_i64(struct jinja_run *r, const struct jinja_args *a, size_t i, const char *name, int64_t def, int64_t *ret_n)
{
	const struct jinja_val *v = jinja_arg_get(a, i, name);
	*ret_n = def;
	if (!v || v->type == JINJA_NONE)
		return ERR_OK;
	if (v->type != JINJA_INT)
		return jinja_raise(r, "an integer is wanted, not '%s'", jinja_type_name(v));
	*ret_n = v->i;
	return ERR_OK;
}

enum err jinja_arg_str(struct jinja_run *r, const struct jinja_args *a, size_t i, const char *name, struct str def, struct str *ret_s)
{
	const struct jinja_val *v = jinja_arg_get(a, i, name);
	*ret_s = def;
	if (!v)
		return ERR_OK;
	if (v->type != JINJA_STR)
		return jinja_raise(r, "a string is wanted, not '%s'", jinja_type_name(v));
	*ret_s = v->s;
	return ERR_OK;
}

static bool word_in(struct str word, struct str words)
{
	struct str w;
	while (words.n) {
		str_cut(words, ' ', &w, &words);
		if (str_eq(w, word))
			return true;
	}
	return false;
}

enum err jinja_args_checked(struct jinja_run *r, const struct jinja_args *a, size_t n, const char *names, const char *what)
{
	if (a->n > n)
		return jinja_refuse(r, "so many arguments of %s", what);
	for (size_t i = 0; i < a->n_named; i++)
		if (!word_in(a->named[i].name, str_of(names)))
			return jinja_refuse(r, "the argument %.*s of %s", STR_ARG(a->named[i].name), what);
	return ERR_OK;
}
