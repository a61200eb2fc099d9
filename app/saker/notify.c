/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Implements sd_notify(3), its store of descriptors, and sd_listen_fds_with_names(3), without
 * libsystemd: sends datagrams to $NOTIFY_SOCKET, and reads $LISTEN_FDS.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "../../lib/base/log.h"
#include "../../lib/base/mem.h"
#include "../../lib/base/sock.h"
#include "saker.h"

#define LISTEN_FIRST 3   /* the first descriptor that the manager passes */
#define PASSED_MAX   512 /* FileDescriptorStoreMax of saker.service */
#define PASSED_LEN   256 /* of a passed descriptor */
#define STATE_LEN    (PASSED_LEN + 32)

/* Sends `state`, and a descriptor unless `pass` is -1. */
static void
notify_send(const char *state, int pass)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	socklen_t len;
	int fd, rc;

	if (path == NULL || (path[0] != '/' && path[0] != '@') ||
		strlen(path) >= sizeof(un.sun_path))
		return;
	strcpy(un.sun_path, path);
	len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
	/* An abstract name begins with a null byte, and its length ends it. */
	if (path[0] == '@')
		un.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	rc = connect(fd, (const struct sockaddr *)&un, len) < 0 ? -errno : 0;
	if (rc == 0)
		rc = sk_sock_send(fd, state, strlen(state), &pass, pass >= 0, 0);
	if (rc < 0)
		sk_log(SK_LOG_WARNING, "the service manager at %s cannot be notified: %s", path,
			strerror(-rc));
	close(fd);
}

void
notify_manager(const char *state)
{
	notify_send(state, -1);
}

/* ---- The store of descriptors ---- */

void
notify_keep(const char *name, int fd)
{
	char state[STATE_LEN];

	snprintf(state, sizeof(state), "FDSTORE=1\nFDNAME=%s", name);
	notify_send(state, fd);
}

void
notify_forget(const char *name)
{
	char state[STATE_LEN];

	snprintf(state, sizeof(state), "FDSTOREREMOVE=1\nFDNAME=%s", name);
	notify_send(state, -1);
}

/* Returns the number of descriptors that the manager has passed to this process. */
static unsigned
notify_passed(void)
{
	const char *pid = getenv("LISTEN_PID"), *n = getenv("LISTEN_FDS");

	if (pid == NULL || n == NULL || atol(pid) != (long)getpid() || atoi(n) < 0)
		return 0;
	return SK_MIN((unsigned)atoi(n), (unsigned)PASSED_MAX);
}

/* Stores the name of passed descriptor `i`. */
static void
notify_name(unsigned i, char name[PASSED_LEN])
{
	const char *names = getenv("LISTEN_FDNAMES");
	size_t len;

	for (name[0] = '\0'; names != NULL; names += len + 1) {
		len = strcspn(names, ":");
		if (i-- == 0) {
			snprintf(name, PASSED_LEN, "%.*s", (int)len, names);
			return;
		}
		if (names[len] == '\0')
			return;
	}
}

static bool taken[PASSED_MAX];

int
notify_kept(const char *name)
{
	char passed[PASSED_LEN];

	for (unsigned i = 0; i < notify_passed(); i++) {
		notify_name(i, passed);
		if (taken[i] || strcmp(passed, name) != 0)
			continue;
		taken[i] = true;
		fcntl(LISTEN_FIRST + (int)i, F_SETFD, FD_CLOEXEC);
		return LISTEN_FIRST + (int)i;
	}
	return -1;
}

void
notify_forget_rest(void)
{
	char name[PASSED_LEN];

	for (unsigned i = 0; i < notify_passed(); i++) {
		if (taken[i])
			continue;
		taken[i] = true;
		close(LISTEN_FIRST + (int)i);
		notify_name(i, name);
		notify_forget(name);
	}
}
