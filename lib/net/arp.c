/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ARP (RFC 826), with the announcements of RFC 5227. A request for one of our addresses is
 * answered, and its sender becomes a neighbour. An announcement corrects an existing neighbour and
 * adds none. A reply without a request changes nothing.
 */
#include "net_priv.h"

static const uint8_t broadcast[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

static void
arp_send(struct net_stack *n, int ifindex, const uint8_t dst[6], const struct wire_arp *arp)
{
	const struct net_if *ifp = &n->ifs[ifindex];
	struct wire_eth eth = {.type = ETH_ARP, .vlan = ifp->vlan};
	unsigned len;

	memcpy(eth.dst, dst, 6);
	memcpy(eth.src, ifp->mac, 6);
	len = wire_eth_emit(n->frame, &eth);
	len += wire_arp_emit(n->frame + len, arp);
	n->ops.send(n->ctx, ifp->port, n->frame, len);
}

void
net_arp_solicit(struct net_stack *n, int ifindex, const struct sk_addr *target, const uint8_t *mac)
{
	const struct sk_addr *src = net_if_source(n, ifindex, target);
	struct wire_arp arp = {.op = ARP_REQUEST, .tpa = *target};

	if (src == NULL)
		return;
	arp.spa = *src;
	memcpy(arp.sha, n->ifs[ifindex].mac, 6);
	arp_send(n, ifindex, mac != NULL ? mac : broadcast, &arp);
}

void
net_arp_announce(struct net_stack *n, int ifindex, const struct sk_addr *addr)
{
	struct wire_arp arp = {.op = ARP_REQUEST, .spa = *addr, .tpa = *addr};

	memcpy(arp.sha, n->ifs[ifindex].mac, 6);
	arp_send(n, ifindex, broadcast, &arp);
}

static void
arp_reply(struct net_stack *n, int ifindex, const struct wire_arp *in)
{
	struct wire_arp arp = {.op = ARP_REPLY, .spa = in->tpa, .tpa = in->spa};

	memcpy(arp.sha, n->ifs[ifindex].mac, 6);
	memcpy(arp.tha, in->sha, 6);
	arp_send(n, ifindex, in->sha, &arp);
}

static int
arp_request(struct net_stack *n, uint64_t now, int ifindex, const struct wire_arp *arp)
{
	struct neighbor *nb;

	if (!net_if_owns(n, ifindex, &arp->tpa)) {
		/* An announcement, or a request for another host: it only corrects an existing
		 * neighbour. */
		nb = net_nb_find(n, ifindex, &arp->spa);
		if (nb == NULL)
			return -NET_NOT_FOR_US;
		net_nb_answer(n, nb, &(struct nb_news){.mac = arp->sha, .override = true}, now);
		return 0;
	}
	/* RFC 5227 2.1.1: the sender of a probe has no address yet. */
	if (!sk_addr_is_any(&arp->spa))
		net_nb_learn(n, ifindex, &arp->spa, arp->sha, now);
	if (n->observing)
		return 0;
	if (!net_nb_may_answer(n, ifindex, &arp->spa, now))
		return -NET_ANSWER_LIMIT;
	arp_reply(n, ifindex, arp);
	return 0;
}

int
net_arp_input(struct net_stack *n, uint64_t now, int ifindex, const struct wire_pkt *pkt)
{
	const struct wire_arp *arp = &pkt->arp;
	bool announced = sk_addr_eq(&arp->spa, &arp->tpa);
	struct neighbor *nb;
	bool solicited;

	sk_count(n->counters, NET_ARP_IN);
	if (net_mac_is_multicast(arp->sha))
		return -NET_BAD_SOURCE;
	if (net_if_owns(n, ifindex, &arp->spa))
		return -NET_SPOOFED;
	if (!sk_addr_is_any(&arp->spa) && !net_addr_is_host(&arp->spa))
		return -NET_BAD_SOURCE;
	if (arp->op == ARP_REQUEST)
		return arp_request(n, now, ifindex, arp);
	if (arp->op != ARP_REPLY)
		return -NET_NOT_FOR_US;
	nb = net_nb_find(n, ifindex, &arp->spa);
	if (nb == NULL)
		return -NET_UNASKED;
	solicited = (nb->state == NB_INCOMPLETE || nb->state == NB_PROBE) &&
		    memcmp(pkt->eth.dst, n->ifs[ifindex].mac, 6) == 0 &&
		    net_if_owns(n, ifindex, &arp->tpa);
	if (!solicited && !announced)
		return -NET_UNASKED;
	net_nb_answer(n, nb,
		&(struct nb_news){.mac = arp->sha, .solicited = solicited, .override = true}, now);
	return 0;
}
