#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "play.h"

void play_fail(const struct play_line *l, const char *fmt, ...)
{
	va_list ap;
	fprintf(stderr, "%s:%d: ", l->file, l->no);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(1);
}

bool play_flag(const struct play_line *l, const char *word)
{
	for (size_t i = 1; i < l->n; i++)
		if (str_eq(l->words[i], str_of(word)))
			return true;
	return false;
}

struct str play_value(const struct play_line *l, const char *key)
{
	struct str head, tail;
	for (size_t i = 1; i < l->n; i++)
		if (str_cut(l->words[i], '=', &head, &tail) && str_eq(head, str_of(key)))
			return tail;
	return STR("");
}

uint64_t play_number(const struct play_line *l, const char *key, uint64_t otherwise)
{
	struct str v = play_value(l, key);
	uint64_t n;
	if (!v.n)
		return otherwise;
	if (!str_to_u64(v, &n))
		play_fail(l, "%s: not a number", key);
	return n;
}

struct str play_after(const struct play_line *l, const char *word)
{
	for (size_t i = 1; i + 1 < l->n; i++)
		if (str_eq(l->words[i], str_of(word)))
			return l->words[i + 1];
	return STR("");
}
