/* Threads for further loops; few, started once. */
#include "io/thread.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "base/must.h"

struct io_thread {
	pthread_t id;
	void (*fn)(void *arg);
	void *arg;
};

static void *run(void *arg)
{
	struct io_thread *t = arg;
	t->fn(t->arg);
	return NULL;
}

struct io_thread *io_thread_start(void (*fn)(void *arg), void *arg)
{
	struct io_thread *t = must_calloc(1, sizeof(*t));
	sigset_t all, before;
	t->fn = fn;
	t->arg = arg;
	sigfillset(&all);
	must(pthread_sigmask(SIG_SETMASK, &all, &before) == 0);
	must(pthread_create(&t->id, NULL, run, t) == 0);
	must(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
	return t;
}

void io_thread_join(struct io_thread *t)
{
	must(pthread_join(t->id, NULL) == 0);
	free(t);
}
