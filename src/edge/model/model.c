/* model.c: one tokenizer: its loading and its record of agreements. */
#include "model/model.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/must.h"
#include "io/file.h"
#include "model/hub.h"
#include "model/model_priv.h"
#include "model/place.h"

enum { WHY_MAX_BYTES = 512 };
#define UNTIL "SIGHUP, or a reload that finds other files or another name"
_Static_assert(MODEL_MAX_DIFFERENT == 3, "model_info's why says it");

const char *model_state_name(enum model_state s)
{
	static const char *const names[] = { [MODEL_LOADING] = "loading", [MODEL_READY] = "ready", [MODEL_ABSENT] = "absent", [MODEL_DISTRUSTED] = "distrusted" };
	return names[s];
}

struct model *model_new(struct str key, const struct model_want *w)
{
	struct model *m = must_calloc(1, sizeof(*m));
	arena_init(&m->arena, 0);
	arena_init(&m->found, 0);
	atomic_init(&m->refs, 1);
	atomic_init(&m->state, MODEL_LOADING);
	m->key = arena_str(&m->arena, key);
	m->root = arena_str(&m->arena, w->root);
	m->source = (struct model_source){ .path = arena_str(&m->arena, w->source->path), .repo = arena_str(&m->arena, w->source->repo),
		.revision = arena_str(&m->arena, w->source->revision) };
	m->known_version = w->known_version;
	return m;
}

struct model *model_ref(struct model *m)
{
	must(atomic_fetch_add(&m->refs, 1) > 0);
	return m;
}

void model_unref(struct model *m)
{
	if (!m || atomic_fetch_sub(&m->refs, 1) != 1)
		return;
	text_local_unref(m->local);
	arena_done(&m->found);
	arena_done(&m->arena);
	free(m);
}

enum model_state model_state(const struct model *m) { return atomic_load(&m->state); }
struct text_local *model_local(const struct model *m) { return atomic_load(&m->state) == MODEL_READY ? m->local : NULL; }

/* ---- loading */

static enum err find_repo(struct model *m, struct str *ret_folder)
{
	struct model_hub hub = model_hub_env();
	struct model_fetch f = { .hub = &hub, .cache = model_own_cache(&m->found), .repo = m->source.repo, .revision = m->source.revision, .stop = &m->stop };
	return model_find_or_fetch(&f, &m->found, ret_folder, &m->why);
}

static enum err find_on_disk(const struct model *m, struct arena *a, struct str *ret_folder)
{
	if (m->source.path.n)
		return model_find_folder(m->source.path, a, ret_folder);
	if (!m->source.repo.n && m->root.n && m->root.p[0] == '/')
		return model_find_folder(m->root, a, ret_folder);
	struct str repo = m->source.repo.n ? m->source.repo : m->root;
	if (model_find_repo(model_hub_cache(a), repo, m->source.revision, a, ret_folder) == ERR_OK)
		return ERR_OK;
	return model_find_repo(model_own_cache(a), repo, m->source.revision, a, ret_folder);
}

/* Only what the configuration names is fetched; what a worker calls its model is looked for on this machine. */
static enum err find(struct model *m, struct str *ret_folder)
{
	m->why = STR("no such folder or repository with a tokenizer on this machine");
	return !m->source.path.n && m->source.repo.n ? find_repo(m, ret_folder) : find_on_disk(m, &m->found, ret_folder);
}

static uint64_t stamp_of(struct str folder, struct arena *a)
{
	uint64_t stamp = 0;
	for (size_t i = 0; i < TEXT_FILE_COUNT; i++)
		stamp = hash_mix(stamp ^ io_file_stamp(arena_printf(a, "%.*s/%s", STR_ARG(folder), text_file_names[i])));
	return hash_mix(stamp ^ io_file_stamp(arena_printf(a, "%.*s/%s", STR_ARG(folder), TEXT_MORE_TEMPLATES)));
}

bool model_is_current(const struct model *m)
{
	enum model_state state = atomic_load(&m->state);
	struct arena a;
	struct str folder;
	if (state != MODEL_READY && state != MODEL_DISTRUSTED)
		return false;
	arena_init(&a, 0);
	bool same = find_on_disk(m, &a, &folder) == ERR_OK && str_eq(folder, m->place) && stamp_of(folder, &a) == m->stamp;
	arena_done(&a);
	return same;
}

/* What cannot be read is as if it were not there, except that then nothing is loaded at all. */
static enum err read_files(struct model *m, struct buf *bufs, struct text_local_files *f, const char **ret_name)
{
	for (size_t i = 0; i < TEXT_FILE_COUNT; i++) {
		const char *path = arena_printf(&m->found, "%.*s/%s", STR_ARG(m->place), text_file_names[i]);
		enum err e = io_file_read(path, TOK_MAX_FILE_BYTES, &bufs[i]);
		*ret_name = text_file_names[i];
		if (e == ERR_NOT_FOUND)
			continue;
		TRY(e);
		f->text[i] = buf_str(&bufs[i]);
	}
	f->more_templates = io_path_kind(arena_printf(&m->found, "%.*s/%s", STR_ARG(m->place), TEXT_MORE_TEMPLATES)) != IO_PATH_NONE;
	return ERR_OK;
}

static enum err load_found(struct model *m, char *why)
{
	struct buf bufs[TEXT_FILE_COUNT] = { 0 };
	struct text_local_files f = { .known_version = m->known_version };
	const char *name = NULL;
	enum err e = read_files(m, bufs, &f, &name);
	if (e == ERR_OK)
		e = text_local_load(&f, why, WHY_MAX_BYTES, &m->local);
	else
		m->why = str_of(arena_printf(&m->found, "%s: %s", name, err_text(e)));
	for (size_t i = 0; i < TEXT_FILE_COUNT; i++)
		buf_done(&bufs[i]);
	return e;
}

bool model_load(struct model *m)
{
	char why[WHY_MAX_BYTES] = "";
	arena_done(&m->found);   /* of the try before */
	enum err e = find(m, &m->place);
	if (e != ERR_OK && model_fetch_again(e))
		return false;
	if (e == ERR_OK) {
		m->why = STR("");
		m->stamp = stamp_of(m->place, &m->found); /* before they are read: what changes meanwhile is seen */
		e = load_found(m, why);
	}
	if (why[0])
		m->why = arena_str(&m->found, str_of(why));
	atomic_store(&m->state, e == ERR_OK ? MODEL_READY : MODEL_ABSENT);
	return true;
}

bool model_is_harmony(const struct model *m) { return atomic_load(&m->state) != MODEL_LOADING && m->local && text_local_is_harmony(m->local); }

/* ---- agreement */

bool model_check_due(struct model *m)
{
	uint64_t n = atomic_fetch_add(&m->prompts, 1);
	bool due = n < MODEL_FIRST_CHECKS || n % MODEL_CHECK_EVERY == 0;
	if (due)
		atomic_fetch_add(&m->checks, 1);
	return due;
}

void model_agreed(struct model *m) { atomic_fetch_add(&m->agreed, 1); }

void model_differed(struct model *m, size_t at_tok, size_t ours_tok, size_t theirs_tok)
{
	uint64_t n = atomic_fetch_add(&m->different, 1) + 1;
	if (at_tok == SIZE_MAX && n <= MODEL_MAX_DIFFERENT)
		LOG_WARN("tokenizer_differs", "model=%s folder=%s ours_tok=%zu theirs_tok=%zu found_by=usage", LOG_Q(m->key), LOG_Q(m->place), ours_tok, theirs_tok);
	else if (n <= MODEL_MAX_DIFFERENT)
		LOG_WARN("tokenizer_differs", "model=%s folder=%s first_at_tok=%zu ours_tok=%zu theirs_tok=%zu found_by=comparison", LOG_Q(m->key), LOG_Q(m->place),
			at_tok, ours_tok, theirs_tok);
	enum model_state ready = MODEL_READY;
	if (n >= MODEL_MAX_DIFFERENT && atomic_compare_exchange_strong(&m->state, &ready, MODEL_DISTRUSTED))
		LOG_ERROR("tokenizer_distrusted", "model=%s folder=%s what=\"its token ids are not the workers'\" until=%s instead=%s", LOG_Q(m->key), LOG_Q(m->place),
			LOG_Q(STR(UNTIL)), LOG_Q(STR(MODEL_INSTEAD)));
}

struct model_info model_info(const struct model *m)
{
	enum model_state state = atomic_load(&m->state);
	struct model_info i = { .state = state, .key = m->key, .prompts = atomic_load(&m->prompts), .checks = atomic_load(&m->checks),
		.agreed = atomic_load(&m->agreed), .different = atomic_load(&m->different) };
	if (state == MODEL_LOADING)
		return i;
	i.place = m->place;
	i.why = state == MODEL_DISTRUSTED ? STR("its ids differed from the worker's 3 times: not used until " UNTIL) : m->why;
	i.chats = m->local && text_local_has_chat(m->local);
	i.bytes = m->local ? text_local_bytes(m->local) : 0;
	return i;
}
