/* A folder that is named and not there is a mistake: without this check all that was seen of it is a slower gateway, since the
 * workers are asked for token ids instead. */
#include "conf/tokenizer.h"

#include "io/file.h"
#include "model/place.h"
#include "text/local.h"

struct conf_tokenizer conf_tokenizer_of(struct str text)
{
	struct conf_tokenizer t = { .worker = str_eq(text, STR("worker")) };
	if (text.n > 0 && (text.p[0] == '/' || text.p[0] == '.'))
		t.path = text;
	else if (!t.worker)
		(void)str_cut(text, '@', &t.repo, &t.revision);
	return t;
}

static const char *path_fault(struct str path, struct arena *a)
{
	struct str folder;
	int n = (int)MIN(path.n, 200);
	enum io_path_kind kind = io_path_kind(arena_printf(a, "%.*s", STR_ARG(path)));
	if (kind == IO_PATH_NONE)
		return arena_printf(a, "there is no '%.*s': must be the folder of a tokenizer", n, path.p);
	if (kind != IO_PATH_DIR)
		return arena_printf(a, "'%.*s' is no folder: must be the folder of a tokenizer", n, path.p);
	if (model_find_folder(path, a, &folder) != ERR_OK)
		return arena_printf(a, "'%.*s' holds no tokenizer: must have %s, %s or %s", n, path.p, text_file_names[TEXT_FILE_TOKENIZER], text_file_names[TEXT_FILE_TIKTOKEN],
		                    text_file_names[TEXT_FILE_TEKKEN]);
	return NULL;
}

const char *conf_tokenizer_fault(const struct conf_tokenizer *t, struct arena *a)
{
	if (t->path.n > 0)
		return path_fault(t->path, a);
	if (t->repo.n > 0 && !model_is_repo(t->repo))
		return arena_printf(a, "'%.*s' is no repository: must be ORG/NAME of letters, digits, '-', '_' and '.'; a folder begins with '/' or '.'", (int)MIN(t->repo.n, 200), t->repo.p);
	if (t->revision.n > 0 && !model_is_revision(t->revision))
		return arena_printf(a, "'%.*s' is no revision: must be a commit, branch or tag of letters, digits, '-', '_' and '.'", (int)MIN(t->revision.n, 200), t->revision.p);
	return NULL;
}
