/* SPDX-License-Identifier: BSD-3-Clause */
/* A descriptor whose last close takes long. */
#ifndef TEST_SUPPORT_LINGERING_H
#define TEST_SUPPORT_LINGERING_H

#include <netinet/in.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "../../lib/base/descriptors.h"
#include "../../lib/base/sock.h"

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

/* Sends a byte with such a socket, of which only the message has a copy. Returns 0 or -errno. */
static inline int
send_lingering(int to)
{
	int fd = lingering(), rc = sk_sock_send(to, "x", 1, &fd, 1, MSG_DONTWAIT);
	struct sk_hurry h;

	sk_hurry_init(&h);
	sk_hurry_begin(&h);
	close(fd);
	sk_hurry_end(&h);
	sk_hurry_fini(&h);
	return rc;
}

/* Returns whether so much time has passed since `from` (CLOCK_MONOTONIC) that a thread has waited
 * for such a socket. */
static inline bool
has_lingered(const struct timespec *from)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec - from->tv_sec >= LINGER_S / 2;
}

#endif
