/* SPDX-License-Identifier: BSD-3-Clause */
/* Ethernet, 802.1Q and ARP, compared with known bytes. */
#include "frames.h"
#include "vector.h"

Test(eth, untagged_header_ieee802_3)
{
	struct bytes v = hex("0a0b0c0d0e0f 010203040506 86dd");
	struct wire_eth eth;

	ASSERT_REFUSES_SHORT(wire_eth_parse, eth, v, 14, WIRE_SHORT);
	cr_assert_arr_eq(eth.dst, v.b, 6);
	cr_assert_arr_eq(eth.src, v.b + 6, 6);
	cr_assert_eq(eth.type, 0x86dd);
	cr_assert_eq(eth.vlan, ETH_NO_VLAN);
	cr_assert_eq(eth.pcp, 0);
	ASSERT_EMITS(wire_eth_emit, eth, v);
}

Test(eth, tagged_header_ieee802_1q_9_6)
{
	struct bytes v = hex("0a0b0c0d0e0f 010203040506 8100 efff 0800");
	struct wire_eth eth;

	ASSERT_REFUSES_SHORT(wire_eth_parse, eth, v, 18, WIRE_SHORT);
	cr_assert_eq(eth.vlan, 0xfff);
	cr_assert_eq(eth.pcp, 7);
	cr_assert_eq(eth.type, 0x0800);
	ASSERT_EMITS(wire_eth_emit, eth, v);
}

Test(eth, drop_eligible_bit_is_not_part_of_the_vlan_id)
{
	struct bytes v = hex("0a0b0c0d0e0f 010203040506 8100 1000 0800");
	struct wire_eth eth;

	cr_assert_eq(wire_eth_parse(&eth, v.b, v.len), 18);
	cr_assert_eq(eth.vlan, 0);
	cr_assert_eq(eth.pcp, 0);
}

Test(eth, second_tag_is_refused)
{
	struct bytes c = hex("0a0b0c0d0e0f 010203040506 8100 0064 8100 0065 0800");
	struct bytes s = hex("0a0b0c0d0e0f 010203040506 8100 0064 88a8 0065 0800");
	struct wire_eth eth;

	cr_assert_eq(wire_eth_parse(&eth, c.b, c.len), -WIRE_VLAN_DEPTH);
	cr_assert_eq(wire_eth_parse(&eth, s.b, s.len), -WIRE_VLAN_DEPTH);
}

Test(arp, request_rfc826)
{
	struct bytes v = hex("0001 0800 06 04 0001 020000000001 c0000201 0a0b0c0d0e0f c0000202");
	struct wire_arp arp;

	ASSERT_REFUSES_SHORT(wire_arp_parse, arp, v, 28, WIRE_SHORT);
	cr_assert_eq(arp.op, ARP_REQUEST);
	cr_assert_arr_eq(arp.sha, v.b + 8, 6);
	cr_assert_arr_eq(arp.tha, v.b + 18, 6);
	cr_assert(addr_is(&arp.spa, "192.0.2.1"));
	cr_assert(addr_is(&arp.tpa, "192.0.2.2"));
	ASSERT_EMITS(wire_arp_emit, arp, v);
}

Test(arp, other_hardware_or_protocol_is_refused_rfc826)
{
	static const unsigned field[] = {1, 2, 4, 5};
	struct bytes v = hex("0001 0800 06 04 0002 020000000001 c0000201 0a0b0c0d0e0f c0000202");
	struct wire_arp arp;

	for (unsigned i = 0; i < sizeof(field) / sizeof(field[0]); i++) {
		struct bytes bad = v;

		bad.b[field[i]] ^= 1;
		cr_assert_eq(wire_arp_parse(&arp, bad.b, bad.len), -WIRE_ARP_HEADER, "byte %u",
			field[i]);
	}
	cr_assert_eq(wire_arp_parse(&arp, v.b, v.len), 28);
	cr_assert_eq(arp.op, ARP_REPLY);
}
