/* The table of descriptors is one for all threads, so how much of it there is belongs to no loop. */
#include "io/fds.h"

#include <fcntl.h>
#include <stdint.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/base.h"

enum { SMALLEST_LIMIT = 256 };    /* where the system does not say */

size_t io_fds_raise(void)
{
	struct rlimit r;
	if (getrlimit(RLIMIT_NOFILE, &r) != 0)
		return SMALLEST_LIMIT;
	rlim_t had = r.rlim_cur;
	r.rlim_cur = r.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &r) != 0)
		r.rlim_cur = had;
	return (size_t)MIN(r.rlim_cur, (rlim_t)INT32_MAX);
}

void io_fds_fill(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)    /* open() takes the lowest */
		if (fcntl(fd, F_GETFD) < 0)
			(void)open("/dev/null", O_RDWR);
}
