/* from_json.c: a request's JSON as template values, as Python's json module reads it: numbers with a point or an exponent are
 * floats, others ints of any size; a repeated member keeps its first place and its last value. */
#include <math.h>

#include "jinja/from_json.h"

#include "base/must.h"

enum { NEST_MAX = 128 };

static bool plain_integer(struct str digits)
{
	for (size_t i = 0; i < digits.n; i++)
		if (digits.p[i] == '.' || digits.p[i] == 'e' || digits.p[i] == 'E')
			return false;
	return true;
}

static struct jinja_val number(struct arena *a, const struct json_val *v)
{
	struct str digits = { 0 };
	int64_t i;
	double f;
	must(json_number_text(v, &digits));
	if (!plain_integer(digits))   /* beyond the range: infinite, as in Python */
		return jinja_float(json_f64(v, &f) ? f : digits.p[0] == '-' ? -INFINITY : INFINITY);
	if (str_eq(digits, STR("-0")))
		return jinja_int(0);
	if (str_to_i64(digits, &i))
		return jinja_int(i);
	return (struct jinja_val){ .type = JINJA_BIGINT, .s = arena_str(a, digits) };
}

static struct jinja_val value(struct arena *a, const struct json_val *v, unsigned depth)
{
	struct str s;
	bool b;
	if (depth > NEST_MAX || json_is(v, JSON_NULL))
		return JINJA_V_NONE;
	if (json_bool(v, &b))
		return jinja_bool(b);
	if (json_str(v, &s))
		return jinja_str(arena_str(a, s));
	if (json_is(v, JSON_NUMBER))
		return number(a, v);
	struct jinja_val *items = arena_new(a, struct jinja_val, json_is(v, JSON_ARRAY) ? json_len(v) : 0), dict;
	size_t n = 0;
	if (json_is(v, JSON_ARRAY)) {
		for (struct json_iter it = json_each(v); json_next(&it);)
			items[n++] = value(a, it.val, depth + 1);
		return jinja_list_of(a, items, n);
	}
	dict = jinja_dict_new(a, json_len(v));
	for (struct json_iter it = json_each(v); json_next(&it);)
		jinja_dict_put(a, dict, jinja_str(arena_str(a, it.key)), value(a, it.val, depth + 1));
	return dict;
}

struct jinja_val jinja_from_json(struct arena *a, const struct json_val *v)
{
	return v ? value(a, v, 0) : jinja_undefined(STR(""));
}
