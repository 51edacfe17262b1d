/* What hands share: the body budget, and which worker made which response. */
#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "gate/gate_priv.h"

static struct gate_shared *shared_new(int64_t memory, int64_t responses)
{
	struct conf_gate_opts o = { .body_memory_bytes = memory, .max_responses = responses };
	return gate_shared_new(&o);
}

static struct str id_of(char out[32], int i)
{
	snprintf(out, 32, "resp_%d", i);
	return str_of(out);
}

static void budget_is_exact(void **state)
{
	struct gate_shared *s = shared_new(100, 16);
	(void)state;
	assert_true(gate_shared_take(s, 60));
	assert_false(gate_shared_take(s, 41)); /* a refusal takes nothing */
	assert_int_equal(gate_shared_body_bytes(s), 60);
	assert_true(gate_shared_take(s, 40));
	gate_shared_give(s, 100);
	gate_shared_set_body_memory(s, 10);
	assert_false(gate_shared_take(s, 11));
	assert_int_equal(gate_shared_body_bytes(s), 0);
	gate_shared_free(s);
}

static void newest_responses_are_remembered(void **state)
{
	struct gate_shared *s = shared_new(1, 16);
	char id[32];
	uint64_t url;
	brain_worker w = 0;
	(void)state;
	assert_false(gate_recall(s, STR("resp_0"), &w, &url));
	for (int i = 0; i < 40; i++)
		gate_remember(s, id_of(id, i), (brain_worker)i + 1, STR("http://w"));
	for (int i = 0; i < 40; i++) {
		bool there = gate_recall(s, id_of(id, i), &w, &url);
		assert_int_equal(there, i >= 24);
		if (there) {
			assert_int_equal(w, i + 1);
			assert_true(url == hash_str(STR("http://w"), 0));
		}
	}
	gate_shared_free(s);
}

static void an_id_made_anew_moves(void **state)
{
	struct gate_shared *s = shared_new(1, 16);
	char id[32];
	uint64_t url;
	brain_worker w = 0;
	(void)state;
	gate_remember(s, STR("resp_x"), 1, STR("a"));
	gate_remember(s, STR("resp_x"), 2, STR("b"));
	for (int i = 0; i < 15; i++) /* the first entry of resp_x is overwritten, the second stays */
		gate_remember(s, id_of(id, i), 9, STR("c"));
	assert_true(gate_recall(s, STR("resp_x"), &w, &url));
	assert_int_equal(w, 2);
	gate_shared_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(budget_is_exact),
		cmocka_unit_test(newest_responses_are_remembered),
		cmocka_unit_test(an_id_made_anew_moves),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
