/* obs/record.h: one access-log line: key=value pairs, values quoted only when they need it, one line whatever the input.
 *
 *	struct obs_record r;
 *	obs_record_begin(&r, buf);              // buf: the owner's, cleared by the owner
 *	obs_record_str(&r, "worker", url);
 *	obs_record_us(&r, "ttft_ms", ttft_us);  // microseconds in, milliseconds with three decimals out
 *	obs_record_end(&r);                     // newline
 *
 * A field that does not fit in the buffer is left out whole and `cut=1` ends the line (room for it is kept). Empty
 * strings are written as `key=-`. Values keep their bytes except control characters, quotes and backslashes (escaped)
 * and what is no UTF-8 (each such byte becomes \xNN); longer than OBS_FIELD_MAX is cut with "...". */
#ifndef OBS_RECORD_H
#define OBS_RECORD_H

#include "base/buf.h"

enum { OBS_FIELD_MAX = 512 };
struct obs_record { struct buf *out; bool cut, first; };

void obs_record_begin(struct obs_record *r, struct buf *out);
void obs_record_str(struct obs_record *r, const char *key, struct str v);
void obs_record_u64(struct obs_record *r, const char *key, uint64_t v);
void obs_record_i64(struct obs_record *r, const char *key, int64_t v);
void obs_record_us(struct obs_record *r, const char *key, int64_t us);     /* negative = not known: "-" */
void obs_record_end(struct obs_record *r);

#endif
