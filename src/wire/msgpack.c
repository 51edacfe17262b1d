/* msgpack.c: a reader that trusts no length and a writer of the shortest form. */
#include "wire/msgpack.h"

#include <string.h>

struct msgpack_cur msgpack_cur(struct str s)
{
	const uint8_t *p = (const uint8_t *)s.p;
	return (struct msgpack_cur){ p, p + s.n };
}

/* n bytes (0, 1, 2, 4 or 8), big-endian; the caller has checked that they are there. */
static uint64_t be(const uint8_t *p, size_t n)
{
	uint64_t v = 0;
	if (n == 8) {
		memcpy(&v, p, 8);
		return __builtin_bswap64(v);
	}
	for (size_t i = 0; i < n; i++)
		v = v << 8 | p[i];
	return v;
}

static void set_signed(struct msgpack_val *v, int64_t i)
{
	if (i < 0) {
		v->type = MSGPACK_INT;
		v->i = i;
	} else {
		v->type = MSGPACK_UINT;
		v->u = (uint64_t)i;
	}
}

/* A payload of n bytes behind the header. */
static bool take(struct msgpack_cur *c, size_t n, struct str *ret)
{
	if (n > msgpack_left(c))
		return false;
	*ret = (struct str){ (const char *)c->p, n };
	c->p += n;
	return true;
}

static bool set_bytes(struct msgpack_cur *c, struct msgpack_val *v, enum msgpack_type type, size_t n)
{
	v->type = type;
	return take(c, n, &v->s);
}

static bool set_ext(struct msgpack_cur *c, struct msgpack_val *v, size_t n)
{
	struct str kind;
	return take(c, 1, &kind) && set_bytes(c, v, MSGPACK_EXT, n);
}

/* Each element takes a byte at least, each pair two. */
static bool set_count(const struct msgpack_cur *c, struct msgpack_val *v, enum msgpack_type type, uint64_t n)
{
	v->type = type;
	v->n = (uint32_t)n;
	return (type == MSGPACK_MAP ? n * 2 : n) <= msgpack_left(c);
}

static void set_float(struct msgpack_val *v, size_t n, uint64_t bits)
{
	v->type = MSGPACK_FLOAT;
	if (n == 4) {
		uint32_t half = (uint32_t)bits;
		float f;
		memcpy(&f, &half, 4);
		v->f = (double)f;
	} else {
		memcpy(&v->f, &bits, 8);
	}
}

/* 0xc0..0xdf: how many bytes of length or value follow the first byte. */
static const uint8_t LEN[32] = { 0, 0, 0, 0, 1, 2, 4, 1, 2, 4, 4, 8, 1, 2, 4, 8, 1, 2, 4, 8, 0, 0, 0, 0, 0, 1, 2, 4, 2, 4, 2, 4 };

static int64_t sign_extend(uint64_t x, size_t n_bytes)
{
	unsigned shift = (unsigned)(64 - 8 * n_bytes);
	return (int64_t)(x << shift) >> shift;
}

/* The forms that begin with 0xc0..0xdf; the cursor stands behind that byte. */
static bool read_long(struct msgpack_cur *c, uint8_t b, struct msgpack_val *v)
{
	size_t n = LEN[b - 0xc0];
	if (n > msgpack_left(c))
		return false;
	uint64_t x = be(c->p, n);
	c->p += n;
	switch (b) {
	case 0xc0: v->type = MSGPACK_NIL; return true;
	case 0xc2:
	case 0xc3:
		v->type = MSGPACK_BOOL;
		v->b = b == 0xc3;
		return true;
	case 0xc4:
	case 0xc5:
	case 0xc6: return set_bytes(c, v, MSGPACK_BIN, x);
	case 0xc7:
	case 0xc8:
	case 0xc9: return set_ext(c, v, x);
	case 0xca:
	case 0xcb: set_float(v, n, x); return true;
	case 0xcc:
	case 0xcd:
	case 0xce:
	case 0xcf:
		v->type = MSGPACK_UINT;
		v->u = x;
		return true;
	case 0xd0:
	case 0xd1:
	case 0xd2:
	case 0xd3: set_signed(v, sign_extend(x, n)); return true;
	case 0xd4:
	case 0xd5:
	case 0xd6:
	case 0xd7:
	case 0xd8: return set_ext(c, v, (size_t)1 << (b - 0xd4));
	case 0xd9:
	case 0xda:
	case 0xdb: return set_bytes(c, v, MSGPACK_STR, x);
	case 0xdc:
	case 0xdd: return set_count(c, v, MSGPACK_ARRAY, x);
	case 0xde:
	case 0xdf: return set_count(c, v, MSGPACK_MAP, x);
	default: return false;
	}
}

static bool read_any(struct msgpack_cur *c, struct msgpack_val *v)
{
	if (c->p == c->end)
		return false;
	uint8_t b = *c->p++;
	if (b < 0x80) {
		v->type = MSGPACK_UINT;
		v->u = b;
		return true;
	}
	if (b >= 0xe0) {
		v->type = MSGPACK_INT;
		v->i = (int8_t)b;
		return true;
	}
	if (b >= 0xc0)
		return read_long(c, b, v);
	if (b >= 0xa0)
		return set_bytes(c, v, MSGPACK_STR, b & 0x1f);
	return set_count(c, v, b >= 0x90 ? MSGPACK_ARRAY : MSGPACK_MAP, b & 0x0f);
}

enum err msgpack_read_any(struct msgpack_cur *c, struct msgpack_val *ret_v)
{
	struct msgpack_cur at = *c;
	struct msgpack_val v = { 0 };
	if (!read_any(&at, &v))
		return ERR_SYNTAX;
	*c = at;
	*ret_v = v;
	return ERR_OK;
}

enum err msgpack_skip(struct msgpack_cur *c)
{
	struct msgpack_cur at = *c;
	uint64_t pending = 1;
	while (pending) {
		struct msgpack_val v = { 0 };
		if (pending > msgpack_left(&at) || !read_any(&at, &v))
			return ERR_SYNTAX;
		pending--;
		if (v.type == MSGPACK_ARRAY)
			pending += v.n;
		else if (v.type == MSGPACK_MAP)
			pending += (uint64_t)v.n * 2;
	}
	*c = at;
	return ERR_OK;
}

static enum err read_u32(struct msgpack_cur *c, uint32_t *ret)
{
	struct msgpack_val v;
	TRY(msgpack_read(c, &v));
	if (v.type != MSGPACK_UINT || v.u > UINT32_MAX)
		return ERR_RANGE;
	*ret = (uint32_t)v.u;
	return ERR_OK;
}

/* Token ids are the bulk of an event stream: away from the end of the input their usual forms are read in line. */
enum err msgpack_read_u32s(struct msgpack_cur *c, uint32_t *ret, size_t n)
{
	enum { LONGEST = 5 };
	if (n > msgpack_left(c))
		return ERR_SYNTAX;
	const uint8_t *p = c->p, *end = c->end;
	for (size_t i = 0; i < n; i++) {
		uint8_t form = p < end ? *p : 0xc1;
		if (end - p < LONGEST || (form >= 0x80 && form != 0xcd && form != 0xce)) {
			c->p = p;
			TRY(read_u32(c, &ret[i]));
			p = c->p;
		} else if (form == 0xcd) {
			ret[i] = (uint32_t)p[1] << 8 | p[2];
			p += 3;
		} else if (form == 0xce) {
			ret[i] = (uint32_t)p[1] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 8 | p[4];
			p += 5;
		} else {
			ret[i] = form;
			p++;
		}
	}
	c->p = p;
	return ERR_OK;
}

/* ---- writing ---- */

/* The first byte and n bytes of x, big-endian. */
static void put(struct msgpack_out *o, uint8_t first, uint64_t x, size_t n)
{
	char raw[9] = { (char)first };
	for (size_t i = 0; i < n; i++)
		raw[1 + i] = (char)(x >> (8 * (n - 1 - i)));
	if (o->err == ERR_OK)
		o->err = buf_add(o->b, (struct str){ raw, n + 1 });
}

static void put_bytes(struct msgpack_out *o, struct str s)
{
	if (o->err == ERR_OK)
		o->err = buf_add(o->b, s);
}

/* 0: fits one byte, 1: two, 2: four, 3: eight. */
static unsigned width(uint64_t x) { return x <= UINT8_MAX ? 0 : x <= UINT16_MAX ? 1 : x <= UINT32_MAX ? 2 : 3; }

void msgpack_write_nil(struct msgpack_out *o) { put(o, 0xc0, 0, 0); }

void msgpack_write_bool(struct msgpack_out *o, bool v) { put(o, v ? 0xc3 : 0xc2, 0, 0); }

void msgpack_write_uint(struct msgpack_out *o, uint64_t v)
{
	unsigned w = width(v);
	if (v < 0x80)
		put(o, (uint8_t)v, 0, 0);
	else
		put(o, (uint8_t)(0xcc + w), v, (size_t)1 << w);
}

static unsigned width_below_zero(int64_t v) { return v >= INT8_MIN ? 0 : v >= INT16_MIN ? 1 : v >= INT32_MIN ? 2 : 3; }

void msgpack_write_int(struct msgpack_out *o, int64_t v)
{
	if (v >= 0) {
		msgpack_write_uint(o, (uint64_t)v);
	} else if (v >= -32) {
		put(o, (uint8_t)v, 0, 0);
	} else {
		unsigned w = width_below_zero(v);
		put(o, (uint8_t)(0xd0 + w), (uint64_t)v, (size_t)1 << w);
	}
}

void msgpack_write_float(struct msgpack_out *o, double v)
{
	uint64_t bits;
	memcpy(&bits, &v, 8);
	put(o, 0xcb, bits, 8);
}

void msgpack_write_str(struct msgpack_out *o, struct str s)
{
	unsigned w = width(s.n);
	if (s.n < 32)
		put(o, (uint8_t)(0xa0 | s.n), 0, 0);
	else if (w <= 2)
		put(o, (uint8_t)(0xd9 + w), s.n, (size_t)1 << w);
	else
		o->err = o->err == ERR_OK ? ERR_LIMIT : o->err;
	put_bytes(o, s);
}

void msgpack_write_bin(struct msgpack_out *o, struct str s)
{
	unsigned w = width(s.n);
	if (w <= 2)
		put(o, (uint8_t)(0xc4 + w), s.n, (size_t)1 << w);
	else
		o->err = o->err == ERR_OK ? ERR_LIMIT : o->err;
	put_bytes(o, s);
}

static void put_count(struct msgpack_out *o, uint8_t small, uint8_t large, uint32_t n)
{
	if (n < 16)
		put(o, (uint8_t)(small | n), 0, 0);
	else if (n <= UINT16_MAX)
		put(o, large, n, 2);
	else
		put(o, (uint8_t)(large + 1), n, 4);
}

void msgpack_write_array(struct msgpack_out *o, uint32_t n) { put_count(o, 0x90, 0xdc, n); }

void msgpack_write_map(struct msgpack_out *o, uint32_t n) { put_count(o, 0x80, 0xde, n); }
