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
	uint64_t key; /* MAC address and VLAN, as sw_key() */
	int64_t tokens;
	uint64_t filled; /* ns: when tokens were last added */
	unsigned n;
	struct rte_mbuf *tx[GW_BURST];
	struct gw_port_view seen;
};

struct gw_switch {
	struct rte_mempool *pool;
	uint64_t turns; /* atomic */
	uint32_t last;  /* atomic: ports from here on were never used */
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

/* switch_port.c: frames of a port; what it does not take stays the caller's. */
unsigned sw_receive(struct gw_switch *sw, struct sw_port *p, uint64_t now, struct rte_mbuf **m);
/* Takes `m`. */
void sw_put(struct gw_switch *sw, struct sw_port *p, struct rte_mbuf *m);
void sw_flush(struct gw_switch *sw, struct sw_port *p);

#endif
