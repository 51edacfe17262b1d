#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "wire/msgpack.h"

static struct str bytes(const void *p, size_t n) { return (struct str){ p, n }; }
#define RAW(...) bytes((const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }))

static struct msgpack_val read_one(struct str s)
{
	struct msgpack_cur c = msgpack_cur(s);
	struct msgpack_val v;
	assert_int_equal(msgpack_read(&c, &v), ERR_OK);
	assert_int_equal(msgpack_left(&c), 0);
	return v;
}

static void integers_come_back_in_the_shortest_form(void **state)
{
	(void)state;
	static const struct { int64_t i; size_t bytes; } cases[] = { { 0, 1 }, { 127, 1 }, { 128, 2 }, { 255, 2 }, { 256, 3 }, { 65535, 3 },
		{ 65536, 5 }, { UINT32_MAX, 5 }, { (int64_t)UINT32_MAX + 1, 9 }, { INT64_MAX, 9 }, { -1, 1 }, { -32, 1 }, { -33, 2 }, { -128, 2 },
		{ -129, 3 }, { -32768, 3 }, { -32769, 5 }, { INT32_MIN, 5 }, { (int64_t)INT32_MIN - 1, 9 }, { INT64_MIN, 9 } };
	for (size_t k = 0; k < ARRAY_LEN(cases); k++) {
		struct buf b;
		buf_init(&b, 64);
		struct msgpack_out o = msgpack_out(&b);
		msgpack_write_int(&o, cases[k].i);
		assert_int_equal(o.err, ERR_OK);
		assert_int_equal(b.n, cases[k].bytes);
		struct msgpack_val v = read_one(buf_str(&b));
		assert_int_equal(v.type, cases[k].i < 0 ? MSGPACK_INT : MSGPACK_UINT);
		assert_true(v.i == cases[k].i);
		struct msgpack_cur c = msgpack_cur(buf_str(&b));
		assert_int_equal(msgpack_skip(&c), ERR_OK);
		assert_int_equal(msgpack_left(&c), 0);
		buf_done(&b);
	}
	assert_true(read_one(RAW(0xcf, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff)).u == UINT64_MAX);
	assert_int_equal(read_one(RAW(0xd0, 5)).type, MSGPACK_UINT);        /* a signed form of a positive number */
}

static void strings_and_containers_of_every_length_form(void **state)
{
	(void)state;
	static const size_t lengths[] = { 0, 31, 32, 255, 256, 65535, 65536 };
	char *text = calloc(1, 70000);
	for (size_t k = 0; k < ARRAY_LEN(lengths); k++) {
		struct buf b;
		buf_init(&b, 1 << 20);
		struct msgpack_out o = msgpack_out(&b);
		msgpack_write_array(&o, 2);
		msgpack_write_str(&o, bytes(text, lengths[k]));
		msgpack_write_bin(&o, bytes(text, lengths[k]));
		struct msgpack_cur c = msgpack_cur(buf_str(&b));
		struct msgpack_val v;
		assert_int_equal(msgpack_read(&c, &v), ERR_OK);
		assert_true(v.type == MSGPACK_ARRAY && v.n == 2);
		assert_int_equal(msgpack_read(&c, &v), ERR_OK);
		assert_true(v.type == MSGPACK_STR && v.s.n == lengths[k]);
		assert_int_equal(msgpack_read(&c, &v), ERR_OK);
		assert_true(v.type == MSGPACK_BIN && v.s.n == lengths[k]);
		c = msgpack_cur(buf_str(&b));
		assert_int_equal(msgpack_skip(&c), ERR_OK);
		assert_int_equal(msgpack_left(&c), 0);
		buf_clear(&b);
		o = msgpack_out(&b);
		msgpack_write_map(&o, (uint32_t)lengths[k]);
		for (size_t i = 0; i < 2 * lengths[k]; i++)
			msgpack_write_nil(&o);
		c = msgpack_cur(buf_str(&b));
		assert_int_equal(msgpack_skip(&c), ERR_OK);
		assert_int_equal(msgpack_left(&c), 0);
		buf_done(&b);
	}
	free(text);
}

static void the_other_scalars(void **state)
{
	(void)state;
	assert_int_equal(read_one(RAW(0xc0)).type, MSGPACK_NIL);
	assert_false(read_one(RAW(0xc2)).b);
	assert_true(read_one(RAW(0xc3)).b);
	assert_true(read_one(RAW(0xca, 0x3f, 0xc0, 0, 0)).f == 1.5);
	assert_true(read_one(RAW(0xcb, 0x3f, 0xf8, 0, 0, 0, 0, 0, 0)).f == 1.5);
	struct msgpack_val v = read_one(RAW(0xd5, 7, 'a', 'b'));
	assert_true(v.type == MSGPACK_EXT && v.s.n == 2);
	v = read_one(RAW(0xc7, 3, 7, 'a', 'b', 'c'));
	assert_true(v.type == MSGPACK_EXT && v.s.n == 3);
	struct buf b;
	buf_init(&b, 64);
	struct msgpack_out o = msgpack_out(&b);
	msgpack_write_float(&o, -2.25);
	assert_true(read_one(buf_str(&b)).f == -2.25);
	buf_clear(&b);
	o = msgpack_out(&b);
	msgpack_write_bool(&o, true);
	assert_true(read_one(buf_str(&b)).b);
	buf_done(&b);
}

/* Five bytes that ask for gigabytes, and everything cut short, are refused without moving the cursor. */
static void counts_are_held_against_the_bytes_left(void **state)
{
	(void)state;
	const struct str bad[] = { RAW(0xdd, 0xff, 0xff, 0xff, 0xff), RAW(0xdf, 0xff, 0xff, 0xff, 0xff), RAW(0xdb, 0xff, 0xff, 0xff, 0xff),
		RAW(0xc6, 0xff, 0xff, 0xff, 0xff), RAW(0xc9, 0xff, 0xff, 0xff, 0xff, 1), RAW(0xdc, 0, 2, 1), RAW(0x82, 1, 1, 1), RAW(0x91), RAW(0xc1),
		RAW(0xcf, 1, 2), RAW(0xa3, 'a', 'b'), RAW(0xd6, 1, 2, 3), RAW(0xcb, 0) };
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct msgpack_cur c = msgpack_cur(bad[i]);
		struct msgpack_val v;
		assert_int_equal(msgpack_read(&c, &v), ERR_SYNTAX);
		assert_int_equal(msgpack_left(&c), bad[i].n);
		assert_int_equal(msgpack_skip(&c), ERR_SYNTAX);
		assert_int_equal(msgpack_left(&c), bad[i].n);
	}
	struct msgpack_cur empty = msgpack_cur((struct str){ "", 0 });
	struct msgpack_val v;
	assert_int_equal(msgpack_read(&empty, &v), ERR_SYNTAX);
}

static void nesting_costs_no_stack(void **state)
{
	(void)state;
	enum { DEPTH = 1 << 20 };
	char *deep = malloc(DEPTH + 1);
	memset(deep, 0x91, DEPTH);
	deep[DEPTH] = 1;
	struct msgpack_cur c = msgpack_cur(bytes(deep, DEPTH + 1));
	assert_int_equal(msgpack_skip(&c), ERR_OK);
	assert_int_equal(msgpack_left(&c), 0);
	c = msgpack_cur(bytes(deep, DEPTH));
	assert_int_equal(msgpack_skip(&c), ERR_SYNTAX);
	free(deep);
}

static void numbers_in_bulk(void **state)
{
	(void)state;
	struct str s = RAW(5, 0xcc, 200, 0xcd, 1, 0, 0xce, 0, 1, 0, 0, 0xd1, 0, 9, 0xcf, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff);
	uint32_t ids[6];
	struct msgpack_cur c = msgpack_cur(s);
	assert_int_equal(msgpack_read_u32s(&c, ids, 6), ERR_OK);
	const uint32_t want[] = { 5, 200, 256, 65536, 9, UINT32_MAX };
	assert_memory_equal(ids, want, sizeof(want));
	c = msgpack_cur(RAW(1, 0xff));
	assert_int_equal(msgpack_read_u32s(&c, ids, 2), ERR_RANGE);
	c = msgpack_cur(RAW(0xcf, 0, 0, 0, 1, 0, 0, 0, 0));
	assert_int_equal(msgpack_read_u32s(&c, ids, 1), ERR_RANGE);
	c = msgpack_cur(RAW(1, 2));
	assert_int_equal(msgpack_read_u32s(&c, ids, 3), ERR_SYNTAX);
	c = msgpack_cur(RAW(0xcd, 1));
	assert_int_equal(msgpack_read_u32s(&c, ids, 1), ERR_SYNTAX);
}

static void the_first_failure_of_a_writer_sticks(void **state)
{
	(void)state;
	struct buf b;
	buf_init(&b, 4);
	struct msgpack_out o = msgpack_out(&b);
	msgpack_write_str(&o, STR("far too long"));
	msgpack_write_nil(&o);
	assert_int_equal(o.err, ERR_LIMIT);
	assert_true(b.n <= 4);
	buf_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(integers_come_back_in_the_shortest_form),
		cmocka_unit_test(strings_and_containers_of_every_length_form),
		cmocka_unit_test(the_other_scalars),
		cmocka_unit_test(counts_are_held_against_the_bytes_left),
		cmocka_unit_test(nesting_costs_no_stack),
		cmocka_unit_test(numbers_in_bulk),
		cmocka_unit_test(the_first_failure_of_a_writer_sticks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
