/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receive interrupts. A loop that is about to sleep enables the interrupts of its receive queues,
 * whose descriptors are in its epoll set, and polls the queues once more; a frame that arrives
 * later ends the sleep. A driver signals a descriptor (an eventfd, or an epoll descriptor with
 * eventfds) for each interrupt, and nobody reads it: the events are edge-triggered.
 *
 * The link of a virtual port comes and goes with its peer: net_vhost has new virtqueues after each
 * connect, and does not enable their interrupts by itself. Such drivers report each change, from a
 * thread of their own. The report wakes the loops, which enable the interrupts again.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <rte_ethdev.h>

#include "../../base/mem.h"
#include "transport_priv.h"

struct intr_queue {
	int fd;        /* a duplicate, so that a driver cannot close the number; -1: none */
	uint32_t seen; /* `changes` when fd was obtained */
};

struct eng_port_intr {
	struct eng *e;
	uint16_t id; /* DPDK's port number */
	/* Held while a function of the driver uses what the driver frees after it has reported that
	 * the link is down. */
	pthread_mutex_t lock;
	uint32_t changes; /* atomic: reports of the driver */
	/* By receive queue. Only the loop of transport stage i uses queue[i]. */
	struct intr_queue queue[ENG_MAX_TRANSPORTS];
};

/* Handles a report of the driver. net_vhost reports a queue's state while it holds a lock that
 * rte_eth_dev_rx_intr_enable() takes, too, so only the report about the link waits for p->lock. */
static int
intr_report(uint16_t port, enum rte_eth_event_type type, void *arg, void *ret)
{
	struct eng_port_intr *p = arg;

	if (type == RTE_ETH_EVENT_INTR_LSC) {
		pthread_mutex_lock(&p->lock);
		pthread_mutex_unlock(&p->lock);
	}
	__atomic_fetch_add(&p->changes, 1, __ATOMIC_SEQ_CST);
	eng_wake(p->e, UINT32_MAX);
	return 0;
}

static void
intr_drop(struct intr_queue *q, int epoll_fd)
{
	if (q->fd < 0)
		return;
	epoll_ctl(epoll_fd, EPOLL_CTL_DEL, q->fd, NULL);
	close(q->fd);
	q->fd = -1;
}

/* Obtains the descriptor of a queue, and adds it to the epoll set. */
static void
intr_watch(struct eng_port_intr *p, uint16_t queue, int epoll_fd)
{
	struct epoll_event ev = {.events = EPOLLIN | EPOLLET, .data.u64 = ENG_EPOLL_PORT};
	struct intr_queue *q = &p->queue[queue];
	int fd;

	intr_drop(q, epoll_fd);
	pthread_mutex_lock(&p->lock);
	fd = rte_eth_dev_rx_intr_ctl_q_get_fd(p->id, queue);
	if (fd >= 0)
		q->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	pthread_mutex_unlock(&p->lock);
	if (q->fd >= 0 && epoll_ctl(epoll_fd, EPOLL_CTL_ADD, q->fd, &ev) != 0)
		intr_drop(q, epoll_fd);
}

/* Enables the interrupt of a queue. Returns whether a frame then makes the epoll set ready. */
static bool
intr_enable(struct eng_port_intr *p, uint16_t queue, int epoll_fd)
{
	struct intr_queue *q = &p->queue[queue];
	uint32_t changes = __atomic_load_n(&p->changes, __ATOMIC_SEQ_CST);
	int rc;

	if (q->seen != changes) {
		q->seen = changes;
		intr_watch(p, queue, epoll_fd);
	}
	if (q->fd < 0)
		return false;
	pthread_mutex_lock(&p->lock);
	rc = rte_eth_dev_rx_intr_enable(p->id, queue);
	pthread_mutex_unlock(&p->lock);
	return rc == 0;
}

bool
eng_transport_arm(struct eng_transport *t, int epoll_fd)
{
	bool all = true;

	for (unsigned i = 0; i < t->e->cfg.nports; i++) {
		const struct eng_port *p = &t->e->ports[i];

		if (t->index < p->rx_queues && !eng_device_is_gone(&p->dev))
			all &= p->intr != NULL &&
			       intr_enable(p->intr, (uint16_t)t->index, epoll_fd);
	}
	return all;
}

void
eng_transport_disarm(struct eng_transport *t)
{
	for (unsigned i = 0; i < t->e->cfg.nports; i++) {
		struct eng_port *p = &t->e->ports[i];

		if (t->index >= p->rx_queues || eng_device_is_gone(&p->dev) || p->intr == NULL ||
			p->intr->queue[t->index].fd < 0)
			continue;
		pthread_mutex_lock(&p->intr->lock);
		(void)rte_eth_dev_rx_intr_disable(p->dev.id, (uint16_t)t->index);
		pthread_mutex_unlock(&p->intr->lock);
	}
}

/* The events by which a driver reports that the link, or a queue, has changed. */
static const enum rte_eth_event_type intr_events[] = {
	RTE_ETH_EVENT_INTR_LSC, RTE_ETH_EVENT_QUEUE_STATE};

bool
eng_intr_open(struct eng *e, unsigned i)
{
	struct eng_port *port = &e->ports[i];
	struct eng_port_intr *p;

	/* A driver without the function has no interrupts, whatever the configuration requested. */
	if (rte_eth_dev_rx_intr_enable(port->dev.id, 0) != 0)
		return false;
	(void)rte_eth_dev_rx_intr_disable(port->dev.id, 0);
	p = calloc(1, sizeof(*p));
	if (p == NULL)
		return false;
	p->e = e;
	p->id = port->dev.id;
	p->changes = 1;
	pthread_mutex_init(&p->lock, NULL);
	for (unsigned q = 0; q < ENG_MAX_TRANSPORTS; q++)
		p->queue[q].fd = -1;
	for (unsigned k = 0; k < SK_ARRAY_LEN(intr_events); k++)
		(void)rte_eth_dev_callback_register(p->id, intr_events[k], intr_report, p);
	port->intr = p;
	return true;
}

void
eng_intr_close(struct eng *e, unsigned i)
{
	struct eng_port_intr *p = e->ports[i].intr;

	if (p == NULL)
		return;
	for (unsigned k = 0; k < SK_ARRAY_LEN(intr_events); k++)
		while (rte_eth_dev_callback_unregister(p->id, intr_events[k], intr_report, p) ==
			-EAGAIN)
			sched_yield(); /* the driver's thread is in intr_report() */
	for (unsigned q = 0; q < ENG_MAX_TRANSPORTS; q++)
		if (p->queue[q].fd >= 0)
			close(p->queue[q].fd);
	pthread_mutex_destroy(&p->lock);
	free(p);
	e->ports[i].intr = NULL;
}
