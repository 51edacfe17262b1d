/* bench/tokenize.h: the verb that measures token ids made in a process: load, cold, warm, the next turn of a chat. */
#ifndef BENCH_TOKENIZE_H
#define BENCH_TOKENIZE_H

int bench_tokenize(int argc, char **argv);

#endif
