/* bench/run.h: the verbs of kvasir-bench that make load. Each takes its own argv (argv[0] = the verb) and returns the exit code. */
#ifndef BENCH_RUN_H
#define BENCH_RUN_H

int bench_run(int argc, char **argv);

#endif
