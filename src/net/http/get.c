/* get.c: libcurl's easy interface. Not for the data path: that is client.h. */
#include "http/get.h"

#include <curl/curl.h>

#include "base/must.h"
#include "base/vec.h"

enum { HEADERS_MAX = 256, HEADER_BYTES_MAX = 64 << 10, CONNECT_MS = 15000, STALL_BYTES = 1024 };

struct getting {
	const struct http_get_opts *o;
	struct arena *a;
	struct buf *body;
	VEC(struct http_header) headers;
	size_t header_bytes;
	enum err e;                      /* why a callback ended it */
};

static size_t on_header(char *p, size_t size, size_t n, void *arg)
{
	struct getting *g = arg;
	struct str line = str_trim(str_from(p, size * n)), name, value;
	if (str_starts(line, STR("HTTP/")))
		g->headers.n = 0;                /* of an answer before the last: 100 Continue, a proxy's */
	else if (str_cut(line, ':', &name, &value)) {
		g->header_bytes += line.n;
		if (g->headers.n == HEADERS_MAX || g->header_bytes > HEADER_BYTES_MAX) {
			g->e = ERR_LIMIT;
			return 0;
		}
		VEC_PUSH(&g->headers, (struct http_header){ arena_str(g->a, name), arena_str(g->a, str_trim(value)) });
	}
	return size * n;
}

static size_t on_body(char *p, size_t size, size_t n, void *arg)
{
	struct getting *g = arg;
	g->e = buf_add(g->body, str_from(p, size * n));
	return g->e == ERR_OK ? size * n : 0;
}

static int on_progress(void *arg, curl_off_t all, curl_off_t got, curl_off_t up_all, curl_off_t up)
{
	struct getting *g = arg;
	(void)up_all;
	(void)up;
	if (g->o->stop && atomic_load(g->o->stop)) {
		g->e = ERR_CLIENT_GONE;
		return 1;
	}
	if (g->o->progress && got > 0)
		g->o->progress(g->o->arg, (size_t)got, (size_t)all);
	return 0;
}

static bool visible(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] <= ' ' || s.p[i] > '~')
			return false;
	return true;
}

static void set_up(CURL *c, struct getting *g, struct curl_slist *headers, char *fault)
{
	const struct http_get_opts *o = g->o;
	must(curl_easy_setopt(c, CURLOPT_URL, o->url) == CURLE_OK);
	must(curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK);
	must(curl_easy_setopt(c, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1) == CURLE_OK);
	must(curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L) == CURLE_OK);
	must(curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L) == CURLE_OK);
	must(curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS) == CURLE_OK);
	must(curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, (long)(o->timeout_us / 1000)) == CURLE_OK);
	must(curl_easy_setopt(c, CURLOPT_LOW_SPEED_LIMIT, (long)STALL_BYTES) == CURLE_OK);
	must(curl_easy_setopt(c, CURLOPT_LOW_SPEED_TIME, (long)MAX(o->stall_us / 1000000, 1)) == CURLE_OK);
	must(curl_easy_setopt(c, CURLOPT_ERRORBUFFER, fault) == CURLE_OK);
	must(curl_easy_setopt(c, CURLOPT_HTTPHEADER, headers) == CURLE_OK);
	must(curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, on_header) == CURLE_OK && curl_easy_setopt(c, CURLOPT_HEADERDATA, g) == CURLE_OK);
	must(curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_body) == CURLE_OK && curl_easy_setopt(c, CURLOPT_WRITEDATA, g) == CURLE_OK);
	must(curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, on_progress) == CURLE_OK && curl_easy_setopt(c, CURLOPT_XFERINFODATA, g) == CURLE_OK);
	must(curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L) == CURLE_OK);
}

static enum err err_of(const struct getting *g, CURLcode code)
{
	static const struct { CURLcode code; enum err e; } ERRS[] = {
		{ CURLE_OK, ERR_OK },
		{ CURLE_COULDNT_CONNECT, ERR_CONNECT },
		{ CURLE_COULDNT_RESOLVE_HOST, ERR_CONNECT },
		{ CURLE_COULDNT_RESOLVE_PROXY, ERR_CONNECT },
		{ CURLE_OPERATION_TIMEDOUT, ERR_TIMEOUT_STALL },
		{ CURLE_PARTIAL_FILE, ERR_UPSTREAM_MIDSTREAM },
		{ CURLE_RECV_ERROR, ERR_UPSTREAM_MIDSTREAM },
		{ CURLE_GOT_NOTHING, ERR_UPSTREAM_MIDSTREAM },
		{ CURLE_URL_MALFORMAT, ERR_SYNTAX },
	};
	if (g->e != ERR_OK)
		return g->e;
	for (size_t i = 0; i < ARRAY_LEN(ERRS); i++)
		if (ERRS[i].code == code)
			return ERRS[i].e;
	return ERR_UPSTREAM_PROTOCOL;
}

static void take_answer(CURL *c, struct getting *g, struct http_got *ret)
{
	long status = 0;
	char *location = NULL;
	must(curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &status) == CURLE_OK && curl_easy_getinfo(c, CURLINFO_REDIRECT_URL, &location) == CURLE_OK);
	struct http_header *h = arena_new(g->a, struct http_header, g->headers.n + 1);
	for (size_t i = 0; i < g->headers.n; i++)
		h[i] = g->headers.p[i];
	ret->status = (int)status;
	ret->headers = (struct http_headers){ h, g->headers.n };
	ret->location = location ? arena_str(g->a, str_of(location)) : STR("");
}

enum err http_get(const struct http_get_opts *o, struct arena *a, struct buf *body, struct http_got *ret)
{
	struct getting g = { .o = o, .a = a, .body = body };
	char fault[CURL_ERROR_SIZE] = "";
	*ret = (struct http_got){ .why = "the token has characters that no token has" };
	if (!visible(o->bearer))
		return ERR_SYNTAX;
	CURL *c = curl_easy_init();
	struct curl_slist *headers = curl_slist_append(NULL, "User-Agent: kvasir/" KVASIR_VERSION);
	if (o->bearer.n)
		headers = curl_slist_append(headers, arena_printf(a, "Authorization: Bearer %.*s", STR_ARG(o->bearer)));
	must(c && headers);
	buf_clear(body);
	set_up(c, &g, headers, fault);
	CURLcode code = curl_easy_perform(c);
	enum err e = err_of(&g, code);
	ret->why = arena_printf(a, "%s", fault[0] ? fault : code != CURLE_OK ? curl_easy_strerror(code) : "");
	take_answer(c, &g, ret);
	VEC_FREE(&g.headers);
	curl_slist_free_all(headers);
	curl_easy_cleanup(c);
	return e;
}
