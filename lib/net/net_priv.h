/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables of the stack, and the functions that the files of lib/net share. */
#ifndef SAKER_NET_PRIV_H
#define SAKER_NET_PRIV_H

#include <errno.h>
#include <string.h>

#include "../base/bucket.h"
#include "../base/mem.h"
#include "../base/wheel.h"
#include "net.h"

#define NET_MS 1000000ULL
#define NET_S  (1000 * NET_MS)

/* Times and limits of RFC 4861 section 10. ARP entries have the same ones (RFC 1122 2.3.2.1
 * requires timeouts and polls). */
#define NET_RETRANS_TIMER     (1 * NET_S)
#define NET_MAX_SOLICIT       3 /* MAX_MULTICAST_SOLICIT and MAX_UNICAST_SOLICIT */
#define NET_DELAY_FIRST_PROBE (5 * NET_S)
#define NET_REACHABLE_TIME    (30 * NET_S)
#define NET_FAILED_TIME       (3 * NET_S) /* pause after a neighbour did not answer */
#define NET_MAX_RESOLVING     512         /* so that a scan cannot displace used neighbours */
#define NET_ECHO_RATE         1000        /* replies per second */
#define NET_ECHO_BURST        100
/* Answers to requests for our addresses: those of neighbours that a path uses, and all others. */
#define NET_ANSWER_RATE  5000 /* per second */
#define NET_ANSWER_BURST 512
#define NET_TTL          64
#define NET_ND_HOP_LIMIT 255
#define NET_POLL_BUDGET  64
#define NET_HASH_BITS    12
#define NET_FRAME_MAX    (ETH_MAX + 65535)

_Static_assert(NET_MAX_NEIGHBORS == 1 << NET_HASH_BITS, "one bucket per neighbour");

/* Reachability states (RFC 4861 7.3.2), and two more: a neighbour that did not answer, and one that
 * the user configured. */
enum nb_state {
	NB_FREE,
	NB_INCOMPLETE,
	NB_REACHABLE,
	NB_STALE,
	NB_DELAY,
	NB_PROBE,
	NB_FAILED,
	NB_STATIC,
};

/* Classes that decide which neighbour is removed for another. Each is a list in the order of use,
 * the oldest first. */
enum nb_class {
	NB_RESOLVING, /* incomplete or failed */
	NB_LEARNED,   /* from a received packet; no path uses it */
	NB_USED,      /* resolved, and used by a path */
	NB_PINNED,    /* configured by the user */
	NB_SPARE,     /* free entries */
	NB_CLASSES,
};

struct neighbor {
	/* Read by the fast path. 0 while nothing may be sent to the neighbour. */
	uint32_t generation;
	uint32_t incarnation; /* counts the uses of this entry, from bit NET_HASH_BITS on */
	uint8_t mac[6];
	uint8_t state; /* enum nb_state */
	uint8_t class; /* enum nb_class */
	int16_t ifindex;
	uint8_t solicits; /* solicitations sent in this state */
	uint8_t nheld;
	uint64_t confirmed; /* time of the last confirmation, ns */
	struct sk_addr addr;
	struct sk_timer timer;
	uint16_t hash_next;  /* index + 1 */
	uint16_t next, prev; /* in the list of its class; index + 1 */
	uint16_t bucket;
	void *held[NET_NEIGHBOR_HELD]; /* the oldest first */
};

struct nb_list {
	uint16_t head, tail; /* index + 1 */
	uint16_t count;
};

struct net_ifaddr {
	struct sk_addr addr;
	uint8_t prefix; /* bits of the 128-bit form */
	bool shared;    /* added by net_addr_share() */
};

struct net_if {
	uint16_t port, vlan;
	uint8_t mac[6];
	bool loop;
	uint8_t naddrs;
	uint32_t mtu;
	struct net_ifaddr addrs[NET_MAX_ADDRS];
};

struct net_route {
	struct sk_addr dst, gateway; /* gateway ::: a connected route */
	uint8_t prefix;
	int16_t ifindex; /* of connected routes only */
};

struct net_stack {
	struct net_ops ops;
	void *ctx;
	struct sk_key key;
	uint64_t counters[net_reason_count];
	struct sk_wheel wheel;

	unsigned nifs;
	int loop; /* ifindex, or -1 */
	/* port << 16 | vlan, apart from `ifs` so that a search reads one cache line. */
	uint32_t if_keys[NET_MAX_IFS];
	struct net_if ifs[NET_MAX_IFS];

	unsigned nroutes;
	struct net_route routes[NET_MAX_ROUTES]; /* the longest prefix first */

	uint32_t generation; /* last value given to a neighbour */
	uint64_t flow;       /* number of paths, the input of flow labels */
	struct nb_list lists[NB_CLASSES];
	uint16_t buckets[NET_MAX_NEIGHBORS]; /* index + 1 */
	struct neighbor neighbors[NET_MAX_NEIGHBORS];

	bool observing; /* another stack answers this frame */
	/* Buckets (base/bucket.h) of echo replies, and of answers by ARP and neighbour discovery:
	 * [1]: to neighbours that a path uses. */
	uint64_t echo_full, answers_full[2];
	uint8_t frame[NET_FRAME_MAX]; /* buffer for frames that the stack builds */
};

/* Contents of a received ARP or neighbour discovery message about a neighbour. */
struct nb_news {
	const uint8_t *mac; /* NULL: the message has no MAC address */
	bool solicited;     /* the message answers a solicitation of ours */
	bool override;      /* the message may replace the MAC address */
};

static inline bool
net_mac_is_multicast(const uint8_t mac[6])
{
	return mac[0] & 1;
}

/* net.c: returns true when the address may belong to one host on a link (RFC 1122 3.2.1.3, RFC 4291
 * 2.5). */
bool net_addr_is_host(const struct sk_addr *a);

/* if.c: returns true when the interface has the address; the loopback interface has those of all.
 * Shared addresses (net_addr_share()) do not count. */
bool net_if_owns(const struct net_stack *n, int ifindex, const struct sk_addr *addr);
/* The same, with shared addresses: frames of the interface may come from the address, or go to
 * it. */
bool net_if_has(const struct net_stack *n, int ifindex, const struct sk_addr *addr);
/* Returns true when any interface has the address, shared or not. */
bool net_has(const struct net_stack *n, const struct sk_addr *addr);
/* Returns the first interface with that address, which is not shared, or -1. */
int net_if_owner(const struct net_stack *n, const struct sk_addr *addr);
/* Returns a source address for packets to `dst` (RFC 6724 rules 1, 2 and 8), or NULL. */
const struct sk_addr *net_if_source(
	const struct net_stack *n, int ifindex, const struct sk_addr *dst);
/* Return the solicited-node group of an address (RFC 4291 2.7.1), and the MAC address of a group
 * (RFC 2464 7). */
struct sk_addr net_solicited_node(const struct sk_addr *addr);
void net_multicast_mac(uint8_t mac[6], const struct sk_addr *group);

/* route.c: the next hop of a packet. */
struct net_hop {
	int ifindex;
	struct sk_addr addr; /* address of the neighbour */
};
/* Finds the next hop to `dst`. `src` is one of our addresses, or unspecified. Returns 0 or
 * -ENETUNREACH. */
int net_route_find(const struct net_stack *n, const struct sk_addr *dst, const struct sk_addr *src,
	struct net_hop *hop);
/* Add and remove the connected route of an address; `prefix` counts bits of the 128-bit form. */
int net_route_connect(
	struct net_stack *n, int ifindex, const struct sk_addr *addr, unsigned prefix);
void net_route_disconnect(
	struct net_stack *n, int ifindex, const struct sk_addr *addr, unsigned prefix);

/* neighbor.c: returns the neighbour, or NULL. */
struct neighbor *net_nb_find(struct net_stack *n, int ifindex, const struct sk_addr *addr);
/* Finds or makes a neighbour for a path; never returns NULL. */
struct neighbor *net_nb_get(struct net_stack *n, int ifindex, const struct sk_addr *addr);
/* Puts all entries into NB_SPARE. */
void net_nb_init(struct net_stack *n);
/* Runs the timer of a neighbour. */
void net_nb_fire(void *ctx, struct sk_timer *t, uint64_t now);
/* Notes that a packet is sent to the neighbour: solicits it, or moves it from STALE to DELAY.
 * Returns 0 when its MAC address is valid, 1 while it is being resolved, or -EHOSTUNREACH. */
int net_nb_use(struct net_stack *n, struct neighbor *nb, uint64_t now);
/* Stores the MAC address that the sender of a request or a solicitation gave. */
void net_nb_learn(struct net_stack *n, int ifindex, const struct sk_addr *addr,
	const uint8_t mac[6], uint64_t now);
/* Processes an answer (RFC 4861 7.2.5). */
void net_nb_answer(
	struct net_stack *n, struct neighbor *nb, const struct nb_news *news, uint64_t now);
/* Returns whether a request of `from` for one of our addresses may be answered: other hosts cannot
 * use up the answers for the neighbours that a path uses. */
bool net_nb_may_answer(struct net_stack *n, int ifindex, const struct sk_addr *from, uint64_t now);
/* Notes that the neighbour is reachable (RFC 4861 7.3.1). */
void net_nb_confirm(struct net_stack *n, struct neighbor *nb, uint64_t now);
/* Gives the waiting frames back with NULL. */
void net_nb_drop_held(struct net_stack *n, struct neighbor *nb);
/* Changes all generations, so that each path is resolved again. */
void net_nb_touch_all(struct net_stack *n);

static inline uint32_t
net_nb_index(const struct net_stack *n, const struct neighbor *nb)
{
	return (uint32_t)(nb - n->neighbors);
}

/* Returns a handle, which is not valid any more when the entry is used for another neighbour. */
static inline uint32_t
net_nb_handle(const struct net_stack *n, const struct neighbor *nb)
{
	return nb->incarnation | net_nb_index(n, nb);
}

static inline struct neighbor *
net_nb_of_handle(struct net_stack *n, uint32_t handle)
{
	struct neighbor *nb = &n->neighbors[handle % NET_MAX_NEIGHBORS];

	return net_nb_handle(n, nb) == handle && nb->state != NB_FREE ? nb : NULL;
}

/* arp.c, nd.c. The solicit functions request a neighbour's MAC address: from all stations, or from
 * `mac` only. The announce functions announce one of our addresses. */
void net_arp_solicit(
	struct net_stack *n, int ifindex, const struct sk_addr *target, const uint8_t *mac);
void net_arp_announce(struct net_stack *n, int ifindex, const struct sk_addr *addr);
int net_arp_input(struct net_stack *n, uint64_t now, int ifindex, const struct wire_pkt *pkt);
void net_nd_solicit(
	struct net_stack *n, int ifindex, const struct sk_addr *target, const uint8_t *mac);
void net_nd_announce(struct net_stack *n, int ifindex, const struct sk_addr *addr);
int net_nd_input(struct net_stack *n, uint64_t now, int ifindex, const struct wire_pkt *pkt);

/* icmp.c */
int net_icmp_input(struct net_stack *n, uint64_t now, int ifindex, const struct wire_pkt *pkt,
	const uint8_t *frame, size_t len);
/* Writes Ethernet and IP headers to n->frame; returns their length in bytes. */
unsigned net_frame_head(
	struct net_stack *n, int ifindex, const uint8_t dst_mac[6], const struct wire_ip *ip);

#endif
