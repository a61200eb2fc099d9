/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of lib/net share: the stack's tables, and the calls that cross from one concern to
 * another. */
#ifndef SAKER_NET_PRIV_H
#define SAKER_NET_PRIV_H

#include <errno.h>
#include <string.h>

#include "../base/mem.h"
#include "../base/wheel.h"
#include "net.h"

#define NET_MS 1000000ULL
#define NET_S  (1000 * NET_MS)

/* RFC 4861 section 10; ARP entries live by the same clock (RFC 1122 2.3.2.1 asks for timeouts and
 * polls). */
#define NET_RETRANS_TIMER     (1 * NET_S)
#define NET_MAX_SOLICIT       3 /* MAX_MULTICAST_SOLICIT and MAX_UNICAST_SOLICIT */
#define NET_DELAY_FIRST_PROBE (5 * NET_S)
#define NET_REACHABLE_TIME    (30 * NET_S)
#define NET_FAILED_TIME       (3 * NET_S) /* how long a silent neighbour is not asked again */
#define NET_MAX_ASKING        512         /* so that a scan cannot push out what is in use */
#define NET_ECHO_RATE         1000        /* replies per second */
#define NET_ECHO_BURST        100
#define NET_TTL               64
#define NET_ND_HOP_LIMIT      255
#define NET_POLL_BUDGET       64
#define NET_HASH_BITS         12
#define NET_FRAME_MAX         (ETH_MAX + 65535)

_Static_assert(NET_MAX_NEIGHBORS == 1 << NET_HASH_BITS, "one bucket per neighbour");

/* Reachability (RFC 4861 7.3.2), with an end for the unreachable and a place for what the user
 * fixed. */
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

/* Who may be evicted for whom: each list is in order of use, oldest first. */
enum nb_class {
	NB_ASKING,  /* incomplete or failed */
	NB_LEARNED, /* heard of, never sent to */
	NB_USED,    /* resolved, and a path leads there */
	NB_PINNED,  /* static */
	NB_SPARE,   /* slots without a neighbour */
	NB_CLASSES,
};

struct neighbor {
	/* What the fast path reads. 0 while nothing may be sent there. */
	uint32_t generation;
	uint32_t incarnation; /* of this slot, in bits NET_HASH_BITS and up */
	uint8_t mac[6];
	uint8_t state; /* enum nb_state */
	uint8_t class; /* enum nb_class */
	int16_t ifindex;
	uint8_t asked; /* solicitations sent in this state */
	uint8_t nheld;
	uint64_t confirmed; /* ns: last sign of life */
	struct sk_addr addr;
	struct sk_timer timer;
	uint16_t hash_next;  /* index + 1 */
	uint16_t next, prev; /* in its class's list; index + 1 */
	uint16_t bucket;
	void *held[NET_NEIGHBOR_HELD]; /* oldest first */
};

struct nb_list {
	uint16_t head, tail; /* index + 1 */
	uint16_t count;
};

struct net_ifaddr {
	struct sk_addr addr;
	uint8_t prefix; /* bits of the 128-bit form */
	bool shared;    /* net_addr_share() */
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
	struct sk_addr dst, gateway; /* gateway ::, connected */
	uint8_t prefix;
	int16_t ifindex; /* connected routes only */
};

struct net_stack {
	struct net_ops ops;
	void *ctx;
	struct sk_key key;
	uint64_t counters[net_reason_count];
	struct sk_wheel wheel;

	unsigned nifs;
	int loop; /* ifindex, or -1 */
	/* port << 16 | vlan, apart so that a search reads one cache line */
	uint32_t if_keys[NET_MAX_IFS];
	struct net_if ifs[NET_MAX_IFS];

	unsigned nroutes;
	struct net_route routes[NET_MAX_ROUTES]; /* longest prefix first */

	uint32_t generation; /* the last one given out */
	uint64_t flow;       /* counts paths, to make flow labels from */
	struct nb_list lists[NB_CLASSES];
	uint16_t buckets[NET_MAX_NEIGHBORS]; /* index + 1 */
	struct neighbor neighbors[NET_MAX_NEIGHBORS];

	bool overhearing;             /* another stack answers this frame */
	uint64_t echo_full;           /* ns: when the echo bucket will be full again */
	uint8_t frame[NET_FRAME_MAX]; /* where answers are built */
};

/* A link-layer message that is news about a neighbour, ARP or NDP alike. */
struct nb_news {
	const uint8_t *mac; /* NULL: not said */
	bool solicited;     /* an answer to what we asked */
	bool override;      /* may replace a known MAC */
};

static inline bool
net_mac_is_multicast(const uint8_t mac[6])
{
	return mac[0] & 1;
}

static inline bool
net_is_link_local(const struct sk_addr *a)
{
	return a->b[0] == 0xfe && (a->b[1] & 0xc0) == 0x80;
}

/* The first `bits` bits of a and b agree. */
bool net_prefix_match(const struct sk_addr *a, const struct sk_addr *b, unsigned bits);
unsigned net_prefix_common(const struct sk_addr *a, const struct sk_addr *b);

/* net.c: may it name one host on a wire (RFC 1122 3.2.1.3, RFC 4291 2.5)? */
bool net_addr_is_host(const struct sk_addr *a);

/* if.c */
int net_if_find(const struct net_stack *n, uint16_t port, uint16_t vlan);
bool net_if_owns(const struct net_stack *n, int ifindex, const struct sk_addr *addr);
/* May frames of the interface come from there, or go there? Shared addresses as well. */
bool net_if_has(const struct net_stack *n, int ifindex, const struct sk_addr *addr);
/* The same of any interface. */
bool net_has(const struct net_stack *n, const struct sk_addr *addr);
/* The first interface with that address, or -1. */
int net_if_owner(const struct net_stack *n, const struct sk_addr *addr);
/* A source address for packets to `dst` (RFC 6724 rules 1, 2 and 8), NULL: none. */
const struct sk_addr *net_if_source(
	const struct net_stack *n, int ifindex, const struct sk_addr *dst);
/* RFC 4291 2.7.1, RFC 2464 7 */
struct sk_addr net_solicited_node(const struct sk_addr *addr);
void net_multicast_mac(uint8_t mac[6], const struct sk_addr *group);

/* route.c */
struct net_hop {
	int ifindex;
	struct sk_addr addr; /* the neighbour's */
};
/* `src` may be the unspecified address, or one of ours. Returns 0 or -ENETUNREACH. */
int net_route_find(const struct net_stack *n, const struct sk_addr *dst, const struct sk_addr *src,
	struct net_hop *hop);
int net_route_connect(
	struct net_stack *n, int ifindex, const struct sk_addr *addr, unsigned prefix);
void net_route_disconnect(
	struct net_stack *n, int ifindex, const struct sk_addr *addr, unsigned prefix);

/* neighbor.c */
struct neighbor *net_nb_find(struct net_stack *n, int ifindex, const struct sk_addr *addr);
/* Finds or makes one for a path; never NULL. */
struct neighbor *net_nb_get(struct net_stack *n, int ifindex, const struct sk_addr *addr);
void net_nb_init(struct net_stack *n);
void net_nb_fire(void *ctx, struct sk_timer *t, uint64_t now);
/* Something is sent to it: asks, or moves STALE to DELAY. 0: its MAC is good; 1: asking;
 * -EHOSTUNREACH. */
int net_nb_use(struct net_stack *n, struct neighbor *nb, uint64_t now);
/* A stranger told its MAC (an ARP request, a solicitation). */
void net_nb_learn(struct net_stack *n, int ifindex, const struct sk_addr *addr,
	const uint8_t mac[6], uint64_t now);
/* News from an answer; RFC 4861 7.2.5. */
void net_nb_answer(
	struct net_stack *n, struct neighbor *nb, const struct nb_news *news, uint64_t now);
void net_nb_confirm(struct net_stack *n, struct neighbor *nb, uint64_t now);
void net_nb_drop_held(struct net_stack *n, struct neighbor *nb);
/* Paths have to look again. */
void net_nb_touch_all(struct net_stack *n);

static inline uint32_t
net_nb_index(const struct net_stack *n, const struct neighbor *nb)
{
	return (uint32_t)(nb - n->neighbors);
}

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

/* arp.c, nd.c: asks for a neighbour's MAC, all stations or (with `mac`) one; announces an address
 * of ours. */
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
/* Puts Ethernet and IP headers into n->frame; returns how many bytes. */
unsigned net_frame_head(
	struct net_stack *n, int ifindex, const uint8_t dst_mac[6], const struct wire_ip *ip);

#endif
