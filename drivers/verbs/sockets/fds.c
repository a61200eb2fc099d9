/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls that close, duplicate and control descriptors. */
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "sockets_priv.h"

VB_EXPORT int
close(int fd)
{
	return vb_rs_known(fd) ? vb_rs_close(fd) : vb_so_genuine()->close(fd);
}

/* Enters a new duplicate of a descriptor. Returns `fd`, or -1. */
static int
so_duplicated(int of, int fd)
{
	return fd >= 0 && vb_rs_known(of) ? vb_rs_dup(of, fd) : fd;
}

VB_EXPORT int
dup(int fd)
{
	return so_duplicated(fd, vb_so_genuine()->dup(fd));
}

VB_EXPORT int
dup3(int fd, int to, int flags)
{
	if (fd != to && vb_rs_known(to))
		vb_rs_close(to);
	return so_duplicated(fd, vb_so_genuine()->dup3(fd, to, flags));
}

VB_EXPORT int
dup2(int fd, int to)
{
	if (fd == to)
		return vb_so_genuine()->dup2(fd, to);
	return dup3(fd, to, 0);
}

VB_EXPORT int
fcntl(int fd, int cmd, ...)
{
	va_list ap;
	void *arg;
	int rc;

	va_start(ap, cmd);
	arg = va_arg(ap, void *);
	va_end(ap);
	rc = vb_so_genuine()->fcntl(fd, cmd, arg);
	return cmd == F_DUPFD || cmd == F_DUPFD_CLOEXEC ? so_duplicated(fd, rc) : rc;
}

VB_EXPORT __attribute__((alias("fcntl"))) int fcntl64(int fd, int cmd, ...);

VB_EXPORT int
ioctl(int fd, unsigned long request, ...)
{
	va_list ap;
	void *arg;

	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	return request == FIONREAD && vb_rs_known(fd) ? vb_rs_unread(fd, arg)
						      : vb_so_genuine()->ioctl(fd, request, arg);
}

/* The streams of the C library read and write by system calls of their own. */
VB_EXPORT FILE *
fdopen(int fd, const char *mode)
{
	if (vb_rs_known(fd) && vb_rs_give_away(fd) < 0)
		return NULL;
	return vb_so_genuine()->fdopen(fd, mode);
}
