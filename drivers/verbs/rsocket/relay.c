/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Relays. After fork(2) two processes have the descriptor, and the connection belongs to the
 * parent. As soon as the child uses the socket, or the parent closes it, the parent's thread
 * carries the bytes between the connection and the pair, and each process uses the descriptor as
 * the Unix socket that it is. So a server may accept in one process and serve in another, as long
 * as the first one runs.
 *
 * The child requests the relay by one byte with a descriptor. No byte of the program carries a
 * descriptor, so the parent distinguishes the two, also when it has begun the relay already. The
 * parent answers by giving its end a name, which the child reads as the name of its peer. By then,
 * the bytes that vb_rs_show() had put into the pair are gone.
 */
#include <sys/epoll.h>
#include <sys/un.h>

#include "rs_priv.h"

#define CAPACITY   20000 /* bytes: more than the pair holds before a relay */
#define BUFFER     524288
#define PATIENCE_S 20

/* ---- In another process ---- */

static bool
has_begun(int fd)
{
	struct sockaddr_un un;
	socklen_t len = sizeof(un);

	return syscall(SYS_getpeername, fd, &un, &len) == 0 && len > sizeof(sa_family_t);
}

static bool
is_hung_up(int fd)
{
	return (vb_rs_sys_poll(fd) & POLLHUP) != 0;
}

static void
relay_join(int fd)
{
	const struct timespec ms = {.tv_nsec = 1000 * 1000};
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = {.head = {.cmsg_len = CMSG_LEN(sizeof(int)),
			     .cmsg_level = SOL_SOCKET,
			     .cmsg_type = SCM_RIGHTS}};
	uint8_t ask = 0;
	struct iovec v = {&ask, 1};
	struct msghdr msg = {.msg_iov = &v,
		.msg_iovlen = 1,
		.msg_control = control.room,
		.msg_controllen = sizeof(control.room)};

	if (has_begun(fd))
		return;
	memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd)); /* any descriptor */
	syscall(SYS_sendmsg, fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	for (int i = 0; i < PATIENCE_S * 1000 && !has_begun(fd) && !is_hung_up(fd); i++)
		vb_rs_sys_sleep(&ms);
}

bool
vb_rs_raw(struct vb_rs *rs, int fd, int *err)
{
	if (rs->epoch == vb_rs_epoch())
		return __atomic_load_n(&rs->relay, __ATOMIC_ACQUIRE);
	if ((rs->state & (RS_CONNECTED | RS_CLOSED)) == 0) {
		*err = vb_fail(EOPNOTSUPP, "the socket belongs to the parent process");
		return false;
	}
	if (!rs->joined)
		relay_join(fd);
	rs->joined = true;
	return true;
}

/* ---- In the process that has the connection ---- */

/* Copies the bytes that the program has written, up to a byte that carries a descriptor, which is
 * the last one then; *asks is set. As there is no room for the descriptor, the kernel drops it. */
static ssize_t
relay_peek(int fd, uint8_t *bytes, size_t most, bool *asks)
{
	struct iovec v = {bytes, most};
	struct msghdr msg = {.msg_iov = &v, .msg_iovlen = 1};
	ssize_t n = syscall(SYS_recvmsg, fd, &msg, MSG_PEEK | MSG_DONTWAIT);

	*asks = n > 0 && (msg.msg_flags & MSG_CTRUNC) != 0;
	return n;
}

void
vb_rs_relay_asked(struct vb_rs *rs)
{
	uint8_t bytes[CAPACITY];
	bool asks;

	if (relay_peek(rs->b, bytes, sizeof(bytes), &asks) > 0 && asks && rs->state == RS_CONNECTED)
		vb_rs_relay_begin(rs);
}

void
vb_rs_relay_begin(struct vb_rs *rs)
{
	const struct sockaddr_un un = {.sun_family = AF_UNIX};
	const int size = BUFFER;

	vb_rs_show_nothing(rs);
	__atomic_store_n(&rs->relay, true, __ATOMIC_RELEASE);
	setsockopt(rs->b, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	if (rs->a >= 0)
		setsockopt(rs->a, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	/* The kernel chooses an abstract name. */
	if (bind(rs->b, (const struct sockaddr *)&un, sizeof(sa_family_t)) < 0)
		vb_rs_break(rs, EIO);
	vb_rs_relay_turn(rs);
}

/* Writes to the pair what the peer has sent. Returns whether the pair is full. */
static bool
relay_in(struct vb_rs *rs)
{
	uint8_t bytes[RS_SLOT];
	size_t n;

	while ((n = vb_rs_take(rs, bytes, sizeof(bytes), true, 0)) > 0) {
		ssize_t sent = vb_rs_sys_send(rs->b, bytes, n, MSG_DONTWAIT);

		if (sent < 0 && errno != EPIPE)
			return true;
		vb_rs_take(rs, bytes, sent > 0 ? (size_t)sent : n, false, 0);
	}
	if ((rs->rx_eof || rs->state == RS_CLOSED) && !rs->shown_eof) {
		shutdown(rs->b, SHUT_WR);
		rs->shown_eof = true;
	}
	return false;
}

/* Sends what the program wrote to the pair. Returns whether there may be more to read. */
static bool
relay_out(struct vb_rs *rs)
{
	uint8_t bytes[RS_SLOT];
	bool asks;

	while (rs->state == RS_CONNECTED && !rs->tx_shut && vb_rs_writable(rs)) {
		ssize_t n = relay_peek(rs->b, bytes, rs->peer_bytes, &asks);

		if (n < 0 && errno == EAGAIN)
			return true;
		if (n <= 0) {
			rs->tx_shut = true;
			vb_rs_flush(rs);
			return false;
		}
		/* A child asks for the relay that has begun. */
		if (!asks || n > 1)
			n = (ssize_t)vb_rs_give(rs, bytes, (size_t)(n - asks));
		if (vb_rs_sys_recv(rs->b, bytes, (size_t)n, MSG_DONTWAIT) != n)
			vb_rs_break(rs, EIO);
	}
	return false;
}

/* An unchanged watch is not set again, because that would report an end of the pair again. */
static void
relay_watch(struct vb_rs *rs, uint32_t events)
{
	if (rs->watched != events)
		vb_rs_watch(rs, events);
	rs->watched = events;
}

void
vb_rs_relay_turn(struct vb_rs *rs)
{
	bool full, more;

	if (rs->b < 0 || rs->relay_ended)
		return;
	full = relay_in(rs);
	more = relay_out(rs);
	vb_rs_flush(rs);
	relay_watch(rs, (full ? EPOLLOUT : 0u) | (more ? EPOLLIN : 0u) | EPOLLET);
	if ((vb_rs_sys_poll(rs->b) & POLLHUP) != 0 && !more)
		rs->relay_ended = true;
	if (rs->state == RS_CLOSED && !rs->shown_end) {
		shutdown(rs->b, SHUT_RDWR);
		rs->shown_end = rs->relay_ended = true;
	}
	if (rs->relay_ended)
		relay_watch(rs, EPOLLET);
}
