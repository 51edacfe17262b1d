/* io/fds.h: file descriptors of the whole process. */
#ifndef IO_FDS_H
#define IO_FDS_H

#include <stdbool.h>
#include <stddef.h>

/* Takes all that the hard limit allows; how many there may be open now. */
size_t io_fds_raise(void);
/* Could n more be opened now (n at most 64)? For libraries that abort without. */
bool io_fds_spare(size_t n);
/* First thing in a program: where standard input, output or error was closed, /dev/null takes its place, and not a socket that
 * libuv would refuse to close and messages would be written into. A file that may not grow (ulimit -f) is an error from now on, not a death. */
void io_fds_fill(void);

#endif
