/* http/header.h: header fields as slices, shared by server and client. */
#ifndef HTTP_HEADER_H
#define HTTP_HEADER_H

#include "base/str.h"

struct http_header { struct str name, value; };
struct http_headers { const struct http_header *p; size_t n; };

struct str http_find(struct http_headers h, struct str name);        /* first value, case-insensitive name; p == NULL when absent */
bool http_has_token(struct http_headers h, struct str name, struct str token);   /* comma lists, all fields of that name */
/* Connection, Keep-Alive, Proxy-*, TE, Trailer, Transfer-Encoding, Upgrade, and what Connection names: never forwarded. */
bool http_is_hop_by_hop(struct http_headers h, struct str name);

#endif
