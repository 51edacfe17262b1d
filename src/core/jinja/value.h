/* jinja/value.h: values of the template language: Python's None, bool, int, float, str, list, tuple, dict, and Jinja's
 * undefined, namespace, loop and callables. Passed by value; what they point to lives in an arena. Strings are UTF-8 and
 * count in code points. Lists and dicts are never changed after they were made (the sandbox is immutable). */
#ifndef JINJA_VALUE_H
#define JINJA_VALUE_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

enum jinja_type {
	JINJA_UNDEFINED, JINJA_NONE, JINJA_BOOL, JINJA_INT, JINJA_BIGINT, JINJA_FLOAT, JINJA_STR, JINJA_LIST, JINJA_TUPLE, JINJA_DICT,
	JINJA_ITER, JINJA_NAMESPACE, JINJA_LOOP, JINJA_MACRO, JINJA_METHOD, JINJA_GLOBAL
};

struct jinja_list;
struct jinja_iter;
struct jinja_dict;
struct jinja_loop;
struct jinja_macro;
struct jinja_method;
struct jinja_val {
	enum jinja_type type;
	bool markup;                             /* STR: marked by `safe`; what is added to it with + is escaped */
	union {
		bool b;
		int64_t i;
		double f;
		struct str s;                    /* STR; BIGINT: the digits; UNDEFINED: its name for messages */
		const struct jinja_list *list;   /* LIST, TUPLE */
		const struct jinja_dict *dict;
		struct jinja_iter *iter;
		struct jinja_dict *space;        /* NAMESPACE */
		const struct jinja_loop *loop;
		const struct jinja_macro *macro;
		const struct jinja_method *method;
		int global;
	};
};
struct jinja_list { size_t n; const struct jinja_val *p; };
/* What Python has beside lists: a generator (map, select: true whatever it holds, to be gone through once), a view of a dict
 * (items(), keys(), values()) and a range. What a list could do and these cannot is refused or fails as there. */
enum jinja_iter_kind { JINJA_GENERATOR, JINJA_VIEW, JINJA_RANGE };
struct jinja_iter { enum jinja_iter_kind kind; bool used; const struct jinja_list *list; };
struct jinja_pair { struct jinja_val key, val; };
struct jinja_dict { size_t n, cap; struct jinja_pair *p; };

#define JINJA_V_NONE ((struct jinja_val){ .type = JINJA_NONE })
static inline struct jinja_val jinja_bool(bool b) { return (struct jinja_val){ .type = JINJA_BOOL, .b = b }; }
static inline struct jinja_val jinja_int(int64_t i) { return (struct jinja_val){ .type = JINJA_INT, .i = i }; }
static inline struct jinja_val jinja_float(double f) { return (struct jinja_val){ .type = JINJA_FLOAT, .f = f }; }
static inline struct jinja_val jinja_str(struct str s) { return (struct jinja_val){ .type = JINJA_STR, .s = s }; }
static inline struct jinja_val jinja_undefined(struct str name) { return (struct jinja_val){ .type = JINJA_UNDEFINED, .s = name }; }
struct jinja_val jinja_list_of(struct arena *a, const struct jinja_val *p, size_t n);   /* copies the handles */
struct jinja_val jinja_tuple_of(struct arena *a, const struct jinja_val *p, size_t n);
struct jinja_val jinja_iter_of(struct arena *a, enum jinja_iter_kind kind, const struct jinja_val *p, size_t n);
struct jinja_val jinja_dict_new(struct arena *a, size_t cap);
void jinja_dict_put(struct arena *a, struct jinja_val dict, struct jinja_val key, struct jinja_val val);   /* while it is being made */
void jinja_dict_add(struct arena *a, struct jinja_val dict, struct jinja_val key, struct jinja_val val);   /* a key that is not there */
/* The value under a key, or NULL. */
const struct jinja_val *jinja_dict_get(const struct jinja_dict *d, const struct jinja_val *key);
const struct jinja_val *jinja_dict_get_str(const struct jinja_dict *d, struct str key);
static inline struct jinja_val *jinja_dict_find_str(const struct jinja_dict *d, struct str key)   /* the same, in line */
{
	for (size_t i = 0; i < d->n; i++)
		if (d->p[i].key.type == JINJA_STR && str_eq(d->p[i].key.s, key))
			return &d->p[i].val;
	return NULL;
}

bool jinja_truthy_of_any(const struct jinja_val *v);
static inline bool jinja_truthy(const struct jinja_val *v) { return v->type == JINJA_BOOL ? v->b : jinja_truthy_of_any(v); }
/* Python's ==. What it costs is counted; beyond the maximum, or nested too deep, it is given up (`over`), whatever it says then. */
struct jinja_toil { uint64_t steps, max_steps; unsigned depth; bool over; };
bool jinja_equal(const struct jinja_val *a, const struct jinja_val *b, struct jinja_toil *t);
bool jinja_is_number(const struct jinja_val *v);             /* int, float, bool */
double jinja_as_f64(const struct jinja_val *v);
const char *jinja_type_name(const struct jinja_val *v);      /* Python's word, for messages */

/* str(v) and repr(v) as Python prints them. LIMIT: the buffer is full or the nesting deeper than 100. */
must_use enum err jinja_print(struct buf *b, const struct jinja_val *v);
must_use enum err jinja_repr(struct buf *b, const struct jinja_val *v);
must_use enum err jinja_print_f64(struct buf *b, double f);   /* Python's float repr */
struct jinja_json_opts { bool ensure_ascii; int indent; struct str item_sep, key_sep; bool sort_keys; };   /* indent -1: one line */
/* json.dumps. BAD_REQUEST: something json cannot say (undefined, a callable). */
must_use enum err jinja_print_json(struct buf *b, const struct jinja_val *v, const struct jinja_json_opts *o);

/* Code points. */
struct str jinja_slice_cp(struct str s, size_t from, size_t n);
bool jinja_is_space(uint32_t cp);                             /* Python's str.isspace set, as strip() uses it */
struct str jinja_strip(struct str s, bool left, bool right);

#endif
