/* The table of descriptors is one for all threads, so how much of it there is belongs to no loop. */
#include "io/fds.h"

#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/base.h"
#include "base/must.h"

enum {
	SMALLEST_LIMIT = 256,    /* where the system does not say */
	SPARE_MAX = 64,
};

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

bool io_fds_spare(size_t n)
{
	int fds[SPARE_MAX];
	size_t got = 0;
	must(n <= SPARE_MAX);
	while (got < n && (fds[got] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
		got++;
	for (size_t i = 0; i < got; i++)
		(void)close(fds[i]);
	return got == n;
}

void io_fds_fill(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)    /* open() takes the lowest */
		if (fcntl(fd, F_GETFD) < 0)
			(void)open("/dev/null", O_RDWR);
	signal(SIGXFSZ, SIG_IGN);
}
