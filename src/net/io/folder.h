/* io/folder.h: what a cache on disk needs: folders made and cleared, files written whole, a lock between processes.
 * Blocking: for the thread pool and for programs without a loop. */
#ifndef IO_FOLDER_H
#define IO_FOLDER_H

#include "base/err.h"
#include "base/str.h"

must_use enum err io_folder_make(const char *path);                      /* with the folders above it; fine when it is there */
/* Removes the folder with its files and the empty folders in it; fine when it is not there. Links are removed, not followed. */
must_use enum err io_folder_clear(const char *path);
must_use enum err io_file_write(const char *path, struct str text);      /* a new file, on disk when this returns */
must_use enum err io_file_remove(const char *path);                      /* fine when it is not there */
/* Within one file system, at once for everybody who looks. A file replaces a file; DUPLICATE: `to` is a folder with something in it. */
must_use enum err io_path_move(const char *from, const char *to);

/* Held by one process at a time, and let go of when it dies. AGAIN: another has it. */
struct io_lock;
must_use enum err io_lock_take(const char *path, struct io_lock **ret_l);
void io_lock_drop(struct io_lock *l);                                    /* NULL is fine */

#endif
