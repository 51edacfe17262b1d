/* text/chat_probe.h: what a worker finds out by trying its template. Private to the room. */
#ifndef TEXT_CHAT_PROBE_H
#define TEXT_CHAT_PROBE_H

#include "text/chat.h"

/* It renders system messages between others, with next to no variables, and merges them into the first when the template raises. */
enum text_inline_system text_probe_inline(const struct jinja_template *t, struct str source);
/* It renders every effort: "low" stands for no thinking when "none" raises, or gives the same prompt as another, else "none". Empty:
 * a trial that cannot be repeated here. */
struct str text_probe_disabled_effort(const struct text_chat *c);

#endif
