/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The dispatcher: it takes events from libsaker, which has one descriptor, and delivers them to the
 * descriptors that verbs programs sleep on. A thread of the library waits for events and delivers
 * completion events to their channels, asynchronous events to their contexts, and events of
 * connections to cm/. The thread starts when a program first creates an object that it can sleep
 * on; a program that only polls has no such thread.
 */
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "../../lib/base/thread.h"
#include "events_priv.h"
#include "process_priv.h"
#include "verbs_priv.h"

#define JOIN_SECONDS 1 /* the longest wait for the thread at the end of the process */

static struct {
	pthread_mutex_t events; /* see vb_events_lock() */
	/* Guards running, joined, thread and stop of each attachment: `running` while the thread
	 * exists; `joined` once another thread waits for its end. */
	pthread_mutex_t lock;
} disp = {
	.events = PTHREAD_MUTEX_INITIALIZER,
	.lock = PTHREAD_MUTEX_INITIALIZER,
};
static vb_cm_fn *cm_event;     /* atomic */
static vb_cm_gone_fn *cm_gone; /* atomic */

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
vb_on_cm_event(vb_cm_fn *fn, vb_cm_gone_fn *gone)
{
	__atomic_store_n(&cm_event, fn, __ATOMIC_RELEASE);
	__atomic_store_n(&cm_gone, gone, __ATOMIC_RELEASE);
}

/* Processes, for the libibverbs side, an event that is not a completion event. */
static void
async_event(struct vb_attachment *a, const struct saker_event *ev)
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
		a->gone = true;
		vb_contexts_gone(a);
		break;
	default:
		break;
	}
}

bool
vb_dispatch(struct vb_attachment *a)
{
	struct saker_event ev;
	struct saker_cq *cq;
	vb_cm_fn *fn;
	bool gone;

	vb_events_lock();
	while (saker_cq_event(a->saker, &cq) > 0)
		vb_channel_event(saker_cq_user(cq));
	while (saker_event(a->saker, &ev) > 0) {
		async_event(a, &ev);
		fn = __atomic_load_n(&cm_event, __ATOMIC_ACQUIRE);
		if (fn != NULL)
			fn(a, &ev);
	}
	gone = a->gone;
	vb_events_unlock();
	return !gone;
}

/* Ends the thread of an attachment whose saker has gone. */
static void
thread_gone(struct vb_attachment *a)
{
	vb_cm_gone_fn *fn = __atomic_load_n(&cm_gone, __ATOMIC_ACQUIRE);

	if (fn != NULL)
		fn(a->stop);
	pthread_mutex_lock(&disp.lock);
	if (!a->joined) {
		a->running = false;
		pthread_detach(pthread_self());
		close(a->stop);
	}
	pthread_mutex_unlock(&disp.lock);
	vb_attachment_release(a);
}

static void *
dispatch_run(void *arg)
{
	struct vb_attachment *a = arg;
	struct pollfd p[2] = {
		{.fd = saker_fd(a->saker), .events = POLLIN}, {.fd = a->stop, .events = POLLIN}};

	/* The first turn delivers the events that came before the thread existed. When the saker
	 * has gone, its descriptor stays readable and no further event comes. */
	while (vb_dispatch(a)) {
		if (poll(p, 2, -1) < 0 && errno != EINTR)
			return NULL;
		if ((p[1].revents & POLLIN) != 0)
			return NULL;
	}
	thread_gone(a);
	return NULL;
}

static int
thread_begin(struct vb_attachment *a)
{
	int rc;

	a->stop = eventfd(0, EFD_CLOEXEC);
	if (a->stop < 0)
		return errno;
	vb_attachment_hold(a);
	rc = sk_thread_start(&a->thread, dispatch_run, a);
	if (rc != 0) {
		close(a->stop);
		vb_attachment_release(a);
		return vb_fail(
			rc, "cannot start the thread that delivers events: %s", strerror(rc));
	}
	pthread_setname_np(a->thread, "saker-verbs");
	return 0;
}

int
vb_dispatch_start(struct vb_attachment *a)
{
	int rc = 0;

	/* The events of a saker that has gone come from vb_dispatch(). */
	if (saker_gone(a->saker))
		return 0;
	pthread_mutex_lock(&disp.lock);
	if (!a->running) {
		rc = thread_begin(a);
		a->running = rc == 0;
	}
	pthread_mutex_unlock(&disp.lock);
	if (rc == 0)
		vb_contexts_dispatched(a);
	return rc;
}

bool
vb_dispatch_running(const struct vb_attachment *a)
{
	bool running;

	pthread_mutex_lock(&disp.lock);
	running = a->running;
	pthread_mutex_unlock(&disp.lock);
	return running;
}

/* Returns whether the attachment has a thread for which the caller now has to wait. */
static bool
join_begin(struct vb_attachment *a)
{
	pthread_mutex_lock(&disp.lock);
	a->joined = a->running && !pthread_equal(pthread_self(), a->thread);
	pthread_mutex_unlock(&disp.lock);
	return a->joined;
}

/* Ends the thread. The attachment stays: other threads may poll until the process ends. */
__attribute__((destructor)) static void
dispatch_end(void)
{
	struct vb_attachment *a = vb_attachment_now();
	const uint64_t one = 1;
	struct timespec until;

	if (a == NULL || !join_begin(a) || write(a->stop, &one, sizeof(one)) < 0)
		return;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += JOIN_SECONDS;
	if (pthread_timedjoin_np(a->thread, NULL, &until) == 0)
		close(a->stop);
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

/* The thread does not exist in the child. The attachment's lock is held. */
void
vb_dispatch_fork_child(struct vb_attachment *a)
{
	if (a != NULL && a->running)
		close(a->stop);
	if (a != NULL)
		a->running = false;
	pthread_mutex_init(&disp.lock, NULL);
	pthread_mutex_init(&disp.events, NULL);
}
