/* SPDX-License-Identifier: BSD-3-Clause */
#include "descriptors.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HURRY_NS (2 * 1000 * 1000l)

/* ---- Waits that signals end ---- */

static void
hurry_on_signal(int sig)
{
}

int
sk_hurry_init(struct sk_hurry *h)
{
	struct sigevent ev = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGURG};
	const struct sigaction nothing = {.sa_handler = hurry_on_signal, .sa_flags = SA_RESTART};
	struct sigaction before;
	sigset_t urg;

	h->ready = false;
	ev._sigev_un._tid = (pid_t)syscall(SYS_gettid);
	if (sigaction(SIGURG, NULL, &before) < 0)
		return -errno;
	if (before.sa_handler == SIG_DFL || before.sa_handler == SIG_IGN)
		sigaction(SIGURG, &nothing, NULL);
	sigemptyset(&urg);
	sigaddset(&urg, SIGURG);
	pthread_sigmask(SIG_UNBLOCK, &urg, NULL);
	if (timer_create(CLOCK_MONOTONIC, &ev, &h->timer) < 0)
		return -errno;
	h->ready = true;
	return 0;
}

void
sk_hurry_fini(struct sk_hurry *h)
{
	if (h->ready)
		timer_delete(h->timer);
	h->ready = false;
}

static void
hurry_set(const struct sk_hurry *h, long ns)
{
	const struct itimerspec t = {.it_interval.tv_nsec = ns, .it_value.tv_nsec = ns};

	if (h->ready)
		timer_settime(h->timer, 0, &t, NULL);
}

void
sk_hurry_begin(const struct sk_hurry *h)
{
	hurry_set(h, HURRY_NS);
}

void
sk_hurry_end(const struct sk_hurry *h)
{
	hurry_set(h, 0);
}

void
sk_hurry_close(const struct sk_hurry *h, int fd)
{
	sk_hurry_begin(h);
	close(fd);
	sk_hurry_end(h);
}

/* ---- Closing on another thread ---- */

struct sk_closer {
	pthread_mutex_t lock; /* of all other members */
	unsigned refs;        /* the owner's, and one of the thread while it runs */
	bool runs;
	unsigned n; /* including the one that is being closed */
	int fd[SK_CLOSER_MAX];
};

/* Ends a reference. The caller has locked the closer. */
static void
closer_unref(struct sk_closer *c)
{
	bool last = --c->refs == 0;

	pthread_mutex_unlock(&c->lock);
	if (!last)
		return;
	pthread_mutex_destroy(&c->lock);
	free(c);
}

static void *
closer_run(void *arg)
{
	struct sk_closer *c = arg;

	pthread_mutex_lock(&c->lock);
	while (c->n > 0) {
		int fd = c->fd[0];

		pthread_mutex_unlock(&c->lock);
		close(fd);
		pthread_mutex_lock(&c->lock);
		memmove(&c->fd[0], &c->fd[1], --c->n * sizeof(c->fd[0]));
	}
	c->runs = false;
	closer_unref(c);
	return NULL;
}

static struct sk_closer *
closer_new(void)
{
	struct sk_closer *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return NULL;
	pthread_mutex_init(&c->lock, NULL);
	c->refs = 1;
	return c;
}

/* Starts the thread. Without it, the descriptors wait until the next one comes. */
static void
closer_start(struct sk_closer *c)
{
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	c->runs = pthread_create(&thread, &attr, closer_run, c) == 0;
	c->refs += c->runs;
	pthread_attr_destroy(&attr);
}

void
sk_closer_put(struct sk_closer **c, int fd)
{
	if (*c == NULL)
		*c = closer_new();
	if (*c == NULL) {
		close(fd);
		return;
	}
	pthread_mutex_lock(&(*c)->lock);
	(*c)->fd[(*c)->n++] = fd;
	if (!(*c)->runs)
		closer_start(*c);
	pthread_mutex_unlock(&(*c)->lock);
}

static unsigned
closer_count(const struct sk_closer *c)
{
	pthread_mutex_t *lock = (pthread_mutex_t *)(uintptr_t)&c->lock;
	unsigned n;

	pthread_mutex_lock(lock);
	n = c->n;
	pthread_mutex_unlock(lock);
	return n;
}

bool
sk_closer_is_full(const struct sk_closer *c)
{
	return c != NULL && closer_count(c) == SK_CLOSER_MAX;
}

bool
sk_closer_tidy(struct sk_closer **c)
{
	if (*c != NULL && closer_count(*c) == 0)
		sk_closer_leave(c);
	return *c == NULL;
}

void
sk_closer_leave(struct sk_closer **c)
{
	if (*c == NULL)
		return;
	pthread_mutex_lock(&(*c)->lock);
	closer_unref(*c);
	*c = NULL;
}
