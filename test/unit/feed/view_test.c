/* Views: look-ups by id and name, and lifetimes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdlib.h>

#include "base/must.h"
#include "feed/view.h"

static struct feed_view *make(void)
{
	struct feed_view *v = must_calloc(1, sizeof(*v));
	v->refs = 1;
	arena_init(&v->arena, 0);
	struct feed_view_worker *w = arena_new(&v->arena, struct feed_view_worker, 50);
	struct feed_view_model *m = arena_new(&v->arena, struct feed_view_model, 50);
	for (uint32_t i = 0; i < 50; i++) {
		w[i].id = 10 + i * 3;
		m[i].id = str_of(arena_printf(&v->arena, "model-%02u", i));
	}
	v->workers = w;
	v->models = m;
	v->n_workers = v->n_models = 50;
	return v;
}

static void test_look_ups(void **state)
{
	(void)state;
	struct feed_view *v = make();
	for (uint32_t id = 0; id < 200; id++) {
		const struct feed_view_worker *w = feed_view_worker(v, id);
		bool there = id >= 10 && id < 160 && (id - 10) % 3 == 0;
		assert_int_equal(w != NULL, there);
		assert_true(w == NULL || w->id == id);
	}
	assert_ptr_equal(feed_view_model(v, STR("model-00")), &v->models[0]);
	assert_ptr_equal(feed_view_model(v, STR("model-49")), &v->models[49]);
	assert_null(feed_view_model(v, STR("model-5")));
	assert_null(feed_view_model(v, STR("")));
	assert_null(feed_view_model(v, STR("zebra")));
	v->n_workers = v->n_models = 0;
	assert_null(feed_view_worker(v, 10));
	assert_null(feed_view_model(v, STR("model-00")));
	feed_view_unref(v);
}

static void test_the_last_reference_frees(void **state)
{
	(void)state;
	struct feed_view *v = make();
	assert_ptr_equal(feed_view_ref(v), v);
	feed_view_unref(v);
	assert_int_equal(v->workers[49].id, 157);
	feed_view_unref(v);
	feed_view_unref(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_look_ups), cmocka_unit_test(test_the_last_reference_frees) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
