/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls that carry bytes. A write to a stream that has ended raises SIGPIPE, as TCP does. */
#include <signal.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <unistd.h>

#include "sockets_priv.h"

#define CHUNK 65536

ssize_t __read_chk(int fd, void *buf, size_t n, size_t size);
ssize_t __recv_chk(int fd, void *buf, size_t n, size_t size, int flags);
ssize_t __recvfrom_chk(
	int fd, void *buf, size_t n, size_t size, int flags, struct sockaddr *addr, socklen_t *len);

static ssize_t
so_sent(ssize_t n, int flags)
{
	if (n < 0 && errno == EPIPE && (flags & MSG_NOSIGNAL) == 0) {
		pthread_kill(pthread_self(), SIGPIPE);
		errno = EPIPE;
	}
	return n;
}

VB_EXPORT ssize_t
recv(int fd, void *buf, size_t n, int flags)
{
	return vb_rs_known(fd) ? rrecv(fd, buf, n, flags)
			       : vb_so_genuine()->recv(fd, buf, n, flags);
}

VB_EXPORT ssize_t
recvfrom(int fd, void *buf, size_t n, int flags, struct sockaddr *addr, socklen_t *len)
{
	return vb_rs_known(fd) ? rrecvfrom(fd, buf, n, flags, addr, len)
			       : vb_so_genuine()->recvfrom(fd, buf, n, flags, addr, len);
}

VB_EXPORT ssize_t
recvmsg(int fd, struct msghdr *msg, int flags)
{
	return vb_rs_known(fd) ? rrecvmsg(fd, msg, flags)
			       : vb_so_genuine()->recvmsg(fd, msg, flags);
}

VB_EXPORT ssize_t
read(int fd, void *buf, size_t n)
{
	return vb_rs_known(fd) ? rread(fd, buf, n) : vb_so_genuine()->read(fd, buf, n);
}

VB_EXPORT ssize_t
readv(int fd, const struct iovec *iov, int n)
{
	return vb_rs_known(fd) ? rreadv(fd, iov, n) : vb_so_genuine()->readv(fd, iov, n);
}

/* ---- Programs that were compiled with _FORTIFY_SOURCE ---- */

static void
so_check(size_t n, size_t size)
{
	if (n > size)
		abort();
}

VB_EXPORT ssize_t
__read_chk(int fd, void *buf, size_t n, size_t size)
{
	so_check(n, size);
	return read(fd, buf, n);
}

VB_EXPORT ssize_t
__recv_chk(int fd, void *buf, size_t n, size_t size, int flags)
{
	so_check(n, size);
	return recv(fd, buf, n, flags);
}

VB_EXPORT ssize_t
__recvfrom_chk(
	int fd, void *buf, size_t n, size_t size, int flags, struct sockaddr *addr, socklen_t *len)
{
	so_check(n, size);
	return recvfrom(fd, buf, n, flags, addr, len);
}

/* ---- Sending ---- */

VB_EXPORT ssize_t
send(int fd, const void *buf, size_t n, int flags)
{
	return vb_rs_known(fd) ? so_sent(rsend(fd, buf, n, flags), flags)
			       : vb_so_genuine()->send(fd, buf, n, flags);
}

VB_EXPORT ssize_t
sendto(int fd, const void *buf, size_t n, int flags, const struct sockaddr *addr, socklen_t len)
{
	return vb_rs_known(fd) ? so_sent(rsend(fd, buf, n, flags), flags)
			       : vb_so_genuine()->sendto(fd, buf, n, flags, addr, len);
}

VB_EXPORT ssize_t
sendmsg(int fd, const struct msghdr *msg, int flags)
{
	return vb_rs_known(fd) ? so_sent(rsendmsg(fd, msg, flags), flags)
			       : vb_so_genuine()->sendmsg(fd, msg, flags);
}

VB_EXPORT ssize_t
write(int fd, const void *buf, size_t n)
{
	return vb_rs_known(fd) ? so_sent(rwrite(fd, buf, n), 0)
			       : vb_so_genuine()->write(fd, buf, n);
}

VB_EXPORT ssize_t
writev(int fd, const struct iovec *iov, int n)
{
	return vb_rs_known(fd) ? so_sent(rwritev(fd, iov, n), 0)
			       : vb_so_genuine()->writev(fd, iov, n);
}

/* Sends a part of a file from the offset. Returns the bytes, or -1. */
static ssize_t
so_sendfile(int out, int in, off_t offset, size_t count)
{
	uint8_t *bytes = malloc(CHUNK);
	ssize_t done = 0, n = 0, sent = 0;

	if (bytes == NULL)
		return -1;
	while ((size_t)done < count && sent == n) {
		size_t want = count - (size_t)done < CHUNK ? count - (size_t)done : CHUNK;

		n = pread(in, bytes, want, offset + done);
		sent = n > 0 ? so_sent(rsend(out, bytes, (size_t)n, 0), 0) : n;
		if (n <= 0 || sent <= 0)
			break;
		done += sent;
	}
	free(bytes);
	return done > 0 ? done : sent;
}

VB_EXPORT ssize_t
sendfile(int out, int in, off_t *offset, size_t count)
{
	off_t from;
	ssize_t n;

	if (!vb_rs_known(out))
		return vb_so_genuine()->sendfile(out, in, offset, count);
	from = offset != NULL ? *offset : lseek(in, 0, SEEK_CUR);
	if (from < 0)
		return -1;
	n = so_sendfile(out, in, from, count);
	if (n > 0 && offset != NULL)
		*offset = from + n;
	else if (n > 0)
		lseek(in, from + n, SEEK_SET);
	return n;
}

VB_EXPORT __attribute__((alias("sendfile"))) ssize_t sendfile64(
	int out, int in, off_t *offset, size_t count);
