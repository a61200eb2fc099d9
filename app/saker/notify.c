/* SPDX-License-Identifier: BSD-3-Clause */
/* sd_notify(3) by hand: a datagram to $NOTIFY_SOCKET. */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "../../lib/base/log.h"
#include "saker.h"

void
notify(const char *state)
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
	if (path[0] ==
		'@') /* an abstract name begins with a nought and has no end but its length */
		un.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	if (sendto(fd, state, strlen(state), MSG_NOSIGNAL, (const struct sockaddr *)&un, len) < 0)
		sk_log(SK_LOG_WARNING, "the service manager at %s does not listen", path);
	close(fd);
}
