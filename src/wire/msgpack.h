/* wire/msgpack.h: MessagePack, read through a bounded cursor and written into a buffer.
 *
 * Reading: nothing is allocated or copied, strings are slices of the input. A container is read as its header alone
 * (`n` elements follow, a map has n pairs); the caller reads on. Before a count is believed it is held against the bytes
 * that are left, so five hostile bytes cannot ask for gigabytes. msgpack_skip() does not recurse: depth costs nothing.
 * Every fault is ERR_SYNTAX (cut short, or the byte 0xc1); after one the cursor stands where the value began.
 * Writing: shortest integer form, as the common encoders do; the first failure (buffer full) sticks in `err` and the
 * rest is dropped, so a writer is checked once at its end.
 * Source: the MessagePack specification. Pure. */
#ifndef WIRE_MSGPACK_H
#define WIRE_MSGPACK_H

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

enum msgpack_type {
	MSGPACK_NIL,
	MSGPACK_BOOL,
	MSGPACK_UINT,    /* any integer >= 0, however it was sent */
	MSGPACK_INT,     /* a negative integer */
	MSGPACK_FLOAT,
	MSGPACK_STR,
	MSGPACK_BIN,
	MSGPACK_EXT,     /* s is its payload */
	MSGPACK_ARRAY,
	MSGPACK_MAP
};

struct msgpack_val {
	enum msgpack_type type;
	uint32_t n;          /* array: elements; map: pairs */
	union {
		bool b;
		uint64_t u;
		int64_t i;
		double f;
		struct str s;
	};
};

struct msgpack_cur {
	const uint8_t *p, *end;
};

struct msgpack_cur msgpack_cur(struct str s);
static inline size_t msgpack_left(const struct msgpack_cur *c) { return (size_t)(c->end - c->p); }
must_use enum err msgpack_read_any(struct msgpack_cur *c, struct msgpack_val *ret_v);
/* The next value. Small numbers, nil and short strings are most of what comes: they are read in line. */
must_use static inline enum err msgpack_read(struct msgpack_cur *c, struct msgpack_val *ret_v)
{
	size_t left = msgpack_left(c);
	uint8_t form = left ? *c->p : 0xc1;
	if (form < 0x80) {
		*ret_v = (struct msgpack_val){ .type = MSGPACK_UINT, .u = form };
		c->p++;
		return ERR_OK;
	}
	if ((form & 0xe0) == 0xa0 && left > (form & 0x1fu)) {
		*ret_v = (struct msgpack_val){ .type = MSGPACK_STR, .s = { (const char *)c->p + 1, form & 0x1f } };
		c->p += 1 + (form & 0x1f);
		return ERR_OK;
	}
	if (form == 0xc0) {
		*ret_v = (struct msgpack_val){ .type = MSGPACK_NIL };
		c->p++;
		return ERR_OK;
	}
	return msgpack_read_any(c, ret_v);
}
/* Over one whole value with everything inside it. */
must_use enum err msgpack_skip(struct msgpack_cur *c);
/* The next n values as numbers below 2^32 (token ids), fast. ERR_RANGE if one is something else; the cursor then stands
 * anywhere inside them. */
must_use enum err msgpack_read_u32s(struct msgpack_cur *c, uint32_t *ret, size_t n);

struct msgpack_out {
	struct buf *b;       /* borrowed */
	enum err err;        /* the first failure */
};

static inline struct msgpack_out msgpack_out(struct buf *b) { return (struct msgpack_out){ b, ERR_OK }; }
void msgpack_write_nil(struct msgpack_out *o);
void msgpack_write_bool(struct msgpack_out *o, bool v);
void msgpack_write_uint(struct msgpack_out *o, uint64_t v);
void msgpack_write_int(struct msgpack_out *o, int64_t v);
void msgpack_write_float(struct msgpack_out *o, double v);
void msgpack_write_str(struct msgpack_out *o, struct str s);
void msgpack_write_bin(struct msgpack_out *o, struct str s);
void msgpack_write_array(struct msgpack_out *o, uint32_t n);    /* then n values */
void msgpack_write_map(struct msgpack_out *o, uint32_t n);      /* then n times key, value */

#endif
