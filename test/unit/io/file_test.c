/* Files, folders, and what a watch must notice: edits, renames, Kubernetes' link swap, a folder that comes late. */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/file.h"
#include "kit.h"

static char root[64];

static const char *path_of(const char *name)
{
	static char out[2][256];
	static int turn;
	turn ^= 1;
	snprintf(out[turn], sizeof(out[turn]), "%s/%s", root, name);
	return out[turn];
}

static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static int setup(void **state)
{
	snprintf(root, sizeof(root), "/tmp/kvasir-file-XXXXXX");
	assert_non_null(mkdtemp(root));
	return kit_setup(state);
}

static int teardown(void **state)
{
	char cmd[128];
	snprintf(cmd, sizeof(cmd), "rm -r %s", root);
	assert_int_equal(system(cmd), 0);
	return kit_teardown(state);
}

static void test_read(void **state)
{
	struct buf b;
	(void)state;
	write_file(path_of("f"), "hello");
	assert_int_equal(io_file_read(path_of("f"), 5, &b), ERR_OK);
	assert_true(str_eq(buf_str(&b), STR("hello")));
	buf_done(&b);
	assert_int_equal(io_file_read(path_of("f"), 4, &b), ERR_LIMIT);
	assert_int_equal(io_file_read(path_of("g"), 4, &b), ERR_NOT_FOUND);
	assert_int_equal(io_file_read(path_of("f/x"), 4, &b), ERR_NOT_FOUND);
	assert_int_equal(io_file_read(root, 4, &b), ERR_IO);
	assert_int_equal(io_path_kind(root), IO_PATH_DIR);
	assert_int_equal(io_path_kind(path_of("f")), IO_PATH_FILE);
	assert_int_equal(io_path_kind(path_of("g")), IO_PATH_NONE);
}

static void test_beginning(void **state)
{
	struct buf b;
	(void)state;
	write_file(path_of("f"), "hello");
	for (size_t most = 1; most <= 6; most++) {
		assert_int_equal(io_file_beginning(path_of("f"), most, &b), ERR_OK);
		assert_true(str_eq(buf_str(&b), str_sub(STR("hello"), 0, most)));
		buf_done(&b);
	}
	assert_int_equal(mkfifo(path_of("pipe"), 0600), 0);
	assert_int_equal(io_file_beginning(path_of("pipe"), 4, &b), ERR_UNSUPPORTED);
	assert_int_equal(io_file_beginning("/dev/zero", 4, &b), ERR_UNSUPPORTED);
	assert_int_equal(io_file_beginning(root, 4, &b), ERR_UNSUPPORTED);
	assert_int_equal(io_file_beginning(path_of("g"), 4, &b), ERR_NOT_FOUND);
	assert_int_equal(io_file_beginning(path_of("f/x"), 4, &b), ERR_NOT_FOUND);
}

/* Nothing waits in open(); what a writer has in a pipe is read. */
static void test_read_a_pipe(void **state)
{
	struct buf b;
	(void)state;
	assert_int_equal(mkfifo(path_of("pipe"), 0600), 0);
	assert_int_equal(io_file_read(path_of("pipe"), 5, &b), ERR_OK);
	assert_int_equal(b.n, 0);
	buf_done(&b);
	pid_t writer = fork();
	if (writer == 0) {
		int out = open(path_of("pipe"), O_WRONLY);
		ssize_t n = write(out, "hel", 3);
		usleep(20000);
		n += write(out, "lo", 2);
		_exit(n == 5 ? 0 : 1);
	}
	int fd = open(path_of("pipe"), O_RDONLY);    /* waits for the writer */
	assert_int_equal(io_file_read(path_of("pipe"), 5, &b), ERR_OK);
	assert_true(str_eq(buf_str(&b), STR("hello")));
	buf_done(&b);
	close(fd);
	assert_int_equal(waitpid(writer, NULL, 0), writer);
}

static void add_name(void *arg, struct str name)
{
	size_t n = strlen(arg);
	snprintf((char *)arg + n, 64 - n, "%.*s ", STR_ARG(name));
}

static void test_list(void **state)
{
	char names[64] = "";
	(void)state;
	write_file(path_of("b"), "");
	write_file(path_of("a"), "");
	mkdir(path_of("c"), 0700);
	assert_int_equal(symlink("a", path_of("link")), 0);
	assert_int_equal(io_dir_list(root, add_name, names), ERR_OK);
	assert_string_equal(names, "a b link ");
	assert_int_equal(io_dir_list(path_of("none"), add_name, names), ERR_NOT_FOUND);
}

static int changes;
static void on_change(void *arg)
{
	(void)arg;
	changes++;
}

static void test_watch_file(void **state)
{
	(void)state;
	changes = 0;
	write_file(path_of("conf"), "1");
	struct io_watch *w = io_watch_new(kit_loop, path_of("conf"), on_change, NULL);
	kit_run_us(100000);
	assert_int_equal(changes, 0);
	write_file(path_of("conf"), "2");      /* several events, one call */
	write_file(path_of("conf"), "3");
	kit_until_n(&changes, 1);
	kit_run_us(100000);
	assert_int_equal(changes, 1);
	write_file(path_of("new"), "4");       /* another file of the folder: not ours */
	kit_run_us(100000);
	assert_int_equal(changes, 1);
	assert_int_equal(rename(path_of("new"), path_of("conf")), 0);
	kit_until_n(&changes, 2);
	kit_run_us(100000);
	write_file(path_of("conf"), "5");      /* the one that came by rename is watched too */
	kit_until_n(&changes, 3);
	unlink(path_of("conf"));
	kit_until_n(&changes, 4);
	io_watch_free(w);
	io_watch_free(NULL);
}

static void test_watch_folder(void **state)
{
	(void)state;
	changes = 0;
	mkdir(path_of("d"), 0700);
	struct io_watch *w = io_watch_new(kit_loop, path_of("d"), on_change, NULL);
	write_file(path_of("d/x"), "1");
	kit_until_n(&changes, 1);
	kit_run_us(100000);
	int before = changes;
	mkdir(path_of("e"), 0700);             /* the folder is replaced by another */
	assert_int_equal(rename(path_of("d"), path_of("old")), 0);
	assert_int_equal(rename(path_of("e"), path_of("d")), 0);
	kit_until_n(&changes, before + 1);
	kit_run_us(100000);
	before = changes;
	write_file(path_of("d/y"), "2");
	kit_until_n(&changes, before + 1);
	io_watch_free(w);
}

static void test_watch_kubernetes_link_swap(void **state)
{
	(void)state;
	changes = 0;
	mkdir(path_of("..v1"), 0700);
	mkdir(path_of("..v2"), 0700);
	write_file(path_of("..v1/conf"), "1");
	write_file(path_of("..v2/conf"), "2");
	assert_int_equal(symlink("..v1", path_of("..data")), 0);
	assert_int_equal(symlink("..data/conf", path_of("conf")), 0);
	struct io_watch *w = io_watch_new(kit_loop, path_of("conf"), on_change, NULL);
	assert_int_equal(symlink("..v2", path_of("..data_tmp")), 0);
	assert_int_equal(rename(path_of("..data_tmp"), path_of("..data")), 0);
	kit_until_n(&changes, 1);
	io_watch_free(w);
}

static void test_watch_waits_for_its_folder(void **state)
{
	(void)state;
	changes = 0;
	struct io_watch *w = io_watch_new(kit_loop, path_of("late/conf"), on_change, NULL);
	mkdir(path_of("late"), 0700);
	write_file(path_of("late/conf"), "1");
	kit_until_n(&changes, 1);
	io_watch_free(w);
}

#define FTEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
int main(void)
{
	const struct CMUnitTest tests[] = {
		FTEST(test_read), FTEST(test_beginning), FTEST(test_read_a_pipe), FTEST(test_list), FTEST(test_watch_file), FTEST(test_watch_folder),
		FTEST(test_watch_kubernetes_link_swap), FTEST(test_watch_waits_for_its_folder),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
