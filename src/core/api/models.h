/* api/models.h: reads a worker's GET /v1/models and writes the merged list. Pure. */
#ifndef API_MODELS_H
#define API_MODELS_H

#include "base/arena.h"
#include "base/buf.h"

struct api_model {
	struct str id, root, parent;       /* parent empty: a base model; else an adapter of it */
	uint32_t max_model_len;            /* 0: not said */
};

enum { API_MAX_MODELS = 4096 };
/* SYNTAX: not that shape. LIMIT: more than API_MAX_MODELS. */
must_use enum err api_models_read(struct str body, struct arena *a, const struct api_model **ret_models, size_t *ret_n);
/* OpenAI's object of one, and its list, in the order given; models of the same id must have been merged by the caller. created_s: unix time. */
must_use enum err api_model_put(struct buf *b, const struct api_model *m, int64_t created_s);
must_use enum err api_models_put(struct buf *b, const struct api_model *models, size_t n, int64_t created_s);

#endif
