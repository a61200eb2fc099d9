/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of the switch share. */
#ifndef SAKER_GATEWAY_SWITCH_PRIV_H
#define SAKER_GATEWAY_SWITCH_PRIV_H

#include <rte_mbuf.h>

#include "switch.h"

#define GW_BURST 32

struct sw_port {
	uint32_t used;  /* atomic */
	uint64_t freed; /* the turn from which on it may be used again; the owner's of the ports */
	struct gw_port_config cfg;
	uint32_t nclaims;    /* atomic: of cfg.claims */
	struct sk_addr ll;   /* the link-local address that is made of its MAC address */
	struct sk_addr free; /* a card's: nobody had it when */
	uint32_t free_at;    /* `claims` of the switch was this */
	uint64_t key;        /* MAC address and VLAN, as sw_key() */
	int64_t tokens;
	uint64_t filled; /* ns: when tokens were last added */
	unsigned n;
	struct rte_mbuf *tx[GW_BURST];
	struct gw_port_view seen;
};

struct gw_switch {
	struct rte_mempool *pool;
	uint64_t turns;  /* atomic */
	uint32_t last;   /* atomic: ports from here on were never used */
	uint32_t claims; /* atomic: counts their changes; never 0 */
	uint64_t now;
	const struct sw_port *from; /* whose frame is under way */
	uint64_t counters[gw_reason_count];
	struct sw_port ports[GW_SW_PORTS];
};

static inline uint64_t
sw_key(const uint8_t mac[6], uint16_t vlan)
{
	uint64_t k = vlan;

	for (unsigned i = 0; i < 6; i++)
		k = k << 8 | mac[i];
	return k;
}

struct sw_frame {
	const uint8_t *dst, *src;
	uint16_t vlan; /* ETH_NO_VLAN: none */
	uint16_t type; /* EtherType behind the tag */
	uint32_t l3;   /* bytes before it */
};

static inline bool
sw_in_use(const struct sw_port *p)
{
	return __atomic_load_n(&p->used, __ATOMIC_ACQUIRE) != 0;
}

static inline bool
sw_may_meet(const struct sw_port *a, const struct sw_port *b)
{
	return a->cfg.tenant == b->cfg.tenant || a->cfg.tenant == GW_HOST ||
	       b->cfg.tenant == GW_HOST || (a->cfg.peers && b->cfg.peers);
}

/* switch.c: as if the port had sent it. Takes `m`. */
void sw_forward(struct gw_switch *sw, const struct sw_port *from, struct rte_mbuf *m);
void sw_drop(struct gw_switch *sw, struct rte_mbuf *m, enum gw_reason reason);

/* guard.c: may a machine's port speak in the name of the addresses that stand in the packet? 0 or
 * -reason. */
int sw_guard(struct gw_switch *sw, struct sw_port *from, const struct rte_mbuf *m,
	const struct sw_frame *f);
/* Fills in `ll`. */
void sw_link_local(struct sw_port *p);

/* tunnel.c: a frame to a GW_TUNNEL. Takes `m`. */
void sw_tunnel_input(struct gw_switch *sw, struct sw_port *p, struct rte_mbuf *m);

/* switch_port.c: frames of a port; what it does not take stays the caller's. */
unsigned sw_receive(struct gw_switch *sw, struct sw_port *p, uint64_t now, struct rte_mbuf **m);
/* Takes `m`. */
void sw_put(struct gw_switch *sw, struct sw_port *p, struct rte_mbuf *m);
void sw_flush(struct gw_switch *sw, struct sw_port *p);
/* A copy that is ours to change, in one piece; NULL, and counted: no mbuf. Takes `m`. */
struct rte_mbuf *sw_own_copy(struct gw_switch *sw, struct rte_mbuf *m);

#endif
