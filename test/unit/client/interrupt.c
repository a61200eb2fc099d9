/* SPDX-License-Identifier: BSD-3-Clause */
/* Interrupts of an ivshmem-doorbell device, where the test plays saker-irqd. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "../../../lib/client/attach/bar_priv.h"

#define SLOT 5

static struct {
	char path[64];
	int listen, conn, event;
	uint32_t vector;
	int32_t status; /* the answer */
	pthread_t thread;
} irqd;

static void *
irqd_main(void *arg)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = {&irqd.vector, sizeof(irqd.vector)};
	struct msghdr m = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.room,
		.msg_controllen = sizeof(control.room)};

	irqd.conn = accept(irqd.listen, NULL, NULL);
	if (recvmsg(irqd.conn, &m, 0) == (ssize_t)sizeof(irqd.vector) && CMSG_FIRSTHDR(&m) != NULL)
		memcpy(&irqd.event, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(irqd.event));
	if (irqd.status > 0 || send(irqd.conn, &irqd.status, sizeof(irqd.status), 0) < 0)
		close(irqd.conn);
	return NULL;
}

/* Opens a program's device, and asks a saker-irqd that gives `status`; 1: it hangs up. */
static void
ask(struct cl_bar *b, struct saker *s, int32_t status)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};

	memset(s, 0, sizeof(*s));
	s->sock = s->wait.wake = -1;
	*b = (struct cl_bar){.s = s, .slot = SLOT, .irqd = -1};
	memset(&irqd, 0, sizeof(irqd));
	irqd.event = -1;
	irqd.status = status;
	snprintf(irqd.path, sizeof(irqd.path), "/tmp/saker-irq-%d", getpid());
	strcpy(un.sun_path, irqd.path);
	irqd.listen = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	cr_assert_eq(bind(irqd.listen, (struct sockaddr *)&un, sizeof(un)), 0);
	cr_assert_eq(listen(irqd.listen, 1), 0);
	cr_assert_eq(pthread_create(&irqd.thread, NULL, irqd_main, NULL), 0);
	cl_bar_irq(b, irqd.path);
	pthread_join(irqd.thread, NULL);
	cr_assert_eq(irqd.vector, SLOT);
	cr_assert_geq(irqd.event, 0);
}

static void
quit(struct cl_bar *b)
{
	cl_bar_irq_free(b);
	close(irqd.event);
	close(irqd.listen);
	unlink(irqd.path);
}

Test(interrupt, the_socket_is_that_of_the_device)
{
	char where[CL_PATH];

	cr_assert(cl_bar_irq_path("/sys/bus/pci/devices/0000:00:05.0/resource2", where));
	cr_assert_str_eq(where, "/run/saker/irq-0000:00:05.0");
	cr_assert_not(cl_bar_irq_path("/dev/shm/memory", where));
	cr_assert_not(cl_bar_irq_path("resource2", where));
}

/* Only an interrupt that has come proves that they work. */
Test(interrupt, the_first_interrupt_ends_the_polling)
{
	const uint64_t one = 1;
	struct cl_bar b;
	struct saker s;
	struct pollfd p = {.events = POLLIN};

	ask(&b, &s, 0);
	cr_assert_geq(s.wait.wake, 0);
	cr_assert_not(cl_bar_irq_nap(&b, 0), "none has come");
	p.fd = s.wait.wake;
	cr_assert_eq(poll(&p, 1, 0), 0);
	cr_assert_eq(write(irqd.event, &one, sizeof(one)), sizeof(one));
	cr_assert_eq(poll(&p, 1, 0), 1, "the program's own eventfd");
	s.wait.rung = true;
	cr_assert(cl_bar_irq_nap(&b, 0));
	/* The end of saker-irqd is the end of the interrupts. */
	close(irqd.conn);
	cr_assert_not(cl_bar_irq_nap(&b, 60000));
	cr_assert_not(s.wait.rung);
	close(s.wait.wake);
	quit(&b);
}

Test(interrupt, the_end_of_the_attachment_ends_a_nap)
{
	struct cl_bar b;
	struct saker s;

	ask(&b, &s, 0);
	s.wait.rung = true;
	cl_bar_irq_stop(&b);
	cl_bar_irq_nap(&b, 60000);
	cr_assert_not(s.wait.rung);
	close(s.wait.wake);
	close(irqd.conn);
	quit(&b);
}

Test(interrupt, a_program_that_gets_no_interrupts_polls)
{
	static const int32_t statuses[] = {-EINVAL, 1};
	struct cl_bar b;
	struct saker s;

	for (unsigned i = 0; i < 2; i++) {
		ask(&b, &s, statuses[i]);
		cr_assert_eq(s.wait.wake, -1);
		cr_assert_eq(b.irqd, -1);
		cr_assert_not(cl_bar_irq_nap(&b, 60000));
		if (i == 0)
			close(irqd.conn);
		quit(&b);
	}
	cl_bar_irq(&b, irqd.path);
	cr_assert_eq(s.wait.wake, -1, "there is no saker-irqd");
}
