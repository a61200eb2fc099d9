/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of Unix sockets with descriptors. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "../../../lib/base/descriptors.h"
#include "../../../lib/base/sock.h"
#include "../../support/lingering.h"

static int pair[2];

#define PASSED 253 /* the most that the kernel allows in a message */

/* Sends `len` bytes with `n` copies of a descriptor, and closes it. */
static void
pass_fd(size_t len, unsigned n, int fd)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(PASSED * sizeof(int))] = {0};
	struct iovec iov = {"bytes", len};
	struct msghdr h = {.msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *cm = (struct cmsghdr *)control;

	h.msg_control = control;
	h.msg_controllen = CMSG_SPACE(n * sizeof(int));
	cm->cmsg_len = CMSG_LEN(n * sizeof(int));
	cm->cmsg_level = SOL_SOCKET;
	cm->cmsg_type = SCM_RIGHTS;
	for (unsigned i = 0; i < n; i++)
		memcpy(CMSG_DATA(cm) + i * sizeof(int), &fd, sizeof(int));
	cr_assert_eq(sendmsg(pair[0], &h, 0), (ssize_t)len);
	close(fd);
}

static void
pass(size_t len, unsigned n)
{
	pass_fd(len, n, open("/dev/null", O_RDONLY | O_CLOEXEC));
}

/* Receives at most 4 bytes with at most `max` descriptors, and asserts that `n` come and that the
 * process has no other new one. Returns the result. */
static ssize_t
receives(unsigned max, unsigned n)
{
	int fds[SK_SOCK_FDS], next = dup(0), after;
	unsigned nfds;
	char buf[4];
	ssize_t rc;

	close(next);
	rc = sk_sock_take(pair[1], buf, sizeof(buf), fds, max, &nfds, MSG_DONTWAIT);
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

static void
make_pair(void)
{
	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
}

TestSuite(base_descriptors, .init = make_pair);

Test(base_descriptors, every_descriptor_of_every_message_is_the_callers_or_dropped)
{
	const unsigned numbers[] = {1, 2, 3, 8, 9, PASSED};

	for (unsigned max = 1; max <= SK_SOCK_FDS; max++)
		for (unsigned i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
			for (ssize_t len = 0; len <= 5; len++) {
				unsigned n = numbers[i] < max ? numbers[i] : max;
				bool all = len <= 4 && numbers[i] <= max;

				pass((size_t)len, numbers[i]);
				cr_assert_eq(receives(max, n), all ? len : -EPROTO, "%u %u %zd",
					max, numbers[i], len);
			}
	cr_assert_eq(receives(1, 0), -EAGAIN);
	close(pair[0]);
	cr_assert_eq(receives(1, 0), 0);
}

/* ---- Descriptors that do not close ---- */

static uint64_t
clock_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

Test(base_descriptors, a_thread_in_a_hurry_waits_for_no_socket, .timeout = 60)
{
	uint64_t from = clock_ms();
	struct sk_hurry h;
	unsigned nfds;
	char byte;
	int fd;

	cr_assert_eq(sk_hurry_init(&h), 0);
	/* Closed, dropped for lack of room, discarded unread, and closed with its connection. */
	pass_fd(1, 1, lingering());
	cr_assert_eq(sk_sock_take(pair[1], &byte, 1, &fd, 1, &nfds, MSG_DONTWAIT), 1);
	sk_hurry_begin(&h);
	close(fd);
	sk_hurry_end(&h);
	pass(1, 1);
	pass_fd(0, 2, lingering());
	pass_fd(1, 1, lingering());
	sk_hurry_begin(&h);
	cr_assert_eq(recv(pair[1], &byte, 1, 0), 1);
	cr_assert_eq(sk_sock_take(pair[1], &byte, 1, &fd, 1, &nfds, MSG_DONTWAIT), -EPROTO);
	cr_assert_eq(nfds, 1);
	close(fd);
	close(pair[1]);
	sk_hurry_end(&h);
	sk_hurry_fini(&h);
	cr_assert_lt(clock_ms() - from, LINGER_S * 500);
}

Test(base_descriptors, a_closer_takes_as_many_as_fit_and_nobody_waits_for_it, .timeout = 60)
{
	struct sk_closer *c = NULL, *other = NULL;
	uint64_t from = clock_ms();

	cr_assert(sk_closer_tidy(&c));
	for (unsigned i = 0; i < SK_CLOSER_MAX; i++) {
		cr_assert_not(sk_closer_is_full(c));
		sk_closer_put(&c, lingering());
	}
	cr_assert(sk_closer_is_full(c));
	cr_assert_not(sk_closer_tidy(&c));
	sk_closer_put(&other, open("/dev/null", O_RDONLY | O_CLOEXEC));
	while (!sk_closer_tidy(&other))
		usleep(1000);
	sk_closer_leave(&c);
	cr_assert_null(c);
	cr_assert_lt(clock_ms() - from, LINGER_S * 500);
}
