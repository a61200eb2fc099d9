/* SPDX-License-Identifier: BSD-3-Clause */
/* The socket at which programs get their vectors; lib/shm/shm_irqd.h has the protocol. */
#include <errno.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "../../lib/base/descriptors.h"
#include "../../lib/base/sock.h"
#include "../../lib/base/listen.h"
#include "../../lib/shm/shm_irqd.h"
#include "irqd.h"

#define MODE  0660
#define GROUP "rdma" /* may use the device, too: 70-saker-guest.rules */
#define CONNS (2 * IRQD_VECTORS)
#define NONE  UINT32_MAX

#define FAIL(rc, ...) (snprintf(err, errlen, __VA_ARGS__), rc)

static struct {
	const struct irqd_device *device;
	char at[sizeof(((struct sockaddr_un *)0)->sun_path)];
	/* poll()'s: the signals, the socket, the connections. */
	struct pollfd fds[2 + CONNS];
	uint32_t vector[CONNS]; /* of each connection, or NONE */
	struct sk_hurry hurry;
	struct sk_closer *closer; /* of descriptors that programs have sent */
} state;

/* Closes a connection, whose unread messages may have descriptors. */
static void
irqd_close(int fd)
{
	sk_hurry_begin(&state.hurry);
	close(fd);
	sk_hurry_end(&state.hurry);
}

static void
irqd_drop(unsigned i)
{
	if (state.vector[i] != NONE)
		irqd_vector(state.device, state.vector[i], -1);
	state.vector[i] = NONE;
	irqd_close(state.fds[2 + i].fd);
	state.fds[2 + i].fd = -1;
}

/* Accepts a connection, or closes it when there are too many. */
static void
irqd_take(void)
{
	int fd = accept4(state.fds[1].fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	for (unsigned i = 0; i < CONNS && fd >= 0; i++)
		if (state.fds[2 + i].fd < 0) {
			state.fds[2 + i] = (struct pollfd){.fd = fd, .events = POLLIN};
			return;
		}
	if (fd >= 0)
		irqd_close(fd);
}

/* Receives a vector's number, and stores the eventfd in *event, or -1. Returns false when the
 * message is anything else. */
static bool
irqd_receive(int fd, uint32_t *vector, int *event)
{
	unsigned nfds;
	ssize_t n;

	sk_hurry_begin(&state.hurry);
	n = sk_sock_take(fd, vector, sizeof(*vector), event, 1, &nfds, MSG_DONTWAIT);
	sk_hurry_end(&state.hurry);
	if (nfds == 0)
		*event = -1;
	return n == (ssize_t)sizeof(*vector) && nfds == 1;
}

/* Gives a vector to connection `i`. The last one that asks has it: the program before it has lost
 * the slot, and its end of the connection may not have been seen yet. */
static int32_t
irqd_give(unsigned i, uint32_t vector, int event)
{
	int rc;

	if (vector >= state.device->nvectors || state.vector[i] != NONE)
		return -EINVAL;
	rc = irqd_vector(state.device, vector, event);
	if (rc < 0)
		return rc;
	for (unsigned k = 0; k < CONNS; k++)
		if (state.vector[k] == vector)
			state.vector[k] = NONE;
	state.vector[i] = vector;
	return 0;
}

static void
irqd_serve_one(unsigned i)
{
	int fd = state.fds[2 + i].fd, event = -1;
	uint32_t vector;
	int32_t status = -1;
	bool good = !sk_closer_is_full(state.closer) && irqd_receive(fd, &vector, &event);

	if (good) {
		status = irqd_give(i, vector, event);
		good = send(fd, &status, sizeof(status), MSG_NOSIGNAL | MSG_DONTWAIT) ==
		       (ssize_t)sizeof(status);
	}
	/* Only an eventfd has a vector; the kernel holds it then. */
	if (event >= 0 && status == 0)
		close(event);
	else if (event >= 0)
		sk_closer_put(&state.closer, event);
	if (!good)
		irqd_drop(i);
}

int
irqd_serve(const struct irqd_device *d, char *err, size_t errlen)
{
	sigset_t ends;

	state.device = d;
	sk_hurry_init(&state.hurry);
	snprintf(state.at, sizeof(state.at), SHM_IRQD_SOCKET, IRQD_ADDRESS, d->address);
	for (unsigned i = 0; i < CONNS; i++) {
		state.fds[2 + i].fd = -1;
		state.vector[i] = NONE;
	}
	if (mkdir(SHM_IRQD_FOLDER, 0755) < 0 && errno != EEXIST)
		return FAIL(-errno, SHM_IRQD_FOLDER " cannot be created: %s", strerror(errno));
	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	state.fds[0] = (struct pollfd){
		.fd = signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK), .events = POLLIN};
	state.fds[1].events = POLLIN;
	state.fds[1].fd = sk_listen(
		state.at, SOCK_SEQPACKET, getgrnam(GROUP) != NULL ? GROUP : "", MODE, err, errlen);
	if (state.fds[1].fd < 0)
		return state.fds[1].fd;
	printf("%s: %u vectors at %s\n", d->address, d->nvectors, state.at);
	fflush(stdout);
	while (state.fds[0].revents == 0) {
		if (poll(state.fds, 2 + CONNS, -1) < 0)
			continue;
		if (state.fds[1].revents != 0)
			irqd_take();
		for (unsigned i = 0; i < CONNS; i++)
			if (state.fds[2 + i].fd >= 0 && state.fds[2 + i].revents != 0)
				irqd_serve_one(i);
	}
	unlink(state.at);
	return 0;
}
