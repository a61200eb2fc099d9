/* SPDX-License-Identifier: BSD-3-Clause */
/* The messages of the Unix socket and their descriptors: check, receive, send. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "socket.h"

#define SOCK_MAX_FDS 8

int
ctl_socket_parse(const void *buf, size_t len, unsigned nfds, bool attached,
	struct shm_sock_msg *out, const char **why)
{
	*why = "the message does not belong to this protocol";
	if (len != sizeof(*out))
		return -EPROTO;
	memcpy(out, buf, sizeof(*out));
	if (out->magic != SHM_MAGIC)
		return -EPROTO;
	*why = "the client speaks another version of the protocol";
	if (out->version != SHM_VERSION)
		return -EPROTONOSUPPORT;
	if (out->op == SHM_HELLO) {
		*why = attached ? "a client says HELLO once" : "a HELLO brings no descriptor";
		if (attached || nfds != 0)
			return -EINVAL;
		out->text[SHM_NAME_MAX - 1] = '\0';
		for (char *p = out->text; *p; p++)
			if (!isgraph((unsigned char)*p))
				*p = '_';
		return 0;
	}
	*why = "a client says HELLO, and then REGION";
	if (out->op != SHM_REGION || !attached)
		return -EINVAL;
	*why = "a REGION brings one descriptor and a size";
	return nfds == 1 && out->size != 0 ? 0 : -EINVAL;
}

static void
close_all(const int *fds, unsigned n)
{
	while (n)
		close(fds[--n]);
}

int
ctl_socket_recv(int fd, void *buf, size_t len, int *fds, unsigned maxfds, unsigned *nfds)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(SOCK_MAX_FDS * sizeof(int))];
	struct iovec iov = {.iov_base = buf, .iov_len = len};
	struct msghdr h = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control)};
	ssize_t n = recvmsg(fd, &h, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	struct cmsghdr *cm;
	int got[SOCK_MAX_FDS];

	*nfds = 0;
	if (n <= 0)
		return n < 0 ? -errno : 0;
	for (cm = CMSG_FIRSTHDR(&h); cm != NULL; cm = CMSG_NXTHDR(&h, cm)) {
		unsigned here = (unsigned)((cm->cmsg_len - CMSG_LEN(0)) / sizeof(int));

		if (cm->cmsg_level != SOL_SOCKET || cm->cmsg_type != SCM_RIGHTS)
			continue;
		here = SK_MIN(here, SOCK_MAX_FDS);
		memcpy(got, CMSG_DATA(cm), here * sizeof(int));
		if (*nfds == 0 && here <= maxfds) {
			memcpy(fds, got, here * sizeof(int));
			*nfds = here;
		} else {
			close_all(got, here);
			h.msg_flags |= MSG_CTRUNC;
		}
	}
	if (!(h.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
		return (int)n;
	close_all(fds, *nfds);
	*nfds = 0;
	return -EPROTO;
}

int
ctl_socket_send(int fd, const struct shm_sock_msg *m, const int *fds, unsigned nfds)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(SOCK_MAX_FDS * sizeof(int))] = {0};
	struct iovec iov = {.iov_base = (void *)(uintptr_t)m, .iov_len = sizeof(*m)};
	struct msghdr h = {.msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *cm;

	if (nfds) {
		h.msg_control = control;
		h.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
		cm = CMSG_FIRSTHDR(&h);
		cm->cmsg_level = SOL_SOCKET;
		cm->cmsg_type = SCM_RIGHTS;
		cm->cmsg_len = CMSG_LEN(nfds * sizeof(int));
		memcpy(CMSG_DATA(cm), fds, nfds * sizeof(int));
	}
	return sendmsg(fd, &h, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}
