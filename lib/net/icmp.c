/* SPDX-License-Identifier: BSD-3-Clause */
/* ICMP: echo requests are answered at a limited rate; errors that quote one of our packets go to
 * its transport. */
#include "net_priv.h"

unsigned
net_frame_head(struct net_stack *n, int ifindex, const uint8_t dst_mac[6], const struct wire_ip *ip)
{
	const struct net_if *ifp = &n->ifs[ifindex];
	struct wire_eth eth = {.vlan = ifp->vlan};
	unsigned len;

	eth.type = sk_addr_is_v4(&ip->dst) ? ETH_IPV4 : ETH_IPV6;
	memcpy(eth.dst, dst_mac, 6);
	memcpy(eth.src, ifp->mac, 6);
	len = wire_eth_emit(n->frame, &eth);
	return len + wire_ip_emit(n->frame + len, ip);
}

/* Answers an echo request (RFC 1122 3.2.2.6, RFC 4443 4.2). The reply takes the way of the
 * request. */
static int
echo(struct net_stack *n, uint64_t now, int ifindex, const struct wire_pkt *pkt,
	const uint8_t *frame, size_t len)
{
	bool v6 = !sk_addr_is_v4(&pkt->ip.dst);
	struct wire_icmp reply = pkt->icmp;
	struct wire_ip ip = {
		.src = pkt->ip.dst,
		.dst = pkt->ip.src,
		.proto = pkt->ip.proto,
		.ttl = NET_TTL,
		.payload_len = pkt->ip.payload_len,
	};
	uint32_t icmp_len = pkt->ip.payload_len;
	unsigned l4;

	if (icmp_len < ICMP_ECHO_LEN || pkt->l4 > len || icmp_len > len - pkt->l4 ||
		icmp_len + (v6 ? IP6_LEN : IP4_LEN) > n->ifs[ifindex].mtu)
		return -NET_ICMP_OTHER;
	if (n->observing)
		return 0;
	if (!sk_bucket_take(&n->echo_full, now, NET_S / NET_ECHO_RATE, NET_ECHO_BURST))
		return -NET_ECHO_LIMIT;
	reply.kind = ICMP_ECHO_REPLY;
	l4 = net_frame_head(n, ifindex, pkt->eth.src, &ip);
	wire_icmp_emit(n->frame + l4, &reply, v6);
	memcpy(n->frame + l4 + ICMP_ECHO_LEN, frame + pkt->l4 + ICMP_ECHO_LEN,
		icmp_len - ICMP_ECHO_LEN);
	wire_icmp_checksum(n->frame + l4, icmp_len, &ip.src, &ip.dst);
	n->ops.send(n->ctx, n->ifs[ifindex].port, n->frame, l4 + icmp_len);
	sk_count(n->counters, NET_ECHO);
	return 0;
}

int
net_icmp_input(struct net_stack *n, uint64_t now, int ifindex, const struct wire_pkt *pkt,
	const uint8_t *frame, size_t len)
{
	const struct net_if *ifp = &n->ifs[ifindex];
	const struct wire_icmp *icmp = &pkt->icmp;

	switch (icmp->kind) {
	case ICMP_NEIGHBOR_SOLICIT:
	case ICMP_NEIGHBOR_ADVERT:
		return net_nd_input(n, now, ifindex, pkt);
	case ICMP_ECHO_REQUEST:
		/* RFC 1122 3.2.2.6: an echo request to a group may stay unanswered; an answer would
		 * make us an amplifier. */
		if (sk_addr_is_multicast(&pkt->ip.dst))
			return -NET_ICMP_OTHER;
		return echo(n, now, ifindex, pkt, frame, len);
	case ICMP_TOO_BIG:
	case ICMP_UNREACHABLE:
		/* Only a packet that we sent can have caused an error. */
		if (net_if_owner(n, &icmp->quote.src) < 0)
			return -NET_ICMP_OTHER;
		sk_count(n->counters, NET_ICMP_ERROR);
		n->ops.icmp_error(n->ctx, ifp->port, ifp->vlan, icmp);
		return 0;
	case ICMP_ECHO_REPLY:
	case ICMP_ROUTER_ADVERT:
	case ICMP_OTHER:
		break;
	}
	return -NET_ICMP_OTHER;
}
