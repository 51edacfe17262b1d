/* conf/fault.h: what is wrong with a configuration, all of it at once: file:line:col: path: what is wrong, what is allowed.
 * A list owns its texts. Not thread-safe. */
#ifndef CONF_FAULT_H
#define CONF_FAULT_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/vec.h"

enum { CONF_MAX_FAULTS = 200 };

struct conf_fault {
	struct str file;           /* "" for flags */
	unsigned line, col;        /* 0: no place in the file */
	struct str path;           /* "spec.workers[2].url", "--listen"; "" for none */
	struct str what;
};
struct conf_faults {
	VEC(struct conf_fault) list;
	size_t cut;                /* more than CONF_MAX_FAULTS: how many were not kept */
	struct arena arena;
};

void conf_faults_init(struct conf_faults *f);
void conf_faults_done(struct conf_faults *f);
struct conf_place { struct str file; unsigned line, col; };
void conf_fault_add(struct conf_faults *f, struct conf_place at, struct str path, const char *fmt, ...) printf_like(4, 5);
/* "pools.yaml:3:12: spec.workers[0].url: ..." without a newline; control bytes of names and texts are written \xNN,
 * so a fault is one line, whatever it quotes. */
enum { CONF_FAULT_MAX_BYTES = 1 << 16 };   /* what b should hold */
must_use enum err conf_fault_print(struct buf *b, const struct conf_fault *f);

#endif
