/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading and writing, shutting down, closing. */
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "rs_priv.h"

#define RECV_FLAGS                                                                                 \
	(MSG_PEEK | MSG_DONTWAIT | MSG_WAITALL | MSG_NOSIGNAL | MSG_CMSG_CLOEXEC | MSG_TRUNC)
/* rdma-core's own programs pass MSG_WAITALL here, too. */
#define SEND_FLAGS (MSG_DONTWAIT | MSG_NOSIGNAL | MSG_MORE | MSG_EOR | MSG_DONTROUTE | MSG_WAITALL)

static size_t
iov_bytes(const struct msghdr *msg)
{
	size_t n = 0;

	for (size_t i = 0; i < msg->msg_iovlen; i++)
		n += msg->msg_iov[i].iov_len;
	return n;
}

/* Copies the received bytes into the elements, behind the `skip` bytes that they already hold. With
 * MSG_TRUNC the elements have lengths alone, and MSG_PEEK leaves the bytes where they are. */
static size_t
iov_take(struct vb_rs *rs, const struct msghdr *msg, size_t skip, int flags)
{
	const bool peek = (flags & MSG_PEEK) != 0;
	size_t done = 0;

	for (size_t i = 0; i < msg->msg_iovlen; i++) {
		const struct iovec *v = &msg->msg_iov[i];
		size_t n;

		if (skip >= v->iov_len) {
			skip -= v->iov_len;
			continue;
		}
		n = vb_rs_take(rs, (flags & MSG_TRUNC) != 0 ? NULL : (uint8_t *)v->iov_base + skip,
			v->iov_len - skip, peek, peek ? done : 0);
		done += n;
		if (n < v->iov_len - skip)
			break;
		skip = 0;
	}
	return done;
}

static size_t
iov_give(struct vb_rs *rs, const struct msghdr *msg, size_t skip)
{
	size_t done = 0;

	for (size_t i = 0; i < msg->msg_iovlen; i++) {
		const struct iovec *v = &msg->msg_iov[i];
		size_t n;

		if (skip >= v->iov_len) {
			skip -= v->iov_len;
			continue;
		}
		n = vb_rs_give(rs, (const uint8_t *)v->iov_base + skip, v->iov_len - skip);
		done += n;
		if (n < v->iov_len - skip)
			break;
		skip = 0;
	}
	return done;
}

int
vb_rs_error_take(struct vb_rs *rs)
{
	int err = rs->err;

	rs->err = 0;
	vb_rs_show(rs);
	return err;
}

void
vb_rs_error_back(int fd, int err)
{
	struct vb_rs *rs = vb_rs_get(fd);

	if (rs == NULL)
		return;
	pthread_mutex_lock(&rs->lock);
	rs->err = err;
	pthread_mutex_unlock(&rs->lock);
	vb_rs_put(rs);
}

/* Returns the errno of a call that needs a connection: once the reason why there is none. */
static int
unconnected(struct vb_rs *rs)
{
	int err = vb_rs_error_take(rs);

	return err != 0 ? err : ENOTCONN;
}

static ssize_t
recv_locked(struct vb_rs *rs, struct msghdr *msg, int flags)
{
	const bool peek = (flags & MSG_PEEK) != 0;
	const size_t want = iov_bytes(msg);
	const size_t least = (flags & MSG_WAITALL) != 0 && !peek ? want : want > 0;
	size_t done = 0;
	int err = 0;

	if ((rs->state & (RS_CONNECTED | RS_CLOSED)) == 0)
		return vb_rs_end(unconnected(rs));
	for (;;) {
		vb_rs_progress(rs);
		if (!rs->rx_shut)
			done += iov_take(rs, msg, done, flags);
		vb_rs_flush(rs);
		vb_rs_show(rs);
		if (done >= least || rs->rx_eof || rs->rx_shut || rs->state == RS_CLOSED)
			break;
		err = rs->relay ? ERESTART : vb_rs_wait(rs, POLLIN, flags);
		if (err != 0)
			break;
	}
	msg->msg_flags = 0;
	msg->msg_controllen = 0;
	msg->msg_namelen = 0;
	if (done == 0 && err == 0 && !rs->rx_eof && !rs->rx_shut)
		err = vb_rs_error_take(rs);
	return done > 0 || err == 0 ? (ssize_t)done : vb_rs_end(err);
}

static ssize_t
send_locked(struct vb_rs *rs, const struct msghdr *msg, int flags)
{
	const size_t want = iov_bytes(msg);
	size_t done = 0;
	int err = 0;

	if ((rs->state & (RS_CONNECTED | RS_CLOSED)) == 0)
		return vb_rs_end(rs->state == RS_CONNECTING ? EAGAIN : unconnected(rs));
	for (;;) {
		vb_rs_progress(rs);
		if (rs->tx_shut || rs->state != RS_CONNECTED) {
			err = rs->err != 0 && !rs->tx_shut ? vb_rs_error_take(rs) : EPIPE;
			break;
		}
		done += iov_give(rs, msg, done);
		vb_rs_show(rs);
		if (done >= want)
			break;
		err = rs->relay ? ERESTART : vb_rs_wait(rs, POLLOUT, flags);
		if (err != 0)
			break;
	}
	return done > 0 || err == 0 ? (ssize_t)done : vb_rs_end(err);
}

/* Reads from the pair into no buffer: a Unix socket ignores MSG_TRUNC. Returns the number of bytes,
 * or -1. */
static ssize_t
raw_discard(int fd, size_t len, int flags)
{
	uint8_t bytes[4096];
	size_t done = 0;
	ssize_t n;

	flags &= ~MSG_TRUNC;
	do {
		n = vb_rs_sys_recv(
			fd, bytes, len - done < sizeof(bytes) ? len - done : sizeof(bytes), flags);
		done += n > 0 ? (size_t)n : 0;
		/* Only MSG_WAITALL waits for more than the first bytes. */
		if ((flags & MSG_WAITALL) == 0)
			flags |= MSG_DONTWAIT;
	} while (n > 0 && done < len);
	return done > 0 ? (ssize_t)done : n;
}

/* Returns how many bytes of `len` the pair has, after a wait for the first one; or -1. */
static ssize_t
raw_count(int fd, size_t len, int flags)
{
	uint8_t byte;
	ssize_t n = vb_rs_sys_recv(fd, &byte, len > 0, flags & ~MSG_TRUNC);
	int have;

	if (n <= 0 || syscall(SYS_ioctl, fd, FIONREAD, &have) < 0)
		return n;
	return (size_t)have < len ? have : (ssize_t)len;
}

static ssize_t
raw_recv(int fd, struct msghdr *msg, int flags)
{
	const size_t len = iov_bytes(msg);

	if ((flags & MSG_TRUNC) == 0)
		return syscall(SYS_recvmsg, fd, msg, flags);
	msg->msg_flags = 0;
	msg->msg_controllen = 0;
	msg->msg_namelen = 0;
	return (flags & MSG_PEEK) != 0 ? raw_count(fd, len, flags) : raw_discard(fd, len, flags);
}

/* A relay may begin while a call waits: then the call goes on with the pair. */
static ssize_t
vb_rs_recv(int fd, struct msghdr *msg, int flags)
{
	struct vb_rs *rs = vb_rs_get(fd);
	int err = 0;
	ssize_t n;

	if (rs == NULL)
		return -1;
	do {
		if (vb_rs_raw(rs, fd, &err)) {
			n = raw_recv(fd, msg, flags);
		} else if (err != 0 || (flags & ~RECV_FLAGS) != 0) {
			n = vb_rs_end(err != 0 ? err : EOPNOTSUPP);
		} else {
			pthread_mutex_lock(&rs->lock);
			n = recv_locked(rs, msg, flags);
			pthread_mutex_unlock(&rs->lock);
		}
	} while (n < 0 && errno == ERESTART);
	vb_rs_put(rs);
	return n;
}

static ssize_t
vb_rs_send(int fd, const struct msghdr *msg, int flags)
{
	struct vb_rs *rs = vb_rs_get(fd);
	struct msghdr bare = {.msg_iov = msg->msg_iov, .msg_iovlen = msg->msg_iovlen};
	int err = 0;
	ssize_t n;

	if (rs == NULL)
		return -1;
	do {
		if (vb_rs_raw(rs, fd, &err)) {
			n = syscall(SYS_sendmsg, fd, &bare, (flags & ~MSG_WAITALL) | MSG_NOSIGNAL);
		} else if (err != 0 || (flags & ~SEND_FLAGS) != 0) {
			n = vb_rs_end(err != 0 ? err : EOPNOTSUPP);
		} else {
			pthread_mutex_lock(&rs->lock);
			n = send_locked(rs, msg, flags);
			pthread_mutex_unlock(&rs->lock);
		}
	} while (n < 0 && errno == ERESTART);
	vb_rs_put(rs);
	return n;
}

int
vb_rs_unread(int fd, int *n)
{
	struct vb_rs *rs = vb_rs_get(fd);
	int err = 0;

	if (rs == NULL)
		return -1;
	if (vb_rs_raw(rs, fd, &err)) {
		err = syscall(SYS_ioctl, fd, FIONREAD, n) < 0 ? errno : 0;
	} else if (err == 0) {
		pthread_mutex_lock(&rs->lock);
		vb_rs_progress(rs);
		*n = (int)vb_rs_available(rs);
		pthread_mutex_unlock(&rs->lock);
	}
	vb_rs_put(rs);
	return vb_rs_end(err);
}

VB_EXPORT ssize_t
rrecv(int socket, void *buf, size_t len, int flags)
{
	struct iovec v = {buf, len};
	struct msghdr msg = {.msg_iov = &v, .msg_iovlen = 1};

	return vb_rs_recv(socket, &msg, flags);
}

/* A stream does not report the sender, as with recvfrom(2) of TCP. */
VB_EXPORT ssize_t
rrecvfrom(
	int socket, void *buf, size_t len, int flags, struct sockaddr *src_addr, socklen_t *addrlen)
{
	if (src_addr != NULL && addrlen != NULL)
		*addrlen = 0;
	return rrecv(socket, buf, len, flags);
}

VB_EXPORT ssize_t
rrecvmsg(int socket, struct msghdr *msg, int flags)
{
	return vb_rs_recv(socket, msg, flags);
}

VB_EXPORT ssize_t
rread(int socket, void *buf, size_t count)
{
	return rrecv(socket, buf, count, 0);
}

VB_EXPORT ssize_t
rreadv(int socket, const struct iovec *iov, int iovcnt)
{
	struct msghdr msg = {.msg_iov = (struct iovec *)(uintptr_t)iov,
		.msg_iovlen = iovcnt > 0 ? (size_t)iovcnt : 0};

	return vb_rs_recv(socket, &msg, 0);
}

VB_EXPORT ssize_t
rsend(int socket, const void *buf, size_t len, int flags)
{
	struct iovec v = {(void *)(uintptr_t)buf, len};
	struct msghdr msg = {.msg_iov = &v, .msg_iovlen = 1};

	return vb_rs_send(socket, &msg, flags);
}

VB_EXPORT ssize_t
rsendto(int socket, const void *buf, size_t len, int flags, const struct sockaddr *dest_addr,
	socklen_t addrlen)
{
	return rsend(socket, buf, len, flags);
}

VB_EXPORT ssize_t
rsendmsg(int socket, const struct msghdr *msg, int flags)
{
	return vb_rs_send(socket, msg, flags);
}

VB_EXPORT ssize_t
rwrite(int socket, const void *buf, size_t count)
{
	return rsend(socket, buf, count, 0);
}

VB_EXPORT ssize_t
rwritev(int socket, const struct iovec *iov, int iovcnt)
{
	struct msghdr msg = {.msg_iov = (struct iovec *)(uintptr_t)iov,
		.msg_iovlen = iovcnt > 0 ? (size_t)iovcnt : 0};

	return vb_rs_send(socket, &msg, 0);
}

/* Returns 0 or errno. Call with the lock held. */
static int
shutdown_locked(struct vb_rs *rs, int how)
{
	if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR)
		return EINVAL;
	if (rs->state == RS_LISTENING) {
		if (how != SHUT_WR)
			vb_rs_listen_end(rs);
		return 0;
	}
	if ((rs->state & (RS_CONNECTED | RS_CLOSED)) == 0)
		return ENOTCONN;
	if (how != SHUT_WR) {
		rs->rx_shut = true;
		vb_rs_discard(rs);
	}
	if (how != SHUT_RD)
		rs->tx_shut = true;
	return 0;
}

VB_EXPORT int
rshutdown(int socket, int how)
{
	struct vb_rs *rs = vb_rs_get(socket);
	int err = 0;

	if (rs == NULL)
		return -1;
	if (vb_rs_raw(rs, socket, &err)) {
		err = syscall(SYS_shutdown, socket, how) < 0 ? errno : 0;
	} else if (err == 0) {
		pthread_mutex_lock(&rs->lock);
		err = shutdown_locked(rs, how);
		vb_rs_progress(rs);
		vb_rs_show(rs);
		pthread_mutex_unlock(&rs->lock);
	}
	vb_rs_put(rs);
	return vb_rs_end(err);
}

/* ---- Descriptors ---- */

/* Returns how long close(2) waits (SO_LINGER), in s; -1: not at all. */
static int
linger_of(struct vb_rs *rs)
{
	struct linger l = {0};
	socklen_t len = sizeof(l);

	if (rs->shadow < 0 || getsockopt(rs->shadow, SOL_SOCKET, SO_LINGER, &l, &len) < 0 ||
		l.l_onoff == 0)
		return -1;
	return l.l_linger;
}

/* Waits until the connection has ended, another process uses it, or the time of SO_LINGER has
 * passed: then the connection ends later. */
static void
linger_wait(struct vb_rs *rs, int seconds)
{
	const struct timespec step = {.tv_nsec = 10 * 1000 * 1000};
	bool over = false;

	for (long left = seconds * 100L; left > 0 && !over; left--) {
		pthread_mutex_lock(&rs->lock);
		over = rs->state != RS_CONNECTED || rs->relay;
		pthread_mutex_unlock(&rs->lock);
		if (!over)
			vb_rs_sys_sleep(&step);
	}
}

/* The last descriptor of a process has been closed. Another process may have one. */
static void
close_last(struct vb_rs *rs)
{
	bool ours, at_once;
	int linger;

	pthread_mutex_lock(&rs->lock);
	linger = linger_of(rs);
	rs->abort = linger == 0;
	ours = rs->a >= 0 && !rs->relay;
	if (ours)
		vb_rs_show_nothing(rs);
	vb_rs_fd_close(rs, &rs->a);
	/* A program that has inherited the descriptor, also by posix_spawn(3), goes on with it. A
	 * thread of this process that waits looks like such a program. */
	ours = ours && (rs->waiting == 0 || __atomic_load_n(&rs->shared, __ATOMIC_ACQUIRE));
	if (ours && rs->state == RS_CONNECTED && (vb_rs_sys_poll(rs->b) & POLLHUP) == 0)
		vb_rs_relay_begin(rs);
	/* Threads that wait for the socket find that it has ended. */
	if (!rs->relay && rs->b >= 0)
		shutdown(rs->b, SHUT_RDWR);
	at_once = rs->bound && (rs->state != RS_CONNECTED || (rs->abort && !rs->relay));
	if (rs->state == RS_LISTENING)
		vb_rs_listen_end(rs);
	pthread_mutex_unlock(&rs->lock);
	/* close(2) frees the port of a socket without a connection: programs bind another one to it
	 * at once. */
	if (at_once)
		vb_rs_thread_close_now(rs);
	else
		vb_rs_thread_close(rs);
	if (linger > 0)
		linger_wait(rs, linger);
}

/* Takes a descriptor that has left the table from its socket, which loses the reference. */
static void
io_left(struct vb_rs *rs, bool last)
{
	if (last && rs->epoch == vb_rs_epoch())
		close_last(rs);
	vb_rs_put(rs);
}

int
vb_rs_close(int fd)
{
	struct vb_rs *rs;
	bool last;
	int rc;

	if (vb_rs_foreign())
		return (int)syscall(SYS_close, fd);
	rs = vb_rs_leave(fd, &last);
	if (rs == NULL)
		return vb_rs_end(EBADF);
	rc = (int)syscall(SYS_close, fd);
	io_left(rs, last);
	return rc;
}

void
vb_rs_replaced(int fd)
{
	struct vb_rs *rs;
	bool last;

	if (vb_rs_foreign())
		return;
	rs = vb_rs_leave(fd, &last);
	if (rs != NULL)
		io_left(rs, last);
}

int
vb_rs_give_away(int fd)
{
	struct vb_rs *rs;
	int err = 0;
	bool last;

	if (vb_rs_foreign())
		return 0;
	rs = vb_rs_get(fd);
	if (rs == NULL)
		return -1;
	if (!vb_rs_raw(rs, fd, &err) && err == 0) {
		pthread_mutex_lock(&rs->lock);
		if (rs->state == RS_CONNECTED)
			vb_rs_relay_begin(rs);
		else
			err = ENOTCONN;
		pthread_mutex_unlock(&rs->lock);
	}
	if (err == 0 && vb_rs_leave(fd, &last) != NULL)
		io_left(rs, last);
	vb_rs_put(rs);
	return vb_rs_end(err);
}

VB_EXPORT int
rclose(int socket)
{
	return vb_rs_close(socket);
}

int
vb_rs_dup(int of, int fd)
{
	struct vb_rs *rs;
	int err;

	if (vb_rs_foreign())
		return fd;
	rs = vb_rs_get(of);
	if (rs == NULL)
		return -1;
	err = vb_rs_enter(fd, rs);
	vb_rs_put(rs);
	if (err == 0)
		return fd;
	syscall(SYS_close, fd);
	return vb_rs_end(err);
}
