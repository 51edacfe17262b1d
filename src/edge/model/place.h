/* model/place.h: where on this machine a model's files are. Blocking; for the thread pool. For the room itself,
 * `kvasir tokenize` and the check of what a configuration names. */
#ifndef MODEL_PLACE_H
#define MODEL_PLACE_H

#include "base/arena.h"
#include "base/err.h"

/* The folder of the hub's cache: $HF_HUB_CACHE, $HF_HOME/hub, $XDG_CACHE_HOME/huggingface/hub or ~/.cache/huggingface/hub. "" when none can be named. */
struct str model_hub_cache(struct arena *a);
/* Is it ORG/NAME or NAME of the characters that repositories have? */
bool model_is_repo(struct str name);
bool model_is_revision(struct str name);
/* Our own cache, laid out in the same way: $XDG_CACHE_HOME/kvasir/hub or ~/.cache/kvasir/hub. "" when none can be named. */
struct str model_own_cache(struct arena *a);
/* The repository's folder in a cache, there or not; NULL: not the names of a repository and a revision. */
const char *model_repo_base(struct str cache, struct str repo, struct str revision, struct arena *a);
/* The snapshot of a repository (revision "": what refs/main names). NOT_FOUND. */
must_use enum err model_find_repo(struct str cache, struct str repo, struct str revision, struct arena *a, struct str *ret_folder);
/* A folder with a tokenizer in it: itself, or the snapshot that its refs/main names. NOT_FOUND. */
must_use enum err model_find_folder(struct str path, struct arena *a, struct str *ret_folder);

#endif
