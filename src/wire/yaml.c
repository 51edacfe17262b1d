/* yaml.c: libyaml's events -> our tree. The library's own document loader keeps no column of keys, types nothing and
 * follows aliases; events give all that is needed and stop where we say. */
#include "wire/yaml.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <yaml.h>

#include "base/arena.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/must.h"
#include "base/vec.h"

struct yaml_file {
	struct arena mem;
	VEC(struct yaml_node *) docs;
	VEC(struct yaml_fault) faults;
};

/* A list or mapping that is being read. */
struct level {
	struct yaml_node *node;
	VEC(struct yaml_node *) items;
	VEC(struct yaml_pair) pairs;
	struct yaml_pair next; /* its key is read, its value not */
	bool has_key;
	struct map seen; /* hash of key -> 1 + index */
};
struct reader {
	struct yaml_file *f;
	struct level levels[YAML_MAX_DEPTH];
	size_t depth;
	bool stop;
};

/* ---- faults */

static void add_fault(struct reader *r, struct yaml_pos pos, const char *what)
{
	if (r->f->faults.n < YAML_MAX_FAULTS)
		VEC_PUSH(&r->f->faults, (struct yaml_fault){ pos, what });
}

static void stop_with(struct reader *r, struct yaml_pos pos, const char *what)
{
	add_fault(r, pos, what);
	r->stop = true;
}

static struct yaml_pos pos_of(yaml_mark_t m) { return (struct yaml_pos){ (unsigned)m.line + 1, (unsigned)m.column + 1 }; }

/* ---- types of plain scalars */

static bool any_of(struct str s, const char *const words[], size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(s, str_of(words[i])))
			return true;
	return false;
}
#define IS_ONE_OF(s, ...) any_of(s, (const char *const[]){ __VA_ARGS__ }, ARRAY_LEN(((const char *const[]){ __VA_ARGS__ })))

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static size_t digits(struct str s, size_t i)
{
	size_t from = i;
	while (i < s.n && is_digit(s.p[i]))
		i++;
	return i - from;
}

/* 0x1F and 0o17; no sign. */
static bool read_radix(struct str s, int64_t *ret_i)
{
	if (s.n < 3 || s.n > 24 || s.p[0] != '0' || (s.p[1] != 'x' && s.p[1] != 'o'))
		return false;
	uint64_t base = s.p[1] == 'x' ? 16 : 8, v = 0;
	for (size_t i = 2; i < s.n; i++) {
		const char *all = "0123456789abcdef", *at = memchr(all, s.p[i] | (s.p[i] >= 'A' ? 0x20 : 0), 16);
		if (!at || (uint64_t)(at - all) >= base || v > (uint64_t)INT64_MAX / base)
			return false;
		v = v * base + (uint64_t)(at - all);
	}
	if (v > INT64_MAX)
		return false;
	*ret_i = (int64_t)v;
	return true;
}

/* Is it a decimal number? *ret_float: it has a point or an exponent. Leading zeros make a string: 0777 and 007 are names. */
static bool decimal_shape(struct str s, bool *ret_float)
{
	size_t i = s.n && (s.p[0] == '-' || s.p[0] == '+'), whole = digits(s, i), frac = 0;
	if (whole > 1 && s.p[i] == '0')
		return false;
	i += whole;
	bool point = i < s.n && s.p[i] == '.';
	if (point) {
		frac = digits(s, i + 1);
		i += 1 + frac;
	}
	if (whole + frac == 0)
		return false;
	bool exponent = i < s.n && (s.p[i] == 'e' || s.p[i] == 'E');
	if (exponent) {
		i++;
		if (i < s.n && (s.p[i] == '-' || s.p[i] == '+'))
			i++;
		size_t n = digits(s, i);
		if (n == 0)
			return false;
		i += n;
	}
	*ret_float = point || exponent;
	return i == s.n;
}

static bool read_number(struct yaml_node *n)
{
	bool is_float;
	struct str s = n->text;
	if (read_radix(s, &n->i)) {
		n->kind = YAML_INT;
		return true;
	}
	if (!decimal_shape(s, &is_float))
		return false;
	if (s.p[0] == '+')
		s = str_skip(s, 1);
	if (!is_float && str_to_i64(s, &n->i)) {
		n->kind = YAML_INT;
		return true;
	}
	if (!str_to_f64(s, &n->f))
		return false;
	n->kind = YAML_FLOAT;
	return true;
}

static void type_plain(struct yaml_node *n)
{
	struct str s = n->text;
	n->kind = YAML_STRING;
	if (IS_ONE_OF(s, "", "~", "null", "Null", "NULL")) {
		n->kind = YAML_NULL;
	} else if (IS_ONE_OF(s, "true", "True", "TRUE", "false", "False", "FALSE")) {
		n->kind = YAML_BOOL;
		n->b = s.n == 4;
	} else if (IS_ONE_OF(s, ".nan", ".NaN", ".NAN")) {
		n->kind = YAML_FLOAT;
		n->f = NAN;
	} else if (IS_ONE_OF(s, ".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF", "-.inf", "-.Inf", "-.INF")) {
		n->kind = YAML_FLOAT;
		n->f = s.p[0] == '-' ? -INFINITY : INFINITY;
	} else {
		read_number(n);
	}
}

/* ---- building */

static struct yaml_node *new_node(struct reader *r, enum yaml_kind kind, yaml_mark_t at)
{
	struct yaml_node *n = arena_new(&r->f->mem, struct yaml_node, 1);
	n->kind = kind;
	n->pos = pos_of(at);
	return n;
}

static void take_key(struct reader *r, struct level *l, const struct yaml_node *key)
{
	uint64_t h = hash_str(key->text, 0), first;
	l->next = (struct yaml_pair){ .pos = key->pos, .key = key->text };
	l->has_key = true;
	if (map_get(&l->seen, h, &first))
		add_fault(r, key->pos,
			arena_printf(&r->f->mem, "the key \"%.*s\" is already there in line %u", (int)MIN(key->text.n, (size_t)200),
				key->text.p, l->pairs.p[first].pos.line));
	else
		map_put(&l->seen, h, l->pairs.n);
}

/* A complete node goes where it belongs: the list, the mapping (as key or value), or the file. */
static void place(struct reader *r, struct yaml_node *n)
{
	if (r->depth == 0) {
		VEC_PUSH(&r->f->docs, n);
		return;
	}
	struct level *l = &r->levels[r->depth - 1];
	if (l->node->kind == YAML_SEQ) {
		VEC_PUSH(&l->items, n);
	} else if (!l->has_key) {
		take_key(r, l, n);
	} else {
		l->next.val = n;
		l->has_key = false;
		VEC_PUSH(&l->pairs, l->next);
	}
}

static void open_level(struct reader *r, enum yaml_kind kind, yaml_mark_t at)
{
	if (r->depth == YAML_MAX_DEPTH) {
		stop_with(r, pos_of(at), "nested deeper than 64 levels");
		return;
	}
	if (r->depth) {
		const struct level *l = &r->levels[r->depth - 1];
		if (l->node->kind == YAML_MAP && !l->has_key) {
			stop_with(r, pos_of(at), "a key must be a plain word, not a list or a mapping");
			return;
		}
	}
	r->levels[r->depth++] = (struct level){ .node = new_node(r, kind, at) };
}

static void free_level(struct level *l)
{
	VEC_FREE(&l->items);
	VEC_FREE(&l->pairs);
	map_done(&l->seen);
}

static void close_level(struct reader *r)
{
	struct level *l = &r->levels[r->depth - 1];
	struct yaml_node *n = l->node;
	if (n->kind == YAML_SEQ) {
		n->n = l->items.n;
		n->items = arena_new(&r->f->mem, struct yaml_node *, n->n);
		if (n->n)
			memcpy(n->items, l->items.p, n->n * sizeof(*n->items));
	} else {
		n->n = l->pairs.n;
		n->pairs = arena_new(&r->f->mem, struct yaml_pair, n->n);
		if (n->n)
			memcpy(n->pairs, l->pairs.p, n->n * sizeof(*n->pairs));
	}
	free_level(l);
	r->depth--;
	place(r, n);
}

static bool is_string_tag(const char *tag) { return strcmp(tag, "!") == 0 || strcmp(tag, YAML_STR_TAG) == 0; }

static void check_tag(struct reader *r, const yaml_char_t *tag, yaml_mark_t at)
{
	if (tag && !is_string_tag((const char *)tag))
		add_fault(r, pos_of(at), "a tag (!...) is not supported here");
}

static void on_scalar(struct reader *r, const yaml_event_t *ev)
{
	struct yaml_node *n = new_node(r, YAML_STRING, ev->start_mark);
	n->text = arena_str(&r->f->mem, str_from(ev->data.scalar.value, ev->data.scalar.length));
	n->quoted = ev->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
	check_tag(r, ev->data.scalar.tag, ev->start_mark);
	if (!n->quoted && !ev->data.scalar.tag)
		type_plain(n);
	place(r, n);
}

/* Returns false at the end of the stream. */
static bool on_event(struct reader *r, const yaml_event_t *ev)
{
	switch (ev->type) {
	case YAML_STREAM_END_EVENT: return false;
	case YAML_ALIAS_EVENT:
		add_fault(r, pos_of(ev->start_mark), "an alias (*name) is not supported: write the value again");
		place(r, new_node(r, YAML_NULL, ev->start_mark));
		break;
	case YAML_SCALAR_EVENT: on_scalar(r, ev); break;
	case YAML_SEQUENCE_START_EVENT:
		check_tag(r, ev->data.sequence_start.tag, ev->start_mark);
		open_level(r, YAML_SEQ, ev->start_mark);
		break;
	case YAML_MAPPING_START_EVENT:
		check_tag(r, ev->data.mapping_start.tag, ev->start_mark);
		open_level(r, YAML_MAP, ev->start_mark);
		break;
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT: close_level(r); break;
	case YAML_NO_EVENT:
	case YAML_STREAM_START_EVENT:
	case YAML_DOCUMENT_START_EVENT:
	case YAML_DOCUMENT_END_EVENT: break;
	}
	return !r->stop;
}

/* ---- the whole text */

static struct yaml_pos pos_at(struct str text, size_t off)
{
	struct yaml_pos p = { 1, 1 };
	for (size_t i = 0; i < off && i < text.n; i++) {
		bool lf = text.p[i] == '\n';
		p.line += lf;
		p.col = lf ? 1 : p.col + (((unsigned char)text.p[i] & 0xc0) != 0x80);
	}
	return p;
}

static void add_parser_fault(struct reader *r, const yaml_parser_t *p, struct str text)
{
	must(p->error != YAML_MEMORY_ERROR);
	bool reader = p->error == YAML_READER_ERROR;
	struct yaml_pos pos = reader ? pos_at(text, p->problem_offset) : pos_of(p->problem_mark);
	const char *problem = p->problem ? p->problem : "malformed";
	add_fault(r, pos, p->context ? arena_printf(&r->f->mem, "%s (%s)", problem, p->context) : arena_printf(&r->f->mem, "%s", problem));
}

static void read_events(struct reader *r, struct str text)
{
	yaml_parser_t p;
	yaml_event_t ev;
	bool more = true;
	must(yaml_parser_initialize(&p));
	yaml_parser_set_encoding(&p, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&p, (const unsigned char *)(text.n ? text.p : ""), text.n);
	while (more) {
		if (!yaml_parser_parse(&p, &ev)) {
			add_parser_fault(r, &p, text);
			break;
		}
		more = on_event(r, &ev);
		yaml_event_delete(&ev);
	}
	yaml_parser_delete(&p);
	while (r->depth)
		free_level(&r->levels[--r->depth]);
}

static int fault_order(const void *a, const void *b)
{
	const struct yaml_fault *x = a, *y = b;
	if (x->pos.line != y->pos.line)
		return x->pos.line < y->pos.line ? -1 : 1;
	return (x->pos.col > y->pos.col) - (x->pos.col < y->pos.col);
}

struct yaml_file *yaml_file_read(struct str text)
{
	struct yaml_file *f = must_calloc(1, sizeof(*f));
	struct reader *r = must_calloc(1, sizeof(*r));
	arena_init(&f->mem, 0);
	r->f = f;
	if (text.n > YAML_MAX_BYTES)
		add_fault(r, (struct yaml_pos){ 1, 1 }, "larger than 1 MB");
	else
		read_events(r, text);
	free(r);
	if (f->faults.n)
		qsort(f->faults.p, f->faults.n, sizeof(*f->faults.p), fault_order);
	return f;
}

void yaml_file_free(struct yaml_file *f)
{
	if (!f)
		return;
	arena_done(&f->mem);
	VEC_FREE(&f->docs);
	VEC_FREE(&f->faults);
	free(f);
}

size_t yaml_docs(const struct yaml_file *f) { return f->docs.n; }

struct yaml_node *yaml_doc(const struct yaml_file *f, size_t i)
{
	must(i < f->docs.n);
	return f->docs.p[i];
}

const struct yaml_fault *yaml_faults(const struct yaml_file *f, size_t *ret_n)
{
	*ret_n = f->faults.n;
	return f->faults.p;
}

const struct yaml_pair *yaml_find(const struct yaml_node *node, struct str key)
{
	if (!node || node->kind != YAML_MAP)
		return NULL;
	for (size_t i = 0; i < node->n; i++)
		if (str_eq(node->pairs[i].key, key))
			return &node->pairs[i];
	return NULL;
}

struct yaml_node *yaml_get(const struct yaml_node *node, struct str key)
{
	const struct yaml_pair *p = yaml_find(node, key);
	return p ? p->val : NULL;
}

const char *yaml_kind_name(enum yaml_kind k)
{
	static const char *const NAMES[] = { "nothing", "true or false", "a whole number", "a number", "text", "a list", "a mapping" };
	return NAMES[k];
}
