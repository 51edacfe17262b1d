/* base/mono.h: a point on the monotonic clock, in microseconds, wrapped so that it cannot be mixed with a duration.
 * Only net/io reads the clock; everyone else is handed `now`. */
#ifndef BASE_MONO_H
#define BASE_MONO_H

#include "base/base.h"

struct mono {
	int64_t us;
};

#define MONO_NEVER ((struct mono){ INT64_MAX })

static inline struct mono mono_add_us(struct mono t, int64_t us) { return (struct mono){ t.us > INT64_MAX - us && us > 0 ? INT64_MAX : t.us + us }; }
static inline int64_t mono_diff_us(struct mono later, struct mono earlier) { return later.us - earlier.us; }
static inline bool mono_before(struct mono a, struct mono b) { return a.us < b.us; }

#endif
