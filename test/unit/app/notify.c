/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the datagrams that the service manager receives (sd_notify(3)). */
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "../../../app/saker/saker.h"

/* Opens the socket of a service manager at `path` and returns it. A leading '@' stands for the null
 * byte of an abstract name. */
static int
manager(const char *path)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);

	strcpy(un.sun_path, path);
	if (path[0] == '@')
		un.sun_path[0] = '\0';
	cr_assert_eq(bind(fd, (const struct sockaddr *)&un,
			     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path))),
		0);
	setenv("NOTIFY_SOCKET", path, 1);
	return fd;
}

static void
hears(const char *path)
{
	char buf[64] = "";
	int fd = manager(path);

	notify_manager("READY=1");
	cr_assert_eq(recv(fd, buf, sizeof(buf), 0), 7);
	cr_assert_str_eq(buf, "READY=1");
	close(fd);
}

Test(app_notify, a_path_and_an_abstract_name_are_reached)
{
	char path[64];

	snprintf(path, sizeof(path), "/tmp/saker-notify-%d", (int)getpid());
	hears(path);
	unlink(path);
	snprintf(path, sizeof(path), "@saker-notify-%d", (int)getpid());
	hears(path);
}

Test(app_notify, no_notification_is_sent_without_a_listener)
{
	char path[64], buf[8];
	int fd;

	snprintf(path, sizeof(path), "@saker-notify-%d", (int)getpid());
	fd = manager(path);
	unsetenv("NOTIFY_SOCKET");
	notify_manager("READY=1");
	setenv("NOTIFY_SOCKET", "relative", 1);
	notify_manager("READY=1");
	cr_assert_eq(recv(fd, buf, sizeof(buf), 0), -1);
	close(fd);
}
