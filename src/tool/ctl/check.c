/* kvasir check FILE_OR_DIR...: every fault of every file at once, as file:line:col: path: what is wrong, what is allowed. */
#include <stdio.h>

#include "conf/args.h"
#include "ctl/ctl_priv.h"

#define USAGE                                                                                                                 \
	"usage: kvasir check FILE_OR_DIR...\n"                                                                                \
	"Reads the configuration, and the files it names, and reports every fault; exit code 0 when there is none. Faults of a list of\n" \
	"workers and accelerators without a cost profile are told here too; kvasir serve says them in its log and lives with them.\n"

static void print_faults(const struct conf_faults *f)
{
	for (size_t i = 0; i < f->list.n; i++) {
		struct buf b;
		buf_init(&b, CONF_FAULT_MAX_BYTES);
		if (conf_fault_print(&b, &f->list.p[i]) == ERR_OK)
			printf("%.*s\n", STR_ARG(buf_str(&b)));
		buf_done(&b);
	}
	if (f->cut > 0)
		printf("and %zu more\n", f->cut);
}

static int check(const struct conf_sources *s)
{
	struct conf_faults faults;
	conf_faults_init(&faults);
	struct conf *c = conf_load(s, 1, &faults);
	size_t workers = 0;
	for (size_t i = 0; c != NULL && i < c->n_pools; i++)
		workers += c->pools[i].n_workers;
	print_faults(&faults);
	if (c != NULL)
		printf("good: %zu pool%s, %zu worker%s\n", c->n_pools, c->n_pools == 1 ? "" : "s", workers, workers == 1 ? "" : "s");
	conf_faults_done(&faults);
	int code = c != NULL ? 0 : 1;
	conf_unref(c);
	return code;
}

int ctl_check(int argc, char **argv)
{
	struct conf_sources s = { .careful = true };
	for (int i = 0; i < argc; i++)
		VEC_PUSH(&s.paths, str_of(argv[i]));
	bool help = argc > 0 && (str_eq(s.paths.p[0], STR("--help")) || str_eq(s.paths.p[0], STR("-h")));
	bool option = argc > 0 && !help && str_starts(s.paths.p[0], STR("-"));
	int code = argc == 0 || help || option ? ctl_usage(help, "check", (struct ctl_bad){ .word = option ? s.paths.p[0] : STR("") }, USAGE) : check(&s);
	VEC_FREE(&s.paths);
	return code;
}
