/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of the C library that socket programs call: this program contains those of
 * drivers/verbs/sockets. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "rsocket_fake.h"

#include "../../../drivers/verbs/sockets/sockets_priv.h"

TestSuite(sockets, .init = rsf_reset, .fini = rsf_end, .timeout = 60);

#define FREE 200 /* a number that no descriptor has */

static int fds[2]; /* [0] has connected, [1] was accepted */
static int listener;

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

	listener = rsf_pair(fds);
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

	listener = rsf_pair(fds);
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
	listener = rsf_pair(fds);
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

	listener = rsf_pair(fds);
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

	listener = rsf_pair(fds);
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

/* ---- Further functions that carry bytes ---- */

int __dprintf_chk(int fd, int flag, const char *format, ...);
int __vdprintf_chk(int fd, int flag, const char *format, va_list ap);

/* Checks that the peer has received this text and no more. */
static void
has(int fd, const char *text)
{
	char got[256] = "";
	size_t len = strlen(text);

	cr_assert_eq(recv(fd, got, len, MSG_WAITALL), (ssize_t)len);
	cr_assert_str_eq(got, text);
	cr_assert_eq(recv(fd, got, 1, MSG_DONTWAIT), -1);
	cr_assert_eq(errno, EAGAIN);
}

static int
formats(bool fortified, int fd, const char *format, ...)
{
	va_list ap;
	int n;

	va_start(ap, format);
	n = fortified ? __vdprintf_chk(fd, 1, format, ap) : vdprintf(fd, format, ap);
	va_end(ap);
	return n;
}

Test(sockets, formatted_output_goes_to_the_peer_dprintf_3)
{
	listener = rsf_pair(fds);
	cr_assert_eq(dprintf(fds[0], "%s %d\n", "GET", 1), 6);
	has(fds[1], "GET 1\n");
	cr_assert_eq(__dprintf_chk(fds[0], 1, "%05d", 42), 5);
	has(fds[1], "00042");
	cr_assert_eq(formats(false, fds[1], "%c%s", 'a', "bc"), 3);
	has(fds[0], "abc");
	cr_assert_eq(formats(true, fds[1], "%x", 0xbeef), 4);
	has(fds[0], "beef");
}

Test(sockets, formatted_output_to_other_descriptors_is_the_c_library_s)
{
	char got[8] = "";
	int p[2];

	listener = rsf_pair(fds);
	cr_assert_eq(pipe(p), 0);
	cr_assert_eq(dprintf(p[1], "%d", 12), 2);
	cr_assert_eq(__dprintf_chk(p[1], 1, "%d", 34), 2);
	cr_assert_eq(read(p[0], got, 4), 4);
	cr_assert_str_eq(got, "1234");
}

Test(sockets, formatted_output_is_written_whole)
{
	char *text = malloc(100001), *got = malloc(100000);

	listener = rsf_pair(fds);
	memset(text, 'f', 100000);
	text[100000] = '\0';
	cr_assert_eq(dprintf(fds[0], "%s", text), 100000);
	cr_assert_eq(recv(fds[1], got, 100000, MSG_WAITALL), 100000);
	cr_assert_arr_eq(got, text, 100000);
	free(text);
	free(got);
}

Test(sockets, messages_are_sent_in_order_sendmmsg_2)
{
	struct iovec v[4] = {{"one ", 4}, {"two", 3}, {" ", 1}, {"three", 5}};
	struct mmsghdr m[3] = {{.msg_hdr = {.msg_iov = v, .msg_iovlen = 1}},
		{.msg_hdr = {.msg_iov = v + 1, .msg_iovlen = 2}},
		{.msg_hdr = {.msg_iov = v + 3, .msg_iovlen = 1}}};

	listener = rsf_pair(fds);
	cr_assert_eq(sendmmsg(fds[0], m, 0, 0), 0);
	cr_assert_eq(sendmmsg(fds[0], m, 3, 0), 3);
	cr_assert_eq(m[0].msg_len, 4);
	cr_assert_eq(m[1].msg_len, 4);
	cr_assert_eq(m[2].msg_len, 5);
	has(fds[1], "one two three");
}

Test(sockets, a_message_that_is_sent_in_part_is_the_last_one_sendmmsg_2)
{
	static uint8_t bytes[150000], back[8 * sizeof(bytes)];
	struct iovec v = {bytes, sizeof(bytes)};
	struct mmsghdr m[8];
	size_t sent;
	int n;

	for (unsigned i = 0; i < 8; i++)
		m[i] = (struct mmsghdr){.msg_hdr = {.msg_iov = &v, .msg_iovlen = 1}};
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 2654435761u >> 11);
	listener = rsf_pair(fds);
	n = sendmmsg(fds[0], m, 8, MSG_DONTWAIT);
	cr_assert(n > 0 && n < 8, "%d", n);
	cr_assert_lt(m[n - 1].msg_len, sizeof(bytes));
	sent = (size_t)(n - 1) * sizeof(bytes) + m[n - 1].msg_len;
	cr_assert_eq(recv(fds[1], back, sent, MSG_WAITALL), (ssize_t)sent);
	for (size_t i = 0; i < sent; i++)
		cr_assert_eq(back[i], bytes[i % sizeof(bytes)]);
}

Test(sockets, a_stream_without_room_takes_no_message_sendmmsg_2)
{
	static uint8_t bytes[100000];
	struct iovec v = {bytes, sizeof(bytes)};
	struct mmsghdr m = {.msg_hdr = {.msg_iov = &v, .msg_iovlen = 1}};

	listener = rsf_pair(fds);
	while (sendmmsg(fds[0], &m, 1, MSG_DONTWAIT) == 1)
		;
	cr_assert_eq(errno, EAGAIN);
}

static volatile sig_atomic_t pipes;

static void
on_pipe(int sig)
{
	pipes++;
}

Test(sockets, messages_to_a_stream_that_has_ended_raise_sigpipe)
{
	struct iovec v = {"x", 1};
	struct mmsghdr m = {.msg_hdr = {.msg_iov = &v, .msg_iovlen = 1}};

	listener = rsf_pair(fds);
	signal(SIGPIPE, on_pipe);
	cr_assert_eq(shutdown(fds[0], SHUT_WR), 0);
	cr_assert_eq(sendmmsg(fds[0], &m, 1, MSG_NOSIGNAL), -1);
	cr_assert_eq(errno, EPIPE);
	cr_assert_eq(pipes, 0);
	cr_assert_eq(sendmmsg(fds[0], &m, 1, 0), -1);
	cr_assert_eq(dprintf(fds[0], "x"), -1);
	cr_assert_eq(errno, EPIPE);
	cr_assert_eq(pipes, 2);
}

/* Two messages of 3 and 4 bytes at `to`, and one more. */
static void
messages_into(struct mmsghdr m[3], struct iovec v[3], char *to)
{
	memset(to, '.', 9);
	v[0] = (struct iovec){to, 3};
	v[1] = (struct iovec){to + 3, 4};
	v[2] = (struct iovec){to + 7, 2};
	for (int i = 0; i < 3; i++)
		m[i] = (struct mmsghdr){.msg_hdr = {.msg_iov = &v[i], .msg_iovlen = 1}};
}

Test(sockets, messages_are_received_until_one_would_wait_recvmmsg_2)
{
	struct timespec none = {0}, bad = {.tv_nsec = -1}, minute = {.tv_sec = 60};
	struct mmsghdr m[3];
	struct iovec v[3];
	char got[9];

	listener = rsf_pair(fds);
	messages_into(m, v, got);
	cr_assert_eq(recvmmsg(fds[1], m, 3, MSG_DONTWAIT, NULL), -1);
	cr_assert_eq(errno, EAGAIN);
	cr_assert_eq(recvmmsg(fds[1], m, 3, 0, &bad), -1);
	cr_assert_eq(errno, EINVAL);
	cr_assert_eq(write(fds[0], "abcdefg", 7), 7);
	cr_assert_eq(recvmmsg(fds[1], m, 3, MSG_WAITFORONE, &minute), 2);
	cr_assert_lt(minute.tv_sec, 60);
	cr_assert_eq(m[0].msg_len, 3);
	cr_assert_eq(m[1].msg_len, 4);
	cr_assert_arr_eq(got, "abcdefg..", 9);
	messages_into(m, v, got);
	cr_assert_eq(write(fds[0], "hijklmn", 7), 7);
	cr_assert_eq(recvmmsg(fds[1], m, 3, 0, &none), 1, "the time has passed behind the first");
	cr_assert_arr_eq(got, "hij......", 9);
	cr_assert_eq(recvmmsg(fds[1], m, 1, 0, NULL), 1);
	cr_assert_arr_eq(got, "klm......", 9);
	has(fds[1], "n");
}

Test(sockets, an_error_behind_the_first_message_is_that_of_the_next_call_recvmmsg_2)
{
	struct mmsghdr m[3];
	struct iovec v[3];
	char got[9];

	listener = rsf_pair(fds);
	messages_into(m, v, got);
	cr_assert_eq(write(fds[0], "abc", 3), 3);
	fake_qp_event(rsf_qp(1), SAKER_EV_DISCONNECTED, 0);
	rsf_until((rsf_poll(fds[1]) & POLLHUP) != 0);
	cr_assert_eq(recvmmsg(fds[1], m, 3, 0, NULL), 1);
	cr_assert_arr_eq(got, "abc......", 9);
	cr_assert_eq(recvmmsg(fds[1], m, 3, 0, NULL), -1);
	cr_assert_eq(errno, ECONNRESET);
	cr_assert_eq(recvmmsg(fds[1], m, 1, 0, NULL), 1);
	cr_assert_eq(m[0].msg_len, 0);
}

Test(sockets, vectors_with_flags_are_those_of_the_stream_preadv2_2)
{
	static struct iovec many[IOV_MAX + 1];
	char a[4] = "", b[4] = "";
	struct iovec out[2] = {{"abc", 3}, {"def", 3}}, in[2] = {{a, 3}, {b, 3}};

	listener = rsf_pair(fds);
	cr_assert_eq(preadv2(fds[1], in, 2, -1, RWF_NOWAIT), -1);
	cr_assert_eq(errno, EAGAIN);
	cr_assert_eq(pwritev2(fds[0], out, 2, -1, 0), 6);
	cr_assert_eq(preadv2(fds[1], in, 2, -1, RWF_NOWAIT), 6);
	cr_assert_str_eq(a, "abc");
	cr_assert_str_eq(b, "def");
	cr_assert_eq(pwritev2(fds[0], out, 2, 0, 0), -1);
	cr_assert_eq(errno, ESPIPE);
	cr_assert_eq(preadv2(fds[1], in, 2, 0, 0), -1);
	cr_assert_eq(errno, ESPIPE);
	cr_assert_eq(pwritev2(fds[0], out, 2, -1, RWF_APPEND), -1);
	cr_assert_eq(errno, EOPNOTSUPP);
	cr_assert_eq(preadv2(fds[1], many, IOV_MAX + 1, -1, 0), -1);
	cr_assert_eq(errno, EINVAL);
}

Test(sockets, a_pipe_and_a_stream_exchange_no_bytes_within_the_kernel_splice_2)
{
	struct iovec v = {"mem", 3};
	char got[8] = "";
	int p[2], q[2];

	listener = rsf_pair(fds);
	cr_assert_eq(pipe(p), 0);
	cr_assert_eq(pipe(q), 0);
	cr_assert_eq(write(p[1], "pipe", 4), 4);
	cr_assert_eq(write(fds[0], "stream", 6), 6);
	cr_assert_eq(splice(p[0], NULL, fds[0], NULL, 4, 0), -1);
	cr_assert_eq(errno, EINVAL);
	cr_assert_eq(splice(fds[1], NULL, p[1], NULL, 6, SPLICE_F_NONBLOCK), -1);
	cr_assert_eq(errno, EINVAL);
	cr_assert_eq(tee(p[0], fds[0], 4, 0), -1);
	cr_assert_eq(vmsplice(fds[0], &v, 1, 0), -1);
	cr_assert_eq(sendfile(p[1], fds[1], NULL, 6), -1);
	cr_assert_eq(errno, EINVAL);
	has(fds[1], "stream");
	cr_assert_eq(splice(p[0], NULL, q[1], NULL, 4, 0), 4);
	cr_assert_eq(read(q[0], got, sizeof(got)), 4);
	cr_assert_str_eq(got, "pipe");
}

Test(sockets, sendfile_sends_a_part_of_a_file_sendfile_2)
{
	FILE *f = tmpfile();
	off_t at = 2;

	listener = rsf_pair(fds);
	cr_assert_geq(fputs("0123456789", f), 0);
	cr_assert_eq(fflush(f), 0);
	cr_assert_eq(sendfile(fds[0], fileno(f), &at, 3), 3);
	cr_assert_eq(at, 5);
	cr_assert_eq(lseek(fileno(f), 7, SEEK_SET), 7);
	cr_assert_eq(sendfile64(fds[0], fileno(f), NULL, 100), 3);
	cr_assert_eq(lseek(fileno(f), 0, SEEK_CUR), 10);
	has(fds[1], "234789");
	fclose(f);
}

Test(sockets, a_stream_of_the_c_library_carries_the_bytes_fdopen_3)
{
	char line[16] = "";
	FILE *f;

	listener = rsf_pair(fds);
	f = fdopen(fds[0], "r+");
	cr_assert_not_null(f);
	cr_assert_eq(fputs("hello\n", f), 1);
	cr_assert_eq(fflush(f), 0);
	has(fds[1], "hello\n");
	cr_assert_eq(write(fds[1], "back\n", 5), 5);
	cr_assert_not_null(fgets(line, sizeof(line), f));
	cr_assert_str_eq(line, "back\n");
	cr_assert_eq(fclose(f), 0);
	cr_assert_eq(read(fds[1], line, 1), 0);
}

/* A server serves a connection by its standard streams. */
Test(sockets, a_socket_in_the_place_of_a_standard_stream_carries_its_bytes_dup2_2)
{
	int old = dup(STDOUT_FILENO);

	listener = rsf_pair(fds);
	cr_assert_eq(dup2(fds[0], STDOUT_FILENO), STDOUT_FILENO);
	printf("served\n");
	fflush(stdout);
	cr_assert_eq(dup2(old, STDOUT_FILENO), STDOUT_FILENO);
	has(fds[1], "served\n");
	carries(fds[0], fds[1]);
	carries(fds[1], fds[0]);
	cr_assert_eq(dup2(listener, STDOUT_FILENO), STDOUT_FILENO, "it has no connection");
	cr_assert_eq(dup2(old, STDOUT_FILENO), STDOUT_FILENO);
}

Test(sockets, a_child_serves_a_connection_by_its_standard_streams_dup2_2)
{
	char line[16] = "";
	pid_t child;

	listener = rsf_pair(fds);
	child = fork();
	if (child == 0) {
		dup2(fds[1], STDIN_FILENO);
		dup2(fds[1], STDOUT_FILENO);
		if (fgets(line, sizeof(line), stdin) == NULL)
			_exit(1);
		printf("got %s", line);
		_exit(fflush(stdout) == 0 ? 0 : 2);
	}
	cr_assert_eq(write(fds[0], "this\n", 5), 5);
	has(fds[0], "got this\n");
	ends_well(child);
}
