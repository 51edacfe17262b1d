/* model/model_priv.h: shared insides of edge/model. */
#ifndef MODEL_MODEL_PRIV_H
#define MODEL_MODEL_PRIV_H

#include <stdatomic.h>

#include "base/arena.h"
#include "model/model.h"

struct model {
	atomic_uint refs;
	_Atomic(enum model_state) state;
	struct arena arena;                          /* of what was asked for; written before the model is shared */
	struct str key, root;
	struct model_source source;
	bool known_version;
	atomic_bool stop;                            /* nobody wants it any more: a fetch under way ends */
	/* written by the loading thread before the state leaves LOADING */
	struct text_local *local;
	struct arena found;
	struct str place, why;
	uint64_t stamp;                              /* of the files as they were when they were read */
	_Atomic uint64_t prompts, checks, agreed, different;
};

#define MODEL_INSTEAD "the workers are asked for token ids; with tokens.from local requests go by load"

struct model *model_new(struct str key, const struct model_want *w);
/* Finds, or fetches, and reads the files: blocking, for the thread pool. False: not now, but perhaps later (the hub is down);
 * the model is still LOADING and `why` says it. */
must_use bool model_load(struct model *m);
/* Is what was loaded still what lies there? False also while nothing is loaded. */
bool model_is_current(const struct model *m);
static inline bool model_may_fetch(const struct model *m) { return m->source.repo.n > 0; }

#endif
