/* conf/args.h: the command line of `kvasir serve` -> sources. Every option row has its flag; -c and --worker repeat.
 * `--flag value` and `--flag=value`; a BOOL flag may stand alone (true). Faults of all arguments are reported at once. */
#ifndef CONF_ARGS_H
#define CONF_ARGS_H

#include "conf/conf.h"

struct conf_args {
	struct conf_sources sources;     /* texts borrow argv */
	bool help, version, print_config;
};
/* argv[0..argc): without the program's and the command's name. False when there was a fault (see faults). */
must_use bool conf_args_parse(int argc, char **argv, struct conf_args *ret_args, struct conf_faults *faults);
void conf_args_done(struct conf_args *a);
/* The text of `kvasir serve --help`, from the rows. */
must_use enum err conf_args_help(struct buf *b);

#endif
