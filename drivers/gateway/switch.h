/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A switch between one wire, the host's own engine, and an engine and a network card for each
 * virtual machine. All MAC addresses behind it are configured, so it learns none: it forwards
 * frames to any other address to the wire. Each machine belongs to one VLAN. The switch drops a
 * machine's frames whose source addresses (MAC, IP, in ARP and neighbour discovery) are not the
 * machine's own. Frames pass between two machines only if both may have peers. A tunnel is an IP
 * address that several machines share for their Falcon packets: the switch answers ARP and
 * neighbour discovery for it, and selects the machine by the packet's Destination Function.
 *
 * One thread polls. Another thread adds and removes ports, and waits until a turn has passed
 * (gw_switch_turns()) before it frees what a port used.
 */
#ifndef SAKER_GATEWAY_SWITCH_H
#define SAKER_GATEWAY_SWITCH_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "../../lib/base/addr.h"
#include "../../lib/base/reason.h"

#define GW_VMS      32               /* virtual machines at most */
#define GW_SW_PORTS (2 + 3 * GW_VMS) /* wire, host, and three for each machine */
#define GW_HOST     0                /* the tenant number of the wire and the host's engine */

struct rte_mbuf;
struct rte_mempool;
struct rte_ring;
struct gw_switch;

enum gw_port_kind {
	GW_WIRE,   /* an Ethernet device that carries all VLANs */
	GW_ENGINE, /* a pair of rings; the frames carry their VLAN tag */
	GW_NIC,    /* an Ethernet device of a guest: untagged and untrusted */
	GW_TUNNEL, /* no device; frames go to the function `input` (see tunnel.h) */
};

/* An IP address in a VLAN that belongs to one port. */
struct gw_claim {
	struct sk_addr addr;
	uint16_t vlan;
};

struct gw_port_config {
	enum gw_port_kind kind;
	unsigned tenant; /* GW_HOST, or the machine's number */
	uint8_t mac[6];  /* ignored for GW_WIRE */
	uint16_t vlan;   /* ETH_NO_VLAN or id; the host's engine and the wire have all */
	bool peers;      /* may exchange frames with other machines */
	uint64_t rate;   /* bytes per second that it may send; 0: no limit */
	uint16_t device; /* GW_WIRE, GW_NIC: DPDK port, started, one queue pair */
	bool multi_seg;  /* the device sends frames of several segments */
	/* Atomic: the device is out of use. NULL: it is never. */
	const bool *gone;
	struct rte_ring *in, *out; /* GW_ENGINE: frames from it and to it */
	/* GW_TUNNEL: receives the frames to the port, and owns each `m`. */
	void (*input)(void *arg, struct rte_mbuf *m);
	void *input_arg;
	/* Addresses that only this port may send from. The caller keeps the memory until the port
	 * is removed. A GW_NIC without claims may send from any address that no port claims. The
	 * wire has no claims. */
	const struct gw_claim *claims;
	unsigned nclaims;
	/* GW_ENGINE of a machine: the tunnel's address, which it may use as the source of Falcon
	 * packets, too, and the Destination Function by which the tunnel selects this port for
	 * packets to that address. Unspecified: no tunnel. */
	struct sk_addr tunnel;
	uint32_t function;
};

/* Creates a switch without ports. `pool` provides the mbufs of copies and outlives the switch.
 * Returns NULL when there is no memory. */
struct gw_switch *gw_switch_create(struct rte_mempool *pool);
/* Frees the switch. No thread polls it any more, and all ports are removed. */
void gw_switch_destroy(struct gw_switch *sw);
/* Adds a port. Returns its number, or -ENOSPC, or -EEXIST when another port of the VLAN has the MAC
 * address. */
int gw_switch_add(struct gw_switch *sw, const struct gw_port_config *cfg);
/* Replaces the claims of the host's port. Not for machines. A turn that is in progress may read as
 * many entries of `claims` as there were before, so the array has room for these, and all behind
 * `nclaims` are 0. When that turn has ended, the switch does not read the previous array any more.
 */
void gw_switch_claim(
	struct gw_switch *sw, int port, const struct gw_claim *claims, unsigned nclaims);
/* Returns whether a port claims the address in that VLAN. */
bool gw_switch_claimed(const struct gw_switch *sw, const struct sk_addr *addr, uint16_t vlan);
/* Gives a port whose device is out of use another device, which runs. */
void gw_switch_wire(struct gw_switch *sw, int port, uint16_t device, bool multi_seg);
/* Removes a port, which gets no frame any more after one turn has passed. A negative number is
 * allowed. */
void gw_switch_del(struct gw_switch *sw, int port);
/* Runs one turn: receives from every port and forwards. `now` is in ns. Returns whether there was a
 * frame. */
bool gw_switch_poll(struct gw_switch *sw, uint64_t now);
/* Returns how many turns have passed. Any thread may call this. */
uint64_t gw_switch_turns(const struct gw_switch *sw);
/* Returns the counters, [gw_reason_count]. Any thread may read them, with relaxed order. */
const uint64_t *gw_switch_counters(const struct gw_switch *sw);
struct gw_port_view {
	uint64_t frames_in, bytes_in;   /* received by the switch */
	uint64_t frames_out, bytes_out; /* sent by the switch */
};
/* Fills in *out. Any thread may call this; the values may come from different turns. */
void gw_switch_port_view(const struct gw_switch *sw, int port, struct gw_port_view *out);

#define GW_REASONS(X)                                                                              \
	X(GW_SHORT, SK_WARNING, "a frame that ends within its headers")                            \
	X(GW_SPOOFED, SK_WARNING, "a machine's frame whose source MAC address is not its own")     \
	X(GW_SPOOFED_IP, SK_WARNING, "a machine's packet whose source IP address is not its own")  \
	X(GW_SPOOFED_ARP, SK_WARNING,                                                              \
		"a machine's ARP packet that claims an address that is not its own")               \
	X(GW_SPOOFED_ND, SK_WARNING,                                                               \
		"a machine's neighbour discovery message that claims an address that is not its "  \
		"own, or that the machine is a router")                                            \
	X(GW_ETHERTYPE, SK_WARNING, "a machine's frame that is neither IP nor ARP")                \
	X(GW_VLAN, SK_WARNING, "a frame with a VLAN tag that its port does not have")              \
	X(GW_TENANT, SK_NOTICE, "a frame to another machine that is not allowed to be a peer")     \
	X(GW_FUNCTION, SK_WARNING,                                                                 \
		"a Falcon packet to a tunnel with a Destination Function that no machine there "   \
		"has")                                                                             \
	X(GW_TUNNELED, SK_NOTICE, "a frame to a tunnel that is not a tunneled Falcon packet")      \
	X(GW_UNKNOWN, SK_NORMAL, "a frame to a MAC address that no port has")                      \
	X(GW_FULL, SK_NOTICE, "a frame that was dropped because its destination's queue was full") \
	X(GW_NO_WIRE, SK_NOTICE, "a frame to the wire, whose device was removed or starts again")  \
	X(GW_NO_MBUF, SK_WARNING, "no mbuf was free for a copy of a frame")                        \
	X(GW_FLOODED, SK_NORMAL, "a frame was sent to several ports")                              \
	X(GW_PACED, SK_NORMAL, "a machine that exceeded its rate waited for a turn")

SK_REASONS_DECLARE(gw, GW_NONE, GW_REASONS)

#endif
