/* Look-ups in header fields, the same for requests and answers. */
#include "http/header.h"

struct str http_find(struct http_headers h, struct str name)
{
	for (size_t i = 0; i < h.n; i++)
		if (h.p[i].name.n == name.n && str_ieq(h.p[i].name, name))
			return h.p[i].value;
	return (struct str){ 0 };
}

static bool list_has(struct str list, struct str token)
{
	struct str item;
	while (list.n > 0) {
		str_cut(list, ',', &item, &list);
		if (str_ieq(str_trim(item), token))
			return true;
	}
	return false;
}

bool http_has_token(struct http_headers h, struct str name, struct str token)
{
	for (size_t i = 0; i < h.n; i++)
		if (str_ieq(h.p[i].name, name) && list_has(h.p[i].value, token))
			return true;
	return false;
}

bool http_is_hop_by_hop(struct http_headers h, struct str name)
{
	static const struct str always[] = {
		STR_INIT("connection"), STR_INIT("keep-alive"), STR_INIT("te"),      STR_INIT("trailer"),
		STR_INIT("upgrade"),    STR_INIT("http2-settings"), STR_INIT("transfer-encoding"),
	};
	for (size_t i = 0; i < ARRAY_LEN(always); i++)
		if (str_ieq(name, always[i]))
			return true;
	return str_istarts(name, STR("proxy-")) || http_has_token(h, STR("connection"), name);
}
