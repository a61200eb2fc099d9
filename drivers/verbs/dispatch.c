/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The dispatcher: it takes events from libsaker, which has one descriptor, and delivers them to the
 * descriptors that verbs programs sleep on. A thread of the library waits for events and delivers
 * completion events to their channels, asynchronous events to their contexts, and events of
 * connections to cm/. The thread starts when a program first creates an object that it can sleep
 * on; a program that only polls has no such thread.
 */
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "events_priv.h"
#include "process_priv.h"
#include "verbs_priv.h"

#define JOIN_SECONDS 1 /* the longest wait for the thread at the end of the process */

static struct {
	pthread_mutex_t events; /* see vb_events_lock() */
	pthread_mutex_t lock;   /* guards the next three */
	bool running;
	pthread_t thread;
	int stop;  /* eventfd: readable when the thread must end */
	bool gone; /* the saker has gone; guarded by the events' lock */
} disp = {
	.events = PTHREAD_MUTEX_INITIALIZER,
	.lock = PTHREAD_MUTEX_INITIALIZER,
};
static vb_cm_fn *cm_event; /* atomic */

void
vb_events_lock(void)
{
	pthread_mutex_lock(&disp.events);
}

void
vb_events_unlock(void)
{
	pthread_mutex_unlock(&disp.events);
}

void
vb_on_cm_event(vb_cm_fn *fn)
{
	__atomic_store_n(&cm_event, fn, __ATOMIC_RELEASE);
}

/* Processes, for the libibverbs side, an event that is not a completion event. */
static void
async_event(const struct saker_event *ev)
{
	struct vb_qp *qp = ev->qp != NULL ? saker_qp_user(ev->qp) : NULL;

	switch (ev->type) {
	case SAKER_EV_QP_FATAL:
		vb_qp_fatal(qp, &ev->async);
		break;
	case SAKER_EV_CQ_OVERFLOW:
		vb_cq_overflow(saker_cq_user(ev->cq));
		break;
	case SAKER_EV_SRQ_LIMIT:
		vb_srq_limit(saker_srq_user(ev->srq));
		break;
	case SAKER_EV_ENGINE_GONE:
		disp.gone = true;
		vb_contexts_gone();
		break;
	default:
		break;
	}
}

bool
vb_dispatch(struct saker *s)
{
	struct saker_event ev;
	struct saker_cq *cq;
	vb_cm_fn *fn;
	bool gone;

	vb_events_lock();
	while (saker_cq_event(s, &cq) > 0)
		vb_channel_event(saker_cq_user(cq));
	while (saker_event(s, &ev) > 0) {
		async_event(&ev);
		fn = __atomic_load_n(&cm_event, __ATOMIC_ACQUIRE);
		if (fn != NULL)
			fn(&ev);
	}
	gone = disp.gone;
	vb_events_unlock();
	return !gone;
}

static void *
dispatch_run(void *arg)
{
	struct pollfd p[2] = {
		{.fd = saker_fd(arg), .events = POLLIN}, {.fd = disp.stop, .events = POLLIN}};

	/* The first turn delivers the events that came before the thread existed. When the saker
	 * has gone, its descriptor stays readable and no further event comes. */
	while (vb_dispatch(arg)) {
		if (poll(p, 2, -1) < 0 && errno != EINTR)
			break;
		if ((p[1].revents & POLLIN) != 0)
			break;
	}
	return NULL;
}

/* Starts the thread with all signals blocked: the program's own threads handle its signals. */
static int
thread_begin(struct saker *s)
{
	sigset_t all, old;
	int rc;

	disp.stop = eventfd(0, EFD_CLOEXEC);
	if (disp.stop < 0)
		return errno;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&disp.thread, NULL, dispatch_run, s);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (rc != 0) {
		close(disp.stop);
		return vb_fail(
			rc, "cannot start the thread that delivers events: %s", strerror(rc));
	}
	pthread_setname_np(disp.thread, "saker-verbs");
	return 0;
}

int
vb_dispatch_start(void)
{
	struct saker *s = vb_saker();
	int rc = 0;

	if (s == NULL)
		return errno;
	pthread_mutex_lock(&disp.lock);
	if (!disp.running) {
		rc = thread_begin(s);
		disp.running = rc == 0;
	}
	pthread_mutex_unlock(&disp.lock);
	if (rc == 0)
		vb_contexts_dispatched();
	return rc;
}

bool
vb_dispatch_running(void)
{
	bool running;

	pthread_mutex_lock(&disp.lock);
	running = disp.running;
	pthread_mutex_unlock(&disp.lock);
	return running;
}

/* Ends the thread. The attachment stays: other threads may poll until the process ends. */
__attribute__((destructor)) static void
dispatch_end(void)
{
	const uint64_t one = 1;
	struct timespec until;

	if (!disp.running || pthread_equal(pthread_self(), disp.thread))
		return;
	if (write(disp.stop, &one, sizeof(one)) < 0)
		return;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += JOIN_SECONDS;
	if (pthread_timedjoin_np(disp.thread, NULL, &until) == 0)
		close(disp.stop);
	disp.running = false;
}

void
vb_dispatch_fork_prepare(void)
{
	pthread_mutex_lock(&disp.events);
	pthread_mutex_lock(&disp.lock);
}

void
vb_dispatch_fork_parent(void)
{
	pthread_mutex_unlock(&disp.lock);
	pthread_mutex_unlock(&disp.events);
}

/* The thread does not exist in the child. */
void
vb_dispatch_fork_child(void)
{
	if (disp.running)
		close(disp.stop);
	disp.running = false;
	pthread_mutex_init(&disp.lock, NULL);
	pthread_mutex_init(&disp.events, NULL);
}
