/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The layer between a port and a transport: interfaces with their addresses, routes, neighbours
 * (ARP, RFC 826; neighbour discovery, RFC 4861), ICMP echo and errors, and the bytes before a
 * transport header. The library has no clock, no I/O and no transport: each call takes `now`
 * (nanoseconds), and frames leave through net_ops.
 *
 * One net_stack belongs to one transport stage; no function is safe to call from two threads at a
 * time. Frames that wait for a neighbour are opaque pointers, which go back through ops->release().
 */
#ifndef SAKER_NET_H
#define SAKER_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../base/addr.h"
#include "../base/prf.h"
#include "../base/reason.h"
#include "../wire/wire.h"

#define NET_MAX_IFS       64 /* an interface is a port and a VLAN */
#define NET_MAX_ADDRS     16 /* per interface, with the link-local address */
#define NET_MAX_ROUTES    256
#define NET_MAX_NEIGHBORS 4096
#define NET_NEIGHBOR_HELD 8 /* frames that wait for one neighbour */

struct net_stack;

struct net_ops {
	/* Sends a complete frame of `len` bytes through `port`. It copies the bytes before it
	 * returns. */
	void (*send)(void *ctx, uint16_t port, const uint8_t *frame, size_t len);
	/* Gives back a frame that net_hold() took. The owner writes `dst_mac` over the first 6
	 * bytes of the frame and sends it. NULL: the owner drops the frame, which is counted: the
	 * neighbour did not answer, or its queue was full. */
	void (*release)(void *ctx, uint16_t port, void *frame, const uint8_t *dst_mac);
	/* Reports an ICMP error that quotes a packet of a transport: icmp->kind is ICMP_TOO_BIG or
	 * ICMP_UNREACHABLE. `vlan` is as in wire_eth. */
	void (*icmp_error)(void *ctx, uint16_t port, uint16_t vlan, const struct wire_icmp *icmp);
};

/* Returns a new stack, or NULL without memory. Copies `ops`; `ctx` is the first argument of each
 * callback. */
struct net_stack *net_create(const struct net_ops *ops, void *ctx, uint64_t now);
/* Frees the stack; held frames go back through ops->release() with NULL. */
void net_destroy(struct net_stack *n);

/* Adds an interface: a port, and a VLAN or ETH_NO_VLAN. `mtu` is the size of an IP packet in bytes,
 * 1280 to 65535. The interface gets an IPv6 link-local address, made from its MAC address. Returns
 * the index of the interface (ifindex), or -EEXIST, -ENOSPC when a table is full, or -EINVAL. */
int net_if_add(
	struct net_stack *n, uint16_t port, uint16_t vlan, const uint8_t mac[6], uint32_t mtu);
/* Adds the loopback interface, an internal port for packets from one of our addresses to another: a
 * path to one of our addresses leads there, and only there may a received packet have one of our
 * addresses as its source. Its frames have MAC addresses of zeros. There is at most one. Returns as
 * net_if_add(). */
int net_if_add_loop(struct net_stack *n, uint16_t port, uint32_t mtu);
/* Adds a unicast address with its prefix length, and the connected route. ARP or neighbour
 * discovery announces the address. Returns 0, or -EINVAL, -EEXIST, or -ENOSPC when a table is
 * full. */
int net_addr_add(struct net_stack *n, int ifindex, const struct sk_addr *addr, unsigned prefix,
	uint64_t now);
/* Adds an address that several hosts share, and that another station of the link answers for (the
 * outer address of a tunnel). Frames to it are accepted, and a path may use it as its source. But
 * it is not announced, no request for it is answered, no request uses it as its source, and a path
 * to it leads to the link. Returns as net_addr_add(). */
int net_addr_share(struct net_stack *n, int ifindex, const struct sk_addr *addr, unsigned prefix);
/* Removes an address and its connected route. Returns 0, -EINVAL or -EADDRNOTAVAIL. */
int net_addr_del(struct net_stack *n, int ifindex, const struct sk_addr *addr);
/* Adds a route through `gateway`, which is on a connected route; the longest prefix wins. Returns
 * 0, or -EINVAL, -ENETUNREACH when no connected route leads to the gateway, -EEXIST or -ENOSPC. */
int net_route_add(struct net_stack *n, const struct sk_addr *dst, unsigned prefix,
	const struct sk_addr *gateway);
/* Removes a route that net_route_add() has added. Returns 0, -EINVAL, or -ESRCH when there is no
 * such route through this gateway. */
int net_route_del(struct net_stack *n, const struct sk_addr *dst, unsigned prefix,
	const struct sk_addr *gateway);
/* Adds a neighbour with a fixed MAC address, which is never solicited. Returns 0, -EINVAL or
 * -ENOSPC. */
int net_neighbor_add(
	struct net_stack *n, int ifindex, const struct sk_addr *addr, const uint8_t mac[6]);
/* Forgets the neighbours of a port that has lost its link: other stations may be there when the
 * link is back. The next packet to one of them resolves it anew. Those of net_neighbor_add()
 * stay. */
void net_port_forget(struct net_stack *n, uint16_t port);
/* Returns how many interfaces net_if_add() can still add. */
unsigned net_if_room(const struct net_stack *n);
/* Returns the ifindex of the interface (port, vlan), or -1. */
int net_if_index(const struct net_stack *n, uint16_t port, uint16_t vlan);

/* The class of a connection's packets. */
struct net_class {
	uint8_t dscp;  /* 6 bits: in the IPv4 type of service, or in the IPv6 traffic class */
	uint8_t pcp;   /* 3 bits: in the VLAN tag, if the interface has one */
	uint32_t flow; /* 20 bits: IPv6 flow label; 0: one that net_path_init() chooses */
};

/* The headers before a connection's packets. A connection keeps its path; net_path_check() compares
 * `generation` before each frame. */
struct net_path {
	uint32_t generation; /* 0: not resolved yet */
	int16_t ifindex;
	uint16_t port;
	uint32_t mtu;      /* bytes of an IP packet */
	uint32_t neighbor; /* handle of the neighbour, internal */
	uint8_t l2_len, l3_len;
	/* Ethernet and IP headers, but for length, identification, ECN and the IPv4 checksum. */
	uint8_t head[ETH_MAX + IP_MAX];
	struct net_class class; /* `flow` is the flow label in use */
};

/* Determines the route and the source address of a path. `src` is in/out: the unspecified address
 * requests a choice. `proto` is the IP protocol. Returns 0, -ENETUNREACH or -EADDRNOTAVAIL. */
int net_path_init(struct net_stack *n, struct net_path *p, struct sk_addr *src,
	const struct sk_addr *dst, uint8_t proto, uint64_t now);
/* Sets the class of a path, which net_path_init() has set to 0. The ECN bits stay with the
 * transport: net_head_emit() writes them. */
void net_path_set_class(struct net_path *p, const struct net_class *class);
/* Checks a path before each frame. Returns 0 when p->head is valid with its MAC address; 1 when the
 * neighbour is being resolved: the finished frame goes to net_hold(); or -EHOSTUNREACH when the
 * neighbour did not answer recently, or the route or the source address is gone. */
int net_path_check(struct net_stack *n, struct net_path *p, uint64_t now);
/* Takes a frame that waits for the neighbour of `p`, and gives it back through ops->release(). When
 * the queue of the neighbour is full, the oldest frame goes back with NULL. */
void net_hold(struct net_stack *n, const struct net_path *p, void *frame);
/* Writes the Ethernet and IP headers for `payload_len` bytes to `at`, and returns their length in
 * bytes. `hw_cksum`: the port fills in the checksum of IPv4, and the field is 0. */
unsigned net_head_emit(uint8_t *at, const struct net_path *p, uint32_t payload_len, uint8_t ecn,
	uint16_t ip_id, bool hw_cksum);
/* Returns whether the headers of a path are those of Ethernet without VLAN and of IPv4. */
static inline bool
net_head_is_v4(const struct net_path *p)
{
	return p->l2_len == ETH_LEN && p->l3_len == IP4_LEN;
}
/* Does what net_head_emit() does without hw_cksum, for a path with net_head_is_v4(). */
static inline void
net_head_emit_v4(
	uint8_t *at, const struct net_path *p, uint32_t payload_len, uint8_t ecn, uint16_t ip_id)
{
	uint16_t total = htobe16((uint16_t)(IP4_LEN + payload_len)), id = htobe16(ip_id), sum;

	memcpy(at, p->head, ETH_LEN + IP4_LEN);
	memcpy(&sum, p->head + ETH_LEN + IP4_CKSUM_OFFSET, sizeof(sum));
	at[ETH_LEN + IP4_TOS_OFFSET] |= ecn;
	memcpy(at + ETH_LEN + IP4_TOTAL_OFFSET, &total, sizeof(total));
	memcpy(at + ETH_LEN + IP4_ID_OFFSET, &id, sizeof(id));
	sum = wire_sum_word_fold((uint64_t)sum + total + id + htobe16(ecn));
	memcpy(at + ETH_LEN + IP4_CKSUM_OFFSET, &sum, sizeof(sum));
}
/* Reports that the transport received data from its peer, which confirms the neighbour (RFC 4861
 * 7.3.1). */
void net_path_confirm(struct net_stack *n, const struct net_path *p, uint64_t now);

/* Processes a parsed frame with ARP, ICMP or ICMPv6. `frame` is the whole frame, of `len` bytes: an
 * echo reply returns its data. Answers go through ops->send(). Returns 0 or -reason; the refusal is
 * counted. */
int net_input(struct net_stack *n, uint64_t now, uint16_t port, const struct wire_pkt *pkt,
	const uint8_t *frame, size_t len);
/* As net_input(), for a copy of a frame that another stack with the same addresses processes: it
 * updates neighbours and reports ICMP errors, but answers nothing. */
int net_overhear(struct net_stack *n, uint64_t now, uint16_t port, const struct wire_pkt *pkt,
	const uint8_t *frame, size_t len);
/* Checks the addresses of an IP frame: the destination (MAC and IP) is one of ours, and the source
 * is valid. Returns 0 or -reason; the refusal is counted. net_input() includes this check. */
int net_accept(struct net_stack *n, uint16_t port, const struct wire_pkt *pkt);

/* Runs the timers that are due; the owner calls it once per turn of its loop. */
void net_poll(struct net_stack *n, uint64_t now);
/* Returns the time (ns) of the next necessary net_poll(), or SK_NEVER. */
uint64_t net_deadline(const struct net_stack *n);
/* Returns the counters, indexed by enum net_reason: net_reason_count entries. */
const uint64_t *net_counters(const struct net_stack *n);

/* A neighbour for display, on the interface (port, vlan). The MAC address is zeros until the
 * neighbour answers. */
struct net_neighbor_view {
	uint16_t port, vlan;
	uint8_t mac[6];
	struct sk_addr addr;
	const char *state; /* "reachable", "stale", "probing", "failed" or "static" */
};
/* Copies at most `max` neighbours to `out` and returns their number. */
unsigned net_neighbors(const struct net_stack *n, struct net_neighbor_view *out, unsigned max);

#define NET_REASONS(X)                                                                             \
	X(NET_NOT_FOR_US, SK_NORMAL, "a frame for another station or address")                     \
	X(NET_NO_INTERFACE, SK_NOTICE, "a frame on a VLAN that has no interface")                  \
	X(NET_SPOOFED, SK_WARNING, "a frame with one of our own addresses as its source")          \
	X(NET_BAD_SOURCE, SK_WARNING, "a frame whose source address is not that of a host")        \
	X(NET_ARP_IN, SK_NORMAL, "an ARP packet was received")                                     \
	X(NET_ND_IN, SK_NORMAL, "a neighbour discovery message was received")                      \
	X(NET_ND_BAD, SK_WARNING, "a neighbour discovery message that RFC 4861 7.1 refuses")       \
	X(NET_UNASKED, SK_NORMAL, "a neighbour's answer without a solicitation")                   \
	X(NET_ECHO, SK_NORMAL, "an echo request was answered")                                     \
	X(NET_ECHO_LIMIT, SK_NOTICE, "an echo request was not answered (rate limit)")              \
	X(NET_ANSWER_LIMIT, SK_NOTICE,                                                             \
		"an ARP request or a neighbour solicitation was not answered (rate limit)")        \
	X(NET_ICMP_ERROR, SK_NORMAL, "an ICMP error was passed to the transport")                  \
	X(NET_ICMP_OTHER, SK_NORMAL, "an ICMP message that Saker does not use")                    \
	X(NET_NEIGHBOR_FULL, SK_WARNING, "the neighbour table is full: an old entry was removed")  \
	X(NET_NEIGHBOR_FAILED, SK_WARNING, "a neighbour did not answer")                           \
	X(NET_HELD_DROPPED, SK_NOTICE, "a frame that waited for its neighbour was dropped")

SK_REASONS_DECLARE(net, NET_NONE, NET_REASONS)

#endif
