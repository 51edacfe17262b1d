/* check.c: one question after the other, on a loop of its own. The worker is asked by the calls that the gateway uses: render, and
 * tokenize where there is no render. */
#include "tokenize/check.h"

#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "http/client.h"
#include "text/offer.h"
#include "wire/json.h"
#include "wire/url.h"

enum { TIMEOUT_US = 60000000, MAX_ANSWER = 64 << 20, MAX_TOK = 8 << 20 };

struct checking {
	const struct tokenize_check *c;
	struct io_loop *loop;
	struct http_pool *pool;
	struct io_addr addr;
	struct str host, prefix;
	/* the answer under way */
	enum err e;
	int status;
	struct buf answer;
	bool no_key;             /* the worker wants another key than ours: no use to go on */
	size_t line, equal, different, left, refused, failed;
};

static void resolved(void *arg, enum err e, struct io_addr a)
{
	struct checking *k = arg;
	k->e = e;
	k->addr = a;
	io_loop_stop(k->loop);
}

static void answered(void *arg, enum err e, int status, struct http_headers h, struct str body)
{
	struct checking *k = arg;
	(void)h;
	k->e = e;
	k->status = status;
	buf_clear(&k->answer);
	if (e == ERR_OK)
		k->e = buf_add(&k->answer, body);
	io_loop_stop(k->loop);
}

/* One call; its status, 0 for none. */
static int ask(struct checking *k, enum text_call call, struct str body)
{
	struct http_header h[2] = { { STR("content-type"), STR("application/json") } };
	char target[1024], key[1024];
	struct buf q;
	size_t n = 1;
	buf_init(&q, body.n * 2 + 4096);
	int t = snprintf(target, sizeof(target), "%.*s%.*s", STR_ARG(k->prefix), STR_ARG(text_call_path(k->c->form, call)));
	if (k->c->api_key && (size_t)snprintf(key, sizeof(key), "Bearer %s", k->c->api_key) < sizeof(key))
		h[n++] = (struct http_header){ STR("authorization"), str_of(key) };
	k->status = 0;
	k->e = t > 0 && (size_t)t < sizeof(target) ? text_put_ask(&q, k->c->form, call, body) : ERR_LIMIT;
	if (k->e == ERR_OK) {
		struct http_fetch_opts o = { .addr = k->addr, .method = STR("POST"), .target = str_of(target), .host = k->host, .headers = { h, n },
			.body = buf_str(&q), .max_bytes = MAX_ANSWER, .timeout_us = TIMEOUT_US };
		http_fetch_start(k->pool, &o, answered, k);
		io_loop_run(k->loop);
	}
	buf_done(&q);
	return k->e == ERR_OK ? k->status : 0;
}

/* What an answer without ids means; no_call: none that would fit is left. */
static enum err failure(const struct checking *k, bool no_call)
{
	if (k->e != ERR_OK)
		return k->e;
	if (k->status == 401 || (k->status == 403 && !no_call))
		return ERR_UPSTREAM_AUTH;
	if (no_call)
		return ERR_UNSUPPORTED;
	return k->status >= 400 && k->status < 500 ? ERR_BAD_REQUEST : ERR_IO;
}

/* What the worker offers is learnt for this body alone: a 404 may be about its model. */
static enum err theirs_of(struct checking *k, struct str body, struct text_ids **ret_ids)
{
	struct text_offer offer = { 0 };
	struct buf q;
	buf_init(&q, body.n * 2 + 4096);
	bool expressible = !k->c->render_only && text_put_ask(&q, k->c->form, TEXT_TOKENIZE, body) == ERR_OK, again = true;
	buf_done(&q);
	k->e = ERR_OK;
	k->status = 0;
	while (again) {
		enum text_call call = TEXT_TOKENIZE;
		if (text_has_render(k->c->form) ? !text_offer_choose(&offer, expressible, io_now(k->loop), &call) : !expressible)
			return failure(k, true);
		int status = ask(k, call, body);
		again = text_offer_learn(&offer, call, status, io_now(k->loop));
		if (!again && status == 200)
			return text_read_answer(k->c->form, call, buf_str(&k->answer), MAX_TOK, ret_ids);
	}
	return failure(k, false);
}

/* SIZE_MAX: the same; else the first place that differs, of the first prompt that does. */
static size_t difference(const struct text_ids *a, const struct text_ids *b)
{
	if (a->n != b->n)
		return 0;
	for (size_t p = 0; p < a->n; p++) {
		size_t n = MIN(a->prompts[p].n, b->prompts[p].n), i = 0;
		while (i < n && a->prompts[p].ids[i] == b->prompts[p].ids[i])
			i++;
		if (i < n || a->prompts[p].n != b->prompts[p].n)
			return i;
	}
	return SIZE_MAX;
}

static void compare(struct checking *k, const struct text_ids *ours, const struct text_ids *theirs)
{
	size_t at = difference(ours, theirs);
	k->equal += at == SIZE_MAX;
	k->different += at != SIZE_MAX;
	if (at != SIZE_MAX)
		fprintf(stderr, "line %zu: other ids from token %zu on (ours %zu, the worker's %zu tokens)\n", k->line, at, ours->n ? ours->prompts[0].n : 0,
			theirs->n ? theirs->prompts[0].n : 0);
}

/* The worker's answer is no list of ids. */
static void tell_failure(struct checking *k, enum err e)
{
	k->no_key = e == ERR_UPSTREAM_AUTH;
	k->refused += e == ERR_BAD_REQUEST;
	k->failed += e != ERR_BAD_REQUEST;
	if (k->no_key)
		fprintf(stderr, "kvasir tokenize: %s answered %d: it %s\n", k->c->worker, k->status,
			k->c->api_key ? "refuses the key of --api-key-env" : "wants an API key (--api-key-env NAME)");
	else if (e == ERR_BAD_REQUEST)
		fprintf(stderr, "line %zu: refused by the worker (%d)\n", k->line, k->status);
	else if (e == ERR_UNSUPPORTED)
		fprintf(stderr, "line %zu: the worker has no call that gives the ids of such a body (last status %d)\n", k->line, k->status);
	else
		fprintf(stderr, "line %zu: no answer from the worker: %s\n", k->line, err_text(e));
}

static void check_body(struct checking *k, struct str body)
{
	struct text_local_job job = { .form = k->c->form, .body = body, .now_s = io_unix_us() / 1000000, .max_tok = MAX_TOK };
	struct text_ids *ours = NULL, *theirs = NULL;
	const char *why = NULL;
	bool have = text_local_ids(k->c->s, &job, &ours, &why) == ERR_OK;
	enum err e = theirs_of(k, body, &theirs);
	if (e != ERR_OK)
		tell_failure(k, e);
	else if (have)
		compare(k, ours, theirs);
	else {
		k->left++;
		fprintf(stderr, "line %zu: left to the worker: %s\n", k->line, why);
	}
	text_ids_unref(ours);
	text_ids_unref(theirs);
}

/* A text is asked as the prompt of a completion. */
static void check_text(struct checking *k, struct str text)
{
	struct buf body;
	buf_init(&body, text.n * 6 + 256);
	struct json_writer j = json_writer(&body);
	json_put_open(&j, '{');
	json_put_key(&j, STR("prompt"));
	json_put_str(&j, text);
	if (k->c->no_special) {
		json_put_key(&j, STR("add_special_tokens"));
		json_put_bool(&j, false);
	}
	json_put_close(&j, '}');
	if (utf8_valid(text) && json_writer_done(&j) == ERR_OK)
		check_body(k, buf_str(&body));
	else {
		k->failed++;
		fprintf(stderr, "line %zu: the text is not UTF-8\n", k->line);
	}
	buf_done(&body);
}

static void check_line(struct checking *k, struct str line)
{
	struct json_doc *d;
	struct str quoted;
	if (k->c->input == TOKENIZE_TEXT) {
		check_text(k, line);
		return;
	}
	if (json_parse(line, line.n, &d) != ERR_OK) {
		k->failed++;
		fprintf(stderr, "line %zu: not valid JSON\n", k->line);
		return;
	}
	bool is_text = json_str(json_root(d), &quoted);
	if (k->c->input == TOKENIZE_BODY)
		check_body(k, is_text ? quoted : line);
	else if (is_text)
		check_text(k, quoted);
	else {
		k->failed++;
		fprintf(stderr, "line %zu: not a JSON string\n", k->line);
	}
	json_free(d);
}

static void report(const struct checking *k)
{
	printf("{\"bodies\":%zu,\"equal\":%zu,\"different\":%zu,\"left_to_worker\":%zu,\"refused_by_worker\":%zu,\"failed\":%zu}\n", k->line, k->equal, k->different, k->left,
		k->refused, k->failed);
}

static int run(struct checking *k, struct str host, uint16_t port, struct str text)
{
	struct str line;
	io_resolve(k->loop, host, port, resolved, k);
	io_loop_run(k->loop);
	if (k->e != ERR_OK) {
		fprintf(stderr, "kvasir tokenize: %s: %s\n", k->c->worker, err_text(k->e));
		return 1;
	}
	while (text.n && !k->no_key) {
		(void)str_cut(text, '\n', &line, &text);
		k->line++;
		check_line(k, line);
	}
	report(k);
	if (k->equal + k->different == 0)
		fprintf(stderr, "kvasir tokenize: nothing was compared: %s\n", k->line ? "no line has ids of both sides" : "the input is empty");
	return k->different || k->failed || k->equal == 0 ? 1 : 0;
}

int tokenize_check(const struct tokenize_check *c, struct str text)
{
	struct url u;
	char host[300];
	if (url_parse(str_of(c->worker), &u) != ERR_OK || u.scheme != URL_HTTP || u.host.n > 255) {
		fprintf(stderr, "kvasir tokenize: --worker %s: must be http://HOST:PORT\n", c->worker);
		return 2;
	}
	snprintf(host, sizeof(host), u.ipv6 ? "[%.*s]:%u" : "%.*s:%u", STR_ARG(u.host), (unsigned)u.port);
	struct http_pool_opts po = http_pool_defaults();
	struct checking k = { .c = c, .loop = io_loop_new(), .host = str_of(host), .prefix = str_eq(u.path, STR("/")) ? STR("") : u.path };
	k.pool = http_pool_new(k.loop, &po);
	buf_init(&k.answer, MAX_ANSWER);
	int code = run(&k, u.host, u.port, text);
	buf_done(&k.answer);
	http_pool_free(k.pool);
	while (io_loop_alive(k.loop))
		;
	io_loop_free(k.loop);
	return code;
}
