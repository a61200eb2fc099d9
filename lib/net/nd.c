/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Neighbour discovery (RFC 4861), as far as a host needs it: solicitations and advertisements.
 * Routers are configured, so router advertisements are not used.
 */
#include "net_priv.h"

static const struct sk_addr all_nodes = {{0xff, 0x02, [15] = 0x01}};

static void
nd_send(struct net_stack *n, int ifindex, const uint8_t mac[6], const struct sk_addr *src,
	const struct sk_addr *dst, const struct wire_icmp *icmp)
{
	struct wire_ip ip = {
		.src = *src,
		.dst = *dst,
		.proto = IP_ICMP6,
		.ttl = NET_ND_HOP_LIMIT,
		.payload_len = ICMP_ND_LEN,
	};
	unsigned l4 = net_frame_head(n, ifindex, mac, &ip);
	unsigned len = wire_icmp_emit(n->frame + l4, icmp, true);

	wire_icmp_checksum(n->frame + l4, len, src, dst);
	n->ops.send(n->ctx, n->ifs[ifindex].port, n->frame, l4 + len);
}

void
net_nd_solicit(struct net_stack *n, int ifindex, const struct sk_addr *target, const uint8_t *mac)
{
	const struct sk_addr *src = net_if_source(n, ifindex, target);
	struct sk_addr dst = mac != NULL ? *target : net_solicited_node(target);
	struct wire_icmp ns = {
		.kind = ICMP_NEIGHBOR_SOLICIT, .target = *target, .has_lladdr = true};
	uint8_t group_mac[6];

	if (src == NULL)
		return;
	memcpy(ns.lladdr, n->ifs[ifindex].mac, 6);
	net_multicast_mac(group_mac, &dst);
	nd_send(n, ifindex, mac != NULL ? mac : group_mac, src, &dst, &ns);
}

static void
advertise(struct net_stack *n, int ifindex, const struct sk_addr *target, const uint8_t mac[6],
	const struct sk_addr *dst, bool solicited)
{
	struct wire_icmp na = {
		.kind = ICMP_NEIGHBOR_ADVERT,
		.target = *target,
		.has_lladdr = true,
		.solicited = solicited,
		.override = true,
	};

	memcpy(na.lladdr, n->ifs[ifindex].mac, 6);
	nd_send(n, ifindex, mac, target, dst, &na);
}

/* Sends an unsolicited advertisement (RFC 4861 7.2.6). */
void
net_nd_announce(struct net_stack *n, int ifindex, const struct sk_addr *addr)
{
	uint8_t mac[6];

	net_multicast_mac(mac, &all_nodes);
	advertise(n, ifindex, addr, mac, &all_nodes, false);
}

/* Checks a solicitation (RFC 4861 7.1.1). */
static bool
solicit_is_valid(const struct wire_ip *ip, const struct wire_icmp *ns)
{
	struct sk_addr group = net_solicited_node(&ns->target);

	if (ip->ttl != NET_ND_HOP_LIMIT || ns->code != 0 || sk_addr_is_multicast(&ns->target))
		return false;
	if (ns->has_lladdr && net_mac_is_multicast(ns->lladdr))
		return false;
	return !sk_addr_is_any(&ip->src) || (!ns->has_lladdr && sk_addr_eq(&ip->dst, &group));
}

/* Checks an advertisement (RFC 4861 7.1.2). */
static bool
advert_is_valid(const struct wire_ip *ip, const struct wire_icmp *na)
{
	if (ip->ttl != NET_ND_HOP_LIMIT || na->code != 0 || sk_addr_is_multicast(&na->target))
		return false;
	if (na->has_lladdr && net_mac_is_multicast(na->lladdr))
		return false;
	return !(na->solicited && sk_addr_is_multicast(&ip->dst));
}

/* Answers a solicitation (RFC 4861 7.2.3, 7.2.4). */
static int
solicit_input(struct net_stack *n, uint64_t now, int ifindex, const struct wire_pkt *pkt)
{
	const struct wire_icmp *ns = &pkt->icmp;
	const struct sk_addr *to = &pkt->ip.src;
	const uint8_t *mac = pkt->eth.src;
	uint8_t group_mac[6];

	if (!solicit_is_valid(&pkt->ip, ns))
		return -NET_ND_BAD;
	if (!net_if_owns(n, ifindex, &ns->target))
		return -NET_NOT_FOR_US;
	if (sk_addr_is_any(to)) {
		/* Another host tests whether one of our addresses is free: the answer goes to all
		 * nodes. */
		to = &all_nodes;
		net_multicast_mac(group_mac, to);
		mac = group_mac;
	} else if (ns->has_lladdr) {
		mac = ns->lladdr;
		net_nb_learn(n, ifindex, to, mac, now);
	}
	if (n->observing)
		return 0;
	if (!net_nb_may_answer(n, ifindex, &pkt->ip.src, now))
		return -NET_ANSWER_LIMIT;
	advertise(n, ifindex, &ns->target, mac, to, to != &all_nodes);
	return 0;
}

/* Processes an advertisement (RFC 4861 7.2.5). */
static int
advert_input(struct net_stack *n, uint64_t now, int ifindex, const struct wire_pkt *pkt)
{
	const struct wire_icmp *na = &pkt->icmp;
	struct nb_news news = {
		.mac = na->has_lladdr ? na->lladdr : NULL,
		.solicited = na->solicited,
		.override = na->override,
	};
	struct neighbor *nb;

	if (!advert_is_valid(&pkt->ip, na))
		return -NET_ND_BAD;
	if (net_if_owns(n, ifindex, &na->target))
		return -NET_SPOOFED;
	nb = net_nb_find(n, ifindex, &na->target);
	if (nb == NULL || nb->state == NB_FAILED)
		return -NET_UNASKED;
	net_nb_answer(n, nb, &news, now);
	return 0;
}

int
net_nd_input(struct net_stack *n, uint64_t now, int ifindex, const struct wire_pkt *pkt)
{
	sk_count(n->counters, NET_ND_IN);
	if (pkt->icmp.kind == ICMP_NEIGHBOR_SOLICIT)
		return solicit_input(n, now, ifindex, pkt);
	return advert_input(n, now, ifindex, pkt);
}
