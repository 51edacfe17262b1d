/* conf/option.h: every option of Kvasir: one row each, in options_<room>.def beside this file.
 *
 * A row:  OPT(field, TYPE, "key", "flag", "default", min, max, "words", RELOAD, "doc")
 *   field    member of the room's struct (unit in the name: _us, _bytes)
 *   TYPE     INT, DURATION (300ms, 1.5s, 2m, 1h; kept in microseconds), SIZE (4096, 32KiB, 1GiB), BOOL, WORD (one of
 *            `words`; kept as its index), TEXT, LIST (of texts; kept comma-joined), ADDR (ADDRESS:PORT to listen on),
 *            SECRET (a text that is never printed)
 *   key      dotted path under Gateway.spec;   flag   --flag VALUE of `kvasir serve`
 *   default  written as an operator would write it
 *   min,max  in the base unit (count, microseconds, bytes; for TEXT and LIST the length in bytes)
 *   RELOAD   LIVE: holds for new requests as soon as a file changed; START: needs a restart (said in the log)
 * A new option is one row and one use. --help, --print-config, the YAML reader, its faults and doc/reference/options.md
 * come from the rows. Each room is handed its own struct only: struct conf_gate_opts etc.
 *
 * Pure tables and functions, any thread. Texts live in the arena given. */
#ifndef CONF_OPTION_H
#define CONF_OPTION_H

#include "base/arena.h"
#include "base/buf.h"

enum conf_type { CONF_INT, CONF_DURATION, CONF_SIZE, CONF_BOOL, CONF_WORD, CONF_TEXT, CONF_LIST, CONF_ADDR, CONF_SECRET };
enum conf_reload { CONF_LIVE, CONF_START };

#define CONF_C_INT int64_t
#define CONF_C_DURATION int64_t
#define CONF_C_SIZE int64_t
#define CONF_C_BOOL bool
#define CONF_C_WORD int64_t
#define CONF_C_TEXT struct str
#define CONF_C_LIST struct str
#define CONF_C_ADDR struct str
#define CONF_C_SECRET struct str
#define OPT(field, type, ...) CONF_C_##type field;
struct conf_gate_opts {
#include "conf/options_gate.def"
};
struct conf_brain_opts {
#include "conf/options_brain.def"
};
struct conf_feed_opts {
#include "conf/options_feed.def"
};
struct conf_ops_opts {
#include "conf/options_ops.def"
};
#undef OPT

struct conf_opts {
	struct conf_gate_opts gate;
	struct conf_brain_opts brain;
	struct conf_feed_opts feed;
	struct conf_ops_opts ops;
};

struct conf_option {
	const char *room, *key, *flag, *def, *words, *doc;
	enum conf_type type;
	enum conf_reload reload;
	int64_t min, max;
	size_t offset;               /* in struct conf_opts */
};
size_t conf_options(const struct conf_option **ret_rows);
const struct conf_option *conf_option_of_flag(struct str flag);     /* without the dashes; NULL: none */
const struct conf_option *conf_option_of_key(struct str key);

void conf_opts_default(struct conf_opts *o);
/* Reads text into the option's field. On a fault: *ret_what says what is wrong and what is allowed (in the arena). */
must_use bool conf_option_set(struct conf_opts *o, const struct conf_option *row, struct str text, struct arena *a, const char **ret_what);
/* Appends the value as an operator would write it. */
must_use enum err conf_option_print(struct buf *b, const struct conf_opts *o, const struct conf_option *row);
bool conf_option_same(const struct conf_opts *a, const struct conf_opts *b, const struct conf_option *row);
/* What values it takes, for people: "10ms to 10m", "kv, random or ...". */
must_use enum err conf_option_allowed(struct buf *b, const struct conf_option *row);
const char *conf_type_name(enum conf_type t);

/* Word of a WORD option by its index. */
struct str conf_word(const char *words, int64_t index);

#endif
