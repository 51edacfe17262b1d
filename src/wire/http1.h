/* wire/http1.h: HTTP/1.1 messages from bytes, both directions: llhttp (strict) plus the checks it leaves to us.
 * Sans-I/O: no descriptor, no clock. RFC 9112.
 *
 * Refused beyond llhttp: missing or second Host, a Host that is none, versions other than 1.0 and 1.1, CONNECT,
 * transfer codings other than plain `chunked`, Transfer-Encoding in HTTP/1.0, too many or too large fields, chunk
 * extensions and trailers as ballast. Trailers are dropped. Upgrade is ignored: the message is an ordinary one.
 *
 *   http1_init(&p, HTTP1_REQUEST, limits, ops, arg);
 *   http1_begin(&p, head, false);                 before every message
 *   step = http1_feed(&p, bytes, &used);          MORE: all used. DONE: the message ended, bytes from `used` on are the next
 *   step = http1_finish(&p);                      the peer closed: DONE where that is a legal end
 * The head object holds what on_head announced; it is the caller's and outlives the message as long as the caller likes. */
#ifndef WIRE_HTTP1_H
#define WIRE_HTTP1_H

#include "base/err.h"
#include "base/str.h"

enum http1_kind { HTTP1_REQUEST, HTTP1_RESPONSE };

struct http1_field { struct str name, value; };

#define HTTP1_CHUNKED ((int64_t)-1)
#define HTTP1_UNTIL_EOF ((int64_t)-2)    /* responses only */

struct http1_head {
	struct str method, target, host;     /* requests; host: of the target when that is absolute, else of the Host field */
	struct str path, query;              /* requests: the target cut at the first '?'. Scheme and authority are in none of the three */
	int status;                          /* responses */
	int minor;                           /* HTTP/1.minor */
	const struct http1_field *fields;
	size_t n_fields;
	int64_t content_length;              /* 0: no body; HTTP1_CHUNKED; HTTP1_UNTIL_EOF */
	bool keep_alive;                     /* may the connection carry another message, as far as this side says? */
	bool expect_continue;                /* requests of HTTP/1.1 with a body */
	/* private: the text, in the order it came, and its fields before the head is whole */
	char *text;
	size_t n_text, cap_text, n_target, cap_fields;
	struct http1_field *store;
};
struct http1_head *http1_head_new(void);
void http1_head_clear(struct http1_head *h);    /* keeps the memory for the next message */
void http1_head_free(struct http1_head *h);
size_t http1_head_bytes(const struct http1_head *h);   /* memory held */

struct http1_limits {
	uint32_t header_bytes;   /* start line and fields together */
	uint32_t headers;
};

struct http1_ops {
	/* false stops: feed returns STOPPED and the parser is not fed again before http1_begin(). */
	bool (*on_head)(void *arg);
	bool (*on_body)(void *arg, struct str piece);
};

#define HTTP1_LL_BYTES 96
struct http1 {
	_Alignas(8) unsigned char ll[HTTP1_LL_BYTES];   /* llhttp_t, not shown to those who include this */
	struct http1_head *head;
	const struct http1_ops *ops;
	void *arg;
	struct http1_limits limits;
	uint64_t raw_bytes;                             /* fed since begin */
	uint64_t body_bytes, chunks;
	enum err err;
	short status;                                   /* to answer a bad request with */
	unsigned char kind, interim;
	bool no_body, in_name, head_done, te_seen, te_bad, stopped, done;
};

void http1_init(struct http1 *p, enum http1_kind kind, struct http1_limits limits, const struct http1_ops *ops, void *arg);
/* no_body: the response answers a HEAD. */
void http1_begin(struct http1 *p, struct http1_head *head, bool no_body);

enum http1_step { HTTP1_MORE, HTTP1_DONE, HTTP1_STOPPED, HTTP1_BAD };
/* Interim (1xx) responses are swallowed; 101 is BAD, for nobody asked. *ret_used is set in every case. */
enum http1_step http1_feed(struct http1 *p, struct str data, size_t *ret_used);
enum http1_step http1_finish(struct http1 *p);
/* After BAD: SYNTAX, DUPLICATE, HEADER_TOO_LARGE or UNSUPPORTED, and the status that fits (400, 431, 501, 505). */
static inline enum err http1_error(const struct http1 *p) { return p->err; }
static inline int http1_error_status(const struct http1 *p) { return p->status; }
static inline bool http1_head_done(const struct http1 *p) { return p->head_done; }
static inline bool http1_started(const struct http1 *p) { return p->raw_bytes > 0; }

/* "1a\r\n" into out, returns its length; the data is followed by "\r\n", the body by HTTP1_LAST_CHUNK. */
size_t http1_chunk_head(char out[20], size_t n);
#define HTTP1_LAST_CHUNK "0\r\n\r\n"

/* Safe in a start line or as a field: a token; a value without control bytes. */
bool http1_is_token(struct str s);
bool http1_is_value(struct str s);

#endif
