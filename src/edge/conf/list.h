/* conf/list.h: a discovery file, read whole: one worker a line (conf/worker.h), each once; a bad line costs only itself. */
#ifndef CONF_LIST_H
#define CONF_LIST_H

#include "conf/conf.h"

enum { CONF_LIST_MAX_BYTES = 4 << 20 };

struct conf_list {
	VEC(struct conf_worker) workers;     /* in the arena given; at most BRAIN_MAX_WORKERS */
	size_t bad, over;                    /* lines that name nobody; workers beyond the limit */
};
/* What there is to say about a line, a bad one or one of which something was ignored. */
typedef void conf_list_fn(void *arg, unsigned line, const char *what);

/* NULL, or why the file cannot be read; free ret_list->workers in both cases. `pool` says what holds for all. */
const char *conf_list_read(struct str path, const struct conf_pool *pool, struct arena *a, conf_list_fn *say, void *arg, struct conf_list *ret_list);

#endif
