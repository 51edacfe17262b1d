/* Folders, files written whole, moves, the lock between processes; digests as hubs write them. */
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/digest.h"
#include "io/file.h"
#include "io/folder.h"
#include "kit.h"

static char root[64];

static int setup(void **state)
{
	(void)state;
	snprintf(root, sizeof(root), "/tmp/kvasir-folder-XXXXXX");
	return mkdtemp(root) ? chdir(root) : -1;
}

static int teardown(void **state)
{
	char cmd[128];
	(void)state;
	snprintf(cmd, sizeof(cmd), "rm -r %s", root);
	return chdir("/") || system(cmd);
}

static void folders_come_and_go(void **state)
{
	(void)state;
	assert_int_equal(io_folder_make("a/b/c"), ERR_OK);
	assert_int_equal(io_folder_make("a/b/c"), ERR_OK);
	assert_int_equal(io_path_kind("a/b/c"), IO_PATH_DIR);
	assert_int_equal(io_file_write("a/file", STR("x")), ERR_OK);
	assert_int_equal(io_folder_make("a/file/d"), ERR_IO);
	assert_int_equal(io_folder_clear("a"), ERR_IO);      /* b has a folder in it */
	assert_int_equal(io_folder_clear("a/b"), ERR_OK);
	assert_int_equal(io_folder_clear("a"), ERR_OK);
	assert_int_equal(io_folder_clear("a"), ERR_OK);
	assert_int_equal(io_path_kind("a"), IO_PATH_NONE);
}

static void a_link_is_removed_not_followed(void **state)
{
	(void)state;
	assert_int_equal(io_folder_make("far"), ERR_OK);
	assert_int_equal(io_file_write("far/kept", STR("x")), ERR_OK);
	assert_int_equal(io_folder_make("near"), ERR_OK);
	assert_int_equal(symlink("../far", "near/link") || symlink("../far/kept", "near/file"), 0);
	assert_int_equal(io_file_write("near/file", STR("y")), ERR_IO);
	assert_int_equal(io_folder_clear("near"), ERR_OK);
	assert_int_equal(io_path_kind("far/kept"), IO_PATH_FILE);
}

static void moves(void **state)
{
	struct buf b;
	(void)state;
	assert_int_equal(io_file_write("one", STR("1")), ERR_OK);
	assert_int_equal(io_file_write("two", STR("2")), ERR_OK);
	assert_int_equal(io_path_move("one", "two"), ERR_OK);
	assert_int_equal(io_file_read("two", 10, &b), ERR_OK);
	assert_true(str_eq(buf_str(&b), STR("1")));
	buf_done(&b);
	assert_int_equal(io_folder_make("full"), ERR_OK);
	assert_int_equal(io_folder_make("new"), ERR_OK);
	assert_int_equal(io_file_write("full/x", STR("")), ERR_OK);
	assert_int_equal(io_path_move("new", "full"), ERR_DUPLICATE);
	assert_int_equal(io_path_move("full", "new"), ERR_OK);
	assert_int_equal(io_path_move("none", "other"), ERR_IO);
	assert_int_equal(io_file_remove("two"), ERR_OK);
	assert_int_equal(io_file_remove("two"), ERR_OK);
	assert_int_equal(io_file_remove("new/x"), ERR_OK);
	assert_int_equal(io_file_remove("new"), ERR_IO);
}

static int child_takes(void)
{
	int status = 0;
	pid_t pid = fork();
	if (pid == 0) {
		struct io_lock *l;
		_exit(io_lock_take("lock", &l) == ERR_AGAIN ? 7 : 8);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WEXITSTATUS(status);
}

static void one_holds_the_lock(void **state)
{
	struct io_lock *l = NULL;
	(void)state;
	assert_int_equal(io_lock_take("lock", &l), ERR_OK);
	assert_int_equal(child_takes(), 7);
	io_lock_drop(l);
	assert_int_equal(child_takes(), 8);
	io_lock_drop(NULL);
}

static void digests(void **state)
{
	char hex[IO_SHA256_HEX + 1];
	(void)state;
	io_sha256(STR("abc"), hex);
	assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	io_git_blob(STR("hello\n"), hex);
	assert_string_equal(hex, "ce013625030ba8dba906f756967f9e9ca394464a");
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = { CASE(folders_come_and_go), CASE(a_link_is_removed_not_followed), CASE(moves), CASE(one_holds_the_lock), cmocka_unit_test(digests) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
