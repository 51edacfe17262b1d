/* from_json.c: a request's JSON as template values, as Python's json module reads it: numbers with a point or an exponent are
 * floats, others ints of any size; a repeated member keeps its first place and its last value. */
#include <math.h>

#include "jinja/from_json.h"

#include "base/hash.h"
#include "base/map.h"
#include "base/must.h"

enum { NEST_MAX = 128, FEW_MEMBERS = 24 };

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

/* Is this key new to the object? By its digest, where there are many: a search would go through all that begin alike. */
static bool is_new(struct map *keys, bool many, struct str key)
{
	uint64_t h, one;
	if (!many || map_get(keys, h = hash_str(key, 0), &one))
		return false;
	map_put(keys, h, 1);
	return true;
}

static struct jinja_val value(struct arena *a, const struct json_val *v, unsigned depth);

static struct jinja_val object(struct arena *a, const struct json_val *v, unsigned depth)
{
	struct map keys;
	struct jinja_val dict = jinja_dict_new(a, json_len(v));
	bool many = json_len(v) > FEW_MEMBERS;
	map_init(&keys);
	for (struct json_iter it = json_each(v); json_next(&it);) {
		struct jinja_val key = jinja_str(arena_str(a, it.key)), val = value(a, it.val, depth + 1);
		if (is_new(&keys, many, it.key))
			jinja_dict_add(a, dict, key, val);
		else
			jinja_dict_put(a, dict, key, val);
	}
	map_done(&keys);
	return dict;
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
	if (json_is(v, JSON_OBJECT))
		return object(a, v, depth);
	struct jinja_val *items = arena_new(a, struct jinja_val, json_len(v));
	size_t n = 0;
	for (struct json_iter it = json_each(v); json_next(&it);)
		items[n++] = value(a, it.val, depth + 1);
	return jinja_list_of(a, items, n);
}

struct jinja_val jinja_from_json(struct arena *a, const struct json_val *v)
{
	return v ? value(a, v, 0) : jinja_undefined(STR(""));
}
