/* Any bytes through the MessagePack reader: reading value by value and skipping as a whole must agree on where the first
 * value ends, and neither may look past the input. */
#include <stddef.h>
#include <stdint.h>

#include "base/must.h"
#include "wire/msgpack.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Over one value by reading headers only; false if it is malformed. */
static bool read_through(struct msgpack_cur *c)
{
	uint64_t pending = 1;
	while (pending--) {
		struct msgpack_val v;
		if (pending > msgpack_left(c) || msgpack_read(c, &v) != ERR_OK)
			return false;
		if (v.type == MSGPACK_ARRAY)
			pending += v.n;
		else if (v.type == MSGPACK_MAP)
			pending += (uint64_t)v.n * 2;
		else if (v.type == MSGPACK_STR || v.type == MSGPACK_BIN || v.type == MSGPACK_EXT)
			must((const uint8_t *)v.s.p + v.s.n <= c->end);
	}
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct msgpack_cur a = msgpack_cur(str_from(data, size)), b = a, c = a;
	bool whole = msgpack_skip(&a) == ERR_OK;
	must(whole == read_through(&b));
	must(!whole || a.p == b.p);
	must(whole || a.p == data);
	uint32_t ids[64];
	if (msgpack_read_u32s(&c, ids, ARRAY_LEN(ids)) == ERR_OK)
		must(c.p <= c.end);
	return 0;
}
