/* hub.c: what a hub has of a repository: GET /api/models/REPO/revision/REVISION names the commit and its files; then each file is
 * GET /REPO/resolve/COMMIT/FILE, which answers itself or redirects, often to another host. The digest stands in the hub's own
 * headers: x-linked-etag (SHA-256) for large files, else etag (git's name of the content). */
#include "model/hub.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "http/get.h"
#include "io/digest.h"
#include "io/folder.h"
#include "io/loop.h"
#include "model/place.h"
#include "text/local.h"
#include "wire/json.h"
#include "wire/url.h"

enum {
	FILE_MAX_BYTES = 128 << 20,     /* the largest tokenizer.json known has 35 MB */
	LIST_MAX_BYTES = 16 << 20,
	FILE_TIMEOUT_US = 600 * 1000000,
	LIST_TIMEOUT_US = 60 * 1000000,
	STALL_US = 30 * 1000000,
	REDIRECTS_MAX = 5,
	SAY_EVERY_US = 5 * 1000000
};

static bool is_yes(const char *v)
{
	static const char *const YES[] = { "1", "on", "yes", "true" };
	for (size_t i = 0; v && i < ARRAY_LEN(YES); i++)
		if (str_ieq(str_of(v), str_of(YES[i])))
			return true;
	return false;
}

struct model_hub model_hub_env(void)
{
	struct str endpoint = str_trim(str_of(getenv("HF_ENDPOINT")));
	while (str_ends(endpoint, STR("/")))
		endpoint.n--;
	return (struct model_hub){ .endpoint = endpoint.n ? endpoint : STR("https://huggingface.co"), .token = str_trim(str_of(getenv("HF_TOKEN"))),
		.offline = is_yes(getenv("HF_HUB_OFFLINE")) };
}

bool model_fetch_again(enum err e)
{
	return e == ERR_AGAIN || e == ERR_CONNECT || e == ERR_TIMEOUT_STALL || e == ERR_UPSTREAM_MIDSTREAM || e == ERR_UPSTREAM_PROTOCOL || e == ERR_NO_WORKER;
}

struct fetching {
	const struct model_fetch *f;
	struct arena *a;
	const char *base, *part;        /* the repository's folder in the cache; where its files gather */
	struct str commit;
	bool has[TEXT_FILE_COUNT], more_templates;
	const char *file;               /* under way */
	struct mono said;
	struct str why;
};

static enum err fail(struct fetching *g, enum err e, const char *why)
{
	g->why = str_of(why);
	return e;
}

/* ---- one resource */

static enum err status_err(struct fetching *g, int status, const char *what)
{
	if (status == 401 || status == 403)
		return fail(g, ERR_BAD_REQUEST, arena_printf(g->a, "%s: the hub answers %d: a gated or unknown repository, and HF_TOKEN %s", what, status,
			g->f->hub->token.n ? "does not open it" : "is not set"));
	if (status == 404)
		return fail(g, ERR_NOT_FOUND, arena_printf(g->a, "%s: not on the hub (404)", what));
	if (status == 429 || status >= 500)
		return fail(g, ERR_NO_WORKER, arena_printf(g->a, "%s: the hub answers %d", what, status));
	return fail(g, ERR_BAD_REQUEST, arena_printf(g->a, "%s: the hub answers %d", what, status));
}

static bool same_origin(struct str a, struct str b)
{
	struct url x, y;
	if (url_parse(a, &x) != ERR_OK || url_parse(b, &y) != ERR_OK)
		return false;
	return x.scheme == y.scheme && x.port == y.port && x.ipv6 == y.ipv6 && str_ieq(x.host, y.host);
}

static void say_progress(void *arg, size_t got, size_t all)
{
	struct fetching *g = arg;
	struct mono now = io_clock();
	if (mono_diff_us(now, g->said) < SAY_EVERY_US)
		return;
	g->said = now;
	LOG_INFO("tokenizer_fetching", "repo=%s file=%s bytes=%zu of=%zu", LOG_Q(g->f->repo), g->file, got, all);
}

/* What the hub's own answers said of a file; a store elsewhere is not asked what its bytes should be. */
struct said {
	struct str linked, plain, commit;
};

static void listen_to(struct said *s, struct http_headers h)
{
	struct str linked = http_find(h, STR("x-linked-etag")), plain = http_find(h, STR("etag")), commit = http_find(h, STR("x-repo-commit"));
	if (linked.n)
		s->linked = linked;
	if (plain.n)
		s->plain = plain;
	if (commit.n)
		s->commit = commit;
}

static enum err get_at(struct fetching *g, const char *url, int64_t timeout_us, struct buf *body, struct http_got *ret)
{
	bool own = same_origin(str_of(url), g->f->hub->endpoint);
	struct http_get_opts o = { .url = url, .bearer = own ? g->f->hub->token : STR(""), .max_bytes = body->max, .timeout_us = timeout_us, .stall_us = STALL_US,
		.stop = g->f->stop, .progress = say_progress, .arg = g };
	enum err e = http_get(&o, g->a, body, ret);
	if (e == ERR_OK)
		return e;
	/* our own end of it has curl say that it could not write */
	bool ours = e == ERR_LIMIT || e == ERR_CLIENT_GONE || !ret->why[0];
	return fail(g, e, arena_printf(g->a, "%s: %s", g->file, e == ERR_CLIENT_GONE ? "no longer wanted" : ours ? err_text(e) : ret->why));
}

/* Follows redirects; never from https to http. */
static enum err get(struct fetching *g, const char *url, int64_t timeout_us, struct buf *body, struct said *ret_said)
{
	bool secure = str_istarts(str_of(url), STR("https://"));
	for (int hop = 0; hop <= REDIRECTS_MAX; hop++) {
		struct http_got got;
		TRY(get_at(g, url, timeout_us, body, &got));
		if (same_origin(str_of(url), g->f->hub->endpoint))
			listen_to(ret_said, got.headers);
		if (got.status >= 200 && got.status < 300)
			return ERR_OK;
		if (got.status < 300 || got.status >= 400 || !got.location.n)
			return status_err(g, got.status, g->file);
		if (secure && !str_istarts(got.location, STR("https://")))
			return fail(g, ERR_BAD_REQUEST, arena_printf(g->a, "%s: redirected from https to something else", g->file));
		url = got.location.p;
	}
	return fail(g, ERR_BAD_REQUEST, arena_printf(g->a, "%s: redirected more than %d times", g->file, REDIRECTS_MAX));
}

/* ---- the commit and its files */

static bool hex(struct str s, size_t n)
{
	for (size_t i = 0; i < s.n; i++)
		if (!((s.p[i] >= '0' && s.p[i] <= '9') || (s.p[i] >= 'a' && s.p[i] <= 'f')))
			return false;
	return s.n == n;
}

static void take_name(struct fetching *g, struct str name)
{
	for (size_t i = 0; i < TEXT_FILE_COUNT; i++)
		g->has[i] |= str_eq(name, str_of(text_file_names[i]));
	g->more_templates |= str_starts(name, STR(TEXT_MORE_TEMPLATES "/"));
}

static enum err read_list(struct fetching *g, struct str text)
{
	struct json_doc *d;
	struct str sha = { 0 }, name;
	if (json_parse(text, LIST_MAX_BYTES, &d) != ERR_OK)
		return fail(g, ERR_UPSTREAM_PROTOCOL, "the hub's answer is not JSON");
	if (json_str(json_get(json_root(d), STR("sha")), &sha) && hex(sha, IO_SHA1_HEX))
		g->commit = arena_str(g->a, sha);
	for (struct json_iter it = json_each(json_get(json_root(d), STR("siblings"))); json_next(&it);)
		if (json_str(json_get(it.val, STR("rfilename")), &name))
			take_name(g, name);
	json_free(d);
	if (!g->commit.n)
		return fail(g, ERR_UPSTREAM_PROTOCOL, "the hub named no commit");
	if (hex(g->f->revision, IO_SHA1_HEX) && !str_eq(g->f->revision, g->commit))
		return fail(g, ERR_BAD_REQUEST, "the hub answered with another commit than the one asked for");
	if (!g->has[TEXT_FILE_TOKENIZER] && !g->has[TEXT_FILE_TIKTOKEN] && !g->has[TEXT_FILE_TEKKEN])
		return fail(g, ERR_NOT_FOUND, "the repository has no tokenizer of a kind that is read here");
	return ERR_OK;
}

static struct str revision_of(const struct model_fetch *f) { return f->revision.n ? f->revision : STR("main"); }

static enum err list(struct fetching *g)
{
	struct buf body;
	struct said said = { 0 };
	buf_init(&body, LIST_MAX_BYTES);
	g->file = "the list of files";
	enum err e = get(g, arena_printf(g->a, "%.*s/api/models/%.*s/revision/%.*s", STR_ARG(g->f->hub->endpoint), STR_ARG(g->f->repo), STR_ARG(revision_of(g->f))),
		LIST_TIMEOUT_US, &body, &said);
	if (e == ERR_OK)
		e = read_list(g, buf_str(&body));
	buf_done(&body);
	return e;
}

/* ---- one file */

/* W/"abc" -> abc */
static struct str bare_etag(struct str s)
{
	if (str_starts(s, STR("W/")))
		s = str_skip(s, 2);
	return s.n >= 2 && s.p[0] == '"' ? str_sub(s, 1, s.n - 2) : s;
}

static enum err check(struct fetching *g, const struct said *said, struct str text)
{
	struct str want = bare_etag(said->linked.n ? said->linked : said->plain);
	char got[IO_SHA256_HEX + 1];
	if (said->commit.n && !str_eq(said->commit, g->commit))
		return fail(g, ERR_BAD_REQUEST, arena_printf(g->a, "%s: of another commit than the one asked for", g->file));
	if (hex(want, IO_SHA256_HEX))
		io_sha256(text, got);
	else if (hex(want, IO_SHA1_HEX))
		io_git_blob(text, got);
	else
		return fail(g, ERR_BAD_REQUEST, arena_printf(g->a, "%s: the hub names no digest to check it by", g->file));
	if (!str_eq(want, str_of(got)))
		return fail(g, ERR_UPSTREAM_MIDSTREAM, arena_printf(g->a, "%s: its digest is not the one that the hub names", g->file));
	return ERR_OK;
}

static enum err bring(struct fetching *g)
{
	struct buf body;
	struct said said = { 0 };
	buf_init(&body, FILE_MAX_BYTES);
	enum err e = get(g, arena_printf(g->a, "%.*s/%.*s/resolve/%.*s/%s", STR_ARG(g->f->hub->endpoint), STR_ARG(g->f->repo), STR_ARG(g->commit), g->file),
		FILE_TIMEOUT_US, &body, &said);
	if (e == ERR_OK)
		e = check(g, &said, buf_str(&body));
	if (e == ERR_OK && io_file_write(arena_printf(g->a, "%s/%s", g->part, g->file), buf_str(&body)) != ERR_OK)
		e = fail(g, ERR_IO, "the cache cannot be written");
	if (e == ERR_OK)
		LOG_INFO("tokenizer_fetched", "repo=%s commit=%s file=%s bytes=%zu", LOG_Q(g->f->repo), LOG_Q(g->commit), g->file, buf_str(&body).n);
	buf_done(&body);
	return e;
}

/* ---- the snapshot */

static enum err gather(struct fetching *g)
{
	if (io_folder_clear(g->part) != ERR_OK || io_folder_make(g->part) != ERR_OK)
		return fail(g, ERR_IO, arena_printf(g->a, "%s cannot be written", g->part));
	if (g->more_templates && io_folder_make(arena_printf(g->a, "%s/%s", g->part, TEXT_MORE_TEMPLATES)) != ERR_OK)
		return fail(g, ERR_IO, "the cache cannot be written");
	for (size_t i = 0; i < TEXT_FILE_COUNT; i++) {
		g->file = text_file_names[i];
		if (g->has[i])
			TRY(bring(g));
	}
	return ERR_OK;
}

static enum err show(struct fetching *g)
{
	enum err e = io_path_move(g->part, arena_printf(g->a, "%s/snapshots/%.*s", g->base, STR_ARG(g->commit)));
	const char *ref = arena_printf(g->a, "%s/refs/%.*s", g->base, STR_ARG(revision_of(g->f))), *fresh = arena_printf(g->a, "%s/refs/.part", g->base);
	if (e == ERR_OK || e == ERR_DUPLICATE) /* it came under another name before */
		e = io_file_write(fresh, g->commit);
	if (e == ERR_OK)
		e = io_path_move(fresh, ref);
	return e == ERR_OK ? e : fail(g, ERR_IO, "the cache cannot be written");
}

static enum err locked(struct fetching *g, struct str *ret_folder)
{
	if (model_find_repo(g->f->cache, g->f->repo, g->f->revision, g->a, ret_folder) == ERR_OK)
		return ERR_OK;           /* another process was faster */
	LOG_INFO("tokenizer_fetch", "repo=%s revision=%s endpoint=%s", LOG_Q(g->f->repo), LOG_Q(revision_of(g->f)), LOG_Q(g->f->hub->endpoint));
	enum err e = list(g);
	if (e == ERR_OK)
		e = gather(g);
	if (e == ERR_OK)
		e = show(g);
	if (io_folder_clear(g->part) != ERR_OK)
		LOG_WARN("cache_not_cleared", "folder=%s", LOG_Q(str_of(g->part)));
	TRY(e);
	return model_find_repo(g->f->cache, g->f->repo, g->f->revision, g->a, ret_folder) == ERR_OK ? ERR_OK : fail(g, ERR_IO, "the cache does not keep what is put there");
}

enum err model_fetch_repo(const struct model_fetch *f, struct arena *a, struct str *ret_folder, struct str *ret_why)
{
	struct fetching g = { .f = f, .a = a, .why = STR("not the name of a repository and a revision"), .said = io_clock() };
	struct io_lock *lock = NULL;
	enum err e = ERR_BAD_REQUEST;
	g.base = model_repo_base(f->cache, f->repo, f->revision, a);
	if (g.base) {
		g.part = arena_printf(a, "%s/snapshots/.part", g.base);
		e = io_folder_make(arena_printf(a, "%s/snapshots", g.base));
		if (e == ERR_OK)
			e = io_folder_make(arena_printf(a, "%s/refs", g.base));
		if (e == ERR_OK)
			e = io_lock_take(arena_printf(a, "%s/.lock", g.base), &lock);
		g.why = e == ERR_AGAIN ? STR("another process is fetching it") : str_of(arena_printf(a, "%s cannot be written", g.base));
	}
	if (e == ERR_OK)
		e = locked(&g, ret_folder);
	io_lock_drop(lock);
	if (e != ERR_OK)
		*ret_why = g.why;
	return e;
}

/* Without a password in it: it is logged. */
static bool is_endpoint(struct str text)
{
	struct url u;
	return url_parse(text, &u) == ERR_OK && (u.scheme == URL_HTTP || u.scheme == URL_HTTPS);
}

enum err model_find_or_fetch(const struct model_fetch *f, struct arena *a, struct str *ret_folder, struct str *ret_why)
{
	if (model_find_repo(model_hub_cache(a), f->repo, f->revision, a, ret_folder) == ERR_OK ||
	    model_find_repo(f->cache, f->repo, f->revision, a, ret_folder) == ERR_OK)
		return ERR_OK;
	if (f->hub->offline) {
		*ret_why = STR("not in a cache on this machine, and HF_HUB_OFFLINE is set");
		return ERR_NOT_FOUND;
	}
	if (!is_endpoint(f->hub->endpoint)) {
		*ret_why = STR("HF_ENDPOINT is not http://HOST or https://HOST");
		return ERR_BAD_REQUEST;
	}
	if (!f->cache.n) {
		*ret_why = STR("no folder for a cache: neither XDG_CACHE_HOME nor HOME is set");
		return ERR_NOT_FOUND;
	}
	return model_fetch_repo(f, a, ret_folder, ret_why);
}
