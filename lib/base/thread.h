/* SPDX-License-Identifier: BSD-3-Clause */
/* The threads that libraries start in a program. */
#ifndef SAKER_BASE_THREAD_H
#define SAKER_BASE_THREAD_H

#include <pthread.h>
#include <signal.h>

/* Starts a thread with all signals blocked but those of faults: the program's own threads handle
 * its signals, but a fault of a thread that blocks its signal ends the process. The thread may
 * write to a page that another thread moves, and waits in the handler of SIGSEGV (lib/move); the
 * program may have a handler of SIGBUS for memory that the thread uses. Returns 0 or errno. */
static inline int
sk_thread_start(pthread_t *thread, void *(*run)(void *), void *arg)
{
	sigset_t blocked, before;
	int rc;

	sigfillset(&blocked);
	sigdelset(&blocked, SIGSEGV);
	sigdelset(&blocked, SIGBUS);
	pthread_sigmask(SIG_SETMASK, &blocked, &before);
	rc = pthread_create(thread, NULL, run, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}

#endif
