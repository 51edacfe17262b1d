/* A generation as the YAML that would make it (--print-config). Secrets are named, never written. */
#include "conf/conf.h"

#include "wire/json.h"

/* Options with a dotted key stand under their first part; rows of one branch are neighbours in the table. */
static enum err print_option(struct buf *b, const struct conf *c, const struct conf_option *row, struct str *branch)
{
	struct str head, tail, key = str_of(row->key);
	if (row->type == CONF_SECRET)
		return ERR_OK;
	bool deep = str_cut(key, '.', &head, &tail);
	if (deep && !str_eq(*branch, head))
		TRY(buf_printf(b, "  %.*s:\n", STR_ARG(head)));
	*branch = deep ? head : (struct str){ 0 };
	TRY(buf_printf(b, "%s%.*s: ", deep ? "    " : "  ", STR_ARG(deep ? tail : head)));
	if (row->type != CONF_ADDR && row->type != CONF_TEXT && row->type != CONF_LIST)
		TRY(conf_option_print(b, &c->opts, row));
	else
		TRY(json_quote(b, *(const struct str *)(const void *)((const char *)&c->opts + row->offset)));
	return buf_add_byte(b, '\n');
}

/* "KEY: VALUE" with the value as a JSON string, which YAML reads as the same text; nothing for an empty value. */
static enum err print_text(struct buf *b, const char *key, struct str value)
{
	if (value.n == 0)
		return ERR_OK;
	TRY(buf_add(b, str_of(key)));
	TRY(json_quote(b, value));
	return buf_add_byte(b, '\n');
}

static enum err print_worker(struct buf *b, const struct conf_worker *w)
{
	TRY(print_text(b, "  - url: ", w->url));
	if (w->events_off)
		TRY(buf_add(b, STR("    kvEvents: \"off\"\n")));
	else if (w->events.n > 0 || w->replay.n > 0)
		TRY(buf_add(b, STR("    kvEvents:\n")));
	TRY(print_text(b, "      endpoint: ", w->events));
	TRY(print_text(b, "      replay: ", w->replay));
	TRY(print_text(b, "    role: ", w->role));
	TRY(print_text(b, "    accelerator: ", w->accelerator));
	if (w->n_labels > 0)
		TRY(buf_add(b, STR("    labels:\n")));
	for (size_t i = 0; i < w->n_labels; i++) {
		TRY(buf_add(b, STR("      ")));
		TRY(json_quote(b, w->labels[i].name));
		TRY(buf_add(b, STR(": ")));
		TRY(json_quote(b, w->labels[i].value));
		TRY(buf_add_byte(b, '\n'));
	}
	return w->api_key.n > 0 ? buf_add(b, STR("    # a key is set; it is not shown\n")) : ERR_OK;
}

static enum err print_tokenizer(struct buf *b, const struct conf_tokenizer *t)
{
	if (t->worker)
		return buf_add(b, STR("  tokenizer: worker\n"));
	TRY(print_text(b, "  tokenizer:\n    path: ", t->path));
	TRY(print_text(b, "  tokenizer:\n    hub:\n      repo: ", t->repo));
	return print_text(b, "      revision: ", t->revision);
}

static enum err print_pool(struct buf *b, const struct conf_pool *p)
{
	TRY(buf_printf(b, "---\napiVersion: kvasir.dev/v1alpha1\nkind: WorkerPool\nmetadata:\n"));
	TRY(print_text(b, "  name: ", p->name.n > 0 ? p->name : STR("default")));
	TRY(buf_add(b, STR("spec:\n")));
	TRY(buf_printf(b, "  engine: %.*s\n  authorization: %s\n", STR_ARG(p->engine), p->drop_authorization ? "drop" : "pass"));
	if (p->has_routing)
		TRY(buf_printf(b, "  routing: %.*s\n", STR_ARG(conf_word(conf_option_of_key(STR("routing"))->words, p->routing))));
	TRY(print_tokenizer(b, &p->tokenizer));
	TRY(print_text(b, "  discovery:\n    file: ", p->discovery_file));
	if (p->n_workers > 0)
		TRY(buf_add(b, STR("  workers:\n")));
	for (size_t i = 0; i < p->n_workers; i++)
		TRY(print_worker(b, &p->workers[i]));
	return ERR_OK;
}

enum err conf_print(struct buf *b, const struct conf *c)
{
	const struct conf_option *rows;
	struct str branch = { 0 };
	size_t n = conf_options(&rows);
	TRY(buf_add(b, STR("apiVersion: kvasir.dev/v1alpha1\nkind: Gateway\nmetadata:\n  name: kvasir\nspec:\n")));
	for (size_t i = 0; i < n; i++)
		TRY(print_option(b, c, &rows[i], &branch));
	for (size_t i = 0; i < c->n_pools; i++)
		TRY(print_pool(b, &c->pools[i]));
	return ERR_OK;
}
