/* url.c: only what an operator may write for a worker or a listener; no relative references, no escapes. */
#include "wire/url.h"

#include <string.h>

static const struct {
	struct str prefix;
	enum url_scheme scheme;
	uint16_t port;
} SCHEMES[] = {
	{ STR_INIT("http://"), URL_HTTP, 80 },
	{ STR_INIT("https://"), URL_HTTPS, 443 },
	{ STR_INIT("tcp://"), URL_TCP, 0 },
};

static bool printable(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if ((unsigned char)s.p[i] <= 0x20 || (unsigned char)s.p[i] == 0x7f)
			return false;
	return true;
}

static bool all_of(struct str s, const char *set)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] == 0 || !strchr(set, s.p[i]))
			return false;
	return true;
}

static enum err read_port(struct str s, uint16_t *ret_port)
{
	uint64_t n;
	if (!str_to_u64(s, &n))
		return all_of(s, "0123456789") && s.n ? ERR_RANGE : ERR_SYNTAX;
	if (n == 0 || n > 65535)
		return ERR_RANGE;
	*ret_port = (uint16_t)n;
	return ERR_OK;
}

/* "[v6]rest" or "hostrest": the host, and what follows it (empty, or ":port"). */
static enum err take_host(struct str s, struct str *ret_host, bool *ret_v6, struct str *ret_rest)
{
	struct str host, rest;
	if (s.n && s.p[0] == '[') {
		if (!str_cut(str_skip(s, 1), ']', &host, &rest) || host.n < 2 || host.n > 64)
			return ERR_SYNTAX;
		struct str address, zone;
		str_cut(host, '%', &address, &zone);
		if (!memchr(address.p, ':', address.n) || !all_of(address, "0123456789abcdefABCDEF:."))
			return ERR_SYNTAX;
		*ret_v6 = true;
	} else {
		const char *colon = s.n ? memchr(s.p, ':', s.n) : NULL;
		size_t n = colon ? (size_t)(colon - s.p) : s.n;
		host = str_sub(s, 0, n);
		rest = str_skip(s, n);
		if (host.n > 255)
			return ERR_SYNTAX;
		*ret_v6 = false;
	}
	if (rest.n && rest.p[0] != ':')
		return ERR_SYNTAX;
	*ret_host = host;
	*ret_rest = rest;
	return ERR_OK;
}

static bool host_ok(struct str host, bool v6, enum url_scheme scheme)
{
	static const char NAME[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
	if (v6)
		return true;
	if (scheme == URL_TCP && str_eq(host, STR("*")))
		return true;
	return host.n > 0 && all_of(host, NAME);
}

static enum err read_authority(struct str s, uint16_t default_port, struct url *u)
{
	struct str rest;
	TRY(take_host(s, &u->host, &u->ipv6, &rest));
	if (!host_ok(u->host, u->ipv6, u->scheme))
		return ERR_SYNTAX;
	u->port = default_port;
	u->has_port = rest.n > 0;
	if (rest.n)
		return read_port(str_skip(rest, 1), &u->port);
	return default_port ? ERR_OK : ERR_SYNTAX;
}

enum err url_parse(struct str text, struct url *ret_u)
{
	struct url u = { 0 };
	if (!printable(text))
		return ERR_SYNTAX;
	for (size_t i = 0; i < ARRAY_LEN(SCHEMES); i++) {
		if (!str_istarts(text, SCHEMES[i].prefix))
			continue;
		struct str s = str_skip(text, SCHEMES[i].prefix.n);
		size_t n = 0;
		while (n < s.n && s.p[n] != '/' && s.p[n] != '?' && s.p[n] != '#')
			n++;
		u.scheme = SCHEMES[i].scheme;
		u.path = str_skip(s, n);
		if ((u.path.n && (u.scheme == URL_TCP || u.path.p[0] != '/')) || (u.path.n && memchr(u.path.p, '#', u.path.n)))
			return ERR_SYNTAX;
		TRY(read_authority(str_sub(s, 0, n), SCHEMES[i].port, &u));
		*ret_u = u;
		return ERR_OK;
	}
	return str_find(text, STR("://")) != SIZE_MAX ? ERR_UNSUPPORTED : ERR_SYNTAX;
}

enum err url_parse_host_port(struct str text, uint16_t default_port, struct url_host_port *ret_hp)
{
	struct url_host_port hp = { .port = default_port };
	struct str rest;
	if (text.n == 0 || !printable(text))
		return ERR_SYNTAX;
	TRY(take_host(text, &hp.host, &hp.ipv6, &rest));
	if (hp.host.n && !host_ok(hp.host, hp.ipv6, URL_TCP))
		return ERR_SYNTAX;
	if (rest.n)
		TRY(read_port(str_skip(rest, 1), &hp.port));
	else if (default_port == 0)
		return ERR_SYNTAX;
	*ret_hp = hp;
	return ERR_OK;
}

enum err url_put_host_port(struct buf *b, struct str host, bool ipv6, uint16_t port)
{
	return buf_printf(b, ipv6 ? "[%.*s]:%u" : "%.*s:%u", STR_ARG(host), (unsigned)port);
}

enum err url_put_escaped(struct buf *b, struct str s)
{
	static const char PLAIN[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~";
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] != 0 && strchr(PLAIN, s.p[i]))
			TRY(buf_add_byte(b, s.p[i]));
		else
			TRY(buf_printf(b, "%%%02X", (unsigned)(unsigned char)s.p[i]));
	return ERR_OK;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

enum err url_put_unescaped(struct buf *b, struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] != '%') {
			TRY(buf_add_byte(b, s.p[i]));
			continue;
		}
		int high = i + 2 < s.n ? hex_digit(s.p[i + 1]) : -1, low = i + 2 < s.n ? hex_digit(s.p[i + 2]) : -1;
		if (high < 0 || low < 0 || high + low == 0)
			return ERR_SYNTAX;
		TRY(buf_add_byte(b, (char)(high << 4 | low)));
		i += 2;
	}
	return ERR_OK;
}
