/* offer_test.c: what a worker offers is learnt from its answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "text/offer.h"

static struct mono at(int64_t s) { return (struct mono){ s * 1000000 }; }

static int choice(const struct text_offer *o, bool tokenize_ok, int64_t s)
{
	enum text_call c;
	return text_offer_choose(o, tokenize_ok, at(s), &c) ? (int)c : -1;
}

static void render_first_then_tokenize(void **state)
{
	(void)state;
	struct text_offer o = { 0 };
	assert_int_equal(choice(&o, true, 0), TEXT_RENDER);
	assert_true(text_offer_learn(&o, TEXT_RENDER, 403, at(0)));
	assert_int_equal(choice(&o, true, 1), TEXT_TOKENIZE);
	assert_int_equal(choice(&o, false, 1), -1);
	assert_false(text_offer_learn(&o, TEXT_TOKENIZE, 200, at(1)));
	/* a worker is upgraded in place: tried again after a while */
	assert_int_equal(choice(&o, true, 599), TEXT_TOKENIZE);
	assert_int_equal(choice(&o, true, 600), TEXT_RENDER);
	assert_true(text_offer_learn(&o, TEXT_RENDER, 404, at(600)));
	assert_int_equal(choice(&o, true, 601), TEXT_TOKENIZE);
	text_offer_reset(&o);
	assert_int_equal(choice(&o, true, 601), TEXT_RENDER);
}

static void neither(void **state)
{
	(void)state;
	struct text_offer o = { 0 };
	assert_true(text_offer_learn(&o, TEXT_RENDER, 405, at(0)));
	assert_false(text_offer_learn(&o, TEXT_TOKENIZE, 501, at(0)));
	assert_int_equal(choice(&o, true, 100), -1);
	assert_int_equal(choice(&o, true, 600), TEXT_RENDER);
}

static void a_404_may_be_about_the_model(void **state)
{
	(void)state;
	struct text_offer o = { 0 };
	assert_false(text_offer_learn(&o, TEXT_RENDER, 200, at(0)));
	assert_false(text_offer_learn(&o, TEXT_RENDER, 404, at(1)));
	assert_int_equal(choice(&o, true, 1), TEXT_RENDER);
	assert_true(text_offer_learn(&o, TEXT_RENDER, 403, at(2)));
	assert_false(text_offer_learn(&o, TEXT_TOKENIZE, 404, at(2)));
	assert_int_equal(choice(&o, true, 3), -1);
	assert_int_equal(choice(&o, true, 33), TEXT_TOKENIZE);
}

static void other_failures_teach_nothing(void **state)
{
	(void)state;
	static const int OTHER[] = { 0, 400, 401, 408, 413, 429, 500, 502, 503 };
	struct text_offer o = { 0 };
	for (size_t i = 0; i < ARRAY_LEN(OTHER); i++) {
		assert_false(text_offer_learn(&o, TEXT_RENDER, OTHER[i], at(0)));
		assert_int_equal(choice(&o, true, 0), TEXT_RENDER);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(render_first_then_tokenize),
		cmocka_unit_test(neither),
		cmocka_unit_test(a_404_may_be_about_the_model),
		cmocka_unit_test(other_failures_teach_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
