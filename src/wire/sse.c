/* sse.c: finding the ends of events and reading their fields.
 *
 * Only whole events are handed out, so most of the time (a worker writes one event a chunk) they lie in the piece that
 * was fed and nothing is copied; the beginning of a cut event is moved to `held`. Where an event ends must not depend
 * on the cuts: the CR of a blank line waits for the LF that may follow, except after a line that ended in CR alone. */
#include "wire/sse.h"

#include <string.h>

#include "base/must.h"

void sse_init(struct sse *s, size_t max_event_bytes)
{
	*s = (struct sse){ 0 };
	buf_init(&s->held, max_event_bytes);
	buf_init(&s->joined, max_event_bytes);
}

void sse_done(struct sse *s)
{
	buf_done(&s->held);
	buf_done(&s->joined);
	s->in = (struct str){ 0 };
}

void sse_feed(struct sse *s, struct str piece)
{
	must(s->in.n == 0);
	s->in = piece;
}

/* The end of the first line of t from `at` on: place of its CR or LF, or t.n. In windows: in a stream of CR lines a search
 * for LF alone would read all the rest again for every line. */
static size_t line_end(struct str t, size_t at)
{
	enum { WINDOW = 512 };
	while (at < t.n) {
		size_t n = MIN(t.n - at, (size_t)WINDOW);
		const char *lf = memchr(t.p + at, '\n', n);
		n = lf ? (size_t)(lf - t.p) - at : n;
		const char *cr = n ? memchr(t.p + at, '\r', n) : NULL;
		if (cr)
			return (size_t)(cr - t.p);
		at += n;
		if (lf)
			return at;
	}
	return at;
}

/* Looks for the blank line in t, the bytes of the current event so far. Returns the event's length, or 0 when t has no
 * whole event yet (or needs one more byte to know whether the CR that ends it belongs to a CRLF). */
static size_t event_length(struct sse *s, struct str t)
{
	if (!s->started && s->line_at == 0 && str_starts(t, STR("\xef\xbb\xbf")))
		s->line_at = 3;
	for (;;) {
		size_t end = s->scanned = line_end(t, MAX(s->scanned, s->line_at));
		if (end == t.n)
			return 0;
		bool cr = t.p[end] == '\r', blank = end == s->line_at;
		if (cr && blank && s->lone_cr)
			return end + 1;
		if (cr && end + 1 == t.n)
			return 0;
		bool crlf = cr && t.p[end + 1] == '\n';
		s->lone_cr = cr && !crlf;
		s->line_at = end + 1 + crlf;
		if (blank)
			return s->line_at;
	}
}

static void read_field(struct sse *s, struct str line, struct sse_event *ev)
{
	struct str name, value;
	str_cut(line, ':', &name, &value);
	if (value.n && value.p[0] == ' ')
		value = str_skip(value, 1);
	if (str_eq(name, STR("data"))) {
		/* joined is as large as an event may be, and an event's data are shorter than its bytes */
		if (ev->has_data) {
			if (s->joined.n == 0)
				must(buf_add(&s->joined, ev->data) == ERR_OK);
			must(buf_add_byte(&s->joined, '\n') == ERR_OK && buf_add(&s->joined, value) == ERR_OK);
			ev->data = buf_str(&s->joined);
		} else {
			ev->data = value;
		}
		ev->has_data = true;
	} else if (str_eq(name, STR("event"))) {
		ev->event = value;
	} else if (str_eq(name, STR("id"))) {
		ev->id = value;
	}
}

static void read_event(struct sse *s, struct str raw, bool whole, struct sse_event *ret_ev)
{
	struct sse_event ev = { .raw = raw, .whole = whole, .data = STR("") };
	struct str t = raw;
	if (!s->started && str_starts(t, STR("\xef\xbb\xbf")))
		t = str_skip(t, 3);
	buf_clear(&s->joined);
	while (t.n) {
		size_t end = line_end(t, 0);
		struct str line = str_sub(t, 0, end);
		if (line.n && line.p[0] != ':')
			read_field(s, line, &ev);
		bool crlf = end + 1 < t.n && t.p[end] == '\r' && t.p[end + 1] == '\n';
		t = str_skip(t, end + 1 + crlf);
	}
	s->started = true;
	s->scanned = s->line_at = 0;
	s->lone_cr = false;
	*ret_ev = ev;
}

static void drop_returned(struct sse *s)
{
	if (s->return_held)
		buf_clear(&s->held);
	s->return_held = false;
}

/* The event lies in the piece alone. */
static enum err next_in_piece(struct sse *s, struct sse_event *ret_ev)
{
	size_t n = event_length(s, s->in);
	if (n > s->held.max)
		return ERR_LIMIT;
	if (n) {
		struct str raw = str_sub(s->in, 0, n);
		s->in = str_skip(s->in, n);
		read_event(s, raw, true, ret_ev);
		return ERR_OK;
	}
	TRY(buf_add(&s->held, s->in));
	s->in = (struct str){ 0 };
	return ERR_AGAIN;
}

/* The event began in an earlier piece: the new bytes are added to it, a bounded step at a time so that a big piece full
 * of further events is not copied, and what turns out to be too much is given back. */
static enum err next_held(struct sse *s, struct sse_event *ret_ev)
{
	enum { STEP = 4096 };
	while (s->in.n) {
		size_t before = s->held.n, room = s->held.max - before, take = MIN(MIN(s->in.n, (size_t)STEP), room);
		if (take == 0)
			return ERR_LIMIT;
		TRY(buf_add(&s->held, str_sub(s->in, 0, take)));
		size_t n = event_length(s, buf_str(&s->held));
		if (n == 0) {
			s->in = str_skip(s->in, take);
			continue;
		}
		must(n >= before);
		s->in = str_skip(s->in, n - before);
		s->held.n = n;
		s->return_held = true;
		read_event(s, str_sub(buf_str(&s->held), 0, n), true, ret_ev);
		return ERR_OK;
	}
	return ERR_AGAIN;
}

enum err sse_next(struct sse *s, struct sse_event *ret_ev)
{
	drop_returned(s);
	if (s->in.n == 0)
		return ERR_AGAIN;
	return s->held.n ? next_held(s, ret_ev) : next_in_piece(s, ret_ev);
}

bool sse_end(struct sse *s, struct sse_event *ret_ev)
{
	drop_returned(s);
	must(s->in.n == 0);
	if (s->held.n == 0)
		return false;
	s->return_held = true;
	/* a CR of a blank line that waited for a LF has none */
	bool whole = s->scanned == s->line_at && s->scanned + 1 == s->held.n;
	read_event(s, buf_str(&s->held), whole, ret_ev);
	return true;
}

void sse_take_rest(struct sse *s, struct str *ret_held, struct str *ret_unread)
{
	drop_returned(s);
	*ret_held = buf_str(&s->held);
	*ret_unread = s->in;
	s->return_held = s->held.n > 0;
	s->in = (struct str){ 0 };
	s->scanned = s->line_at = 0;
}
