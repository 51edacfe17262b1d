/* wire/sse.h: splits an event stream (text/event-stream) that arrives cut anywhere into whole events, with their exact
 * bytes, so that an event can be passed on byte for byte or dropped whole.
 *
 *   sse_feed(&s, piece);
 *   while ((e = sse_next(&s, &ev)) == ERR_OK) forward(ev.raw);      // AGAIN: all is used up (the rest is kept inside)
 *   ... at the end of the body: if (sse_end(&s, &ev)) forward(ev.raw);
 *
 * The raw slices of all events, joined, are the fed bytes: nothing is lost or changed, for every way of cutting.
 * An event ends with its blank line. Comments, blank keep-alive lines and blocks without data come as events too, with
 * has_data = false. LF, CRLF and CR line ends, a BOM at the start, `data:` with or without the space, several data lines
 * (joined by LF). In a CR-only stream a LF right behind the ending CR counts to the next event.
 * Slices are valid until the next sse_next, sse_feed, sse_end or sse_done; those in the piece also only as long as the piece.
 * A piece must be used up (AGAIN) before the next is fed. Pure. */
#ifndef WIRE_SSE_H
#define WIRE_SSE_H

#include "base/buf.h"

struct sse {
	struct buf held;        /* the beginning of an event whose end has not come */
	struct buf joined;      /* data of several lines */
	struct str in;          /* what of the piece is unread */
	size_t scanned;         /* bytes of the current event already looked at */
	size_t line_at;         /* where the current line begins in the current event */
	bool started;           /* past the first event: no BOM any more */
	bool lone_cr;           /* the current event's last line ended in CR alone */
	bool return_held;       /* the event handed out lies in held: drop it at the next call */
};

struct sse_event {
	struct str raw;         /* every byte, blank line included */
	struct str data;        /* value of the data lines, joined by LF */
	struct str event;       /* value of the last `event:` line, or empty */
	struct str id;
	bool has_data;          /* at least one data line */
	bool whole;             /* false: the body ended without the blank line (sse_end) */
};

void sse_init(struct sse *s, size_t max_event_bytes);       /* 1 MiB and more is usual */
void sse_done(struct sse *s);
void sse_feed(struct sse *s, struct str piece);
/* OK: *ret_ev. AGAIN: feed more. LIMIT: an event is longer than the limit; take the rest with sse_take_rest and stop splitting. */
must_use enum err sse_next(struct sse *s, struct sse_event *ret_ev);
/* The body ended: what was left, if anything, as a last event. */
bool sse_end(struct sse *s, struct sse_event *ret_ev);
/* After LIMIT: the bytes held and the unread rest of the piece, in this order; the splitter is empty afterwards. */
void sse_take_rest(struct sse *s, struct str *ret_held, struct str *ret_unread);
static inline size_t sse_held_bytes(const struct sse *s) { return s->held.n; }

#endif
