/* conf/store.h: the running generation and its reload.
 *
 * conf_store_new() takes the first generation and watches every -c path. When something changed: load all sources anew;
 * no fault: swap and call on_change (on the loop, both generations valid during the call); faults: keep the running one,
 * log each, remember them for /readyz. START options that changed are kept as they were and said in the log.
 * Owner: the hub's loop. */
#ifndef CONF_STORE_H
#define CONF_STORE_H

#include "base/mono.h"
#include "conf/conf.h"
#include "io/loop.h"

struct conf_store;
typedef void conf_change_fn(void *arg, const struct conf *old, struct conf *now);
/* Takes over the reference of `first`; copies the sources. */
struct conf_store *conf_store_new(struct io_loop *l, const struct conf_sources *s, struct conf *first, conf_change_fn *fn, void *arg);
void conf_store_free(struct conf_store *s);
struct conf *conf_store_now(const struct conf_store *s);        /* borrowed */
void conf_store_reload(struct conf_store *s);                   /* as if a file had changed (SIGHUP) */

struct conf_store_status {
	uint64_t generation, reloads, failed_reloads;
	struct mono last;                    /* last successful load */
	const struct conf_faults *faults;    /* of the last reload when it failed, else NULL */
};
struct conf_store_status conf_store_status(const struct conf_store *s);

#endif
