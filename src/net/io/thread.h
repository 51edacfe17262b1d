/* io/thread.h: a thread for a loop of its own. Started with all signals blocked: signals belong to the main loop. */
#ifndef IO_THREAD_H
#define IO_THREAD_H

struct io_thread;
struct io_thread *io_thread_start(void (*fn)(void *arg), void *arg);
void io_thread_join(struct io_thread *t); /* waits for fn to return; frees */

#endif
