/* Rows -> values and back. A value is always read from text, whatever it came from (flag, YAML scalar, default), so that
 * the three cannot differ. */
#include "conf/option.h"

#include <string.h>

#include "base/must.h"
#include "io/addr.h"
#include "wire/url.h"

#define OPT(field_, type_, key_, flag_, def_, min_, max_, words_, reload_, doc_)                                   \
	{ .room = ROOM_NAME, .key = key_, .flag = flag_, .def = def_, .words = words_, .doc = doc_,                \
	  .type = CONF_##type_, .reload = CONF_##reload_, .min = min_, .max = max_,                                \
	  .offset = offsetof(struct conf_opts, ROOM) + offsetof(ROOM_STRUCT, field_) },
static const struct conf_option rows[] = {
#define ROOM gate
#define ROOM_NAME "gate"
#define ROOM_STRUCT struct conf_gate_opts
#include "conf/options_gate.def"
#undef ROOM
#undef ROOM_NAME
#undef ROOM_STRUCT
#define ROOM brain
#define ROOM_NAME "brain"
#define ROOM_STRUCT struct conf_brain_opts
#include "conf/options_brain.def"
#undef ROOM
#undef ROOM_NAME
#undef ROOM_STRUCT
#define ROOM feed
#define ROOM_NAME "feed"
#define ROOM_STRUCT struct conf_feed_opts
#include "conf/options_feed.def"
#undef ROOM
#undef ROOM_NAME
#undef ROOM_STRUCT
#define ROOM ops
#define ROOM_NAME "ops"
#define ROOM_STRUCT struct conf_ops_opts
#include "conf/options_ops.def"
#undef ROOM
#undef ROOM_NAME
#undef ROOM_STRUCT
};
#undef OPT

size_t conf_options(const struct conf_option **ret_rows)
{
	*ret_rows = rows;
	return ARRAY_LEN(rows);
}

const struct conf_option *conf_option_of_flag(struct str flag)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (str_eq(str_of(rows[i].flag), flag))
			return &rows[i];
	return NULL;
}

const struct conf_option *conf_option_of_key(struct str key)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (str_eq(str_of(rows[i].key), key))
			return &rows[i];
	return NULL;
}

const char *conf_type_name(enum conf_type t)
{
	static const char *const names[] = {
		[CONF_INT] = "a number", [CONF_DURATION] = "a duration", [CONF_SIZE] = "a size", [CONF_BOOL] = "true or false",
		[CONF_WORD] = "a word", [CONF_TEXT] = "a text", [CONF_LIST] = "a list of texts", [CONF_ADDR] = "ADDRESS:PORT", [CONF_SECRET] = "a secret",
	};
	return names[t];
}

struct str conf_word(const char *words, int64_t index)
{
	struct str rest = str_of(words), word = { 0 };
	for (int64_t i = 0; i <= index; i++)
		if (!str_cut(rest, '|', &word, &rest) && i < index)
			return (struct str){ 0 };
	return word;
}

static bool is_text(const struct conf_option *row) { return row->type == CONF_TEXT || row->type == CONF_LIST || row->type == CONF_ADDR || row->type == CONF_SECRET; }
static int64_t *int_at(struct conf_opts *o, const struct conf_option *row) { return (int64_t *)(void *)((char *)o + row->offset); }
static bool *bool_at(struct conf_opts *o, const struct conf_option *row) { return (bool *)((char *)o + row->offset); }
static struct str *str_at(struct conf_opts *o, const struct conf_option *row) { return (struct str *)(void *)((char *)o + row->offset); }
static int64_t int_of(const struct conf_opts *o, const struct conf_option *row) { return *(const int64_t *)(const void *)((const char *)o + row->offset); }
static bool bool_of(const struct conf_opts *o, const struct conf_option *row) { return *(const bool *)((const char *)o + row->offset); }
static struct str str_of_row(const struct conf_opts *o, const struct conf_option *row) { return *(const struct str *)(const void *)((const char *)o + row->offset); }

struct unit { const char *name; int64_t factor; };
static const struct unit durations[] = { { "h", INT64_C(3600000000) }, { "m", 60000000 }, { "s", 1000000 }, { "ms", 1000 }, { "us", 1 } };
static const struct unit sizes[] = { { "TiB", INT64_C(1) << 40 }, { "GiB", 1 << 30 }, { "MiB", 1 << 20 }, { "KiB", 1 << 10 },
				     { "Ti", INT64_C(1) << 40 }, { "Gi", 1 << 30 }, { "Mi", 1 << 20 }, { "Ki", 1 << 10 }, { "B", 1 } };

/* "1.5s": a decimal number and a unit of the table. A bare number is taken only where bare > 0 says its factor, and 0 always. */
static bool parse_scaled(struct str text, const struct unit *units, size_t n_units, int64_t bare, int64_t *ret_v)
{
	size_t digits = 0;
	while (digits < text.n && ((text.p[digits] >= '0' && text.p[digits] <= '9') || text.p[digits] == '.'))
		digits++;
	double v;
	if (!str_to_f64(str_sub(text, 0, digits), &v) || v < 0)
		return false;
	struct str unit = str_skip(text, digits);
	int64_t factor = unit.n == 0 ? (v <= 0 ? 1 : bare) : 0;
	for (size_t i = 0; i < n_units; i++)
		if (str_eq(unit, str_of(units[i].name)))
			factor = units[i].factor;
	if (factor == 0 || v * (double)factor > 9e18)
		return false;
	*ret_v = (int64_t)(v * (double)factor + 0.5);
	return true;
}

static bool parse_word(struct str text, const char *words, int64_t *ret_v)
{
	for (int64_t i = 0;; i++) {
		struct str w = conf_word(words, i);
		if (w.p == NULL)
			return false;
		if (str_eq(w, text)) {
			*ret_v = i;
			return true;
		}
	}
}

/* To the form that can be bound: ADDRESS:PORT. */
static bool parse_addr(struct str text, struct arena *a, struct str *ret_addr)
{
	struct io_addr literal;
	struct url_host_port hp;
	if (io_addr_parse(text, &literal) == ERR_OK)
		*ret_addr = arena_str(a, text);
	else if (url_parse_host_port(text, 0, &hp) == ERR_OK && (hp.host.n == 0 || str_eq(hp.host, STR("localhost"))))
		*ret_addr = str_of(arena_printf(a, "%s:%u", hp.host.n == 0 ? "0.0.0.0" : "127.0.0.1", (unsigned)hp.port));
	else
		return false;
	return true;
}

static bool parse_number(const struct conf_option *row, struct str text, int64_t *ret_v)
{
	switch (row->type) {
	case CONF_INT: return str_to_i64(text, ret_v);
	case CONF_DURATION: return parse_scaled(text, durations, ARRAY_LEN(durations), 0, ret_v);
	case CONF_SIZE: return parse_scaled(text, sizes, ARRAY_LEN(sizes), 1, ret_v);
	case CONF_WORD: return parse_word(text, row->words, ret_v);
	case CONF_BOOL: case CONF_TEXT: case CONF_LIST: case CONF_ADDR: case CONF_SECRET: break;
	}
	return false;
}

static bool set_value(struct conf_opts *o, const struct conf_option *row, struct str text, struct arena *a)
{
	int64_t v;
	switch (row->type) {
	case CONF_INT: case CONF_DURATION: case CONF_SIZE: case CONF_WORD:
		if (!parse_number(row, text, &v) || (row->type != CONF_WORD && (v < row->min || v > row->max)))
			return false;
		*int_at(o, row) = v;
		return true;
	case CONF_BOOL:
		if (!str_eq(text, STR("true")) && !str_eq(text, STR("false")))
			return false;
		*bool_at(o, row) = text.p[0] == 't';
		return true;
	case CONF_ADDR:
		return parse_addr(text, a, str_at(o, row));
	case CONF_TEXT: case CONF_LIST: case CONF_SECRET:
		if ((int64_t)text.n < row->min || (int64_t)text.n > row->max)
			return false;
		*str_at(o, row) = arena_str(a, text);
		return true;
	}
	return false;
}

bool conf_option_set(struct conf_opts *o, const struct conf_option *row, struct str text, struct arena *a, const char **ret_what)
{
	if (set_value(o, row, text, a))
		return true;
	struct buf allowed;
	buf_init(&allowed, 4096);
	bool cut = conf_option_allowed(&allowed, row) != ERR_OK;
	struct str shown = row->type == CONF_SECRET ? STR("the secret") : str_sub(text, 0, 200);
	*ret_what = arena_printf(a, "'%.*s' is not allowed: must be %.*s%s", STR_ARG(shown), STR_ARG(buf_str(&allowed)), cut ? " …" : "");
	buf_done(&allowed);
	return false;
}

void conf_opts_default(struct conf_opts *o)
{
	memset(o, 0, sizeof(*o));
	struct arena scratch;
	arena_init(&scratch, 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		must(set_value(o, &rows[i], str_of(rows[i].def), &scratch));
		if (is_text(&rows[i]))
			*str_at(o, &rows[i]) = str_of(rows[i].def);
	}
	arena_done(&scratch);
}

/* The largest unit that divides v. */
static enum err print_scaled(struct buf *b, int64_t v, const struct unit *units, size_t n_units)
{
	if (v == 0)
		return buf_printf(b, "0");
	for (size_t i = 0; i < n_units; i++)
		if (v % units[i].factor == 0 && (v / units[i].factor < 10000 || units[i].factor > 60000000))
			return buf_printf(b, "%lld%s", (long long)(v / units[i].factor), units[i].name);
	return buf_printf(b, "%lld%s", (long long)v, units[n_units - 1].name);
}

static enum err print_number(struct buf *b, const struct conf_option *row, int64_t v)
{
	if (row->type == CONF_DURATION)
		return print_scaled(b, v, durations, ARRAY_LEN(durations));
	if (row->type == CONF_SIZE)
		return print_scaled(b, v, sizes, ARRAY_LEN(sizes));
	return buf_printf(b, "%lld", (long long)v);
}

enum err conf_option_print(struct buf *b, const struct conf_opts *o, const struct conf_option *row)
{
	switch (row->type) {
	case CONF_INT: case CONF_DURATION: case CONF_SIZE: return print_number(b, row, int_of(o, row));
	case CONF_WORD: return buf_add(b, conf_word(row->words, int_of(o, row)));
	case CONF_BOOL: return buf_add(b, bool_of(o, row) ? STR("true") : STR("false"));
	case CONF_TEXT: case CONF_LIST: case CONF_ADDR: return buf_add(b, str_of_row(o, row));
	case CONF_SECRET: return ERR_OK;
	}
	return ERR_INTERNAL;
}

bool conf_option_same(const struct conf_opts *a, const struct conf_opts *b, const struct conf_option *row)
{
	if (row->type == CONF_BOOL)
		return bool_of(a, row) == bool_of(b, row);
	if (is_text(row))
		return str_eq(str_of_row(a, row), str_of_row(b, row));
	return int_of(a, row) == int_of(b, row);
}

static enum err print_words(struct buf *b, const char *words)
{
	for (int64_t i = 0;; i++) {
		struct str w = conf_word(words, i);
		if (w.p == NULL)
			return ERR_OK;
		bool last = conf_word(words, i + 1).p == NULL;
		TRY(buf_printf(b, "%s%.*s", i == 0 ? "" : last ? " or " : ", ", STR_ARG(w)));
	}
}

enum err conf_option_allowed(struct buf *b, const struct conf_option *row)
{
	switch (row->type) {
	case CONF_WORD: return print_words(b, row->words);
	case CONF_BOOL: return buf_add(b, STR("true or false"));
	case CONF_ADDR: return buf_add(b, STR("ADDRESS:PORT (IPv4, IPv6 in brackets or localhost) or :PORT for every IPv4 address"));
	case CONF_TEXT: case CONF_LIST: case CONF_SECRET: return buf_printf(b, "%s of %lld to %lld bytes", conf_type_name(row->type), (long long)row->min, (long long)row->max);
	case CONF_INT: case CONF_DURATION: case CONF_SIZE: break;
	}
	TRY(buf_printf(b, "%s from ", conf_type_name(row->type)));
	TRY(print_number(b, row, row->min));
	TRY(buf_add(b, STR(" to ")));
	TRY(print_number(b, row, row->max));
	if (row->type == CONF_DURATION)
		return buf_add(b, STR(" with a unit: us, ms, s, m, h"));
	if (row->type == CONF_SIZE)
		return buf_add(b, STR(" in bytes, KiB, MiB, GiB"));
	return ERR_OK;
}
