/* wire/url.h: takes apart the addresses operators write: http://host:port/path, [v6] in brackets, tcp://host:port,
 * and plain host:port pairs. Slices point into the text given. User names, fragments, spaces and control bytes are
 * refused (SYNTAX), a port of 0 or above 65535 too (RANGE). Pure. */
#ifndef WIRE_URL_H
#define WIRE_URL_H

#include "base/buf.h"

enum url_scheme { URL_HTTP, URL_HTTPS, URL_TCP };

struct url {
	enum url_scheme scheme;
	struct str host;        /* without brackets; "*" only with tcp */
	bool ipv6;              /* it stood in brackets */
	bool has_port;          /* written, not the scheme's default */
	uint16_t port;          /* http 80, https 443, tcp none: must be written */
	struct str path;        /* with the query, as written; empty when there was none */
};

/* http, https or tcp (scheme in any case). UNSUPPORTED: another scheme. tcp takes no path. */
must_use enum err url_parse(struct str text, struct url *ret_u);

struct url_host_port { struct str host; bool ipv6; uint16_t port; };
/* "host:port", "[v6]:port", ":port" (empty host), "*:port", "host" when default_port != 0. An IPv6 address must stand in brackets. */
must_use enum err url_parse_host_port(struct str text, uint16_t default_port, struct url_host_port *ret_hp);
/* Appends "host:port" with brackets where needed: what a Host header and a log line show. */
must_use enum err url_put_host_port(struct buf *b, struct str host, bool ipv6, uint16_t port);

/* One segment of a path, or a value of a query: %XX where it is not a letter, a digit or one of "-._~". */
must_use enum err url_put_escaped(struct buf *b, struct str s);
/* Appends s with its %XX undone. SYNTAX: a '%' without two hexadecimal digits, or %00; what was appended stays then. */
must_use enum err url_put_unescaped(struct buf *b, struct str s);

#endif
