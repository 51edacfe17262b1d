/* io/file.h: whole small files, folders, and a watch on them (inotify). Start-up and reload only, never on the data path. */
#ifndef IO_FILE_H
#define IO_FILE_H

#include "base/buf.h"
#include "io/loop.h"

must_use enum err io_file_read(const char *path, size_t max_bytes, struct buf *ret_buf);   /* NOT_FOUND, IO, LIMIT; ret_buf is initialised here */
/* The first bytes of a plain file; UNSUPPORTED: it is something else (a folder, a device, a pipe). */
must_use enum err io_file_beginning(const char *path, size_t most_bytes, struct buf *ret_buf);
must_use enum err io_input_read(size_t max_bytes, struct buf *ret_buf);                    /* standard input, however long it takes to come */
/* Names (not paths) of the regular files in a folder, sorted; fn once per name. */
must_use enum err io_dir_list(const char *path, void (*fn)(void *arg, struct str name), void *arg);
enum io_path_kind { IO_PATH_NONE, IO_PATH_FILE, IO_PATH_DIR };
enum io_path_kind io_path_kind(const char *path);
/* Another number once the file was written or replaced; 0: there is none. */
uint64_t io_file_stamp(const char *path);

/* Calls fn (on the loop, settled for 50 ms) when the file, or anything in the folder, changed, appeared, or was replaced
 * by rename (the folder that holds the path is watched, so editors and `mv` work; Kubernetes' ..data links too). */
struct io_watch;
struct io_watch *io_watch_new(struct io_loop *l, const char *path, void (*fn)(void *arg), void *arg);
void io_watch_free(struct io_watch *w);

#endif
