/* SPDX-License-Identifier: BSD-3-Clause */
/* Whole frames: offsets, lengths, and each place at which a frame may end. */
#include "frames.h"
#include "vector.h"

static int
parse(struct wire_pkt *pkt, const char *frame)
{
	struct bytes v = hex(frame);
	uint8_t *p = exact(&v, v.len);
	int r = wire_pkt_parse(pkt, p, v.len, v.len);

	free(p);
	return r;
}

Test(pkt, tcp_over_ipv4)
{
	struct wire_pkt pkt;

	cr_assert_eq(parse(&pkt, F_TCP4), 0);
	cr_assert_eq(pkt.eth.type, ETH_IPV4);
	cr_assert_eq(pkt.l3, 14);
	cr_assert_eq(pkt.l4, 34);
	cr_assert_eq(pkt.payload, 66);
	cr_assert_eq(pkt.payload_len, 5);
	cr_assert(addr_is(&pkt.ip.src, "192.0.2.1"));
	cr_assert_eq(pkt.ip.ecn, IP_ECN_ECT0);
	cr_assert_eq(pkt.tcp.flags, TCP_PSH | TCP_ACK);
	cr_assert_eq(pkt.tcp.ts_val, 0x11223344);
}

Test(pkt, syn_over_ipv6)
{
	struct wire_pkt pkt;

	cr_assert_eq(parse(&pkt, F_SYN6), 0);
	cr_assert_eq(pkt.l4, 54);
	cr_assert_eq(pkt.payload, 94);
	cr_assert_eq(pkt.payload_len, 0);
	cr_assert_eq(pkt.ip.flow, 0xabcde);
	cr_assert_eq(pkt.tcp.flags, TCP_SYN | TCP_ECE | TCP_CWR);
	cr_assert_eq(pkt.tcp.mss, 1460);
}

Test(pkt, tcp_behind_ipv4_options_and_with_sack)
{
	struct wire_pkt pkt;

	cr_assert_eq(parse(&pkt, F_OPT4), 0);
	cr_assert_eq(pkt.l4, 38);
	cr_assert_eq(pkt.payload, 58);
	cr_assert_eq(parse(&pkt, F_SACK4), 0);
	cr_assert_eq(pkt.tcp.nsack, 3);
}

Test(pkt, tcp_checksum_over_pseudo_header_and_segment_rfc9293_3_1)
{
	static const char *const frame[] = {F_TCP4, F_SYN6, F_SACK4, F_OPT4};
	struct wire_pkt pkt;

	for (unsigned i = 0; i < sizeof(frame) / sizeof(frame[0]); i++) {
		struct bytes v = hex(frame[i]);
		uint32_t sum;

		cr_assert_eq(wire_pkt_parse(&pkt, v.b, v.len, v.len), 0);
		sum = wire_pseudo_sum(&pkt.ip.src, &pkt.ip.dst, IP_TCP, pkt.ip.payload_len);
		sum = wire_sum(sum, v.b + pkt.l4, pkt.ip.payload_len);
		cr_assert_eq(wire_sum_fold(sum), 0, "frame %u", i);
	}
}

Test(pkt, udp_in_a_vlan_with_padding)
{
	struct bytes v = hex(F_UDP4_VLAN);
	struct wire_pkt pkt;

	cr_assert_eq(parse(&pkt, F_UDP4_VLAN), 0);
	cr_assert_eq(pkt.eth.vlan, 100);
	cr_assert_eq(pkt.eth.pcp, 5);
	cr_assert_eq(pkt.l3, 18);
	cr_assert_eq(pkt.l4, 38);
	cr_assert_eq(pkt.payload, 46);
	cr_assert_eq(pkt.payload_len, 3);
	cr_assert_arr_eq(v.b + pkt.payload, "abc", 3);
}

Test(pkt, udp_behind_ipv6_extension_headers)
{
	struct bytes v = hex(F_EXT6);
	struct wire_pkt pkt;
	uint32_t sum;

	cr_assert_eq(parse(&pkt, F_EXT6), 0);
	cr_assert_eq(pkt.ip.proto, IP_UDP);
	cr_assert_eq(pkt.l4, 78);
	cr_assert_eq(pkt.payload, 86);
	cr_assert_eq(pkt.payload_len, 4);
	sum = wire_pseudo_sum(&pkt.ip.src, &pkt.ip.dst, IP_UDP, pkt.ip.payload_len);
	cr_assert_eq(wire_sum_fold(wire_sum(sum, v.b + pkt.l4, pkt.ip.payload_len)), 0);
}

Test(pkt, arp_and_icmp)
{
	struct wire_pkt pkt;

	cr_assert_eq(parse(&pkt, F_ARP), 0);
	cr_assert_eq(pkt.eth.type, ETH_ARP);
	cr_assert_eq(pkt.l3, 14);
	cr_assert_eq(pkt.payload_len, 0);
	cr_assert(addr_is(&pkt.arp.tpa, "192.0.2.2"));
	cr_assert_eq(parse(&pkt, F_ECHO4), 0);
	cr_assert_eq(pkt.icmp.kind, ICMP_ECHO_REQUEST);
	cr_assert_eq(pkt.payload, 42);
	cr_assert_eq(pkt.payload_len, 5);
	cr_assert_eq(parse(&pkt, F_SOLICIT), 0);
	cr_assert_eq(pkt.icmp.kind, ICMP_NEIGHBOR_SOLICIT);
}

/* The last byte of these frames belongs to a header or to the packet: every prefix is refused. */
Test(pkt, frame_cut_off_at_each_byte_is_refused)
{
	static const char *const frame[] = {
		F_TCP4, F_SYN6, F_SACK4, F_OPT4, F_EXT6, F_ECHO4, F_ECHO6, F_SOLICIT, F_TOO_BIG6};
	struct wire_pkt pkt;

	for (unsigned i = 0; i < sizeof(frame) / sizeof(frame[0]); i++) {
		struct bytes v = hex(frame[i]);

		for (size_t n = 0; n < v.len; n++) {
			uint8_t *p = exact(&v, n);
			int r = wire_pkt_parse(&pkt, p, n, n);

			cr_assert(r == -WIRE_SHORT || r == -WIRE_IP_HEADER, "frame %u, %zu: %d", i,
				n, r);
			free(p);
		}
	}
}

Test(pkt, headers_are_enough_when_the_payload_lies_elsewhere)
{
	struct bytes v = hex(F_TCP4);
	struct wire_pkt pkt;

	for (size_t held = 0; held <= v.len; held++) {
		uint8_t *p = exact(&v, held);
		int r = wire_pkt_parse(&pkt, p, held, v.len);

		if (held >= 66) {
			cr_assert_eq(r, 0, "%zu held", held);
			cr_assert_eq(pkt.payload_len, 5);
		} else {
			cr_assert_eq(
				r, held < 54 ? -WIRE_SHORT : -WIRE_TCP_HEADER, "%zu held", held);
		}
		free(p);
	}
}

Test(pkt, icmp_must_be_there_whole)
{
	struct bytes v = hex(F_ECHO4);
	struct wire_pkt pkt;
	uint8_t *p = exact(&v, v.len - 1);

	cr_assert_eq(wire_pkt_parse(&pkt, p, v.len - 1, v.len), -WIRE_SHORT);
	free(p);
}

Test(pkt, head_longer_than_the_frame_is_refused)
{
	struct bytes v = hex(F_TCP4);
	struct wire_pkt pkt;

	cr_assert_eq(wire_pkt_parse(&pkt, v.b, v.len, v.len - 1), -WIRE_IP_HEADER);
}

Test(pkt, unknown_protocols_have_a_reason_of_their_own)
{
	struct wire_pkt pkt;

	cr_assert_eq(parse(&pkt, "020000000002 020000000001 88cc 0000"), -WIRE_ETHERTYPE);
	cr_assert_eq(parse(&pkt, "020000000002 020000000001 0026 424203"), -WIRE_ETHERTYPE);
	cr_assert_eq(parse(&pkt, "020000000002 020000000001 88a8 0064 0800"), -WIRE_ETHERTYPE);
	/* IPv6 without a next header; ICMP over IPv6. */
	cr_assert_eq(parse(&pkt, F_ETH6 "6000000000003b4020010db8000000000000000000000001"
					"20010db8000000000000000000000002"),
		-WIRE_IP_PROTOCOL);
	cr_assert_eq(parse(&pkt, F_ETH6 "600000000000014020010db8000000000000000000000001"
					"20010db8000000000000000000000002"),
		-WIRE_IP_PROTOCOL);
}

Test(pkt, every_reason_has_a_name_and_a_line_of_help)
{
	cr_assert_str_eq(wire_reasons.layer, "wire");
	cr_assert_eq(wire_reasons.count, wire_reason_count);
	for (unsigned i = 0; i < wire_reasons.count; i++) {
		cr_assert_not_null(wire_reasons.reasons[i].name);
		cr_assert_gt(strlen(wire_reasons.reasons[i].help), 5);
	}
	cr_assert_str_eq(wire_reasons.reasons[WIRE_SHORT].name, "WIRE_SHORT");
	cr_assert_str_eq(wire_reasons.reasons[WIRE_MPA_LENGTH].name, "WIRE_MPA_LENGTH");
}
