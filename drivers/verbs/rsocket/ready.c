/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Readiness for poll(2), select(2) and epoll(7), shown by the pair. One byte in the pair, sent by
 * the library's end, makes the program's end readable. Bytes that fill more than a quarter of its
 * send buffer, as the kernel counts it, make it unwritable. The end of the stream shuts the pair
 * down for reading; the end of both directions, or of the connection without order, shuts it down
 * for both. An attempt to connect that has failed shows as data, because the pair is needed again
 * when the program connects again.
 */
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>

#include "../../../lib/base/clock.h"
#include "rs_priv.h"

#define FILLER  12000 /* bytes; the buffer has 32768 */
#define SPIN_NS 50000

static const uint8_t filler[FILLER];

static void
pair_drain(int fd)
{
	uint8_t bytes[4096];

	while (vb_rs_sys_recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
}

static void
show_in(struct vb_rs *rs, bool in)
{
	if (in && vb_rs_sys_send(rs->b, filler, 1, MSG_DONTWAIT) != 1)
		return;
	if (!in)
		pair_drain(rs->a);
	rs->in = in;
}

static void
show_out(struct vb_rs *rs, bool out)
{
	if (!out && vb_rs_sys_send(rs->a, filler, FILLER, MSG_DONTWAIT) <= 0)
		return;
	/* Another process may have asked for a relay behind the filler. */
	if (out && __atomic_load_n(&rs->shared, __ATOMIC_ACQUIRE))
		vb_rs_relay_asked(rs);
	if (out && !rs->relay)
		pair_drain(rs->b);
	rs->out = out;
}

static bool
is_readable(const struct vb_rs *rs)
{
	return rs->nready > 0 || rs->rx_eof || rs->state == RS_CLOSED || rs->rx.count > 0 ||
	       (rs->err != 0 && (rs->state & (RS_NEW | RS_BOUND)) != 0);
}

/* As with TCP, a peer that has closed in order ends only what this side reads. */
static bool
is_over(const struct vb_rs *rs)
{
	return rs->state == RS_CLOSED && (!rs->rx_eof || rs->tx_shut || rs->err != 0);
}

void
vb_rs_show(struct vb_rs *rs)
{
	bool in = is_readable(rs), out = vb_rs_writable(rs);

	if (rs->b < 0 || rs->a < 0 || rs->relay)
		return;
	if (in != rs->in && !rs->shown_eof)
		show_in(rs, in);
	if (out != rs->out && !rs->shown_end)
		show_out(rs, out);
	if (rs->relay)
		return;
	if ((rs->rx_eof || rs->rx_shut) && !rs->shown_eof) {
		shutdown(rs->b, SHUT_WR);
		rs->shown_eof = true;
	}
	if (is_over(rs) && !rs->shown_end) {
		shutdown(rs->b, SHUT_RDWR);
		rs->shown_end = rs->shown_eof = true;
	}
}

void
vb_rs_show_nothing(struct vb_rs *rs)
{
	if (rs->a >= 0)
		pair_drain(rs->a);
	/* Bytes other than the filler and the request of a child come from another program. */
	if (!rs->out || __atomic_load_n(&rs->shared, __ATOMIC_ACQUIRE))
		pair_drain(rs->b);
	rs->in = false;
	rs->out = true;
}

/* Returns how long a call may wait, in ms; -1: for ever. */
static int
time_limit(struct vb_rs *rs, short events)
{
	int name = (events & POLLIN) != 0 ? SO_RCVTIMEO : SO_SNDTIMEO;
	struct timeval tv = {0};
	socklen_t len = sizeof(tv);

	if (rs->shadow < 0 || getsockopt(rs->shadow, SOL_SOCKET, name, &tv, &len) < 0 ||
		(tv.tv_sec == 0 && tv.tv_usec == 0))
		return -1;
	return (int)(tv.tv_sec * 1000 + (tv.tv_usec + 999) / 1000);
}

/* Polls for a short time, which costs less than to sleep. Returns whether something completed. */
static bool
spin(struct vb_rs *rs)
{
	const uint64_t until = sk_clock_ns(CLOCK_MONOTONIC) + SPIN_NS;
	bool any;

	do {
		pthread_mutex_unlock(&rs->lock);
		sched_yield();
		pthread_mutex_lock(&rs->lock);
		any = vb_rs_progress(rs) > 0;
	} while (!any && rs->cq != NULL && sk_clock_ns(CLOCK_MONOTONIC) < until);
	return any;
}

/* Ends a thread's wait and its use of the socket. */
static void
wait_cancelled(void *arg)
{
	struct vb_rs *rs = arg;

	pthread_mutex_lock(&rs->lock);
	rs->waiting--;
	pthread_mutex_unlock(&rs->lock);
	vb_rs_put(rs);
}

/* Returns the result of poll(2), which a signal ends as it ends a call on a socket of the kernel:
 * if the handler has no SA_RESTART, or there is a limit. Call without the lock. */
static int
wait_sleep(struct vb_rs *rs, struct pollfd *p, int limit)
{
	int n;

	pthread_cleanup_push(wait_cancelled, rs);
	do
		n = poll(p, 1, limit);
	while (n < 0 && errno == EINTR && limit < 0 && vb_restarts());
	pthread_cleanup_pop(0);
	return n;
}

int
vb_rs_wait(struct vb_rs *rs, short events, int flags)
{
	struct pollfd p = {.fd = rs->a, .events = events};
	int limit, n, err;

	if (rs->a < 0)
		return EBADF;
	if ((flags & MSG_DONTWAIT) != 0 || (fcntl(rs->a, F_GETFL) & O_NONBLOCK) != 0)
		return EAGAIN;
	limit = time_limit(rs, events);
	if (rs->state == RS_CONNECTED && spin(rs))
		return 0;
	vb_rs_show(rs);
	rs->waiting++;
	pthread_mutex_unlock(&rs->lock);
	n = wait_sleep(rs, &p, limit);
	err = n < 0 ? errno : n == 0 ? EAGAIN : 0;
	pthread_mutex_lock(&rs->lock);
	rs->waiting--;
	return err;
}
