/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of the C library that socket programs call: this program contains those of
 * drivers/verbs/sockets. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/wait.h>

#include "rsocket_fake.h"

#include "../../../drivers/verbs/sockets/sockets_priv.h"

TestSuite(sockets, .init = rsf_reset, .fini = rsf_end, .timeout = 60);

#define FREE 200 /* a number that no descriptor has */

static int fds[2]; /* [0] has connected, [1] was accepted */
static int listener;

static void
connected(void)
{
	listener = rsf_listener(AF_INET);
	rsf_connect(listener, fds);
}

static void
carries(int from, int to)
{
	char c = 0;

	cr_assert_eq(write(from, "x", 1), 1);
	cr_assert_eq(read(to, &c, 1), 1);
	cr_assert_eq(c, 'x');
}

static void
ends_well(pid_t child)
{
	int status;

	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(status, 0, "%#x", status);
}

/* ---- Closing many descriptors ---- */

Test(sockets, a_range_that_is_closed_ends_its_sockets)
{
	char c;

	connected();
	cr_assert_eq(close_range((unsigned)fds[0], (unsigned)fds[0], CLOSE_RANGE_CLOEXEC), 0);
	carries(fds[0], fds[1]);
	cr_assert_eq(close_range((unsigned)fds[0], (unsigned)fds[0], 0), 0);
	cr_assert_not(vb_rs_known(fds[0]));
	cr_assert_eq(read(fds[1], &c, 1), 0, "the stream ends");
	cr_assert(vb_rs_known(listener));
}

Test(sockets, a_child_closes_all_descriptors_from_a_number_on)
{
	pid_t child;

	connected();
	child = fork();
	if (child == 0) {
		closefrom(3);
		_exit(vb_rs_next(0) == -1 && fcntl(fds[0], F_GETFD) == -1 ? 0 : 1);
	}
	ends_well(child);
	carries(fds[0], fds[1]);
}

/* ---- Duplicates ---- */

Test(sockets, a_duplicate_that_fails_leaves_the_number_alone)
{
	connected();
	errno = 0;
	cr_assert_eq(dup2(FREE, fds[0]), -1);
	cr_assert_eq(errno, EBADF);
	cr_assert_eq(dup3(fds[1], fds[0], O_APPEND), -1);
	cr_assert_eq(errno, EINVAL);
	carries(fds[0], fds[1]);
}

Test(sockets, a_duplicate_replaces_a_socket_at_once)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	char c;

	connected();
	cr_assert_eq(dup2(fds[1], FREE), FREE);
	cr_assert_eq(dup2(fds[0], FREE), FREE);
	carries(FREE, fds[1]);
	cr_assert_eq(dup2(fds[0], fds[0]), fds[0]);
	carries(fds[1], FREE);
	cr_assert_eq(dup2(null, fds[0]), fds[0]);
	cr_assert_not(vb_rs_known(fds[0]));
	cr_assert_eq(write(fds[0], "x", 1), 1, "it is /dev/null");
	cr_assert_eq(dup2(null, FREE), FREE);
	cr_assert_eq(read(fds[1], &c, 1), 0, "the stream ends with its last descriptor");
}

/* ---- vfork(2) ---- */

Test(sockets, a_child_of_vfork_that_duplicates_a_socket_changes_nothing_in_its_parent)
{
	pid_t child;

	connected();
	child = vfork();
	if (child == 0) {
		if (dup2(fds[0], FREE) != FREE || dup2(FREE, fds[1]) != fds[1])
			_exit(1);
		close(fds[0]);
		close_range(3, ~0u, 0);
		_exit(0);
	}
	ends_well(child);
	cr_assert_not(vb_rs_known(FREE));
	carries(fds[0], fds[1]);
}
