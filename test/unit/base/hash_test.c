/* The house's hash is XXH3-64 at every length, by whichever way it is computed. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/hash.h"
#include "base/rand.h"

static void test_all_lengths_are_one_hash(void **state)
{
	enum { MOST = 3000 };
	unsigned char bytes[MOST + 8];
	struct rand r = { 1 };
	(void)state;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)rand_u64(&r);
	for (size_t n = 0; n <= MOST; n++)
		for (uint64_t seed = 0; seed < 3; seed++)
			assert_true(hash_bytes(bytes + n % 8, n, seed) == XXH3_64bits_withSeed(bytes + n % 8, n, seed));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_all_lengths_are_one_hash) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
