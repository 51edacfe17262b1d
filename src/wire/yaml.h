/* wire/yaml.h: configuration text -> a tree in which every key and value knows its line and column.
 *
 * From the YAML library's events. Typing follows YAML 1.2's core schema by our own table: null ~ (and empty), true/false
 * in their three spellings, decimal, 0o and 0x integers, floats, .inf, .nan; yes, on, 0777, 1_000 and dates stay strings;
 * a quoted scalar is always a string. Refused: anchors used as aliases, depth > 64, text > 1 MB, keys that are not
 * scalars, a key twice in one mapping. Several documents a file.
 *
 * yaml_file_read never fails as a call: faults are in the file, with their places, as many as can be found (a syntax error
 * ends the reading; the documents before it stay readable). Owner: the caller; the tree and its bytes live in the file.
 * (yaml_read and yaml_free are names inside the library itself: a program that defined them would replace them.) */
#ifndef WIRE_YAML_H
#define WIRE_YAML_H

#include "base/str.h"

enum { YAML_MAX_DEPTH = 64, YAML_MAX_BYTES = 1 << 20, YAML_MAX_FAULTS = 64 };

enum yaml_kind { YAML_NULL, YAML_BOOL, YAML_INT, YAML_FLOAT, YAML_STRING, YAML_SEQ, YAML_MAP };

struct yaml_pos { unsigned line, col; };           /* both from 1 */

struct yaml_pair;
struct yaml_node {
	enum yaml_kind kind;
	struct yaml_pos pos;
	struct str text;                           /* scalars: as written, quotes and escapes undone */
	bool quoted;
	union {
		bool b;
		int64_t i;                         /* an integer outside int64 is a YAML_FLOAT */
		double f;
	};
	size_t n;                                  /* children */
	struct yaml_node **items;                  /* YAML_SEQ */
	struct yaml_pair *pairs;                   /* YAML_MAP, in order */
};
struct yaml_pair {
	struct yaml_pos pos;                       /* of the key */
	struct str key;
	struct yaml_node *val;
};
struct yaml_fault { struct yaml_pos pos; const char *what; };

struct yaml_file;
struct yaml_file *yaml_file_read(struct str text);
void yaml_file_free(struct yaml_file *f);
size_t yaml_docs(const struct yaml_file *f);
struct yaml_node *yaml_doc(const struct yaml_file *f, size_t i);
const struct yaml_fault *yaml_faults(const struct yaml_file *f, size_t *ret_n);   /* ordered by place */

/* The value of a key in a mapping; NULL when absent or node is no mapping. */
struct yaml_node *yaml_get(const struct yaml_node *node, struct str key);
const struct yaml_pair *yaml_find(const struct yaml_node *node, struct str key);
const char *yaml_kind_name(enum yaml_kind k);      /* "a number", "a list", … for messages */

#endif
