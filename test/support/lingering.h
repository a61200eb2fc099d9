/* SPDX-License-Identifier: BSD-3-Clause */
/* A descriptor whose last close takes long. */
#ifndef TEST_SUPPORT_LINGERING_H
#define TEST_SUPPORT_LINGERING_H

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#define LINGER_S 30

/* Returns a TCP socket with data that its peer never reads, and for which the kernel waits LINGER_S
 * seconds when the socket is closed. */
static inline int
lingering(void)
{
	int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const struct linger linger = {.l_onoff = 1, .l_linger = LINGER_S};
	static const char bytes[65536];
	socklen_t len = sizeof(at);

	if (bind(server, (struct sockaddr *)&at, len) < 0 || listen(server, 1) < 0 ||
		getsockname(server, (struct sockaddr *)&at, &len) < 0 ||
		connect(fd, (struct sockaddr *)&at, len) < 0 || accept(server, NULL, NULL) < 0)
		return -1;
	close(server);
	while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	return fd;
}

#endif
