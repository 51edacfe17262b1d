/* log.c: key=value lines, one write each. */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static _Atomic int current = LOG_LEVEL_INFO;
static const char *const names[] = { "error", "warn", "info", "debug" };

bool log_level_of(struct str name, enum log_level *ret_level)
{
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (str_eq(name, str_of(names[i]))) {
			*ret_level = (enum log_level)i;
			return true;
		}
	return false;
}

void log_set_level(enum log_level level) { current = (int)level; }
bool log_on(enum log_level level) { return (int)level <= current; }

void log_line(enum log_level level, const char *event, const char *fmt, ...)
{
	char line[4096];
	struct timespec ts;
	struct tm tm;
	clock_gettime(CLOCK_REALTIME, &ts);
	gmtime_r(&ts.tv_sec, &tm);
	size_t n = strftime(line, sizeof(line), "ts=%Y-%m-%dT%H:%M:%S", &tm);
	n += (size_t)snprintf(line + n, sizeof(line) - n, ".%03ldZ level=%s event=%s ", ts.tv_nsec / 1000000, names[level], event);
	va_list ap;
	va_start(ap, fmt);
	int m = vsnprintf(line + n, sizeof(line) - n - 1, fmt, ap);
	va_end(ap);
	n = m < 0 ? n : MIN(n + (size_t)m, sizeof(line) - 2);
	line[n++] = '\n';
	if (write(STDERR_FILENO, line, n) < 0)
		return;   /* nobody to tell */
}

bool log_pass(struct log_gate *g, int every_s, uint64_t *ret_cut)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	if (ts.tv_sec < g->next_s) {
		g->cut++;
		return false;
	}
	*ret_cut = g->cut;
	g->cut = 0;
	g->next_s = ts.tv_sec + every_s;
	return true;
}

const char *log_quote(struct str s, char *out, size_t cap)
{
	static const char hex[] = "0123456789abcdef";
	bool quote = s.n == 0;
	for (size_t i = 0; i < s.n && !quote; i++)
		quote = (unsigned char)s.p[i] <= ' ' || s.p[i] == '"' || s.p[i] == '=' || s.p[i] == '\\' || s.p[i] == 127;
	size_t n = 0;
	if (quote)
		out[n++] = '"';
	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];
		if (n + 9 > cap) {
			memcpy(out + n, "…", 3);
			n += 3;
			break;
		}
		if (c == '"' || c == '\\') {
			out[n++] = '\\';
			out[n++] = (char)c;
		} else if (c < ' ' || c == 127) {
			out[n++] = '\\';
			out[n++] = 'x';
			out[n++] = hex[c >> 4];
			out[n++] = hex[c & 15];
		} else {
			out[n++] = (char)c;
		}
	}
	if (quote)
		out[n++] = '"';
	out[n] = 0;
	return out;
}
