/* jinja/from_json.h: a parsed JSON value as a template value. Strings are copied into the arena. NULL gives undefined. */
#ifndef JINJA_FROM_JSON_H
#define JINJA_FROM_JSON_H

#include "jinja/value.h"
#include "wire/json.h"

struct jinja_val jinja_from_json(struct arena *a, const struct json_val *v);

#endif
