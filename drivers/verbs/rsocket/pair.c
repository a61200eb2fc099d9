/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The descriptors of a socket: the pair of Unix sockets, whose one end is the program's, and a TCP
 * socket of the kernel that never connects and keeps the socket's options. The library moves its
 * own descriptors to high numbers, because programs that use select(2) need the low ones.
 */
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <unistd.h>

#include "rs_priv.h"

#define HIGHEST 65536
#define BUFFER  32768 /* bytes that an end may hold; ready.c relies on it */

int
vb_rs_high(int fd)
{
	struct rlimit lim;
	int from = 512, high;

	if (fd < 0)
		return fd;
	if (getrlimit(RLIMIT_NOFILE, &lim) == 0)
		from = (int)(lim.rlim_cur < HIGHEST ? lim.rlim_cur : HIGHEST) / 2;
	high = fcntl(fd, F_DUPFD_CLOEXEC, from);
	if (high < 0)
		return fd;
	vb_rs_sys_close(fd);
	return high;
}

/* Sets the flags of a descriptor to those of socket(2). */
static int
flags_set(int fd, int flags)
{
	int rc = 0;

	if ((flags & SOCK_NONBLOCK) != 0)
		rc = fcntl(fd, F_SETFL, O_NONBLOCK);
	return rc;
}

int
vb_rs_pair(struct vb_rs *rs, int at, int flags)
{
	const int size = BUFFER / 2; /* the kernel doubles it */
	int sv[2], fd;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv) < 0)
		return -errno;
	setsockopt(sv[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	setsockopt(sv[1], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	/* The program's end takes the lowest number, as socket(2) does. */
	if (at >= 0)
		fd = dup3(sv[0], at, flags & SOCK_CLOEXEC ? O_CLOEXEC : 0);
	else
		fd = fcntl(sv[0], F_SETFD, flags & SOCK_CLOEXEC ? FD_CLOEXEC : 0) < 0 ? -1 : sv[0];
	if (fd < 0 || flags_set(fd, flags) < 0) {
		fd = -errno;
		vb_rs_sys_close(sv[0]);
		vb_rs_sys_close(sv[1]);
		return fd;
	}
	rs->a = at >= 0 ? vb_rs_high(sv[0]) : vb_rs_high(fcntl(fd, F_DUPFD_CLOEXEC, 0));
	vb_rs_end_set(rs, vb_rs_high(sv[1]));
	if (rs->a >= 0 && vb_rs_enter(fd, rs) == 0)
		return fd;
	if (at < 0)
		vb_rs_sys_close(fd);
	vb_rs_fds_close(rs);
	return -EMFILE;
}

void
vb_rs_fds_close(struct vb_rs *rs)
{
	vb_rs_fd_close(rs, &rs->a);
	vb_rs_fd_close(rs, &rs->b);
	vb_rs_fd_close(rs, &rs->shadow);
}

int
vb_rs_shadow(struct vb_rs *rs)
{
	if (rs->shadow < 0)
		rs->shadow = vb_rs_high(socket(rs->domain, SOCK_STREAM | SOCK_CLOEXEC, 0));
	return rs->shadow;
}

/* Returns an option of the kernel's socket that is an int; 0 where it has none. */
static int
kernel_option(int fd, int level, int name)
{
	int v = 0;
	socklen_t len = sizeof(v);

	return getsockopt(fd, level, name, &v, &len) == 0 ? v : 0;
}

int
vb_rs_convert(int fd)
{
	int flags = fcntl(fd, F_GETFL), fdflags = fcntl(fd, F_GETFD), rc;
	struct vb_rs *rs;

	if (flags < 0 || fdflags < 0)
		return errno;
	rs = vb_rs_new(kernel_option(fd, SOL_SOCKET, SO_DOMAIN));
	if (rs == NULL)
		return errno;
	if (rs->domain == AF_INET6)
		rs->v6only = kernel_option(fd, IPPROTO_IPV6, IPV6_V6ONLY) != 0;
	rc = vb_rs_id_new(rs);
	if (rc == 0)
		rs->shadow = vb_rs_high(fcntl(fd, F_DUPFD_CLOEXEC, 0));
	if (rc == 0)
		rc = vb_rs_pair(rs, fd,
			((flags & O_NONBLOCK) != 0 ? SOCK_NONBLOCK : 0) |
				((fdflags & FD_CLOEXEC) != 0 ? SOCK_CLOEXEC : 0));
	if (rc >= 0 && vb_rs_known(fd))
		return 0;
	vb_rs_drop(rs);
	return rc < 0 ? -rc : rc;
}
