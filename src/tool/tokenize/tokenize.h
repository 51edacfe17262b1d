/* tokenize/tokenize.h: `kvasir tokenize`: the ids of a text by the gateway's own tokenizer, on standard output as JSON and
 * nothing else there. argv: the words behind the verb (--help lists them). Returns the exit code: 0, 1 (something failed;
 * said on standard error), 2 (used wrongly). */
#ifndef TOKENIZE_TOKENIZE_H
#define TOKENIZE_TOKENIZE_H

int tokenize_main(int argc, char **argv);

#endif
