/*
 * Runs a fuzz target over kept inputs, with any compiler: every file under the folders and files named on the
 * command line goes through LLVMFuzzerTestOneInput once. A crash found by the fuzzer is kept as such a file and
 * from then on is a test. A folder that does not exist yet counts as empty, with the empty input alone.
 */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned count;

static void fail(const char *path)
{
	fprintf(stderr, "%s: %s\n", path, strerror(errno));
	exit(2);
}

static void replay_file(const char *path, size_t size)
{
	FILE *f = fopen(path, "rb");
	uint8_t *data = malloc(size ? size : 1);    /* exact size: the address sanitizer sees one byte too far */
	if (!f || !data || fread(data, 1, size, f) != size)
		fail(path);
	fclose(f);
	LLVMFuzzerTestOneInput(data, size);
	free(data);
	count++;
}

static void replay(const char *path)
{
	struct stat st;
	if (stat(path, &st) < 0) {
		if (errno == ENOENT)
			return;
		fail(path);
	}
	if (!S_ISDIR(st.st_mode)) {
		replay_file(path, (size_t)st.st_size);
		return;
	}
	struct dirent **names;
	int n = scandir(path, &names, NULL, alphasort);
	if (n < 0)
		fail(path);
	for (int i = 0; i < n; i++) {
		char *inner;
		if (names[i]->d_name[0] != '.' && asprintf(&inner, "%s/%s", path, names[i]->d_name) > 0) {
			replay(inner);
			free(inner);
		}
		free(names[i]);
	}
	free(names);
}

int main(int argc, char **argv)
{
	LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
	for (int i = 1; i < argc; i++)
		replay(argv[i]);
	printf("%u inputs replayed\n", count);
	return 0;
}
