/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses a frame, from Ethernet to the transport header, in one pass. */
#include "wire_priv.h"

#include "../base/mem.h"

static int
parse_l4(struct wire_pkt *out, const uint8_t *l4, size_t held)
{
	size_t len = out->ip.payload_len;
	size_t readable = SK_MIN(held, len);
	int n;

	if (out->ip.proto == IP_TCP) {
		n = wire_tcp_parse(&out->tcp, l4, readable);
		if (n < 0)
			return n;
		out->payload_len = (uint32_t)(len - (size_t)n);
	} else if (out->ip.proto == IP_UDP) {
		n = wire_udp_parse_part(&out->udp, l4, readable, len);
		if (n < 0)
			return n;
		out->payload_len = out->udp.payload_len;
	} else if (out->ip.proto == IP_ICMP || out->ip.proto == IP_ICMP6) {
		if (readable < len)
			return -WIRE_SHORT;
		n = wire_icmp_parse(&out->icmp, &out->ip, l4, len);
		if (n < 0)
			return n;
		out->payload_len = (uint32_t)(len - (size_t)n);
	} else {
		return -WIRE_IP_PROTOCOL;
	}
	out->payload = (uint16_t)(out->l4 + n);
	return 0;
}

int
wire_pkt_parse(struct wire_pkt *out, const uint8_t *head, size_t head_len, size_t frame_len)
{
	size_t len = frame_len;
	size_t held = SK_MIN(head_len, frame_len);
	int n = wire_eth_parse(&out->eth, head, held);

	if (n < 0)
		return n;
	out->l3 = (uint16_t)n;
	held -= (size_t)n;
	len -= (size_t)n;
	if (out->eth.type == ETH_IPV4) {
		n = wire_ip4_parse_part(&out->ip, head + out->l3, held, len);
	} else if (out->eth.type == ETH_IPV6) {
		n = wire_ip6_parse_part(&out->ip, head + out->l3, held, len);
	} else if (out->eth.type == ETH_ARP) {
		n = wire_arp_parse(&out->arp, head + out->l3, held);
		out->l4 = out->l3;
		out->payload = out->l3;
		out->payload_len = 0;
		return n < 0 ? n : 0;
	} else {
		return -WIRE_ETHERTYPE;
	}
	if (n < 0)
		return n;
	out->l4 = (uint16_t)(out->l3 + n);
	return parse_l4(out, head + out->l4, held - (size_t)n);
}
