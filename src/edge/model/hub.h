/* model/hub.h: fetches a model's tokenizer files from a hub (Hugging Face's, or one that speaks like it) into a cache of our own.
 *
 * The revision is resolved to a commit once; the cache keeps which, and asks no more: $XDG_CACHE_HOME/kvasir/hub (or ~/.cache/…),
 * laid out like the hub's own cache. Every file is held against the digest that the hub names. A snapshot appears whole or not
 * at all, whoever else fetches the same. Only the files that a tokenizer is made of are fetched, never weights.
 * Blocking; for the thread pool. Private to the room and to `kvasir tokenize`. */
#ifndef MODEL_HUB_H
#define MODEL_HUB_H

#include <stdatomic.h>

#include "base/arena.h"
#include "base/err.h"

struct model_hub {
	struct str endpoint;       /* HF_ENDPOINT, else https://huggingface.co; no slash at its end */
	struct str token;          /* HF_TOKEN: sent to the endpoint's own origin only, never logged; "" = none */
	bool offline;              /* HF_HUB_OFFLINE */
};
struct model_hub model_hub_env(void);

struct model_fetch {
	const struct model_hub *hub;
	struct str cache;          /* model_own_cache */
	struct str repo, revision; /* "" = main */
	const atomic_bool *stop;   /* true ends it soon: CLIENT_GONE; NULL = none */
};
/* Is it worth trying again later? */
bool model_fetch_again(enum err e);
/* *ret_folder: the snapshot. On failure *ret_why says it in words. AGAIN: another process is fetching it. */
must_use enum err model_fetch_repo(const struct model_fetch *f, struct arena *a, struct str *ret_folder, struct str *ret_why);
/* In the hub's cache, in ours, else fetched. */
must_use enum err model_find_or_fetch(const struct model_fetch *f, struct arena *a, struct str *ret_folder, struct str *ret_why);

#endif
