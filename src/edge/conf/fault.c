/* The list of faults of one reading. Bounded: a file of a million mistakes is still one screen of text. */
#include "conf/fault.h"

#include <stdio.h>

#include "base/utf8.h"

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

/* Texts of files and names of files come from anywhere: what would begin a line or move a terminal's cursor, and what is no
 * UTF-8, is shown as \xNN. */
static enum err put_shown(struct buf *b, struct str s)
{
	while (s.n > 0) {
		uint32_t cp = 0;
		size_t n = utf8_next(s, &cp);
		bool shown = n > 0 && cp >= ' ' && (cp < 0x7f || cp > 0x9f) && cp != 0x2028 && cp != 0x2029;
		n = MAX(n, (size_t)1);
		for (size_t i = 0; i < n; i++)
			TRY(shown ? buf_add_byte(b, s.p[i]) : buf_printf(b, "\\x%02x", (unsigned)(unsigned char)s.p[i]));
		s = str_skip(s, n);
	}
	return ERR_OK;
}

enum err conf_fault_print(struct buf *b, const struct conf_fault *f)
{
	TRY(put_shown(b, f->file));
	if (f->file.n > 0)
		TRY(buf_add(b, STR(":")));
	if (f->line > 0)
		TRY(buf_printf(b, "%u:%u:", f->line, f->col));
	if (b->n > 0 && (f->file.n > 0 || f->line > 0))
		TRY(buf_add(b, STR(" ")));
	TRY(put_shown(b, f->path));
	if (f->path.n > 0)
		TRY(buf_add(b, STR(": ")));
	return put_shown(b, f->what);
}
