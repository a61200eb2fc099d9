/* SPDX-License-Identifier: BSD-3-Clause */
/* Unix sockets: when the file exists, what it replaces, and who may use it. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "../../../lib/base/listen.h"

#define ROUNDS 2000

Test(base_listen, mode_is_0660_and_a_live_socket_is_refused_and_a_stale_one_replaced)
{
	struct stat st;
	char err[256], path[64];
	int fd;

	snprintf(path, sizeof(path), "/tmp/saker-stale-%d.sock", getpid());
	fd = sk_listen(path, SOCK_SEQPACKET, "", 0660, err, sizeof(err));
	cr_assert_geq(fd, 0, "%s", err);
	cr_assert_eq(stat(path, &st), 0);
	cr_assert_eq(st.st_mode & 0777, 0660);
	cr_assert_eq(sk_listen(path, SOCK_SEQPACKET, "", 0660, err, sizeof(err)), -EADDRINUSE);
	cr_assert_not_null(strstr(err, "another process listens"), "%s", err);
	close(fd); /* a saker that dies leaves the file */
	fd = sk_listen(path, SOCK_SEQPACKET, "", 0660, err, sizeof(err));
	cr_assert_geq(fd, 0, "%s", err);
	close(fd);
	unlink(path);
	fd = open(path, O_CREAT | O_WRONLY, 0600);
	cr_assert_eq(sk_listen(path, SOCK_SEQPACKET, "", 0660, err, sizeof(err)), -EEXIST);
	close(fd);
	unlink(path);
}

Test(base_listen, the_file_has_the_group_and_the_mode_of_the_configuration)
{
	struct stat st;
	char err[256], path[64];
	mode_t umask_before = umask(0777);
	int fd;

	snprintf(path, sizeof(path), "/tmp/saker-group-%d.sock", getpid());
	fd = sk_listen(path, SOCK_SEQPACKET, "", 0606, err, sizeof(err));
	cr_assert_geq(fd, 0, "%s", err);
	cr_assert_eq(stat(path, &st), 0);
	cr_assert_eq(st.st_mode & 07777, 0606);
	cr_assert_eq(st.st_gid, getegid());
	close(fd);
	umask(umask_before);
	unlink(path);
}

Test(base_listen, the_group_is_a_name_or_a_number)
{
	struct stat st;
	char err[256], path[64];
	mode_t umask_before = umask(0);
	int fd;

	if (geteuid() != 0)
		cr_skip_test("only root gives a file to a group without being its member");
	snprintf(path, sizeof(path), "/tmp/saker-group-%d.sock", getpid());
	fd = sk_listen(path, SOCK_SEQPACKET, "daemon", 0640, err, sizeof(err));
	cr_assert_geq(fd, 0, "%s", err);
	cr_assert_eq(stat(path, &st), 0);
	cr_assert_eq(st.st_mode & 07777, 0640);
	cr_assert_eq(st.st_gid, 1, "the group daemon");
	close(fd);
	fd = sk_listen(path, SOCK_SEQPACKET, "4711", 0660, err, sizeof(err));
	cr_assert_geq(fd, 0, "%s", err);
	cr_assert_eq(stat(path, &st), 0);
	cr_assert_eq(st.st_gid, 4711);
	close(fd);
	umask(umask_before);
	unlink(path);
}

Test(base_listen, a_group_that_does_not_exist_is_refused_and_leaves_no_file)
{
	char err[256], path[64];

	snprintf(path, sizeof(path), "/tmp/saker-nogroup-%d.sock", getpid());
	cr_assert_eq(
		sk_listen(path, SOCK_SEQPACKET, "no-such-group", 0660, err, sizeof(err)), -EINVAL);
	cr_assert_str_eq(err, "the socket's group 'no-such-group' does not exist");
	cr_assert_eq(sk_listen(path, SOCK_SEQPACKET, "-1", 0660, err, sizeof(err)), -EINVAL);
	cr_assert_eq(
		sk_listen(path, SOCK_SEQPACKET, "4294967295", 0660, err, sizeof(err)), -EINVAL);
	cr_assert_lt(access(path, F_OK), 0);
}

/* ---- The moment when the file appears ---- */

static struct sockaddr_un place = {.sun_family = AF_UNIX};
static uint32_t stop, tries;

/* Connects again and again. Returns the number of times that the file existed, but nobody
 * listened. */
static void *
connects(void *arg)
{
	size_t refused = 0;

	while (__atomic_load_n(&stop, __ATOMIC_ACQUIRE) == 0) {
		int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);

		if (connect(fd, (struct sockaddr *)&place, sizeof(place)) < 0)
			refused += errno == ECONNREFUSED;
		close(fd);
		__atomic_fetch_add(&tries, 1, __ATOMIC_RELEASE);
	}
	return (void *)refused;
}

Test(base_listen, a_process_that_finds_the_file_can_connect, .timeout = 300)
{
	pthread_t thread;
	uint32_t before;
	char err[256];
	void *refused;

	snprintf(place.sun_path, sizeof(place.sun_path), "/tmp/saker-moment-%d.sock", getpid());
	cr_assert_eq(pthread_create(&thread, NULL, connects, NULL), 0);
	for (int i = 0; i < ROUNDS; i++) {
		int fd = sk_listen(place.sun_path, SOCK_SEQPACKET, "", 0660, err, sizeof(err));

		cr_assert_geq(fd, 0, "%s", err);
		unlink(place.sun_path);
		/* A connect that found the file may still be under way. */
		before = __atomic_load_n(&tries, __ATOMIC_ACQUIRE);
		while (__atomic_load_n(&tries, __ATOMIC_ACQUIRE) == before)
			sched_yield();
		close(fd);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	pthread_join(thread, &refused);
	cr_assert_eq((size_t)refused, 0, "%zu times", (size_t)refused);
}

Test(base_listen, a_path_that_cannot_be_is_refused_by_name)
{
	char err[256], path[200];

	memset(path, 'a', sizeof(path));
	path[sizeof(path) - 1] = '\0';
	cr_assert_eq(sk_listen(path, SOCK_STREAM, "", 0660, err, sizeof(err)), -ENAMETOOLONG);
	cr_assert_not_null(strstr(err, "is too long"), "%s", err);
	cr_assert_eq(
		sk_listen("/no-such-folder/s", SOCK_STREAM, "", 0660, err, sizeof(err)), -ENOENT);
	cr_assert_not_null(strstr(err, "at /no-such-folder/s: "), "%s", err);
}

Test(base_listen, only_a_socket_without_a_listener_is_cleared)
{
	char err[256], path[64];
	int fd;

	snprintf(path, sizeof(path), "/tmp/saker-clear-%d.sock", getpid());
	cr_assert_eq(sk_listen_clear(path, SOCK_STREAM, err, sizeof(err)), 0);
	fd = sk_listen(path, SOCK_STREAM, "", 0600, err, sizeof(err));
	cr_assert_geq(fd, 0, "%s", err);
	cr_assert_eq(sk_listen_clear(path, SOCK_STREAM, err, sizeof(err)), -EADDRINUSE);
	cr_assert_not_null(strstr(err, "another process listens at /tmp"), "%s", err);
	close(fd);
	cr_assert_eq(access(path, F_OK), 0);
	cr_assert_eq(sk_listen_clear(path, SOCK_STREAM, err, sizeof(err)), 0, "%s", err);
	cr_assert_neq(access(path, F_OK), 0);
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	cr_assert_eq(sk_listen_clear(path, SOCK_STREAM, err, sizeof(err)), -EEXIST);
	cr_assert_not_null(strstr(err, "is not a socket"), "%s", err);
	close(fd);
	unlink(path);
}
