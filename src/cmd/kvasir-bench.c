/* kvasir-bench: load, traces, and the check of the index against recordings of real workers. Wiring only: a verb a row. */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "bench/run.h"
#include "bench/tokenize.h"
#include "bench/truth.h"
#include "io/fds.h"

static const struct { const char *name, *what; int (*fn)(int argc, char **argv); } verbs[] = {
	{ "run", "play a workload against a server and measure what its users see", bench_run },
	{ "tokenize", "measure what token ids cost with a model's tokenizer and template", bench_tokenize },
	{ "truth", "replay recordings of real workers and compare predicted with reported cached tokens", bench_truth },
};

static int help(FILE *to, int rc)
{
	fprintf(to, "usage: kvasir-bench VERB [options]   (VERB --help tells more)\n\n");
	for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
		fprintf(to, "  %-8s %s\n", verbs[i].name, verbs[i].what);
	return rc;
}

int main(int argc, char **argv)
{
	io_fds_fill();
	if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0))
		return help(stdout, 0);
	if (argc > 1 && strcmp(argv[1], "--version") == 0)
		return printf("kvasir-bench %s\n", KVASIR_VERSION) < 0;
	for (size_t i = 0; argc > 1 && i < ARRAY_LEN(verbs); i++)
		if (strcmp(argv[1], verbs[i].name) == 0)
			return verbs[i].fn(argc - 1, argv + 1);
	if (argc > 1)
		fprintf(stderr, "kvasir-bench: '%s' is no verb of kvasir-bench\n", argv[1]);
	return help(stderr, 2);
}
