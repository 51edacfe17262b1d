/* The list of faults of one reading. Bounded: a file of a million mistakes is still one screen of text. */
#include "conf/fault.h"

#include <stdio.h>

void conf_faults_init(struct conf_faults *f)
{
	*f = (struct conf_faults){ 0 };
	arena_init(&f->arena, 0);
}

void conf_faults_done(struct conf_faults *f)
{
	VEC_FREE(&f->list);
	arena_done(&f->arena);
}

void conf_fault_add(struct conf_faults *f, struct conf_place at, struct str path, const char *fmt, ...)
{
	if (f->list.n >= CONF_MAX_FAULTS) {
		f->cut++;
		return;
	}
	char what[1024];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	struct conf_fault fault = { arena_str(&f->arena, at.file), at.line, at.col, arena_str(&f->arena, path), arena_str(&f->arena, str_of(what)) };
	VEC_PUSH(&f->list, fault);
}

enum err conf_fault_print(struct buf *b, const struct conf_fault *f)
{
	if (f->file.n > 0)
		TRY(buf_printf(b, "%.*s:", STR_ARG(f->file)));
	if (f->line > 0)
		TRY(buf_printf(b, "%u:%u:", f->line, f->col));
	if (b->n > 0 && (f->file.n > 0 || f->line > 0))
		TRY(buf_add(b, STR(" ")));
	if (f->path.n > 0)
		TRY(buf_printf(b, "%.*s: ", STR_ARG(f->path)));
	return buf_add(b, f->what);
}
