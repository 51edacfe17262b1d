/* conf/worker.h: what operators write about one worker: its URL, its event endpoints, a line of a discovery file.
 * Pure; results live in the arena; faults come back as text ("what is wrong, what is allowed"). */
#ifndef CONF_WORKER_H
#define CONF_WORKER_H

#include "conf/conf.h"

/* Fills url, host, ipv6, port, prefix. NULL when it is good, else the fault. https:// is refused until TLS comes. */
const char *conf_worker_url(struct str text, struct conf_worker *ret_w, struct arena *a);
/* "tcp://host:port" of rank 0 (or host:port); NULL when good. Wildcard hosts are refused: the gateway connects to the
 * worker; a publisher that connects out to a bound gateway is not supported. */
const char *conf_worker_endpoint(struct str text, struct str *ret_endpoint, struct arena *a);
/* Port + rank must stay a port: NULL when good. */
const char *conf_worker_ranks(const struct conf_worker *w, uint32_t ranks, struct arena *a);

/* NULL when the name has a cost profile (core/sched), else the fault, with all names. */
const char *conf_worker_accelerator(struct str name, struct arena *a);

enum conf_line { CONF_LINE_WORKER, CONF_LINE_EMPTY, CONF_LINE_BAD };
/* One line of a discovery file: URL or HOST:PORT, then key=value: events, replay, role, accelerator, apiKeyFile, apiKeyEnv,
 * labels.NAME. `pool` gives what holds for all. BAD: *ret_what says why (a known key with a value that cannot be is a reason too:
 * the worker would be used otherwise than it is meant) and the line names no worker. WORKER with *ret_what set: the worker is
 * good, a word beside it that is not known was ignored. */
enum conf_line conf_worker_line(struct str line, const struct conf_pool *pool, struct arena *a, struct conf_worker *ret_w, const char **ret_what);

/* Reads a secret from a file (trimmed) or the environment; NULL when good. */
const char *conf_secret_file(struct str path, struct str *ret_secret, struct arena *a);
const char *conf_secret_env(struct str name, struct str *ret_secret, struct arena *a);

#endif
