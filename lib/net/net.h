/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What lies between a port and a transport: interfaces with their addresses, routes, neighbours
 * (ARP, RFC 826; neighbour discovery, RFC 4861), ICMP echo and errors, and the bytes in front of a
 * transport header. No clock, no I/O, no transport.
 *
 * One net_stack belongs to one transport stage. Frames that wait for a neighbour are opaque
 * pointers that go back by ops->release.
 */
#ifndef SAKER_NET_H
#define SAKER_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../base/addr.h"
#include "../base/prf.h"
#include "../base/reason.h"
#include "../wire/wire.h"

#define NET_MAX_IFS       64 /* a port and a VLAN make an interface */
#define NET_MAX_ADDRS     16 /* per interface, link-local included */
#define NET_MAX_ROUTES    256
#define NET_MAX_NEIGHBORS 4096
#define NET_NEIGHBOR_HELD 8 /* frames that wait for one neighbour */

struct net_stack;

struct net_ops {
	/* Sends a complete frame of `len` bytes out of `port`; the bytes are copied before it
	 * returns. */
	void (*send)(void *ctx, uint16_t port, const uint8_t *frame, size_t len);
	/* A held frame may go: `dst_mac` is to be written over its first 6 bytes. NULL: the
	 * neighbour did not answer; drop it (it is counted already). */
	void (*release)(void *ctx, uint16_t port, void *frame, const uint8_t *dst_mac);
	/* ICMP errors that quote a transport's packet: kind ICMP_TOO_BIG or ICMP_UNREACHABLE.
	 * `vlan` as in wire_eth. */
	void (*icmp_error)(void *ctx, uint16_t port, uint16_t vlan, const struct wire_icmp *icmp);
};

struct net_stack *net_create(const struct net_ops *ops, void *ctx, uint64_t now);
void net_destroy(struct net_stack *n); /* releases held frames with NULL */

/* An interface: a port, and a VLAN or none. mtu: IP packet bytes, 1280..65535. Returns its index,
 * or -EEXIST, -ENOSPC, -EINVAL. An IPv6 link-local address is made from the MAC. */
int net_if_add(
	struct net_stack *n, uint16_t port, uint16_t vlan, const uint8_t mac[6], uint32_t mtu);
/* An internal port on which our own addresses meet: a path to one of them leads here, and only here
 * do they count as a source. Its frames have MAC addresses of zeros. At most one. Returns its
 * index, or as net_if_add. */
int net_if_add_loop(struct net_stack *n, uint16_t port, uint32_t mtu);
/* A unicast address with its prefix length (a connected route comes with it). */
int net_addr_add(struct net_stack *n, int ifindex, const struct sk_addr *addr, unsigned prefix,
	uint64_t now);
/* The same, of an address that somebody else on the link answers for, and that others have, too
 * (the outer address of a tunnel that several hosts behind one station share). Frames to it are
 * taken and a path may have it as its source; but nothing is announced, nobody who asks for it is
 * answered, nothing is asked in its name, and a path that leads to it leads to the link. */
int net_addr_share(struct net_stack *n, int ifindex, const struct sk_addr *addr, unsigned prefix);
int net_addr_del(struct net_stack *n, int ifindex, const struct sk_addr *addr);
/* Longest prefix wins. The gateway must be on a connected route. */
int net_route_add(struct net_stack *n, const struct sk_addr *dst, unsigned prefix,
	const struct sk_addr *gateway);
/* A fixed neighbour; never asked for. */
int net_neighbor_add(
	struct net_stack *n, int ifindex, const struct sk_addr *addr, const uint8_t mac[6]);
/* Is `addr` one of the addresses of the interface (port, vlan)? -1: no, else the ifindex. */
int net_is_local(
	const struct net_stack *n, uint16_t port, uint16_t vlan, const struct sk_addr *addr);

/* How a connection's frames start. Kept by the connection, checked by `generation` once per
 * frame. */
struct net_path {
	uint32_t generation; /* 0: not yet resolved */
	int16_t ifindex;
	uint16_t port;
	uint32_t mtu;
	uint32_t neighbor; /* internal */
	uint8_t l2_len, l3_len;
	/* Ethernet and IP headers, all but length, id, ECN and IPv4 checksum */
	uint8_t head[ETH_MAX + IP_MAX];
};

/* Chooses route and source address. `src` is in/out: the unspecified address asks for a choice.
 * Returns 0 or -ENETUNREACH, -EADDRNOTAVAIL. */
int net_path_init(struct net_stack *n, struct net_path *p, struct sk_addr *src,
	const struct sk_addr *dst, uint8_t proto, uint64_t now);
/* Before each frame. 0: p->head is good, MAC included. 1: the neighbour is being asked; the
 * finished frame goes to net_hold(). -EHOSTUNREACH: it did not answer lately, or the path's route
 * or source address is gone. */
int net_path_check(struct net_stack *n, struct net_path *p, uint64_t now);
/* The net takes `frame` and gives it back by ops->release; when its queue is full, the oldest goes
 * back first with NULL. */
void net_hold(struct net_stack *n, const struct net_path *p, void *frame);
/* Writes Ethernet and IP headers at `at` for `payload_len` bytes behind them; returns how many
 * bytes. IPv4's checksum is written, or left 0 when the port fills it in. */
unsigned net_head_emit(uint8_t *at, const struct net_path *p, uint32_t payload_len, uint8_t ecn,
	uint16_t ip_id, bool hw_cksum);
/* The transport heard from its peer: the neighbour is alive (RFC 4861 7.3.1). */
void net_path_confirm(struct net_stack *n, const struct net_path *p, uint64_t now);

/* ARP, ICMP and ICMPv6 frames, parsed. `frame` is the whole frame (an echo reply sends its data
 * back; at most `len` bytes are read). Answers go out through ops->send. Returns 0 or -reason; the
 * refusal is counted already. */
int net_input(struct net_stack *n, uint64_t now, uint16_t port, const struct wire_pkt *pkt,
	const uint8_t *frame, size_t len);
/* As net_input(), for a copy of a frame that another stack with the same addresses has had: what it
 * tells about neighbours is noted and an error goes up, but nothing is answered. */
int net_overhear(struct net_stack *n, uint64_t now, uint16_t port, const struct wire_pkt *pkt,
	const uint8_t *frame, size_t len);
/* A destination check for any IP frame: is it for us (MAC and address), and can its source be? 0 or
 * -reason, counted already. net_input does it by itself. */
int net_accept(struct net_stack *n, uint16_t port, const struct wire_pkt *pkt);

void net_poll(struct net_stack *n, uint64_t now);
uint64_t net_deadline(const struct net_stack *n);
const uint64_t *net_counters(const struct net_stack *n);

/* For people: a neighbour on the interface (port, vlan). The MAC is zeros until it has answered. */
struct net_neighbor_view {
	uint16_t port, vlan;
	uint8_t mac[6];
	struct sk_addr addr;
	const char *state; /* "reachable", "stale", "probing", "failed" or "static" */
};
/* How many came to out[0..max). */
unsigned net_neighbors(const struct net_stack *n, struct net_neighbor_view *out, unsigned max);

#define NET_REASONS(X)                                                                             \
	X(NET_NOT_FOR_US, SK_NORMAL, "a frame for another station or address")                     \
	X(NET_NO_INTERFACE, SK_NOTICE, "a frame on a VLAN that has no interface")                  \
	X(NET_SPOOFED, SK_WARNING, "a frame that claims one of our own addresses as its source")   \
	X(NET_BAD_SOURCE, SK_WARNING, "a frame whose source address names no host")                \
	X(NET_ARP_IN, SK_NORMAL, "an ARP packet came")                                             \
	X(NET_ND_IN, SK_NORMAL, "a neighbour discovery message came")                              \
	X(NET_ND_BAD, SK_WARNING, "a neighbour discovery message that RFC 4861 7.1 refuses")       \
	X(NET_UNASKED, SK_NORMAL, "a neighbour's answer that nobody had asked for")                \
	X(NET_ECHO, SK_NORMAL, "an echo request was answered")                                     \
	X(NET_ECHO_LIMIT, SK_NOTICE, "an echo request was not answered (rate limit)")              \
	X(NET_ICMP_ERROR, SK_NORMAL, "an ICMP error was handed to the transport")                  \
	X(NET_ICMP_OTHER, SK_NORMAL, "an ICMP message that nobody here needs")                     \
	X(NET_NEIGHBOR_FULL, SK_WARNING, "the neighbour table is full; an old entry went")         \
	X(NET_NEIGHBOR_FAILED, SK_WARNING, "a neighbour did not answer")                           \
	X(NET_HELD_DROPPED, SK_NOTICE, "a frame that waited for its neighbour was dropped")

SK_REASONS_DECLARE(net, NET_NONE, NET_REASONS)

#endif
