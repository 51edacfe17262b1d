/* kvasir get workers|pools|index --admin URL [-o table|json|yaml] */
#include <stdio.h>

#include "ctl/ctl_priv.h"

struct column { const char *head, *member; };
struct kind { const char *name, *target, *list; struct column columns[CTL_MAX_COLUMNS]; };
static const struct kind kinds[] = {
	{ "workers", "/api/v1/workers", "workers",
	  { { "WORKER", "url" }, { "STATE", "state" }, { "MODEL", "models" }, { "BLOCK", "block_size" }, { "BLOCKS", "blocks" }, { "INDEX", "index_blocks" }, { "VIEW", "cache_view" },
	    { "IN-FLIGHT", "in_flight_requests" }, { "PREFILL-TOK", "in_flight_prompt_tokens" }, { "LAG-MS", "events_lag_ms" }, { "TTFT-MS", "ttft_ms" }, { "EXACT", "predicted_exact_share" },
	    { "WHY", "why" } } },
	{ "pools", "/api/v1/pools", "pools",
	  { { "POOL", "name" }, { "ENGINE", "engine" }, { "ROUTING", "routing" }, { "WORKERS", "workers" }, { "USABLE", "usable" }, { "IN-FLIGHT", "in_flight_requests" }, { "BLOCKS", "blocks" },
	    { "INDEX", "index_blocks" } } },
	{ "index", "/api/v1/index", NULL,
	  { { "ENTRIES", "entries" }, { "HOLDINGS", "holdings" }, { "FLIGHTS", "flights" }, { "OWNERS", "owners" }, { "BYTES", "bytes" }, { "BYTES/HOLDING", "bytes_per_holding" } } },
};

static const struct kind *kind_of(struct str name)
{
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (str_eq(str_of(kinds[i].name), name))
			return &kinds[i];
	return NULL;
}

/* The first of a list of texts, with how many follow. */
static void add_cell(struct ctl_table *t, const struct json_val *v)
{
	struct str first = { 0 };
	if (!json_is(v, JSON_ARRAY)) {
		ctl_table_add_json(t, v);
		return;
	}
	struct json_iter it = json_each(v);
	if (json_next(&it))
		(void)json_str(it.val, &first);
	if (json_len(v) > 1)
		ctl_table_add(t, str_of(arena_printf(&t->arena, "%.*s +%zu", STR_ARG(first), json_len(v) - 1)));
	else
		ctl_table_add(t, first);
}

static void add_row(struct ctl_table *t, const struct kind *k, const struct json_val *v)
{
	for (size_t c = 0; c < t->n_columns; c++)
		add_cell(t, json_get(v, str_of(k->columns[c].member)));
}

static enum err print_table(struct buf *b, const struct kind *k, const struct json_val *root)
{
	struct ctl_table t;
	const char *heads[CTL_MAX_COLUMNS];
	size_t n = 0;
	while (n < CTL_MAX_COLUMNS && k->columns[n].head != NULL) {
		heads[n] = k->columns[n].head;
		n++;
	}
	ctl_table_init(&t, heads, n);
	if (k->list == NULL)
		add_row(&t, k, root);
	else
		for (struct json_iter it = json_each(json_get(root, str_of(k->list))); json_next(&it);)
			add_row(&t, k, it.val);
	enum err e = ctl_table_print(b, &t);
	ctl_table_done(&t);
	return e;
}

static int show(const struct kind *k, struct str format, struct str body)
{
	struct json_doc *d;
	struct buf b;
	if (json_parse(body, 64 << 20, &d) != ERR_OK) {
		fprintf(stderr, "kvasir: the admin port's answer cannot be read\n");
		return 1;
	}
	buf_init(&b, 64 << 20);
	enum err e;
	if (str_eq(format, STR("json")))
		e = buf_printf(&b, "%.*s\n", STR_ARG(body));
	else
		e = str_eq(format, STR("yaml")) ? ctl_yaml(&b, json_root(d), 0) : print_table(&b, k, json_root(d));
	json_free(d);
	return ctl_print(&b, e);
}

struct args { struct str kind, admin, format; struct ctl_bad bad; bool help; };

static struct args read_args(int argc, char **argv)
{
	struct args a = { .admin = STR("http://127.0.0.1:9090"), .format = STR("table") };
	for (int i = 0; i < argc; i++) {
		struct str s = str_of(argv[i]);
		bool more = i + 1 < argc;
		if (str_eq(s, STR("--admin")) && more)
			a.admin = str_of(argv[++i]);
		else if ((str_eq(s, STR("-o")) || str_eq(s, STR("--output"))) && more)
			a.format = str_of(argv[++i]);
		else if (str_eq(s, STR("--help")) || str_eq(s, STR("-h")))
			a.help = true;
		else if (a.kind.n == 0 && !str_starts(s, STR("-")))
			a.kind = s;
		else
			a.bad = (struct ctl_bad){ .word = s };
	}
	if (!str_eq(a.format, STR("table")) && !str_eq(a.format, STR("json")) && !str_eq(a.format, STR("yaml")))
		a.bad = (struct ctl_bad){ .word = a.format };
	if (a.bad.word.n == 0 && kind_of(a.kind) == NULL)
		a.bad = (struct ctl_bad){ a.kind.n > 0 ? a.kind : STR("what to get"), "must be one of workers, pools and index" };
	return a;
}

int ctl_get(int argc, char **argv)
{
	struct args a = read_args(argc, argv);
	const struct kind *k = kind_of(a.kind);
	struct buf body;
	int status;
	if (a.bad.word.n > 0 || a.help)
		return ctl_usage(a.help, "get", a.bad, "usage: kvasir get workers|pools|index [--admin URL] [-o table|json|yaml]\nURL is the admin port, http://127.0.0.1:9090 by default.\n");
	if (!ctl_fetch(a.admin, STR("GET"), str_of(k->target), (struct str){ 0 }, &status, &body))
		return 1;
	int code = 1;
	if (status == 200)
		code = show(k, a.format, buf_str(&body));
	else
		fprintf(stderr, "kvasir: the admin port answered %d: %.*s\n", status, STR_ARG(buf_str(&body)));
	buf_done(&body);
	return code;
}
