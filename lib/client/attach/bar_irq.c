/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The interrupts of an ivshmem-doorbell device. One process of the machine, saker-irqd, owns the
 * device through vfio-pci, which has one owner only. A program gives it an eventfd, and the kernel
 * signals that for each interrupt of the slot's vector for as long as the connection stays open.
 * Without a saker-irqd, the program polls.
 */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "../../shm/shm_irqd.h"
#include "bar_priv.h"

#define PATIENCE_S 2 /* for the answer */

bool
cl_bar_irq_path(const char *path, char where[CL_PATH])
{
	const char *file = strrchr(path, '/'), *device = file;

	if (file == NULL || strcmp(file, "/resource2") != 0)
		return false;
	while (device > path && device[-1] != '/')
		device--;
	return snprintf(where, CL_PATH, SHM_IRQD_SOCKET, (int)(file - device), device) < CL_PATH;
}

static bool
irq_send(int fd, uint32_t vector, int event)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(event))];
	} control = {0};
	struct iovec iov = {&vector, sizeof(vector)};
	struct msghdr m = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.room,
		.msg_controllen = sizeof(control.room)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(event));
	memcpy(CMSG_DATA(c), &event, sizeof(event));
	return sendmsg(fd, &m, MSG_NOSIGNAL) == (ssize_t)sizeof(vector);
}

void
cl_bar_irq(struct cl_bar *b, const char *where)
{
	const struct timeval patience = {.tv_sec = PATIENCE_S};
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	int fd, event;
	int32_t status;

	if (strlen(where) >= sizeof(un.sun_path))
		return;
	strcpy(un.sun_path, where);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (fd >= 0 && event >= 0 &&
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) == 0 &&
		setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) == 0 &&
		connect(fd, (struct sockaddr *)&un, sizeof(un)) == 0 &&
		irq_send(fd, b->slot, event) &&
		recv(fd, &status, sizeof(status), 0) == (ssize_t)sizeof(status) && status == 0) {
		b->irqd = fd;
		b->s->wait.wake = event;
		return;
	}
	if (fd >= 0)
		close(fd);
	if (event >= 0)
		close(event);
}

bool
cl_bar_irq_nap(struct cl_bar *b, int ms)
{
	struct pollfd p = {.fd = b->irqd, .events = POLLIN};

	if (!__atomic_load_n(&b->s->wait.rung, __ATOMIC_RELAXED))
		return false;
	/* The connection carries nothing more, so its end is what may come. */
	if (poll(&p, 1, ms) <= 0)
		return true;
	__atomic_store_n(&b->s->wait.rung, false, __ATOMIC_RELAXED);
	return false;
}

void
cl_bar_irq_stop(struct cl_bar *b)
{
	if (b->irqd >= 0)
		shutdown(b->irqd, SHUT_RDWR);
}

void
cl_bar_irq_free(struct cl_bar *b)
{
	if (b->irqd >= 0)
		close(b->irqd);
	b->irqd = -1;
}
