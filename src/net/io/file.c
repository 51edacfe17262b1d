/* Small files and folders, and a watch that survives editors, `mv` and Kubernetes' link swaps. */
#include "io/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/must.h"
#include "base/vec.h"
#include "io/loop_priv.h"

#define SETTLE_US 50000
#define RETRY_US 1000000      /* the folder is not there yet */
#define PIPE_WAIT_MS 5000     /* for a pipe that has a writer, as in `kvasir check <(helm template .)` */

/* ---- reading ----------------------------------------------------------------------------------------------- */

static bool more_comes(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	return poll(&p, 1, PIPE_WAIT_MS) > 0;
}

static enum err read_all(int fd, size_t max_bytes, struct buf *b)
{
	for (;;) {
		char piece[8192];
		ssize_t n = read(fd, piece, sizeof(piece));
		if (n < 0 && (errno == EINTR || (errno == EAGAIN && more_comes(fd))))
			continue;
		if (n < 0)
			return ERR_IO;
		if (n == 0)
			return ERR_OK;
		if (b->n + (size_t)n > max_bytes)
			return ERR_LIMIT;
		TRY(buf_add(b, (struct str){ piece, (size_t)n }));
	}
}

static enum err read_whole(int fd, size_t max_bytes, struct buf *ret_buf)
{
	struct buf b;
	buf_init(&b, max_bytes);
	enum err e = read_all(fd, max_bytes, &b);
	if (e != ERR_OK)
		buf_done(&b);
	else
		*ret_buf = b;
	return e;
}

/* O_NONBLOCK: a FIFO that nobody writes to would hold up the loop for ever in open(). */
enum err io_file_read(const char *path, size_t max_bytes, struct buf *ret_buf)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return errno == ENOENT || errno == ENOTDIR ? ERR_NOT_FOUND : ERR_IO;
	enum err e = read_whole(fd, max_bytes, ret_buf);
	close(fd);
	return e;
}

/* O_NONBLOCK as above: what it is shows only when it is open. */
enum err io_file_beginning(const char *path, size_t most_bytes, struct buf *ret_buf)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return errno == ENOENT || errno == ENOTDIR ? ERR_NOT_FOUND : ERR_IO;
	enum err e = fstat(fd, &st) < 0 ? ERR_IO : !S_ISREG(st.st_mode) ? ERR_UNSUPPORTED : ERR_OK;
	char *room;
	buf_init(ret_buf, most_bytes);
	e = e == ERR_OK ? buf_reserve(ret_buf, most_bytes, &room) : e;
	ssize_t n = e == ERR_OK ? pread(fd, room, most_bytes, 0) : 0;
	close(fd);
	if (e != ERR_OK || n < 0) {
		buf_done(ret_buf);
		return e != ERR_OK ? e : ERR_IO;
	}
	buf_commit(ret_buf, (size_t)n);
	return ERR_OK;
}

enum err io_input_read(size_t max_bytes, struct buf *ret_buf) { return read_whole(STDIN_FILENO, max_bytes, ret_buf); }

enum io_path_kind io_path_kind(const char *path)
{
	struct stat st;
	if (stat(path, &st) < 0)
		return IO_PATH_NONE;
	return S_ISDIR(st.st_mode) ? IO_PATH_DIR : IO_PATH_FILE;
}

uint64_t io_file_stamp(const char *path)
{
	struct stat st;
	if (stat(path, &st) < 0)
		return 0;
	uint64_t parts[] = { st.st_dev, st.st_ino, (uint64_t)st.st_size, (uint64_t)st.st_mtim.tv_sec, (uint64_t)st.st_mtim.tv_nsec };
	return hash_bytes(parts, sizeof(parts), 0);
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

enum err io_dir_list(const char *path, void (*fn)(void *arg, struct str name), void *arg)
{
	VEC(char *) names = { 0 };
	DIR *d = opendir(path);
	struct dirent *e;
	struct stat st;
	if (!d)
		return errno == ENOENT || errno == ENOTDIR ? ERR_NOT_FOUND : ERR_IO;
	while ((e = readdir(d)))    /* follows links: Kubernetes mounts every file as one */
		if (fstatat(dirfd(d), e->d_name, &st, 0) == 0 && S_ISREG(st.st_mode))
			VEC_PUSH(&names, str_dup(str_of(e->d_name)));
	closedir(d);
	if (names.n > 1)
		qsort(names.p, names.n, sizeof(names.p[0]), by_name);
	for (size_t i = 0; i < names.n; i++) {
		fn(arg, str_of(names.p[i]));
		free(names.p[i]);
	}
	VEC_FREE(&names);
	return ERR_OK;
}

/* ---- watching ---------------------------------------------------------------------------------------------- */

struct io_watch {
	struct io_loop *loop;
	uv_fs_event_t holder, inside;    /* the folder that holds the path; the path itself when it is a folder */
	unsigned open_handles;
	struct io_timer *settle;
	char *path, *folder, *name;
	void (*fn)(void *arg);
	void *arg;
	bool missing;                    /* the holder could not be watched */
};

static void on_event(uv_fs_event_t *h, const char *filename, int events, int status)
{
	struct io_watch *w = h->data;
	(void)events;
	io_loop_enter(w->loop);
	/* ".." covers ..data, the link that Kubernetes swaps under the file's own link. */
	bool ours = h == &w->inside || status < 0 || !filename || strcmp(filename, w->name) == 0 || strncmp(filename, "..", 2) == 0;
	if (ours)
		io_timer_after(w->settle, SETTLE_US);
	io_loop_leave(w->loop);
}

/* Watches what is there now; a folder that was replaced is another one behind the same name. */
static void arm(struct io_watch *w)
{
	uv_fs_event_stop(&w->holder);
	uv_fs_event_stop(&w->inside);
	w->missing = uv_fs_event_start(&w->holder, on_event, w->folder, 0) != 0;
	if (io_path_kind(w->path) == IO_PATH_DIR)
		(void)uv_fs_event_start(&w->inside, on_event, w->path, 0);
	if (w->missing)
		io_timer_after(w->settle, RETRY_US);
}

static void on_settled(void *arg)
{
	struct io_watch *w = arg;
	bool was_missing = w->missing;
	arm(w);    /* first: a change while fn reads must not be lost */
	if (!was_missing || !w->missing)
		w->fn(w->arg);
}

static void init_handle(struct io_watch *w, uv_fs_event_t *h)
{
	must(uv_fs_event_init(&w->loop->uv, h) == 0);
	h->data = w;
	uv_unref((uv_handle_t *)h);
	w->open_handles++;
}

struct io_watch *io_watch_new(struct io_loop *l, const char *path, void (*fn)(void *arg), void *arg)
{
	struct io_watch *w = must_calloc(1, sizeof(*w));
	char *a = str_dup(str_of(path)), *b = str_dup(str_of(path));
	w->loop = l;
	w->fn = fn;
	w->arg = arg;
	w->path = str_dup(str_of(path));
	w->folder = str_dup(str_of(dirname(a)));
	w->name = str_dup(str_of(basename(b)));
	free(a);
	free(b);
	w->settle = io_timer_new(l, on_settled, w);
	init_handle(w, &w->holder);
	init_handle(w, &w->inside);
	arm(w);
	return w;
}

static void on_closed(uv_handle_t *h)
{
	struct io_watch *w = h->data;
	if (--w->open_handles > 0)
		return;
	free(w->path);
	free(w->folder);
	free(w->name);
	free(w);
}

void io_watch_free(struct io_watch *w)
{
	if (!w)
		return;
	io_timer_free(w->settle);
	w->settle = NULL;
	uv_close((uv_handle_t *)&w->holder, on_closed);
	uv_close((uv_handle_t *)&w->inside, on_closed);
}
