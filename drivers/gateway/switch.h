/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A switch between one wire, this saker's own engine, and for each virtual machine an engine and a
 * network card. It knows every MAC address behind it, so it learns none: what it does not know is
 * out on the wire. Each machine belongs to one VLAN; what it sends from addresses (MAC, IP, in ARP
 * and neighbour discovery) that are not its own is dropped; frames between two machines pass only
 * if both are to have peers. A tunnel is an IP address that several machines share for their Falcon
 * packets: the switch answers for it, and knows them by their Destination Functions.
 *
 * One thread polls; ports come and go from another, which waits for a turn to pass before it frees
 * anything (gw_switch_turns()).
 */
#ifndef SAKER_GATEWAY_SWITCH_H
#define SAKER_GATEWAY_SWITCH_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "../../lib/base/addr.h"
#include "../../lib/base/reason.h"

#define GW_VMS      32               /* most virtual machines */
#define GW_SW_PORTS (2 + 3 * GW_VMS) /* wire, host, and three for each machine */
#define GW_HOST     0                /* the tenant of the wire and the host's engine */

struct rte_mempool;
struct rte_ring;
struct gw_switch;
struct gw_tunnel;

enum gw_port_kind {
	GW_WIRE,   /* an Ethernet device; carries all VLANs */
	GW_ENGINE, /* a pair of rings; its frames have their VLAN tag */
	GW_NIC,    /* an Ethernet device of a guest: untagged, and not to be trusted */
	GW_TUNNEL, /* the switch's own: gw_tunnel_create() adds it */
};

/* An IP address that somebody has in a VLAN. */
struct gw_claim {
	struct sk_addr addr;
	uint16_t vlan;
};

struct gw_port_config {
	enum gw_port_kind kind;
	unsigned tenant;           /* GW_HOST, or a number of the machine */
	uint8_t mac[6];            /* GW_WIRE: not looked at */
	uint16_t vlan;             /* ETH_NO_VLAN or id; the host's engine and the wire: all */
	bool peers;                /* may speak with other machines */
	uint64_t rate;             /* bytes per second that it may send; 0: no bound */
	uint16_t device;           /* GW_WIRE, GW_NIC: DPDK's port, started, one queue */
	bool multi_seg;            /* the device takes frames in several pieces */
	struct rte_ring *in, *out; /* GW_ENGINE: frames from it and to it */
	/* What it sends from, and nobody else: the caller's memory, as long as the port is there. A
	 * GW_NIC without any may send from what nobody has; the wire has none. */
	const struct gw_claim *claims;
	unsigned nclaims;
	/* GW_ENGINE of a machine: sends Falcon packets from the tunnel's address as well, and gets
	 * those there whose cookie (PCID) names this Destination Function. NULL: no tunnel */
	struct gw_tunnel *tunnel;
	uint32_t function;
};

/* `pool`: for copies; outlives it. NULL: no memory. */
struct gw_switch *gw_switch_create(struct rte_mempool *pool);
/* Nobody polls any more, all ports are removed. */
void gw_switch_destroy(struct gw_switch *sw);
/* A number, -ENOSPC, or -EEXIST: the MAC address is behind another port of that VLAN. */
int gw_switch_add(struct gw_switch *sw, const struct gw_port_config *cfg);
/* Says, once, what a port has that had no claims before. Not for machines. */
void gw_switch_claim(
	struct gw_switch *sw, int port, const struct gw_claim *claims, unsigned nclaims);
/* Does somebody have the address there? */
bool gw_switch_claimed(const struct gw_switch *sw, const struct sk_addr *addr, uint16_t vlan);
/* It gets no frame any more once a turn has passed. */
void gw_switch_del(struct gw_switch *sw, int port);
/* A turn: receives from every port and forwards. Returns whether there was something. */
bool gw_switch_poll(struct gw_switch *sw, uint64_t now);
/* How many turns have passed. Any thread. */
uint64_t gw_switch_turns(const struct gw_switch *sw);
/* [gw_reason_count]; read relaxed, any thread. */
const uint64_t *gw_switch_counters(const struct gw_switch *sw);
struct gw_port_view {
	uint64_t frames_in, frames_out, bytes_in, bytes_out; /* as seen from the switch */
};
void gw_switch_look(const struct gw_switch *sw, int port, struct gw_port_view *out);

#define GW_REASONS(X)                                                                              \
	X(GW_SHORT, SK_WARNING, "a frame that ends within its headers")                            \
	X(GW_SPOOFED, SK_WARNING, "a machine's frame with a source MAC address not its own")       \
	X(GW_SPOOFED_IP, SK_WARNING, "a machine's packet with a source IP address not its own")    \
	X(GW_SPOOFED_ARP, SK_WARNING, "a machine's ARP packet that claims an address not its own") \
	X(GW_SPOOFED_ND, SK_WARNING,                                                               \
		"a machine's neighbour discovery message that claims an address not its own, or "  \
		"to be a router")                                                                  \
	X(GW_ETHERTYPE, SK_WARNING, "a machine's frame that is neither IP nor ARP")                \
	X(GW_VLAN, SK_WARNING, "a frame with a VLAN tag that its port does not have")              \
	X(GW_TENANT, SK_NOTICE, "a frame to another machine that is not allowed to be a peer")     \
	X(GW_FUNCTION, SK_WARNING,                                                                 \
		"a Falcon packet to a tunnel for a Destination Function that nobody there has")    \
	X(GW_TUNNELED, SK_NOTICE, "a frame to a tunnel that is no Falcon packet in a tunnel")      \
	X(GW_UNKNOWN, SK_NORMAL, "a frame to nobody behind this switch")                           \
	X(GW_FULL, SK_NOTICE, "a frame that its destination had no room for")                      \
	X(GW_NO_MBUF, SK_WARNING, "no mbuf for a copy of a frame")                                 \
	X(GW_FLOODED, SK_NORMAL, "a frame went to several ports")                                  \
	X(GW_PACED, SK_NORMAL, "a machine that sent more than its rate waited for a turn")

SK_REASONS_DECLARE(gw, GW_NONE, GW_REASONS)

/* ---- Tunnels (tunnel.c) ---- */

/* An address that machines share, in one VLAN; `mtu` of the IP packets there. Its MAC address is
 * made of the address. NULL with one sentence in `err`. */
struct gw_tunnel *gw_tunnel_create(struct gw_switch *sw, const struct sk_addr *addr, uint16_t vlan,
	uint32_t mtu, char *err, size_t errlen);
/* No port refers to it any more: it is no port from now on, */
void gw_tunnel_unplug(struct gw_tunnel *t);
/* and no memory from now on: a turn has passed, or nobody polls. */
void gw_tunnel_destroy(struct gw_tunnel *t);
const struct sk_addr *gw_tunnel_addr(const struct gw_tunnel *t);

#endif
