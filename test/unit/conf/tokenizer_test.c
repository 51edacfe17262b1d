/* Where a tokenizer is said to be, and whether it can be there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conf/tokenizer.h"

static struct arena arena;
static int setup(void **state)
{
	(void)state;
	arena_init(&arena, 0);
	return 0;
}
static int teardown(void **state)
{
	(void)state;
	arena_done(&arena);
	return 0;
}

static void test_what_a_text_names(void **state)
{
	(void)state;
	assert_true(conf_tokenizer_of(STR("worker")).worker);
	assert_true(str_eq(conf_tokenizer_of(STR("./a")).path, STR("./a")) && str_eq(conf_tokenizer_of(STR("/a/b")).path, STR("/a/b")));
	struct conf_tokenizer t = conf_tokenizer_of(STR("Qwen/Qwen3-32B@abc"));
	assert_true(!t.worker && t.path.n == 0 && str_eq(t.repo, STR("Qwen/Qwen3-32B")) && str_eq(t.revision, STR("abc")));
	t = conf_tokenizer_of(STR(""));
	assert_true(!t.worker && t.path.n == 0 && t.repo.n == 0);
	assert_null(conf_tokenizer_fault(&t, &arena));
}

static const char *fault(const char *text)
{
	struct conf_tokenizer t = conf_tokenizer_of(str_of(text));
	return conf_tokenizer_fault(&t, &arena);
}

static void test_repositories_have_the_form_of_a_name(void **state)
{
	(void)state;
	assert_null(fault("Qwen/Qwen3-32B"));
	assert_null(fault("gpt2@main"));
	static const char *const bad[] = { "a/b/c", "a b", "http://hub/a", "a/../b", "a/b@x y", "models/here/" };
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (fault(bad[i]) == NULL)
			fail_msg("taken: %s", bad[i]);
	assert_true(str_find(str_of(fault("a/b/c")), STR("must be ORG/NAME")) != SIZE_MAX);
}

static void test_a_folder_holds_a_tokenizer(void **state)
{
	(void)state;
	char folder[] = "/tmp/kvasir-conf-XXXXXX", file[64];
	assert_non_null(mkdtemp(folder));
	assert_true(str_find(str_of(fault(folder)), STR("must have tokenizer.json")) != SIZE_MAX);
	snprintf(file, sizeof(file), "%s/tokenizer.json", folder);
	assert_true(str_find(str_of(fault(file)), STR("there is no")) != SIZE_MAX);
	FILE *f = fopen(file, "w");
	assert_non_null(f);
	fclose(f);
	assert_null(fault(folder));
	assert_true(str_find(str_of(fault(file)), STR("is no folder")) != SIZE_MAX);
	unlink(file);
	rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_what_a_text_names, setup, teardown),
		cmocka_unit_test_setup_teardown(test_repositories_have_the_form_of_a_name, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_folder_holds_a_tokenizer, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
