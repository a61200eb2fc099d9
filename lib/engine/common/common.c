/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions that stages of every kind use: counters, waking, rings between stages, the RDMA MTU. */
#include <errno.h>
#include <stdio.h>
#include <sys/epoll.h>

#include <rte_ring.h>
#include <rte_ring_elem.h>

#include "../../base/mem.h"
#include "../../base/wake.h"
#include "../../falcon/psp.h"
#include "../../rof/exchange.h"
#include "instance.h"

/* The most bytes that IP and the headers and trailers above it add to an RDMA payload. */
#define AROUND_PAYLOAD                                                                             \
	(IP_MAX + UDP_LEN + PSP_MAX + FALCON_PUSH_DATA_LEN + ROF_MAX + 3 + PSP_ICV_LEN)

const struct eng_bounds eng_bounds = {.messages = 256, .arrived = 65536, .behind = 32};

SK_REASONS_DEFINE(eng, ENG_NONE, ENG_REASONS)

void
eng_wake(struct eng *e, uint32_t loops)
{
	shm_fence();
	if (__atomic_load_n(&e->sleeping, __ATOMIC_RELAXED) & loops)
		sk_wake(e->wake_fd);
}

int
eng_doorbell_watch(struct eng *e, int fd)
{
	/* Edge-triggered: each write wakes every loop, although no loop reads the eventfd. */
	struct epoll_event ev = {.events = EPOLLIN | EPOLLET};

	for (unsigned k = 0; k < e->cfg.nloops; k++) {
		if (epoll_ctl(e->loops[k].epoll_fd, EPOLL_CTL_ADD, fd, &ev) != 0) {
			int error = errno;

			eng_doorbell_unwatch(e, fd);
			return -error;
		}
	}
	return 0;
}

void
eng_doorbell_unwatch(struct eng *e, int fd)
{
	for (unsigned k = 0; k < e->cfg.nloops; k++)
		epoll_ctl(e->loops[k].epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}

static struct rte_ring *
ring_create(const struct eng *e, const char *name, unsigned esize, unsigned count, unsigned flags)
{
	struct rte_ring *r = rte_ring_create_elem(name, esize, count, e->cfg.socket_id, flags);

	/* Without huge pages, the EAL leaves its memory unpopulated. */
	if (r != NULL)
		(void)sk_mem_populate(r, (size_t)rte_ring_get_memsize_elem(esize, count));
	return r;
}

struct rte_ring *
eng_ring_create(const struct eng *e, const char *kind, unsigned a, unsigned b, unsigned esize,
	unsigned count)
{
	char name[RTE_RING_NAMESIZE];

	snprintf(name, sizeof(name), "sk%u_%s%u_%u", e->id, kind, a, b);
	return ring_create(e, name, esize, count, RING_F_SP_ENQ | RING_F_SC_DEQ);
}

/* RING_F_MP_RTS_ENQ: a producer whose thread is stopped in the middle delays its own element, and
 * no other producer. */
struct rte_ring *
eng_ring_create_many(
	const struct eng *e, const char *kind, unsigned a, unsigned esize, unsigned count)
{
	char name[RTE_RING_NAMESIZE];

	snprintf(name, sizeof(name), "sk%u_%s%u", e->id, kind, a);
	return ring_create(e, name, esize, count, RING_F_MP_RTS_ENQ | RING_F_SC_DEQ);
}

int
eng_share_init(struct sk_share *s, const struct eng_limits *l, uint32_t size, uint32_t least)
{
	return sk_share_init(s, size, l->clients + 1, l->users + 1,
		sk_share_percent(size, l->user_min, least),
		sk_share_percent(size, l->user_most, 1));
}

uint16_t
eng_falcon_mtu(const struct eng *e, uint32_t most, uint32_t path_mtu)
{
	uint32_t around = AROUND_PAYLOAD + (e->cfg.falcon.tunnel ? IP_MAX : 0);
	uint32_t mtu = ROF_MTU_MIN;

	most = SK_MIN(most, path_mtu - around);
	while (mtu * 2 <= SK_MIN(most, (uint32_t)ROF_MTU_MAX))
		mtu *= 2;
	return (uint16_t)mtu;
}
