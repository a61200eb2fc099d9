/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzzes whole frames. The first byte of an input is the part of the frame that is in the head
 * (255: all of it). An accepted header lies within the frame, and is the same after emit and parse.
 */
#include "fuzz.h"

#include "../../lib/wire/plain.h"
#include "../../lib/wire/wire_priv.h"

static void
again_eth(const struct wire_eth *eth)
{
	struct wire_eth back;
	uint8_t p[ETH_MAX];
	unsigned n = wire_eth_emit(p, eth);

	CLAIM(wire_eth_parse(&back, p, n) == (int)n);
	CLAIM(memcmp(back.dst, eth->dst, 6) == 0 && memcmp(back.src, eth->src, 6) == 0);
	CLAIM(back.type == eth->type && back.vlan == eth->vlan && back.pcp == eth->pcp);
}

static void
again_ip(const struct wire_ip *ip)
{
	size_t len = IP_MAX + ip->payload_len;
	uint8_t *p = calloc(1, len);
	bool v4 = sk_addr_is_v4(&ip->dst);
	struct wire_ip back;
	int n;

	CLAIM(p != NULL);
	n = (int)wire_ip_emit(p, ip);
	CLAIM(n == (v4 ? IP4_LEN : IP6_LEN));
	CLAIM((v4 ? wire_ip4_parse(&back, p, len) : wire_ip6_parse(&back, p, len)) == n);
	CLAIM(sk_addr_eq(&back.src, &ip->src) && sk_addr_eq(&back.dst, &ip->dst));
	CLAIM(back.proto == ip->proto && back.ttl == ip->ttl && back.dscp == ip->dscp);
	CLAIM(back.ecn == ip->ecn && back.id == ip->id && back.flow == ip->flow);
	CLAIM(back.payload_len == ip->payload_len);
	free(p);
}

static void
again_tcp(const struct wire_tcp *tcp)
{
	struct wire_tcp back;
	uint8_t p[TCP_MAX];
	unsigned n = wire_tcp_emit(p, tcp);

	CLAIM(n <= TCP_MAX && wire_tcp_parse(&back, p, n) == (int)n);
	CLAIM(back.hdr_len == n);
	CLAIM(back.sport == tcp->sport && back.dport == tcp->dport);
	CLAIM(back.seq == tcp->seq && back.ack == tcp->ack);
	CLAIM(back.flags == tcp->flags && back.window == tcp->window);
	CLAIM(back.mss == tcp->mss && back.wscale == tcp->wscale);
	CLAIM(back.sack_ok == tcp->sack_ok && back.ts == tcp->ts);
	CLAIM(back.ts_val == tcp->ts_val && back.ts_ecr == tcp->ts_ecr);
	/* The padding for alignment may leave no room for a block. */
	CLAIM(back.nsack <= tcp->nsack && tcp->nsack <= TCP_MAX_SACK);
	CLAIM(back.nsack == tcp->nsack || n > TCP_MAX - 8);
	for (unsigned i = 0; i < back.nsack; i++)
		CLAIM(back.sack[i].left == tcp->sack[i].left &&
			back.sack[i].right == tcp->sack[i].right);
}

static void
again_udp(const struct wire_udp *udp)
{
	static uint8_t p[UDP_LEN + UINT16_MAX];
	size_t len = UDP_LEN + udp->payload_len;
	struct wire_udp back;

	CLAIM(wire_udp_emit(p, udp) == UDP_LEN);
	CLAIM(wire_udp_parse_part(&back, p, len, len) == UDP_LEN);
	CLAIM(back.sport == udp->sport && back.dport == udp->dport);
	CLAIM(back.payload_len == udp->payload_len && back.checksum == udp->checksum);
}

static void
again_icmp(const struct wire_icmp *icmp, const struct wire_ip *ip)
{
	bool echo = icmp->kind == ICMP_ECHO_REQUEST || icmp->kind == ICMP_ECHO_REPLY;
	bool nd = icmp->kind == ICMP_NEIGHBOR_SOLICIT || icmp->kind == ICMP_NEIGHBOR_ADVERT;
	struct wire_icmp back;
	uint8_t p[ICMP_ND_LEN];
	unsigned n;

	if (!echo && !nd)
		return;
	n = wire_icmp_emit(p, icmp, !sk_addr_is_v4(&ip->dst));
	wire_icmp_checksum(p, n, &ip->src, &ip->dst);
	CLAIM(wire_icmp_parse(&back, ip, p, n) > 0);
	/* The records were cleared before they were filled, so their bytes can be compared. */
	CLAIM(memcmp(&back, icmp, sizeof(back)) == 0);
}

static void
again_arp(const struct wire_arp *arp, const uint8_t *was)
{
	uint8_t p[ARP_LEN];

	CLAIM(wire_arp_emit(p, arp) == ARP_LEN);
	CLAIM(memcmp(p, was, ARP_LEN) == 0);
}

/* Parses, and corrects a wrong checksum: otherwise few inputs would pass. */
static int
parse(struct wire_pkt *pkt, uint8_t *head, size_t head_len, size_t frame_len)
{
	int r = wire_pkt_parse(pkt, head, head_len, frame_len);

	if (r == -WIRE_IP_CHECKSUM) {
		uint8_t *ip = head + pkt->l3;
		uint16_t sum;

		memset(ip + 10, 0, 2);
		sum = wire_sum_fold(wire_sum(0, ip, (ip[0] & 15u) * 4));
		memcpy(ip + 10, &sum, 2);
		r = wire_pkt_parse(pkt, head, head_len, frame_len);
		CLAIM(r != -WIRE_IP_CHECKSUM);
	}
	if (r == -WIRE_ICMP_CHECKSUM) {
		wire_icmp_checksum(head + pkt->l4, pkt->ip.payload_len, &pkt->ip.src, &pkt->ip.dst);
		r = wire_pkt_parse(pkt, head, head_len, frame_len);
		CLAIM(r != -WIRE_ICMP_CHECKSUM);
	}
	return r;
}

/* Checks that a frame that wire_plain_parse() accepts has the same fields for wire_pkt_parse(), and
 * that it accepts each frame of this form. */
static void
plain_agrees(const uint8_t *head, size_t head_len, size_t frame_len)
{
	uint8_t emitted[2][TCP_MAX];
	struct wire_plain p;
	struct wire_pkt pkt;
	bool match = wire_plain_match(&p, head, head_len);
	int rc = wire_pkt_parse(&pkt, head, head_len, frame_len);

	if (!match || !wire_plain_parse(&p, head, frame_len)) {
		CLAIM(!match || rc < 0);
		return;
	}
	CLAIM(rc == 0 && pkt.eth.type == ETH_IPV4 && pkt.eth.vlan == ETH_NO_VLAN);
	CLAIM(pkt.ip.proto == IP_TCP && pkt.l4 == PLAIN_L4 && pkt.payload == PLAIN_LEN);
	CLAIM(pkt.payload_len == p.payload_len && pkt.ip.ecn == p.ecn);
	CLAIM(memcmp(&p.addrs, pkt.ip.src.b + 12, 4) == 0);
	CLAIM(memcmp((uint8_t *)&p.addrs + 4, pkt.ip.dst.b + 12, 4) == 0);
	CLAIM(p.ports == htobe32((uint32_t)pkt.tcp.sport << 16 | pkt.tcp.dport));
	/* All members from `sport` to `nsack` */
	CLAIM(memcmp(&p.tcp, &pkt.tcp, offsetof(struct wire_tcp, nsack) + 1) == 0);
	CLAIM(p.tcp.ts_val == pkt.tcp.ts_val && p.tcp.ts_ecr == pkt.tcp.ts_ecr);
	CLAIM(wire_plain_shape(&p.tcp) && wire_tcp_emit(emitted[0], &p.tcp) == p.tcp.hdr_len);
	wire_plain_emit(emitted[1], &p.tcp);
	CLAIM(memcmp(emitted[0], emitted[1], p.tcp.hdr_len) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct wire_pkt pkt;
	size_t frame_len, head_len;
	uint8_t *head;

	if (size == 0)
		return 0;
	frame_len = size - 1;
	head_len = frame_len * data[0] / 255;
	head = exact_copy(data + 1, head_len);
	if (parse(&pkt, head, head_len, frame_len) == 0) {
		CLAIM(pkt.l3 <= pkt.l4 && pkt.l4 <= pkt.payload && pkt.payload <= head_len);
		CLAIM(pkt.payload_len <= frame_len - pkt.payload);
		again_eth(&pkt.eth);
		if (pkt.eth.type == ETH_ARP) {
			again_arp(&pkt.arp, head + pkt.l3);
			free(head);
			return 0;
		}
		again_ip(&pkt.ip);
		if (pkt.ip.proto == IP_TCP)
			again_tcp(&pkt.tcp);
		else if (pkt.ip.proto == IP_UDP)
			again_udp(&pkt.udp);
		else
			again_icmp(&pkt.icmp, &pkt.ip);
	}
	plain_agrees(head, head_len, frame_len);
	free(head);
	return 0;
}
