/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections to a Unix socket. */
#ifndef TEST_DIAL_H
#define TEST_DIAL_H

#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "need.h"

/* Connects to the socket at `path`, whose type is SOCK_STREAM or SOCK_SEQPACKET. Returns the
 * descriptor. */
static inline int
dial(const char *path, int type)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	need(fd >= 0);
	snprintf(un.sun_path, sizeof(un.sun_path), "%s", path);
	need(connect(fd, (struct sockaddr *)&un, sizeof(un)) == 0);
	return fd;
}

#endif
