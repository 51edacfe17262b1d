/* jinja/jinja.h: chat templates: a Jinja interpreter with Python's semantics for what chat templates use.
 *
 * Compile once (immutable, shareable between threads), render many times. The environment is the one that model servers
 * give chat templates: trim_blocks, lstrip_blocks, loop controls, the `generation` tag, json.dumps behind tojson,
 * raise_exception, strftime_now, an immutable sandbox (list.append and the like are refused). A construct, filter, test or
 * method that is not implemented is refused by name with ERR_UNSUPPORTED: the caller asks a worker instead. Never silently
 * wrong.
 *
 * Errors of rendering: BAD_REQUEST: the template raised, or Python would have; UNSUPPORTED: it needs something we do not
 * have; LIMIT: steps, depth, memory or output. The fault says what, with the template's line; it holds text of the
 * template or of raise_exception, so it goes to the client, not into logs.
 *
 * Pure: the clock comes in with the render options. Source: Jinja2 3.1 behaviour, the shared facts tokenizers.md section 3. */
#ifndef JINJA_JINJA_H
#define JINJA_JINJA_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "jinja/value.h"

struct jinja_template;
struct jinja_fault { unsigned line; char text[256]; };

/* SYNTAX: no such template, or not UTF-8; UNSUPPORTED; LIMIT: longer than 1 MiB or nested too deep. Free with jinja_free. */
must_use enum err jinja_compile(struct str source, struct jinja_template **ret_t, struct jinja_fault *ret_fault);
void jinja_free(struct jinja_template *t);

/* A civil time for strftime_now. */
struct jinja_time { int year, month, day, hour, minute, second, weekday, yearday; };   /* month 1-12, weekday 0 = Sunday, yearday 1-366 */

struct jinja_render_opts {
	const struct jinja_val *vars;    /* a dict */
	struct jinja_time now;
	bool day_only;                   /* refuse what strftime_now could print that is finer than a day */
	uint64_t max_steps;              /* 0 = 2,000,000 */
	size_t max_output_bytes;         /* 0 = the buffer's own limit */
};
/* Appends to out. The scratch arena holds temporaries (rewind it afterwards); its max_bytes bounds them (0 = 256 MiB). */
must_use enum err jinja_render(const struct jinja_template *t, const struct jinja_render_opts *o, struct arena *scratch, struct buf *out, struct jinja_fault *ret_fault);

/* Does it call strftime_now somewhere? Then its output may depend on the day. */
bool jinja_uses_clock(const struct jinja_template *t);
/* Is this name written as a variable anywhere? */
bool jinja_mentions(const struct jinja_template *t, struct str name);
/* vLLM's content format detection (0.32): true ("openai") when a for loop runs over the content of a message variable, over
 * a macro's parameter that is given one, or, outside of macros, over a variable `content`. */
bool jinja_iterates_content(const struct jinja_template *t);
/* Older workers know the first of these rules only: would they find something else? */
bool jinja_content_disputed(const struct jinja_template *t);

#endif
