/* SPDX-License-Identifier: BSD-3-Clause */
#include "descriptors.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include "mem.h"

ssize_t
sk_descriptors_recv(int sock, void *buf, size_t len, int fds[SK_DESCRIPTORS], unsigned *nfds)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(SK_DESCRIPTORS * sizeof(int))];
	struct iovec iov = {.iov_base = buf, .iov_len = len};
	struct msghdr h = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control)};
	ssize_t n = recvmsg(sock, &h, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	int rc = n < 0 ? -errno : 0;

	*nfds = 0;
	if (rc < 0)
		return rc;
	for (struct cmsghdr *cm = CMSG_FIRSTHDR(&h); cm != NULL; cm = CMSG_NXTHDR(&h, cm)) {
		size_t here = (cm->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (cm->cmsg_level != SOL_SOCKET || cm->cmsg_type != SCM_RIGHTS)
			continue;
		here = SK_MIN(here, (size_t)SK_DESCRIPTORS - *nfds);
		memcpy(&fds[*nfds], CMSG_DATA(cm), here * sizeof(int));
		*nfds += (unsigned)here;
	}
	return h.msg_flags & (MSG_TRUNC | MSG_CTRUNC) ? -EPROTO : n;
}
