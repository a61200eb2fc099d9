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
#include <unistd.h>

#include "../../base/sock.h"
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

void
cl_bar_irq(struct cl_bar *b, const char *where)
{
	int fd = sk_sock_connect(where, SOCK_SEQPACKET, PATIENCE_S), event = -1;
	uint32_t slot = b->slot;
	int32_t status;

	if (fd < 0)
		return;
	event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (event >= 0 && sk_sock_send(fd, &slot, sizeof(slot), &event, 1, 0) == 0 &&
		recv(fd, &status, sizeof(status), 0) == (ssize_t)sizeof(status) && status == 0) {
		b->irqd = fd;
		b->s->wait.wake = event;
		return;
	}
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
