/* One worker as operators write it, in YAML, as a flag or as a line of a discovery file: the three share these checks. */
#include "conf/worker.h"

#include <stdlib.h>
#include <string.h>

#include "io/file.h"
#include "sched/profile.h"
#include "wire/url.h"

static struct str host_port(struct arena *a, struct str host, bool ipv6, uint16_t port)
{
	return str_of(arena_printf(a, ipv6 ? "[%.*s]:%u" : "%.*s:%u", STR_ARG(host), (unsigned)port));
}

static const char *url_fault(struct str text, enum err e, const struct url *u, struct arena *a)
{
	if (str_istarts(text, STR("https://")))
		return arena_printf(a, "'%.*s': https:// workers are not in this version (TLS to workers comes later): must be http://HOST:PORT", (int)MIN(text.n, 200), text.p);
	if (e == ERR_RANGE)
		return arena_printf(a, "'%.*s': the port must be 1 to 65535", (int)MIN(text.n, 200), text.p);
	if (e != ERR_OK || u->scheme != URL_HTTP || u->host.n == 0)
		return arena_printf(a, "'%.*s' is no worker URL: must be http://HOST:PORT[/PREFIX], IPv6 in brackets, no user name, no fragment", (int)MIN(text.n, 200), text.p);
	if (u->path.n > 0 && str_find(u->path, STR("?")) != SIZE_MAX)
		return arena_printf(a, "'%.*s': a worker URL has no query", (int)MIN(text.n, 200), text.p);
	return NULL;
}

const char *conf_worker_url(struct str text, struct conf_worker *ret_w, struct arena *a)
{
	struct url u = { 0 };
	const char *fault = url_fault(text, url_parse(text, &u), &u, a);
	if (fault != NULL)
		return fault;
	struct str prefix = u.path;
	while (prefix.n > 0 && prefix.p[prefix.n - 1] == '/')
		prefix.n--;
	if (str_ends(prefix, STR("/v1")))            /* every path that is asked begins with it: /v1/v1/models */
		return arena_printf(a, "'%.*s' is an SDK's base URL: a worker's ends before /v1, must be http://HOST:PORT[/PREFIX]", (int)MIN(text.n, 200), text.p);
	ret_w->host = arena_str(a, u.host);
	ret_w->ipv6 = u.ipv6;
	ret_w->port = u.port;
	ret_w->prefix = arena_str(a, prefix);
	struct str hp = host_port(a, u.host, u.ipv6, u.port);
	ret_w->url = str_of(arena_printf(a, "http://%.*s%.*s", STR_ARG(hp), STR_ARG(prefix)));
	return NULL;
}

const char *conf_worker_endpoint(struct str text, struct str *ret_endpoint, struct arena *a)
{
	struct url u = { 0 };
	bool scheme = str_find(text, STR("://")) != SIZE_MAX;
	struct str whole = scheme ? text : str_of(arena_printf(a, "tcp://%.*s", STR_ARG(text)));
	enum err e = url_parse(whole, &u);
	int n = (int)MIN(text.n, 200);
	if (e == ERR_OK && u.scheme == URL_TCP && (str_eq(u.host, STR("*")) || str_eq(u.host, STR("0.0.0.0")) || str_eq(u.host, STR("::"))))
		return arena_printf(a, "'%.*s': Kvasir connects to the worker's event port and does not bind one: workers that publish by connecting out are not supported; "
		                       "must be tcp://HOST:PORT of the worker (its own --kv-events-config endpoint is then tcp://*:PORT)", n, text.p);
	if (e == ERR_RANGE)
		return arena_printf(a, "'%.*s': the port must be 1 to 65535", n, text.p);
	if (e != ERR_OK || u.scheme != URL_TCP || u.host.n == 0)
		return arena_printf(a, "'%.*s' is no event endpoint: must be tcp://HOST:PORT, IPv6 in brackets", n, text.p);
	struct str hp = host_port(a, u.host, u.ipv6, u.port);
	*ret_endpoint = str_of(arena_printf(a, "tcp://%.*s", STR_ARG(hp)));
	return NULL;
}

static bool over_ports(struct str endpoint, uint32_t ranks)
{
	struct url u;
	return endpoint.n > 0 && url_parse(endpoint, &u) == ERR_OK && u.port + (uint64_t)ranks - 1 > 65535;
}

const char *conf_worker_ranks(const struct conf_worker *w, uint32_t ranks, struct arena *a)
{
	if (ranks == 0)
		return "a worker has at least one rank";
	if (over_ports(w->events, ranks) || over_ports(w->replay, ranks))
		return arena_printf(a, "port + data-parallel rank must stay below 65536: %u ranks from %.*s", ranks, STR_ARG(over_ports(w->events, ranks) ? w->events : w->replay));
	return NULL;
}

const char *conf_worker_accelerator(struct str name, struct arena *a)
{
	bool known;
	struct buf b;
	(void)sched_profile_find(name, &known);
	if (known)
		return NULL;
	buf_init(&b, 2048);
	for (size_t i = 0; sched_profile_name(i) != NULL; i++)
		if (buf_printf(&b, "%s%s", i == 0 ? "" : ", ", sched_profile_name(i)) != ERR_OK)
			break;
	const char *fault = arena_printf(a, "'%.*s' has no cost profile: must be one of %.*s, or not said (costs are then learnt from %s)", (int)MIN(name.n, 100), name.p,
	                                 STR_ARG(buf_str(&b)), SCHED_PROFILE_DEFAULT);
	buf_done(&b);
	return fault;
}

const char *conf_secret_file(struct str path, struct str *ret_secret, struct arena *a)
{
	struct buf b = { 0 };
	char *z = str_dup(path);
	enum err e = io_file_read(z, 4096, &b);
	free(z);
	struct str text = e == ERR_OK ? str_trim(buf_str(&b)) : (struct str){ 0 };
	const char *fault = NULL;
	if (e != ERR_OK)
		fault = arena_printf(a, "cannot read '%.*s': %s", STR_ARG(path), err_text(e));
	else if (text.n == 0)
		fault = arena_printf(a, "'%.*s' is empty: must hold the key", STR_ARG(path));
	else
		*ret_secret = arena_str(a, text);
	buf_done(&b);
	return fault;
}

const char *conf_secret_env(struct str name, struct str *ret_secret, struct arena *a)
{
	char *z = str_dup(name);
	const char *value = getenv(z);
	free(z);
	if (value == NULL || *value == 0)
		return arena_printf(a, "the environment has no variable '%.*s'", STR_ARG(name));
	*ret_secret = arena_str(a, str_trim(str_of(value)));
	return NULL;
}

/* ---- a line of a discovery file */

static struct str next_word(struct str *rest)
{
	*rest = str_trim(*rest);
	size_t n = 0;
	while (n < rest->n && rest->p[n] != ' ' && rest->p[n] != '\t')
		n++;
	struct str word = str_sub(*rest, 0, n);
	*rest = str_skip(*rest, n);
	return word;
}

static void add_label(struct conf_worker *w, struct str name, struct str value, struct arena *a)
{
	struct conf_label *labels = arena_new(a, struct conf_label, w->n_labels + 1);
	for (size_t i = 0; i < w->n_labels; i++)
		labels[i] = w->labels[i];
	labels[w->n_labels++] = (struct conf_label){ arena_str(a, name), arena_str(a, value) };
	w->labels = labels;
}

/* NULL when the value can be. *ret_known: the key is one of ours. */
static const char *line_pair(struct conf_worker *w, struct str key, struct str value, struct arena *a, bool *ret_known)
{
	*ret_known = true;
	if (str_eq(key, STR("events")) && str_eq(value, STR("off"))) {
		w->events_off = true;
		return NULL;
	}
	if (str_eq(key, STR("events")))
		return conf_worker_endpoint(value, &w->events, a);
	if (str_eq(key, STR("replay")))
		return conf_worker_endpoint(value, &w->replay, a);
	if (str_eq(key, STR("apiKeyFile")))
		return conf_secret_file(value, &w->api_key, a);
	if (str_eq(key, STR("apiKeyEnv")))
		return conf_secret_env(value, &w->api_key, a);
	if (str_eq(key, STR("role")))
		w->role = arena_str(a, value);
	else if (str_eq(key, STR("accelerator")))
		w->accelerator = arena_str(a, value);
	else if (str_starts(key, STR("labels.")) && key.n > 7 && w->n_labels < 64)
		add_label(w, str_skip(key, 7), value, a);
	else
		*ret_known = false;
	return NULL;
}

/* One word behind the URL. False: it spoils the line. */
static bool line_word(struct conf_worker *w, struct str word, struct arena *a, const char **ret_what)
{
	struct str key, value;
	bool known = false;
	const char *fault = NULL, *said = NULL;
	if (!str_cut(word, '=', &key, &value))
		said = arena_printf(a, "'%.*s' is ignored: must be key=value", (int)MIN(word.n, 100), word.p);
	else
		fault = line_pair(w, key, value, a, &known);
	if (fault != NULL)
		said = arena_printf(a, "%.*s: %s; the line is refused", STR_ARG(key), fault);
	else if (said == NULL && !known)
		said = arena_printf(a, "'%.*s' is ignored: allowed are events, replay, role, accelerator, apiKeyFile, apiKeyEnv and labels.NAME", (int)MIN(key.n, 100), key.p);
	if (said != NULL && (*ret_what == NULL || fault != NULL))
		*ret_what = said;
	return fault == NULL;
}

enum conf_line conf_worker_line(struct str line, const struct conf_pool *pool, struct arena *a, struct conf_worker *ret_w, const char **ret_what)
{
	struct str rest = line;
	struct str first = next_word(&rest);
	*ret_what = NULL;
	if (first.n == 0 || first.p[0] == '#')
		return CONF_LINE_EMPTY;
	if (memchr(line.p, 0, line.n) != NULL) {
		*ret_what = "the line holds a NUL byte: must be plain text";
		return CONF_LINE_BAD;
	}
	struct conf_worker w = { .accelerator = pool->accelerator, .api_key = pool->api_key };
	bool has_scheme = str_find(first, STR("://")) != SIZE_MAX;
	if (!has_scheme && str_find(first, STR(":")) == SIZE_MAX) {       /* a word of some other file is no host */
		*ret_what = arena_printf(a, "'%.*s' names no worker: must be http://HOST[:PORT] or HOST:PORT", (int)MIN(first.n, 200), first.p);
		return CONF_LINE_BAD;
	}
	*ret_what = conf_worker_url(has_scheme ? first : str_of(arena_printf(a, "http://%.*s", STR_ARG(first))), &w, a);
	if (*ret_what != NULL)
		return CONF_LINE_BAD;
	for (struct str word = next_word(&rest); word.n > 0 && word.p[0] != '#'; word = next_word(&rest))
		if (!line_word(&w, word, a, ret_what))
			return CONF_LINE_BAD;
	*ret_w = w;
	return CONF_LINE_WORKER;
}
