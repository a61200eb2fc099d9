/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of Unix sockets with descriptors. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../../lib/base/descriptors.h"

static int pair[2];

/* Sends `len` bytes with `n` descriptors of /dev/null. */
static void
pass(size_t len, unsigned n)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(SK_DESCRIPTORS * sizeof(int))] = {0};
	struct iovec iov = {"bytes", len};
	struct msghdr h = {.msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *cm = (struct cmsghdr *)control;
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	h.msg_control = control;
	h.msg_controllen = CMSG_SPACE(n * sizeof(int));
	cm->cmsg_len = CMSG_LEN(n * sizeof(int));
	cm->cmsg_level = SOL_SOCKET;
	cm->cmsg_type = SCM_RIGHTS;
	for (unsigned i = 0; i < n; i++)
		memcpy(CMSG_DATA(cm) + i * sizeof(int), &null, sizeof(int));
	cr_assert_eq(sendmsg(pair[0], &h, 0), (ssize_t)len);
	close(null);
}

/* Receives a message of at most 4 bytes, and asserts that `n` descriptors come and that the process
 * has no other new one. Returns the result. */
static ssize_t
receives(unsigned n)
{
	int fds[SK_DESCRIPTORS], next = dup(0), after;
	unsigned nfds;
	char buf[4];
	ssize_t rc;

	close(next);
	rc = sk_descriptors_recv(pair[1], buf, sizeof(buf), fds, &nfds);
	cr_assert_eq(nfds, n);
	for (unsigned i = 0; i < n; i++) {
		cr_assert(fcntl(fds[i], F_GETFD) & FD_CLOEXEC);
		close(fds[i]);
	}
	after = dup(0);
	close(after);
	cr_assert_eq(after, next, "a descriptor is left");
	return rc;
}

Test(base_descriptors, every_descriptor_of_every_message_is_the_callers)
{
	const unsigned numbers[] = {1, 2, 3, 8, 9, SK_DESCRIPTORS};

	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	for (unsigned i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		for (ssize_t len = 0; len <= 5; len++) {
			pass((size_t)len, numbers[i]);
			cr_assert_eq(receives(numbers[i]), len <= 4 ? len : -EPROTO, "%zd", len);
		}
	cr_assert_eq(receives(0), -EAGAIN);
	close(pair[0]);
	cr_assert_eq(receives(0), 0);
}
