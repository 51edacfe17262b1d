#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "sim/event.h"
#include "wire/msgpack.h"

static const uint32_t tok[4] = { 1, 300, 70000, 2 };
static const uint64_t hashes[2] = { 5, 0xfedcba9876543210u };

static struct sim_event stored(const struct sim_extra *extra)
{
	return (struct sim_event){ .kind = SIM_STORED,
		.hashes = hashes,
		.n_hashes = 2,
		.tok = tok,
		.n_tok = 4,
		.block_tok = 2,
		.extra = extra,
		.spec = SIM_FULL };
}

static struct buf encode(struct sim_event v, struct sim_encoding e)
{
	struct sim_batch b;
	struct buf out;
	sim_batch_init(&b);
	buf_init(&out, 1 << 20);
	VEC_PUSH(&b.ev, v);
	assert_int_equal(sim_batch_encode(&b, &e, 1.5, 3, &out), ERR_OK);
	sim_batch_done(&b);
	return out;
}

static struct msgpack_val next(struct msgpack_cur *c)
{
	struct msgpack_val v;
	assert_int_equal(msgpack_read(c, &v), ERR_OK);
	return v;
}

static uint32_t open_batch(struct msgpack_cur *c)
{
	assert_int_equal(next(c).n, 3);
	assert_true(next(c).f > 1.4);
	return next(c).n;
}

static void an_array_event_is_twelve_long(void **state)
{
	(void)state;
	struct sim_extra extra[2];
	memset(extra, 0, sizeof(extra));
	extra[0].salt = STR("s");
	struct buf b = encode(stored(extra), (struct sim_encoding){ .array = true });
	struct msgpack_cur c = msgpack_cur(buf_str(&b));
	assert_int_equal(open_batch(&c), 1);
	struct msgpack_val v = next(&c);
	assert_int_equal(v.type, MSGPACK_ARRAY);
	assert_int_equal(v.n, 12);
	for (int i = 0; i < 12; i++)
		assert_int_equal(msgpack_skip(&c), ERR_OK);
	assert_int_equal(next(&c).u, 3);
	assert_int_equal(msgpack_left(&c), 0);
	buf_done(&b);
}

static void a_map_event_leaves_defaults_out(void **state)
{
	(void)state;
	struct sim_extra extra[2];
	memset(extra, 0, sizeof(extra));
	struct buf b = encode(stored(extra), (struct sim_encoding){ 0 });
	struct msgpack_cur c = msgpack_cur(buf_str(&b));
	open_batch(&c);
	struct msgpack_val v = next(&c);
	assert_int_equal(v.type, MSGPACK_MAP);
	assert_int_equal(v.n, 11); /* no window, no session */
	for (uint32_t i = 0; i < 22; i++)
		assert_int_equal(msgpack_skip(&c), ERR_OK);
	assert_int_equal(next(&c).u, 3);
	buf_done(&b);
}

static void hashes_are_numbers_or_digests(void **state)
{
	(void)state;
	struct sim_event v = { .kind = SIM_REMOVED, .hashes = &hashes[1], .n_hashes = 1 };
	for (int wide = 0; wide < 2; wide++) {
		struct buf b = encode(v, (struct sim_encoding){ .array = true, .wide_hashes = wide });
		struct msgpack_cur c = msgpack_cur(buf_str(&b));
		open_batch(&c);
		assert_int_equal(next(&c).n, 4);
		assert_true(str_eq(next(&c).s, STR("BlockRemoved")));
		assert_int_equal(next(&c).n, 1);
		struct msgpack_val h = next(&c);
		if (!wide) {
			assert_true(h.u == hashes[1]);
		} else {
			assert_int_equal(h.s.n, 32);
			assert_int_equal((uint8_t)h.s.p[31], 0x10);
			assert_int_equal((uint8_t)h.s.p[24], 0xfe);
		}
		buf_done(&b);
	}
}

static void a_worker_can_lie_about_its_block_size(void **state)
{
	(void)state;
	struct sim_extra extra[2];
	memset(extra, 0, sizeof(extra));
	struct buf b = encode(stored(extra), (struct sim_encoding){ .array = true, .lie_block_tok = 99 });
	struct msgpack_cur c = msgpack_cur(buf_str(&b));
	open_batch(&c);
	next(&c);
	for (int i = 0; i < 4; i++)
		assert_int_equal(msgpack_skip(&c), ERR_OK);
	assert_int_equal(next(&c).u, 99);
	buf_done(&b);
}

/* What the offloading connector sends: one hash, no tokens, block size 0, the kind left out. */
static void a_block_below_is_named_by_its_hash_alone(void **state)
{
	(void)state;
	struct sim_event v = { .kind = SIM_STORED, .medium = SIM_CPU, .bare = true, .hashes = hashes, .n_hashes = 1, .block_tok = 2, .spec = SIM_FULL };
	struct buf b = encode(v, (struct sim_encoding){ .lie_block_tok = 99 });
	struct msgpack_cur c = msgpack_cur(buf_str(&b));
	assert_int_equal(open_batch(&c), 1);
	assert_int_equal(next(&c).n, 9);
	for (int i = 0; i < 9; i++) {
		struct str key = next(&c).s;
		assert_false(str_eq(key, STR("extra_keys")) || str_eq(key, STR("kv_cache_spec_kind")));
		struct msgpack_cur at = c;
		if (str_eq(key, STR("medium")))
			assert_true(str_eq(next(&at).s, STR("CPU")));
		if (str_eq(key, STR("block_size")) || str_eq(key, STR("token_ids")))
			assert_int_equal(str_eq(key, STR("block_size")) ? next(&at).u : next(&at).n, 0);
		assert_int_equal(msgpack_skip(&c), ERR_OK);
	}
	buf_done(&b);
	b = encode(v, (struct sim_encoding){ .array = true });
	c = msgpack_cur(buf_str(&b));
	open_batch(&c);
	assert_int_equal(next(&c).n, 12);
	for (int i = 0; i < 6; i++)
		assert_int_equal(msgpack_skip(&c), ERR_OK);
	assert_true(str_eq(next(&c).s, STR("CPU")));
	buf_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_array_event_is_twelve_long),
		cmocka_unit_test(a_map_event_leaves_defaults_out),
		cmocka_unit_test(hashes_are_numbers_or_digests),
		cmocka_unit_test(a_worker_can_lie_about_its_block_size),
		cmocka_unit_test(a_block_below_is_named_by_its_hash_alone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
