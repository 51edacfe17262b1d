/* io/fds.h: file descriptors of the whole process. */
#ifndef IO_FDS_H
#define IO_FDS_H

#include <stddef.h>

/* Takes all that the hard limit allows; how many there may be open now. */
size_t io_fds_raise(void);

#endif
