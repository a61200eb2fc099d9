/* SPDX-License-Identifier: BSD-3-Clause */
/* The descriptor of a socket is one of the kernel's, with the readiness of the socket, so that the
 * kernel's calls do what these are to do, for sockets and other descriptors together. */
#include <fcntl.h>
#include <stdarg.h>

#include "rs_priv.h"

VB_EXPORT int
rpoll(struct pollfd *fds, nfds_t nfds, int timeout)
{
	return poll(fds, nfds, timeout);
}

VB_EXPORT int
rselect(int nfds, fd_set *readfds, fd_set *writefds, fd_set *exceptfds, struct timeval *timeout)
{
	return select(nfds, readfds, writefds, exceptfds, timeout);
}

VB_EXPORT int
rfcntl(int socket, int cmd, ...)
{
	va_list ap;
	long arg;
	int fd;

	va_start(ap, cmd);
	arg = va_arg(ap, long);
	va_end(ap);
	if (!vb_rs_known(socket))
		return vb_rs_end(EBADF);
	fd = fcntl(socket, cmd, arg);
	if (fd < 0 || (cmd != F_DUPFD && cmd != F_DUPFD_CLOEXEC))
		return fd;
	/* Where socket programs are preloaded, fcntl() has entered the number itself. */
	return vb_rs_known(fd) ? fd : vb_rs_dup(socket, fd);
}
