/* text/day.h: the civil day of a Unix time, in UTC: what a template that prints today's date gets. Workers run on UTC unless told
 * otherwise; one that does not is found by the comparison with its own ids. Pure. */
#ifndef TEXT_DAY_H
#define TEXT_DAY_H

#include "jinja/jinja.h"

struct jinja_time text_day_of(int64_t unix_s);
/* Within 30 s of midnight two clocks may name different days. */
bool text_day_is_near_its_end(int64_t unix_s);

#endif
