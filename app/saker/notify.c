/* SPDX-License-Identifier: BSD-3-Clause */
/* Implements sd_notify(3) without libsystemd: sends a datagram to $NOTIFY_SOCKET. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "../../lib/base/log.h"
#include "saker.h"

void
notify_manager(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	socklen_t len;
	int fd;

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
	if (sendto(fd, state, strlen(state), MSG_NOSIGNAL, (const struct sockaddr *)&un, len) < 0)
		sk_log(SK_LOG_WARNING, "the service manager at %s cannot be notified: %s", path,
			strerror(errno));
	close(fd);
}
