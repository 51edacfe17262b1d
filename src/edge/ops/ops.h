/* ops/ops.h: the admin port: health, metrics, state and "where would this go, and why".
 *
 *   GET  /livez  /readyz  /metrics
 *   GET  /api/v1/workers  /api/v1/pools  /api/v1/index  /api/v1/tokenizers  /api/v1/decisions?last=N  /api/v1/decisions/ID
 *   POST /api/v1/explain?path=/v1/chat/completions     body: the request that would be sent
 * No authentication: it listens on loopback unless told otherwise, and shows no secret.
 * Thread: the loop of the feed (the brain's). Hands are read through gate_metrics (any thread) and asked by mailbox. */
#ifndef OPS_OPS_H
#define OPS_OPS_H

#include "conf/store.h"
#include "feed/feed.h"
#include "gate/gate.h"

struct ops;
struct ops_opts {
	struct io_loop *loop;
	struct feed *feed;
	struct conf_store *store;
	struct gate *const *gates; size_t n_gates;     /* every hand; the array is copied, hands must outlive ops */
	struct io_loop *gate_loop;                     /* of gates[0], which answers explain */
	struct gate_shared *shared;
	size_t max_conns;                              /* of clients of the admin port */
};
/* IO: the address cannot be bound. */
must_use enum err ops_new(const struct ops_opts *o, const struct io_addr *bind, struct ops **ret_ops);
void ops_free(struct ops *o);
struct io_addr ops_addr(const struct ops *o);
/* The process shuts down: /readyz says so. */
void ops_drain(struct ops *o);

/* What /metrics writes beside the rooms' own tables: name, kind, help; for doc/reference. */
struct ops_metric_row { const char *name, *kind, *labels, *help; };
size_t ops_metric_rows(const struct ops_metric_row **ret_rows);

#endif
