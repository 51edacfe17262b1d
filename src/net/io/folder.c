/* folder.c: small system calls with the errors of the house. */
#include "io/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/must.h"

enum { FILE_MODE = 0644, FOLDER_MODE = 0755 };

static enum err make_one(const char *path)
{
	struct stat st;
	if (mkdir(path, FOLDER_MODE) == 0)
		return ERR_OK;
	return errno == EEXIST && stat(path, &st) == 0 && S_ISDIR(st.st_mode) ? ERR_OK : ERR_IO;
}

enum err io_folder_make(const char *path)
{
	char *p = str_dup(str_of(path));
	enum err e = ERR_OK;
	for (char *slash = strchr(*p ? p + 1 : p, '/'); slash && e == ERR_OK; slash = strchr(slash + 1, '/')) {
		*slash = 0;
		e = make_one(p);
		*slash = '/';
	}
	if (e == ERR_OK)
		e = make_one(p);
	free(p);
	return e;
}

enum err io_folder_clear(const char *path)
{
	struct dirent *d;
	DIR *folder = opendir(path);
	if (!folder)
		return errno == ENOENT ? ERR_OK : ERR_IO;
	while ((d = readdir(folder)))
		if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0 && unlinkat(dirfd(folder), d->d_name, 0) < 0)
			(void)unlinkat(dirfd(folder), d->d_name, AT_REMOVEDIR);   /* what stays makes rmdir fail */
	closedir(folder);
	return rmdir(path) == 0 || errno == ENOENT ? ERR_OK : ERR_IO;
}

static enum err put_all(int fd, struct str s)
{
	while (s.n) {
		ssize_t n = write(fd, s.p, s.n);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return ERR_IO;
		s = str_skip(s, (size_t)n);
	}
	return fsync(fd) == 0 ? ERR_OK : ERR_IO;
}

enum err io_file_write(const char *path, struct str text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, FILE_MODE);
	if (fd < 0)
		return ERR_IO;
	enum err e = put_all(fd, text);
	return close(fd) == 0 ? e : ERR_IO;
}

enum err io_file_remove(const char *path) { return unlink(path) == 0 || errno == ENOENT ? ERR_OK : ERR_IO; }

enum err io_path_move(const char *from, const char *to)
{
	if (rename(from, to) == 0)
		return ERR_OK;
	return errno == ENOTEMPTY || errno == EEXIST ? ERR_DUPLICATE : ERR_IO;
}

struct io_lock { int fd; };

enum err io_lock_take(const char *path, struct io_lock **ret_l)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, FILE_MODE);
	if (fd < 0)
		return ERR_IO;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		enum err e = errno == EWOULDBLOCK ? ERR_AGAIN : ERR_IO;
		close(fd);
		return e;
	}
	*ret_l = must_malloc(sizeof(**ret_l));
	(*ret_l)->fd = fd;
	return ERR_OK;
}

void io_lock_drop(struct io_lock *l)
{
	if (!l)
		return;
	close(l->fd);
	free(l);
}
