/* Runs one play: play_runner FILE. Ends with 0, or says file:line and ends with 1. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "play.h"

static bool split_words(struct play_line *l, char *text)
{
	l->n = 0;
	for (char *at = text; *at && *at != '#';) {
		size_t n = strcspn(at, " \t\n#");
		if (n) {
			if (l->n == PLAY_WORDS)
				play_fail(l, "too many words");
			l->words[l->n++] = str_from(at, n);
		}
		at += n + (at[n] == ' ' || at[n] == '\t' || at[n] == '\n');
	}
	return l->n != 0;
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return fprintf(stderr, "play_runner FILE\n"), 2;
	FILE *f = fopen(argv[1], "r");
	if (!f)
		return perror(argv[1]), 2;
	struct play p = { .now = { 1000000 } };
	arena_init(&p.mem, 0);
	char text[1024];
	struct play_line l = { .file = argv[1] };
	int commands = 0;
	while (fgets(text, sizeof(text), f)) {
		l.no++;
		if (!split_words(&l, text))
			continue;
		play_command(&p, &l);
		commands++;
	}
	fclose(f);
	brain_free(p.brain);
	VEC_FREE(&p.workers);
	VEC_FREE(&p.requests);
	arena_done(&p.mem);
	printf("%s: %d commands\n", argv[1], commands);
	return commands ? 0 : 1;
}
