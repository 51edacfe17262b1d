/* kvasir-docs options|metrics|errors: the pages of doc/reference, made from the tables the program itself runs on.
 * script/gen-docs writes them; ./dev lint compares. Not installed. */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "conf/option.h"
#include "feed/feed.h"
#include "gate/gate.h"
#include "ops/ops.h"

/* ---- options */

static void print_value(const struct conf_option *row)
{
	struct buf b;
	buf_init(&b, 4096);
	if (conf_option_allowed(&b, row) == ERR_OK)
		printf("| `%s` | `--%s` | %s%s%s | %.*s | %s | %s |\n", row->key, row->flag, *row->def ? "`" : "", *row->def ? row->def : "–", *row->def ? "`" : "", STR_ARG(buf_str(&b)),
		       row->reload == CONF_LIVE ? "at once" : "restart", row->doc);
	buf_done(&b);
}

static int options(void)
{
	const struct conf_option *rows;
	size_t n = conf_options(&rows);
	printf("# Options\n\n"
	       "Each option is a member of `Gateway.spec` in YAML and a flag of `kvasir serve`; a flag wins. Durations need a unit\n"
	       "(`us`, `ms`, `s`, `m`, `h`), sizes take `KiB`, `MiB`, `GiB` or plain bytes. *Changes*: \"at once\" holds for new requests as\n"
	       "soon as a watched file changed; \"restart\" is named in the log and waits. How it all fits together:\n"
	       "[configuration](../guide/configuration.md).\n\n"
	       "Made from the tables in `src/edge/conf/options_*.def` by `script/gen-docs`; do not edit.\n");
	const char *room = "";
	for (size_t i = 0; i < n; i++) {
		if (strcmp(room, rows[i].room) != 0)
			printf("\n## %s\n\n| key | flag | default | allowed | changes | what it does |\n|---|---|---|---|---|---|\n", rows[i].room);
		room = rows[i].room;
		print_value(&rows[i]);
	}
	return 0;
}

/* ---- metrics */

static void print_defs(const char *title, const struct obs_def *rows, size_t n)
{
	printf("\n## %s\n\n| metric | kind | labels | meaning |\n|---|---|---|---|\n", title);
	for (size_t i = 0; i < n; i++) {
		printf("| `%s` | %s |", rows[i].name, obs_kind_name(rows[i].kind));
		for (size_t l = 0; l < OBS_MAX_LABELS && rows[i].labels[l] != NULL; l++)
			printf(" `%s`", rows[i].labels[l]);
		printf(" | %s |\n", rows[i].help);
	}
}

static void print_label_words(const char *words)
{
	struct str word, rest = str_of(words);
	while (rest.n > 0) {
		str_cut(rest, ' ', &word, &rest);
		printf(" `%.*s`", STR_ARG(word));
	}
}

static int metrics(void)
{
	const struct ops_metric_row *scraped;
	size_t n, n_scraped = ops_metric_rows(&scraped);
	printf("# Metrics\n\n"
	       "`GET /metrics` on the admin port, Prometheus text format 0.0.4. Values are in base units (seconds, bytes, tokens). A metric\n"
	       "with labels holds a bounded number of series; what comes after is counted under the label value `_other`.\n\n"
	       "Made from the program's tables by `script/gen-docs`; do not edit.\n");
	const struct obs_def *rows = gate_metric_rows(&n);
	print_defs("Requests (data port)", rows, n);
	printf("\n## Process, index, workers\n\n| metric | kind | labels | meaning |\n|---|---|---|---|\n");
	for (size_t i = 0; i < n_scraped; i++) {
		printf("| `%s` | %s |", scraped[i].name, scraped[i].kind);
		print_label_words(scraped[i].labels);
		printf(" | %s |\n", scraped[i].help);
	}
	rows = feed_metric_rows(&n);
	print_defs("Learning the fleet", rows, n);
	return 0;
}

/* ---- errors */

static int errors(void)
{
	printf("# Errors\n\n"
	       "Errors of the gateway itself, as clients see them: HTTP status, the machine-readable `reason` in the JSON body, what it means.\n"
	       "*Next worker*: the gateway tries another worker by itself when nothing of the request can have been worked on. A worker's own\n"
	       "errors pass through as they are.\n\n"
	       "Made from `src/base/err.def` by `script/gen-docs`; do not edit.\n\n| status | reason | meaning | next worker |\n|---|---|---|---|\n");
	for (int e = 0; e < ERR_COUNT_; e++)
		if (err_http((enum err)e) >= 400)
			printf("| %d | `%s` | %s | %s |\n", err_http((enum err)e), err_label((enum err)e), err_text((enum err)e), err_retryable((enum err)e) ? "yes" : "no");
	return 0;
}

int main(int argc, char **argv)
{
	const char *page = argc == 2 ? argv[1] : "";
	if (!strcmp(page, "options"))
		return options();
	if (!strcmp(page, "metrics"))
		return metrics();
	if (!strcmp(page, "errors"))
		return errors();
	fprintf(stderr, "usage: kvasir-docs options|metrics|errors\n");
	return 2;
}
