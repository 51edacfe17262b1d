/* The queries of the admin paths, read in one place: one key at most, once, its value with the escapes undone. */
#include "ops/ops_priv.h"

#include "wire/url.h"

const char *ops_query(struct str query, struct str key, struct buf *value)
{
	bool seen = false;
	for (struct str pair, name, text; query.n > 0; seen = true) {
		str_cut(query, '&', &pair, &query);
		if (!str_cut(pair, '=', &name, &text) || !str_eq(name, key) || text.n == 0)
			return "something else stands in it";
		if (seen)
			return "a key stands in it twice";
		enum err e = url_put_unescaped(value, text);
		if (e != ERR_OK)
			return e == ERR_LIMIT ? "it is too long" : "a '%' in it is not followed by two hexadecimal digits, or by 00";
	}
	return NULL;
}

const char *ops_last(struct str query, uint64_t *ret_n)
{
	struct buf value;
	buf_init(&value, OPS_MAX_QUERY);
	const char *what = ops_query(query, STR("last"), &value);
	uint64_t n = 0;
	if (what == NULL && value.n > 0 && (!str_to_u64(buf_str(&value), &n) || n == 0))
		what = "that is no such number";
	if (what == NULL && value.n > 0)
		*ret_n = n;
	buf_done(&value);
	return what;
}
