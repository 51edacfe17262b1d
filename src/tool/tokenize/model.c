/* model.c: reads the files of a tokenizer. */
#include "tokenize/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/file.h"

enum err tokenize_read_file(const char *path, size_t max, struct str *ret_text)
{
	struct buf b;
	TRY(strcmp(path, "-") == 0 ? io_input_read(max, &b) : io_file_read(path, max, &b));
	*ret_text = str_clone(buf_str(&b));
	buf_done(&b);
	return ERR_OK;
}

/* An absent file is an empty text. */
static enum err read_optional(const char *folder, const char *name, struct str *ret_text)
{
	char path[4096];
	*ret_text = (struct str){ NULL, 0 };
	if ((size_t)snprintf(path, sizeof(path), "%s/%s", folder, name) >= sizeof(path))
		return ERR_LIMIT;
	enum err e = tokenize_read_file(path, TOK_MAX_FILE_BYTES, ret_text);
	return e == ERR_NOT_FOUND ? ERR_OK : e;
}

/* A hub's cache keeps the files of a revision in snapshots/REVISION and the revision's name in refs/main. */
static enum err resolve(const char *folder, char *out, size_t cap)
{
	struct str ref;
	TRY(read_optional(folder, "refs/main", &ref));
	struct str revision = str_trim(ref);
	int n = revision.n ? snprintf(out, cap, "%s/snapshots/%.*s", folder, STR_ARG(revision)) : snprintf(out, cap, "%s", folder);
	free((void *)(uintptr_t)ref.p);
	return (size_t)n < cap ? ERR_OK : ERR_LIMIT;
}

static bool has_folder(const char *folder, const char *name)
{
	char path[4096];
	return (size_t)snprintf(path, sizeof(path), "%s/%s", folder, name) < sizeof(path) && io_path_kind(path) != IO_PATH_NONE;
}

enum err tokenize_load(const char *folder, enum tok_unicode unicode, char *why, size_t why_cap, struct text_local **ret_l)
{
	char place[4096];
	struct text_local_files f = { .unicode = unicode, .known_version = true };
	enum err e = resolve(folder, place, sizeof(place));
	if (e != ERR_OK)
		snprintf(why, why_cap, "%s", err_text(e));
	for (size_t i = 0; i < TEXT_FILE_COUNT && e == ERR_OK; i++) {
		e = read_optional(place, text_file_names[i], &f.text[i]);
		if (e != ERR_OK)
			snprintf(why, why_cap, "%s/%s: %s", place, text_file_names[i], err_text(e));
	}
	f.more_templates = e == ERR_OK && has_folder(place, TEXT_MORE_TEMPLATES);
	if (e == ERR_OK)
		e = text_local_load(&f, why, why_cap, ret_l);
	for (size_t i = 0; i < TEXT_FILE_COUNT; i++)
		free((void *)(uintptr_t)f.text[i].p);
	return e;
}
