/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The switch's state, and the functions that its files offer each other. Calls go downward:
 * tunnel.c, switch.c (forwarding), then guard.c (source addresses) and switch_port.c (bursts). A
 * frame goes up to tunnel.c through its port's function `input`.
 */
#ifndef SAKER_GATEWAY_SWITCH_PRIV_H
#define SAKER_GATEWAY_SWITCH_PRIV_H

#include <rte_mbuf.h>

#include "switch.h"

#define GW_BURST 32

struct gw_sw_port {
	uint32_t used;  /* atomic */
	uint64_t freed; /* the turn from which on gw_switch_add() may reuse the port */
	struct gw_port_config cfg;
	uint32_t nclaims;    /* atomic: length of cfg.claims */
	struct sk_addr ll;   /* the link-local address that its MAC address forms */
	struct sk_addr free; /* GW_NIC: an address that no port claimed when ... */
	uint32_t free_at;    /* ... gw_switch.claims had this value; 0: `free` is not set */
	uint64_t key;        /* MAC address and VLAN, as gw_sw_key() */
	int64_t tokens;      /* bytes that it may send at present */
	uint64_t filled;     /* ns: when tokens were last added */
	unsigned n;          /* frames in tx[] */
	struct rte_mbuf *tx[GW_BURST];
	struct gw_port_view seen;
};

struct gw_switch {
	struct rte_mempool *pool;
	uint64_t turns;                /* atomic */
	uint32_t last;                 /* atomic: ports from here on were never used */
	uint32_t claims;               /* atomic: counts changes of the claims; never 0 */
	uint64_t now;                  /* ns: of this turn */
	const struct gw_sw_port *from; /* the port that sent the frame being forwarded */
	uint64_t counters[gw_reason_count];
	struct gw_sw_port ports[GW_SW_PORTS];
};

/* Returns the key by which frames find a port. */
static inline uint64_t
gw_sw_key(const uint8_t mac[6], uint16_t vlan)
{
	uint64_t k = vlan;

	for (unsigned i = 0; i < 6; i++)
		k = k << 8 | mac[i];
	return k;
}

/* The Ethernet header of a frame. */
struct gw_sw_frame {
	const uint8_t *dst, *src;
	uint16_t vlan; /* ETH_NO_VLAN: none */
	uint16_t type; /* EtherType behind the tag */
	uint32_t l3;   /* bytes before the payload */
};

static inline bool
gw_sw_in_use(const struct gw_sw_port *p)
{
	return __atomic_load_n(&p->used, __ATOMIC_ACQUIRE) != 0;
}

/* Returns whether frames may pass between the tenants of the two ports. */
static inline bool
gw_sw_may_meet(const struct gw_sw_port *a, const struct gw_sw_port *b)
{
	return a->cfg.tenant == b->cfg.tenant || a->cfg.tenant == GW_HOST ||
	       b->cfg.tenant == GW_HOST || (a->cfg.peers && b->cfg.peers);
}

/* ---- switch.c ---- */

/* Forwards a frame as if the port `from` had sent it. Consumes `m`. */
void gw_sw_forward(struct gw_switch *sw, const struct gw_sw_port *from, struct rte_mbuf *m);
/* Counts `reason` and frees `m`. */
void gw_sw_drop(struct gw_switch *sw, struct rte_mbuf *m, enum gw_reason reason);

/* ---- guard.c ---- */

/* Checks that the source addresses in a frame are those of the machine's port that sent it. Returns
 * 0 or -reason. */
int gw_sw_guard(struct gw_switch *sw, struct gw_sw_port *from, const struct rte_mbuf *m,
	const struct gw_sw_frame *f);

/* ---- switch_port.c ---- */

/* Receives up to GW_BURST frames from a port whose rate permits it. Returns how many. */
unsigned gw_sw_receive(
	struct gw_switch *sw, struct gw_sw_port *p, uint64_t now, struct rte_mbuf **m);
/* Queues a frame for a port. Consumes `m`. */
void gw_sw_put(struct gw_switch *sw, struct gw_sw_port *p, struct rte_mbuf *m);
/* Sends the queued frames of a port, and drops those that the port does not accept. */
void gw_sw_flush(struct gw_switch *sw, struct gw_sw_port *p);
/* Returns a copy that is not shared and has one segment, or NULL when no mbuf is free, which it
 * counts. Consumes `m`. */
struct rte_mbuf *gw_sw_own_copy(struct gw_switch *sw, struct rte_mbuf *m);

#endif
