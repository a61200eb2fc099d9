/* SPDX-License-Identifier: BSD-3-Clause */
/* Sockets over RDMA in several processes: children of fork(2) and of vfork(2), programs that are
 * started, and the end of a process. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "rsocket_fake.h"

#include "../../../drivers/verbs/rsocket/rs_priv.h"

TestSuite(rsocket_process, .init = rsf_reset, .fini = rsf_end, .timeout = 60);

static int fds[2]; /* [0] has connected, [1] was accepted */
static int listener;

/* ---- Other processes ---- */

/* In the child of fork(2): sends back what it receives, in upper case. */
static void
child_serve(int fd)
{
	char c;

	while (rread(fd, &c, 1) == 1) {
		c = (char)(c - 'a' + 'A');
		if (rwrite(fd, &c, 1) != 1)
			_exit(2);
	}
	_exit(rclose(fd) == 0 ? 0 : 3);
}

Test(rsocket_process, a_child_serves_the_connection_that_its_parent_has_accepted)
{
	static uint8_t bytes[30000], back[30000];
	size_t got = 0;
	int status;
	pid_t child;

	listener = rsf_pair(fds);
	memset(bytes, 'a', sizeof(bytes));
	cr_assert_eq(rwrite(fds[0], bytes, 100), 100);
	child = fork();
	if (child == 0)
		child_serve(fds[1]);
	cr_assert_eq(rclose(fds[1]), 0);
	cr_assert_eq(rwrite(fds[0], bytes, sizeof(bytes) - 100), sizeof(bytes) - 100);
	while (got < sizeof(bytes)) {
		ssize_t n = rread(fds[0], back, sizeof(back));

		cr_assert_gt(n, 0);
		for (ssize_t i = 0; i < n; i++)
			cr_assert_eq(back[i], 'A');
		got += (size_t)n;
	}
	cr_assert_eq(rshutdown(fds[0], SHUT_WR), 0);
	cr_assert_eq(rread(fds[0], back, 1), 0, "the child closes, and so the stream ends");
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(status, 0);
}

/* In a child: asks for the relay as the library does, after the parent has begun it already. */
static void
child_asks_late(int fd)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = {.head = {.cmsg_len = CMSG_LEN(sizeof(int)),
			     .cmsg_level = SOL_SOCKET,
			     .cmsg_type = SCM_RIGHTS}};
	struct iovec v = {"\1", 1};
	struct msghdr msg = {.msg_iov = &v,
		.msg_iovlen = 1,
		.msg_control = control.room,
		.msg_controllen = sizeof(control.room)};
	struct sockaddr_un un;
	socklen_t len;

	do
		len = sizeof(un);
	while (getpeername(fd, (struct sockaddr *)&un, &len) == 0 && len <= sizeof(sa_family_t));
	memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
	_exit(sendmsg(fd, &msg, 0) == 1 && send(fd, "x", 1, 0) == 1 ? 0 : 1);
}

Test(rsocket_process, the_request_for_a_relay_that_has_begun_is_no_data)
{
	char c = 0;
	int status;
	pid_t child;

	listener = rsf_pair(fds);
	child = fork();
	if (child == 0)
		child_asks_late(fds[1]);
	cr_assert_eq(rclose(fds[1]), 0);
	cr_assert_eq(rread(fds[0], &c, 1), 1);
	cr_assert_eq(c, 'x');
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(status, 0);
}

Test(rsocket_process, a_child_may_use_the_connection_while_its_parent_keeps_it)
{
	char c;
	int status;
	pid_t child;

	listener = rsf_pair(fds);
	child = fork();
	if (child == 0)
		child_serve(fds[1]);
	cr_assert_eq(rwrite(fds[0], "q", 1), 1);
	cr_assert_eq(rread(fds[0], &c, 1), 1);
	cr_assert_eq(c, 'Q');
	cr_assert_eq(rshutdown(fds[0], SHUT_WR), 0);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(status, 0);
	cr_assert_eq(rwrite(fds[1], "p", 1), 1, "the parent has a descriptor still");
	cr_assert_eq(rread(fds[0], &c, 1), 1);
	cr_assert_eq(c, 'p');
}

/* In a child: discards all but the last three of 10003 bytes, which it checks. */
static void
child_discards(int fd)
{
	char bytes[8] = "........";

	if (rrecv(fd, NULL, 1, MSG_PEEK | MSG_TRUNC) != 1)
		_exit(1);
	if (rrecv(fd, NULL, 3, MSG_TRUNC) != 3)
		_exit(2);
	if (rrecv(fd, NULL, 9997, MSG_TRUNC | MSG_WAITALL) != 9997)
		_exit(3);
	if (rrecv(fd, bytes, 2, MSG_TRUNC | MSG_PEEK) < 1)
		_exit(4);
	if (rrecv(fd, bytes + 1, 3, MSG_WAITALL) != 3 || memcmp(bytes, ".xyz....", 8) != 0)
		_exit(5);
	if (rrecv(fd, NULL, 1, MSG_TRUNC | MSG_DONTWAIT) != -1 || errno != EAGAIN)
		_exit(6);
	_exit(0);
}

Test(rsocket_process, msg_trunc_discards_the_bytes_of_a_relay_tcp_7)
{
	char bytes[10003];
	int status;
	pid_t child;

	listener = rsf_pair(fds);
	memset(bytes, 'a', sizeof(bytes));
	memcpy(bytes + 10000, "xyz", 3);
	child = fork();
	if (child == 0)
		child_discards(fds[1]);
	cr_assert_eq(rwrite(fds[0], bytes, sizeof(bytes)), sizeof(bytes));
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(status, 0, "%#x", status);
}

extern char **environ;

/* A program that posix_spawn(3) starts has no library of ours, and no handler of fork(2) has run.
 */
Test(rsocket_process,
	a_program_that_is_started_with_the_descriptor_goes_on_when_the_parent_closes_it)
{
	char *const argv[] = {"sh", "-c", "echo first; read x; echo \"got $x\"", NULL};
	posix_spawn_file_actions_t act;
	char line[64] = "";
	size_t got = 0;
	int status;
	pid_t child;

	listener = rsf_pair(fds);
	posix_spawn_file_actions_init(&act);
	posix_spawn_file_actions_adddup2(&act, fds[1], 0);
	posix_spawn_file_actions_adddup2(&act, fds[1], 1);
	cr_assert_eq(posix_spawnp(&child, "sh", &act, NULL, argv, environ), 0);
	posix_spawn_file_actions_destroy(&act);
	usleep(50000); /* it may write before the parent closes */
	cr_assert_eq(rclose(fds[1]), 0);
	cr_assert_eq(rwrite(fds[0], "this\n", 5), 5);
	while (got < sizeof(line) - 1) {
		ssize_t n = rread(fds[0], line + got, sizeof(line) - 1 - got);

		cr_assert_geq(n, 0, "%s", strerror(errno));
		if (n == 0)
			break;
		got += (size_t)n;
	}
	cr_assert_str_eq(line, "first\ngot this\n");
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(status, 0);
}

Test(rsocket_process, a_child_that_only_closes_changes_nothing)
{
	char c;
	int status;
	pid_t child;

	listener = rsf_pair(fds);
	child = fork();
	if (child == 0)
		_exit(rclose(fds[1]) == 0 && rclose(listener) == 0 ? 0 : 1);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(status, 0);
	cr_assert_eq(rwrite(fds[0], "x", 1), 1);
	cr_assert_eq(rread(fds[1], &c, 1), 1);
	cr_assert_eq(rwrite(fds[1], "y", 1), 1);
	cr_assert_eq(rread(fds[0], &c, 1), 1);
	cr_assert_eq(c, 'y');
}

/* A child of vfork(2) has descriptors of its own, and its parent's memory. */
Test(rsocket_process,
	what_a_child_of_vfork_does_to_descriptors_does_not_reach_the_table_of_its_parent)
{
	volatile int copy = -1;
	int status;
	pid_t child;
	char c;

	listener = rsf_pair(fds);
	child = vfork();
	if (child == 0) {
		copy = (int)syscall(SYS_dup, fds[0]);
		if (vb_rs_dup(fds[0], copy) != copy || rclose(fds[0]) != 0 || rclose(listener) != 0)
			_exit(1);
		_exit(fcntl(fds[0], F_GETFD) == -1 && fcntl(copy, F_GETFD) != -1 ? 0 : 2);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(status, 0);
	cr_assert_not(vb_rs_known(copy));
	cr_assert(vb_rs_known(listener));
	cr_assert_eq(rwrite(fds[0], "x", 1), 1);
	cr_assert_eq(rread(fds[1], &c, 1), 1);
}

Test(rsocket_process, the_next_socket_of_the_library_is_found)
{
	const int low = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int far;

	listener = rsf_pair(fds);
	far = rfcntl(fds[1], F_DUPFD, 3000);
	cr_assert_eq(vb_rs_next(-1), listener);
	cr_assert_eq(vb_rs_next(low), listener);
	cr_assert_eq(vb_rs_next(listener + 1), fds[0]);
	cr_assert_eq(vb_rs_next(fds[0] + 1), fds[1]);
	cr_assert_eq(vb_rs_next(fds[1] + 1), far);
	cr_assert_eq(vb_rs_next(far + 1), -1);
}

Test(rsocket_process, a_listener_belongs_to_the_parent)
{
	int status;
	pid_t child;

	listener = rsf_listener(AF_INET);
	child = fork();
	if (child == 0)
		_exit(raccept(listener, NULL, NULL) == -1 && errno == EOPNOTSUPP ? 0 : 1);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(status, 0);
}

/* ---- The end of a socket beside a fork(2) ---- */

static int go_on[2] = {-1, -1}; /* a pipe: the child's first fork handler waits for its end */
static int duplicate;           /* the library's, of fds[0] */

/* Runs before the handlers of the library, while the child has all descriptors of its parent. Then
 * closes the program's end of a pair, which is an event at the library's end. */
static void
child_waits(void)
{
	char c;

	if (go_on[0] < 0)
		return;
	close(go_on[1]);
	(void)!read(go_on[0], &c, 1);
	close(duplicate);
	close(fds[0]);
}

__attribute__((constructor(101))) static void
child_waits_register(void)
{
	pthread_atfork(NULL, NULL, child_waits);
}

/* Returns how many descriptors an epoll(7) instance watches with this tag; 0 for another file. */
static unsigned
watched_in(const char *fd, const void *tag)
{
	char path[300], line[256];
	unsigned long long data;
	unsigned n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%s", fd);
	f = fopen(path, "r");
	while (f != NULL && fgets(line, sizeof(line), f) != NULL)
		if (sscanf(line, "tfd: %*d events: %*x data: %llx", &data) == 1)
			n += data == (uintptr_t)tag;
	if (f != NULL)
		fclose(f);
	return n;
}

/* Returns how many descriptors the process watches with this tag. */
static unsigned
watched_as(const void *tag)
{
	DIR *dir = opendir("/proc/self/fdinfo");
	const struct dirent *e;
	unsigned n = 0;

	cr_assert_not_null(dir);
	while ((e = readdir(dir)) != NULL)
		n += watched_in(e->d_name, tag);
	closedir(dir);
	return n;
}

/* The child has a copy of the library's end, for which epoll(7) reports events until it closes. */
Test(rsocket_process, a_socket_that_ends_while_a_child_has_its_descriptors_is_not_watched)
{
	struct vb_rs *rs;
	int status;
	pid_t child;

	listener = rsf_pair(fds);
	rs = vb_rs_get(fds[0]);
	duplicate = rs->a;
	cr_assert_eq(pipe(go_on), 0);
	child = fork();
	if (child == 0)
		_exit(0);
	cr_assert_eq(watched_as(rs), 1, "the child may use the connection");
	vb_rs_put(rs);
	rs = rsf_destroyed(fds[0]);
	cr_assert_eq(watched_as(rs), 0);
	vb_rs_put(rs);
	close(go_on[1]);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(status, 0);
	/* The thread has received all events of the first socket before it destroys the second. */
	vb_rs_put(rsf_destroyed(fds[1]));
	close(go_on[0]);
	go_on[0] = -1;
}

/* ---- The end of the process ---- */

/* AddressSanitizer reports in the child when the listener refers to a connection that is gone. A
 * suite of its own: a device that its setup opened would be lost in the child. */
Test(rsocket_exit, exit_destroys_a_waiting_connection_with_its_listener)
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		rsf_reset();
		listener = rsf_listener(AF_INET);
		fds[0] = rsf_waiting();
		rsf_until((rsf_poll(listener) & POLLIN) != 0);
		rsf_end();
		exit(0);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(status, 0);
}
