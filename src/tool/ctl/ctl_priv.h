/* ctl/ctl_priv.h: shared insides: one HTTP question to an admin port, tables. */
#ifndef CTL_CTL_PRIV_H
#define CTL_CTL_PRIV_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/vec.h"
#include "ctl/ctl.h"
#include "wire/json.h"

/* Asks and waits (10 s). The body of the answer in *ret_body (owned: buf_done). Complains on standard error; false then. */
bool ctl_fetch(struct str admin, struct str method, struct str target, struct str body, int *ret_status, struct buf *ret_body);

/* A table: cells are texts in the arena; columns are as wide as their widest cell, numbers right-aligned. */
enum { CTL_MAX_COLUMNS = 16 };
struct ctl_table {
	size_t n_columns;
	const char *heads[CTL_MAX_COLUMNS];
	VEC(struct str) cells;             /* row after row */
	struct arena arena;
};
void ctl_table_init(struct ctl_table *t, const char *const *heads, size_t n);
void ctl_table_done(struct ctl_table *t);
void ctl_table_add(struct ctl_table *t, struct str cell);
void ctl_table_add_json(struct ctl_table *t, const struct json_val *v);    /* scalars as written; null and absent as "-" */
must_use enum err ctl_table_print(struct buf *b, const struct ctl_table *t);

/* JSON value -> YAML text. */
must_use enum err ctl_yaml(struct buf *b, const struct json_val *v, unsigned indent);
int ctl_print(struct buf *b, enum err e);      /* writes to standard output, frees; exit code */
struct ctl_bad { struct str word; const char *why; };   /* what is wrong with which word; why NULL: it is not understood */
/* Help that was asked for (0), or wrong use: the bad word, "" for none, and what is understood (2). */
int ctl_usage(bool asked, const char *verb, struct ctl_bad bad, const char *usage);

#endif
