/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The thread that serves the sockets of a process. It sleeps in epoll_wait(2) on the event channel
 * of rdma_cm, on a completion channel for each transport, and on the pairs that carry bytes.
 * Sockets without a descriptor wait in a list until their connections have ended in order. At the
 * end of the process exit(3) waits for these.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "../../../lib/base/thread.h"
#include "rs_priv.h"

#define EXIT_SECONDS  30 /* the longest wait for what was written before exit(3) */
#define CLOSE_SECONDS 1  /* the longest wait of vb_rs_thread_close_now() */
#define NEVENTS       16

STAILQ_HEAD(closing, vb_rs);

static struct {
	pthread_mutex_t lock;
	pthread_cond_t destroyed; /* a socket of the list `closing` has been destroyed */
	bool running, exit_watched;
	pthread_t thread;
	int epoll, wake;
	struct rdma_event_channel *cm;
	/* By enum saker_transport. A channel depends on no saker: it serves the contexts of its
	 * transport, a new one for each saker. */
	struct ibv_comp_channel *chans[VB_NKINDS];
	struct closing closing;
	STAILQ_HEAD(failed, vb_rs) failed; /* attempts to connect; the list holds references */
	unsigned nclosing; /* the sockets of the list, and the one that the thread has taken */
} t = {.lock = PTHREAD_MUTEX_INITIALIZER,
	.destroyed = PTHREAD_COND_INITIALIZER,
	.epoll = -1,
	.wake = -1,
	.closing = STAILQ_HEAD_INITIALIZER(t.closing),
	.failed = STAILQ_HEAD_INITIALIZER(t.failed)};

static int
thread_watch(int fd, void *tag)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = tag};

	fcntl(fd, F_SETFL, O_NONBLOCK);
	return epoll_ctl(t.epoll, EPOLL_CTL_ADD, fd, &ev) < 0 ? errno : 0;
}

void
vb_rs_thread_watch(struct vb_rs *rs, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.ptr = rs};

	if (rs->b < 0)
		return;
	if (events == 0)
		epoll_ctl(t.epoll, EPOLL_CTL_DEL, rs->b, NULL);
	else if (epoll_ctl(t.epoll, EPOLL_CTL_MOD, rs->b, &ev) < 0 && errno == ENOENT)
		epoll_ctl(t.epoll, EPOLL_CTL_ADD, rs->b, &ev);
}

struct rdma_event_channel *
vb_rs_cm_channel(void)
{
	return t.cm;
}

/* Creates a channel that the thread watches; the tag is its place. Call with the lock held. Returns
 * 0 or errno. */
static int
chan_new(struct ibv_comp_channel **place, struct ibv_context *verbs)
{
	int err;

	*place = ibv_create_comp_channel(verbs);
	if (*place == NULL)
		return errno;
	err = thread_watch((*place)->fd, place);
	if (err == 0)
		return 0;
	ibv_destroy_comp_channel(*place);
	*place = NULL;
	return err;
}

struct ibv_comp_channel *
vb_rs_comp_channel(struct ibv_context *verbs)
{
	struct ibv_comp_channel **place = &t.chans[vb_kind_transport(vb_kind_of(verbs))], *channel;
	int err = 0;

	pthread_mutex_lock(&t.lock);
	if (*place == NULL)
		err = chan_new(place, verbs);
	channel = *place;
	if (channel != NULL)
		channel->context = verbs;
	pthread_mutex_unlock(&t.lock);
	if (channel == NULL)
		errno = err;
	return channel;
}

/* ---- The turns of the thread ---- */

static void
cm_turn(void)
{
	struct rdma_cm_event *ev;

	while (rdma_get_cm_event(t.cm, &ev) == 0)
		vb_rs_cm_event(ev);
}

static void
cq_turn(struct ibv_comp_channel *channel)
{
	struct ibv_cq *cq;
	void *user;

	while (ibv_get_cq_event(channel, &cq, &user) == 0) {
		struct vb_rs *rs = user;

		ibv_ack_cq_events(cq, 1);
		pthread_mutex_lock(&rs->lock);
		ibv_req_notify_cq(cq, 0);
		vb_rs_progress(rs);
		if (rs->relay)
			vb_rs_relay_turn(rs);
		vb_rs_show(rs);
		pthread_mutex_unlock(&rs->lock);
	}
}

static void
pair_turn(struct vb_rs *rs)
{
	pthread_mutex_lock(&rs->lock);
	vb_rs_progress(rs);
	if (!rs->relay)
		vb_rs_relay_asked(rs);
	if (rs->relay)
		vb_rs_relay_turn(rs);
	pthread_mutex_unlock(&rs->lock);
}

static void
failed_turn(void)
{
	struct vb_rs *rs;

	do {
		pthread_mutex_lock(&t.lock);
		rs = STAILQ_FIRST(&t.failed);
		if (rs != NULL) {
			STAILQ_REMOVE_HEAD(&t.failed, next_failed);
			rs->queued_failed = false;
		}
		pthread_mutex_unlock(&t.lock);
		if (rs != NULL) {
			vb_rs_connect_failed(rs);
			vb_rs_put(rs);
		}
	} while (rs != NULL);
}

/* Performs the next step towards the end of a socket that was taken out of the list. */
static void
closing_step(struct vb_rs *rs)
{
	bool over;

	pthread_mutex_lock(&rs->lock);
	over = vb_rs_closing(rs);
	pthread_mutex_unlock(&rs->lock);
	if (over)
		vb_rs_destroy(rs);
	pthread_mutex_lock(&t.lock);
	if (over) {
		rs->destroyed = true;
		t.nclosing--;
		pthread_cond_broadcast(&t.destroyed);
	} else {
		STAILQ_INSERT_TAIL(&t.closing, rs, next_closing);
	}
	pthread_mutex_unlock(&t.lock);
	if (over)
		vb_rs_unlist(rs);
}

/* Destroys the sockets whose connections have ended. It takes one socket at a time, because others
 * may come to the head of the list meanwhile, and makes as many steps as the list had sockets. */
static void
closing_turn(void)
{
	struct vb_rs *rs;
	unsigned left;

	pthread_mutex_lock(&t.lock);
	left = t.nclosing;
	pthread_mutex_unlock(&t.lock);
	for (; left > 0; left--) {
		pthread_mutex_lock(&t.lock);
		rs = STAILQ_FIRST(&t.closing);
		if (rs != NULL)
			STAILQ_REMOVE_HEAD(&t.closing, next_closing);
		pthread_mutex_unlock(&t.lock);
		if (rs == NULL)
			return;
		closing_step(rs);
	}
}

static void *
thread_run(void *arg)
{
	struct epoll_event ev[NEVENTS];
	uint64_t count;

	for (;;) {
		int n = epoll_wait(t.epoll, ev, NEVENTS, -1);

		for (int i = 0; i < n; i++) {
			void *tag = ev[i].data.ptr;

			if (tag == &t.cm)
				cm_turn();
			else if (tag == &t.wake && read(t.wake, &count, sizeof(count)) > 0)
				continue;
			else if (tag >= (void *)t.chans && tag < (void *)(t.chans + VB_NKINDS))
				cq_turn(*(struct ibv_comp_channel **)tag);
			else if (tag != &t.wake)
				pair_turn(tag);
		}
		failed_turn();
		closing_turn();
	}
	return arg;
}

static void
thread_wake(void)
{
	const uint64_t one = 1;

	syscall(SYS_write, t.wake, &one, sizeof(one));
}

void
vb_rs_thread_close(struct vb_rs *rs)
{
	pthread_mutex_lock(&t.lock);
	if (!rs->queued_closing) {
		rs->queued_closing = true;
		STAILQ_INSERT_TAIL(&t.closing, rs, next_closing);
		t.nclosing++;
	}
	pthread_mutex_unlock(&t.lock);
	thread_wake();
}

void
vb_rs_thread_failed(struct vb_rs *rs)
{
	bool queued;

	vb_rs_hold(rs);
	pthread_mutex_lock(&t.lock);
	queued = rs->queued_failed;
	if (!queued)
		STAILQ_INSERT_TAIL(&t.failed, rs, next_failed);
	rs->queued_failed = true;
	pthread_mutex_unlock(&t.lock);
	if (queued)
		vb_rs_put(rs);
	thread_wake();
}

/* The wait is no point of cancellation, because the caller holds a reference. It has a limit,
 * because the caller may be a signal handler that has interrupted a thread with a lock for which
 * the thread of the library waits. */
void
vb_rs_thread_close_now(struct vb_rs *rs)
{
	int state = vb_cancel_off();
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += CLOSE_SECONDS;
	pthread_mutex_lock(&t.lock);
	if (!rs->queued_closing) {
		rs->queued_closing = true;
		STAILQ_INSERT_HEAD(&t.closing, rs, next_closing);
		t.nclosing++;
	}
	thread_wake();
	while (t.running && !pthread_equal(pthread_self(), t.thread) && !rs->destroyed &&
		pthread_cond_timedwait(&t.destroyed, &t.lock, &until) == 0)
		;
	pthread_mutex_unlock(&t.lock);
	vb_cancel_back(state);
}

/* ---- The end of the process ---- */

/* Closes the sockets that the program did not close, as the kernel does. A connection that waits
 * for accept() ends with its listener, which refers to it. */
static void
exit_close(struct vb_rs *rs)
{
	if (rs->users == 0)
		return;
	rs->users = 0;
	vb_rs_thread_close(rs);
}

static void
thread_at_exit(void)
{
	struct timespec until;

	if (!t.running || pthread_equal(pthread_self(), t.thread))
		return;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += EXIT_SECONDS;
	vb_rs_each(exit_close);
	pthread_mutex_lock(&t.lock);
	while (t.nclosing > 0 && pthread_cond_timedwait(&t.destroyed, &t.lock, &until) == 0)
		;
	pthread_mutex_unlock(&t.lock);
}

/* ---- The start ---- */

static int
thread_begin_run(void)
{
	int err = 0;

	t.epoll = vb_rs_high(epoll_create1(EPOLL_CLOEXEC));
	t.wake = vb_rs_high(eventfd(0, EFD_CLOEXEC));
	t.cm = rdma_create_event_channel();
	if (t.cm == NULL || t.epoll < 0 || t.wake < 0)
		err = errno;
	if (err == 0)
		err = thread_watch(t.cm->fd, &t.cm);
	if (err == 0)
		err = thread_watch(t.wake, &t.wake);
	if (err != 0)
		return err;
	err = sk_thread_start(&t.thread, thread_run, NULL);
	if (err != 0)
		return vb_fail(err, "cannot start the thread of the sockets: %s", strerror(err));
	pthread_setname_np(t.thread, "saker-sockets");
	if (!t.exit_watched)
		t.exit_watched = atexit(thread_at_exit) == 0;
	return 0;
}

static void
thread_undo(void)
{
	if (t.cm != NULL)
		rdma_destroy_event_channel(t.cm);
	if (t.epoll >= 0)
		close(t.epoll);
	if (t.wake >= 0)
		close(t.wake);
	t.cm = NULL;
	t.epoll = t.wake = -1;
}

int
vb_rs_thread_start(void)
{
	int err = 0;

	pthread_mutex_lock(&t.lock);
	if (!t.running) {
		err = thread_begin_run();
		if (err != 0)
			thread_undo();
		t.running = err == 0;
	}
	pthread_mutex_unlock(&t.lock);
	return err;
}

/* The thread does not exist in the child, which starts its own with its first socket. */
void
vb_rs_thread_fork_child(void)
{
	if (t.epoll >= 0)
		close(t.epoll);
	if (t.wake >= 0)
		close(t.wake);
	t.epoll = t.wake = -1;
	t.cm = NULL;
	t.running = false;
	memset(t.chans, 0, sizeof(t.chans));
	STAILQ_INIT(&t.closing);
	STAILQ_INIT(&t.failed);
	t.nclosing = 0;
	pthread_mutex_init(&t.lock, NULL);
	pthread_cond_init(&t.destroyed, NULL);
}
