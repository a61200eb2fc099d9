/* SPDX-License-Identifier: BSD-3-Clause */
/* Unix sockets: connecting, and messages with descriptors. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../../lib/base/listen.h"
#include "../../../lib/base/sock.h"

static int pair[2], zero[SK_SOCK_FDS];

static unsigned
open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	cr_assert_not_null(d);
	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n;
}

static void
setup(void)
{
	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	for (unsigned i = 0; i < SK_SOCK_FDS; i++)
		zero[i] = open("/dev/zero", O_RDONLY);
}

TestSuite(base_sock, .init = setup);

Test(base_sock, a_message_brings_its_bytes_and_descriptors)
{
	unsigned before = open_fds(), n;
	char text[8], byte = 1;
	int fds[SK_SOCK_FDS];

	for (unsigned sent = 0; sent <= SK_SOCK_FDS; sent++) {
		cr_assert_eq(sk_sock_send(pair[0], "word", 5, zero, sent, 0), 0);
		cr_assert_eq(sk_sock_recv(pair[1], text, sizeof(text), fds, SK_SOCK_FDS, &n, 0), 5);
		cr_assert_str_eq(text, "word");
		cr_assert_eq(n, sent);
		for (unsigned i = 0; i < n; i++) {
			cr_assert(fcntl(fds[i], F_GETFD) & FD_CLOEXEC);
			cr_assert_eq(read(fds[i], &byte, 1), 1);
			cr_assert_eq(byte, 0);
			close(fds[i]);
		}
	}
	cr_assert_eq(open_fds(), before);
	cr_assert_eq(sk_sock_send(pair[0], "word", 5, zero, SK_SOCK_FDS + 1, 0), -EINVAL);
}

Test(base_sock, what_exceeds_the_room_is_refused_and_closed)
{
	unsigned before = open_fds(), n;
	char text[8];
	int fds[2];

	cr_assert_eq(sk_sock_send(pair[0], "word", 5, zero, 3, 0), 0);
	cr_assert_eq(sk_sock_recv(pair[1], text, sizeof(text), fds, 2, &n, 0), -EPROTO);
	cr_assert_eq(n, 0);
	cr_assert_eq(sk_sock_send(pair[0], "longer text", 12, zero, 2, 0), 0);
	cr_assert_eq(sk_sock_recv(pair[1], text, sizeof(text), fds, 2, &n, 0), -EPROTO);
	cr_assert_eq(n, 0);
	cr_assert_eq(sk_sock_send(pair[0], "word", 5, zero, 1, 0), 0);
	cr_assert_eq(sk_sock_recv(pair[1], text, sizeof(text), NULL, 0, &n, 0), -EPROTO);
	cr_assert_eq(open_fds(), before);
}

/* The kernel drops the descriptors for which the buffer has no room, and reports MSG_CTRUNC. */
Test(base_sock, more_descriptors_than_a_message_may_have_are_refused)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE((SK_SOCK_FDS + 4) * sizeof(int))];
	} control = {.align = {.cmsg_level = SOL_SOCKET,
			     .cmsg_type = SCM_RIGHTS,
			     .cmsg_len = CMSG_LEN((SK_SOCK_FDS + 4) * sizeof(int))}};
	struct iovec iov = {"word", 5};
	struct msghdr h = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.room,
		.msg_controllen = sizeof(control.room)};
	unsigned before = open_fds(), n;
	int fds[SK_SOCK_FDS];
	char text[8];

	for (unsigned i = 0; i < SK_SOCK_FDS + 4; i++)
		memcpy(CMSG_DATA(&control.align) + i * sizeof(int), &zero[0], sizeof(int));
	cr_assert_eq(sendmsg(pair[0], &h, 0), 5);
	cr_assert_eq(sk_sock_recv(pair[1], text, sizeof(text), fds, SK_SOCK_FDS, &n, 0), -EPROTO);
	cr_assert_eq(n, 0);
	cr_assert_eq(open_fds(), before);
}

Test(base_sock, a_socket_without_a_message_and_a_closed_one)
{
	char text[8];
	unsigned n;
	int fd;

	cr_assert_eq(sk_sock_recv(pair[1], text, sizeof(text), &fd, 1, &n, MSG_DONTWAIT), -EAGAIN);
	close(pair[0]);
	cr_assert_eq(sk_sock_recv(pair[1], text, sizeof(text), &fd, 1, &n, 0), 0);
	cr_assert_eq(sk_sock_send(pair[1], "word", 5, NULL, 0, 0), -EPIPE);
}

static void
on_signal(int number)
{
}

static void *
disturb(void *arg)
{
	for (unsigned i = 0; i < 20; i++) {
		usleep(1000);
		pthread_kill(*(pthread_t *)arg, SIGUSR1);
	}
	cr_assert_eq(sk_sock_send(pair[0], "word", 5, NULL, 0, 0), 0);
	return NULL;
}

Test(base_sock, signals_do_not_end_a_receive)
{
	const struct sigaction sa = {.sa_handler = on_signal};
	pthread_t self = pthread_self(), other;
	char text[8];
	unsigned n;
	int fd;

	sigaction(SIGUSR1, &sa, NULL);
	cr_assert_eq(pthread_create(&other, NULL, disturb, &self), 0);
	cr_assert_eq(sk_sock_recv(pair[1], text, sizeof(text), &fd, 1, &n, 0), 5);
	pthread_join(other, NULL);
}

Test(base_sock, connecting)
{
	char err[256], path[64], text[8], lengthy[200];
	int listening, fd;
	unsigned n;

	memset(lengthy, 'x', sizeof(lengthy) - 1);
	lengthy[sizeof(lengthy) - 1] = '\0';
	cr_assert_eq(sk_sock_connect(lengthy, SOCK_STREAM, 0), -ENAMETOOLONG);
	snprintf(path, sizeof(path), "/tmp/saker-sock-%d.sock", getpid());
	cr_assert_eq(sk_sock_connect(path, SOCK_SEQPACKET, 0), -ENOENT);
	listening = sk_listen(path, SOCK_SEQPACKET, "", 0660, err, sizeof(err));
	cr_assert_geq(listening, 0, "%s", err);
	cr_assert_eq(sk_sock_connect(path, SOCK_STREAM, 0), -EPROTOTYPE);
	fd = sk_sock_connect(path, SOCK_SEQPACKET, 1);
	cr_assert_geq(fd, 0);
	cr_assert(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	cr_assert_eq(sk_sock_recv(fd, text, sizeof(text), NULL, 0, &n, 0), -EAGAIN, "the limit");
	close(fd);
	close(listening);
	cr_assert_eq(sk_sock_connect(path, SOCK_SEQPACKET, 0), -ECONNREFUSED);
	unlink(path);
}
