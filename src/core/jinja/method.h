/* jinja/method.h: string work that filters and methods share. Private to the room. */
#ifndef JINJA_METHOD_H
#define JINJA_METHOD_H

#include "jinja/run.h"

enum jinja_casing { JINJA_LOWER, JINJA_UPPER, JINJA_TITLE, JINJA_CAPITALIZE };
/* ASCII only: other letters are refused, since Unicode's casing depends on the Python. */
must_use enum err jinja_case(struct jinja_run *r, struct str s, enum jinja_casing how, struct str *ret_s);
must_use enum err jinja_replace(struct jinja_run *r, struct str s, struct str from, struct str to, int64_t count, struct str *ret_s);   /* count < 0: all */
must_use enum err jinja_join(struct jinja_run *r, const struct jinja_list *l, struct str sep, bool strings_only, struct str *ret_s);
/* s.format(args). */
must_use enum err jinja_format(struct jinja_run *r, struct str s, const struct jinja_args *a, struct str *ret_s);
/* strip(chars): cuts code points that are in chars. LIMIT: that many against that many. */
struct jinja_sides { bool left, right; };
must_use enum err jinja_strip_chars(struct jinja_run *r, struct str s, struct str chars, struct jinja_sides sides, struct str *ret_s);
bool jinja_method_of_dicts(struct str name);
struct jinja_val jinja_dict_items(struct jinja_run *r, const struct jinja_dict *d, enum jinja_iter_kind kind);

#endif
