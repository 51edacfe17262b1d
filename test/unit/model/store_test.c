/* store_test.c: tokenizers found in folders and in a hub's cache, loaded off the loop, kept while they are asked for, distrusted
 * after three differences. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/must.h"
#include "io/loop.h"
#include "model/model.h"
#include "model/place.h"

#define GOLDEN "test/tokenizers/golden/chat"

struct world {
	char root[64];
	struct io_loop *loop;
	struct model_store *store;
	struct io_timer *timer;
	struct model *waited;
	int turns;
};

static void path_in(const struct world *w, char *out, size_t cap, const char *name) { must((size_t)snprintf(out, cap, "%s/%s", w->root, name) < cap); }

static void put(const struct world *w, const char *name, const char *text)
{
	char path[512];
	path_in(w, path, sizeof(path), name);
	for (char *p = strchr(path + strlen(w->root) + 1, '/'); p; p = strchr(p + 1, '/')) {
		*p = 0;
		(void)mkdir(path, 0700);
		*p = '/';
	}
	FILE *f = fopen(path, "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
	fclose(f);
}

static void copy_model(const struct world *w, const char *folder)
{
	static char text[1 << 20];
	static const char *const FILES[] = { "tokenizer.json", "tokenizer_config.json" };
	for (size_t i = 0; i < ARRAY_LEN(FILES); i++) {
		char from[256], to[256];
		must((size_t)snprintf(from, sizeof(from), GOLDEN "/%s", FILES[i]) < sizeof(from) && (size_t)snprintf(to, sizeof(to), "%s/%s", folder, FILES[i]) < sizeof(to));
		FILE *f = fopen(from, "rb");
		assert_non_null(f);
		text[fread(text, 1, sizeof(text) - 1, f)] = 0;
		fclose(f);
		put(w, to, text);
	}
}

static int set_up(void **state)
{
	struct world *w = must_calloc(1, sizeof(*w));
	snprintf(w->root, sizeof(w->root), "/tmp/kvasir-model-XXXXXX");
	assert_non_null(mkdtemp(w->root));
	w->loop = io_loop_new();
	assert_int_equal(setenv("HF_HUB_OFFLINE", "1", 1), 0);
	w->store = model_store_new(w->loop);
	*state = w;
	return 0;
}

static int tear_down(void **state)
{
	struct world *w = *state;
	char command[128];
	model_store_free(w->store);
	io_loop_free(w->loop);
	must((size_t)snprintf(command, sizeof(command), "rm -rf %s", w->root) < sizeof(command));
	assert_int_equal(system(command), 0);
	free(w);
	return 0;
}

static void look(void *arg)
{
	struct world *w = arg;
	if (model_state(w->waited) == MODEL_LOADING && w->turns++ < 1000)
		return;
	io_timer_stop(w->timer);
	io_loop_stop(w->loop);
}

static enum model_state wait_for(struct world *w, struct model *m)
{
	w->waited = m;
	w->turns = 0;
	w->timer = io_timer_new(w->loop, look, w);
	io_timer_every(w->timer, 5000);
	io_loop_run(w->loop);
	io_timer_free(w->timer);
	return model_state(m);
}

static struct model *get(struct world *w, const char *root, struct model_source source)
{
	struct model_want want = { .root = str_of(root), .source = &source, .known_version = true };
	return model_store_get(w->store, &want);
}

static void a_root_that_is_a_folder(void **state)
{
	struct world *w = *state;
	char folder[256];
	copy_model(w, "house");
	put(w, "house/chat_template.jinja", "{% for m in messages %}{{ m.content }}{% endfor %}");
	path_in(w, folder, sizeof(folder), "house");
	struct model *m = get(w, folder, (struct model_source){ 0 });
	assert_non_null(m);
	assert_ptr_equal(get(w, folder, (struct model_source){ 0 }), m);
	assert_int_equal(wait_for(w, m), MODEL_READY);
	assert_true(text_local_has_chat(model_local(m)));
	assert_true(str_eq(model_info(m).place, str_of(folder)));
}

static void a_repository_of_the_hubs_cache(void **state)
{
	struct world *w = *state;
	char cache[256];
	copy_model(w, "hub/models--org--name/snapshots/c0ffee");
	put(w, "hub/models--org--name/refs/main", "c0ffee\n");
	path_in(w, cache, sizeof(cache), "hub");
	assert_int_equal(setenv("HF_HUB_CACHE", cache, 1), 0);
	struct model *by_root = get(w, "org/name", (struct model_source){ 0 });
	assert_int_equal(wait_for(w, by_root), MODEL_READY);
	(void)wait_for(w, get(w, "other", (struct model_source){ .repo = STR("org/none") }));
	assert_true(str_find(model_info(w->waited).why, STR("HF_HUB_OFFLINE")) != SIZE_MAX);
	struct model *by_commit = get(w, "other", (struct model_source){ .repo = STR("org/name"), .revision = STR("c0ffee") });
	assert_ptr_not_equal(by_root, by_commit);
	assert_int_equal(wait_for(w, by_commit), MODEL_READY);
	assert_int_equal(wait_for(w, get(w, "other", (struct model_source){ .repo = STR("org/name"), .revision = STR("dead") })), MODEL_ABSENT);
	assert_int_equal(wait_for(w, get(w, "../../etc", (struct model_source){ 0 })), MODEL_ABSENT);
	assert_int_equal(unsetenv("HF_HUB_CACHE"), 0);
}

static void names_of_repositories(void **state)
{
	(void)state;
	static const char *const good[] = { "gpt2", "Qwen/Qwen3-0.6B", "a/b.c_d" }, *const bad[] = { "", "/a", "a/", "a/b/c", "../b", "a/..", "a b", ".a/b", "a/b\xc3" };
	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		assert_true(model_is_repo(str_of(good[i])));
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_false(model_is_repo(str_of(bad[i])));
}

static void what_is_not_understood_is_absent(void **state)
{
	struct world *w = *state;
	char folder[256];
	put(w, "odd/tokenizer.json", "{\"version\":\"1.0\",\"model\":{\"type\":\"Unigram\",\"vocab\":[]}}");
	path_in(w, folder, sizeof(folder), "odd");
	struct model *m = get(w, folder, (struct model_source){ 0 });
	assert_int_equal(wait_for(w, m), MODEL_ABSENT);
	assert_null(model_local(m));
	assert_true(model_info(m).why.n > 0);
	assert_null(get(w, folder, (struct model_source){ .worker = true }));
}

static void expect_read_anew(struct world *w, const char *folder, const struct model *old)
{
	struct model *again = get(w, folder, (struct model_source){ 0 });
	assert_ptr_not_equal(again, old);
	assert_int_equal(wait_for(w, again), MODEL_READY);
}

static void three_differences_and_it_is_over(void **state)
{
	struct world *w = *state;
	char folder[256];
	copy_model(w, "house");
	path_in(w, folder, sizeof(folder), "house");
	struct model *m = model_ref(get(w, folder, (struct model_source){ 0 }));
	assert_int_equal(wait_for(w, m), MODEL_READY);
	size_t due = 0;
	for (int i = 0; i < 3000; i++)
		due += model_check_due(m);
	assert_int_equal(due, MODEL_FIRST_CHECKS + 2);
	model_agreed(m);
	model_differed(m, 4, 10, 10);
	model_differed(m, SIZE_MAX, 10, 11);
	assert_int_equal(model_state(m), MODEL_READY);
	model_differed(m, 0, 1, 1);
	assert_int_equal(model_state(m), MODEL_DISTRUSTED);
	assert_null(model_local(m));
	assert_true(model_info(m).agreed == 1 && model_info(m).different == 3);
	assert_true(str_find(model_info(m).why, STR("differed from the worker's 3 times")) != SIZE_MAX);
	model_store_reload(w->store);
	expect_read_anew(w, folder, m);
	model_unref(m);
}

static void a_refresh_keeps_what_lies_there_as_it_did(void **state)
{
	struct world *w = *state;
	char folder[256];
	copy_model(w, "house");
	path_in(w, folder, sizeof(folder), "house");
	struct model *m = model_ref(get(w, folder, (struct model_source){ 0 }));
	assert_int_equal(wait_for(w, m), MODEL_READY);
	for (int i = 0; i < MODEL_MAX_DIFFERENT; i++)
		model_differed(m, 0, 1, 1);
	model_store_refresh(w->store);
	assert_ptr_equal(get(w, folder, (struct model_source){ 0 }), m);
	assert_int_equal(model_state(m), MODEL_DISTRUSTED);
	put(w, "house/chat_template.jinja", "{{ messages[0].content }}");
	model_store_refresh(w->store);
	expect_read_anew(w, folder, m);
	model_unref(m);
}

static void a_refresh_looks_again_for_what_was_absent(void **state)
{
	struct world *w = *state;
	char folder[256];
	path_in(w, folder, sizeof(folder), "house");
	assert_int_equal(wait_for(w, get(w, folder, (struct model_source){ 0 })), MODEL_ABSENT);
	copy_model(w, "house");
	model_store_refresh(w->store);
	assert_int_equal(wait_for(w, get(w, folder, (struct model_source){ 0 })), MODEL_READY);
}

static void a_refresh_follows_the_link_to_a_snapshot(void **state)
{
	struct world *w = *state;
	char cache[256];
	copy_model(w, "hub/models--org--name/snapshots/c0ffee");
	copy_model(w, "hub/models--org--name/snapshots/beef");
	put(w, "hub/models--org--name/refs/main", "c0ffee\n");
	path_in(w, cache, sizeof(cache), "hub");
	assert_int_equal(setenv("HF_HUB_CACHE", cache, 1), 0);
	struct model *m = model_ref(get(w, "org/name", (struct model_source){ 0 }));
	assert_int_equal(wait_for(w, m), MODEL_READY);
	model_store_refresh(w->store);
	assert_ptr_equal(get(w, "org/name", (struct model_source){ 0 }), m);
	put(w, "hub/models--org--name/refs/main", "beef\n");
	model_store_refresh(w->store);
	assert_int_equal(wait_for(w, get(w, "org/name", (struct model_source){ 0 })), MODEL_READY);
	assert_true(str_ends(model_info(w->waited).place, STR("beef")));
	assert_int_equal(unsetenv("HF_HUB_CACHE"), 0);
	model_unref(m);
}

static void the_store_keeps_what_is_asked_for(void **state)
{
	struct world *w = *state;
	const struct model_info *infos;
	struct arena a;
	struct model *held = model_ref(get(w, "nobody/knows", (struct model_source){ 0 }));
	arena_init(&a, 0);
	(void)get(w, "nobody/knows-that", (struct model_source){ 0 });
	model_store_sweep(w->store);
	assert_int_equal(model_store_list(w->store, &a, &infos), 2);
	(void)get(w, "nobody/knows-that", (struct model_source){ 0 });
	model_store_sweep(w->store);
	assert_int_equal(model_store_list(w->store, &a, &infos), 1);
	assert_true(str_eq(infos[0].key, STR("nobody/knows-that")));
	assert_int_equal(wait_for(w, held), MODEL_ABSENT);
	model_unref(held);
	arena_done(&a);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = { CASE(a_root_that_is_a_folder), CASE(a_repository_of_the_hubs_cache), CASE(names_of_repositories), CASE(what_is_not_understood_is_absent),
		CASE(three_differences_and_it_is_over), CASE(a_refresh_keeps_what_lies_there_as_it_did),
		CASE(a_refresh_looks_again_for_what_was_absent), CASE(a_refresh_follows_the_link_to_a_snapshot), CASE(the_store_keeps_what_is_asked_for) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
