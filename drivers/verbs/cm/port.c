/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ports that the ids of this process hold. This table prevents two ids of one process from
 * taking the same port, and gives a port to an id whose program chose none. The engine detects
 * conflicts between processes when a program listens.
 */
#include <time.h>
#include <unistd.h>

#include "cm_priv.h"

#define BUCKETS   256
#define PORT_MIN  49152 /* the dynamic ports, RFC 6335 6 */
#define PORT_SPAN (65536 - PORT_MIN)

static LIST_HEAD(, cm_port) ports[BUCKETS];

/* Returns whether an id holds its port at an address of IPv4 (`v4`) or of IPv6. */
static bool
port_has_family(const struct cm_port *p, bool v4)
{
	if (sk_addr_is_v4(&p->addr))
		return v4;
	return !v4 || (sk_addr_is_any(&p->addr) && !p->afonly);
}

/* Returns whether two ids cannot hold these ports at the same time. */
static bool
clashes(const struct cm_port *a, const struct cm_port *b)
{
	if (a->port != b->port || a->ps != b->ps || (a->reuse && b->reuse))
		return false;
	if (!(port_has_family(a, true) && port_has_family(b, true)) &&
		!(port_has_family(a, false) && port_has_family(b, false)))
		return false;
	return sk_addr_is_any(&a->addr) || sk_addr_is_any(&b->addr) ||
	       sk_addr_eq(&a->addr, &b->addr);
}

static bool
cm_port_in_use(const struct cm_port *p)
{
	const struct cm_port *other;

	LIST_FOREACH (other, &ports[p->port % BUCKETS], next)
		if (other != p && clashes(p, other))
			return true;
	return false;
}

static uint16_t
any_port(void)
{
	static uint64_t state;
	struct timespec now;

	/* Any port is suitable. Each process starts at a different one. */
	if (state == 0) {
		clock_gettime(CLOCK_REALTIME, &now);
		state = (uint64_t)now.tv_nsec * 2654435761u + (uint64_t)getpid();
	}
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint16_t)(PORT_MIN + (state >> 33) % PORT_SPAN);
}

int
vb_cm_port_take(struct cm_port *p, enum rdma_port_space ps, const struct sk_addr *addr,
	uint16_t port, bool reuse)
{
	unsigned tries = port == 0 ? PORT_SPAN : 1;

	vb_cm_port_release(p);
	p->addr = *addr;
	p->ps = ps;
	p->reuse = reuse;
	p->chosen = port == 0;
	p->port = port != 0 ? port : any_port();
	while (cm_port_in_use(p)) {
		if (--tries == 0) {
			p->port = 0;
			return EADDRINUSE;
		}
		p->port = (uint16_t)(PORT_MIN + (p->port - PORT_MIN + 1) % PORT_SPAN);
	}
	LIST_INSERT_HEAD(&ports[p->port % BUCKETS], p, next);
	return 0;
}

void
vb_cm_port_release(struct cm_port *p)
{
	if (p->port != 0)
		LIST_REMOVE(p, next);
	p->port = 0;
}
