/* SPDX-License-Identifier: BSD-3-Clause */
#include "sock.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "mem.h"

union control {
	struct cmsghdr align;
	char room[CMSG_SPACE(SK_SOCK_FDS * sizeof(int))];
};

/* Connects a new socket. Returns 0 or -errno. */
static int
sock_join(int fd, const struct sockaddr_un *un, unsigned limit_s)
{
	const struct timeval limit = {.tv_sec = limit_s};
	int rc;

	if (limit_s > 0 &&
		(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) < 0 ||
			setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) < 0))
		return -errno;
	do
		rc = connect(fd, (const struct sockaddr *)un, sizeof(*un));
	while (rc < 0 && errno == EINTR);
	return rc < 0 ? -errno : 0;
}

int
sk_sock_connect(const char *path, int type, unsigned limit_s)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	int fd, rc;

	if (strlen(path) >= sizeof(un.sun_path))
		return -ENAMETOOLONG;
	strcpy(un.sun_path, path);
	fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	rc = sock_join(fd, &un, limit_s);
	if (rc == 0)
		return fd;
	close(fd);
	return rc;
}

int
sk_sock_send(int sock, const void *p, size_t len, const int *fds, unsigned n, int flags)
{
	union control control = {0};
	struct iovec iov = {.iov_base = (void *)(uintptr_t)p, .iov_len = len};
	struct msghdr h = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t sent;

	if (n > SK_SOCK_FDS)
		return -EINVAL;
	if (n > 0) {
		control.align = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
			.cmsg_type = SCM_RIGHTS,
			.cmsg_len = CMSG_LEN(n * sizeof(int))};
		memcpy(CMSG_DATA(&control.align), fds, n * sizeof(int));
		h.msg_control = control.room;
		h.msg_controllen = CMSG_SPACE(n * sizeof(int));
	}
	do
		sent = sendmsg(sock, &h, MSG_NOSIGNAL | flags);
	while (sent < 0 && errno == EINTR);
	if (sent < 0)
		return -errno;
	return (size_t)sent == len ? 0 : -EMSGSIZE;
}

ssize_t
sk_sock_take(int sock, void *p, size_t len, int *fds, unsigned most, unsigned *n, int flags)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(SK_SOCK_FDS * sizeof(int))];
	struct iovec iov = {.iov_base = p, .iov_len = len};
	/* CMSG_SPACE() is rounded up, so that it may have room for one more. */
	struct msghdr h = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = CMSG_LEN(SK_MIN(most, SK_SOCK_FDS) * sizeof(int))};
	ssize_t got = recvmsg(sock, &h, MSG_CMSG_CLOEXEC | flags);
	int rc = got < 0 ? -errno : 0;
	struct cmsghdr *cm;

	*n = 0;
	if (rc < 0)
		return rc;
	cm = CMSG_FIRSTHDR(&h);
	if (cm != NULL && cm->cmsg_level == SOL_SOCKET && cm->cmsg_type == SCM_RIGHTS) {
		*n = (unsigned)((cm->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(fds, CMSG_DATA(cm), *n * sizeof(int));
	}
	return h.msg_flags & (MSG_TRUNC | MSG_CTRUNC) ? -EPROTO : got;
}
static void
sock_close_all(const int *fds, unsigned n)
{
	while (n > 0)
		close(fds[--n]);
}

ssize_t
sk_sock_recv(int sock, void *p, size_t len, int *fds, unsigned most, unsigned *n, int flags)
{
	ssize_t got;

	do
		got = sk_sock_take(sock, p, len, fds, most, n, flags);
	while (got == -EINTR);
	if (got < 0) {
		sock_close_all(fds, *n);
		*n = 0;
	}
	return got;
}
