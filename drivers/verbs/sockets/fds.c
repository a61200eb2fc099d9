/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls that close, duplicate and control descriptors. */
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "sockets_priv.h"

/* Second names of the C library's functions. */
int __dup2(int fd, int to);
FILE *_IO_fdopen(int fd, const char *mode);

VB_EXPORT int
close(int fd)
{
	return vb_rs_known(fd) ? vb_rs_close(fd) : vb_so_genuine()->close(fd);
}

/* Closes the sockets of this library among the descriptors from `first` to `last`. */
static void
so_close_from(unsigned first, unsigned last)
{
	int fd = first <= INT_MAX ? vb_rs_next((int)first) : -1;

	for (; fd >= 0 && (unsigned)fd <= last; fd = vb_rs_next(fd + 1))
		vb_rs_close(fd);
}

VB_EXPORT int
close_range(unsigned first, unsigned last, int flags)
{
	if ((flags & CLOSE_RANGE_CLOEXEC) == 0 && first <= last)
		so_close_from(first, last);
	return vb_so_genuine()->close_range(first, last, flags);
}

VB_EXPORT void
closefrom(int low)
{
	so_close_from(low > 0 ? (unsigned)low : 0, UINT_MAX);
	vb_so_genuine()->closefrom(low);
}

/* Enters a new duplicate of a descriptor. Returns `fd`, or -1. The standard streams of the C
 * library use their numbers as those of fdopen(3) do; a socket without a connection carries no
 * bytes. */
static int
so_duplicated(int of, int fd)
{
	int saved = errno;

	if (fd < 0 || !vb_rs_known(of))
		return fd;
	fd = vb_rs_dup(of, fd);
	if (fd >= 0 && fd <= STDERR_FILENO) {
		vb_rs_give_away(fd);
		errno = saved;
	}
	return fd;
}

VB_EXPORT int
dup(int fd)
{
	return so_duplicated(fd, vb_so_genuine()->dup(fd));
}

VB_EXPORT int
dup3(int fd, int to, int flags)
{
	int rc = vb_so_genuine()->dup3(fd, to, flags);

	if (rc >= 0 && vb_rs_known(to))
		vb_rs_replaced(to);
	return so_duplicated(fd, rc);
}

VB_EXPORT int
dup2(int fd, int to)
{
	if (fd == to)
		return vb_so_genuine()->dup2(fd, to);
	return dup3(fd, to, 0);
}

VB_EXPORT int
__dup2(int fd, int to)
{
	return dup2(fd, to);
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
VB_EXPORT __attribute__((alias("fcntl"))) int __fcntl(int fd, int cmd, ...);
VB_EXPORT __attribute__((alias("close"))) int __close(int fd);

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

VB_EXPORT FILE *
_IO_fdopen(int fd, const char *mode)
{
	return fdopen(fd, mode);
}
