/* SPDX-License-Identifier: BSD-3-Clause */
/* The stack as a whole: its creation, its timers, and the check of received frames. It counts the
 * frames that it refuses. */
#include "net_priv.h"

SK_REASONS_DEFINE(net, NET_NONE, NET_REASONS)

struct net_stack *
net_create(const struct net_ops *ops, void *ctx, uint64_t now)
{
	struct net_stack *n = sk_mem_alloc(sizeof(*n));

	if (n == NULL)
		return NULL;
	n->ops = *ops;
	n->ctx = ctx;
	n->loop = -1;
	sk_random(&n->key, sizeof(n->key));
	sk_wheel_init(&n->wheel, now);
	net_nb_init(n);
	return n;
}

void
net_destroy(struct net_stack *n)
{
	if (n == NULL)
		return;
	for (unsigned i = 0; i < NET_MAX_NEIGHBORS; i++)
		net_nb_drop_held(n, &n->neighbors[i]);
	sk_mem_free(n, sizeof(*n));
}

bool
net_addr_is_host(const struct sk_addr *a)
{
	static const uint8_t zero[15];

	if (sk_addr_is_v4(a))
		return a->b[12] != 0 && a->b[12] != 127 && a->b[12] < 224;
	/* All but groups, :: and ::1. */
	return a->b[0] != 0xff && (memcmp(a->b, zero, 15) != 0 || a->b[15] > 1);
}

static int
check_source(const struct net_stack *n, int ifindex, const struct wire_pkt *pkt)
{
	const struct wire_ip *ip = &pkt->ip;

	if (net_mac_is_multicast(pkt->eth.src))
		return -NET_BAD_SOURCE;
	if (n->ifs[ifindex].loop)
		return net_if_owner(n, &ip->src) >= 0 ? 0 : -NET_BAD_SOURCE;
	if (net_addr_is_host(&ip->src))
		return net_if_owner(n, &ip->src) < 0 ? 0 : -NET_SPOOFED;
	/* RFC 4862 5.4.2: a host without an address may check whether one is free. */
	if (ip->proto == IP_ICMP6 && pkt->icmp.kind == ICMP_NEIGHBOR_SOLICIT &&
		sk_addr_is_any(&ip->src))
		return 0;
	return -NET_BAD_SOURCE;
}

/* Returns true for a group that each IPv6 host belongs to (RFC 4291 2.8). */
static bool
in_group(const struct net_stack *n, int ifindex, const struct sk_addr *group)
{
	static const struct sk_addr all_nodes = {{0xff, 0x02, [15] = 0x01}};
	const struct net_if *ifp = &n->ifs[ifindex];

	if (sk_addr_eq(group, &all_nodes))
		return true;
	for (unsigned i = 0; i < ifp->naddrs; i++) {
		struct sk_addr g = net_solicited_node(&ifp->addrs[i].addr);

		if (!sk_addr_is_v4(&ifp->addrs[i].addr) && sk_addr_eq(group, &g))
			return true;
	}
	return false;
}

static int
check_destination(const struct net_stack *n, int ifindex, const struct wire_pkt *pkt)
{
	const struct sk_addr *dst = &pkt->ip.dst;
	uint8_t mac[6];

	if (net_if_has(n, ifindex, dst))
		return memcmp(pkt->eth.dst, n->ifs[ifindex].mac, 6) == 0 ? 0 : -NET_NOT_FOR_US;
	if (sk_addr_is_v4(dst) || !sk_addr_is_multicast(dst) || pkt->ip.proto != IP_ICMP6)
		return -NET_NOT_FOR_US;
	net_multicast_mac(mac, dst);
	if (memcmp(pkt->eth.dst, mac, 6) != 0 || !in_group(n, ifindex, dst))
		return -NET_NOT_FOR_US;
	return 0;
}

static int
accept_ip(const struct net_stack *n, int ifindex, const struct wire_pkt *pkt)
{
	int rc = check_destination(n, ifindex, pkt);

	return rc != 0 ? rc : check_source(n, ifindex, pkt);
}

static int
accept_arp(const struct net_stack *n, int ifindex, const struct wire_pkt *pkt)
{
	if (net_mac_is_multicast(pkt->eth.src))
		return -NET_BAD_SOURCE;
	if (net_mac_is_multicast(pkt->eth.dst))
		return 0;
	return memcmp(pkt->eth.dst, n->ifs[ifindex].mac, 6) == 0 ? 0 : -NET_NOT_FOR_US;
}

static int
counted(struct net_stack *n, int rc)
{
	if (rc < 0)
		sk_count(n->counters, (unsigned)-rc);
	return rc;
}

int
net_accept(struct net_stack *n, uint16_t port, const struct wire_pkt *pkt)
{
	int ifindex = net_if_index(n, port, pkt->eth.vlan);

	return counted(n, ifindex < 0 ? -NET_NO_INTERFACE : accept_ip(n, ifindex, pkt));
}

static int
net_frame_input(struct net_stack *n, uint64_t now, uint16_t port, const struct wire_pkt *pkt,
	const uint8_t *frame, size_t len)
{
	int ifindex = net_if_index(n, port, pkt->eth.vlan);
	int rc;

	if (ifindex < 0)
		return -NET_NO_INTERFACE;
	if (pkt->eth.type == ETH_ARP) {
		rc = accept_arp(n, ifindex, pkt);
		return rc != 0 ? rc : net_arp_input(n, now, ifindex, pkt);
	}
	rc = accept_ip(n, ifindex, pkt);
	if (rc != 0)
		return rc;
	if (pkt->ip.proto != IP_ICMP && pkt->ip.proto != IP_ICMP6)
		return -NET_NOT_FOR_US;
	return net_icmp_input(n, now, ifindex, pkt, frame, len);
}

int
net_input(struct net_stack *n, uint64_t now, uint16_t port, const struct wire_pkt *pkt,
	const uint8_t *frame, size_t len)
{
	return counted(n, net_frame_input(n, now, port, pkt, frame, len));
}

int
net_overhear(struct net_stack *n, uint64_t now, uint16_t port, const struct wire_pkt *pkt,
	const uint8_t *frame, size_t len)
{
	int rc;

	n->observing = true;
	rc = net_input(n, now, port, pkt, frame, len);
	n->observing = false;
	return rc;
}

void
net_poll(struct net_stack *n, uint64_t now)
{
	sk_wheel_poll(&n->wheel, now, NET_POLL_BUDGET, net_nb_fire, n);
}

uint64_t
net_deadline(const struct net_stack *n)
{
	return sk_wheel_next(&n->wheel);
}

const uint64_t *
net_counters(const struct net_stack *n)
{
	return n->counters;
}
