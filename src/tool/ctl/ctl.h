/* ctl/ctl.h: operator commands: check (configuration), explain and get (a running gateway's admin port).
 * Each is a verb of the program kvasir: argv[0..argc) without the program's and the verb's name; returns the exit code:
 * 0 good, 1 a fault or an error answer, 2 wrong use. Output on standard output, complaints on standard error. */
#ifndef CTL_CTL_H
#define CTL_CTL_H

int ctl_check(int argc, char **argv);
int ctl_explain(int argc, char **argv);
int ctl_get(int argc, char **argv);

#endif
