/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls that carry bytes, but for those of format.c and messages.c. A write to a stream that
 * has ended raises SIGPIPE, as TCP does. */
#include <limits.h>
#include <signal.h>
#include <fcntl.h>
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

	if (vb_rs_known(in))
		return vb_rs_end(EINVAL); /* the kernel carries bytes from a socket to a pipe */
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

/* Programs that use it go on with read(2) and write(2). */
VB_EXPORT ssize_t
splice(int in, off64_t *in_offset, int out, off64_t *out_offset, size_t n, unsigned flags)
{
	if (vb_rs_known(in) || vb_rs_known(out))
		return vb_rs_end(EINVAL);
	return vb_so_genuine()->splice(in, in_offset, out, out_offset, n, flags);
}

/* ---- Vectors with flags: the offset -1 stands for that of the descriptor ---- */

/* Returns whether the library can serve the call; otherwise sets errno. */
static bool
so_vector(int n, int flags)
{
	int err = 0;

	if (n < 0 || n > IOV_MAX)
		err = EINVAL;
	else if ((flags & ~(RWF_HIPRI | RWF_DSYNC | RWF_SYNC | RWF_NOWAIT)) != 0)
		err = EOPNOTSUPP;
	return vb_rs_end(err) == 0;
}

VB_EXPORT ssize_t
preadv2(int fd, const struct iovec *iov, int n, off_t offset, int flags)
{
	struct msghdr msg = {.msg_iov = (struct iovec *)(uintptr_t)iov};

	if (!vb_rs_known(fd) || offset != -1)
		return vb_so_genuine()->preadv2(fd, iov, n, offset, flags);
	if (!so_vector(n, flags))
		return -1;
	msg.msg_iovlen = (size_t)n;
	return recvmsg(fd, &msg, (flags & RWF_NOWAIT) != 0 ? MSG_DONTWAIT : 0);
}

VB_EXPORT ssize_t
pwritev2(int fd, const struct iovec *iov, int n, off_t offset, int flags)
{
	struct msghdr msg = {.msg_iov = (struct iovec *)(uintptr_t)iov};

	if (!vb_rs_known(fd) || offset != -1)
		return vb_so_genuine()->pwritev2(fd, iov, n, offset, flags);
	if (!so_vector(n, flags))
		return -1;
	msg.msg_iovlen = (size_t)n;
	return sendmsg(fd, &msg, (flags & RWF_NOWAIT) != 0 ? MSG_DONTWAIT : 0);
}

VB_EXPORT __attribute__((alias("preadv2"))) ssize_t preadv64v2(
	int fd, const struct iovec *iov, int n, off_t offset, int flags);
VB_EXPORT __attribute__((alias("pwritev2"))) ssize_t pwritev64v2(
	int fd, const struct iovec *iov, int n, off_t offset, int flags);

/* ---- Second names of the C library's functions ---- */

VB_EXPORT __attribute__((alias("read"))) ssize_t __read(int fd, void *buf, size_t n);
VB_EXPORT __attribute__((alias("write"))) ssize_t __write(int fd, const void *buf, size_t n);
VB_EXPORT __attribute__((alias("send"))) ssize_t __send(
	int fd, const void *buf, size_t n, int flags);
