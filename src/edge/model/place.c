/* place.c: folders and the hub's cache: models--ORG--NAME/refs/REVISION holds a commit, snapshots/COMMIT its files. */
#include "model/place.h"

#include <stdlib.h>
#include <string.h>

#include "io/file.h"
#include "text/local.h"

enum { REF_MAX_BYTES = 256, NAME_MAX_BYTES = 200 };

static const char *env(const char *name)
{
	const char *v = getenv(name);
	return v && *v ? v : NULL;
}

struct str model_hub_cache(struct arena *a)
{
	const char *v;
	if ((v = env("HF_HUB_CACHE")))
		return str_of(v);
	if ((v = env("HF_HOME")))
		return str_of(arena_printf(a, "%s/hub", v));
	if ((v = env("XDG_CACHE_HOME")))
		return str_of(arena_printf(a, "%s/huggingface/hub", v));
	if ((v = env("HOME")))
		return str_of(arena_printf(a, "%s/.cache/huggingface/hub", v));
	return STR("");
}

struct str model_own_cache(struct arena *a)
{
	const char *v;
	if ((v = env("XDG_CACHE_HOME")))
		return str_of(arena_printf(a, "%s/kvasir/hub", v));
	if ((v = env("HOME")))
		return str_of(arena_printf(a, "%s/.cache/kvasir/hub", v));
	return STR("");
}

static bool name_byte(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
}

static bool plain_name(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (!name_byte(s.p[i]))
			return false;
	return s.n > 0 && s.n <= NAME_MAX_BYTES && s.p[0] != '.' && str_find(s, STR("..")) == SIZE_MAX;
}

bool model_is_repo(struct str name)
{
	struct str org, rest;
	return str_cut(name, '/', &org, &rest) ? plain_name(org) && plain_name(rest) : plain_name(name);
}

bool model_is_revision(struct str name) { return plain_name(name); }

static bool has_tokenizer(const char *folder, struct arena *a)
{
	static const enum text_file FILES[] = { TEXT_FILE_TOKENIZER, TEXT_FILE_TIKTOKEN, TEXT_FILE_TEKKEN };
	for (size_t i = 0; i < ARRAY_LEN(FILES); i++)
		if (io_path_kind(arena_printf(a, "%s/%s", folder, text_file_names[FILES[i]])) == IO_PATH_FILE)
			return true;
	return false;
}

/* The commit that refs/NAME holds. */
static struct str read_ref(const char *base, struct str name, struct arena *a)
{
	struct buf b;
	if (io_file_read(arena_printf(a, "%s/refs/%.*s", base, STR_ARG(name)), REF_MAX_BYTES, &b) != ERR_OK)
		return STR("");
	struct str commit = arena_str(a, str_trim(buf_str(&b)));
	buf_done(&b);
	return plain_name(commit) ? commit : STR("");
}

static enum err snapshot(const char *base, struct str revision, struct arena *a, struct str *ret_folder)
{
	struct str commit = read_ref(base, revision.n ? revision : STR("main"), a);
	if (!commit.n)
		commit = revision;               /* a commit is its own name */
	if (!plain_name(commit))
		return ERR_NOT_FOUND;
	char *folder = arena_printf(a, "%s/snapshots/%.*s", base, STR_ARG(commit));
	if (!has_tokenizer(folder, a))
		return ERR_NOT_FOUND;
	*ret_folder = str_of(folder);
	return ERR_OK;
}

const char *model_repo_base(struct str cache, struct str repo, struct str revision, struct arena *a)
{
	struct str org, name;
	if (!cache.n || !model_is_repo(repo) || (revision.n && !plain_name(revision)))
		return NULL;
	if (str_cut(repo, '/', &org, &name))
		return arena_printf(a, "%.*s/models--%.*s--%.*s", STR_ARG(cache), STR_ARG(org), STR_ARG(name));
	return arena_printf(a, "%.*s/models--%.*s", STR_ARG(cache), STR_ARG(repo));
}

enum err model_find_repo(struct str cache, struct str repo, struct str revision, struct arena *a, struct str *ret_folder)
{
	const char *base = model_repo_base(cache, repo, revision, a);
	return base ? snapshot(base, revision, a, ret_folder) : ERR_NOT_FOUND;
}

enum err model_find_folder(struct str path, struct arena *a, struct str *ret_folder)
{
	char *folder = arena_printf(a, "%.*s", STR_ARG(path));
	if (strlen(folder) != path.n || io_path_kind(folder) != IO_PATH_DIR)
		return ERR_NOT_FOUND;
	if (!has_tokenizer(folder, a))
		return snapshot(folder, STR(""), a, ret_folder);
	*ret_folder = str_of(folder);
	return ERR_OK;
}
