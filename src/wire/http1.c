/* The glue over llhttp: gathers a head into one block, checks it, and passes the body on as it comes. */
#include "wire/http1.h"

#include <llhttp.h>
#include <stdlib.h>
#include <string.h>

#include "base/must.h"

_Static_assert(sizeof(llhttp_t) <= HTTP1_LL_BYTES, "HTTP1_LL_BYTES holds llhttp_t");

#define FIELD_OVERHEAD 4      /* ": " and CR LF */
#define INTERIM_MAX 32
#define CHUNK_ALLOWANCE 20    /* what a chunk may cost beside its data: 16 digits, two CR LF */

static llhttp_t *ll_of(struct http1 *p) { return (llhttp_t *)(void *)p->ll; }
static struct http1 *of_ll(llhttp_t *ll) { return ll->data; }

/* ---- head objects ------------------------------------------------------------------------------------------ */

struct http1_head *http1_head_new(void) { return must_calloc(1, sizeof(struct http1_head)); }

void http1_head_clear(struct http1_head *h)
{
	struct http1_head kept = { .text = h->text, .cap_text = h->cap_text, .store = h->store, .cap_fields = h->cap_fields };
	*h = kept;
}

void http1_head_free(struct http1_head *h)
{
	if (!h)
		return;
	free(h->text);
	free(h->store);
	free(h);
}

size_t http1_head_bytes(const struct http1_head *h)
{
	return sizeof(*h) + h->cap_text + h->cap_fields * sizeof(*h->store);
}

static void add_text(struct http1_head *h, const char *at, size_t n)
{
	if (h->n_text + n > h->cap_text) {
		h->cap_text = MAX(h->cap_text * 2, h->n_text + n + 1024);
		h->text = must_realloc(h->text, h->cap_text);
	}
	memcpy(h->text + h->n_text, at, n);
	h->n_text += n;
}

static void add_field(struct http1_head *h)
{
	if (h->n_fields == h->cap_fields) {
		h->cap_fields = h->cap_fields ? h->cap_fields * 2 : 24;
		h->store = must_realloc(h->store, h->cap_fields * sizeof(*h->store));
	}
	h->store[h->n_fields++] = (struct http1_field){ 0 };
}

/* ---- llhttp's callbacks ------------------------------------------------------------------------------------ */

static int fail(struct http1 *p, enum err e, int status)
{
	if (p->err == ERR_OK) {
		p->err = e;
		p->status = (short)status;
	}
	return HPE_USER;
}

static int take_text(struct http1 *p, const char *at, size_t n)
{
	struct http1_head *h = p->head;
	if (h->n_text + n + h->n_fields * FIELD_OVERHEAD > p->limits.header_bytes)
		return fail(p, ERR_HEADER_TOO_LARGE, 431);
	add_text(h, at, n);
	return 0;
}

static int on_method(llhttp_t *ll, const char *at, size_t n)
{
	struct http1 *p = of_ll(ll);
	p->head->method.n += n;
	return take_text(p, at, n);
}

static int on_url(llhttp_t *ll, const char *at, size_t n)
{
	struct http1 *p = of_ll(ll);
	p->head->n_target += n;
	return take_text(p, at, n);
}

static int on_field(llhttp_t *ll, const char *at, size_t n)
{
	struct http1 *p = of_ll(ll);
	if (p->head_done)     /* a trailer */
		return 0;
	if (!p->in_name) {
		if (p->head->n_fields >= p->limits.headers)
			return fail(p, ERR_HEADER_TOO_LARGE, 431);
		add_field(p->head);
		p->in_name = true;
	}
	p->head->store[p->head->n_fields - 1].name.n += n;
	return take_text(p, at, n);
}

static int on_field_complete(llhttp_t *ll)
{
	of_ll(ll)->in_name = false;
	return 0;
}

static int on_value(llhttp_t *ll, const char *at, size_t n)
{
	struct http1 *p = of_ll(ll);
	if (p->head_done)
		return 0;
	p->head->store[p->head->n_fields - 1].value.n += n;
	return take_text(p, at, n);
}

/* ---- the head is whole ------------------------------------------------------------------------------------- */

/* Texts lie in the order of their lengths; give them their places now that the block moves no more. */
static void place_texts(struct http1_head *h)
{
	const char *at = h->text ? h->text : "";    /* an answer without any field has no text */
	h->method.p = at;
	at += h->method.n;
	h->target = (struct str){ at, h->n_target };
	at += h->n_target;
	for (size_t i = 0; i < h->n_fields; i++) {
		struct http1_field *f = &h->store[i];
		f->name.p = at;
		at += f->name.n;
		f->value.p = at;
		at += f->value.n;
		f->value = str_trim(f->value);
	}
	h->fields = h->store;
}

static bool host_is_sane(struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];
		if (c <= ' ' || c >= 127 || strchr(",/@?#\\\"<>", c))
			return false;
	}
	return true;
}

static enum err check_fields(struct http1 *p)
{
	struct http1_head *h = p->head;
	bool host = false;
	for (size_t i = 0; i < h->n_fields; i++) {
		const struct http1_field *f = &h->fields[i];
		if (f->name.n == 4 && str_ieq(f->name, STR("host"))) {
			if (host)
				return ERR_DUPLICATE;
			host = true;
			h->host = f->value;
		} else if (f->name.n == 17 && str_ieq(f->name, STR("transfer-encoding"))) {
			p->te_bad |= p->te_seen || !str_ieq(f->value, STR("chunked"));
			p->te_seen = true;
		} else if (f->name.n == 6 && str_ieq(f->name, STR("expect"))) {
			h->expect_continue = str_ieq(f->value, STR("100-continue"));
		}
	}
	if (p->kind == HTTP1_REQUEST && ((!host && h->minor == 1) || !host_is_sane(h->host)))
		return ERR_SYNTAX;
	return ERR_OK;
}

/* "http://host/path?query" and "/path?query" and "*"; behind this all three look as if the client had left scheme and host out. */
static bool cut_target(struct http1_head *h)
{
	struct str t = h->target;
	if (memchr(t.p, '#', t.n))
		return false;
	if (str_istarts(t, STR("http://")) || str_istarts(t, STR("https://"))) {
		t = str_skip(t, str_find(t, STR("//")) + 2);
		size_t end = 0;
		while (end < t.n && t.p[end] != '/' && t.p[end] != '?')
			end++;
		h->host = (struct str){ t.p, end };
		t = str_skip(t, end);
		if (h->host.n == 0 || !host_is_sane(h->host))
			return false;
		h->target = t.n > 0 && t.p[0] == '/' ? t : STR("/");
		h->path = STR("/");
	} else if (t.n == 0 || (t.p[0] != '/' && !str_eq(t, STR("*")))) {
		return false;
	}
	struct str path;
	str_cut(t, '?', &path, &h->query);
	if (path.n > 0)
		h->path = path;
	return true;
}

static int check_request(struct http1 *p, llhttp_t *ll)
{
	struct http1_head *h = p->head;
	if (ll->method == HTTP_CONNECT)
		return fail(p, ERR_UNSUPPORTED, 501);
	if (p->te_bad)
		return fail(p, ERR_UNSUPPORTED, 501);
	if (p->te_seen && h->minor == 0)
		return fail(p, ERR_SYNTAX, 400);
	if (!cut_target(h))
		return fail(p, ERR_SYNTAX, 400);
	h->content_length = (ll->flags & F_CHUNKED) ? HTTP1_CHUNKED : 0;
	if (ll->flags & F_CONTENT_LENGTH) {
		if (ll->content_length > INT64_MAX)
			return fail(p, ERR_SYNTAX, 400);
		h->content_length = (int64_t)ll->content_length;
	}
	h->expect_continue &= h->minor == 1 && h->content_length != 0;
	ll->upgrade = 0;
	return 0;
}

static int check_response(struct http1 *p, llhttp_t *ll)
{
	struct http1_head *h = p->head;
	h->status = ll->status_code;
	if (p->te_bad || h->status == 101 || h->status < 100 || h->status > 599)
		return fail(p, ERR_SYNTAX, 502);
	bool bare = p->no_body || h->status < 200 || h->status == 204 || h->status == 304;
	if (ll->flags & F_CHUNKED)
		h->content_length = HTTP1_CHUNKED;
	else if (ll->flags & F_CONTENT_LENGTH)
		h->content_length = (int64_t)MIN(ll->content_length, (uint64_t)INT64_MAX);
	else
		h->content_length = bare ? 0 : HTTP1_UNTIL_EOF;
	ll->upgrade = 0;
	return 0;
}

static int on_headers_complete(llhttp_t *ll)
{
	struct http1 *p = of_ll(ll);
	struct http1_head *h = p->head;
	place_texts(h);
	h->minor = ll->http_minor;
	if (ll->http_major != 1 || ll->http_minor > 1)
		return fail(p, ERR_UNSUPPORTED, 505), -1;
	enum err e = check_fields(p);
	if (e != ERR_OK)
		return fail(p, e, 400), -1;
	if ((p->kind == HTTP1_REQUEST ? check_request(p, ll) : check_response(p, ll)) != 0)
		return -1;
	h->keep_alive = llhttp_should_keep_alive(ll) != 0;
	p->head_done = true;
	if (p->kind == HTTP1_RESPONSE && h->status < 200)
		return 0;
	p->stopped = !p->ops->on_head(p->arg);
	if (p->stopped)
		return -1;
	return p->no_body ? 1 : 0;
}

/* ---- body -------------------------------------------------------------------------------------------------- */

static int on_body(llhttp_t *ll, const char *at, size_t n)
{
	struct http1 *p = of_ll(ll);
	p->body_bytes += n;
	p->stopped = !p->ops->on_body(p->arg, (struct str){ at, n });
	return p->stopped ? HPE_USER : 0;
}

static int on_chunk_header(llhttp_t *ll)
{
	of_ll(ll)->chunks++;
	return 0;
}

static int on_message_complete(llhttp_t *ll)
{
	struct http1 *p = of_ll(ll);
	p->done = true;
	return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
	.on_method = on_method,
	.on_url = on_url,
	.on_header_field = on_field,
	.on_header_field_complete = on_field_complete,
	.on_header_value = on_value,
	.on_headers_complete = on_headers_complete,
	.on_body = on_body,
	.on_chunk_header = on_chunk_header,
	.on_message_complete = on_message_complete,
};

/* ---- feeding ----------------------------------------------------------------------------------------------- */

void http1_init(struct http1 *p, enum http1_kind kind, struct http1_limits limits, const struct http1_ops *ops, void *arg)
{
	*p = (struct http1){ .kind = (unsigned char)kind, .limits = limits, .ops = ops, .arg = arg };
	llhttp_init(ll_of(p), kind == HTTP1_REQUEST ? HTTP_REQUEST : HTTP_RESPONSE, &settings);
}

static void restart(struct http1 *p)
{
	http1_head_clear(p->head);
	llhttp_reset(ll_of(p));
	ll_of(p)->data = p;
	p->raw_bytes = p->body_bytes = p->chunks = 0;
	p->in_name = p->head_done = p->te_seen = p->te_bad = p->stopped = p->done = false;
}

void http1_begin(struct http1 *p, struct http1_head *head, bool no_body)
{
	p->head = head;
	p->no_body = no_body;
	p->interim = 0;
	p->err = ERR_OK;
	p->status = 0;
	restart(p);
}

static enum http1_step bad(struct http1 *p, enum err e, int status)
{
	fail(p, e, status);
	return HTTP1_BAD;
}

/* What llhttp read so far is within what a head, or a body's framing, may cost. */
static bool within_limits(const struct http1 *p)
{
	if (!p->head_done)
		return p->raw_bytes <= p->limits.header_bytes + (uint64_t)1024;   /* blank lines in front count here only */
	return p->raw_bytes <= 2 * (uint64_t)p->limits.header_bytes + 1024 + p->body_bytes + p->chunks * CHUNK_ALLOWANCE;
}

static enum http1_step feed_once(struct http1 *p, struct str data, size_t *used)
{
	llhttp_t *ll = ll_of(p);
	llhttp_errno_t e = llhttp_execute(ll, data.p, data.n);
	*used = e == HPE_OK ? data.n : MIN((size_t)(llhttp_get_error_pos(ll) - data.p), data.n);
	p->raw_bytes += *used;
	if (p->stopped)
		return HTTP1_STOPPED;
	if (p->done)
		return HTTP1_DONE;
	if (e == HPE_PAUSED_H2_UPGRADE)
		return bad(p, ERR_UNSUPPORTED, 505);
	bool known = ll->http_major == 1 && ll->http_minor <= 1;    /* llhttp says the same of "HTTP/1.1" and a bare LF */
	if (e == HPE_INVALID_VERSION && p->kind == HTTP1_REQUEST && !known)
		return bad(p, ERR_UNSUPPORTED, 505);
	if (e != HPE_OK)
		return bad(p, ERR_SYNTAX, p->kind == HTTP1_REQUEST ? 400 : 502);
	if (!within_limits(p))
		return bad(p, ERR_HEADER_TOO_LARGE, 431);
	return HTTP1_MORE;
}

enum http1_step http1_feed(struct http1 *p, struct str data, size_t *ret_used)
{
	size_t total = 0;
	enum http1_step s = HTTP1_MORE;
	while (data.n > 0) {
		size_t used = 0;
		s = feed_once(p, data, &used);
		total += used;
		data = str_skip(data, used);
		if (s != HTTP1_DONE || p->kind == HTTP1_REQUEST || p->head->status >= 200)
			break;
		if (++p->interim > INTERIM_MAX) {
			s = bad(p, ERR_SYNTAX, 502);
			break;
		}
		restart(p);
		s = HTTP1_MORE;
	}
	*ret_used = total;
	return s;
}

enum http1_step http1_finish(struct http1 *p)
{
	llhttp_t *ll = ll_of(p);
	if (p->done)
		return HTTP1_DONE;
	if (p->head_done && llhttp_message_needs_eof(ll)) {
		p->done = true;
		return HTTP1_DONE;
	}
	return bad(p, ERR_SYNTAX, p->kind == HTTP1_REQUEST ? 400 : 502);
}

/* ---- writing ----------------------------------------------------------------------------------------------- */

size_t http1_chunk_head(char out[20], size_t n)
{
	static const char digits[] = "0123456789abcdef";
	int shift = 60;
	size_t at = 0;
	while (shift > 0 && ((uint64_t)n >> shift) == 0)
		shift -= 4;
	for (; shift >= 0; shift -= 4)
		out[at++] = digits[((uint64_t)n >> shift) & 15];
	out[at++] = '\r';
	out[at++] = '\n';
	return at;
}

/* RFC 9110 5.6.2 and 5.5 (a tab and bytes above 127 may be in a value). */
enum { TOKEN = 1, VALUE = 2 };
static const unsigned char byte_class[256] = {
	['\t'] = VALUE,
	[' '] = VALUE,
	['"'] = VALUE,
	['(' ... ')'] = VALUE,
	[','] = VALUE,
	['/'] = VALUE,
	[':' ... '@'] = VALUE,
	['[' ... ']'] = VALUE,
	['{'] = VALUE,
	['}'] = VALUE,
	['0' ... '9'] = TOKEN | VALUE,
	['A' ... 'Z'] = TOKEN | VALUE,
	['a' ... 'z'] = TOKEN | VALUE,
	['!'] = TOKEN | VALUE,
	['#' ... '\''] = TOKEN | VALUE,
	['*' ... '+'] = TOKEN | VALUE,
	['-' ... '.'] = TOKEN | VALUE,
	['^' ... '`'] = TOKEN | VALUE,
	['|'] = TOKEN | VALUE,
	['~'] = TOKEN | VALUE,
	[128 ... 255] = VALUE,
};

static bool all_of(struct str s, unsigned char class)
{
	unsigned char all = class;
	for (size_t i = 0; i < s.n; i++)
		all &= byte_class[(unsigned char)s.p[i]];
	return all == class;
}

bool http1_is_token(struct str s) { return s.n > 0 && all_of(s, TOKEN); }
bool http1_is_value(struct str s) { return all_of(s, VALUE); }
