/* base/log.h: one line per event on standard error: ts=… level=… event=WORD key=value…
 * Only edge, tool and cmd call it (rooms below return errors). Thread-safe: one write per line, which never waits: lines that standard
 * error does not take at once are dropped and counted, and log_dropped lines=N says so when it takes them again. Control bytes become
 * '?', so that no value begins a line of its own. Never pass secrets.
 *
 *   LOG_INFO("worker_up", "worker=%s models=%d", url, n);
 *   LOG_WARN_EVERY(10, "scrape_failed", ...)   at most one line per call site per 10 s, with suppressed=N when some were cut */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include "base/str.h"

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

struct log_gate { int64_t next_s; uint64_t cut; };   /* per call site; racing threads may lose a count */

bool log_level_of(struct str name, enum log_level *ret_level);   /* error, warn, info, debug */
void log_set_level(enum log_level level);
bool log_on(enum log_level level);
void log_line(enum log_level level, const char *event, const char *fmt, ...) printf_like(3, 4);
/* What stands behind ts=, in UTC with milliseconds: 2026-01-31T23:59:59.999Z. */
enum { LOG_TIME_BYTES = 24 };
struct str log_time(int64_t unix_us, char room[LOG_TIME_BYTES]);
void log_write(struct str lines);   /* whole lines that somebody else made (access lines); several go out in one write */
bool log_pass(struct log_gate *g, int every_s, uint64_t *ret_cut);
/* Every value with a space in it is quoted: a line is nothing but key=value pairs. LOG_Q(s) writes one that is not ours to choose
 * (names, paths, messages): %s in the format, no quotes around it. */
enum { LOG_Q_BYTES = 256 };
#define LOG_Q(s) log_quote(s, (char[LOG_Q_BYTES]){ 0 }, LOG_Q_BYTES)
/* Writes s into out[cap] (NUL-terminated) as a log value: quoted when it has spaces, control bytes escaped, cut with "…". */
const char *log_quote(struct str s, char *out, size_t cap);

#define LOG_AT(level, event, ...) (log_on(level) ? log_line(level, event, __VA_ARGS__) : (void)0)
#define LOG_ERROR(event, ...) LOG_AT(LOG_LEVEL_ERROR, event, __VA_ARGS__)
#define LOG_WARN(event, ...) LOG_AT(LOG_LEVEL_WARN, event, __VA_ARGS__)
#define LOG_INFO(event, ...) LOG_AT(LOG_LEVEL_INFO, event, __VA_ARGS__)
#define LOG_DEBUG(event, ...) LOG_AT(LOG_LEVEL_DEBUG, event, __VA_ARGS__)
#define LOG_WARN_EVERY(s, event, fmt, ...)                                                                          \
	do {                                                                                                        \
		static struct log_gate gate_;                                                                       \
		uint64_t cut_;                                                                                      \
		if (log_on(LOG_LEVEL_WARN) && log_pass(&gate_, s, &cut_))                                           \
			log_line(LOG_LEVEL_WARN, event, fmt " suppressed=%llu", __VA_ARGS__, (unsigned long long)cut_); \
	} while (0)

#endif
