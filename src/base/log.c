/* log.c: key=value lines, one write each. */
#include "base/log.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
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

static void put_digits(char *to, int n, int v)
{
	while (n--) {
		to[n] = (char)('0' + v % 10);
		v /= 10;
	}
}

/* By hand: access lines have one each. */
struct str log_time(int64_t unix_us, char room[LOG_TIME_BYTES])
{
	time_t s = (time_t)(unix_us / 1000000);
	struct tm tm;
	gmtime_r(&s, &tm);
	memcpy(room, "0000-00-00T00:00:00.000Z", LOG_TIME_BYTES);
	put_digits(room, 4, tm.tm_year + 1900);
	put_digits(room + 5, 2, tm.tm_mon + 1);
	put_digits(room + 8, 2, tm.tm_mday);
	put_digits(room + 11, 2, tm.tm_hour);
	put_digits(room + 14, 2, tm.tm_min);
	put_digits(room + 17, 2, tm.tm_sec);
	put_digits(room + 20, 3, (int)(unix_us / 1000 % 1000));
	return (struct str){ room, LOG_TIME_BYTES };
}

static void clean(char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)p[i] < ' ' || p[i] == 127)
			p[i] = '?';
}

/* ---- writing: a pipe that nobody reads must not stop a loop -------------------------------------------------- */

enum { PIECE_BYTES = 4096 };    /* PIPE_BUF: a pipe that polls as writable takes so much at once */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t dropped;        /* lines, under the lock: without it two threads would share the room that one poll saw */

/* False: it would block. An error is as good as written: there is nobody to tell. */
static bool put(const char *p, size_t n)
{
	struct pollfd out = { .fd = STDERR_FILENO, .events = POLLOUT };
	int ready;
	do
		ready = poll(&out, 1, 0);
	while (ready < 0 && errno == EINTR);
	return ready != 0 && (write(STDERR_FILENO, p, n) >= 0 || errno != EAGAIN);
}

static size_t begin_line(char *to, size_t cap, enum log_level level, const char *event)
{
	char room[LOG_TIME_BYTES];
	struct timespec ts;
	clock_gettime(CLOCK_REALTIME, &ts);
	struct str at = log_time((int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000, room);
	return (size_t)snprintf(to, cap, "ts=%.*s level=%s event=%s ", STR_ARG(at), names[level], event);
}

static void say_dropped(void)
{
	char line[160];
	size_t n = begin_line(line, sizeof(line), LOG_LEVEL_WARN, "log_dropped");
	n += (size_t)snprintf(line + n, sizeof(line) - n, "lines=%llu why=\"standard error was not read\"\n", (unsigned long long)dropped);
	if (put(line, n))
		dropped = 0;
}

/* The longest run of whole lines that one write may take; a piece of a line that is longer. */
static size_t piece_of(struct str s)
{
	size_t most = MIN(s.n, (size_t)PIECE_BYTES), n = most;
	while (n > 0 && s.p[n - 1] != '\n')
		n--;
	return n > 0 ? n : most;
}

void log_write(struct str lines)
{
	pthread_mutex_lock(&lock);
	while (lines.n > 0) {
		size_t n = piece_of(lines);
		if (dropped > 0)
			say_dropped();
		if (dropped > 0 || !put(lines.p, n))
			for (size_t i = 0; i < n; i++)
				dropped += lines.p[i] == '\n';
		lines = str_from(lines.p + n, lines.n - n);
	}
	pthread_mutex_unlock(&lock);
}

void log_line(enum log_level level, const char *event, const char *fmt, ...)
{
	char line[PIECE_BYTES];
	size_t n = begin_line(line, sizeof(line), level, event);
	va_list ap;
	va_start(ap, fmt);
	int m = vsnprintf(line + n, sizeof(line) - n - 1, fmt, ap);
	va_end(ap);
	n = m < 0 ? n : MIN(n + (size_t)m, sizeof(line) - 2);
	clean(line, n);
	line[n++] = '\n';
	log_write(str_from(line, n));
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
