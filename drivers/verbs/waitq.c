/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queues of items behind a descriptor. The eventfd is readable while a queue has items; its count
 * has no other meaning. Each new item writes to the eventfd, so that an edge-triggered program
 * wakes as well, and the last item that leaves reads it. That read is made under the lock, after
 * poll(2) found the eventfd readable, so that it never blocks even if the program set the
 * descriptor to block.
 *
 * A program may cancel a thread that waits here (pthread_cancel(3)). poll(2) in vb_waitq_wait() is
 * the only cancellation point: no lock is held there, and no item is taken.
 *
 * A child of fork(2) has the eventfd in common with its parent, and neither reads nor writes it. It
 * can take items out of its copy of a queue, to free them.
 *
 * Programs expect of these calls that they block in read(2), which goes on after a handler with
 * SA_RESTART. poll(2) never does.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../../lib/base/fault.h"
#include "verbs_priv.h"

static uint32_t forks; /* calls of fork(2) between the first process and this one */

static void
waitq_fork_child(void)
{
	forks++;
}

__attribute__((constructor)) static void
waitq_watch_forks(void)
{
	pthread_atfork(NULL, NULL, waitq_fork_child);
}

/* Returns whether the queue is one of a parent process, which has the eventfd in common with this
 * one. */
static bool
waitq_is_parents(const struct vb_waitq *q)
{
	return q->forks != forks;
}

/* Returns false for a queue whose lock a thread of the parent held at the time of the fork. */
static bool
waitq_lock(struct vb_waitq *q)
{
	if (waitq_is_parents(q))
		return pthread_mutex_trylock(&q->lock) == 0;
	pthread_mutex_lock(&q->lock);
	return true;
}

int
vb_waitq_init(struct vb_waitq *q, bool (*taken)(struct vb_wait_item *item))
{
	q->event = eventfd(0, EFD_CLOEXEC);
	if (q->event < 0)
		return errno;
	pthread_mutex_init(&q->lock, NULL);
	STAILQ_INIT(&q->items);
	q->taken = taken;
	q->gather = NULL;
	q->forks = forks;
	return 0;
}

void
vb_waitq_fini(struct vb_waitq *q)
{
	close(q->event);
	pthread_mutex_destroy(&q->lock);
}

void
vb_waitq_signal(struct vb_waitq *q)
{
	const uint64_t one = 1;

	if (waitq_is_parents(q))
		return;
	/* The write fails when the count is at its limit; the eventfd is readable then. */
	if (syscall(SYS_write, q->event, &one, sizeof(one)) < 0)
		return;
}

static bool
waitq_gather(struct vb_waitq *q)
{
	return q->gather != NULL && q->gather(q);
}

/* Makes the descriptor unreadable if the queue is empty. Call with the lock held. */
static void
vb_waitq_settle(struct vb_waitq *q)
{
	struct pollfd p = {.fd = q->event, .events = POLLIN};
	uint64_t count;
	bool more;

	if (waitq_is_parents(q) || !STAILQ_EMPTY(&q->items) || syscall(SYS_poll, &p, 1, 0) <= 0)
		return;
	if (syscall(SYS_read, q->event, &count, sizeof(count)) < 0)
		return;
	/* The signal for an item that is not there yet may have been read, too. */
	more = waitq_gather(q);
	if (more || !STAILQ_EMPTY(&q->items))
		vb_waitq_signal(q);
}

void
vb_waitq_push(struct vb_waitq *q, struct vb_wait_item *item)
{
	pthread_mutex_lock(&q->lock);
	STAILQ_INSERT_TAIL(&q->items, item, next);
	vb_waitq_signal(q);
	pthread_mutex_unlock(&q->lock);
}

struct vb_wait_item *
vb_waitq_pop(struct vb_waitq *q)
{
	struct vb_wait_item *item;

	if (!waitq_lock(q))
		return NULL;
	waitq_gather(q);
	item = STAILQ_FIRST(&q->items);
	if (item != NULL && (q->taken == NULL || !q->taken(item))) {
		STAILQ_REMOVE_HEAD(&q->items, next);
		vb_waitq_settle(q);
	}
	/* A signal of the owner's may come after another thread has gathered its items. */
	if (item == NULL && q->gather != NULL)
		vb_waitq_settle(q);
	pthread_mutex_unlock(&q->lock);
	return item;
}

/* Returns whether a handler of this signal, which raises EINTR, may have run in this thread. */
static bool
interrupts(int sig, const sigset_t *blocked)
{
	struct sigaction sa;

	/* A fault does not reach a thread that sleeps. */
	if (sig == SIGSEGV || sig == SIGBUS || sig == SIGFPE || sig == SIGILL || sig == SIGTRAP)
		return false;
	if (sigismember(blocked, sig) != 0 || sigaction(sig, NULL, &sa) < 0)
		return false;
	return (sa.sa_flags & SA_RESTART) == 0 && sk_fault_is_handler(&sa);
}

bool
vb_restarts(void)
{
	int saved = errno;
	sigset_t blocked;
	bool any = false;

	pthread_sigmask(SIG_BLOCK, NULL, &blocked);
	for (int sig = 1; sig <= SIGRTMAX && !any; sig++)
		any = interrupts(sig, &blocked);
	errno = saved;
	return !any;
}

int
vb_waitq_wait(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	int flags = fcntl(fd, F_GETFL);

	if (flags >= 0 && (flags & O_NONBLOCK) != 0) {
		errno = EAGAIN;
		return -1;
	}
	while (poll(&p, 1, -1) < 0)
		if (errno != EINTR || !vb_restarts())
			return -1;
	return 0;
}

struct vb_wait_item *
vb_waitq_get(struct vb_waitq *q)
{
	struct vb_wait_item *item;

	if (waitq_is_parents(q)) {
		errno = EIO;
		return NULL;
	}
	while ((item = vb_waitq_pop(q)) == NULL && vb_waitq_wait(q->event) == 0)
		;
	return item;
}

struct vb_wait_item *
vb_waitq_take(struct vb_waitq *q, bool (*match)(const struct vb_wait_item *, void *), void *arg)
{
	struct vb_wait_item *item;

	if (!waitq_lock(q))
		return NULL;
	waitq_gather(q);
	STAILQ_FOREACH (item, &q->items, next)
		if (match(item, arg))
			break;
	if (item != NULL) {
		STAILQ_REMOVE(&q->items, item, vb_wait_item, next);
		vb_waitq_settle(q);
	}
	pthread_mutex_unlock(&q->lock);
	return item;
}
