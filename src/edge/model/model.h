/* model/model.h: the tokenizers of the models that are served: found on disk, loaded off the loop, shared by all hands, and no
 * longer used when they differ from a worker.
 *
 * Where a tokenizer comes from: what the pool says (a folder, or a repository of a hub: in a cache on this machine, else fetched),
 * else the worker's own `root`, tried as a folder and then as a repository of the caches, never fetched. Not found, not
 * understood, not here yet: the workers are asked, as if this room did not exist.
 *
 * A `struct model` is counted and may be used by any thread. It is made at once and becomes ready when its files are read; a
 * view holds it, so hands see it without being told again. */
#ifndef MODEL_MODEL_H
#define MODEL_MODEL_H

#include "io/loop.h"
#include "text/local.h"

struct model;
enum model_state { MODEL_LOADING, MODEL_READY, MODEL_ABSENT, MODEL_DISTRUSTED };
const char *model_state_name(enum model_state s);

struct model *model_ref(struct model *m);
void model_unref(struct model *m);                   /* NULL is fine */
enum model_state model_state(const struct model *m);
/* The tokenizer while the state is READY, else NULL. Borrowed as long as the model is held. */
struct text_local *model_local(const struct model *m);

bool model_is_harmony(const struct model *m);        /* see text_local_is_harmony; false while it is not known */

/* Comparison with the workers' own ids. The first MODEL_FIRST_CHECKS prompts are compared, then one in MODEL_CHECK_EVERY; the
 * MODEL_MAX_DIFFERENT-th difference is the end of it until it is read from disk again. */
enum { MODEL_FIRST_CHECKS = 20, MODEL_CHECK_EVERY = 1000, MODEL_MAX_DIFFERENT = 3 };
bool model_check_due(struct model *m);               /* counts a prompt; true: compare this one */
void model_agreed(struct model *m);
/* at_tok: where the ids first differ, for the log; SIZE_MAX: their number does (usage). */
void model_differed(struct model *m, size_t at_tok, size_t ours_tok, size_t theirs_tok);

struct model_info {
	enum model_state state;
	struct str key, place;                       /* what was asked for; the folder it was found in */
	struct str why;                              /* why it is not used, not here yet, or has no chats */
	bool chats;
	size_t bytes;
	uint64_t prompts, checks, agreed, different;
};
struct model_info model_info(const struct model *m); /* slices live as long as the model is held */

/* ---- the store: one, on the hub's loop */
struct model_store;
struct model_source {                                /* what a pool says */
	bool worker;                                 /* ask the workers only */
	struct str path;                             /* "" = none */
	struct str repo, revision;                   /* "" = none; revision "" = main */
};
struct model_want {
	struct str root;                             /* the worker's name for what it loaded */
	const struct model_source *source;
	bool known_version;                          /* see text_local_files */
};

struct model_store *model_store_new(struct io_loop *l);
void model_store_free(struct model_store *s);        /* models live on with their holders */
/* Borrowed until the next sweep; NULL: this one is for the workers. Loading begins with the first ask; a hub that does not answer
 * is asked again after 2 s, 4 s … 5 min, as long as somebody wants the model. */
struct model *model_store_get(struct model_store *s, const struct model_want *w);
/* Lets go of what was not asked for since the last sweep. */
void model_store_sweep(struct model_store *s);
/* The configuration was loaded again: what was read and lies there as it did stays, and so does what is known of it; all else is
 * looked for again. */
void model_store_refresh(struct model_store *s);
/* Everything is read from disk again when it is asked for next. */
void model_store_reload(struct model_store *s);
size_t model_store_list(const struct model_store *s, struct arena *a, const struct model_info **ret_infos);

#endif
